//! Ethernet: times and rates against arithmetic, order, losses, the account of every message, repeatability.

use std::collections::{BTreeMap, VecDeque};

use base::random::Random;
use proptest::prelude::*;
use simulator::engine::{Instant, Queue};
use simulator::network::{
    Buffer, Cause, Fate, Faults, Group, HostId, Link, Message, Network, Outcome, Port, Protocol, Step, Switch,
    SwitchId, Topology, TopologyError, Trunk,
};

/// A network and what it has done.
struct Bench {
    network: Network,
    queue: Queue<Step>,
    outcomes: Vec<(Instant, Outcome)>,
}

impl Bench {
    fn new(topology: &Topology) -> Self {
        Self { network: Network::new(topology, 1).unwrap(), queue: Queue::new(), outcomes: Vec::new() }
    }

    fn send(&mut self, protocol: Protocol, from: u16, to: u16, len_bytes: u32, tag: u64) {
        let message = Message { from: HostId(from), to: HostId(to), len_bytes, protocol, tag };
        self.network.send(&mut self.queue, message);
        self.collect();
    }

    /// Lets time pass until nothing happens any more, or `outcomes` more messages have ended.
    fn run(&mut self, outcomes: usize) {
        let until = self.outcomes.len().saturating_add(outcomes);
        while self.outcomes.len() < until
            && let Some(step) = self.queue.pop()
        {
            self.network.step(&mut self.queue, step);
            self.collect();
        }
    }

    fn drain(&mut self) {
        self.run(usize::MAX);
        assert!(self.network.is_idle());
    }

    fn collect(&mut self) {
        let now = self.queue.now();
        self.outcomes.extend(std::iter::from_fn(|| self.network.next_outcome()).map(|outcome| (now, outcome)));
    }

    fn fates(&self) -> Vec<Fate> {
        self.outcomes.iter().map(|(_, outcome)| outcome.fate).collect()
    }
}

#[test]
fn a_frame_takes_the_time_of_two_links_and_a_switch() {
    let mut bench = Bench::new(&Topology::star(2));
    bench.send(Protocol::Udp, 0, 1, 1000, 7);
    bench.drain();
    // 1000 bytes, headers of datagram 48, IP 20, Ethernet 18, preamble and gap 20; 8 ns a byte; 100 ns of cable.
    let link_ns = (1000 + 48 + 20 + 18 + 20) * 8 + 100;
    assert_eq!(bench.outcomes[0].0, Instant::from_ns(2 * link_ns + 5_000));
    assert_eq!(
        bench.outcomes[0].1,
        Outcome { tag: 7, from: HostId(0), to: HostId(1), fate: Fate::Delivered, more: false }
    );
}

#[test]
fn datagrams_fill_gigabit_ethernet_to_its_theoretical_rate() {
    let mut topology = Topology::star(2);
    topology.udp_header_bytes = 8;
    let mut bench = Bench::new(&topology);
    (0..100).for_each(|tag| bench.send(Protocol::Udp, 0, 1, 147_200, tag));
    bench.drain();
    let bytes_per_s = 100.0 * 147_200.0 / (bench.queue.now().as_ps() as f64 * 1e-12);
    // A frame of 1538 bytes on the wire carries 1472.
    let theory = 125e6 * 1472.0 / 1538.0;
    assert!((bytes_per_s / theory - 1.0).abs() < 2e-3, "{bytes_per_s} of {theory}");
}

#[test]
fn tcp_fills_gigabit_ethernet_to_its_theoretical_rate() {
    let mut bench = Bench::new(&Topology::star(2));
    (0..1000).for_each(|tag| bench.send(Protocol::Tcp, 0, 1, 144_800, tag));
    bench.run(1000);
    let bytes_per_s = 1000.0 * 144_800.0 / (bench.queue.now().as_ps() as f64 * 1e-12);
    let theory = 125e6 * 1448.0 / 1538.0;
    assert!((0.99..1.0).contains(&(bytes_per_s / theory)), "{bytes_per_s} of {theory}");
    let counters = bench.network.counters();
    assert_eq!((counters.tcp_timeouts, counters.tcp_fast_retransmits), (0, 0));
    let tags: Vec<u64> = bench.outcomes.iter().map(|(_, outcome)| outcome.tag).collect();
    assert!(tags.is_sorted());
}

/// Many senders at once to one receiver: datagrams that find no room are lost, TCP sends them again [EB2007 §II-B.3].
#[test]
fn incast_overflows_a_buffer() {
    let mut topology = Topology::star(33);
    topology.switches[0].buffer.port_bytes = 64 << 10;
    let send = |protocol| {
        let mut bench = Bench::new(&topology);
        (0..32).for_each(|from| bench.send(protocol, from, 32, 37_500, from.into()));
        bench.drain();
        bench
    };
    let udp = send(Protocol::Udp);
    let lost = udp.fates().iter().filter(|fate| **fate == Fate::Lost(Cause::Buffer)).count();
    assert!((16..=32).contains(&lost), "{lost} of 32");
    let tcp = send(Protocol::Tcp);
    assert_eq!(tcp.fates(), vec![Fate::Delivered; 32]);
    let counters = tcp.network.counters();
    assert!(counters.dropped_buffer > 0 && counters.tcp_timeouts > 0, "{counters:?}");
    // A time-out of 200 ms, where 32 messages need 10 ms without a loss: the collapse that request credits prevent.
    let last = tcp.outcomes.last().unwrap().0;
    assert!(last > Instant::from_ns(200_000_000), "{last}");
}

#[test]
fn a_shared_buffer_is_given_out_in_cells() {
    let at_most = |cell_bytes, frame_bytes: u64| {
        let mut topology = Topology::star(9);
        topology.switches[0].buffer = Buffer { shared_bytes: 8 * 256, port_bytes: u64::MAX, cell_bytes };
        let mut bench = Bench::new(&topology);
        // All frames come at once from 8 ports.
        (0..8).for_each(|from| bench.send(Protocol::Udp, from, 8, frame_bytes as u32 - 86, from.into()));
        bench.drain();
        bench.fates().iter().filter(|fate| **fate == Fate::Delivered).count()
    };
    assert_eq!(at_most(1, 256), 8);
    assert_eq!(at_most(1, 300), 6);
    assert_eq!(at_most(256, 300), 4);
}

/// Frames to one output, from many inputs at random: the wait is that of the M/D/1 queue, ρ/(2(1-ρ)) frames.
#[test]
fn an_output_queue_waits_as_theory_says() {
    for load in [0.5, 0.8] {
        let (inputs, frame_ns) = (200, 1000.0_f64 * 8.0);
        let fast = Port { switch: SwitchId(0), link: Link { bits_per_s: 1_000_000_000_000, delay_ns: 0 } };
        let mut topology = Topology::star(inputs + 1);
        topology.ports[..usize::from(inputs)].fill(fast);
        topology.ports[usize::from(inputs)].link.delay_ns = 0;
        topology.switches[0] = Switch { latency_ns: 0, ..topology.switches[0] };
        let mut network = Network::new(&topology, 1).unwrap();
        let mut queue: Queue<Option<Step>> = Queue::new();
        let mut random = Random::new(3);
        queue.after(0, None);
        let (mut sent, mut spent_ps) = (BTreeMap::new(), 0);
        let frames = 200_000;
        let mut number = 0;
        while let Some(event) = queue.pop() {
            if let Some(step) = event {
                network.step(&mut queue, step);
                while let Some(outcome) = network.next_outcome() {
                    let since: Instant = sent.remove(&outcome.tag).unwrap();
                    spent_ps += queue.now() - since;
                }
            } else if number < frames {
                let from = HostId(random.below(inputs.into()) as u16);
                let len_bytes = 1000 - 48 - 20 - 18 - 20;
                let message = Message { from, to: HostId(inputs), len_bytes, protocol: Protocol::Udp, tag: number };
                network.send(&mut queue, message);
                sent.insert(number, queue.now());
                number += 1;
                queue.after((random.exponential() * frame_ns / load * 1e3) as u64, None);
            }
        }
        let wait_frames = spent_ps as f64 / frames as f64 / (frame_ns * 1e3) - 1.001;
        let theory = load / (2.0 * (1.0 - load));
        assert!((wait_frames / theory - 1.0).abs() < 0.05, "load {load}: {wait_frames} of {theory}");
    }
}

#[test]
fn multicast_crosses_each_cable_once() {
    let groups =
        [Group { ports: 8, cables: Some(2) }, Group { ports: 8, cables: Some(2) }, Group { ports: 1, cables: None }];
    let mut bench = Bench::new(&Topology::two_level(&groups, Switch::default(), Switch::default()));
    let to: Vec<HostId> = (0..16).map(HostId).collect();
    bench.network.multicast(&mut bench.queue, HostId(16), &to, 800, 5);
    bench.drain();
    assert_eq!(bench.fates(), vec![Fate::Delivered; 16]);
    let counters = bench.network.counters();
    // One frame to the centre, at most one on each of the four cables, one on each port.
    assert_eq!((counters.frames_sent, counters.frames_delivered), (1, 16));
    assert!((15..=18).contains(&counters.frames_copied), "{counters:?}");
}

#[test]
fn trunks_share_their_cables_between_flows() {
    let groups = [Group { ports: 12, cables: Some(2) }, Group { ports: 12, cables: Some(2) }];
    let mut bench = Bench::new(&Topology::two_level(&groups, Switch::default(), Switch::default()));
    (0..12).for_each(|from| bench.send(Protocol::Tcp, from, 12 + from, 5_000_000, from.into()));
    bench.run(12);
    // All at the rate of their own link, which one cable has not for all.
    assert!(bench.outcomes.iter().all(|(at, _)| *at < Instant::from_ns(43_000_000)), "{:?}", bench.outcomes);
}

#[test]
fn a_crash_loses_what_is_on_its_connections() {
    let mut bench = Bench::new(&Topology::star(3));
    bench.send(Protocol::Tcp, 0, 1, 1_000_000, 1);
    bench.send(Protocol::Tcp, 2, 1, 500, 2);
    bench.run(1);
    bench.network.reset(HostId(0));
    bench.collect();
    assert_eq!(bench.fates(), [Fate::Delivered, Fate::Lost(Cause::Reset)]);
    bench.send(Protocol::Tcp, 0, 1, 100, 3);
    bench.drain();
    assert_eq!(bench.outcomes[2].1.tag, 3);
    assert_eq!(bench.outcomes.len(), 3);
}

#[test]
fn a_link_that_was_down_delays_tcp_and_loses_datagrams() {
    let mut bench = Bench::new(&Topology::star(2));
    bench.network.set_faults(HostId(1), Faults { down: true, ..Faults::default() });
    bench.send(Protocol::Udp, 0, 1, 100, 1);
    bench.send(Protocol::Tcp, 0, 1, 100, 2);
    bench.run(1);
    assert_eq!(bench.fates(), [Fate::Lost(Cause::Down)]);
    for _ in 0..10 {
        let step = bench.queue.pop().unwrap();
        bench.network.step(&mut bench.queue, step);
    }
    bench.network.set_faults(HostId(1), Faults::default());
    bench.drain();
    assert_eq!(bench.outcomes[1].1.fate, Fate::Delivered);
    assert!(bench.network.counters().tcp_timeouts > 0);
}

#[test]
fn topologies_that_cannot_be_built_say_why() {
    let mut lonely = Topology::star(2);
    lonely.switches.push(Switch::default());
    lonely.ports[1].switch = SwitchId(1);
    assert_eq!(Network::new(&lonely, 1).unwrap_err(), TopologyError::Unconnected { from: 0, to: 1 });
    lonely.trunks.push(Trunk { one: SwitchId(0), other: SwitchId(2), link: Link::GIGABIT, cables: 1 });
    assert!(Network::new(&lonely, 1).unwrap_err().to_string().contains("trunk 0 names switch 2, but there are 2"));
    let mut slow = Topology::star(1);
    slow.ports[0].link.bits_per_s = 0;
    assert!(Network::new(&slow, 1).unwrap_err().to_string().contains("0 bit/s"));
}

/// A seeded mixture of everything.
fn mixture(seed: u64, loss: f64, duplication: f64) -> Bench {
    let groups =
        [Group { ports: 6, cables: Some(2) }, Group { ports: 3, cables: Some(1) }, Group { ports: 2, cables: None }];
    let small =
        Switch { buffer: Buffer { shared_bytes: 30_000, port_bytes: 20_000, cell_bytes: 256 }, ..Switch::default() };
    let mut random = Random::new(seed);
    let mut bench = Bench::new(&Topology::two_level(&groups, small, small));
    for host in 0..11 {
        let some = if duplication > 0.1 { loss } else { 0.0 };
        let more = Faults { damage: some, delay: some, delay_ns: 50_000, ..Faults::default() };
        bench.network.set_faults(HostId(host), Faults { loss, duplication, ..more });
    }
    for tag in 0..300 {
        let (from, to) = (random.below(11) as u16, random.below(11) as u16);
        let len_bytes = random.below(40_000) as u32;
        match random.below(5) {
            0 => {
                let to: Vec<HostId> = (0..11).filter(|to| *to != from).map(HostId).collect();
                bench.network.multicast(&mut bench.queue, HostId(from), &to, len_bytes % 4_000, tag);
            }
            1 | 2 => bench.send(Protocol::Udp, from, to, len_bytes, tag),
            _ => bench.send(Protocol::Tcp, from, to, len_bytes, tag),
        }
        for _ in 0..random.below(60) {
            if let Some(step) = bench.queue.pop() {
                bench.network.step(&mut bench.queue, step);
                bench.collect();
            }
        }
    }
    bench.drain();
    bench
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Frames in = frames delivered + dropped; each message ends once at each receiver.
    #[test]
    fn everything_is_accounted_for(seed: u64, loss in 0.0..0.2, duplication in 0.0..0.2) {
        let bench = mixture(seed, loss, duplication);
        prop_assert!(bench.network.is_idle());
        let counters = bench.network.counters();
        let dropped =
            counters.dropped_buffer + counters.dropped_link + counters.dropped_damaged + counters.dropped_down;
        let made = counters.frames_sent + counters.frames_copied + counters.frames_duplicated;
        prop_assert_eq!(made, counters.frames_delivered + dropped);
        let mut ends: BTreeMap<(u64, HostId), u32> = BTreeMap::new();
        for (_, outcome) in bench.outcomes.iter().filter(|(_, outcome)| !outcome.more) {
            *ends.entry((outcome.tag, outcome.to)).or_default() += 1;
        }
        prop_assert!(ends.values().all(|count| *count == 1));
        let tags: BTreeMap<u64, ()> = ends.keys().map(|(tag, _)| (*tag, ())).collect();
        prop_assert_eq!(tags.len(), 300);
    }

    /// What TCP and, without faults, datagrams carry from one port to another comes in order.
    #[test]
    fn flows_keep_their_order(seed: u64, loss in 0.0..0.1) {
        let mut bench = Bench::new(&Topology::star(4));
        bench.network.set_faults(HostId(3), Faults { loss, duplication: loss, jitter_ns: 20_000, ..Faults::default() });
        let mut random = Random::new(seed);
        let mut sent = BTreeMap::<(u16, u16), VecDeque<u64>>::new();
        for tag in 0..200 {
            let (from, to) = (random.below(4) as u16, random.below(4) as u16);
            if from != to {
                bench.send(Protocol::Tcp, from, to, random.below(20_000) as u32, tag);
                sent.entry((from, to)).or_default().push_back(tag);
            }
        }
        bench.drain();
        for (_, outcome) in &bench.outcomes {
            prop_assert_eq!(sent.get_mut(&(outcome.from.0, outcome.to.0)).unwrap().pop_front(), Some(outcome.tag));
        }
    }
}

#[test]
fn equal_seeds_give_equal_traces() {
    let trace =
        |seed| mixture(seed, 0.05, 0.05).outcomes.iter().map(|outcome| format!("{outcome:?}\n")).collect::<String>();
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

#[test]
fn a_frame_that_is_doubled_comes_twice() {
    let doubled = |protocol, len_bytes| {
        let mut bench = Bench::new(&Topology::star(2));
        bench.network.set_faults(HostId(0), Faults { duplication: 1.0, ..Faults::default() });
        bench.send(protocol, 0, 1, len_bytes, 7);
        bench.drain();
        assert!(bench.network.is_idle());
        let came = bench.outcomes.iter().map(|(_, outcome)| (outcome.fate, outcome.more)).collect::<Vec<_>>();
        (came, bench.network.counters().frames_duplicated)
    };
    let (once, again) = ((Fate::Delivered, false), (Fate::Delivered, true));
    assert_eq!(doubled(Protocol::Udp, 100), (vec![again, once], 1));
    // Of a message in several datagrams its receiver needs each part once, of a stream each byte.
    assert_eq!(doubled(Protocol::Udp, 4_000), (vec![once], 3));
    let (came, frames) = doubled(Protocol::Tcp, 4_000);
    assert_eq!(came, [once]);
    assert!(frames > 3, "{frames}");
}

#[test]
fn what_is_damaged_is_refused_by_its_receiver_and_repeated_by_tcp() {
    let damaged = |protocol, damage| {
        let mut bench = Bench::new(&Topology::star(2));
        bench.network.set_faults(HostId(0), Faults { damage, ..Faults::default() });
        bench.send(protocol, 0, 1, 40_000, 7);
        bench.drain();
        (bench.fates(), bench.network.counters())
    };
    let (fates, counters) = damaged(Protocol::Udp, 1.0);
    assert_eq!((fates, counters.dropped_damaged), (vec![Fate::Lost(Cause::Damaged)], counters.frames_sent));
    let (fates, counters) = damaged(Protocol::Tcp, 0.2);
    assert_eq!(fates, [Fate::Delivered]);
    assert!(counters.dropped_damaged > 0 && counters.dropped_link == 0, "{counters:?}");
    assert!(counters.tcp_timeouts + counters.tcp_fast_retransmits > 0, "{counters:?}");
}

#[test]
fn a_frame_that_is_held_up_is_overtaken() {
    let mut bench = Bench::new(&Topology::star(2));
    bench.network.set_faults(HostId(0), Faults { delay: 0.2, delay_ns: 1_000_000, ..Faults::default() });
    (0..100).for_each(|tag| bench.send(Protocol::Udp, 0, 1, 100, tag));
    bench.drain();
    let counters = bench.network.counters();
    // Each passes a link there and one back.
    assert!((20..60).contains(&counters.frames_delayed), "{counters:?}");
    assert!(counters.frames_overtaking > 50, "{counters:?}");
    let tags: Vec<u64> = bench.outcomes.iter().map(|(_, outcome)| outcome.tag).collect();
    assert_eq!((tags.len(), tags.is_sorted()), (100, false));
}
