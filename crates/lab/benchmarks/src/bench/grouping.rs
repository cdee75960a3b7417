//! `weir bench grouping`: pushing many events per transfer against one `[ATM1997 §I]`, from small fragments to large ones.
//!
//! Four sources push to two builders; every ROS and every SFI is a process of its own. Each size is measured with one group after
//! the other, and again, so that what else the machine does strikes all of them. What is ready at the same time travels
//! together in any case; a group waits until it is full, or old.

use serde::Serialize;

use super::BenchError;
use super::crossing::{self, Crossed, Crossing, Fragments};
use super::paired::{Comparison, Figures, RatioOf, median};
use super::points::{Point, Points};
use crate::bench::arguments::{BenchArgs, BenchBuilding, BenchTransport};

/// All sizes with all groups; the reference of each is the size without groups, in the same rounds.
#[derive(Serialize)]
pub(crate) struct Found(Points<Parameters, Messages>);

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    transport: BenchTransport,
    sources: u32,
    builders: u32,
    fragment_bytes: u32,
    /// Events that go together.
    group: u32,
    group_age_ms: u32,
    group_of_reference: u32,
    seconds: f64,
    pairs: usize,
}

/// Those between processes; a median.
#[derive(Clone, Copy, Debug, Serialize)]
struct Messages {
    messages_per_event: f64,
}

/// Measures all sizes with all groups.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let points = FRAGMENT_BYTES.into_iter().map(|fragment_bytes| points(args, fragment_bytes));
    let points: Vec<_> = points.collect::<Result<Vec<_>, BenchError>>()?.into_iter().flatten().collect();
    Ok(Found(Points::new(points, |of| of.fragment_bytes == MAIN_BYTES && of.group == MAIN_GROUP)))
}

fn points(args: &BenchArgs, fragment_bytes: u32) -> Result<Vec<Point<Parameters, Messages>>, BenchError> {
    let of = |group| Parameters {
        transport: args.transport,
        sources: SOURCES,
        builders: BUILDERS,
        fragment_bytes,
        group,
        group_age_ms: GROUP_AGE_MS,
        group_of_reference: SINGLE,
        seconds: args.seconds / 4.0,
        pairs: PAIRS,
    };
    let mut runs = GROUPS.map(|_| Vec::new());
    for _ in 0..PAIRS {
        for (runs, group) in runs.iter_mut().zip(GROUPS) {
            runs.push(run(&of(group))?);
        }
    }
    let point = |(of_group, group): (&Vec<Crossed>, u32)| {
        let figures = |runs: &[Crossed]| runs.iter().map(|run| run.figures).collect::<Vec<Figures>>();
        let pairs: Vec<_> = figures(of_group).into_iter().zip(figures(&runs[0])).collect();
        let messages_per_event = median(of_group.iter().map(|run| run.messages_per_event));
        let comparison = Comparison::of("grouping", of(group), RatioOf::EventsPerS, &pairs);
        Point { comparison, more: Messages { messages_per_event } }
    };
    Ok(runs.iter().zip(GROUPS).map(point).collect())
}

impl Found {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let transport = self.0.iter().next().expect("there are points").comparison.parameters().transport;
        let mut text = format!(
            "{SOURCES} sources push to {BUILDERS} builders over {}\nfragment  group     events/s  of group 1        µs CPU/event  \
             of group 1  messages/event",
            transport.name()
        );
        for Point { comparison, more: Messages { messages_per_event } } in self.0.iter() {
            let (Parameters { fragment_bytes, group, .. }, compared) = (comparison.parameters(), comparison.compared());
            let Figures { events_per_s, cpu_us_per_event, .. } = compared.result();
            let (ratio, cpu_ratio) = (compared.ratio_text(), compared.cpu_ratio());
            text += &format!(
                "\n{fragment_bytes:>6} B {group:>6} {events_per_s:>12.0}  {ratio:<16} {cpu_us_per_event:>13.2} \
                 {cpu_ratio:>11.2} {messages_per_event:>15.2}"
            );
        }
        text
    }
}

fn run(parameters: &Parameters) -> Result<Crossed, BenchError> {
    let crossing = Crossing {
        sources: parameters.sources,
        links: 1,
        builders: parameters.builders,
        fragments: Fragments::Fixed(parameters.fragment_bytes),
        transport: parameters.transport,
        building: BenchBuilding::Push,
        level1: None,
        group: parameters.group,
        group_age_ms: parameters.group_age_ms,
        events_held: EVENTS_HELD,
        seconds: parameters.seconds,
        shaping: None,
    };
    crossing::run(&crossing)
}

const SOURCES: u32 = 4;
const BUILDERS: u32 = 2;
const FRAGMENT_BYTES: [u32; 4] = [48, 256, MAIN_BYTES, 9000];
const MAIN_BYTES: u32 = 1024;
const GROUPS: [u32; 4] = [SINGLE, 4, MAIN_GROUP, 64];
const SINGLE: u32 = 1;
const GROUP_AGE_MS: u32 = 1;
const MAIN_GROUP: u32 = 16;
/// Two of the largest groups for each builder.
const EVENTS_HELD: u32 = 128;
const PAIRS: usize = 3;
