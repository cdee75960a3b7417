//! `weir bench losses`: event building by datagrams that an Ethernet carries, of which the network drops some.
//!
//! Requests, replies and clears travel in datagrams that nothing joins on their way, in a network of its own
//! ([`super::network`]) for each run. What is lost is asked for by segments, so that tries stay few. Each run is compared with one of the
//! same round in a network that drops none. A run in which an event is incomplete ends the benchmark with an error.

use serde::Serialize;

use super::BenchError;
use super::event_builder::InNetwork;
use super::network::Run;
use super::paired::{Comparison, Figures, RatioOf, median};
use super::points::{Point, Points};
use crate::bench::arguments::BenchArgs;
use crate::lossy;

/// All lengths of fragments and losses.
#[derive(Serialize)]
pub(crate) struct Found(Points<Parameters, Tries>);

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    sources: u32,
    fragment_bytes: u32,
    datagram_bytes: u32,
    dropped_percent: u32,
    seconds: f64,
    pairs: usize,
}

/// What it took to build all events; medians over the runs but for the most.
#[derive(Clone, Copy, Debug, Serialize)]
struct Tries {
    /// All that were assigned.
    complete_events: f64,
    /// Datagrams sent again because they were asked for.
    segments_repeated: f64,
    /// Messages asked for in part or whole, each as often as it was.
    asked: f64,
    /// The same by events.
    asked_per_event: f64,
    /// How often a message was asked for, plus one for its first way: in the mean, and the most of any. An ask that is itself
    /// lost counts; a request that is repeated as a whole begins a count of its own.
    tries_mean: f64,
    tries_max: f64,
    /// Requests of the event builder that it repeated as a whole.
    requests_repeated: f64,
}

/// Measures all lengths, with all losses in turn, and again.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    lossy::check().map_err(BenchError::Network)?;
    let points = FRAGMENT_BYTES.into_iter().map(|fragment_bytes| points(args, fragment_bytes));
    let points: Vec<_> = points.collect::<Result<Vec<_>, BenchError>>()?.into_iter().flatten().collect();
    let is_main = |of: &Parameters| of.dropped_percent == MAIN_PERCENT;
    Ok(Found(Points::new(points, is_main)))
}

fn points(args: &BenchArgs, fragment_bytes: u32) -> Result<Vec<Point<Parameters, Tries>>, BenchError> {
    let of = |dropped_percent| Parameters {
        sources: SOURCES,
        fragment_bytes,
        datagram_bytes: DATAGRAM_BYTES,
        dropped_percent,
        seconds: args.seconds / 2.2,
        pairs: PAIRS,
    };
    let building = InNetwork {
        sources: SOURCES,
        fragment_bytes,
        datagram_bytes: DATAGRAM_BYTES,
        asking: None,
        seconds: of(0).seconds,
    };
    let run = |percent| building.run(&lossy::network(percent));
    let round = |_| PERCENT.into_iter().map(run).collect::<Result<Vec<Run>, _>>();
    let rounds: Vec<Vec<Run>> = (0..PAIRS).map(round).collect::<Result<_, BenchError>>()?;
    let point = |(index, percent): (usize, u32)| {
        let parameters = of(percent);
        let pairs: Vec<(Figures, Figures)> =
            rounds.iter().map(|round| (building.figures(&round[index]), building.figures(&round[0]))).collect();
        let runs: Vec<Run> = rounds.iter().map(|round| round[index]).collect();
        let comparison = Comparison::of("losses", parameters, RatioOf::EventsPerS, &pairs);
        Point { comparison, more: Tries::median(&runs) }
    };
    Ok(PERCENT.into_iter().enumerate().map(point).collect())
}

impl Tries {
    fn median(of: &[Run]) -> Self {
        let middle = |value: fn(&Run) -> f64| median(of.iter().map(value));
        Self {
            complete_events: middle(|run| run.events as f64),
            segments_repeated: middle(|run| run.repeated as f64),
            asked: middle(|run| run.asked as f64),
            asked_per_event: middle(|run| run.asked as f64 / run.events as f64),
            tries_mean: middle(|run| 1.0 + run.asked as f64 / run.messages as f64),
            tries_max: of.iter().map(|run| 1.0 + run.asked_most as f64).fold(1.0, f64::max),
            requests_repeated: middle(|run| run.reasks as f64),
        }
    }
}

impl Found {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "{SOURCES} sources, datagrams of {DATAGRAM_BYTES} B; every event is complete\n\
             fragment  dropped  events/s   of none dropped     events  segments again  asked/event  tries: mean   max  requests again"
        );
        for Point { comparison, more: tries } in self.0.iter() {
            let of = comparison.parameters();
            text += &format!(
                "\n{:>6} B {:>6} % {:>10.0}  {:<17} {:>8.0} {:>15.0} {:>12.2} {:>12.3} {:>5.0} {:>15.0}",
                of.fragment_bytes,
                of.dropped_percent,
                comparison.compared().result().events_per_s,
                comparison.compared().ratio_text(),
                tries.complete_events,
                tries.segments_repeated,
                tries.asked_per_event,
                tries.tries_mean,
                tries.tries_max,
                tries.requests_repeated,
            );
        }
        text
    }
}

const SOURCES: u32 = 4;
const FRAGMENT_BYTES: [u32; 2] = [9000, 37_500];
/// What an Ethernet carries.
const DATAGRAM_BYTES: u32 = 1472;
/// The first drops none, and is the reference of all.
const PERCENT: [u32; 4] = [0, 1, MAIN_PERCENT, 30];
const MAIN_PERCENT: u32 = 10;
const PAIRS: usize = 3;
