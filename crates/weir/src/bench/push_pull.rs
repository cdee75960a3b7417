//! `weir bench push-pull`: eight sources and eight builders, building by requests and by pushing, from small fragments to
//! large ones.
//!
//! Every ROS and every SFI is a process of its own. Each size is measured with one kind of building after the other, and
//! again, so that what else the machine does strikes all of them; the table says how far each is from the best.

use configuration::Partition;
use dataflow::ids::Role;
use serde::Serialize;

use super::paired::median;
use super::{BenchError, sound};
use crate::cli::{BenchArgs, BenchBuilding};
use crate::conductor::{Run, conduct};

/// What was found.
#[derive(Serialize)]
pub(crate) struct Found {
    bench: &'static str,
    parameters: Parameters,
    points: Vec<Point>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    transport: &'static str,
    sources: u32,
    builders: u32,
    seconds: f64,
    runs: usize,
}

/// One size of fragments.
#[derive(Clone, Debug, Serialize)]
struct Point {
    fragment_bytes: u32,
    buildings: Vec<Figures>,
}

/// Medians of some runs.
#[derive(Clone, Copy, Debug, Serialize)]
struct Figures {
    building: BenchBuilding,
    events_per_s: f64,
    bytes_per_s: f64,
    cpu_us_per_event: f64,
    /// Events per second by those of the best kind of building.
    of_best: f64,
}

/// Measures all sizes with the kinds of building that are asked for, or all that there are.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let kinds = args.building.map_or(BenchBuilding::ALL.to_vec(), |building| vec![building]);
    let seconds = args.seconds / 2.0;
    let parameters = Parameters { transport: "tcp", sources: SIDE, builders: SIDE, seconds, runs: RUNS };
    let point = |fragment_bytes| {
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            for &building in &kinds {
                runs.push(run(&parameters, fragment_bytes, building)?);
            }
        }
        let buildings = kinds.iter().map(|building| {
            let of_it: Vec<&Figures> = runs.iter().filter(|run| run.building == *building).collect();
            Figures::median(&of_it)
        });
        let mut buildings: Vec<Figures> = buildings.collect();
        let best = buildings.iter().map(|figures| figures.events_per_s).fold(0.0, f64::max);
        buildings.iter_mut().for_each(|figures| figures.of_best = figures.events_per_s / best);
        Ok::<_, BenchError>(Point { fragment_bytes, buildings })
    };
    let points = FRAGMENT_BYTES.map(point).into_iter().collect::<Result<_, _>>()?;
    Ok(Found { bench: "push-pull", parameters, points })
}

impl Found {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "{SIDE} sources, {SIDE} builders\nfragment  building     events/s     GB/s  µs CPU/event  of the best"
        );
        for Point { fragment_bytes, buildings } in &self.points {
            for Figures { building, events_per_s, bytes_per_s, cpu_us_per_event, of_best } in buildings {
                text += &format!(
                    "\n{fragment_bytes:>6} B  {:<8} {events_per_s:>12.0} {:>8.3} {cpu_us_per_event:>13.2} {of_best:>12.2}",
                    building.name(),
                    bytes_per_s / 1e9
                );
            }
        }
        text
    }
}

impl Figures {
    fn median(of: &[&Self]) -> Self {
        let middle = |value: fn(&Self) -> f64| median(of.iter().map(|run| value(run)));
        Self {
            building: of[0].building,
            events_per_s: middle(|run| run.events_per_s),
            bytes_per_s: middle(|run| run.bytes_per_s),
            cpu_us_per_event: middle(|run| run.cpu_us_per_event),
            of_best: 1.0,
        }
    }
}

fn run(parameters: &Parameters, fragment_bytes: u32, building: BenchBuilding) -> Result<Figures, BenchError> {
    let partition = Partition::parse("push-pull bench", &configuration(parameters, fragment_bytes, building), &[])?;
    let in_children = |role| matches!(role, Role::Ros | Role::Sfi);
    let conducted = conduct(Run { partition, in_children, progress: None, observer: None })?;
    let events = sound(&conducted)?.built_complete as f64;
    let seconds = conducted.duration.as_secs_f64();
    Ok(Figures {
        building,
        events_per_s: events / seconds,
        bytes_per_s: events / seconds * f64::from(fragment_bytes) * f64::from(parameters.sources),
        cpu_us_per_event: conducted.cpu.as_secs_f64() / events * 1e6,
        of_best: 1.0,
    })
}

fn configuration(parameters: &Parameters, fragment_bytes: u32, building: BenchBuilding) -> String {
    let Parameters { sources, builders, seconds, .. } = parameters;
    let page = (fragment_bytes + 256).next_multiple_of(64);
    let event = sources * (fragment_bytes + 256);
    let kind = match building {
        BenchBuilding::Pull => String::new(),
        BenchBuilding::Push => format!(", building = \"{}\"", building.name()),
    };
    format!(
        r#"
        partition.name = "bench"
        run.duration = "{milliseconds} ms"
        dfm = {{ input = "self"{kind} }}
        sfi = {{ count = {builders}, events = {events}, building = {EVENTS_HELD}, outstanding_requests = {requests}, max_event_size = "{event} B", request_timeout = "2 s" }}
        [ros]
        count = {sources}
        input = "emulator"
        fragment = {{ kind = "fixed", size = "{fragment_bytes} B" }}
        page_size = "{page} B"
        pages = {pages}
        request_timeout = "2 s"
        "#,
        milliseconds = (seconds * 1e3).round().max(1.0),
        events = 2 * EVENTS_HELD,
        requests = sources * EVENTS_HELD,
        pages = 8 * builders * EVENTS_HELD,
    )
}

const SIDE: u32 = 8;
const FRAGMENT_BYTES: [u32; 6] = [48, 256, 1024, 4096, 16_384, 65_536];
const EVENTS_HELD: u32 = 16;
const RUNS: usize = 2;
