//! `weir bench grouping`: pushing many events per transfer against one `[ATM1997 §I]`, from small fragments to large ones.
//!
//! Four sources push to two builders; every ROS and every SFI is a process of its own. Each size is measured with one group after
//! the other, and again, so that what else the machine does strikes all of them. What is ready at the same time travels
//! together in any case; a group waits until it is full, or old.

use configuration::Partition;
use dataflow::ids::Role;
use serde::Serialize;

use super::paired::median;
use super::{BenchError, sound};
use crate::cli::{BenchArgs, BenchTransport};
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
    groups: Vec<Figures>,
}

/// Medians of some runs.
#[derive(Clone, Copy, Debug, Serialize)]
struct Figures {
    /// Events that go together.
    group: u32,
    events_per_s: f64,
    cpu_us_per_event: f64,
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
    let point = |fragment_bytes| {
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            for group in GROUPS {
                runs.push(run(&parameters, fragment_bytes, group)?);
            }
        }
        let groups = GROUPS.map(|group| {
            let of_it: Vec<&Figures> = runs.iter().filter(|run| run.group == group).collect();
            Figures::median(&of_it)
        });
        let single = groups[0];
        let beside_single = |figures: Figures| Figures {
            of_single: figures.events_per_s / single.events_per_s,
            cpu_of_single: figures.cpu_us_per_event / single.cpu_us_per_event,
            ..figures
        };
        Ok::<_, BenchError>(Point { fragment_bytes, groups: groups.map(beside_single).to_vec() })
    };
    let points = FRAGMENT_BYTES.map(point).into_iter().collect::<Result<_, _>>()?;
    Ok(Found { bench: "grouping", parameters, points })
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
            for figures in groups {
                let Figures { group, events_per_s, cpu_us_per_event, messages_per_event, of_single, cpu_of_single } =
                    figures;
                text += &format!(
                    "\n{fragment_bytes:>6} B {group:>6} {events_per_s:>12.0} {of_single:>11.2} {cpu_us_per_event:>13.2} \
                     {cpu_of_single:>11.2} {messages_per_event:>15.2}"
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
            events_per_s: middle(|run| run.events_per_s),
            cpu_us_per_event: middle(|run| run.cpu_us_per_event),
            messages_per_event: middle(|run| run.messages_per_event),
            ..*of[0]
        }
    }
}

fn run(parameters: &Parameters, fragment_bytes: u32, group: u32) -> Result<Figures, BenchError> {
    let partition = Partition::parse("grouping bench", &configuration(parameters, fragment_bytes, group), &[])?;
    let in_children = |role| matches!(role, Role::Ros | Role::Sfi);
    let conducted = conduct(Run { partition, in_children, progress: None, observer: None })?;
    let events = sound(&conducted)?.built_complete as f64;
    Ok(Figures {
        group,
        events_per_s: events / conducted.duration.as_secs_f64(),
        cpu_us_per_event: conducted.cpu.as_secs_f64() / events * 1e6,
        messages_per_event: conducted.network.messages as f64 / events,
        of_single: 1.0,
        cpu_of_single: 1.0,
    })
}

fn configuration(parameters: &Parameters, fragment_bytes: u32, group: u32) -> String {
    let Parameters { transport, sources, builders, seconds, .. } = parameters;
    let page = (fragment_bytes + 256).next_multiple_of(64);
    let event = sources * (fragment_bytes + 256);
    let carriers = match transport {
        BenchTransport::Tcp => "",
        BenchTransport::Udp => "transport = { event_request = \"udp\", event_reply = \"udp\" }",
        BenchTransport::Shm => "transport.connections = \"shm\"",
    };
    format!(
        r#"
        partition.name = "bench"
        run.duration = "{milliseconds} ms"
        {carriers}
        dfm = {{ input = "self", building = "push" }}
        sfi = {{ count = {builders}, events = {events}, building = {EVENTS_HELD}, outstanding_requests = {requests}, max_event_size = "{event} B", request_timeout = "2 s" }}
        [ros]
        count = {sources}
        input = "emulator"
        fragment = {{ kind = "fixed", size = "{fragment_bytes} B" }}
        push = {{ group = {group} }}
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

const SOURCES: u32 = 4;
const BUILDERS: u32 = 2;
const FRAGMENT_BYTES: [u32; 4] = [48, 256, 1024, 9000];
const GROUPS: [u32; 4] = [1, 4, 16, 64];
/// Two of the largest groups for each builder.
const EVENTS_HELD: u32 = 128;
const RUNS: usize = 3;
