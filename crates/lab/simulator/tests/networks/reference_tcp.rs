//! The model of TCP against a real implementation, smoltcp, over the same simulated Ethernet: its IP packets travel as
//! datagrams of a frame each.

use std::collections::{BTreeMap, VecDeque};

use simulator::engine::{Instant, Queue};
use simulator::network::{Buffer, Fate, Faults, HostId, Message, Network, Protocol, Step, Switch, Tcp, Topology};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant as Moment;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

/// Senders, each with this much to send to the last port at the start.
#[derive(Clone, Copy, Debug)]
struct Case {
    senders: u16,
    len_bytes: u32,
    window_bytes: u32,
    delay_ns: u64,
    receiver_bits_per_s: u64,
    port_bytes: u64,
    /// The next frame to or from the receiver is lost.
    loses_one_at_ms: Option<u64>,
}

impl Case {
    fn topology(&self) -> Topology {
        let mut topology = Topology::star(self.senders + 1);
        topology.ports.iter_mut().for_each(|port| port.link.delay_ns = self.delay_ns);
        topology.ports[usize::from(self.senders)].link.bits_per_s = self.receiver_bits_per_s;
        let buffer = Buffer { shared_bytes: u64::MAX, port_bytes: self.port_bytes, cell_bytes: 1 };
        topology.switches[0] = Switch { buffer, ..Switch::default() };
        // Those of smoltcp: no time stamps, a first window of 2048 bytes, at least a second to a time-out.
        topology.tcp = Tcp {
            header_bytes: 20,
            initial_window_segments: 2,
            receive_window_bytes: self.window_bytes.into(),
            retransmission_timeout_ms_min: 1_000,
            delayed_ack_ms: 10,
        };
        topology
    }

    fn lose_one(&self, network: &mut Network, since_start_ps: u64) {
        let due = self.loses_one_at_ms.is_some_and(|at_ms| since_start_ps >= at_ms * 1_000_000_000);
        let down = due && network.counters().dropped_down == 0;
        network.set_faults(HostId(self.senders), Faults { down, ..Faults::default() });
    }

    /// Seconds until all has come, and frames dropped, by the model.
    fn model(&self) -> (f64, u64) {
        let mut network = Network::new(&self.topology(), 1).unwrap();
        let mut queue: Queue<Step> = Queue::new();
        for sender in 0..self.senders {
            let (from, to) = (HostId(sender), HostId(self.senders));
            let message = Message { from, to, len_bytes: self.len_bytes, protocol: Protocol::Tcp, tag: 0 };
            network.send(&mut queue, message);
        }
        let mut to_come = self.senders;
        while to_come > 0 {
            let step = queue.pop().unwrap();
            self.lose_one(&mut network, queue.now().as_ps());
            network.step(&mut queue, step);
            while network.next_outcome().is_some() {
                to_come -= 1;
            }
        }
        (queue.now().as_ps() as f64 * 1e-12, network.counters().dropped_buffer)
    }

    /// The same by smoltcp; connections are open at the start.
    fn reference(&self) -> (f64, u64) {
        let mut world = World::new(self);
        world.run(|world| world.established());
        let start = world.queue.now();
        for sender in 0..usize::from(self.senders) {
            world.hosts[sender].to_send_bytes = self.len_bytes as usize;
            world.poll(sender);
        }
        let all_bytes = self.len_bytes as usize * usize::from(self.senders);
        world.run(|world| {
            self.lose_one(&mut world.network, world.queue.now() - start);
            world.hosts.last().unwrap().received_bytes == all_bytes
        });
        ((world.queue.now() - start) as f64 * 1e-12, world.network.counters().dropped_buffer)
    }
}

#[derive(Clone, Copy)]
enum Event {
    Network(Step),
    Poll(usize),
}

impl From<Step> for Event {
    fn from(step: Step) -> Self {
        Self::Network(step)
    }
}

struct World {
    network: Network,
    queue: Queue<Event>,
    hosts: Vec<Host>,
    packets: BTreeMap<u64, Vec<u8>>,
    sent: u64,
}

struct Host {
    interface: Interface,
    wire: Wire,
    sockets: SocketSet<'static>,
    handles: Vec<SocketHandle>,
    to_send_bytes: usize,
    received_bytes: usize,
    wakes_at: Option<Instant>,
}

impl World {
    fn new(case: &Case) -> Self {
        let mut topology = case.topology();
        topology.udp_header_bytes = 0;
        let network = Network::new(&topology, 1).unwrap();
        let hosts = (0..=case.senders).map(|number| Host::new(number, case)).collect();
        let mut world = Self { network, queue: Queue::new(), hosts, packets: BTreeMap::new(), sent: 0 };
        (0..world.hosts.len()).rev().for_each(|host| world.poll(host));
        world
    }

    fn established(&self) -> bool {
        let open = |host: &Host| host.handles.iter().all(|handle| host.sockets.get::<Socket<'_>>(*handle).may_send());
        self.hosts.iter().all(open)
    }

    fn run(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        while !done(self) {
            match self.queue.pop().expect("something happens until all has come") {
                Event::Network(step) => {
                    self.network.step(&mut self.queue, step);
                    while let Some(outcome) = self.network.next_outcome() {
                        let packet = self.packets.remove(&outcome.tag).unwrap();
                        if outcome.fate == Fate::Delivered {
                            let host = usize::from(outcome.to.0);
                            self.hosts[host].wire.received.push_back(packet);
                            self.poll(host);
                        }
                    }
                }
                Event::Poll(host) => {
                    if self.hosts[host].wakes_at == Some(self.queue.now()) {
                        self.poll(host);
                    }
                }
            }
        }
    }

    /// Lets a host do what it can now, and sends its packets.
    fn poll(&mut self, number: usize) {
        let now = self.queue.now();
        let moment = Moment::from_micros((now.as_ps() / PS_PER_US) as i64);
        let host = &mut self.hosts[number];
        host.poll(moment);
        let wakes_in = host.interface.poll_delay(moment, &host.sockets);
        host.wakes_at = wakes_in.map(|wait| now + wait.total_micros().max(1) * PS_PER_US);
        if let Some(at) = host.wakes_at {
            self.queue.at(at, Event::Poll(number));
        }
        for packet in std::mem::take(&mut host.wire.sent) {
            let (from, to) = (HostId(number as u16), HostId(u16::from(packet[19]) - 1));
            let len_bytes = packet.len() as u32 - IP_HEADER_BYTES;
            let message = Message { from, to, len_bytes, protocol: Protocol::Udp, tag: self.sent };
            self.packets.insert(self.sent, packet);
            self.sent += 1;
            self.network.send(&mut self.queue, message);
        }
    }
}

impl Host {
    /// The last host listens, the others connect to it.
    fn new(number: u16, case: &Case) -> Self {
        let mut wire = Wire::default();
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut wire, Moment::ZERO);
        interface.update_ip_addrs(|addresses| addresses.push(IpCidr::new(address(number), 24)).unwrap());
        let mut sockets = SocketSet::new(Vec::new());
        let listens = number == case.senders;
        let handles = (0..if listens { case.senders } else { 1 }).map(|peer| {
            let buffer = || SocketBuffer::new(vec![0; case.window_bytes as usize]);
            let sending = SocketBuffer::new(vec![0; case.len_bytes as usize]);
            let mut socket = if listens { Socket::new(buffer(), buffer()) } else { Socket::new(buffer(), sending) };
            socket.set_congestion_control(CongestionControl::Reno);
            socket.set_nagle_enabled(false);
            if listens {
                socket.listen(FIRST_PORT + peer).unwrap();
            } else {
                let remote = (address(case.senders), FIRST_PORT + number);
                socket.connect(interface.context(), remote, FIRST_PORT).unwrap();
            }
            sockets.add(socket)
        });
        let handles = handles.collect();
        Self { interface, wire, sockets, handles, to_send_bytes: 0, received_bytes: 0, wakes_at: None }
    }

    fn poll(&mut self, now: Moment) {
        for _ in 0..2 {
            self.interface.poll(now, &mut self.wire, &mut self.sockets);
            for handle in &self.handles {
                let socket = self.sockets.get_mut::<Socket<'_>>(*handle);
                if self.to_send_bytes > 0 && socket.can_send() {
                    self.to_send_bytes -= socket.send_slice(&vec![7; self.to_send_bytes]).unwrap();
                }
                while socket.can_recv() {
                    self.received_bytes += socket.recv(|bytes| (bytes.len(), bytes.len())).unwrap();
                }
            }
        }
    }
}

fn address(number: u16) -> IpAddress {
    IpAddress::v4(10, 0, 0, number as u8 + 1)
}

#[derive(Default)]
struct Wire {
    received: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

impl Device for Wire {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _: Moment) -> Option<(Arrived, Leaving<'_>)> {
        let packet = self.received.pop_front()?;
        Some((Arrived(packet), Leaving(&mut self.sent)))
    }

    fn transmit(&mut self, _: Moment) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

struct Arrived(Vec<u8>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Leaving<'a>(&'a mut Vec<Vec<u8>>);

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = vec![0; len];
        let result = write(&mut packet);
        self.0.push(packet);
        result
    }
}

const PS_PER_US: u64 = 1_000_000;
const IP_HEADER_BYTES: u32 = 20;
const FIRST_PORT: u16 = 1000;

const QUIET: Case = Case {
    senders: 1,
    len_bytes: 2_000_000,
    window_bytes: 65_535,
    delay_ns: 100,
    receiver_bits_per_s: 1_000_000_000,
    port_bytes: u64::MAX,
    loses_one_at_ms: None,
};

fn ratio(case: Case) -> f64 {
    let (model, reference) = (case.model(), case.reference());
    println!("{case:?}: model {model:?}, reference {reference:?}");
    model.0 / reference.0
}

#[test]
fn without_losses_the_model_takes_as_long_as_a_real_tcp() {
    for case in [
        QUIET,
        Case { receiver_bits_per_s: 100_000_000, ..QUIET },
        Case { senders: 8, len_bytes: 200_000, ..QUIET },
        Case { senders: 20, len_bytes: 40_000, ..QUIET },
    ] {
        assert!((0.98..1.02).contains(&ratio(case)), "{case:?}");
    }
}

/// The window of smoltcp grows by a segment with each acknowledgement, that of the model by the acknowledged bytes [RFC
/// 3465], as in Linux. Over long ways it is open sooner.
#[test]
fn over_a_long_way_both_are_limited_by_the_window() {
    assert!((0.85..1.0).contains(&ratio(Case { delay_ns: 2_500_000, ..QUIET })));
}

#[test]
fn a_lost_segment_costs_a_round_trip_and_no_time_out() {
    for loses_one_at_ms in [4, 40, 90] {
        let case = Case { receiver_bits_per_s: 100_000_000, loses_one_at_ms: Some(loses_one_at_ms), ..QUIET };
        assert!((0.95..1.05).contains(&ratio(case)), "{case:?}");
        assert!(case.model().0 < 0.2, "{case:?}");
    }
}

/// Both lose a comparable number of segments. Then smoltcp waits for a time-out where the model, with the partial
/// acknowledgements of NewReno, may get through without.
#[test]
fn incast_overflows_the_same_buffers() {
    for case in [
        Case { senders: 16, len_bytes: 100_000, port_bytes: 100_000, ..QUIET },
        Case { senders: 32, len_bytes: 37_500, port_bytes: 65_536, ..QUIET },
    ] {
        let (model, reference) = (case.model(), case.reference());
        println!("{case:?}: model {model:?}, reference {reference:?}");
        assert!((0.5..2.0).contains(&(model.1 as f64 / reference.1 as f64)), "{case:?}");
        assert!(model.0 > 1.0 && reference.0 > 1.0, "{case:?}");
    }
}
