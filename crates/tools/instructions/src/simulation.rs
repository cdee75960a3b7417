//! The simulator: event building by four builders from forty read-out systems of ten links each, over Ethernet. It has
//! datagrams as in `scenarios/eb2007-full.toml`, and costs of that order. An event makes [`INPUTS_PER_EVENT`] inputs of
//! components, most of them fragments, as there.

use dataflow::work_kind::WorkKind;
use std::collections::BTreeSet;
use std::time::Duration;

use assembly::Assembly;
use base::bulk::Bulk;
use base::ids::{Incarnation, NodeId, Role, RunNumber};
use configuration::{Dfm, Partition as Configuration, Rate, Ros, Sfi};
use dataflow::component::{Processed, Steer, Steered};
use dataflow::message::{BuiltEvent, EventInfo, Recording};
use simulator::network::{HostId, Network, Topology};
use simulator::world::{
    Cost, Costs, Course, Datagrams, Detectors, Effort, Ethernet, Hosts, Links, Outside, Place, Setup, Wire, World,
};

use crate::building;

/// Events of four hundred fragments of 900 bytes.
pub(crate) fn event_building(events: u64) {
    let outcomes = World::new(setup(events)).run();
    assert!(outcomes.ending.reasons.is_empty(), "{:?}", outcomes.ending.reasons);
    assert_eq!((outcomes.account.residual, outcomes.account.built_incomplete), (0, 0));
    assert!(outcomes.account.built_complete >= events, "{:?}", outcomes.account);
    assert!(outcomes.inputs >= events * INPUTS_PER_EVENT, "{} inputs of {events} events", outcomes.inputs);
}

fn setup(events: u64) -> Setup {
    let assembly = assembly();
    let (applications, readout) = (assembly.applications.clone(), assembly.readout());
    let count = applications.len();
    let topology = Topology::star(count as u16);
    let network = Network::new(&topology, 1).expect("a star can be built");
    let ports = (0..count as u16).map(HostId).collect();
    let datagrams = Datagrams { event_request: true, event_reply: true, clear: true, ..Datagrams::default() };
    Setup {
        seed: 1,
        run: RunNumber(1),
        applications,
        readout,
        components: Box::new(move |node, _: Incarnation| assembly.component(node, None)),
        outside: Box::new(Outsiders),
        detectors: Detectors::default(),
        hosts: Hosts::separate(count),
        costs: costs(),
        driver: None,
        wire: Wire::Ethernet(Box::new(Ethernet::new(network, ports, datagrams))),
        handover: Duration::from_nanos(500),
        one_by_one: false,
        fragment_faults: Links::perfect(),
        // The last events are triggered and drained.
        course: Course {
            duration: Some(INTERVAL * u32::try_from(events).expect("few events")),
            ..Course::calm(Duration::from_secs(1))
        },
        time_to_connect: Duration::from_millis(1),
        planted: None,
        checks: false,
        withheld: BTreeSet::new(),
        steps_max: u64::MAX,
    }
}

fn assembly() -> Assembly {
    let built = building::configuration(ROSS, usize::from(LINKS) * DATA_BYTES);
    let robs = (0..ROSS).map(|ros| (0..u32::from(LINKS)).map(|link| ros << 8 | link).collect()).collect();
    let configuration = Configuration {
        ros: Ros { robs: LINKS.into(), ..built.ros },
        dfm: Dfm { rate: Some(Rate::from_millihertz(1_000_000 / INTERVAL.as_millis() as u64)), ..built.dfm },
        sfi: Sfi { count: SFIS, outstanding_requests: 20, ..built.sfi },
        ..built
    };
    Assembly::new(configuration, robs)
}

fn costs() -> Costs {
    let mut costs = Costs::none();
    let cost = |each_ns, kibibyte_ns| Cost { each_ns, message_ns: 0, kibibyte_ns };
    costs.set(Role::Sfi, WorkKind::EventReply, cost(6_000, 4_100));
    costs.set(Role::Ros, WorkKind::EventRequest, cost(45_000, 0));
    costs
}

/// Fragments; nothing else is asked for.
struct Outsiders;

impl Outside for Outsiders {
    fn fragment(&mut self, _: NodeId, _: u16, event: &EventInfo) -> Bulk {
        Bulk::Modelled { len_bytes: DATA_BYTES as u32, seed: event.ordinal as u32 }
    }

    fn steer(&mut self, _: NodeId, steer: &Steer) -> Steered {
        unreachable!("there is no level 2: {steer:?}")
    }

    fn process(&mut self, built: &BuiltEvent) -> Option<Processed> {
        unreachable!("there is no event filter: {built:?}")
    }

    fn links(&self, _: NodeId) -> u16 {
        LINKS
    }

    fn record(&mut self, _: NodeId, recording: &Recording) -> bool {
        unreachable!("there is no recorder: {recording:?}")
    }

    fn effort(&mut self, _: Duration, work: Effort<'_>) -> (Duration, Place) {
        unreachable!("nobody works on events: {work:?}")
    }
}

/// Of each read-out system the request, the fragments and the end of reading them out; the replies at the builder.
const INPUTS_PER_EVENT: u64 = ROSS as u64 * (LINKS as u64 + 3);
const SFIS: u32 = 4;
const ROSS: u32 = 40;
const LINKS: u16 = 10;
const DATA_BYTES: usize = 900;
/// What four builders take over Gigabit Ethernet, and some time to spare.
const INTERVAL: Duration = Duration::from_millis(2);
