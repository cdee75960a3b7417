//! Efficiencies against the leptons of the generator.

use std::f64::consts::PI;

use configuration::{Algorithm, Chain};
use rol::{SampleRow, TruthParticle};
use trigger::{Detector, Feature, RoiKind};

use super::binomial::PassedOf;
use super::report::{Curve, Efficiencies};

/// The efficiency for one kind of lepton: of level-1 thresholds, and of a level-2 chain that starts from them.
///
/// A threshold finds a lepton if a region of interest that passed it lies near. The chain finds it if its algorithm
/// accepted such a region.
pub(super) struct Finder {
    lepton: Lepton,
    /// Bits of the thresholds in a region of interest: the base, and with isolation, if there are two.
    thresholds: Vec<(String, u8)>,
    chain_name: String,
    /// The chains that run the same algorithm with the same cut: one of them stands for all in a feature.
    chains: Vec<u8>,
    /// Above the least transverse momentum of the lepton: the base threshold first, the chain last.
    totals: Vec<PassedOf>,
    /// The same by bin of transverse momentum.
    bins: Vec<Vec<PassedOf>>,
}

/// A kind of lepton, and which of them count.
#[derive(Clone, Copy)]
struct Lepton {
    name: &'static str,
    pdg_id: u32,
    kind: RoiKind,
    algorithm: Algorithm,
    pt_min_gev: f64,
    eta_max: f64,
}

/// Electrons leave energy where they meet the calorimeter; a muon's region is where its momentum points to.
const LEPTONS: [Lepton; 2] = [
    Lepton {
        name: "electron",
        pdg_id: 11,
        kind: RoiKind::Em,
        algorithm: Algorithm::Electron,
        pt_min_gev: 30.0,
        eta_max: 2.4,
    },
    Lepton {
        name: "muon",
        pdg_id: 13,
        kind: RoiKind::Muon,
        algorithm: Algorithm::Muon,
        pt_min_gev: 25.0,
        eta_max: 2.3,
    },
];

impl Finder {
    /// For each kind of lepton that a chain of the menu looks for one of.
    pub(super) fn all(chains: &[Chain], detector: &Detector) -> Vec<Self> {
        LEPTONS.iter().filter_map(|lepton| Self::new(*lepton, chains, detector)).collect()
    }

    fn new(lepton: Lepton, chains: &[Chain], detector: &Detector) -> Option<Self> {
        let chain = chains.iter().find(|chain| chain.algorithm == lepton.algorithm && chain.count == 1)?;
        let threshold = chain.threshold.as_deref()?;
        let bit = |name: &str| Some((name.to_owned(), detector.threshold(lepton.kind, name)?));
        let base = threshold.strip_suffix('I').and_then(bit);
        let thresholds: Vec<(String, u8)> = base.into_iter().chain(bit(threshold)).collect();
        let is_same = |other: &Chain| (other.algorithm, other.et) == (chain.algorithm, chain.et);
        let alike = (0..).zip(chains).filter(|(_, other)| is_same(other)).map(|(index, _)| index).collect();
        let curves = thresholds.len() + 1;
        Some(Self {
            lepton,
            thresholds,
            chain_name: chain.name.clone(),
            chains: alike,
            totals: vec![PassedOf::default(); curves],
            bins: vec![vec![PassedOf::default(); BINS]; curves],
        })
    }

    /// Looks for the leptons of an event.
    pub(super) fn event(&mut self, row: &SampleRow, features: &[Feature]) {
        for particle in &row.truth {
            if particle.origin == HARD_DECAY && particle.pdg_id.unsigned_abs() == self.lepton.pdg_id {
                self.lepton(row, particle, features);
            }
        }
    }

    fn lepton(&mut self, row: &SampleRow, particle: &TruthParticle, features: &[Feature]) {
        let (eta, phi) = self.direction(particle);
        if eta.abs() >= self.lepton.eta_max {
            return;
        }
        let found = self.found_by(row, eta, phi, features);
        let pt_gev = f64::from(particle.pt_gev);
        if pt_gev > self.lepton.pt_min_gev {
            self.totals.iter_mut().zip(&found).for_each(|(part, found)| part.count(*found));
        }
        let above = pt_gev - PT_FIRST_GEV;
        let bin = (above >= 0.0).then_some((above / PT_BIN_GEV) as usize).filter(|bin| *bin < BINS);
        if let Some(bin) = bin {
            self.bins.iter_mut().zip(&found).for_each(|(bins, found)| bins[bin].count(*found));
        }
    }

    fn direction(&self, particle: &TruthParticle) -> (f64, f64) {
        let (eta, phi) = match self.lepton.kind {
            RoiKind::Em => (particle.eta_calo, particle.phi_calo),
            _ => (particle.eta, particle.phi),
        };
        (f64::from(eta), f64::from(phi))
    }

    /// In the order of the curves.
    fn found_by(&self, row: &SampleRow, eta: f64, phi: f64, features: &[Feature]) -> Vec<bool> {
        let is_near = |roi: &trigger::Roi| {
            let (delta_eta, delta_phi) = (f64::from(roi.eta) - eta, wrap(f64::from(roi.phi) - phi));
            delta_eta.abs() < NEAR && delta_phi.abs() < NEAR
        };
        let (_, base) = self.thresholds[0];
        let has = |roi: &trigger::Roi, bit: u8| roi.thresholds >> bit & 1 == 1;
        let near: Vec<(u32, &trigger::Roi)> = (0..)
            .zip(&row.rois)
            .filter(|(_, roi)| roi.kind == self.lepton.kind as u8 && has(roi, base) && is_near(roi))
            .collect();
        let accepted = |index: u32| {
            let of_chain = features.iter().filter(|feature| self.chains.contains(&feature.chain));
            of_chain.into_iter().any(|feature| feature.passed && feature.roi == Some(index))
        };
        let thresholds = self.thresholds.iter().map(|(_, bit)| near.iter().any(|(_, roi)| has(roi, *bit)));
        thresholds.chain([near.iter().any(|(index, _)| accepted(*index))]).collect()
    }

    /// The result; none if there were no such leptons.
    pub(super) fn efficiencies(self) -> Option<Efficiencies> {
        if self.bins[0].iter().chain(&self.totals).all(|part| part.all == 0) {
            return None;
        }
        let names = self.thresholds.into_iter().map(|(name, _)| format!("L1_{name}")).chain([self.chain_name]);
        let curves = names.zip(self.totals).zip(self.bins);
        let curve = |((name, above), bins): ((String, PassedOf), Vec<PassedOf>)| Curve {
            name,
            passed_above: above.passed,
            efficiency: above.value(),
            efficiency_error: above.error(),
            passed: bins.iter().map(|part| part.passed).collect(),
            bins,
            above,
        };
        let curves: Vec<Curve> = curves.map(curve).collect();
        Some(Efficiencies {
            lepton: self.lepton.name,
            pt_min_gev: self.lepton.pt_min_gev,
            eta_max: self.lepton.eta_max,
            leptons_above: curves[0].above.all,
            pt_bin_edges_gev: (0..=BINS).map(|edge| PT_FIRST_GEV + PT_BIN_GEV * edge as f64).collect(),
            leptons: curves[0].bins.iter().map(|part| part.all).collect(),
            curves,
        })
    }
}

/// To [−π, π).
fn wrap(angle: f64) -> f64 {
    (angle + PI).rem_euclid(2.0 * PI) - PI
}

/// `origin` of a lepton from the decay of the hard W or Z.
const HARD_DECAY: u8 = 1;

/// Most distance in η and in φ of a region of interest from its lepton.
const NEAR: f64 = 0.15;

const PT_FIRST_GEV: f64 = 10.0;
const PT_BIN_GEV: f64 = 4.0;
const BINS: usize = 12;
