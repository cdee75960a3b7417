//! Event building: a DFM that triggers itself, one SFI, ROSs with one ROB each.

use std::time::Duration;

use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::{ClearAfter, Dfm, DfmInput, DfmParameters};
use dataflow::building::push_control::BuildingMode;
use dataflow::building::pushed::PushedParameters;
use dataflow::building::request_credits::CreditPolicy;
use dataflow::building::sfi::{RequestOrder, Sfi, SfiParameters, Source};
use dataflow::component::Component;
use dataflow::ids::{EventId, NodeId};
use dataflow::level1::pace::Spacing;
use dataflow::level2::steering::{Skeleton, Strategy};
use dataflow::readout::pusher::{Destination, PushParameters};
use dataflow::readout::ros::{ReadOut, Ros, RosParameters};
use dataflow::report::DfmCounters;

use crate::partition::Partition;

/// Events of four fragments of 1 kB.
pub(crate) fn one_kilobyte(events: u64) {
    build(4, 1000, false, events);
}

/// Events of forty small fragments.
pub(crate) fn many_sources(events: u64) {
    build(40, 64, false, events);
}

/// Events of four fragments of 1 kB, which sources send to the builder that is assigned.
pub(crate) fn pushed(events: u64) {
    build(4, 1000, true, events);
}

fn build(sources: u16, data_bytes: usize, is_pushed: bool, events: u64) {
    let readout: Vec<NodeId> = (FIRST_ROS..FIRST_ROS + sources).map(NodeId).collect();
    let mode = if is_pushed { BuildingMode::PushAssigned } else { BuildingMode::Pull };
    let dfm = DfmParameters { mode, ..dfm(events) };
    let ahead = PushedParameters { window_bytes: WINDOW_BYTES, timeout: Duration::from_secs(2), ahead: BUILDING };
    let sfi = SfiParameters { push: is_pushed.then_some(ahead), ..sfi(&readout, data_bytes) };
    let mut components: Vec<(NodeId, Box<dyn Component + Send>)> =
        vec![(DFM, Box::new(Dfm::new(dfm))), (SFI, Box::new(Sfi::new(sfi)))];
    for &node in &readout {
        let push = is_pushed.then(push);
        components.push((node, Box::new(Ros::new(RosParameters { push, ..ros(node) }))));
    }
    let nothing = Skeleton { strategy: Strategy::None { accept: 0.0 }, robs: Vec::new(), seed: 1 };
    let mut partition = Partition::new(components, readout, nothing, data_bytes);
    partition.start();
    partition.run_until(DFM, |report| {
        let counters = DfmCounters::from_values(&report.counters);
        counters.accepted + counters.abandoned + counters.unrecorded >= events
    });
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
        clear_group: 100,
        clear_age: Duration::from_millis(10),
        clear_after: ClearAfter::Built,
        supervisors_return: false,
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
        pages_per_rob: 1024,
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

fn push() -> PushParameters {
    PushParameters {
        destination: Destination::Assigned,
        sfis: vec![SFI],
        window_bytes: WINDOW_BYTES,
        bytes_per_s: None,
        burst_bytes: 0,
        group: 1,
        group_age: Duration::from_millis(1),
        seed: 1,
    }
}

const DFM: NodeId = NodeId(1);
const SFI: NodeId = NodeId(2);
const FIRST_ROS: u16 = 3;
/// As the benchmark `event-builder` has it.
const BUILDING: usize = 64;
/// Of each source: more than all its fragments of events in building.
const WINDOW_BYTES: u64 = 1 << 20;
