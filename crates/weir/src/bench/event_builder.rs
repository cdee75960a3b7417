//! `weir bench event-builder`: source processes, one building process, the complete protocol.
//!
//! Each source is a ROS with one emulated link; the building process holds the DFM, which triggers itself, and one SFI.
//! Nothing is left out: assignment, requests, replies, end of event, clears, accounting, a check of every ROB and ROD
//! header. The reference is the bare machine with the same payload, see [`reference`].

use std::io;
use std::process::{Child, Command, Stdio};

use configuration::Partition;
use dataflow::ids::Role;
use serde::Serialize;

use super::BenchError;
use super::paired::{Comparison, Figures, RatioOf};
use super::reference::{self, SourceArguments};
use crate::cli::BenchArgs;
use crate::conductor::{Run, conduct};

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Parameters {
    sources: u32,
    fragment_bytes: u32,
    transport: &'static str,
    seconds: f64,
    pairs: usize,
}

/// Measures in alternation with the reference.
pub(crate) fn measure(args: &BenchArgs) -> Result<Comparison<Parameters>, BenchError> {
    let parameters = Parameters {
        sources: args.sources,
        fragment_bytes: args.fragment,
        transport: "tcp",
        seconds: args.seconds,
        pairs: PAIRS,
    };
    let pairs = (PAIRS, RatioOf::EventsPerS);
    Comparison::measure("event-builder", parameters, pairs, || build(&parameters), || bare(&parameters))
}

fn build(parameters: &Parameters) -> Result<Figures, BenchError> {
    let partition = Partition::parse("event-builder bench", &configuration(parameters), &[])?;
    let in_children = |role| role == Role::Ros;
    let conducted = conduct(Run { partition, in_children, progress: None, observer: None })?;
    let account = super::sound(&conducted)?;
    let events = account.built_complete as f64;
    Ok(parameters.figures(events, conducted.duration.as_secs_f64(), conducted.cpu.as_secs_f64()))
}

fn bare(parameters: &Parameters) -> Result<Figures, BenchError> {
    let bare = reference::Parameters {
        sources: parameters.sources,
        fragment_bytes: parameters.fragment_bytes,
        seconds: parameters.seconds,
        batch: 1,
        events_held: EVENTS_HELD,
    };
    let measured = reference::run(&bare, spawn_source)?;
    Ok(parameters.figures(measured.events as f64, measured.seconds, measured.cpu_seconds))
}

impl Parameters {
    fn figures(&self, events: f64, seconds: f64, cpu_seconds: f64) -> Figures {
        Figures {
            events_per_s: events / seconds,
            bytes_per_s: events / seconds * f64::from(self.fragment_bytes) * f64::from(self.sources),
            cpu_us_per_event: cpu_seconds / events * 1e6,
            round_trip_ns: None,
        }
    }
}

/// The partition: as many events held as the reference holds.
fn configuration(parameters: &Parameters) -> String {
    let Parameters { sources, fragment_bytes, seconds, .. } = parameters;
    let page = (fragment_bytes + 256).next_multiple_of(64);
    let event = sources * (fragment_bytes + 256);
    let requests = sources * EVENTS_HELD;
    let milliseconds = (seconds * 1e3).round();
    format!(
        r#"
        partition.name = "bench"
        run.duration = "{milliseconds} ms"
        dfm = {{ input = "self" }}
        sfi = {{ count = 1, events = {events}, building = {EVENTS_HELD}, outstanding_requests = {requests}, max_event_size = "{event} B", request_timeout = "2 s" }}
        [ros]
        count = {sources}
        input = "emulator"
        fragment = {{ kind = "fixed", size = "{fragment_bytes} B" }}
        page_size = "{page} B"
        pages = {pages}
        request_timeout = "2 s"
        "#,
        events = 2 * EVENTS_HELD,
        pages = 16 * EVENTS_HELD,
    )
}

fn spawn_source(source: &SourceArguments) -> io::Result<Child> {
    let SourceArguments { builder, id, fragment_bytes, batch } = source;
    Command::new(std::env::current_exe()?)
        .args(["bench-part", "source"])
        .args([builder.to_string(), id.to_string(), fragment_bytes.to_string(), batch.to_string()])
        .stdin(Stdio::null())
        .spawn()
}

const PAIRS: usize = 5;
const EVENTS_HELD: u32 = 64;
