//! Sum and missing transverse energy, from all calorimeter fragments of a built event.

use std::f64::consts::TAU;

use crate::data::Data;
use crate::detector::Detector;
use crate::geography::{EM_CELLS_PHI, SubSystem, TOWERS_PHI};

/// Transverse energy of the whole calorimeter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransverseEnergy {
    /// Scalar sum.
    pub sum_mev: i64,
    /// Minus the vector sum: x and y.
    pub missing_mev: [f64; 2],
}

impl TransverseEnergy {
    /// Length of the missing transverse energy.
    #[must_use]
    pub fn missing_et_mev(&self) -> f64 {
        self.missing_mev[0].hypot(self.missing_mev[1])
    }
}

/// Directions of the channels in φ, and room for the sums; made once per context.
#[derive(Debug)]
pub(crate) struct Calorimeter {
    em: Ring<{ EM_CELLS_PHI as usize }>,
    had: Ring<{ TOWERS_PHI as usize }>,
}

impl Calorimeter {
    pub(crate) fn new() -> Self {
        Self { em: Ring::new(), had: Ring::new() }
    }

    pub(crate) fn transverse_energy(&mut self, detector: &Detector, data: &impl Data) -> TransverseEnergy {
        self.em.fill(detector, data, SubSystem::EmCalo);
        self.had.fill(detector, data, SubSystem::HadCalo);
        let mut energy = TransverseEnergy::default();
        self.em.add_to(&mut energy, detector.em_count_mev);
        self.had.add_to(&mut energy, detector.had_count_mev);
        energy
    }
}

/// ADC counts per column of channels of equal φ: sums stay integers until they are projected.
#[derive(Debug)]
struct Ring<const N: usize> {
    counts: [i64; N],
    directions: [[f64; 2]; N],
}

impl<const N: usize> Ring<N> {
    fn new() -> Self {
        let direction = |column: usize| {
            let phi = (column as f64 + 0.5) * TAU / N as f64;
            [phi.cos(), phi.sin()]
        };
        Self { counts: [0; N], directions: std::array::from_fn(direction) }
    }

    fn fill(&mut self, detector: &Detector, data: &impl Data, sub: SubSystem) {
        self.counts.fill(0);
        for source_id in detector.modules(sub).sources() {
            for (channel, adc) in data.records(source_id).cells() {
                self.counts[channel as usize % N] += i64::from(adc);
            }
        }
    }

    fn add_to(&self, energy: &mut TransverseEnergy, count_mev: i64) {
        let (mut x, mut y) = (0.0, 0.0);
        for (counts, [cosine, sine]) in self.counts.iter().zip(self.directions) {
            let et_mev = (counts * count_mev) as f64;
            x += et_mev * cosine;
            y += et_mev * sine;
            energy.sum_mev += counts * count_mev;
        }
        energy.missing_mev[0] -= x;
        energy.missing_mev[1] -= y;
    }
}
