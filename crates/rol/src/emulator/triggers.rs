//! Emulated triggers.

use dataflow::level1::trigger::{Trigger, TriggerSource};
use dataflow::message::Roi;
use dataflow::random::Random;

/// Triggers at random bunch crossings with random regions of interest, without end: a function of seed and ordinal.
///
/// The trigger type is physics with calorimeter (0x84), or physics with calorimeter and muon (0x8c) if a region is one
/// of muons. Regions are spread evenly over |η| < 2.5 and φ; transverse energies fall exponentially from 5 GeV, by 20 GeV.
#[derive(Clone, Debug)]
pub struct EmulatedTriggers {
    rois_per_event: u32,
    key: u64,
}

impl EmulatedTriggers {
    /// A source of triggers with this many regions of interest each.
    pub fn new(rois_per_event: u32, seed: u64) -> Self {
        Self { rois_per_event, key: Random::new(seed).next_u64() }
    }
}

impl TriggerSource for EmulatedTriggers {
    fn trigger(&mut self, ordinal: u64) -> Option<Trigger> {
        let mut random = Random::new(self.key ^ ordinal);
        let bcid = random.below(BUNCH_CROSSINGS) as u16;
        let rois: Vec<Roi> = (0..self.rois_per_event).map(|_| roi(&mut random)).collect();
        let has_muon = rois.iter().any(|roi| roi.kind == KIND_MUON);
        let trigger_type = if has_muon { PHYSICS | CALORIMETER | MUON } else { PHYSICS | CALORIMETER };
        Some(Trigger { bcid, trigger_type, items: 1, rois })
    }
}

fn roi(random: &mut Random) -> Roi {
    // 24 bits, which a single-precision number holds, so that φ stays below 2π.
    let unit = |random: &mut Random| (random.next_u64() >> 40) as f32 / (1 << 24) as f32;
    let (eta, phi) = (2.0 * unit(random) - 1.0, unit(random));
    Roi {
        kind: random.below(u64::from(KIND_MUON) + 1) as u8,
        ieta: ((eta + 1.0) / 2.0 * TOWERS_ETA) as u8,
        iphi: (phi * TOWERS_PHI) as u8,
        eta: eta * ETA_MAX,
        phi: phi * std::f32::consts::TAU,
        et_mev: ET_MIN_MEV + (ET_MEAN_ABOVE_MEV * random.exponential()) as i32,
        aux_mev: [0; 2],
        thresholds: 1,
    }
}

const BUNCH_CROSSINGS: u64 = 3564;
const PHYSICS: u8 = 0x80;
const CALORIMETER: u8 = 0x04;
const MUON: u8 = 0x08;
/// Kinds of regions are 0 electromagnetic, 1 jet, 2 muon.
const KIND_MUON: u8 = 2;
const ETA_MAX: f32 = 2.5;
/// Towers of 0.1 × 2π/64.
const TOWERS_ETA: f32 = 50.0;
const TOWERS_PHI: f32 = 64.0;
const ET_MIN_MEV: i32 = 5_000;
const ET_MEAN_ABOVE_MEV: f64 = 20_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_repeatable_and_in_range() {
        let (mut one, mut other) = (EmulatedTriggers::new(3, 1), EmulatedTriggers::new(3, 2));
        let again = EmulatedTriggers::new(3, 1).trigger(999);
        for ordinal in 0..2000 {
            let trigger = one.trigger(ordinal).unwrap();
            assert!(trigger.bcid < 3564 && trigger.rois.len() == 3);
            for roi in &trigger.rois {
                assert!(roi.kind <= 2 && roi.eta.abs() <= 2.5 && roi.et_mev >= 5000, "{roi:?}");
                assert!((0.0..std::f32::consts::TAU).contains(&roi.phi), "{roi:?}");
            }
        }
        assert_eq!(one.trigger(999), again);
        assert_ne!(other.trigger(999), again);
    }
}
