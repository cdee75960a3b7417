//! `weir bench grouping`: pushing many events per transfer against one `[ATM1997 §I]`, from small fragments to large ones.
//!
//! Four sources push to two builders; every ROS and every SFI is a process of its own. Each size is measured with one group after
//! the other, and again, so that what else the machine does strikes all of them. What is ready at the same time travels
//! together in any case; a group waits until it is full, or old.

use serde::Serialize;

use super::BenchError;
use super::crossing::{self, Crossed, Crossing, Fragments};
use super::paired::{Figures, median};
use crate::cli::{BenchArgs, BenchBuilding, BenchTransport};

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
    transport: BenchTransport,
    sources: u32,
    builders: u32,
    seconds: f64,
    runs: usize,
}

/// One size of fragments.
#[derive(Clone, Debug, Serialize)]
struct Point {
    fragment_bytes: u32,
    groups: Vec<Grouped>,
}

/// Medians of some runs.
#[derive(Clone, Copy, Debug, Serialize)]
struct Grouped {
    /// Events that go together.
    group: u32,
    #[serde(flatten)]
    figures: Figures,
    /// Messages between processes.
    messages_per_event: f64,
    /// Events per second by those without groups.
    of_single: f64,
    /// The same of the processor time.
    cpu_of_single: f64,
}

/// Measures all sizes with all groups.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let seconds = args.seconds / 4.0;
    let parameters =
        Parameters { transport: args.transport, sources: SOURCES, builders: BUILDERS, seconds, runs: RUNS };
    let points = FRAGMENT_BYTES.map(|fragment_bytes| point(&parameters, fragment_bytes));
    Ok(Found { bench: "grouping", parameters, points: points.into_iter().collect::<Result<_, _>>()? })
}

fn point(parameters: &Parameters, fragment_bytes: u32) -> Result<Point, BenchError> {
    let mut runs = GROUPS.map(|_| Vec::new());
    for _ in 0..parameters.runs {
        for (runs, group) in runs.iter_mut().zip(GROUPS) {
            runs.push(run(parameters, fragment_bytes, group)?);
        }
    }
    let groups = runs.map(|runs| Grouped::median(&runs));
    let single = groups[0].figures;
    let beside_single = |grouped: Grouped| Grouped {
        of_single: grouped.figures.events_per_s / single.events_per_s,
        cpu_of_single: grouped.figures.cpu_us_per_event / single.cpu_us_per_event,
        ..grouped
    };
    Ok(Point { fragment_bytes, groups: groups.map(beside_single).to_vec() })
}

impl Found {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "{SOURCES} sources push to {BUILDERS} builders over {}\nfragment  group     events/s  of group 1  µs CPU/event  \
             of group 1  messages/event",
            self.parameters.transport.name()
        );
        for Point { fragment_bytes, groups } in &self.points {
            for Grouped { group, figures, messages_per_event, of_single, cpu_of_single } in groups {
                let Figures { events_per_s, cpu_us_per_event, .. } = figures;
                text += &format!(
                    "\n{fragment_bytes:>6} B {group:>6} {events_per_s:>12.0} {of_single:>11.2} {cpu_us_per_event:>13.2} \
                     {cpu_of_single:>11.2} {messages_per_event:>15.2}"
                );
            }
        }
        text
    }
}

impl Grouped {
    fn median(of: &[Self]) -> Self {
        let messages_per_event = median(of.iter().map(|run| run.messages_per_event));
        Self { figures: Figures::median(of.iter().map(|run| run.figures)), messages_per_event, ..of[0] }
    }
}

fn run(parameters: &Parameters, fragment_bytes: u32, group: u32) -> Result<Grouped, BenchError> {
    let &Parameters { transport, sources, builders, seconds, .. } = parameters;
    let (fragments, building, events_held) = (Fragments::Fixed(fragment_bytes), BenchBuilding::Push, EVENTS_HELD);
    let links = 1;
    let crossing = Crossing { sources, links, builders, fragments, transport, building, group, events_held, seconds };
    let Crossed { figures, messages_per_event } = crossing::run(&crossing)?;
    Ok(Grouped { group, figures, messages_per_event, of_single: 1.0, cpu_of_single: 1.0 })
}

const SOURCES: u32 = 4;
const BUILDERS: u32 = 2;
const FRAGMENT_BYTES: [u32; 4] = [48, 256, 1024, 9000];
const GROUPS: [u32; 4] = [1, 4, 16, 64];
/// Two of the largest groups for each builder.
const EVENTS_HELD: u32 = 128;
const RUNS: usize = 3;
