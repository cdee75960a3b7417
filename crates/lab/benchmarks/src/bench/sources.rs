//! `weir bench sources`: what an event costs per source, from few sources to many, all in one process.
//!
//! Each source is a ROS with one emulated link. Messages go through queues in memory, so this is the price of the
//! protocol, the components and their driver alone. It should not depend on how many sources there are. [`spread`]
//! says what depends on them by the machine alone.
//!
//! There are two series. One has as many events in hand for all numbers of sources, so that many sources have many
//! fragments in hand. The other has as many *fragments* in hand for all, as many as the most sources have in the
//! first. If only the caches were too small for what is in hand, the second would be flat. Where it is not, a visit
//! of a source costs something that its fragments share.

use configuration::Partition;
use serde::Serialize;

use super::BenchError;
use super::paired::{Comparison, Figures, RatioOf, Unit};
use super::points::{Point, Points};
use super::spread::{self, Each, Spread};
use crate::bench::arguments::BenchArgs;
use partition::Run;
use terminal::conduct;

/// All numbers of sources in both series; the most, with as many events in hand as the others, stand for all.
#[derive(Serialize)]
pub(crate) struct Sources {
    #[serde(flatten)]
    points: Points<Parameters>,
    /// The largest cost per fragment of the first series, by the smallest.
    largest_by_smallest: f64,
    /// The same of the series with as many fragments in hand.
    largest_by_smallest_same_fragments: f64,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    sources: u32,
    events_in_hand: u32,
    same: InHand,
    fragment_bytes: u32,
    transport: &'static str,
    /// Of each run, over all its events and sources.
    fragments: u64,
    pairs: usize,
}

/// What there is as much of in hand for all numbers of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum InHand {
    Events,
    Fragments,
}

impl InHand {
    fn events(self, sources: u32) -> u32 {
        match self {
            Self::Events => EVENTS_HELD,
            Self::Fragments => EVENTS_HELD * MOST / sources,
        }
    }
}

/// Measures all numbers of sources in turn, and again, so that what else the machine does strikes all of them.
pub(crate) fn measure(args: &BenchArgs) -> Result<Sources, BenchError> {
    let fragments = (FRAGMENTS_PER_S * args.seconds) as u64;
    let all =
        || [InHand::Events, InHand::Fragments].into_iter().flat_map(|same| NUMBERS.map(|sources| (same, sources)));
    let mut runs: Vec<Vec<_>> = all().map(|_| Vec::new()).collect();
    for _ in 0..PAIRS {
        for (runs, (same, sources)) in runs.iter_mut().zip(all()) {
            let events = same.events(sources);
            runs.push((run(sources, events, fragments)?, bare(sources, events, fragments)));
        }
    }
    let point = |(runs, (same, sources)): (&Vec<_>, (InHand, u32))| {
        let (fragment_bytes, transport, pairs) = (FRAGMENT_BYTES, "local", PAIRS);
        let events_in_hand = same.events(sources);
        let parameters = Parameters { sources, events_in_hand, same, fragment_bytes, transport, fragments, pairs };
        Point::plain(Comparison::of("sources", parameters, RatioOf::EventsPerS, runs))
    };
    let stands_for_all = |of: &Parameters| of.sources == MOST && of.same == InHand::Events;
    let points = Points::new(runs.iter().zip(all()).map(point).collect(), stands_for_all);
    let [largest_by_smallest, largest_by_smallest_same_fragments] = [InHand::Events, InHand::Fragments].map(|same| {
        let series = || points.iter().filter(|point| point.comparison.parameters().same == same);
        let costs = || series().map(|point| point.comparison.compared().result().cpu_us_per_event);
        costs().fold(0.0, f64::max) / costs().fold(f64::INFINITY, f64::min)
    });
    Ok(Sources { points, largest_by_smallest, largest_by_smallest_same_fragments })
}

impl Sources {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        [
            self.table(InHand::Events, "as many events in hand", self.largest_by_smallest),
            self.table(InHand::Fragments, "as many fragments in hand", self.largest_by_smallest_same_fragments),
        ]
        .join("\n\n")
    }

    fn table(&self, same: InHand, title: &str, largest_by_smallest: f64) -> String {
        let mut text = format!("{title}\nsources   in hand     events/s   ns CPU per event and source   memory alone");
        for Point { comparison, .. } in self.points.iter().filter(|point| point.comparison.parameters().same == same) {
            let Parameters { sources, events_in_hand, .. } = *comparison.parameters();
            let compared = comparison.compared();
            let (ours, bare) = (compared.result(), compared.reference());
            let events_per_s = ours.events_per_s / f64::from(sources);
            let [cpu_ns, bare_ns] = [ours, bare].map(|figures| figures.cpu_us_per_event * 1e3);
            text += &format!("\n{sources:>7} {events_in_hand:>9} {events_per_s:>12.0} {cpu_ns:>29.1} {bare_ns:>14.1}");
        }
        text + &format!("\nlargest by smallest cost {largest_by_smallest:.2}")
    }
}

fn run(sources: u32, events_held: u32, fragments: u64) -> Result<Figures, BenchError> {
    let partition = Partition::parse("sources bench", &configuration(sources, events_held, fragments), &[])?;
    let conducted = conduct(Run::new(partition))?;
    let built = super::sound(&conducted)?.built_complete * u64::from(sources);
    let (seconds, cpu_seconds) = (conducted.duration.as_secs_f64(), conducted.cpu_while_running.as_secs_f64());
    Ok(Figures { unit: Unit::Fragment, ..Figures::of(built as f64, None, seconds, cpu_seconds) })
}

fn bare(sources: u32, events_held: u32, fragments: u64) -> Figures {
    let Each { seconds, cpu_seconds } = spread::run(&Spread {
        sources,
        events: events_held,
        fragments,
        page_bytes: PAGE_BYTES,
        fragment_bytes: (FRAGMENT_BYTES + OVERHEAD_BYTES) as usize,
    });
    Figures { unit: Unit::Fragment, ..Figures::of(1.0, None, seconds, cpu_seconds) }
}

/// As many fragments in all for all numbers of sources. A run of a given time would have few events of many sources,
/// and measure how memory is touched first.
fn configuration(sources: u32, events_held: u32, fragments: u64) -> String {
    let event = sources * (FRAGMENT_BYTES + 256);
    format!(
        r#"
        partition.name = "bench"
        run.events = {run_events}
        dfm = {{ input = "self", clear_group = {events_held} }}
        sfi = {{ count = 1, events = {events}, building = {events_held}, outstanding_requests = {requests}, max_event_size = "{event} B", request_timeout = "10 s" }}
        [ros]
        count = {sources}
        input = "emulator"
        fragment = {{ kind = "fixed", size = "{FRAGMENT_BYTES} B" }}
        page_size = "{PAGE_BYTES} B"
        pages = {pages}
        request_timeout = "10 s"
        "#,
        run_events = (fragments / u64::from(sources)).max(1),
        events = 2 * events_held,
        requests = events_held * sources,
        pages = 4 * events_held,
    )
}

const NUMBERS: [u32; 6] = [4, 16, 64, 256, 800, MOST];
const MOST: u32 = 1600;
const FRAGMENT_BYTES: u32 = 64;
/// Headers and trailer.
const OVERHEAD_BYTES: u32 = 80;
const PAGE_BYTES: usize = 256;
const EVENTS_HELD: u32 = 16;
/// What a run takes in at the pace of a slow machine, so that all runs together take some ten times as long.
const FRAGMENTS_PER_S: f64 = 320_000.0;
const PAIRS: usize = 3;
