//! `weir bench losses`: event building by datagrams that an Ethernet carries, of which the network drops some.
//!
//! Requests, replies and clears travel in datagrams that nothing joins on their way, in a network of its own
//! ([`crate::lossy`]) for each run. What is lost is asked for by segments, so that tries stay few. Each run is compared with one of the
//! same round in a network that drops none. A run in which an event is incomplete ends the benchmark with an error.

use std::io::{self, Read};
use std::process::{Child, Stdio};

use dataflow::ids::Role;
use dataflow::report::SfiCounters;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::event_builder::{self, Parameters as Building};
use super::paired::{Comparison, Figures, RatioOf, median};
use super::points::{Point, Points};
use super::reference::Sources;
use super::{BenchError, sound};
use crate::cli::BenchArgs;
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

/// What a run in one network came to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Run {
    events: u64,
    seconds: f64,
    cpu_seconds: f64,
    messages: u64,
    asked: u64,
    asked_most: u64,
    repeated: u64,
    reasks: u64,
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
    let round = |_| PERCENT.into_iter().map(|percent| run(&of(percent))).collect::<Result<Vec<Run>, _>>();
    let rounds: Vec<Vec<Run>> = (0..PAIRS).map(round).collect::<Result<_, BenchError>>()?;
    let point = |(index, percent): (usize, u32)| {
        let parameters = of(percent);
        let pairs: Vec<(Figures, Figures)> =
            rounds.iter().map(|round| (round[index].figures(&parameters), round[0].figures(&parameters))).collect();
        let runs: Vec<Run> = rounds.iter().map(|round| round[index]).collect();
        let comparison = Comparison::of("losses", parameters, RatioOf::EventsPerS, &pairs);
        Point { comparison, more: Tries::median(&runs) }
    };
    Ok(PERCENT.into_iter().enumerate().map(point).collect())
}

/// Starts it in a network of its own. However this process ends, so does that one, and with it the network.
fn run(parameters: &Parameters) -> Result<Run, BenchError> {
    let failed = |error| BenchError::System { what: "event building in a network of its own", error };
    let mut child = Sources(vec![spawn(parameters).map_err(failed)?]);
    let mut said = String::new();
    let mut output = child.0[0].stdout.take().expect("the standard output of the child is a pipe");
    output.read_to_string(&mut said).map_err(failed)?;
    serde_json::from_str(&said).map_err(|_| failed(io::Error::other("it ended without a result")))
}

fn spawn(parameters: &Parameters) -> io::Result<Child> {
    let &Parameters { sources, fragment_bytes, datagram_bytes, dropped_percent, seconds, .. } = parameters;
    lossy::losing(dropped_percent, std::env::current_exe()?.as_os_str())
        .args(["bench-part", "losing", &std::process::id().to_string()])
        .args([sources, fragment_bytes, datagram_bytes].map(|number| number.to_string()))
        .arg(seconds.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
}

/// The process in the network: builds, and says in JSON what it came to.
pub(super) fn losing_main(
    parent: u32,
    (sources, fragment_bytes, datagram_bytes): (u32, u32, u32),
    seconds: f64,
) -> Result<String, BenchError> {
    let failed = |error| BenchError::System { what: "the end of the parent process", error };
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(|errno| failed(errno.into()))?;
    // One that ended before sends no signal any more.
    if std::os::unix::process::parent_id() != parent {
        return Err(failed(io::Error::other("it has ended already")));
    }
    let building = Building::of_datagrams(sources, fragment_bytes, datagram_bytes, seconds);
    let (_, conducted) = event_builder::conduct_building(&building)?;
    let datagrams = conducted.network.datagrams;
    let run = Run {
        events: sound(&conducted)?.built_complete,
        seconds: conducted.duration.as_secs_f64(),
        cpu_seconds: conducted.cpu.as_secs_f64(),
        messages: conducted.network.messages,
        asked: datagrams.asked,
        asked_most: datagrams.asked_most,
        repeated: datagrams.repeated,
        reasks: SfiCounters::total(conducted.reports(Role::Sfi)).reasks,
    };
    Ok(super::to_json(&run))
}

impl Run {
    fn figures(&self, parameters: &Parameters) -> Figures {
        let bytes = f64::from(parameters.sources) * f64::from(parameters.fragment_bytes);
        Figures::of(self.events as f64, Some(bytes), self.seconds, self.cpu_seconds)
    }
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
