//! Frames, the lanes they travel on, and the switches between the lanes.

use base::random::Random;

use super::pieces::{Ack, Segment};
use super::topology::{Link, Topology, TopologyError};
use super::{Cause, HostId, Step, StepKind};
use crate::engine::Queue;
use crate::slab::Slab;

/// What has happened in a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that ports have sent.
    pub frames_sent: u64,
    /// Frames that have reached their port; a copy for each receiver of a multicast.
    pub frames_delivered: u64,
    /// Copies that switches have made of multicast frames.
    pub frames_copied: u64,
    /// Frames that a faulty link has passed on twice.
    pub frames_duplicated: u64,
    /// Frames that were held up on a faulty link.
    pub frames_delayed: u64,
    /// Frames that have overtaken others on a faulty link.
    pub frames_overtaking: u64,
    /// Bytes of the delivered frames, from Ethernet header to check sequence.
    pub bytes_delivered: u64,
    /// Frames dropped for want of room in a switch.
    pub dropped_buffer: u64,
    /// Frames lost on a faulty link.
    pub dropped_link: u64,
    /// Frames refused by their receiver, as damaged on a faulty link.
    pub dropped_damaged: u64,
    /// Frames lost on a link that was down.
    pub dropped_down: u64,
    /// Times that a TCP sender heard nothing for too long.
    pub tcp_timeouts: u64,
    /// Times that a TCP sender was told of a gap.
    pub tcp_fast_retransmits: u64,
}

/// Faults of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Probability that a frame is lost, or so damaged that its check sequence tells, which is the same.
    pub loss: f64,
    /// Probability that a frame is damaged where its check sequence does not tell, as in the memory of a switch. The
    /// checksum of TCP or of the datagram does.
    pub damage: f64,
    /// Probability that a frame that is not lost comes twice, the second time right behind the first.
    pub duplication: f64,
    /// Each frame is late by a random time below this, and may so be overtaken.
    pub jitter_ns: u64,
    /// Probability that a frame is held up besides.
    pub delay: f64,
    /// For a random time below this.
    pub delay_ns: u64,
    /// Nothing passes.
    pub down: bool,
}

/// A frame on its way.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) from: HostId,
    /// From Ethernet header to check sequence.
    pub(super) bytes: u32,
    pub(super) body: Body,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    /// All or a part of a message in datagrams to one port.
    Datagram { datagram: u32, to: HostId, is_all: bool },
    /// Another copy of a part of such a message, of which its receiver has no need.
    Again { to: HostId },
    /// A datagram to the ports of a group, which the frame owns.
    Multicast { datagram: u32, group: u32 },
    /// Part of a TCP stream.
    Segment(Segment),
    /// The acknowledgement of one.
    Ack(Ack),
}

impl Frame {
    /// A frame around an IP packet of `packet_bytes`.
    pub(super) fn new(from: HostId, packet_bytes: u32, body: Body) -> Self {
        Self { from, bytes: (packet_bytes + ETHERNET_BYTES).max(FRAME_BYTES_MIN), body }
    }

    /// Another copy; none of a multicast, which switches copy anyway.
    fn again(&self) -> Option<Self> {
        let body = match self.body {
            Body::Datagram { to, is_all: false, .. } => Body::Again { to },
            Body::Multicast { .. } => return None,
            body => body,
        };
        Some(Self { body, ..*self })
    }
}

/// What became of a frame.
#[derive(Debug)]
pub(super) enum Passed {
    /// It is on a lane.
    On,
    /// It has come to its port.
    Here(Frame),
    /// It is lost.
    Lost(Frame, Cause),
    /// It was copied, and these copies are lost.
    Copied(Vec<(Frame, Cause)>),
}

/// Lanes and switches.
#[derive(Debug)]
pub(super) struct Fabric {
    /// The first are those from the ports, in order.
    lanes: Vec<Lane>,
    switches: Vec<SwitchState>,
    /// The way from switch `s` to port `p` is `routes[s * ports + p]`.
    routes: Vec<Route>,
    ports: usize,
    frames: Slab<Frame>,
    /// Messages in one datagram that were doubled since [`Fabric::next_doubled`] was last asked.
    doubled: Vec<(u32, HostId)>,
    random: Random,
    counters: Counters,
}

/// One direction of a cable, and the output queue at its beginning.
#[derive(Debug)]
struct Lane {
    ps_per_byte: u64,
    delay_ps: u64,
    /// When the last frame in the queue will have left, in picoseconds.
    free_at_ps: u64,
    /// The switch that it begins at; none if at a port.
    from: Option<u32>,
    to: End,
    queued_bytes: u64,
    faults: Option<Faults>,
    /// On a faulty link, when the last of its frames so far comes to its end.
    last_at_ps: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Port(HostId),
    Switch(u32),
}

#[derive(Debug)]
struct SwitchState {
    latency_ps: u64,
    shared_bytes: u64,
    port_bytes: u64,
    cell_bytes: u64,
    used_bytes: u64,
}

/// Parallel lanes, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    lane: u32,
    lanes: u32,
}

impl Fabric {
    pub(super) fn new(topology: &Topology, random: Random) -> Result<Self, TopologyError> {
        let ports = topology.ports.len();
        let switches = topology.switches.iter().map(|switch| SwitchState {
            latency_ps: switch.latency_ns * PS_PER_NS,
            shared_bytes: switch.buffer.shared_bytes,
            port_bytes: switch.buffer.port_bytes,
            cell_bytes: u64::from(switch.buffer.cell_bytes.max(1)),
            used_bytes: 0,
        });
        let mut fabric = Self {
            lanes: Vec::new(),
            switches: switches.collect(),
            routes: vec![NOWHERE; topology.switches.len() * ports],
            ports,
            frames: Slab::default(),
            doubled: Vec::new(),
            random,
            counters: Counters::default(),
        };
        for port in &topology.ports {
            fabric.lanes.push(Lane::new(port.link, None, End::Switch(port.switch.0.into())));
        }
        for (host, port) in topology.hosts().zip(&topology.ports) {
            let switch = u32::from(port.switch.0);
            fabric.lanes.push(Lane::new(port.link, Some(switch), End::Port(host)));
            let lane = fabric.lane_to(host);
            *fabric.route_mut(switch, host) = Route { lane, lanes: 1 };
        }
        let trunks = fabric.connect(topology);
        fabric.find_routes(topology, &trunks)?;
        Ok(fabric)
    }

    /// Adds the lanes of trunks; of each the lanes there and back.
    fn connect(&mut self, topology: &Topology) -> Vec<[Route; 2]> {
        let mut trunks = Vec::new();
        for trunk in &topology.trunks {
            trunks.push([(trunk.one, trunk.other), (trunk.other, trunk.one)].map(|(from, to)| {
                let route = Route { lane: number(self.lanes.len()), lanes: trunk.cables.into() };
                for _ in 0..trunk.cables {
                    self.lanes.push(Lane::new(trunk.link, Some(from.0.into()), End::Switch(to.0.into())));
                }
                route
            }));
        }
        trunks
    }

    /// The shortest ways, counted in switches; of equal ones the trunk that was named first.
    fn find_routes(&mut self, topology: &Topology, trunks: &[[Route; 2]]) -> Result<(), TopologyError> {
        for (host, port) in topology.hosts().zip(&topology.ports) {
            let mut reached = vec![port.switch];
            let mut next = 0;
            while let Some(&at) = reached.get(next) {
                next += 1;
                for (trunk, [there, back]) in topology.trunks.iter().zip(trunks) {
                    for (from, to, route) in [(trunk.one, trunk.other, there), (trunk.other, trunk.one, back)] {
                        if to == at && !reached.contains(&from) {
                            reached.push(from);
                            *self.route_mut(from.0.into(), host) = *route;
                        }
                    }
                }
            }
        }
        match self.routes.iter().position(|route| *route == NOWHERE) {
            Some(place) => Err(TopologyError::Unconnected { from: place / self.ports, to: place % self.ports }),
            None => Ok(()),
        }
    }

    fn route_mut(&mut self, switch: u32, to: HostId) -> &mut Route {
        &mut self.routes[switch as usize * self.ports + usize::from(to.0)]
    }

    pub(super) fn has(&self, host: HostId) -> bool {
        usize::from(host.0) < self.ports
    }

    pub(super) const fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether no frame is on its way; then no switch holds any.
    pub(super) fn is_idle(&self) -> bool {
        let idle = self.frames.is_empty();
        let held = self.switches.iter().any(|switch| switch.used_bytes > 0);
        assert!(!(idle && held), "a switch holds no frame that is nowhere");
        idle
    }

    pub(super) fn set_faults(&mut self, host: HostId, faults: Faults) {
        let faults = (faults != Faults::default()).then_some(faults);
        let to = self.lane_to(host);
        self.lanes[usize::from(host.0)].faults = faults;
        self.lanes[to as usize].faults = faults;
    }

    /// The lane from its switch to a port.
    fn lane_to(&self, host: HostId) -> u32 {
        number(self.ports) + u32::from(host.0)
    }

    /// Puts a frame into the queue of its own port, which has room for all that a host sends.
    pub(super) fn send<E: From<Step>>(&mut self, queue: &mut Queue<E>, from: HostId, frame: Frame) -> Passed {
        self.counters.frames_sent += 1;
        let frame = self.frames.insert(frame);
        self.transmit(queue, u32::from(from.0), frame, queue.now().as_ps())
    }

    /// A frame has come to the end of a lane.
    pub(super) fn on_frame<E: From<Step>>(
        &mut self,
        queue: &mut Queue<E>,
        lane: u32,
        frame: u32,
        groups: &mut Slab<Vec<HostId>>,
    ) -> Passed {
        let &Frame { from, bytes, ref body, .. } = &self.frames[frame];
        let to = match body {
            Body::Datagram { to, .. } | Body::Again { to } => Some(*to),
            Body::Segment(segment) => Some(segment.to),
            Body::Ack(ack) => Some(ack.to),
            Body::Multicast { .. } => None,
        };
        let switch = match self.leave_buffer(lane, bytes) {
            End::Port(_) => {
                self.counters.frames_delivered += 1;
                self.counters.bytes_delivered += u64::from(bytes);
                return Passed::Here(self.frames.remove(frame));
            }
            End::Switch(switch) => switch,
        };
        let ready_ps = queue.now().as_ps() + self.switches[switch as usize].latency_ps;
        match to {
            Some(to) => self.transmit(queue, self.lane_from(switch, from, to), frame, ready_ps),
            None => Passed::Copied(self.copy(queue, switch, frame, groups, ready_ps)),
        }
    }

    /// Copies a multicast frame to each lane that leads to some of its receivers.
    fn copy<E: From<Step>>(
        &mut self,
        queue: &mut Queue<E>,
        switch: u32,
        frame: u32,
        groups: &mut Slab<Vec<HostId>>,
        ready_ps: u64,
    ) -> Vec<(Frame, Cause)> {
        let frame = self.frames.remove(frame);
        let Body::Multicast { datagram, group } = frame.body else { unreachable!("only these are copied") };
        let members = groups.remove(group);
        let mut by_lane: Vec<(u32, HostId)> =
            members.iter().map(|to| (self.lane_from(switch, frame.from, *to), *to)).collect();
        by_lane.sort_unstable();
        let mut lost = Vec::new();
        for part in by_lane.chunk_by(|one, other| one.0 == other.0) {
            self.counters.frames_copied += 1;
            let group = groups.insert(part.iter().map(|(_, to)| *to).collect());
            let copy = self.frames.insert(Frame { body: Body::Multicast { datagram, group }, ..frame });
            if let Passed::Lost(copy, cause) = self.transmit(queue, part[0].0, copy, ready_ps) {
                lost.push((copy, cause));
            }
        }
        self.counters.frames_copied -= 1;
        lost
    }

    fn lane_from(&self, switch: u32, from: HostId, to: HostId) -> u32 {
        let route = self.routes[switch as usize * self.ports + usize::from(to.0)];
        if route.lanes == 1 {
            return route.lane;
        }
        let flow = u64::from(from.0) << 16 | u64::from(to.0);
        route.lane + (Random::new(flow).next_u64() % u64::from(route.lanes)) as u32
    }

    /// A message in one datagram of which there is one more copy on its way.
    pub(super) fn next_doubled(&mut self) -> Option<(u32, HostId)> {
        self.doubled.pop()
    }

    /// Puts a frame into the queue of a lane. A queue without room loses the frame, and so may a fault.
    fn transmit<E: From<Step>>(&mut self, queue: &mut Queue<E>, lane: u32, frame: u32, ready_ps: u64) -> Passed {
        let enqueued = match self.lanes[lane as usize].faults {
            None => self.enqueue(queue, lane, frame, (ready_ps, 0)),
            Some(faults) => self.transmit_amid(faults, queue, lane, frame, ready_ps),
        };
        match enqueued {
            Ok(()) => Passed::On,
            Err(cause) => Passed::Lost(self.frames.remove(frame), cause),
        }
    }

    /// The same on a lane with faults.
    fn transmit_amid<E: From<Step>>(
        &mut self,
        faults: Faults,
        queue: &mut Queue<E>,
        lane: u32,
        frame: u32,
        ready_ps: u64,
    ) -> Result<(), Cause> {
        if faults.down {
            self.counters.dropped_down += 1;
            return Err(Cause::Down);
        }
        if self.random.chance(faults.loss) {
            self.counters.dropped_link += 1;
            return Err(Cause::Link);
        }
        let mut late_ps = self.random.below(faults.jitter_ns * PS_PER_NS + 1);
        // Without these faults nothing is drawn for them.
        if faults.damage > 0.0 && self.random.chance(faults.damage) {
            self.counters.dropped_damaged += 1;
            return Err(Cause::Damaged);
        }
        if faults.delay > 0.0 && self.random.chance(faults.delay) {
            self.counters.frames_delayed += 1;
            late_ps += self.random.below(faults.delay_ns * PS_PER_NS + 1);
        }
        let is_again = faults.duplication > 0.0 && self.random.chance(faults.duplication);
        let again = if is_again { self.frames[frame].again() } else { None };
        self.enqueue(queue, lane, frame, (ready_ps, late_ps))?;
        if let Some(again) = again {
            let body = again.body;
            self.counters.frames_duplicated += 1;
            let again = self.frames.insert(again);
            // A copy that finds no room is no loss of what it carries.
            if self.enqueue(queue, lane, again, (ready_ps, late_ps)).is_err() {
                self.frames.remove(again);
            } else if let Body::Datagram { datagram, to, .. } = body {
                self.doubled.push((datagram, to));
            }
        }
        Ok(())
    }

    fn enqueue<E: From<Step>>(
        &mut self,
        queue: &mut Queue<E>,
        index: u32,
        frame: u32,
        (ready_ps, late_ps): (u64, u64),
    ) -> Result<(), Cause> {
        let bytes = self.frames[frame].bytes;
        let lane = &mut self.lanes[index as usize];
        if let Some(switch) = lane.from {
            let switch = &mut self.switches[switch as usize];
            let room_bytes = switch.room_bytes(bytes);
            if switch.used_bytes + room_bytes > switch.shared_bytes
                || lane.queued_bytes + room_bytes > switch.port_bytes
            {
                self.counters.dropped_buffer += 1;
                return Err(Cause::Buffer);
            }
            switch.used_bytes += room_bytes;
            lane.queued_bytes += room_bytes;
        }
        lane.free_at_ps = lane.free_at_ps.max(ready_ps) + u64::from(bytes + BETWEEN_FRAMES_BYTES) * lane.ps_per_byte;
        let at_ps = lane.free_at_ps + lane.delay_ps + late_ps;
        if lane.faults.is_some() {
            self.counters.frames_overtaking += u64::from(at_ps < lane.last_at_ps);
            lane.last_at_ps = lane.last_at_ps.max(at_ps);
        }
        queue.at(crate::engine::Instant::from_ps(at_ps), Step(StepKind::Frame { lane: index, frame }).into());
        Ok(())
    }

    /// Frees the room of a frame that has left a lane.
    fn leave_buffer(&mut self, lane: u32, bytes: u32) -> End {
        let lane = &mut self.lanes[lane as usize];
        if let Some(switch) = lane.from {
            let switch = &mut self.switches[switch as usize];
            let room_bytes = switch.room_bytes(bytes);
            switch.used_bytes -= room_bytes;
            lane.queued_bytes -= room_bytes;
        }
        lane.to
    }
}

impl Lane {
    fn new(link: Link, from: Option<u32>, to: End) -> Self {
        Self {
            ps_per_byte: PS_PER_S * 8 / link.bits_per_s,
            delay_ps: link.delay_ns * PS_PER_NS,
            free_at_ps: 0,
            from,
            to,
            queued_bytes: 0,
            faults: None,
            last_at_ps: 0,
        }
    }
}

impl SwitchState {
    fn room_bytes(&self, frame_bytes: u32) -> u64 {
        u64::from(frame_bytes).next_multiple_of(self.cell_bytes)
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("fewer than 2³² parts")
}

const NOWHERE: Route = Route { lane: u32::MAX, lanes: 0 };
const PS_PER_NS: u64 = 1_000;
const PS_PER_S: u64 = 1_000_000_000_000;

/// Header and check sequence of Ethernet [IEEE 802.3].
const ETHERNET_BYTES: u32 = 18;
/// From header to check sequence.
const FRAME_BYTES_MIN: u32 = 64;
/// Preamble, and the gap between frames.
const BETWEEN_FRAMES_BYTES: u32 = 8 + 12;
