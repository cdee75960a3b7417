//! `weir bench level2`: how many events a supervisor carries, and how soon one is back.
//!
//! | name | what runs | reference |
//! |---|---|---|
//! | `sink` | level 1, a ROS, a supervisor and sinks in one process | [`hops`]: as many records through plain queues |
//! | `two_step` | level 1, a supervisor and an L2PU that rejects 9 of 10 events at each of two steps; its data come from two ROSs, processes of their own, over TCP | [`exchange`]: as many requests and replies of the same size |
//! | `round_trip` | a supervisor and a sink in a process of its own, one event in flight | [`exchange`]: the same of two messages |
//!
//! Nothing is left out: level 1 issues every event, its fragments are read out and cleared, and the account is drawn up.
//! The round trip is timed by the supervisor, from the level-1 result to the decision \[L2SCI2000 §3.2\].

use base::bulk::{Bulk, PageSlice};
use base::histogram::Histogram;
use base::ids::{EventId, Incarnation, NodeId, Role, RunNumber};
use configuration::Partition;
use dataflow::message::{Envelope, EventInfo, Message, Roi};
use dataflow::wire;
use eformat::RobParams;
use serde::Serialize;

use super::exchange::{self, Exchange, Exchanged};
use super::paired::{Comparison, Figures, RatioOf};
use super::{BenchError, hops, sound};
use crate::bench::arguments::{BenchArgs, BenchIdle};
use partition::{Outcome, Placement, Run};
use terminal::conduct;

/// All three measurements.
#[derive(Serialize)]
pub(crate) struct Level2 {
    /// That of the sinks once more, as the one that the benchmark is named for.
    #[serde(flatten)]
    main: Comparison<Parameters>,
    sink: Comparison<Parameters>,
    two_step: Comparison<Parameters>,
    round_trip: Comparison<Parameters>,
}

/// What is measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Parameters {
    transport: &'static str,
    processes: u32,
    l2pus: u32,
    /// Events that L2PUs have at a time.
    in_flight: u32,
    rois_per_event: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Requests>,
    idle: BenchIdle,
    seconds: f64,
    pairs: usize,
}

/// What is asked of read-out systems.
#[derive(Clone, Copy, Debug, Serialize)]
struct Requests {
    ros: u32,
    robs_per_step: u32,
    step_accept: f64,
    /// Detector data in a reply, without headers.
    reply_payload_bytes: u32,
    /// Frames on the wire.
    request_bytes: u32,
    reply_bytes: u32,
}

/// Measures all three, each in alternation with its reference.
pub(crate) fn measure(args: &BenchArgs) -> Result<Level2, BenchError> {
    let sink = Parameters::new(args, "local", 1, 4 * 64);
    let sink = compare("level2.sink", &sink, RatioOf::EventsPerS, run_sink, bare_sink)?;
    let two_step = Parameters { requests: Some(Requests::new()), ..Parameters::new(args, "tcp", 1 + ROSS, 256) };
    let two_step = compare("level2.two_step", &two_step, RatioOf::EventsPerS, run_two_step, bare_two_step)?;
    let round_trip = Parameters::new(args, "tcp", 2, 1);
    let round_trip = compare("level2.round_trip", &round_trip, RatioOf::RoundTripNs, run_round_trip, bare_round_trip)?;
    Ok(Level2 { main: sink.clone().named("level2"), sink, two_step, round_trip })
}

impl Level2 {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        [&self.sink, &self.two_step, &self.round_trip].map(Comparison::to_text).join("\n\n")
    }
}

type Side = fn(&Parameters) -> Result<Figures, BenchError>;

fn compare(
    name: &'static str,
    parameters: &Parameters,
    ratio_of: RatioOf,
    run: Side,
    bare: Side,
) -> Result<Comparison<Parameters>, BenchError> {
    let pairs = (parameters.pairs, ratio_of);
    Comparison::measure(name, parameters.clone(), pairs, || run(parameters), || bare(parameters))
}

impl Parameters {
    fn new(args: &BenchArgs, transport: &'static str, processes: u32, in_flight: u32) -> Self {
        let l2pus = if transport == "local" { 4 } else { 1 };
        let (idle, seconds) = (args.idle, args.seconds / 3.0);
        Self { transport, processes, l2pus, in_flight, rois_per_event: 2, requests: None, idle, seconds, pairs: PAIRS }
    }

    /// Of the regions of interest, the only payload of an assignment.
    fn rois_bytes(&self) -> f64 {
        f64::from(self.rois_per_event) * size_of::<Roi>() as f64
    }

    fn envelope() -> Envelope {
        let (from, to, life) = (NodeId(1), NodeId(2), Incarnation(0));
        Envelope { from, to, run: RunNumber(1), from_incarnation: life, to_incarnation: life }
    }

    fn assign_bytes(&self) -> u32 {
        let rois = vec![Roi::default(); self.rois_per_event as usize];
        frame_bytes(&Message::Assign { event: EventInfo::default(), attempt: 1, rois })
    }
}

impl Requests {
    fn new() -> Self {
        let fragment = RobParams::default().rob_bytes(PAYLOAD_BYTES as usize);
        let bulk = Bulk::Pages(PageSlice::from(vec![0; fragment]));
        let (event, request) = (EventId(0), 0);
        Self {
            ros: ROSS,
            robs_per_step: ROSS,
            step_accept: STEP_ACCEPT,
            reply_payload_bytes: PAYLOAD_BYTES,
            request_bytes: frame_bytes(&Message::RoiRequest { event, request, robs: vec![0] }),
            reply_bytes: frame_bytes(&Message::RoiReply { event, request, missing: Vec::new(), bulk }),
        }
    }

    fn payload_bytes_per_event(&self) -> f64 {
        STEPS_PER_EVENT * f64::from(self.robs_per_step * self.reply_payload_bytes)
    }
}

fn run_sink(parameters: &Parameters) -> Result<Figures, BenchError> {
    run(parameters, |_| false).map(|(figures, _)| figures)
}

fn bare_sink(parameters: &Parameters) -> Result<Figures, BenchError> {
    let (in_flight, rois) = (parameters.in_flight as usize, parameters.rois_per_event as usize);
    let (events, seconds, cpu_seconds) = hops::run(parameters.seconds, in_flight, rois);
    Ok(Figures::of(events as f64, Some(parameters.rois_bytes()), seconds, cpu_seconds))
}

fn run_two_step(parameters: &Parameters) -> Result<Figures, BenchError> {
    run(parameters, |role| role == Role::Ros).map(|(figures, _)| figures)
}

fn bare_two_step(parameters: &Parameters) -> Result<Figures, BenchError> {
    let requests = parameters.requests.as_ref().expect("the two steps ask for data");
    let Exchanged { exchanges, seconds, cpu_seconds, .. } = exchange::run(&Exchange {
        repliers: requests.ros,
        request_bytes: requests.request_bytes,
        reply_bytes: requests.reply_bytes,
        in_flight: parameters.in_flight,
        idle: parameters.idle,
        seconds: parameters.seconds,
    })?;
    let events = exchanges as f64 / STEPS_PER_EVENT;
    Ok(Figures::of(events, Some(requests.payload_bytes_per_event()), seconds, cpu_seconds))
}

fn run_round_trip(parameters: &Parameters) -> Result<Figures, BenchError> {
    let (figures, latency_ns) = run(parameters, |role| role == Role::L2pu)?;
    Ok(Figures { round_trip_ns: Some(latency_ns.quantile(0.5) as f64), ..figures })
}

fn bare_round_trip(parameters: &Parameters) -> Result<Figures, BenchError> {
    let (event, builder) = (EventId(0), None);
    let decision =
        Message::L2Decision { event, attempt: 1, accept: false, lacks_data: false, has_result: false, builder };
    let Exchanged { exchanges, seconds, cpu_seconds, latency_ns } = exchange::run(&Exchange {
        repliers: 1,
        request_bytes: parameters.assign_bytes(),
        reply_bytes: frame_bytes(&decision),
        in_flight: parameters.in_flight,
        idle: parameters.idle,
        seconds: parameters.seconds,
    })?;
    let figures = Figures::of(exchanges as f64, Some(parameters.rois_bytes()), seconds, cpu_seconds);
    Ok(Figures { round_trip_ns: Some(latency_ns.quantile(0.5) as f64), ..figures })
}

fn run(parameters: &Parameters, in_children: fn(Role) -> bool) -> Result<(Figures, Histogram), BenchError> {
    let partition = Partition::parse("level2 bench", &configuration(parameters), &[])?;
    let conducted = conduct(Run::new(partition).place(Placement::apart(in_children)))?;
    let events = sound(&conducted)?.level1 as f64;
    let bytes = parameters.requests.map_or(parameters.rois_bytes(), |requests| requests.payload_bytes_per_event());
    let Outcome { duration, cpu, ending, .. } = conducted;
    let latency = ending.reports.values().find(|report| report.role == Role::L2sv).map(|report| &report.latency_ns);
    let latency = latency.cloned().unwrap_or_default();
    Ok((Figures::of(events, Some(bytes), duration.as_secs_f64(), cpu.as_secs_f64()), latency))
}

fn configuration(parameters: &Parameters) -> String {
    let Parameters { l2pus, in_flight, rois_per_event, requests, idle, seconds, .. } = parameters;
    let strategy = match requests {
        Some(Requests { robs_per_step, step_accept, .. }) => {
            format!("strategy = \"two-step\", robs_per_step = {robs_per_step}, step_accept = {step_accept}")
        }
        None => "strategy = \"sink\"".to_owned(),
    };
    let (ros, payload) = requests.map_or((1, 0), |requests| (requests.ros, requests.reply_payload_bytes));
    format!(
        r#"
        partition.name = "bench"
        run.duration = "{milliseconds} ms"
        transport.idle = "{idle}"
        level1 = {{ in_flight = {in_flight}, rois_per_event = {rois_per_event} }}
        l2sv = {{ events_in_system = {in_flight}, timeout = "120 s" }}
        l2pu = {{ count = {l2pus}, workers = {workers}, {strategy}, request_timeout = "60 s" }}
        sfi.count = 0
        [ros]
        count = {ros}
        input = "emulator"
        fragment = {{ kind = "fixed", size = "{payload} B" }}
        page_size = "256 B"
        pages = 8192
        request_timeout = "60 s"
        "#,
        milliseconds = (seconds * 1e3).round(),
        idle = idle.name(),
        workers = in_flight.div_ceil(*l2pus),
    )
}

/// Length of a message on the wire.
pub(super) fn frame_bytes(message: &Message) -> u32 {
    let mut frame = Vec::new();
    wire::encode(&Parameters::envelope(), message, &mut frame);
    (frame.len() + message.bulk().map_or(0, Bulk::len)) as u32
}

const PAIRS: usize = 5;
/// One ROB each, so that a reply carries the data of one.
const ROSS: u32 = 2;
const PAYLOAD_BYTES: u32 = 64;
const STEP_ACCEPT: f64 = 0.1;
const STEPS_PER_EVENT: f64 = 1.0 + STEP_ACCEPT;
