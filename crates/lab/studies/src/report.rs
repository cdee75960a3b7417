//! What a study of the selection comes to: the content of `selection.json`.

use serde::Serialize;

use super::binomial::{Estimate, PassedOf};

/// The study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    /// Version of these keys.
    pub(super) format_version: u32,
    /// Where the configuration came from.
    pub(super) configuration: String,
    /// Names of the chains; chain `n` is bit `n` of sets of chains.
    pub(super) menu: Vec<String>,
    /// One for each sample.
    pub(super) samples: Vec<SampleReport>,
}

/// One sample.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SampleReport {
    /// Name of the file without its suffix.
    pub(super) sample: String,
    /// What was generated.
    pub(super) process: String,
    /// Mean number of interactions of pile-up.
    pub(super) mu: f64,
    /// Whether the file lacks the events that level 1 rejected: efficiencies are then relative to level 1.
    pub(super) only_level1_accepted: bool,
    /// Whether events have different weights.
    pub(super) weighted: bool,
    /// Events in the file.
    pub(super) events: u64,
    /// Sum of their weights.
    pub(super) sum_of_weights: f64,
    /// Sum of the weights of all events that were generated; fractions refer to it.
    pub(super) sum_of_weights_generated: f64,
    /// Of the process, in millibarn.
    pub(super) cross_section_mb: f64,
    /// Level 1, level 2, event filter.
    pub(super) levels: [Level; 3],
    /// Level-1 items after prescale are the input of the chains.
    pub(super) chains: Vec<ChainReport>,
    /// Electrons, muons, if the sample has any.
    pub(super) efficiencies: Vec<Efficiencies>,
    /// What level 2 asked for.
    pub(super) requests: Requests,
}

/// What passed a level.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Level {
    /// Its name.
    pub(super) name: &'static str,
    /// Events, unweighted.
    pub(super) accepted: u64,
    /// Those that something else than the random trigger accepted.
    pub(super) accepted_without_random: u64,
    /// Weighted, of all that were generated.
    pub(super) fraction: f64,
    /// Rate at a luminosity of 10³⁴ cm⁻² s⁻¹, without the random trigger.
    pub(super) rate_hz: Estimate,
    /// Rate before this level over the rate after it, without the random trigger.
    pub(super) rejection: Option<f64>,
}

/// A chain.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ChainReport {
    /// Its name.
    pub(super) name: String,
    /// Its level-1 item.
    pub(super) item: String,
    /// Events that it ran for.
    pub(super) input: u64,
    /// Events that it accepted at level 2.
    pub(super) level2: u64,
    /// Events that it accepted in the event filter.
    pub(super) event_filter: u64,
    /// Those, weighted, of all that were generated.
    pub(super) event_filter_fraction: f64,
    /// Rate at a luminosity of 10³⁴ cm⁻² s⁻¹ after level 1.
    pub(super) input_rate_hz: Estimate,
    /// After level 2.
    pub(super) level2_rate_hz: Estimate,
    /// After the event filter.
    pub(super) event_filter_rate_hz: Estimate,
    /// Rate before over rate after.
    pub(super) rejection: Option<f64>,
}

/// Efficiencies for leptons from the decay of the hard W or Z, level 1 included.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Efficiencies {
    /// `electron` or `muon`.
    pub(super) lepton: &'static str,
    /// Those of the plateau have more transverse momentum.
    pub(super) pt_min_gev: f64,
    /// And a smaller pseudorapidity.
    pub(super) eta_max: f64,
    /// How many they are.
    pub(super) leptons_above: u64,
    /// Bins of true transverse momentum.
    pub(super) pt_bin_edges_gev: Vec<f64>,
    /// Leptons in each.
    pub(super) leptons: Vec<u64>,
    /// Level-1 thresholds, then the chain.
    pub(super) curves: Vec<Curve>,
}

/// The leptons that were found.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Curve {
    /// By whom.
    pub(super) name: String,
    /// Of those on the plateau.
    pub(super) passed_above: u64,
    /// The fraction of them.
    pub(super) efficiency: Option<f64>,
    /// Its standard error.
    pub(super) efficiency_error: Option<f64>,
    /// Of those in each bin.
    pub(super) passed: Vec<u64>,
    #[serde(skip)]
    pub(super) above: PassedOf,
    #[serde(skip)]
    pub(super) bins: Vec<PassedOf>,
}

/// What level 2 asked for: means over the events that level 1 accepted.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Requests {
    /// Part of the payload bytes of an event that level 2 asked for, the mean over events.
    pub(super) mean_fraction_of_event_bytes: Option<f64>,
    /// Payload bytes asked for over payload bytes, of all events together.
    pub(super) fraction_of_all_bytes: Option<f64>,
    /// ROBs of an event that were asked for.
    pub(super) mean_robs_per_event: Option<f64>,
    /// ROBs of an event.
    pub(super) robs: u64,
    /// ROBs asked for over regions of interest that an algorithm looked at, of all events together.
    pub(super) robs_per_roi: Option<f64>,
    /// Regions of interest of an event that an algorithm looked at.
    pub(super) mean_rois_per_event: Option<f64>,
    /// How many times data were asked for.
    pub(super) mean_requests_per_event: Option<f64>,
    /// Runs of the electron and photon algorithms.
    pub(super) em_executions: u64,
    /// Runs of the muon algorithm.
    pub(super) muon_executions: u64,
    /// Runs of the jet algorithm.
    pub(super) jet_executions: u64,
    /// Events that level 2 rejected after asking for data so many times: never, once, twice ...
    pub(super) rejected_after_requests: Vec<u64>,
}
