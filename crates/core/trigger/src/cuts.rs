//! The numbers of the selection beside thresholds.

use thiserror::Error;

/// Calibration constants, shape, isolation and matching cuts of all chains of a menu. `Default` is the reference
/// selection.
#[derive(Clone, Debug, PartialEq)]
pub struct Cuts {
    /// Calibrated transverse energy of a cluster per 1000 of its 3 × 7 sum.
    pub em_calibration_permil: i32,
    /// Calibrated transverse energy of a jet per 1000 of its sum.
    pub jet_calibration_permil: i32,
    /// R_η: 3 × 7 sum over 7 × 7 sum, at least.
    pub r_eta_min_permil: i32,
    /// Hadronic leakage behind a cluster, at most this part of its 3 × 7 sum, …
    pub hadronic_max_permil: i32,
    /// … or this in MeV, whichever is larger.
    pub hadronic_max_mev: i32,
    /// Isolation ring of a cluster, at most this part of its 3 × 7 sum …
    pub ring_max_permil: i32,
    /// … plus this in MeV.
    pub ring_max_mev: i32,
    /// Transverse momentum of a track matched to a cluster, at least, in GeV.
    pub track_pt_min_gev: f64,
    /// Distance in η of track and cluster at the calorimeter, below.
    pub track_delta_eta_max: f64,
    /// Distance in φ of track and cluster at the calorimeter, below.
    pub track_delta_phi_max: f64,
    /// Distance in η of stub and region of interest, at most, in units of 10⁻⁴.
    pub stub_delta_eta_q_max: i32,
    /// Distance in φ of stub and region of interest, at most, in units of 2π/65536.
    pub stub_delta_phi_q_max: i32,
    /// Loose cut: the momentum of the stub alone times this is compared with the threshold.
    pub stub_pt_factor: f64,
    /// Distance in η of track and stub, at most, in units of 10⁻⁴.
    pub stub_track_delta_eta_q_max: i32,
    /// Distance in φ of track and stub behind the solenoid, below.
    pub stub_track_delta_phi_max: f64,
}

/// A constant that makes no sense.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("cut `{key}`: expected {expected}, found {found}")]
pub struct BadCut {
    /// Name of the field of [`Cuts`].
    pub key: &'static str,
    /// What is legal.
    pub expected: String,
    /// What it is.
    pub found: String,
}

impl Default for Cuts {
    fn default() -> Self {
        Self {
            em_calibration_permil: 1063,
            jet_calibration_permil: 1220,
            r_eta_min_permil: 900,
            hadronic_max_permil: 40,
            hadronic_max_mev: 2500,
            ring_max_permil: 80,
            ring_max_mev: 2000,
            track_pt_min_gev: 5.0,
            track_delta_eta_max: 0.04,
            track_delta_phi_max: 0.10,
            stub_delta_eta_q_max: 1000,
            stub_delta_phi_q_max: 1024,
            stub_pt_factor: 1.25,
            stub_track_delta_eta_q_max: 200,
            stub_track_delta_phi_max: 0.03,
        }
    }
}

impl Cuts {
    /// # Errors
    /// The first constant that is out of its range.
    pub(crate) fn check(&self) -> Result<(), BadCut> {
        let integers = [
            ("em_calibration_permil", self.em_calibration_permil, 1, PERMIL_MAX),
            ("jet_calibration_permil", self.jet_calibration_permil, 1, PERMIL_MAX),
            ("r_eta_min_permil", self.r_eta_min_permil, 0, 1000),
            ("hadronic_max_permil", self.hadronic_max_permil, 0, PERMIL_MAX),
            ("hadronic_max_mev", self.hadronic_max_mev, 0, i32::MAX),
            ("ring_max_permil", self.ring_max_permil, 0, PERMIL_MAX),
            ("ring_max_mev", self.ring_max_mev, 0, i32::MAX),
            ("stub_delta_eta_q_max", self.stub_delta_eta_q_max, 1, 50_000),
            ("stub_delta_phi_q_max", self.stub_delta_phi_q_max, 1, 32_768),
            ("stub_track_delta_eta_q_max", self.stub_track_delta_eta_q_max, 0, 50_000),
        ];
        for (key, found, min, max) in integers {
            if !(min..=max).contains(&found) {
                return Err(BadCut { key, expected: format!("{min} to {max}"), found: found.to_string() });
            }
        }
        let numbers = [
            ("track_pt_min_gev", self.track_pt_min_gev),
            ("track_delta_eta_max", self.track_delta_eta_max),
            ("track_delta_phi_max", self.track_delta_phi_max),
            ("stub_pt_factor", self.stub_pt_factor),
            ("stub_track_delta_phi_max", self.stub_track_delta_phi_max),
        ];
        for (key, found) in numbers {
            if !(found >= 0.0 && found.is_finite()) {
                return Err(BadCut { key, expected: "a number not below 0".to_owned(), found: found.to_string() });
            }
        }
        Ok(())
    }
}

const PERMIL_MAX: i32 = 1_000_000;
