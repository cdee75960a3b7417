//! `weir bench crate`: a read-out crate and what it feeds, beside the bare machine and the paper \[DAQ1999\].
//!
//! | part | is measured | reference |
//! |---|---|---|
//! | `rob` | a ROB in one process, with its whole driver: link, read-out, TRG and EBIF ([`rob`]) | a table of pages in a loop |
//! | `control` | data control messages of a TRG to four ROBs and an EBIF, processes of their own ([`running`]) | [`ring`](super::ring): a ring for each ROB |
//! | `locate` | what an EBIF spends on an event of 1 to 16 ROBs, where they lie or by messages ([`locate`]) | one read of each fragment's head |
//! | `pair` | the crate with SFI, event handler and SFO, all processes of their own ([`running`]) | [`ring`](super::ring) with such fragments |
//!
//! Messages come in the proportions of the paper: of 101 events one is accepted (L2A), 100 are rejected (L2R) and ten are looked
//! at (ROI). Nothing is left out: fragments are read out, framed, kept, given out and cleared.

mod front;
mod locate;
mod rob;
mod running;

use std::collections::BTreeMap;

use serde::Serialize;

use super::BenchError;
use super::paired::{Comparison, Figures, RatioOf, median};
use super::points::{Point, Points};
use crate::bench::arguments::{BenchArgs, BenchCratePart, BenchIdle};

/// All parts, or the one that was asked for; the first point stands for all.
#[derive(Serialize)]
pub(crate) struct Found {
    #[serde(flatten)]
    points: Points<Parameters, More>,
    /// What locating costs by the number of ROBs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locating: Vec<locate::Line>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    part: BenchCratePart,
    robs: u32,
    fragment_bytes: u32,
    /// How the parts of the crate talk.
    transport: &'static str,
    /// Of each event, headers are written; data are at the start, and move by `tcp` alone.
    payload: &'static str,
    idle: BenchIdle,
    /// Processes of the partition, and processors that they may use.
    processes: u32,
    cores: usize,
    seconds: f64,
    pairs: usize,
}

/// What is told of a point besides.
#[derive(Clone, Debug, Serialize)]
struct More {
    /// Of the paper, for what is counted here; for `locate`, for an event.
    paper_us: [f64; 2],
    /// So many are to be reached in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    aim_per_s: Option<f64>,
    #[serde(flatten)]
    facts: Facts,
}

/// What a run tells by name, with the unit last; null where the kernel does not say.
type Facts = BTreeMap<&'static str, f64>;

/// Measures each part in alternation with its reference.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let is_wanted = |part| args.part.is_none_or(|wanted| wanted == part);
    let (mut points, mut locating) = (Vec::new(), Vec::new());
    for part in BenchCratePart::ALL.into_iter().filter(|part| is_wanted(*part)) {
        match part {
            BenchCratePart::Rob => points.push(rob::measure(args)?),
            BenchCratePart::Control => points.push(running::control(args)?),
            BenchCratePart::Locate => {
                let located = locate::measure(args)?;
                locating = locate::lines(&located);
                points.extend(located);
            }
            BenchCratePart::Pair => points.extend(running::pair(args)?),
        }
    }
    let first = points[0].comparison.parameters().part;
    Ok(Found { points: Points::new(points, |of: &Parameters| of.part == first), locating })
}

impl Parameters {
    fn new(args: &BenchArgs, part: BenchCratePart) -> Self {
        Self {
            part,
            robs: 1,
            fragment_bytes: FRAGMENT_BYTES,
            transport: "local",
            payload: "handles",
            idle: args.idle,
            processes: 1,
            cores: transport::scheduler::allowed_cpus().len(),
            seconds: args.seconds / 3.0,
            pairs: PAIRS,
        }
    }

    /// Of runs of both sides, with what ours have told.
    fn compared(
        self,
        paper_us: [f64; 2],
        aim_per_s: Option<f64>,
        runs: Vec<(Figures, Figures, Facts)>,
    ) -> Point<Parameters, More> {
        let facts = runs[0].2.keys().map(|name| (*name, median(runs.iter().map(|(.., facts)| facts[name]))));
        let more = More { paper_us, aim_per_s, facts: facts.collect() };
        let runs: Vec<_> = runs.into_iter().map(|(ours, bare, _)| (ours, bare)).collect();
        Point { comparison: Comparison::of("crate", self, RatioOf::EventsPerS, &runs), more }
    }

    fn milliseconds(&self) -> f64 {
        (self.seconds * 1e3).round().max(1.0)
    }
}

impl Found {
    /// A few lines for each point.
    pub(crate) fn to_text(&self) -> String {
        let points = self.points.iter().map(|Point { comparison, more }| {
            let Parameters { part, robs, fragment_bytes, transport, idle, processes, cores, .. } =
                comparison.parameters();
            format!(
                "{}, {robs} ROBs, {fragment_bytes} B, {transport}, {processes} processes on {cores} cores, idle {}: {}\n{}",
                part.name(),
                idle.name(),
                comparison.to_text(),
                more.to_text(comparison)
            )
        });
        points.chain(self.locating.iter().map(locate::Line::to_text)).collect::<Vec<_>>().join("\n\n")
    }
}

impl More {
    fn to_text(&self, comparison: &Comparison<Parameters>) -> String {
        let Self { paper_us: [least, most], aim_per_s, facts } = self;
        let reached = comparison.compared().result().events_per_s;
        let own_us = facts.get(locate::EVENT_NS).map_or(1e6 / reached, |ns| ns / 1e3);
        let verdict = |aim: f64| if reached >= aim { "reached" } else { "missed" };
        let aim = aim_per_s.map(|aim| format!("; the aim of {aim:.0}/s is {}", verdict(aim)));
        let facts = facts.iter().map(|(name, value)| format!("{name} {value:.*}", usize::from(*value < 1e3) * 2));
        let facts = facts.collect::<Vec<_>>().join(", ");
        format!("{own_us:.2} µs, in the paper {least:.1} to {most:.1} µs{}\n{facts}", aim.unwrap_or_default())
    }
}

const PAIRS: usize = 3;
/// Of the paper's three lengths, the one that most of its figures have.
const FRAGMENT_BYTES: u32 = 768;
/// A block of the paper's messages is of so many events.
const BLOCK_EVENTS: u64 = 101;
/// So many of them are looked at.
const BLOCK_ROIS: u64 = 10;
/// L2R that travel together.
const CLEAR_GROUP: usize = 10;
