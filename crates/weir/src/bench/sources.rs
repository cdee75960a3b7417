//! `weir bench sources`: what an event costs per source, from few sources to many, all in one process.
//!
//! Each source is a ROS with one emulated link. Messages go through queues in memory, so this is the price of the
//! protocol, the components and their driver alone; it should not depend on how many sources there are. What it depends on them
//! by the machine alone says [`spread`].

use configuration::Partition;
use serde::Serialize;

use super::BenchError;
use super::paired::median;
use super::spread::{self, Spread};
use crate::cli::BenchArgs;
use crate::conductor::{Run, conduct};

/// What was found.
#[derive(Serialize)]
pub(crate) struct Sources {
    bench: &'static str,
    parameters: Parameters,
    points: Vec<Point>,
    /// The largest cost per event and source of all points, by the smallest.
    spread: f64,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    fragment_bytes: u32,
    transport: &'static str,
    /// Of each run, over all its events and sources.
    fragments: u64,
    runs: usize,
}

/// Medians of some runs.
#[derive(Clone, Copy, Debug, Serialize)]
struct Point {
    sources: u32,
    events_per_s: f64,
    cpu_ns_per_event_and_source: f64,
    /// Of a loop that touches as much memory of fragments, see [`spread`].
    bare_ns_per_event_and_source: f64,
}

/// Measures all numbers of sources in turn, and again, so that what else the machine does strikes all of them.
pub(crate) fn measure(args: &BenchArgs) -> Result<Sources, BenchError> {
    let fragments = (FRAGMENTS_PER_S * args.seconds) as u64;
    let parameters = Parameters { fragment_bytes: FRAGMENT_BYTES, transport: "local", fragments, runs: RUNS };
    let mut runs: Vec<Vec<Point>> = NUMBERS.iter().map(|_| Vec::new()).collect();
    for _ in 0..RUNS {
        for (runs, sources) in runs.iter_mut().zip(NUMBERS) {
            runs.push(run(sources, fragments)?);
        }
    }
    let points: Vec<Point> = runs.iter().map(|runs| Point::median(runs)).collect();
    let costs = || points.iter().map(|point| point.cpu_ns_per_event_and_source);
    let spread = costs().fold(0.0, f64::max) / costs().fold(f64::INFINITY, f64::min);
    Ok(Sources { bench: "sources", parameters, points, spread })
}

impl Sources {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = "sources     events/s   ns CPU per event and source   memory alone".to_owned();
        for Point {
            sources,
            events_per_s,
            cpu_ns_per_event_and_source: cpu_ns,
            bare_ns_per_event_and_source: bare_ns,
        } in &self.points
        {
            text += &format!("\n{sources:>7} {events_per_s:>12.0} {cpu_ns:>29.1} {bare_ns:>14.1}");
        }
        text + &format!("\nlargest by smallest cost {:.2}", self.spread)
    }
}

impl Point {
    fn median(runs: &[Self]) -> Self {
        Self {
            sources: runs[0].sources,
            events_per_s: median(runs.iter().map(|run| run.events_per_s)),
            cpu_ns_per_event_and_source: median(runs.iter().map(|run| run.cpu_ns_per_event_and_source)),
            bare_ns_per_event_and_source: median(runs.iter().map(|run| run.bare_ns_per_event_and_source)),
        }
    }
}

fn run(sources: u32, fragments: u64) -> Result<Point, BenchError> {
    let partition = Partition::parse("sources bench", &configuration(sources, fragments), &[])?;
    let conducted = conduct(Run { partition, in_children: |_| false, progress: None, observer: None })?;
    let events = super::sound(&conducted)?.built_complete as f64;
    let cpu_ns = conducted.cpu_while_running.as_nanos() as f64;
    let bare_ns_per_event_and_source = spread::run(&Spread {
        sources,
        events: EVENTS_HELD,
        fragments,
        page_bytes: PAGE_BYTES,
        fragment_bytes: (FRAGMENT_BYTES + OVERHEAD_BYTES) as usize,
    });
    Ok(Point {
        sources,
        events_per_s: events / conducted.duration.as_secs_f64(),
        cpu_ns_per_event_and_source: cpu_ns / events / f64::from(sources),
        bare_ns_per_event_and_source,
    })
}

/// As many events in hand for all numbers of sources, and as many fragments in all: a run of a given time would have few
/// events of many sources, and measure how memory is touched first.
fn configuration(sources: u32, fragments: u64) -> String {
    let event = sources * (FRAGMENT_BYTES + 256);
    format!(
        r#"
        partition.name = "bench"
        run.events = {run_events}
        dfm = {{ input = "self", clear_group = {EVENTS_HELD} }}
        sfi = {{ count = 1, events = {events}, building = {EVENTS_HELD}, outstanding_requests = {requests}, max_event_size = "{event} B", request_timeout = "10 s" }}
        [ros]
        count = {sources}
        input = "emulator"
        fragment = {{ kind = "fixed", size = "{FRAGMENT_BYTES} B" }}
        page_size = "{PAGE_BYTES} B"
        pages = {pages}
        request_timeout = "10 s"
        "#,
        run_events = (fragments / u64::from(sources)).max(1),
        events = 2 * EVENTS_HELD,
        requests = EVENTS_HELD * sources,
        pages = 4 * EVENTS_HELD,
    )
}

const NUMBERS: [u32; 6] = [4, 16, 64, 256, 800, 1600];
const FRAGMENT_BYTES: u32 = 64;
/// Headers and trailer.
const OVERHEAD_BYTES: u32 = 80;
const PAGE_BYTES: usize = 256;
const EVENTS_HELD: u32 = 16;
/// What a run takes in at the pace of a slow machine, so that all runs together take some ten times as long.
const FRAGMENTS_PER_S: f64 = 320_000.0;
const RUNS: usize = 3;
