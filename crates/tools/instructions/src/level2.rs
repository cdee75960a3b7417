//! Level 2: level 1, a supervisor that clears the read-out itself, L2PUs with two steps of data requests, ROSs.

use std::time::Duration;

use base::ids::{EventId, NodeId};
use dataflow::component::Component;
use dataflow::level1::kept::Keep;
use dataflow::level1::pace::Spacing;
use dataflow::level1::trigger::{Level1, Level1Parameters, Trigger, TriggerInput, TriggerSource};
use dataflow::level2::l2pu::{L2pu, L2puParameters};
use dataflow::level2::l2sv::{L2puAssignment, L2sv, L2svParameters};
use dataflow::level2::overrides::Overrides;
use dataflow::level2::steering::{Skeleton, Strategy};
use dataflow::message::Roi;
use dataflow::readout::ros::{ReadOut, Ros, RosParameters};
use dataflow::report::L2svCounters;

use crate::building;
use crate::partition::Partition;

/// Each step asks for two ROBs and rejects nine of ten events.
pub(crate) fn two_step(events: u64) {
    let level1 = level1(events, ROSS.to_vec(), vec![L2SV], Keep::Nothing);
    let mut components: Vec<(NodeId, Box<dyn Component + Send>)> = vec![
        (LEVEL1, Box::new(Level1::new(level1, TriggerInput::Source(Box::new(Triggers))))),
        (L2SV, Box::new(L2sv::new(l2sv()))),
    ];
    for node in L2PUS {
        components.push((node, Box::new(L2pu::new(l2pu()))));
    }
    for node in ROSS {
        let parameters = RosParameters {
            read_out: ReadOut::OnTrigger,
            level1: Some(LEVEL1),
            in_flight: IN_FLIGHT,
            dfm: L2SV,
            ..building::ros(node)
        };
        components.push((node, Box::new(Ros::new(parameters))));
    }
    let strategy = Strategy::TwoStep { robs_per_step: 2, step_accept: 0.1 };
    let robs = ROSS.map(|node| u32::from(node.0)).to_vec();
    let steering = Skeleton { strategy, robs, seed: 1 };
    let mut partition = Partition::new(components, ROSS.to_vec(), steering, 64, building::PAGES_PER_ROB);
    partition.start();
    partition.run_until(L2SV, |report| {
        let counters = L2svCounters::from_values(&report.counters);
        counters.accepted + counters.rejected >= events
    });
}

struct Triggers;

impl TriggerSource for Triggers {
    fn trigger(&mut self, _: u64) -> Option<Trigger> {
        Some(Trigger { rois: vec![Roi::default(); 2], ..Trigger::default() })
    }
}

pub(crate) fn level1(events: u64, readout: Vec<NodeId>, deciders: Vec<NodeId>, keep: Keep) -> Level1Parameters {
    Level1Parameters {
        readout,
        deciders,
        keep,
        listeners: Vec::new(),
        first: EventId(0),
        limit: Some(events),
        spacing: Spacing::Unlimited,
        profile: Vec::new(),
        crossings: None,
        in_flight: IN_FLIGHT,
        seed: 1,
    }
}

fn l2sv() -> L2svParameters {
    L2svParameters {
        level1: LEVEL1,
        l2pus: L2PUS.to_vec(),
        share: WORKERS,
        dfm: None,
        supervisors: 1,
        overrides: Overrides::default(),
        assignment: L2puAssignment::RoundRobin,
        events_in_system: IN_FLIGHT as usize,
        timeout: Duration::from_secs(10),
        forced_limit: 0.1,
        group: 100,
        group_age: Duration::from_millis(10),
        in_flight: IN_FLIGHT,
        returns: false,
        seed: 1,
    }
}

fn l2pu() -> L2puParameters {
    L2puParameters {
        workers: WORKERS,
        ros_of_rob: ROSS.map(|node| (u32::from(node.0), node)).to_vec(),
        pros: None,
        overrides: Overrides::default(),
        sink: None,
        builder: None,
        request_timeout: Duration::from_secs(2),
        retries: 2,
    }
}

const LEVEL1: NodeId = NodeId(1);
const L2SV: NodeId = NodeId(2);
const L2PUS: [NodeId; 2] = [NodeId(3), NodeId(4)];
const ROSS: [NodeId; 4] = [NodeId(5), NodeId(6), NodeId(7), NodeId(8)];
const WORKERS: usize = 64;
const IN_FLIGHT: u64 = 128;
