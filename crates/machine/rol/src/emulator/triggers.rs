//! Emulated triggers.

use base::random::Random;
use configuration::{Generator, Kinds, Multiplicity, Position, Spectrum};
use dataflow::level1::trigger::{Trigger, TriggerSource};
use dataflow::message::{ROIS_MAX, Roi};

/// Triggers at random bunch crossings with random regions of interest, without end: a function of seed and ordinal.
///
/// The trigger type is physics with calorimeter (0x84), or physics with calorimeter and muon (0x8c) if a region is one
/// of muons. How many regions there are, where, and of what transverse energy, says a [`Generator`].
#[derive(Clone, Debug)]
pub struct EmulatedTriggers {
    mean: u32,
    generator: Generator,
    key: u64,
}

impl EmulatedTriggers {
    /// A source of triggers with this number, or mean number, of regions of interest.
    pub fn new(rois_per_event: u32, generator: Generator, seed: u64) -> Self {
        Self { mean: rois_per_event, generator, key: Random::new(seed).next_u64() }
    }

    fn multiplicity(&self, random: &mut Random) -> u32 {
        match self.generator.multiplicity {
            Multiplicity::Fixed => self.mean,
            Multiplicity::Poisson => poisson(f64::from(self.mean), random),
        }
    }

    fn roi(&self, random: &mut Random) -> Roi {
        let (eta, phi) = self.position(random);
        Roi {
            kind: self.kind(random),
            ieta: tower(eta, ETA_MAX, TOWERS_ETA),
            iphi: tower(phi - PI, PI, TOWERS_PHI),
            eta,
            phi,
            et_mev: self.et_mev(random),
            aux_mev: [0; 2],
            thresholds: self.generator.thresholds,
        }
    }

    fn position(&self, random: &mut Random) -> (f32, f32) {
        // 24 bits, which a single-precision number holds, so that φ stays below 2π.
        let mut unit = || (random.next_u64() >> 40) as f32 / (1 << 24) as f32;
        let (eta, phi) = (2.0 * unit() - 1.0, unit());
        match self.generator.position {
            Position::Flat => (eta * ETA_MAX, phi * TAU),
            Position::HotSpot => {
                let [eta_0, phi_0, width] =
                    [self.generator.eta, self.generator.phi, self.generator.width].map(|number| number.as_f64() as f32);
                let phi = (phi_0 + (2.0 * phi - 1.0) * width).rem_euclid(TAU);
                let phi = if phi < TAU { phi } else { 0.0 };
                ((eta_0 + eta * width).clamp(-ETA_MAX, ETA_MAX), phi)
            }
        }
    }

    fn kind(&self, random: &mut Random) -> u8 {
        let Kinds { em, jet, muon } = self.generator.kinds;
        let [em, jet, muon] = [em, jet, muon].map(u64::from);
        let drawn = random.below((em + jet + muon).max(1));
        if drawn < em {
            KIND_EM
        } else if drawn < em + jet {
            KIND_JET
        } else {
            KIND_MUON
        }
    }

    fn et_mev(&self, random: &mut Random) -> i32 {
        let above = match self.generator.spectrum {
            Spectrum::Fixed => 0.0,
            Spectrum::Exponential => self.generator.et_mean_above.mev() as f64 * random.exponential(),
        };
        // The conversion stops at the largest number.
        (self.generator.et_min.mev() as f64 + above) as i32
    }
}

impl TriggerSource for EmulatedTriggers {
    fn trigger(&mut self, ordinal: u64) -> Option<Trigger> {
        let mut random = Random::new(self.key ^ ordinal);
        let bcid = random.below(BUNCH_CROSSINGS) as u16;
        let rois: Vec<Roi> = (0..self.multiplicity(&mut random)).map(|_| self.roi(&mut random)).collect();
        let has_muon = rois.iter().any(|roi| roi.kind == KIND_MUON);
        let trigger_type = if has_muon { PHYSICS | CALORIMETER | MUON } else { PHYSICS | CALORIMETER };
        Some(Trigger { bcid, trigger_type, items: self.generator.items, rois })
    }
}

/// How many events of unit rate fall into an interval of length `mean`.
fn poisson(mean: f64, random: &mut Random) -> u32 {
    let (mut count, mut at) = (0, random.exponential());
    while at < mean && count < ROIS_MAX as u32 {
        count += 1;
        at += random.exponential();
    }
    count
}

/// Number of the tower at `x` of `count` equal ones in ±`max`.
pub(crate) fn tower(x: f32, max: f32, count: f32) -> u8 {
    (((x / max + 1.0) / 2.0 * count) as u8).min(count as u8 - 1)
}

const BUNCH_CROSSINGS: u64 = 3564;
const PHYSICS: u8 = 0x80;
const CALORIMETER: u8 = 0x04;
const MUON: u8 = 0x08;
const KIND_EM: u8 = 0;
const KIND_JET: u8 = 1;
const KIND_MUON: u8 = 2;
pub(crate) const ETA_MAX: f32 = 2.5;
pub(crate) const PI: f32 = std::f32::consts::PI;
const TAU: f32 = std::f32::consts::TAU;
/// Towers of 0.1 × 2π/64.
pub(crate) const TOWERS_ETA: f32 = 50.0;
pub(crate) const TOWERS_PHI: f32 = 64.0;

#[cfg(test)]
mod tests {
    use configuration::{Decimal, Energy};

    use super::*;

    fn drawn(rois_per_event: u32, generator: Generator) -> Vec<Trigger> {
        let mut source = EmulatedTriggers::new(rois_per_event, generator, 1);
        (0..4000).map(|ordinal| source.trigger(ordinal).unwrap()).collect()
    }

    #[test]
    fn triggers_are_repeatable_and_in_range() {
        let source = |seed| EmulatedTriggers::new(3, Generator::default(), seed);
        let again = source(1).trigger(999);
        for trigger in drawn(3, Generator::default()) {
            assert!(trigger.bcid < 3564 && trigger.rois.len() == 3 && trigger.items == 1);
            for roi in &trigger.rois {
                assert!(roi.kind <= 2 && roi.eta.abs() <= 2.5 && roi.et_mev >= 5000, "{roi:?}");
                assert!((0.0..TAU).contains(&roi.phi) && roi.ieta < 50 && roi.iphi < 64, "{roi:?}");
            }
        }
        assert_eq!(source(1).trigger(999), again);
        assert_ne!(source(2).trigger(999), again);
    }

    #[test]
    fn multiplicities_are_those_of_poisson() {
        let triggers = drawn(2, Generator { multiplicity: Multiplicity::Poisson, ..Generator::default() });
        let counts: Vec<f64> = triggers.iter().map(|trigger| trigger.rois.len() as f64).collect();
        let mean = counts.iter().sum::<f64>() / 4000.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 4000.0;
        assert!((mean - 2.0).abs() < 0.12 && (variance - 2.0).abs() < 0.25, "{mean} ± {variance}");
    }

    #[test]
    fn a_hot_spot_is_a_square_also_across_zero() {
        let [eta, phi, width] = [1.0, 0.1, 0.3].map(|number| Decimal::from_f64(number).unwrap());
        for trigger in drawn(2, Generator { position: Position::HotSpot, eta, phi, width, ..Generator::default() }) {
            for roi in trigger.rois {
                let distance = (roi.phi - 0.1 + PI).rem_euclid(TAU) - PI;
                assert!((roi.eta - 1.0).abs() < 0.3001 && distance.abs() < 0.3001, "{roi:?}");
                assert!((0.0..TAU).contains(&roi.phi) && roi.iphi < 64, "{roi:?}");
            }
        }
    }

    #[test]
    fn kinds_and_energies_are_those_asked_for() {
        let generator = Generator {
            kinds: Kinds { em: 3, jet: 1, muon: 0 },
            spectrum: Spectrum::Fixed,
            et_min: Energy::from_mev(30_000),
            thresholds: 0x10,
            items: 0x28,
            ..Generator::default()
        };
        let triggers = drawn(1, generator);
        let em = triggers.iter().filter(|trigger| trigger.rois[0].kind == KIND_EM).count();
        assert!(em.abs_diff(3000) < 140, "{em}");
        let is_right = |trigger: &Trigger| {
            let roi = trigger.rois[0];
            (trigger.items, trigger.trigger_type, roi.thresholds, roi.et_mev) == (0x28, 0x84, 0x10, 30_000)
        };
        assert!(triggers.iter().all(is_right));
    }
}
