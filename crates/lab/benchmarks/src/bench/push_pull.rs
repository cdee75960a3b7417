//! `weir bench push-pull`: eight sources and eight builders, building by requests and by pushing, from small fragments to
//! large ones, whose lengths vary by 30 % `[ATM1997 §IV]`.
//!
//! Every ROS and every SFI is a process of its own. Each mean is measured in rounds of all kinds of building. Each
//! round begins with the next kind, so that other work of the machine strikes all of them. The reference of each is the
//! best of its size, in the same rounds.
//!
//! Where data are pushed by number, level 1 tells every ROS of every event. A builder gets as many in a row as it
//! builds at a time, and none waits for another. In the other kinds the DFM triggers itself.

use serde::Serialize;

use super::BenchError;
use super::crossing::{self, Crossing, Fragments, Triggers};
use super::paired::{Comparison, Figures, RatioOf, median};
use super::points::{Point, Points};
use crate::bench::arguments::{BenchArgs, BenchBuilding, BenchTransport};

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Parameters {
    transport: BenchTransport,
    sources: u32,
    builders: u32,
    /// Of the lengths of fragments.
    mean_bytes: u32,
    building: BenchBuilding,
    /// The best of this size.
    reference: BenchBuilding,
    level1: Option<Triggers>,
    group: u32,
    group_age_ms: u32,
    events_held: u32,
    seconds: f64,
    pairs: usize,
}

/// Measures all sizes with the kinds of building that are asked for, or all that there are.
pub(super) fn measure(args: &BenchArgs) -> Result<Points<Parameters>, BenchError> {
    let kinds = args.building.map_or(BenchBuilding::ALL.to_vec(), |building| vec![building]);
    let points = FRAGMENT_BYTES.into_iter().map(|mean_bytes| points(mean_bytes, args.seconds / 10.0, &kinds));
    let points: Vec<_> = points.collect::<Result<Vec<_>, BenchError>>()?.into_iter().flatten().collect();
    Ok(Points::new(points, |of| of.mean_bytes == MAIN_BYTES))
}

fn points(mean_bytes: u32, seconds: f64, kinds: &[BenchBuilding]) -> Result<Vec<Point<Parameters>>, BenchError> {
    let of = |building, reference| Parameters {
        transport: BenchTransport::Tcp,
        sources: SIDE,
        builders: SIDE,
        mean_bytes,
        building,
        reference,
        level1: level1(building),
        group: group(building),
        group_age_ms: 0,
        events_held: EVENTS_HELD,
        seconds,
        pairs: PAIRS,
    };
    let mut runs = vec![Vec::new(); kinds.len()];
    for round in 0..PAIRS {
        for kind in (0..kinds.len()).map(|turn| (round + turn) % kinds.len()) {
            runs[kind].push(run(&of(kinds[kind], kinds[kind]))?);
        }
    }
    let rate = |runs: &[Figures]| median(runs.iter().map(|run| run.events_per_s));
    let best = runs.iter().zip(kinds).max_by(|(one, _), (other, _)| rate(one).total_cmp(&rate(other)));
    let (best_runs, &best) = best.expect("there are kinds of building");
    let point = |(runs, &building): (&Vec<Figures>, &BenchBuilding)| {
        let pairs: Vec<(Figures, Figures)> = runs.iter().copied().zip(best_runs.iter().copied()).collect();
        Point::plain(Comparison::of("push-pull", of(building, best), RatioOf::EventsPerS, &pairs))
    };
    Ok(runs.iter().zip(kinds).map(point).collect())
}

impl Points<Parameters> {
    /// A table for people.
    pub(super) fn to_text(&self) -> String {
        let mut text = format!(
            "{SIDE} sources, {SIDE} builders\nmean      building           events/s     GB/s  µs CPU/event  of the best"
        );
        for Point { comparison, .. } in self.iter() {
            let Figures { events_per_s, bytes_per_s, cpu_us_per_event, .. } = comparison.compared().result();
            let Parameters { mean_bytes, building, .. } = comparison.parameters();
            text += &format!(
                "\n{mean_bytes:>6} B  {:<14} {events_per_s:>12.0} {:>8.3} {cpu_us_per_event:>13.2}  {}",
                building.name(),
                bytes_per_s.unwrap_or(f64::NAN) / 1e9,
                comparison.compared().ratio_text(),
            );
        }
        text
    }
}

fn run(parameters: &Parameters) -> Result<Figures, BenchError> {
    let crossing = Crossing {
        sources: parameters.sources,
        links: 1,
        builders: parameters.builders,
        fragments: Fragments::Gaussian(parameters.mean_bytes),
        transport: parameters.transport,
        building: parameters.building,
        level1: parameters.level1,
        group: parameters.group,
        group_age_ms: parameters.group_age_ms,
        events_held: parameters.events_held,
        seconds: parameters.seconds,
        shaping: None,
    };
    crossing::run(&crossing).map(|crossed| crossed.figures)
}

/// By number, read-out systems learn from level 1 which events there are; else nobody needs to tell them. What waits for its
/// builder is in memory already: half as much again as is in building.
fn level1(building: BenchBuilding) -> Option<Triggers> {
    let triggers = Triggers { in_flight: SIDE * EVENTS_HELD / 2, rois_per_event: 0, queue: 1 };
    (building == BenchBuilding::PushByNumber).then_some(triggers)
}

/// By number, as many events in a row go to a builder as it is given at once where it has credits for them. The DFM assigns event
/// by event, and what it assigns at the same time travels together in any case.
fn group(building: BenchBuilding) -> u32 {
    match building {
        BenchBuilding::Pull | BenchBuilding::Push => 1,
        BenchBuilding::PushByNumber => EVENTS_HELD,
    }
}

const SIDE: u32 = 8;
const FRAGMENT_BYTES: [u32; 6] = [48, 256, MAIN_BYTES, 4096, 16_384, 65_536];
const MAIN_BYTES: u32 = 1024;
const EVENTS_HELD: u32 = 16;
const PAIRS: usize = 5;
