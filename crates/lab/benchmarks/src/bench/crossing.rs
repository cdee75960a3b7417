//! Building in which every source sends to every builder, each a process of its own. The benchmarks of shaping run
//! it with different settings.

use base::ids::Role;
use configuration::Partition;
use dataflow::building::EVENT_BYTES;
use dataflow::report::RosCounters;
use serde::Serialize;

use super::paired::Figures;
use super::{BenchError, sound};
use crate::bench::arguments::{BenchBuilding, BenchIdle, BenchTransport};
use partition::{Placement, Run};
use terminal::conduct;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    pub(super) sources: u32,
    /// Of each source.
    pub(super) links: u32,
    pub(super) builders: u32,
    pub(super) fragments: Fragments,
    pub(super) transport: BenchTransport,
    pub(super) building: BenchBuilding,
    /// Level 1, where it triggers; else the DFM triggers itself.
    pub(super) level1: Option<Triggers>,
    /// Events of a builder that a source pushes together, at most.
    pub(super) group: u32,
    /// How long the first of them may wait for the others.
    pub(super) group_age_ms: u32,
    /// Events in building at a time, at each builder.
    pub(super) events_held: u32,
    pub(super) seconds: f64,
    pub(super) shaping: Option<Shaping>,
}

/// Sources that share the link of a builder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaping {
    /// Of that link, in bytes per second.
    pub(super) link: u64,
    /// What all processes do while there is nothing to do.
    pub(super) idle: BenchIdle,
}

/// How level 1 triggers.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Triggers {
    /// Triggers that a read-out system may have before it.
    pub(super) in_flight: u32,
    pub(super) rois_per_event: u32,
    /// Accepted events that wait in the DFM for a builder, at most.
    pub(super) queue: u32,
}

/// Lengths of fragments, in bytes of data.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fragments {
    Fixed(u32),
    /// As long, and written for every event.
    Written(u32),
    /// With a standard deviation of 30 % of this mean `[ATM1997 §IV]`.
    Gaussian(u32),
}

/// What came of it.
pub(super) struct Crossed {
    pub(super) figures: Figures,
    pub(super) messages_per_event: f64,
    /// What sources sent of each event, as rate division counts it.
    pub(super) link_bytes_per_event: f64,
}

/// Runs it.
pub(super) fn run(crossing: &Crossing) -> Result<Crossed, BenchError> {
    let partition = Partition::parse("bench", &crossing.configuration(), &[])?;
    let in_children = |role| matches!(role, Role::Ros | Role::Sfi);
    let conducted = conduct(Run::new(partition).place(Placement::apart(in_children)))?;
    let events = sound(&conducted)?.built_complete as f64;
    let bytes = f64::from(crossing.fragments.mean()) * f64::from(crossing.sources * crossing.links);
    let ros = RosCounters::total(conducted.reports(Role::Ros));
    let (seconds, cpu_seconds) = (conducted.duration.as_secs_f64(), conducted.cpu.as_secs_f64());
    Ok(Crossed {
        figures: Figures::of(events, Some(bytes), seconds, cpu_seconds),
        messages_per_event: conducted.network.messages as f64 / events,
        link_bytes_per_event: (ros.bytes_out + ros.pushed * EVENT_BYTES) as f64 / events,
    })
}

impl Crossing {
    fn configuration(&self) -> String {
        let Self { sources, links, builders, fragments, transport, building, level1, group, group_age_ms, .. } = self;
        let Self { events_held, seconds, shaping, .. } = self;
        let fragment_max = fragments.longest() + OVERHEAD_BYTES;
        let carriers = transport.keys(&["event_request", "event_reply"]);
        let triggers = match level1 {
            None => "dfm.input = \"self\"".to_owned(),
            Some(Triggers { in_flight, rois_per_event, queue }) => format!(
                "level1 = {{ in_flight = {in_flight}, rois_per_event = {rois_per_event} }}\n\
                 dfm.input = \"level1\"\ndfm.queue = {queue}"
            ),
        };
        let [link, idle] = shaping.map_or([String::new(), String::new()], |Shaping { link, idle }| {
            [format!(", link_per_second = \"{link} B\""), format!("transport.idle = \"{}\"", idle.name())]
        });
        let push = match building {
            BenchBuilding::Pull => String::new(),
            BenchBuilding::Push | BenchBuilding::PushByNumber => {
                format!("push = {{ group = {group}, group_age = \"{group_age_ms} ms\"{link} }}")
            }
        };
        format!(
            r#"
            partition.name = "bench"
            run.duration = "{milliseconds} ms"
            {carriers}
            {idle}
            {triggers}
            dfm.building = "{building}"
            sfi = {{ count = {builders}, events = {events}, building = {events_held}, outstanding_requests = {requests}, max_event_size = "{event} B", request_timeout = "2 s" }}
            [ros]
            count = {sources}
            robs = {links}
            input = "emulator"
            fragment = {fragment}
            {push}
            page_size = "{page} B"
            pages = {pages}
            request_timeout = "2 s"
            "#,
            milliseconds = (seconds * 1e3).round().max(1.0),
            building = building.name(),
            events = 2 * events_held,
            requests = sources * events_held,
            event = sources * links * fragment_max,
            fragment = fragments.configuration(),
            page = fragment_max.next_multiple_of(64),
            pages = 8 * builders * events_held,
        )
    }
}

impl Fragments {
    pub(super) fn mean(self) -> u32 {
        match self {
            Self::Fixed(bytes) | Self::Written(bytes) | Self::Gaussian(bytes) => bytes,
        }
    }

    fn longest(self) -> u32 {
        match self {
            Self::Fixed(bytes) | Self::Written(bytes) => bytes,
            Self::Gaussian(mean) => mean + SIGMAS_MAX * deviation(mean),
        }
    }

    fn configuration(self) -> String {
        match self {
            Self::Fixed(bytes) => format!("{{ kind = \"fixed\", size = \"{bytes} B\" }}"),
            Self::Written(bytes) => format!("{{ kind = \"fixed\", size = \"{bytes} B\", payload = \"written\" }}"),
            Self::Gaussian(mean) => {
                format!("{{ kind = \"gaussian\", mean = \"{mean} B\", sigma = \"{} B\" }}", deviation(mean))
            }
        }
    }
}

fn deviation(mean: u32) -> u32 {
    mean * 3 / 10
}

/// Headers and trailers, and what rounds a fragment up to words.
const OVERHEAD_BYTES: u32 = 256;
/// Above the mean; longer ones are not made.
const SIGMAS_MAX: u32 = 6;
