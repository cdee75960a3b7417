//! How well costs agree with the live runs that they were made to agree with.

use super::super::{PREDICTION_ERROR_MAX, Spread};
use super::{CoreCount, Way};

/// What is left between the simulation of a shape and its live runs, after the costs were made to agree with all shapes.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    /// With processes of their own.
    pub(super) of: Option<(Way, CoreCount)>,
    pub(super) level2: bool,
    pub(super) fragments: u32,
    pub(super) fragment_bytes: u64,
    pub(super) live: Spread,
    pub(super) simulated_per_s: f64,
}

impl Closing {
    /// In words, with how far apart the runs were.
    pub(super) fn words(&self) -> String {
        let Self { of, level2, fragments, fragment_bytes, live, simulated_per_s } = self;
        let Spread { median, least, most, runs } = live;
        let (way, on) = match of {
            None => ("in one process", ""),
            Some((way, CoreCount::OneCore)) => (way.words(), ", on one core"),
            Some((way, CoreCount::TwoCores)) => (way.words(), ", on two cores"),
        };
        let with = if *level2 { ", level 2" } else { "" };
        format!(
            "{way}{on}{with}, {fragments} fragments of {fragment_bytes} B: {median:.0} ({least:.0} to {most:.0}, {runs} runs), \
             {simulated_per_s:.0} simulated"
        )
    }

    /// Whether what is left is more than a prediction may be off.
    pub(super) fn is_off(&self) -> bool {
        (self.simulated_per_s / self.live.median - 1.0).abs() > PREDICTION_ERROR_MAX
    }

    /// Whether runs differ so much that somebody disturbed them.
    pub(super) fn is_uneven(&self) -> bool {
        self.live.most > self.live.least * UNEVEN_MIN
    }
}

/// Runs of one shape whose cores were as far from each other differ less if nobody disturbs them.
const UNEVEN_MIN: f64 = 1.5;
