//! `weir bench event-builder`: source processes, one building process, the complete protocol.
//!
//! Each source is a ROS with one emulated link; the building process holds the DFM, which triggers itself, and one SFI.
//! Nothing is left out: assignment, requests, replies, end of event, clears, accounting, a check of every ROB and ROD
//! header. The reference is the bare machine with the same payload:
//!
//! | transport | reference |
//! |---|---|
//! | `tcp` | [`reference`]: plain writes and reads, fragment by fragment |
//! | `udp` | [`datagrams`]: `sendmmsg` and `recvmmsg`, datagrams of the same length; once with as many fragments in each as it holds (GSO, GRO), once with each fragment in datagrams of its own |
//! | `shm` | [`ring`]: a ring of slots for each source |
//!
//! By UDP requests and replies travel in datagrams, and clears by multicast. With `--window` the result is building with
//! acknowledged datagrams, and the reference the same without acknowledgements: what a transport protocol costs, as in
//! `[ATM1997 §III]`.

use base::ids::Role;
use configuration::{Partition, RequestCredits};
use serde::Serialize;

use super::datagrams::{self, Datagrams};
use super::paired::{Comparison, Figures, RatioOf};
use super::reference::{self, Measurement};
use super::ring::{self, Ring};
use super::{BenchError, touch};
use crate::bench::arguments::{BenchArgs, BenchPayload, BenchSide, BenchTransport};
use partition::{Outcome, Placement, Run};
use terminal::conduct;

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Parameters {
    sources: u32,
    fragment_bytes: u32,
    transport: BenchTransport,
    payload: BenchPayload,
    #[serde(skip_serializing_if = "Option::is_none")]
    datagram_bytes: Option<u32>,
    /// Whether the kernel may cut and join datagrams.
    #[serde(skip)]
    offload: bool,
    /// Whether each fragment has a datagram of its own in the reference.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    single: bool,
    /// The window of acknowledged datagrams.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_bytes: Option<u32>,
    /// As many requests as there is room for, if nothing else.
    #[serde(skip)]
    asking: Option<Asking>,
    seconds: f64,
    pairs: usize,
}

/// What is built in a network of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InNetwork {
    pub(crate) sources: u32,
    pub(crate) fragment_bytes: u32,
    pub(crate) datagram_bytes: u32,
    /// As many requests as the buffers hold, if nothing else.
    pub(crate) asking: Option<Asking>,
    pub(crate) seconds: f64,
}

/// How many requests the builder has on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Asking {
    pub(crate) credits: RequestCredits,
    pub(crate) outstanding_requests: u32,
}

/// Both sides, or the one that was asked for.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Found {
    /// In alternation.
    Both(Comparison<Parameters>),
    /// In alternation, with two references.
    Datagrams {
        #[serde(flatten)]
        grouped: Comparison<Parameters>,
        /// Each fragment has a datagram of its own in the reference.
        single: Box<Comparison<Parameters>>,
    },
    /// One run of one side: to be compared with something else.
    One { bench: &'static str, parameters: Parameters, side: BenchSide, figures: Figures },
}

/// Measures in alternation with the reference.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let parameters = Parameters::new(args)?;
    let bench = "event-builder";
    match args.only {
        Some(side) => {
            let run = if side == BenchSide::Result { build } else { bare };
            Ok(Found::One { bench, parameters, side, figures: run(&parameters)? })
        }
        None if parameters.transport == BenchTransport::Udp && !parameters.single && args.window.is_none() => {
            compare_datagrams(bench, parameters)
        }
        None => compare(bench, parameters).map(Found::Both),
    }
}

/// Measures in alternation with both bare machines, each for less time.
fn compare_datagrams(bench: &'static str, parameters: Parameters) -> Result<Found, BenchError> {
    let grouped = Parameters { seconds: parameters.seconds * 2.0 / 3.0, ..parameters };
    let single = Parameters { single: true, ..grouped };
    let (mut by_grouped, mut by_single) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let result = build(&grouped)?;
        by_grouped.push((result, bare(&grouped)?));
        by_single.push((result, bare(&single)?));
    }
    let compared = |parameters, runs| Comparison::of(bench, parameters, RatioOf::EventsPerS, runs);
    Ok(Found::Datagrams { grouped: compared(grouped, &by_grouped), single: Box::new(compared(single, &by_single)) })
}

/// Measures in alternation with the reference.
pub(super) fn compare(bench: &'static str, parameters: Parameters) -> Result<Comparison<Parameters>, BenchError> {
    let pairs = (PAIRS, RatioOf::EventsPerS);
    let plain = Parameters { window_bytes: None, ..parameters };
    let reference = || if parameters.window_bytes.is_some() { build(&plain) } else { bare(&parameters) };
    Comparison::measure(bench, parameters, pairs, || build(&parameters), reference)
}

impl Found {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Both(comparison) if comparison.parameters().window_bytes.is_some() => {
                comparison.to_text_as(["window", "none"])
            }
            Self::Both(comparison) => comparison.to_text(),
            Self::Datagrams { grouped, single } => {
                let (grouped, single) =
                    (grouped.to_text_as(["weir", "grouped"]), single.to_text_as(["weir", "single"]));
                format!("Beside {GROUPED}:\n{grouped}\n\nBeside {SINGLE}:\n{single}")
            }
            Self::One { bench, side, figures, .. } => format!("{bench}\n{}", figures.to_line(side.name())),
        }
    }
}

fn build(parameters: &Parameters) -> Result<Figures, BenchError> {
    conduct_building(parameters).map(|(figures, _)| figures)
}

/// Builds, all of whose events must be complete.
pub(super) fn conduct_building(parameters: &Parameters) -> Result<(Figures, Outcome), BenchError> {
    let partition = Partition::parse("event-builder bench", &configuration(parameters), &[])?;
    let in_children = |role| role == Role::Ros;
    let conducted = conduct(Run::new(partition).place(Placement::apart(in_children)))?;
    let account = super::sound(&conducted)?;
    if parameters.payload == BenchPayload::Touched {
        let each = touch::expected(parameters.fragment_bytes);
        let sum = conducted.network.data_sum;
        let fragments = account.built_complete * u64::from(parameters.sources);
        if sum < each * fragments {
            return Err(BenchError::Data { sum, each, fragments });
        }
    }
    let events = account.built_complete as f64;
    let figures = parameters.figures(events, conducted.duration.as_secs_f64(), conducted.cpu.as_secs_f64());
    Ok((figures, conducted))
}

fn bare(parameters: &Parameters) -> Result<Figures, BenchError> {
    let Parameters { sources, fragment_bytes, seconds, .. } = *parameters;
    let touched = parameters.payload == BenchPayload::Touched;
    let measured = match parameters.transport {
        BenchTransport::Tcp => {
            let (batch, events_held) = (1, events_held_tcp(fragment_bytes));
            let bare = reference::Parameters {
                sources,
                fragment_bytes,
                seconds,
                batch,
                events_held,
                written: touched,
                summed: touched,
            };
            reference::run(&bare, reference::spawn_source)
        }
        BenchTransport::Udp => {
            let datagram_bytes = parameters.datagram_bytes.expect("UDP has datagrams");
            // With more under way it is slower.
            let events_held = EVENTS_HELD;
            let grouped = !parameters.single;
            let bare = Datagrams { sources, fragment_bytes, datagram_bytes, grouped, touched, events_held, seconds };
            datagrams::run(&bare)
        }
        BenchTransport::Shm => {
            ring::run(&Ring { sources, fragment_bytes, written: touched, summed: touched, slots: EVENTS_HELD, seconds })
        }
    };
    let Measurement { events, seconds, cpu_seconds, bad } = measured?;
    if bad > 0 {
        return Err(BenchError::Reference(reference::ReferenceError::Bad { bad }));
    }
    Ok(parameters.figures(events as f64, seconds, cpu_seconds))
}

/// Event buffers of the bare machine over TCP, at most as many as there are events in building. The fewer, the more of
/// them stay in the cache.
pub(super) fn events_held_tcp(fragment_bytes: u32) -> u32 {
    EVENTS_HELD.min(in_window(fragment_bytes, BUILDING_MIN))
}

fn in_window(fragment_bytes: u32, least: u32) -> u32 {
    (WINDOW_BYTES / fragment_bytes.max(1)).clamp(least, BUILDING_MAX)
}

impl Parameters {
    /// Building by datagrams that nothing cuts or joins.
    pub(super) fn in_network(building: &InNetwork) -> Self {
        Self {
            sources: building.sources,
            fragment_bytes: building.fragment_bytes,
            transport: BenchTransport::Udp,
            payload: BenchPayload::Plain,
            datagram_bytes: Some(building.datagram_bytes),
            offload: false,
            single: false,
            window_bytes: None,
            asking: building.asking,
            seconds: building.seconds,
            pairs: 0,
        }
    }

    /// Of fragments and of datagrams, in bytes.
    pub(super) fn lengths(&self) -> (u32, u32) {
        (self.fragment_bytes, self.datagram_bytes.unwrap_or(0))
    }

    pub(super) fn new(args: &BenchArgs) -> Result<Self, BenchError> {
        let transport = args.transport;
        let moves_bytes = transport != BenchTransport::Shm;
        let payload = args.payload.unwrap_or(if moves_bytes { BenchPayload::Plain } else { BenchPayload::Handles });
        if moves_bytes == (payload == BenchPayload::Handles) && payload != BenchPayload::Touched {
            return Err(BenchError::Payload { transport: transport.name(), payload: payload.name() });
        }
        Ok(Self {
            sources: args.sources,
            fragment_bytes: args.fragment,
            transport,
            payload,
            datagram_bytes: (transport == BenchTransport::Udp).then_some(args.datagram),
            offload: true,
            single: transport == BenchTransport::Udp && args.single,
            window_bytes: args.window.filter(|_| transport == BenchTransport::Udp),
            asking: None,
            seconds: args.seconds,
            pairs: PAIRS,
        })
    }

    /// Events in building at once: as many as keep a source, its connection and the builder busy at the same time.
    fn building(&self) -> u32 {
        match self.transport {
            BenchTransport::Tcp => in_window(self.fragment_bytes, BUILDING_MIN),
            BenchTransport::Udp => in_window(self.fragment_bytes, EVENTS_HELD),
            BenchTransport::Shm => EVENTS_HELD,
        }
    }

    fn figures(&self, events: f64, seconds: f64, cpu_seconds: f64) -> Figures {
        let bytes_per_event = f64::from(self.fragment_bytes) * f64::from(self.sources);
        let moved = self.payload != BenchPayload::Handles;
        Figures::of(events, moved.then_some(bytes_per_event), seconds, cpu_seconds)
    }
}

/// The partition. The buffers of the sockets, some megabytes for each, let the sources of the reference run ahead of
/// their builder. Here it is the number of events in building, see [`Parameters::building`].
pub(super) fn configuration(parameters: &Parameters) -> String {
    let Parameters { sources, fragment_bytes, seconds, .. } = parameters;
    let page = (fragment_bytes + 256).next_multiple_of(64);
    let event = sources * (fragment_bytes + 256);
    let building = parameters.building();
    let room = Asking { credits: RequestCredits::Fixed, outstanding_requests: sources * building };
    let Asking { credits, outstanding_requests } = parameters.asking.unwrap_or(room);
    let credits = if credits == RequestCredits::Adaptive { "adaptive" } else { "fixed" };
    let milliseconds = (seconds * 1e3).round();
    let (payload, check) = match parameters.payload {
        BenchPayload::Plain | BenchPayload::Handles => ("prefilled", "headers"),
        BenchPayload::Touched => ("written", "data"),
    };
    let clear_group = |bytes: u32| (bytes / (*fragment_bytes).max(1)).clamp(1, CLEAR_GROUP_MAX);
    // Pages that wait to be cleared are read by nobody, and those of the reference's ring are used again at once.
    let clear_group = match parameters.transport {
        BenchTransport::Shm => building / 4,
        // The networks of `losses` drop clears as well, and what a builder does about a lost one is not what is measured there.
        BenchTransport::Udp if !parameters.offload => CLEAR_GROUP_MAX,
        BenchTransport::Tcp => clear_group(CLEARED_BYTES),
        BenchTransport::Udp => clear_group(CLEARED_BYTES_MULTICAST),
    };
    let transport = transport_keys(parameters);
    format!(
        r#"
        partition.name = "bench"
        run.duration = "{milliseconds} ms"
        {transport}
        dfm = {{ input = "self", clear_group = {clear_group} }}
        sfi = {{ count = 1, events = {events}, building = {building}, outstanding_requests = {outstanding_requests}, credits = "{credits}", max_event_size = "{event} B", request_timeout = "2 s", check = "{check}" }}
        [ros]
        count = {sources}
        input = "emulator"
        fragment = {{ kind = "fixed", size = "{fragment_bytes} B", payload = "{payload}" }}
        page_size = "{page} B"
        pages = {pages}
        request_timeout = "2 s"
        "#,
        events = 2 * building,
        pages = 4 * building.max(32),
    )
}

/// How messages travel.
fn transport_keys(parameters: &Parameters) -> String {
    let carriers = parameters.transport.keys(&CARRIERS);
    let Some(datagram) = parameters.datagram_bytes else { return carriers };
    let window =
        parameters.window_bytes.map_or(String::new(), |window| format!("transport.udp.window = \"{window} B\"\n"));
    let offload = parameters.offload;
    format!("{carriers}transport.udp.datagram = \"{datagram} B\"\ntransport.udp.offload = {offload}\n{window}")
}

/// As in the event builder of `[EB2007 §II-B.4]`.
const CARRIERS: [&str; 3] = ["event_request", "event_reply", "clear"];
const GROUPED: &str =
    "bare sendmmsg and recvmmsg with as many fragments in each datagram as it holds, which the kernel cuts and joins";
const SINGLE: &str = "bare sendmmsg and recvmmsg with each fragment in datagrams of its own";
const PAIRS: usize = 5;
const EVENTS_HELD: u32 = 64;
/// What is cleared together, of one source.
const CLEARED_BYTES: u32 = 128 << 10;
/// Each clear is a datagram to each source.
const CLEARED_BYTES_MULTICAST: u32 = 256 << 10;
const CLEAR_GROUP_MAX: u32 = 100;
/// Less than what a pair of sockets buffers for the reference.
const WINDOW_BYTES: u32 = 1 << 20;
const BUILDING_MIN: u32 = 8;
const BUILDING_MAX: u32 = 512;
