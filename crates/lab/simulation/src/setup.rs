//! From a configuration to a world.

use dataflow::work_kind::WorkKind;
use std::collections::BTreeSet;
use std::time::Duration;

use base::ids::{Incarnation, NodeId, Role};
use configuration::{
    Connections, FaultKind, InputCost, Layout, MessageType, Partition, SimulatedFault, Simulation, Transport, Way,
};
use control::controller::Application;
use rol::Inputs;
use simulator::network::{Buffer, HostId, Link, Network, Port, Switch, SwitchId, Tcp, Topology, Trunk};
use simulator::world::{
    Carrying, Cost, Costs, Course, Datagrams, Driver, Ethernet, Fault, Hosts, Links, Setup, Strays, Wire,
};
use transport::idle::IdleStrategy;

use super::SimulationError;
use super::content::Content;
use super::outside::{Level2, Surroundings};
use super::sources::detectors;
use super::tasks::Tasks;
use driver::{SHM_BATCH, SLICES_BATCH};
use partition::Assembly;
use partition::idle;

/// The world of a partition.
pub(super) fn setup(assembly: Assembly, inputs: Inputs) -> Result<Setup, SimulationError> {
    let partition = &assembly.partition;
    let simulation = partition.simulation.clone().unwrap_or_default();
    if simulation.driver.is_some() && simulation.layout == Layout::Farm {
        return Err(SimulationError::DriverOnFarm);
    }
    let outside = outside(&assembly, &simulation, &inputs)?;
    let (applications, readout) = (assembly.applications.clone(), assembly.readout());
    let (run, seed) = (assembly.run(), partition.run.seed);
    let course = Course {
        duration: partition.run.duration.map(configuration::Interval::duration),
        faults: simulation.fault.iter().flat_map(|wanted| faults(wanted, &applications)).collect(),
        ..Course::calm(partition.run.stop_timeout.duration())
    };
    Ok(Setup {
        seed,
        run,
        detectors: detectors(&assembly),
        hosts: hosts(&simulation, &assembly)?,
        costs: costs(&simulation, partition.l2pu.is_some())?,
        driver: simulation.driver.as_ref().map(|costs| driver(costs, partition)),
        wire: wire(&assembly, &simulation)?,
        handover: simulation.handover.duration(),
        one_by_one: false,
        fragment_faults: Links::perfect(),
        course,
        time_to_connect: Duration::from_millis(1),
        planted: None,
        checks: false,
        withheld: BTreeSet::new(),
        steps_max: u64::MAX,
        outside: Box::new(outside),
        components: Box::new(move |node: NodeId, life: Incarnation| {
            let triggers = inputs.triggers().filter(|_| assembly.application(node).is_some_and(is_level1));
            assembly.parameters(node, life.0 > 0).component(triggers)
        }),
        applications,
        readout,
    })
}

fn is_level1(app: &Application) -> bool {
    app.role == Role::Level1
}

fn outside(assembly: &Assembly, simulation: &Simulation, inputs: &Inputs) -> Result<Surroundings, SimulationError> {
    let partition = &assembly.partition;
    Ok(Surroundings {
        content: Content::new(assembly, inputs)?,
        level2: Level2::new(assembly),
        tasks: Tasks::new(partition)?,
        steering: partition.l2pu.as_ref().map_or(Duration::ZERO, |l2pu| l2pu.cost.duration()),
        processing: simulation.processing.duration(),
        disk_bytes_per_s: simulation.disk_per_s.map(configuration::Size::bytes),
    })
}

fn hosts(simulation: &Simulation, assembly: &Assembly) -> Result<Hosts, SimulationError> {
    let (cores, count) = (simulation.cores, assembly.applications.len());
    let bound = assembly.partition.bound();
    let of_each = assembly.applications.iter().zip(&bound).filter_map(|(app, core)| Some((app.node, (*core)?)));
    if let Some((node, core)) = of_each.into_iter().find(|(_, core)| *core >= cores)
        && matches!(simulation.layout, Layout::Processes | Layout::Hosts)
    {
        let key = assembly.partition.key_of_cores(assembly.host_of(node));
        return Err(SimulationError::Core { key, core, cores });
    }
    let separate = Hosts::separate(count);
    Ok(match simulation.layout {
        Layout::Process => {
            Hosts { cores: vec![cores], processes: vec![0], applications: vec![0; count], bound: vec![None] }
        }
        Layout::Processes => Hosts { cores: vec![cores], processes: vec![0; count], bound, ..separate },
        Layout::Hosts => {
            let hosts = assembly.partition.host.len();
            Hosts { cores: vec![cores; hosts], processes: host_of_each(assembly), bound, ..separate }
        }
        Layout::Farm => Hosts { cores: vec![cores; count], ..separate },
    })
}

/// In the order of the applications.
fn host_of_each(assembly: &Assembly) -> Vec<usize> {
    assembly.applications.iter().map(|app| assembly.host_of(app.node).expect("checked: hosts have all")).collect()
}

/// What a process costs does not depend on where its peers are.
pub(super) fn metered_as(layout: Layout) -> Layout {
    if layout == Layout::Hosts { Layout::Processes } else { layout }
}

/// The table of costs: what is configured, behind the defaults.
fn costs(simulation: &Simulation, level2: bool) -> Result<Costs, SimulationError> {
    let mut costs = Costs::none();
    let here = metered_as(simulation.layout);
    let is_for_us = |cost: &&InputCost| {
        cost.layout.is_none_or(|layout| layout == here) && cost.level2.is_none_or(|with| with == level2)
    };
    for wanted in simulation.cost.iter().filter(is_for_us) {
        let (each_ns, message_ns) = (ns(wanted.each), ns(wanted.message));
        let cost = Cost { each_ns, message_ns, kibibyte_ns: ns(wanted.per_kib) };
        if !wanted.input.is_empty() && WorkKind::ALL.into_iter().all(|kind| kind.name() != wanted.input) {
            let expected = WorkKind::ALL.map(WorkKind::name).join(", ");
            return Err(SimulationError::Cost { found: wanted.input.clone(), expected });
        }
        for role in Role::IN_DRAIN_ORDER.into_iter().filter(|role| fits(&wanted.role, role.stem())) {
            for kind in WorkKind::ALL.into_iter().filter(|kind| fits(&wanted.input, kind.name())) {
                costs.set(role, kind, cost);
            }
        }
    }
    Ok(costs)
}

fn ns(interval: configuration::Interval) -> u32 {
    u32::try_from(interval.ns()).unwrap_or(u32::MAX)
}

/// What drivers cost, and that they wait as the partition has them wait.
fn driver(costs: &configuration::Driver, partition: &Partition) -> Driver {
    let (spins, yields) = match idle(partition) {
        IdleStrategy::Spin => (true, Duration::ZERO),
        IdleStrategy::Yield => (false, FOR_EVER),
        IdleStrategy::Park { yield_for } => (false, yield_for),
        IdleStrategy::Paced { .. } => unreachable!("no configuration asks for it"),
    };
    // The time of the world has an end.
    let of = |interval: configuration::Interval| interval.duration().min(FOR_EVER);
    let carrying = |costs: &configuration::Carrying| Carrying {
        encode: of(costs.encode),
        decode: of(costs.decode),
        read: of(costs.read),
        read_kib: of(costs.read_kib),
        write: of(costs.write),
        write_kib: of(costs.write_kib),
        far: of(costs.far),
        far_kib: of(costs.far_kib),
    };
    let over_tcp = carrying(&costs.over_tcp());
    let shared = costs.shm.as_ref().filter(|_| partition.transport.connections == Connections::Shm);
    Driver {
        pass: of(costs.pass),
        pass_component: of(costs.pass_component),
        pass_connection: of(costs.pass_connection),
        local: of(costs.local),
        connections: shared.map_or(over_tcp, carrying),
        datagrams: costs.udp.as_ref().map_or(over_tcp, carrying),
        latency: of(costs.latency),
        wake: of(costs.wake),
        sleep: of(costs.sleep),
        switch: of(costs.switch),
        spins,
        yields,
        slice: of(costs.slice),
        batch_bytes: Some(if shared.is_some() { SHM_BATCH } else { SLICES_BATCH } as u64),
    }
}

fn fits(wanted: &str, name: &str) -> bool {
    wanted.is_empty() || wanted == name
}

fn wire(assembly: &Assembly, simulation: &Simulation) -> Result<Wire, SimulationError> {
    let (applications, partition) = (&assembly.applications[..], &assembly.partition);
    let (transport, seed) = (&partition.transport, partition.run.seed);
    let farm = simulation.layout == Layout::Farm;
    // On one host all share its port. Where there is no other, no message leaves it.
    let host_of: Vec<usize> = match simulation.layout {
        Layout::Farm => (0..applications.len()).collect(),
        Layout::Hosts => host_of_each(assembly),
        Layout::Process | Layout::Processes => vec![0; applications.len()],
    };
    let ports: Vec<HostId> = host_of.iter().map(|host| HostId(*host as u16)).collect();
    let second: Vec<&Application> =
        applications.iter().filter(|app| farm && is_one_of(&simulation.second_port_roles, app)).collect();
    let hosts = 1 + host_of.into_iter().max().unwrap_or(0);
    let topology = topology(simulation, applications, hosts, second.len());
    let mut network = Network::new(&topology, seed)?;
    let faults = simulator::network::Faults {
        loss: simulation.frame_loss.as_f64(),
        damage: simulation.frame_corruption.as_f64(),
        duplication: simulation.frame_duplication.as_f64(),
        jitter_ns: simulation.frame_jitter.ns(),
        delay: simulation.frame_delay.as_f64(),
        delay_ns: simulation.frame_delay_max.ns(),
        down: false,
    };
    if faults != (simulator::network::Faults { delay_ns: faults.delay_ns, ..Default::default() }) {
        topology.hosts().for_each(|host| network.set_faults(host, faults));
    }
    let strays = Strays { stale: simulation.message_stale.as_f64(), wrong_run: simulation.message_wrong_run.as_f64() };
    let ethernet = Ethernet::new(network, ports, datagrams(transport)).with_strays(strays);
    // On a farm, triggers come over links of their own.
    let level1 = applications.iter().find(|app| farm && is_level1(app));
    let ethernet = level1.into_iter().fold(ethernet, |ethernet, app| ethernet.with_direct(app.node));
    let second = second.into_iter().zip(applications.len()..);
    let ethernet =
        second.fold(ethernet, |ethernet, (app, port)| ethernet.with_second_port(app.node, HostId(port as u16)));
    Ok(Wire::Ethernet(Box::new(ethernet)))
}

fn datagrams(transport: &Transport) -> Datagrams {
    let in_datagrams = |of| matches!(transport.way(of), Way::Udp | Way::Multicast);
    Datagrams {
        event_request: in_datagrams(MessageType::EventRequest),
        event_reply: in_datagrams(MessageType::EventReply),
        pushed: in_datagrams(MessageType::Pushed),
        credit: in_datagrams(MessageType::Credit),
        push: in_datagrams(MessageType::Push),
        roi_request: in_datagrams(MessageType::RoiRequest),
        roi_reply: in_datagrams(MessageType::RoiReply),
        collected: in_datagrams(MessageType::Collected),
        clear: in_datagrams(MessageType::Clear),
    }
}

fn is_one_of(roles: &[String], app: &Application) -> bool {
    roles.iter().any(|role| role == app.role.stem())
}

/// A port for each host, then second ones at the central switch. On a farm edge switches have the hosts of some roles.
fn topology(simulation: &Simulation, applications: &[Application], hosts: usize, second_ports: usize) -> Topology {
    let delay_ns = CABLE_DELAY_NS;
    let link = |mbit: u32| Link { bits_per_s: u64::from(mbit) * 1_000_000, delay_ns };
    let switch = Switch {
        latency_ns: simulation.switch_latency.ns(),
        buffer: Buffer {
            shared_bytes: simulation.switch_buffer.bytes(),
            port_bytes: simulation.port_buffer.bytes(),
            cell_bytes: 1,
        },
    };
    let is_edge = |app: &Application| {
        let two_level = simulation.topology == configuration::Topology::TwoLevel && simulation.layout == Layout::Farm;
        two_level && is_one_of(&simulation.edge_roles, app)
    };
    let mut at_edge = 0;
    let ports = applications.iter().take(hosts).map(|app| {
        let mut switch = SwitchId(0);
        if is_edge(app) {
            switch = SwitchId(1 + (at_edge / simulation.edge_hosts) as u16);
            at_edge += 1;
        }
        Port { switch, link: link(simulation.link_mbit_per_s) }
    });
    let second_port = Port { switch: SwitchId(0), link: link(simulation.link_mbit_per_s) };
    let ports: Vec<Port> = ports.chain(std::iter::repeat_n(second_port, second_ports)).collect();
    let edges = at_edge.div_ceil(simulation.edge_hosts) as u16;
    let trunks = (1..=edges).map(|edge| Trunk {
        one: SwitchId(0),
        other: SwitchId(edge),
        link: link(simulation.trunk_mbit_per_s),
        cables: simulation.trunk_cables as u16,
    });
    let switches = vec![switch; usize::from(edges) + 1];
    let udp_header_bytes = simulation.datagram_header;
    let tcp = Tcp { receive_window_bytes: simulation.tcp_window.bytes(), ..Tcp::default() };
    Topology { mtu_bytes: simulation.mtu, udp_header_bytes, tcp, ..Topology::new(ports, switches, trunks.collect()) }
}

/// One for each application, but for what parts them from the others together.
fn faults(wanted: &SimulatedFault, applications: &[Application]) -> Vec<(Duration, Fault)> {
    let node = |name: &str| {
        let application = applications.iter().find(|app| app.name == name);
        application.expect("checked: faults name applications").node
    };
    let nodes: Vec<NodeId> = wanted.struck().map(node).collect();
    let (at, lasts) = (wanted.at.duration(), wanted.lasts.duration());
    if wanted.kind == FaultKind::NetworkPartition {
        return vec![(at, Fault::Split(nodes, lasts))];
    }
    let each = |node| match wanted.kind {
        FaultKind::Kill => Fault::Kill(node),
        FaultKind::Restart => Fault::Restart(node, lasts),
        FaultKind::Hang => Fault::Hang(node),
        FaultKind::CutOff | FaultKind::NetworkPartition => Fault::Split(vec![node], lasts),
        FaultKind::Slow => Fault::Slow { node, each: wanted.each.duration(), lasts },
        FaultKind::ClockStep => Fault::ClockStep(node, lasts),
        FaultKind::FullDisk => Fault::FullDisk(node, lasts),
    };
    nodes.into_iter().map(|node| (at, each(node))).collect()
}

/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(1_000_000);
/// 20 m of cable.
const CABLE_DELAY_NS: u64 = 100;
