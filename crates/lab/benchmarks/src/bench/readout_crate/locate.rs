//! The time in which an EBIF locates the fragments of an event, for 1 to 16 ROBs \[DAQ1999 Fig. 9, 21\].
//!
//! The driver of the EBIF is metered while the ROBs, processes of their own, answer it. All is counted from the order
//! to collect an event until its fragments are together. The component handles orders and replies; requests and replies
//! pass through its connections, and are read. By messages the data come with the replies, so reading moves them, too.
//!
//! The reference reads the head of each fragment, once, where another thread has written it.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use base::ids::Role;
use configuration::Partition;
use dataflow::report::EbifCounters;
use dataflow::work_kind::WorkKind;
use driver::{Meter, Samples, Section};
use partition::{Placement, Run};
use serde::Serialize;
use terminal::conduct;
use transport::clock;
use transport::shared_memory::{SharedSlots, SlotReader};

use super::{Facts, More, Parameters};
use crate::bench::arguments::{BenchArgs, BenchCratePart};
use crate::bench::paired::{Figures, Unit};
use crate::bench::points::Point;
use crate::bench::{BenchError, sound};

/// What an event costs: so much, and so much for each ROB.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    transport: &'static str,
    event_ns: f64,
    rob_ns: f64,
    /// Of the reference, for each ROB.
    bare_rob_ns: f64,
}

pub(super) fn measure(args: &BenchArgs) -> Result<Vec<Point<Parameters, More>>, BenchError> {
    let numbers = TRANSPORTS.into_iter().flat_map(|transport| ROBS.map(|robs| (transport, robs)));
    numbers.map(|(transport, robs)| point(Parameters::of_locate(args, transport, robs))).collect()
}

/// A line through the points of each transport.
pub(super) fn lines(points: &[Point<Parameters, More>]) -> Vec<Line> {
    let line = |transport| {
        let of = points.iter().filter(|point| point.comparison.parameters().transport == transport);
        let robs = |point: &&Point<Parameters, More>| f64::from(point.comparison.parameters().robs);
        let located = of.clone().map(|point| (robs(&point), point.more.facts[EVENT_NS]));
        let bare =
            of.map(|point| (robs(&point), robs(&point) * 1e9 / point.comparison.compared().reference().events_per_s));
        let (event_ns, rob_ns) = straight(&located.collect::<Vec<_>>());
        Line { transport, event_ns, rob_ns, bare_rob_ns: straight(&bare.collect::<Vec<_>>()).1 }
    };
    TRANSPORTS.into_iter().map(line).collect()
}

impl Line {
    pub(super) fn to_text(&self) -> String {
        let Self { transport, event_ns, rob_ns, bare_rob_ns } = self;
        format!(
            "locating by {transport}: {event_ns:.0} ns for an event and {rob_ns:.0} ns for each ROB, of which a bare read takes \
             {bare_rob_ns:.1} ns; in the paper {PAPER_EVENT_US:.0} µs and {:.0} ns",
            PAPER_ROB_US * 1e3
        )
    }
}

fn point(parameters: Parameters) -> Result<Point<Parameters, More>, BenchError> {
    let robs = f64::from(parameters.robs);
    let run = |_| {
        let facts = located(&parameters)?;
        let figures =
            |event_ns: f64| Figures { unit: Unit::Fragment, ..Figures::of(robs, None, event_ns / 1e9, event_ns / 1e9) };
        Ok((figures(facts[EVENT_NS]), figures(bare_ns(parameters.robs, parameters.seconds)?), facts))
    };
    let runs = (0..parameters.pairs).map(run).collect::<Result<_, BenchError>>()?;
    Ok(parameters.compared([PAPER_EVENT_US + PAPER_ROB_US * robs; 2], None, runs))
}

/// Time of the EBIF for an event: of its component, for messages into connections and out of them, for reading and writing these.
fn located(parameters: &Parameters) -> Result<Facts, BenchError> {
    let partition = Partition::parse("crate bench", &parameters.crate_of_robs(), &[])?;
    let run = Run::new(partition).place(Placement::apart(|role| matches!(role, Role::Trg | Role::Ros)));
    let conducted = conduct(run.meter(Meter::new()))?;
    sound(&conducted)?;
    let EbifCounters { orders, requests, .. } = EbifCounters::total(conducted.reports(Role::Ebif));
    let events = (orders + requests) as f64;
    let spent = |is_of: fn(&Section) -> bool| {
        let of = conducted.metered.sections.iter().filter(|(section, _)| is_of(section));
        of.map(|(_, samples)| total_ns(samples)).sum::<f64>() / events
    };
    let component = spent(|of| matches!(of, Section::Input(Role::Ebif, _) | Section::Flush(Role::Ebif)));
    let messages = spent(|of| matches!(of, Section::Encode | Section::Decode));
    let connections = spent(|of| matches!(of, Section::Read | Section::Write));
    let replies = conducted.metered.sections.get(&Section::Input(Role::Ebif, WorkKind::EventReply));
    Ok(Facts::from([
        (EVENT_NS, component + messages + connections),
        ("component_ns", component),
        ("messages_ns", messages),
        ("connections_ns", connections),
        ("events_per_reply", events * f64::from(parameters.robs) / replies.map_or(f64::NAN, |of| of.total as f64)),
    ]))
}

/// All time of a section, of which samples are kept. What was interrupted is much longer than the others, and left out.
fn total_ns(samples: &Samples) -> f64 {
    let whole: Vec<f64> = samples.kept().map(|sample| f64::from(sample.ns)).filter(|ns| *ns < INTERRUPTED_NS).collect();
    whole.iter().sum::<f64>() / whole.len().max(1) as f64 * samples.total as f64
}

/// Time for a read of the head of each fragment.
fn bare_ns(robs: u32, seconds: f64) -> Result<f64, BenchError> {
    let failed = |error| BenchError::System { what: "memory of the bare machine", error: std::io::Error::other(error) };
    let memory = || SharedSlots::new("weir bench", SLOTS, SLOT_BYTES);
    let mut written = (0..robs).map(|_| memory()).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let map = |memory: &SharedSlots| SlotReader::map(memory, SLOTS, SLOT_BYTES);
    let read = written.iter().map(map).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    std::thread::scope(|scope| {
        let ((wish, wishes), (done, made)) = (sync_channel::<u64>(1), sync_channel::<()>(1));
        scope.spawn(move || {
            for first in wishes {
                written.iter_mut().for_each(|memory| write(memory, first));
                if done.send(()).is_err() {
                    return;
                }
            }
        });
        let (began, mut spent, mut events) = (clock::now(), Duration::ZERO, 0);
        while events == 0 || clock::now().since(began).as_secs_f64() < seconds {
            let is_made = wish.send(events).is_ok() && made.recv().is_ok();
            assert!(is_made, "the writer writes as long as it is wished");
            let before = clock::now();
            for (slot, event) in places().zip(events..) {
                let is_here = |memory: &SlotReader| memory.slot(slot)[..8] == event.to_ne_bytes();
                assert!(read.iter().all(is_here), "what is located is of the event");
            }
            spent += clock::now().since(before);
            events += SLOTS as u64;
        }
        drop(wish);
        Ok(spent.as_nanos() as f64 / events as f64)
    })
}

fn write(memory: &mut SharedSlots, first: u64) {
    for (slot, event) in places().zip(first..) {
        memory.slot_mut(slot)[..8].copy_from_slice(&event.to_ne_bytes());
    }
}

/// All slots, each far from the one before: events are in no order that a processor could foresee.
fn places() -> impl Iterator<Item = usize> {
    (0..SLOTS).map(|place| place * FAR % SLOTS)
}

/// Where the straight line nearest to the points begins, and its slope.
fn straight(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: fn((f64, f64)) -> f64| points.iter().map(|point| of((point.0 - x, point.1 - y))).sum::<f64>();
    let slope = sum(|(x, y)| x * y) / sum(|(x, _)| x * x);
    (y - slope * x, slope)
}

impl Parameters {
    fn of_locate(args: &BenchArgs, transport: &'static str, robs: u32) -> Self {
        let (seconds, processes) = (args.seconds / 15.0, robs + 2);
        Self { robs, transport, processes, seconds, ..Self::new(args, BenchCratePart::Locate) }
    }

    /// Every event is collected.
    fn crate_of_robs(&self) -> String {
        let Self { robs, transport, fragment_bytes, idle, .. } = self;
        format!(
            r#"
            partition.name = "bench"
            run.duration = "{milliseconds} ms"
            transport = {{ roc = "{transport}", idle = "{idle}" }}
            level1 = {{ in_flight = 256 }}
            roc = {{ count = 1, ros = {robs} }}
            dfm = {{ building = "push" }}
            sfi = {{ count = 1, request_timeout = "60 s", max_event_size = "64 kB" }}
            [ros]
            count = {robs}
            pages = 2048
            page_size = "1536 B"
            request_timeout = "60 s"
            fragment = {{ kind = "fixed", size = "{fragment_bytes} B" }}
            "#,
            milliseconds = self.milliseconds(),
            idle = idle.name(),
        )
    }
}

/// What locating the fragments of an event takes.
pub(super) const EVENT_NS: &str = "event_ns";
const TRANSPORTS: [&str; 2] = ["shm", "tcp"];
const ROBS: [u32; 5] = [1, 2, 4, 8, 16];
/// Of the paper's SFI, which locates fragments likewise; the page with the figure of its EBIF is missing.
const PAPER_EVENT_US: f64 = 11.0;
const PAPER_ROB_US: f64 = 0.5;
/// Longer than any section of these runs, shorter than what the kernel gives to others.
const INTERRUPTED_NS: f64 = 500_000.0;
const SLOTS: usize = 256;
const SLOT_BYTES: usize = 64;
const FAR: usize = 97;

#[cfg(test)]
mod tests {
    use super::straight;

    #[test]
    fn a_line_is_what_its_points_say() {
        let (begin, slope) = straight(&[(1.0, 12.0), (2.0, 14.0), (4.0, 18.0)]);
        assert!((begin - 10.0).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9, "{begin}, {slope}");
    }
}
