//! Jets: the energy in a cone around the region of interest.

use crate::cuts::Cuts;
use crate::data::Data;
use crate::detector::Detector;
use crate::geography::{CELLS_PER_TOWER, SubSystem, TOWERS_PHI, Window};

/// The upper corner of the lower tower of a jet region of interest, which is the middle of its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Middle {
    eta: i32,
    phi: i32,
}

impl Middle {
    pub(crate) fn of(ieta: u8, iphi: u8) -> Self {
        Self { eta: i32::from(ieta) + 1, phi: i32::from(iphi) + 1 }
    }

    /// Electromagnetic cells and hadronic towers of a square around the cone.
    pub(crate) fn windows(self) -> [Window; 2] {
        [(SubSystem::EmCalo, CELLS_PER_TOWER), (SubSystem::HadCalo, 1)].map(|(sub, scale)| Window {
            sub,
            eta: scale * (self.eta - HALF_TOWERS)..scale * (self.eta + HALF_TOWERS),
            phi: scale * (self.phi - HALF_TOWERS)..scale * (self.phi + HALF_TOWERS),
        })
    }

    /// Whether the middle of a tower lies within 0.4 of the middle.
    fn has(self, eta: i32, phi: i32) -> bool {
        let eta = eta - self.eta;
        let phi = (phi - self.phi + TOWERS_PHI / 2).rem_euclid(TOWERS_PHI) - TOWERS_PHI / 2;
        (2 * eta + 1).pow(2) + (2 * phi + 1).pow(2) <= CONE_HALF_TOWERS_SQUARED
    }
}

/// Calibrated transverse energy in the cone.
pub(crate) fn et_mev(detector: &Detector, data: &impl Data, middle: Middle, cuts: &Cuts) -> i64 {
    let [cells, towers] = middle.windows();
    let (mut em, mut had) = (0_i64, 0_i64);
    for source_id in detector.robs(&cells) {
        for (channel, adc) in data.records(source_id).cells() {
            let (eta, phi) = ((channel >> 8) as i32 / CELLS_PER_TOWER, (channel & 0xff) as i32 / CELLS_PER_TOWER);
            em += if middle.has(eta, phi) { i64::from(adc) } else { 0 };
        }
    }
    for source_id in detector.robs(&towers) {
        for (channel, adc) in data.records(source_id).cells() {
            had += if middle.has((channel >> 6) as i32, (channel & 0x3f) as i32) { i64::from(adc) } else { 0 };
        }
    }
    let sum_mev = i128::from(em * detector.em_count_mev + had * detector.had_count_mev);
    let et_mev = sum_mev * i128::from(cuts.jet_calibration_permil) / 1000;
    i64::try_from(et_mev).unwrap_or(i64::MAX)
}

const HALF_TOWERS: i32 = 5;

/// In units of half a tower, 0.05: a radius of 0.4.
const CONE_HALF_TOWERS_SQUARED: i32 = 64;
