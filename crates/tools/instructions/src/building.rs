//! Event building: a DFM that triggers itself or follows level 1, one SFI, ROSs with one ROB each.

use std::time::Duration;

use base::ids::{EventId, NodeId};
use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::{ClearAfter, Dfm, DfmInput, DfmParameters};
use dataflow::building::push_control::BuildingMode;
use dataflow::building::pushed::PushedParameters;
use dataflow::building::request_credits::CreditPolicy;
use dataflow::building::sfi::{RequestOrder, Sfi, SfiParameters, Source};
use dataflow::component::Component;
use dataflow::level1::kept::Keep;
use dataflow::level1::pace::Spacing;
use dataflow::level1::trigger::{Level1, Trigger, TriggerInput, TriggerSource};
use dataflow::level2::steering::{Skeleton, Strategy};
use dataflow::readout::pusher::{Destination, PushParameters};
use dataflow::readout::ros::{ReadOut, Ros, RosParameters};
use dataflow::report::{DfmCounters, Report};

use crate::level2;
use crate::partition::Partition;

/// Events of four fragments of 1 kB.
pub(crate) fn one_kilobyte(events: u64) {
    build(&Shape::new(4, 1000), events);
}

/// Events of forty small fragments.
pub(crate) fn many_sources(events: u64) {
    build(&Shape::new(40, 64), events);
}

/// Events of 1,600 small fragments, few at a time.
pub(crate) fn full_size(events: u64) {
    build(&Shape { in_hand: 4, pages_per_rob: 32, ..Shape::new(1600, 64) }, events);
}

/// Events of four fragments of 1 kB, which sources send to the builder that is assigned.
pub(crate) fn pushed(events: u64) {
    build(&Shape { push: Some(Destination::Assigned), ..Shape::new(4, 1000) }, events);
}

/// The same by the number of the event: level 1 triggers sources and DFM.
pub(crate) fn pushed_by_number(events: u64) {
    build(&Shape { push: Some(Destination::Table), ..Shape::new(4, 1000) }, events);
}

/// What is built.
struct Shape {
    sources: u16,
    data_bytes: usize,
    /// Events in building.
    in_hand: usize,
    pages_per_rob: usize,
    push: Option<Destination>,
}

impl Shape {
    /// Pulled, with as many events in hand as the benchmark `event-builder` has.
    fn new(sources: u16, data_bytes: usize) -> Self {
        Self { sources, data_bytes, in_hand: BUILDING, pages_per_rob: PAGES_PER_ROB, push: None }
    }
}

fn build(shape: &Shape, events: u64) {
    let &Shape { sources, data_bytes, in_hand, pages_per_rob, push } = shape;
    let readout: Vec<NodeId> = (FIRST_ROS..FIRST_ROS + sources).map(NodeId).collect();
    let level1 = NodeId(FIRST_ROS + sources);
    let by_number = push == Some(Destination::Table);
    let dfm = DfmParameters {
        building: in_hand,
        clear_group: CLEAR_GROUP.min(2 * in_hand),
        mode: match push {
            None => BuildingMode::Pull,
            Some(Destination::Assigned) => BuildingMode::PushAssigned,
            Some(Destination::Table) => BuildingMode::PushByTable { readout: readout.clone(), run: 1 },
        },
        ..dfm(events)
    };
    let input = if by_number { DfmInput::Level1(level1) } else { dfm.input.clone() };
    let timeout = Duration::from_secs(2);
    let ahead = PushedParameters { window_bytes: WINDOW_BYTES, timeout, ahead: pages_per_rob };
    let sfi = SfiParameters {
        building: in_hand,
        events: 2 * in_hand,
        outstanding_requests: in_hand * readout.len(),
        push: push.map(|_| ahead),
        ..sfi(&readout, data_bytes)
    };
    let mut components: Vec<(NodeId, Box<dyn Component + Send>)> = vec![
        (DFM, Box::new(Dfm::new(DfmParameters { input, in_flight: IN_FLIGHT, ..dfm }))),
        (SFI, Box::new(Sfi::new(sfi))),
    ];
    for &node in &readout {
        let triggered = RosParameters { read_out: ReadOut::OnTrigger, level1: Some(level1), ..ros(node) };
        let ros = if by_number { triggered } else { ros(node) };
        let push = push.map(self::push);
        components.push((node, Box::new(Ros::new(RosParameters { push, pages_per_rob, in_flight: IN_FLIGHT, ..ros }))));
    }
    if by_number {
        let parameters = level2::level1(events, readout.clone(), vec![DFM], Keep::Unfinished);
        let input = TriggerInput::Source(Box::new(NoRegions));
        components.push((level1, Box::new(Level1::new(parameters, input))));
    }
    let nothing = Skeleton { strategy: Strategy::None { accept: 0.0 }, robs: Vec::new(), seed: 1 };
    let mut partition = Partition::new(components, readout, nothing, data_bytes, pages_per_rob);
    partition.start();
    partition.run_until(DFM, |report| finished(report) >= events);
}

/// Events whose fate a DFM knows.
pub(crate) fn finished(dfm: &Report) -> u64 {
    let counters = DfmCounters::from_values(&dfm.counters);
    counters.accepted + counters.abandoned + counters.unrecorded
}

struct NoRegions;

impl TriggerSource for NoRegions {
    fn trigger(&mut self, _: u64) -> Option<Trigger> {
        Some(Trigger::default())
    }
}

pub(crate) fn dfm(events: u64) -> DfmParameters {
    DfmParameters {
        input: DfmInput::SelfTrigger {
            readout: Vec::new(),
            first: EventId(0),
            limit: Some(events),
            spacing: Spacing::Unlimited,
            seed: 1,
        },
        sfis: vec![SFI],
        efds: Vec::new(),
        building: BUILDING,
        assignment: SfiAssignment::RoundRobin,
        run: 1,
        mode: BuildingMode::Pull,
        build_timeout: Duration::from_secs(2),
        clear_group: CLEAR_GROUP,
        clear_age: Duration::from_millis(10),
        clear_after: ClearAfter::Built,
        supervisors_return: false,
        returns: false,
        queue: 1000,
        in_flight: 1,
        late: false,
    }
}

pub(crate) fn sfi(readout: &[NodeId], data_bytes: usize) -> SfiParameters {
    let source = |&node: &NodeId| Source { node, robs: vec![u32::from(node.0)], results: false };
    SfiParameters {
        sources: readout.iter().map(source).collect(),
        dfm: DFM,
        efds: Vec::new(),
        events: 2 * BUILDING,
        event_bytes_max: readout.len() * (data_bytes + 128),
        building: BUILDING,
        collected: 0,
        outstanding_requests: BUILDING * readout.len(),
        credits: CreditPolicy::Fixed,
        request_order: RequestOrder::Random,
        push: None,
        request_timeout: Duration::from_secs(2),
        retries: 3,
        in_order: false,
        seed: 1,
    }
}

pub(crate) fn ros(node: NodeId) -> RosParameters {
    RosParameters {
        robs: vec![u32::from(node.0)],
        pages_per_rob: PAGES_PER_ROB,
        busy_above: 800,
        busy_below: 600,
        request_timeout: Duration::from_secs(2),
        group_bytes_max: 64 << 10,
        read_out: ReadOut::OnRequest,
        level1: None,
        in_flight: 1,
        dfm: DFM,
        late: false,
        push: None,
    }
}

fn push(destination: Destination) -> PushParameters {
    PushParameters {
        destination,
        sfis: vec![SFI],
        window_bytes: WINDOW_BYTES,
        bytes_per_s: None,
        burst_bytes: 0,
        group: 1,
        group_age: Duration::from_millis(1),
        seed: 1,
    }
}

pub(crate) const DFM: NodeId = NodeId(1);
pub(crate) const SFI: NodeId = NodeId(2);
pub(crate) const FIRST_ROS: u16 = 3;
/// More than there are events in hand.
pub(crate) const PAGES_PER_ROB: usize = 1024;
const CLEAR_GROUP: usize = 100;
/// Events between level 1 and those that follow it.
const IN_FLIGHT: u64 = 128;
/// As the benchmark `event-builder` has it.
const BUILDING: usize = 64;
/// Of each source: more than all its fragments of events in building.
const WINDOW_BYTES: u64 = 1 << 20;
