//! Event building: a DFM that triggers itself, one SFI, ROSs with one ROB each.

use std::time::Duration;

use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::{ClearAfter, Dfm, DfmInput, DfmParameters};
use dataflow::building::push_control::BuildingMode;
use dataflow::building::request_credits::CreditPolicy;
use dataflow::building::sfi::{RequestOrder, Sfi, SfiParameters, Source};
use dataflow::component::Component;
use dataflow::ids::{EventId, NodeId};
use dataflow::level1::pace::Spacing;
use dataflow::level2::steering::{Skeleton, Strategy};
use dataflow::readout::ros::{ReadOut, Ros, RosParameters};
use dataflow::report::DfmCounters;

use crate::partition::Partition;

/// Events of four fragments of 1 kB.
pub(crate) fn one_kilobyte(events: u64) {
    build(4, 1000, events);
}

/// Events of forty small fragments.
pub(crate) fn many_sources(events: u64) {
    build(40, 64, events);
}

fn build(sources: u16, data_bytes: usize, events: u64) {
    let readout: Vec<NodeId> = (FIRST_ROS..FIRST_ROS + sources).map(NodeId).collect();
    let mut components: Vec<(NodeId, Box<dyn Component + Send>)> =
        vec![(DFM, Box::new(Dfm::new(dfm(events)))), (SFI, Box::new(Sfi::new(sfi(&readout, data_bytes))))];
    for &node in &readout {
        components.push((node, Box::new(Ros::new(ros(node)))));
    }
    let nothing = Skeleton { strategy: Strategy::None { accept: 0.0 }, robs: Vec::new(), seed: 1 };
    let mut partition = Partition::new(components, readout, nothing, data_bytes);
    partition.start();
    partition.run_until(DFM, |report| {
        let counters = DfmCounters::from_values(&report.counters);
        counters.accepted + counters.abandoned + counters.unrecorded >= events
    });
}

fn dfm(events: u64) -> DfmParameters {
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

fn sfi(readout: &[NodeId], data_bytes: usize) -> SfiParameters {
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

const DFM: NodeId = NodeId(1);
const SFI: NodeId = NodeId(2);
const FIRST_ROS: u16 = 3;
/// As the benchmark `event-builder` has it.
const BUILDING: usize = 64;
