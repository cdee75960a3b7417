//! `[menu]`: what level 2 and the event filter select.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Energy, Fraction};

/// `[menu]`: the selection of level 2 (`l2pu.strategy = "menu"`) and of the event filter (`pt.algorithm = "menu"`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Menu {
    /// Which read-out layout of `input.detector` the links have.
    pub layout: String,
    /// Numbers of the selection beside thresholds.
    pub cuts: Cuts,
    /// The chains, at most 64. An event is accepted if any of them accepts it.
    pub chain: Vec<Chain>,
}

impl Default for Menu {
    fn default() -> Self {
        Self { layout: "rob160".to_owned(), cuts: Cuts::default(), chain: Vec::new() }
    }
}

/// `[[menu.chain]]`: from a level-1 item through level 2 to the event filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Chain {
    /// Its name, such as `e25i`. Required.
    pub name: String,
    /// The level-1 item that it starts from, such as `L1_EM20I`. Required.
    pub item: String,
    /// What it looks for.
    pub algorithm: Algorithm,
    /// It looks at regions of interest that passed this level-1 threshold, such as `EM20I`.
    pub threshold: Option<String>,
    /// Transverse energy or momentum of what it looks for, at least.
    pub et: Option<Energy>,
    /// It must find so many.
    pub count: u32,
    /// It runs for one in so many events of its item.
    pub prescale: u32,
    /// One in so many events that it runs for is accepted whatever it finds; 0 is none.
    pub pass_through: u32,
    /// A tighter cut for the event filter; without it the filter cuts at `et`, too.
    pub filter_et: Option<Energy>,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            name: String::new(),
            item: String::new(),
            algorithm: Algorithm::Pass,
            threshold: None,
            et: None,
            count: 1,
            prescale: 1,
            pass_through: 0,
            filter_et: None,
        }
    }
}

/// What a chain looks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// A cluster with shower shape, isolation, little hadronic leakage and a matched track.
    Electron,
    /// The same without the track.
    Photon,
    /// A track matched to a muon stub.
    Muon,
    /// A cone of radius 0.4.
    Jet,
    /// Level 2 takes level 1's word; the event filter sums the whole calorimeter.
    MissingEt,
    /// Every event of the item.
    #[default]
    Pass,
}

/// `[menu.cuts]`: numbers of the selection beside thresholds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Cuts {
    /// Energy of a cluster per 1000 of its 3 × 7 sum.
    pub em_calibration_permil: i32,
    /// Energy of a jet per 1000 of its sum.
    pub jet_calibration_permil: i32,
    /// Least 3 × 7 sum of a cluster per 1000 of its 7 × 7 sum.
    pub r_eta_min_permil: i32,
    /// Most energy behind a cluster, as a part of its 3 × 7 sum ...
    pub hadronic_max_permil: i32,
    /// ... or this, whichever is larger.
    pub hadronic_max: Energy,
    /// Most energy around a cluster, as a part of its 3 × 7 sum ...
    pub ring_max_permil: i32,
    /// ... plus this.
    pub ring_max: Energy,
    /// Least transverse momentum of a track matched to a cluster.
    pub track_pt_min: Energy,
    /// A matched track is nearer in η than this.
    pub track_delta_eta: Fraction,
    /// A matched track is nearer in φ than this.
    pub track_delta_phi: Fraction,
    /// Most distance in η of a muon stub from its region of interest, in units of 10⁻⁴.
    pub stub_delta_eta_q: i32,
    /// Most distance in φ of a muon stub from its region of interest, in units of 2π/65536.
    pub stub_delta_phi_q: i32,
    /// The momentum of a stub alone is compared with the threshold after it was raised by this factor, per 1000.
    pub stub_pt_permil: u32,
    /// Most distance in η of a track from its stub, in units of 10⁻⁴.
    pub stub_track_delta_eta_q: i32,
    /// A track is nearer in φ to its stub than this.
    pub stub_track_delta_phi: Fraction,
}

impl Default for Cuts {
    fn default() -> Self {
        Self {
            em_calibration_permil: 1063,
            jet_calibration_permil: 1220,
            r_eta_min_permil: 900,
            hadronic_max_permil: 40,
            hadronic_max: Energy::from_mev(2500),
            ring_max_permil: 80,
            ring_max: Energy::from_mev(2000),
            track_pt_min: Energy::from_mev(5000),
            track_delta_eta: Fraction::from_percent(4),
            track_delta_phi: Fraction::from_percent(10),
            stub_delta_eta_q: 1000,
            stub_delta_phi_q: 1024,
            stub_pt_permil: 1250,
            stub_track_delta_eta_q: 200,
            stub_track_delta_phi: Fraction::from_percent(3),
        }
    }
}
