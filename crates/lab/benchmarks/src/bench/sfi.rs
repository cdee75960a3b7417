//! `weir bench sfi`: what one event builder takes in, from few sources that do little.
//!
//! Two sizes: events of 1.5 MB, where bytes count, and events of 256 bytes, where everything else does. The sources only
//! write headers into pages that hold their data already. The reference is the bare reader of
//! [`reference`](super::reference), with the same fragments.

use serde::Serialize;

use super::BenchError;
use super::event_builder::{self, Parameters};
use super::paired::Comparison;
use crate::bench::arguments::BenchArgs;

/// Both sizes.
#[derive(Serialize)]
pub(crate) struct Found {
    /// That of the large events once more.
    #[serde(flatten)]
    main: Comparison<Parameters>,
    large: Comparison<Parameters>,
    small: Comparison<Parameters>,
}

/// Measures both, each in alternation with the reference.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let of = |bench, fragment| {
        let args = BenchArgs { sources: SOURCES, fragment, seconds: args.seconds / 2.0, ..args.clone() };
        event_builder::compare(bench, Parameters::new(&args)?)
    };
    let large = of("sfi.large", LARGE_BYTES)?;
    let small = of("sfi.small", SMALL_BYTES)?;
    Ok(Found { main: large.clone().named("sfi"), large, small })
}

impl Found {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        [&self.large, &self.small].map(Comparison::to_text).join("\n\n")
    }
}

const SOURCES: u32 = 4;
const LARGE_BYTES: u32 = 375_000;
const SMALL_BYTES: u32 = 64;
