//! `weir bench ros`: one read-out system with twelve ROBs under all that is asked of it together \[EB2007 Fig. 6\].
//!
//! For each part of the events that level 2 accepts: requests for two ROBs of every event, requests for all twelve ROBs of
//! every accepted event, and clears. The ROS is a process of its own; level 1, supervisor, L2PU, DFM and SFI, which ask,
//! are in another. Latencies say whether one kind of request starves the other: both are answered, or the run would not
//! end well. The reference is [`exchange`](super::exchange): as many requests and replies of the same two sizes.

use configuration::Partition;
use dataflow::bulk::{Bulk, PageSlice};
use dataflow::histogram::Histogram;
use dataflow::ids::{EventId, Role};
use dataflow::message::{DataReply, DataRequest, EventInfo, Message};
use dataflow::report::RosCounters;
use eformat::RobParams;
use nix::sys::resource::UsageWho;
use serde::Serialize;

use super::exchange::{self, Exchange, LargeReplies};
use super::level2::frame_bytes;
use super::paired::{Compared, Comparison, Figures, RatioOf, median};
use super::{BenchError, sound};
use crate::cli::{BenchArgs, BenchIdle};
use crate::conductor::{Run, conduct};
use crate::cpu::cpu_seconds;

/// What was found.
#[derive(Serialize)]
pub(crate) struct Found {
    /// With [`MAIN_PART`] of the events accepted.
    #[serde(flatten)]
    main: Comparison<Parameters>,
    points: Vec<Point>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    transport: &'static str,
    robs: u32,
    robs_per_roi_request: u32,
    fragment_bytes: u32,
    /// Part of the events that level 2 accepts.
    accepted: f64,
    idle: BenchIdle,
    seconds: f64,
    pairs: usize,
}

/// Medians over the pairs, for one part of events accepted.
#[derive(Clone, Copy, Debug, Serialize)]
struct Point {
    accepted: f64,
    #[serde(flatten)]
    compared: Compared,
    #[serde(flatten)]
    requests: Requests,
}

/// What was asked of the ROS, and how it did. An event is one of level 1.
#[derive(Clone, Copy, Debug, Serialize)]
struct Requests {
    roi_requests_per_s: f64,
    event_requests_per_s: f64,
    /// Processor time of the ROS, per request of either kind.
    ros_cpu_us_per_request: f64,
    /// From the level-1 result to the decision of level 2, which waits for its data.
    level2_us: Quantiles,
    /// From the assignment of an accepted event to its end.
    build_us: Quantiles,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Quantiles {
    median: f64,
    p99: f64,
    max: f64,
}

/// Measures all parts, each in alternation with the reference.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let parameters = Parameters {
        transport: "tcp",
        robs: ROBS,
        robs_per_roi_request: ROBS_PER_ROI_REQUEST,
        fragment_bytes: FRAGMENT_BYTES,
        accepted: MAIN_PART,
        idle: args.idle,
        seconds: args.seconds / 3.0,
        pairs: PAIRS,
    };
    let (mut points, mut main) = (Vec::new(), None);
    for accepted in PARTS_ACCEPTED {
        let parameters = Parameters { accepted, ..parameters };
        let (mut runs, mut requests) = (Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            let (figures, asked) = run(&parameters)?;
            requests.push(asked);
            runs.push((figures, bare(&parameters)?));
        }
        let comparison = Comparison::of("ros", parameters, RatioOf::EventsPerS, &runs);
        points.push(Point { accepted, compared: *comparison.compared(), requests: Requests::median(&requests) });
        if accepted == MAIN_PART {
            main = Some(comparison);
        }
    }
    Ok(Found { main: main.expect("it is one of them"), points })
}

impl Found {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "one ROS with {ROBS} ROBs, all requests together; latencies are medians, and in brackets the 99th percentiles\n\
             accepted   events/s  RoI req./s  building req./s  ROS µs CPU/req.  level 2 µs        building µs       ratio"
        );
        for Point { accepted, compared, requests } in &self.points {
            let events_per_s = compared.result().events_per_s;
            let Requests { roi_requests_per_s, event_requests_per_s, .. } = requests;
            let latency = |of: Quantiles| format!("{:.0} ({:.0})", of.median, of.p99);
            text += &format!(
                "\n{:>6.0} % {events_per_s:>11.0} {roi_requests_per_s:>11.0} {event_requests_per_s:>16.0} {:>16.2}  \
                 {:<17} {:<17} {:.2}",
                accepted * 100.0,
                requests.ros_cpu_us_per_request,
                latency(requests.level2_us),
                latency(requests.build_us),
                compared.ratio()
            );
        }
        text
    }
}

impl Requests {
    fn median(of: &[Self]) -> Self {
        let middle = |value: fn(&Self) -> f64| median(of.iter().map(value));
        Self {
            roi_requests_per_s: middle(|point| point.roi_requests_per_s),
            event_requests_per_s: middle(|point| point.event_requests_per_s),
            ros_cpu_us_per_request: middle(|point| point.ros_cpu_us_per_request),
            level2_us: Quantiles {
                median: middle(|point| point.level2_us.median),
                p99: middle(|point| point.level2_us.p99),
                max: middle(|point| point.level2_us.max),
            },
            build_us: Quantiles {
                median: middle(|point| point.build_us.median),
                p99: middle(|point| point.build_us.p99),
                max: middle(|point| point.build_us.max),
            },
        }
    }
}

impl Quantiles {
    fn of(latency_ns: &Histogram) -> Self {
        let quantile = |q| latency_ns.quantile(q) as f64 / 1e3;
        Self { median: quantile(0.5), p99: quantile(0.99), max: quantile(1.0) }
    }
}

fn run(parameters: &Parameters) -> Result<(Figures, Requests), BenchError> {
    let partition = Partition::parse("ros bench", &configuration(parameters), &[])?;
    let cpu_before = cpu_seconds(UsageWho::RUSAGE_CHILDREN);
    let conducted = conduct(Run { partition, in_children: |role| role == Role::Ros, progress: None, observer: None })?;
    let ros_cpu = cpu_seconds(UsageWho::RUSAGE_CHILDREN) - cpu_before;
    let events = sound(&conducted)?.level1 as f64;
    let seconds = conducted.duration.as_secs_f64();
    let of = |role| conducted.ending.reports.values().find(|report| report.role == role);
    let latency = |role| of(role).map_or_else(Histogram::default, |report| report.latency_ns.clone());
    let ros = of(Role::Ros).map(|report| RosCounters::from_values(&report.counters)).unwrap_or_default();
    let (roi_requests, event_requests) = (ros.roi_requests as f64, ros.event_requests as f64);
    let figures = parameters.figures(events, seconds, conducted.cpu.as_secs_f64());
    let requests = Requests {
        roi_requests_per_s: roi_requests / seconds,
        event_requests_per_s: event_requests / seconds,
        ros_cpu_us_per_request: ros_cpu / (roi_requests + event_requests) * 1e6,
        level2_us: Quantiles::of(&latency(Role::L2sv)),
        build_us: Quantiles::of(&latency(Role::Dfm)),
    };
    Ok((figures, requests))
}

/// Requests, of which as many as there are accepted events have large replies.
fn bare(parameters: &Parameters) -> Result<Figures, BenchError> {
    let fragment = RobParams::default().rob_bytes(FRAGMENT_BYTES as usize);
    let bulk = |robs: u32| Bulk::Pages(PageSlice::new(vec![0; fragment * robs as usize].into()));
    let (event, request) = (EventId(0), 0);
    let roi_request = Message::RoiRequest { event, request, robs: vec![0; ROBS_PER_ROI_REQUEST as usize] };
    let roi_reply = Message::RoiReply { event, request, missing: Vec::new(), bulk: bulk(ROBS_PER_ROI_REQUEST) };
    let asked = DataRequest { event: EventInfo::default(), attempt: 1, request, robs: Vec::new() };
    let building_request = frame_bytes(&Message::EventRequest { requests: vec![asked] });
    let whole = bulk(ROBS);
    let reply = DataReply { event, attempt: 1, request, missing: Vec::new(), len_bytes: fragment as u32 * ROBS };
    let building_reply = frame_bytes(&Message::EventReply { pushed: 0, replies: vec![reply], bulk: whole });
    let exchanged = exchange::run(&Exchange {
        repliers: 1,
        request_bytes: frame_bytes(&roi_request).max(building_request),
        reply_bytes: frame_bytes(&roi_reply),
        large: LargeReplies { bytes: building_reply, part: parameters.accepted / (1.0 + parameters.accepted) },
        in_flight: IN_FLIGHT,
        idle: parameters.idle,
        seconds: parameters.seconds,
    })?;
    let events = exchanged.exchanges as f64 / (1.0 + parameters.accepted);
    Ok(parameters.figures(events, exchanged.seconds, exchanged.cpu_seconds))
}

impl Parameters {
    fn figures(&self, events: f64, seconds: f64, cpu_seconds: f64) -> Figures {
        let robs_per_event = f64::from(ROBS_PER_ROI_REQUEST) + self.accepted * f64::from(ROBS);
        Figures::of(events, Some(robs_per_event * f64::from(self.fragment_bytes)), seconds, cpu_seconds)
    }
}

fn configuration(parameters: &Parameters) -> String {
    let Parameters { accepted, idle, seconds, .. } = parameters;
    format!(
        r#"
        partition.name = "bench"
        run.duration = "{milliseconds} ms"
        transport.idle = "{idle}"
        level1 = {{ in_flight = {IN_FLIGHT}, rois_per_event = 2 }}
        l2sv = {{ events_in_system = {IN_FLIGHT}, timeout = "10 s" }}
        l2pu = {{ count = 1, workers = {IN_FLIGHT}, strategy = "generate", robs_per_step = {ROBS_PER_ROI_REQUEST}, accept = {accepted}, request_timeout = "2 s" }}
        dfm = {{ input = "level2" }}
        sfi = {{ count = 1, events = 128, building = 64, outstanding_requests = 64, max_event_size = "32 kB", request_timeout = "2 s" }}
        [ros]
        count = 1
        robs = {ROBS}
        input = "emulator"
        fragment = {{ kind = "fixed", size = "{FRAGMENT_BYTES} B" }}
        page_size = "1280 B"
        pages = 2048
        request_timeout = "2 s"
        "#,
        milliseconds = (seconds * 1e3).round().max(1.0),
        idle = idle.name(),
    )
}

const PARTS_ACCEPTED: [f64; 5] = [0.0, 0.03, MAIN_PART, 0.3, 1.0];
const MAIN_PART: f64 = 0.1;
const PAIRS: usize = 3;
const ROBS: u32 = 12;
const ROBS_PER_ROI_REQUEST: u32 = 2;
const FRAGMENT_BYTES: u32 = 1000;
const IN_FLIGHT: u32 = 256;
