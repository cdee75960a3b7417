//! `weir bench ros`: one read-out system with twelve ROBs under all that is asked of it together \[EB2007 Fig. 6\].
//!
//! It is measured for several parts of the events that level 2 accepts. The ROS is asked for two ROBs of every
//! event and for all twelve ROBs of every accepted one, and gets clears in groups. The ROS, every L2PU and every
//! SFI are processes of their own; level 1, supervisor and DFM are in another.
//!
//! The reference is [`service`](super::service), always over TCP: a loop that answers as many clients from memory.
//! These ask together for as many replies at a time of the same two sizes.
//!
//! Does one kind of request starve the other? Two numbers tell of each: what remained without an answer, and the
//! longest wait. For level 2 that stands beside the wait of a run in which nothing is accepted and nobody else
//! asks. The wait is that of an event. Level 2 waits for one reply before it decides, and an event is built when
//! one reply is there.

use std::time::Duration;

use base::bulk::{Bulk, PageSlice};
use base::histogram::Histogram;
use base::ids::{EventId, Role};
use configuration::Partition;
use dataflow::message::{DataReply, DataRequest, EventInfo, Message};
use dataflow::report::{L2puCounters, Report, RosCounters, SfiCounters};
use eformat::RobParams;
use serde::Serialize;

use super::exchange::LargeReplies;
use super::level2::frame_bytes;
use super::paired::{Comparison, Figures, RatioOf, median};
use super::points::{Point, Points};
use super::service::{self, Service, ServiceTalk};
use super::{BenchError, sound};
use crate::bench::arguments::{BenchArgs, BenchIdle, BenchTransport};
use partition::{Placement, Run};
use terminal::conduct;

/// All parts of events accepted; [`MAIN_PART`] stands for all.
#[derive(Serialize)]
pub(crate) struct Found(Points<Parameters, Asked>);

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    transport: BenchTransport,
    reference_transport: BenchTransport,
    l2pus: u32,
    sfis: u32,
    robs: u32,
    robs_per_roi_request: u32,
    fragment_bytes: u32,
    /// Part of the events that level 2 accepts.
    accepted: f64,
    idle: BenchIdle,
    seconds: f64,
    pairs: usize,
}

/// What was asked of the ROS, and how it did; medians over the pairs. An event is one of level 1.
#[derive(Clone, Copy, Debug, Serialize)]
struct Asked {
    /// Of both kinds.
    requests_per_s: f64,
    /// Processor time of the ROS while the run lasts, per request of either kind; null where the kernel does not say.
    ros_cpu_us_per_request: f64,
    /// The same of all processes together.
    cpu_us_per_request: f64,
    /// The same of the server of the reference.
    reference_cpu_us_per_request: f64,
    roi: RequestFigures,
    building: RequestFigures,
}

/// One kind of request.
#[derive(Clone, Copy, Debug, Serialize)]
struct RequestFigures {
    requests_per_s: f64,
    /// Requests sent again, and those that were never answered fully.
    repeated: f64,
    unanswered: f64,
    /// Of level 2 from the level-1 result to the decision, of building from the assignment to the end of the event.
    wait_us: Quantiles,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Quantiles {
    median: f64,
    p99: f64,
    max: f64,
}

/// Measures all parts, each in alternation with the reference.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let &BenchArgs { transport, l2pus, sfis, idle, .. } = args;
    let of = |accepted| Parameters {
        transport,
        reference_transport: BenchTransport::Tcp,
        l2pus,
        sfis,
        robs: ROBS,
        robs_per_roi_request: ROBS_PER_ROI_REQUEST,
        fragment_bytes: FRAGMENT_BYTES,
        accepted,
        idle,
        seconds: args.seconds / 3.0,
        pairs: PAIRS,
    };
    let points = PARTS_ACCEPTED.into_iter().map(|accepted| point(of(accepted))).collect::<Result<_, _>>()?;
    Ok(Found(Points::new(points, |parameters: &Parameters| parameters.accepted == MAIN_PART)))
}

fn point(parameters: Parameters) -> Result<Point<Parameters, Asked>, BenchError> {
    let (mut runs, mut all_asked) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let (figures, asked) = run(&parameters)?;
        let (bare, reference_cpu_us_per_request) = bare(&parameters)?;
        runs.push((figures, bare));
        all_asked.push(Asked { reference_cpu_us_per_request, ..asked });
    }
    let comparison = Comparison::of("ros", parameters, RatioOf::EventsPerS, &runs);
    Ok(Point { comparison, more: Asked::median(&all_asked) })
}

impl Found {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let Parameters { l2pus, sfis, transport, reference_transport, .. } =
            self.0.iter().next().expect("there are points").comparison.parameters();
        let mut text = format!(
            "one ROS with {ROBS} ROBs, asked by {l2pus} L2PUs and {sfis} SFIs over {}, the reference over {}; waits in µs: median, 99th percentile, longest\n\
             accepted  requests/s  RoI req./s  building req./s  µs CPU/req.: ROS  all   RoI wait            building wait       ratio",
            transport.name(),
            reference_transport.name()
        );
        for Point { comparison, more: asked } in self.0.iter() {
            let wait = |Quantiles { median, p99, max }| format!("{median:.0}, {p99:.0}, {max:.0}");
            text += &format!(
                "\n{:>6.0} % {:>12.0} {:>11.0} {:>16.0} {:>17.2} {:>5.2}  {:<19} {:<19} {}",
                comparison.parameters().accepted * 100.0,
                asked.requests_per_s,
                asked.roi.requests_per_s,
                asked.building.requests_per_s,
                asked.ros_cpu_us_per_request,
                asked.cpu_us_per_request,
                wait(asked.roi.wait_us),
                wait(asked.building.wait_us),
                comparison.compared().ratio_text(),
            );
        }
        text += "\naccepted  sent again  unanswered";
        for Point { comparison, more: Asked { roi, building, .. } } in self.0.iter() {
            text += &format!(
                "\n{:>6.0} % {:>11.0} {:>11.0}",
                comparison.parameters().accepted * 100.0,
                roi.repeated + building.repeated,
                roi.unanswered + building.unanswered,
            );
        }
        text
    }
}

fn run(parameters: &Parameters) -> Result<(Figures, Asked), BenchError> {
    let partition = Partition::parse("ros bench", &parameters.configuration(), &[])?;
    let in_children = |role| matches!(role, Role::Ros | Role::L2pu | Role::Sfi);
    let conducted = conduct(Run::new(partition).place(Placement::apart(in_children)))?;
    let events = sound(&conducted)?.level1 as f64;
    let (seconds, cpu_seconds) = (conducted.duration.as_secs_f64(), conducted.cpu.as_secs_f64());
    let of = |role| conducted.reports(role);
    let ros = RosCounters::total(of(Role::Ros));
    let (l2pu, sfi) = (L2puCounters::total(of(Role::L2pu)), SfiCounters::total(of(Role::Sfi)));
    let taken = (ros.roi_requests + ros.event_requests) as f64;
    let kind = |taken_in: u64, [repeated, unanswered]: [u64; 2], role| RequestFigures {
        requests_per_s: taken_in as f64 / seconds,
        repeated: repeated as f64,
        unanswered: unanswered as f64,
        wait_us: Quantiles::of(of(role)),
    };
    let ros_cpu = of(Role::Ros).filter_map(|report| conducted.cpu_of_children.get(&report.node));
    let ros_cpu = ros_cpu.map(Duration::as_secs_f64).reduce(|one, other| one + other).unwrap_or(f64::NAN);
    let asked = Asked {
        requests_per_s: taken / seconds,
        ros_cpu_us_per_request: ros_cpu / taken * 1e6,
        cpu_us_per_request: cpu_seconds / taken * 1e6,
        reference_cpu_us_per_request: f64::NAN,
        roi: kind(ros.roi_requests, [l2pu.reasks, l2pu.incomplete], Role::L2sv),
        building: kind(ros.event_requests, [sfi.reasks, sfi.missing_robs], Role::Dfm),
    };
    Ok((parameters.figures(events, seconds, cpu_seconds), asked))
}

/// As many requests of as many clients, and the processor time of the server for each. As many as there are accepted
/// events have large replies.
fn bare(parameters: &Parameters) -> Result<(Figures, f64), BenchError> {
    let fragment = RobParams::default().rob_bytes(FRAGMENT_BYTES as usize);
    let bulk = |robs: u32| Bulk::Pages(PageSlice::from(vec![0; fragment * robs as usize]));
    let (event, request) = (EventId(0), 0);
    let roi_request = Message::RoiRequest { event, request, robs: vec![0; ROBS_PER_ROI_REQUEST as usize] };
    let roi_reply = Message::RoiReply { event, request, missing: Vec::new(), bulk: bulk(ROBS_PER_ROI_REQUEST) };
    let asked = DataRequest { event: EventInfo::default(), attempt: 1, request, robs: Vec::new() };
    let building_request = frame_bytes(&Message::EventRequest { requests: vec![asked].into() });
    let whole = bulk(ROBS);
    let reply = DataReply { event, attempt: 1, request, missing: Vec::new(), len_bytes: fragment as u32 * ROBS };
    let building_reply = frame_bytes(&Message::EventReply { pushed: 0, replies: vec![reply], bulk: whole });
    // Where nothing is accepted no SFI asks.
    let (clients, in_flight) = match parameters.accepted {
        0.0 => (parameters.l2pus, IN_FLIGHT),
        _ => (parameters.l2pus + parameters.sfis, IN_FLIGHT + BUILDING),
    };
    let talk = ServiceTalk {
        request_bytes: frame_bytes(&roi_request).max(building_request),
        reply_bytes: frame_bytes(&roi_reply),
        large: LargeReplies { bytes: building_reply, part: parameters.accepted / (1.0 + parameters.accepted) },
        in_flight: in_flight.div_ceil(clients),
        idle: parameters.idle,
    };
    let fragments = ROBS * (IN_FLIGHT + CLEAR_GROUP);
    let (fragment_bytes, seconds) = (fragment as u32, parameters.seconds);
    let served = service::run(&Service { clients, talk, fragment_bytes, fragments, seconds })?;
    let requests = served.requests as f64;
    let events = requests / (1.0 + parameters.accepted);
    let figures = parameters.figures(events, served.seconds, served.cpu_seconds);
    Ok((figures, served.server_cpu_seconds / requests * 1e6))
}

impl Parameters {
    fn figures(&self, events: f64, seconds: f64, cpu_seconds: f64) -> Figures {
        let robs_per_event = f64::from(ROBS_PER_ROI_REQUEST) + self.accepted * f64::from(ROBS);
        Figures::of(events, Some(robs_per_event * f64::from(self.fragment_bytes)), seconds, cpu_seconds)
    }

    fn configuration(&self) -> String {
        let Self { l2pus, sfis, accepted, idle, seconds, transport, .. } = self;
        format!(
            r#"
            partition.name = "bench"
            run.duration = "{milliseconds} ms"
            transport.idle = "{idle}"
            {carriers}
            level1 = {{ in_flight = {IN_FLIGHT}, rois_per_event = 2 }}
            l2sv = {{ events_in_system = {IN_FLIGHT}, timeout = "120 s" }}
            l2pu = {{ count = {l2pus}, workers = {workers}, strategy = "generate", robs_per_step = {ROBS_PER_ROI_REQUEST}, accept = {accepted}, request_timeout = "60 s" }}
            dfm = {{ input = "level2", clear_group = {CLEAR_GROUP} }}
            sfi = {{ count = {sfis}, events = {events}, building = {building}, outstanding_requests = {building}, max_event_size = "32 kB", request_timeout = "60 s" }}
            [ros]
            count = 1
            robs = {ROBS}
            input = "emulator"
            fragment = {{ kind = "fixed", size = "{FRAGMENT_BYTES} B" }}
            page_size = "1280 B"
            pages = 2048
            request_timeout = "60 s"
            "#,
            milliseconds = (seconds * 1e3).round().max(1.0),
            idle = idle.name(),
            carriers = transport.keys(&CARRIERS),
            workers = IN_FLIGHT.div_ceil(*l2pus),
            events = 2 * BUILDING.div_ceil(*sfis),
            building = BUILDING.div_ceil(*sfis),
        )
    }
}

impl Asked {
    fn median(of: &[Self]) -> Self {
        let middle = |value: fn(&Self) -> f64| median(of.iter().map(value));
        Self {
            requests_per_s: middle(|asked| asked.requests_per_s),
            ros_cpu_us_per_request: middle(|asked| asked.ros_cpu_us_per_request),
            cpu_us_per_request: middle(|asked| asked.cpu_us_per_request),
            reference_cpu_us_per_request: middle(|asked| asked.reference_cpu_us_per_request),
            roi: RequestFigures::median(&of.iter().map(|asked| asked.roi).collect::<Vec<_>>()),
            building: RequestFigures::median(&of.iter().map(|asked| asked.building).collect::<Vec<_>>()),
        }
    }
}

impl RequestFigures {
    fn median(of: &[Self]) -> Self {
        let middle = |value: fn(&Self) -> f64| median(of.iter().map(value));
        Self {
            requests_per_s: middle(|kind| kind.requests_per_s),
            repeated: middle(|kind| kind.repeated),
            unanswered: middle(|kind| kind.unanswered),
            wait_us: Quantiles {
                median: middle(|kind| kind.wait_us.median),
                p99: middle(|kind| kind.wait_us.p99),
                max: of.iter().map(|kind| kind.wait_us.max).fold(0.0, f64::max),
            },
        }
    }
}

impl Quantiles {
    fn of<'a>(reports: impl Iterator<Item = &'a Report>) -> Self {
        let mut latency_ns = Histogram::default();
        reports.for_each(|report| latency_ns.merge(&report.latency_ns));
        let quantile = |q| latency_ns.quantile(q) as f64 / 1e3;
        Self { median: quantile(0.5), p99: quantile(0.99), max: latency_ns.max() as f64 / 1e3 }
    }
}

const PARTS_ACCEPTED: [f64; 5] = [0.0, 0.03, MAIN_PART, 0.3, 1.0];
const MAIN_PART: f64 = 0.1;
const PAIRS: usize = 3;
const ROBS: u32 = 12;
const ROBS_PER_ROI_REQUEST: u32 = 2;
const FRAGMENT_BYTES: u32 = 1000;
/// Events in level 2, of all L2PUs together.
const IN_FLIGHT: u32 = 256;
/// Events that are cleared together.
const CLEAR_GROUP: u32 = 100;
/// Events in building, of all SFIs together.
const BUILDING: u32 = 64;
/// Kinds of messages that travel in datagrams, over UDP.
const CARRIERS: [&str; 5] = ["roi_request", "roi_reply", "event_request", "event_reply", "clear"];
