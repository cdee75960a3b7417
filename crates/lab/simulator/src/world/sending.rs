//! Messages leave an application and come to others.

use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId, RunNumber};
use base::random::unit_of_event;
use base::time::Time;
use dataflow::message::{Envelope, Message};
use dataflow::node::RUN_CONTROL;
use dataflow::wire::encode;

use super::wire::{Flight, Links, Receivers, Strays, TypeSet, Wire};
use super::{Arriving, What, World};
use crate::network::{self, Cause, Fate, HostId, Protocol};

impl World {
    /// The sender is busy for that much longer; the message is on its way already. What is long is written in pieces, between
    /// which other inputs are taken.
    pub(super) fn charge_sending(&mut self, from: NodeId, message: &Message) {
        if self.drivers.is_some() {
            return;
        }
        let role = self.slot(from).app.role;
        let cost = self.setup.costs.of_sending(role, message);
        self.write_on(from, cost);
    }

    pub(super) fn write_on(&mut self, from: NodeId, left: Duration) {
        if left.is_zero() {
            return;
        }
        let piece = left.min(PIECE);
        let done = self.processors.take(usize::from(from.0) - 1, self.now, piece).unwrap_or(self.now);
        if left > piece {
            self.schedule(done, What::Write(from, left - piece));
        }
    }

    pub(super) fn multicast(&mut self, from: NodeId, message: Message) {
        let message = self.plant_in_clears(message);
        let life = self.slot(from).incarnation;
        self.monitor.multicast(from, life, &message);
        if let Wire::Ethernet(ethernet) = &self.setup.wire
            && ethernet.datagrams.carry_to_all(&message)
            && self.drivers.is_none()
        {
            return self.multicast_datagrams(from, &message);
        }
        for index in 0..self.readout.len() {
            self.send(from, self.readout[index], message.clone());
        }
    }

    pub(super) fn send(&mut self, from: NodeId, to: NodeId, message: Message) {
        let Some(envelope) = self.slot(from).node.as_ref().and_then(|node| node.envelope_to(to)) else {
            return;
        };
        if to == RUN_CONTROL {
            if matches!(message, Message::Drained) {
                self.monitor.drained(from);
            }
            // What is only to be seen changes nothing else, not even what is drawn.
            let is_shown = matches!(message, Message::Sample(_));
            let at = if is_shown { self.now + self.links().latency } else { self.arrival(from, to) };
            return self.schedule(at, What::ToController(envelope, message));
        }
        let message = self.plant_in(to, message);
        let copies = self.plant(to, &message);
        if copies == 0 {
            return;
        }
        self.monitor.sent(self.now, &envelope, &message);
        let slot = self.slot(from);
        let times = (slot.pass_began, slot.clock.at(self.now), slot.late);
        self.monitor.pushed(times, &envelope, &message);
        for _ in 0..copies {
            self.monitor.goes(&envelope, &message);
        }
        if self.drivers.is_some() {
            return self.hand_out(envelope, message);
        }
        for _ in 1..copies {
            self.dispatch(envelope, message.clone());
        }
        self.dispatch(envelope, message);
    }

    fn dispatch(&mut self, envelope: Envelope, message: Message) {
        let is_direct = match &self.setup.wire {
            Wire::Ethernet(ethernet) => ethernet.is_direct(envelope.from, envelope.to),
            Wire::Links { .. } => false,
        };
        if matches!(self.setup.wire, Wire::Ethernet(_)) && !is_direct {
            return self.send_over_ethernet(envelope, message);
        }
        if message.may_be_lost() {
            return self.send_unreliably(envelope, message);
        }
        let at = self.arrival(envelope.from, envelope.to);
        self.schedule(at, What::Arrives(envelope.to, Arriving::Message(envelope, message)));
    }

    fn send_over_ethernet(&mut self, envelope: Envelope, message: Message) {
        let len_bytes = self.length(&envelope, &message);
        let Envelope { from, to, .. } = envelope;
        let split = self.split_until(from, to);
        let Wire::Ethernet(ethernet) = &mut self.setup.wire else { unreachable!("there is a network") };
        let protocol = if ethernet.datagrams.carry(&message) { Protocol::Udp } else { Protocol::Tcp };
        match split {
            Some(_) if protocol == Protocol::Udp => return self.tally.troubles.cut_off += 1,
            Some(until) => {
                self.tally.troubles.held_back += 1;
                return self.schedule(until, What::Send(envelope, message));
            }
            None => {}
        }
        let (port, other) = ethernet.ports_between(from, to);
        if port == other {
            let at = self.now + self.setup.handover;
            return self.schedule(at, What::Arrives(to, Arriving::Message(envelope, message)));
        }
        let tag = u64::from(ethernet.flights.insert(Flight { message, to: Receivers::One(envelope) }));
        let message = network::Message { from: port, to: other, len_bytes, protocol, tag };
        ethernet.network.send(&mut self.agenda.queue, message);
        self.take_outcomes();
    }

    /// What was held back by a split.
    pub(super) fn send_late(&mut self, envelope: Envelope, message: Message) {
        if self.slot(envelope.from).incarnation == envelope.from_incarnation {
            self.send_over_ethernet(envelope, message);
        }
    }

    fn multicast_datagrams(&mut self, from: NodeId, message: &Message) {
        let Some(sender) = self.slot(from).node.as_ref() else { return };
        let all = self.readout.iter().filter_map(|to| sender.envelope_to(*to));
        let (envelopes, cut_off): (Vec<Envelope>, Vec<Envelope>) =
            all.partition(|envelope| self.split_until(from, envelope.to).is_none());
        self.tally.troubles.cut_off += cut_off.len() as u64;
        let Some(envelope) = envelopes.first() else { return };
        let len_bytes = self.length(&envelope.clone(), message);
        let Wire::Ethernet(ethernet) = &mut self.setup.wire else { unreachable!("there is a network") };
        let own = ethernet.port(from);
        let (here, elsewhere): (Vec<Envelope>, Vec<Envelope>) =
            envelopes.into_iter().partition(|envelope| ethernet.port(envelope.to) == own);
        let mut ports: Vec<HostId> = elsewhere.iter().map(|envelope| ethernet.port(envelope.to)).collect();
        ports.sort_unstable();
        ports.dedup();
        if !ports.is_empty() {
            let to = Receivers::Many(elsewhere, ports.len());
            let tag = u64::from(ethernet.flights.insert(Flight { message: message.clone(), to }));
            ethernet.network.multicast(&mut self.agenda.queue, own, &ports, len_bytes, tag);
        }
        for envelope in here {
            let at = self.now + self.setup.handover;
            self.schedule(at, What::Arrives(envelope.to, Arriving::Message(envelope, message.clone())));
        }
        self.take_outcomes();
    }

    /// Length on the wire, with our own headers.
    pub(super) fn length(&mut self, envelope: &Envelope, message: &Message) -> u32 {
        self.encoded.clear();
        encode(envelope, message, &mut self.encoded);
        let bytes = self.encoded.len() + message.bulk().map_or(0, Bulk::len);
        self.tally.network.bytes += bytes as u64;
        u32::try_from(bytes).expect("a message is shorter than 4 GiB")
    }

    /// Delivers what has come through the network.
    pub(super) fn take_outcomes(&mut self) {
        loop {
            let Wire::Ethernet(ethernet) = &mut self.setup.wire else { return };
            let Some(outcome) = ethernet.network.next_outcome() else { return };
            let tag = u32::try_from(outcome.tag).expect("tags are places in a slab");
            let came = outcome.fate == Fate::Delivered;
            if let Receivers::Many(..) = ethernet.flights[tag].to {
                self.multicast_came(tag, outcome.to, outcome.fate);
                continue;
            }
            if outcome.more {
                let flight = &ethernet.flights[tag];
                let Receivers::One(envelope) = flight.to else { unreachable!("a multicast comes once") };
                let message = flight.message.clone();
                self.arrives(envelope.to, Arriving::Message(envelope, message));
                continue;
            }
            let flight = ethernet.flights.remove(tag);
            let Receivers::One(envelope) = flight.to else { unreachable!("a multicast comes once") };
            let in_datagram = ethernet.datagrams.carry(&flight.message);
            self.note_fate(outcome.fate, 1);
            if came {
                if in_datagram {
                    self.stray(envelope, &flight.message);
                }
                self.arrives(envelope.to, Arriving::Message(envelope, flight.message));
            }
        }
    }

    fn multicast_came(&mut self, tag: u32, port: HostId, fate: Fate) {
        let Wire::Ethernet(ethernet) = &mut self.setup.wire else { unreachable!("there is a network") };
        let flight = &mut ethernet.flights[tag];
        let Receivers::Many(envelopes, left) = &mut flight.to else { unreachable!("it is a multicast") };
        *left -= 1;
        let is_last = *left == 0;
        let ports = &ethernet.ports;
        let there = envelopes.iter().filter(|envelope| ports[usize::from(envelope.to.0) - 1] == port);
        let there: Vec<Envelope> = there.copied().collect();
        let message = flight.message.clone();
        if is_last {
            drop(ethernet.flights.remove(tag));
        }
        self.note_fate(fate, there.len() as u64);
        for envelope in there.into_iter().filter(|_| fate == Fate::Delivered) {
            self.stray(envelope, &message);
            self.arrives(envelope.to, Arriving::Message(envelope, message.clone()));
        }
    }

    /// What became of so many messages.
    fn note_fate(&mut self, fate: Fate, messages: u64) {
        match fate {
            Fate::Lost(Cause::Buffer) => self.tally.troubles.overflows += messages,
            Fate::Lost(Cause::Link) => self.tally.troubles.lost += messages,
            Fate::Lost(Cause::Damaged) => {
                self.tally.troubles.damaged += messages;
                self.tally.network.malformed += messages;
            }
            Fate::Lost(Cause::Down) => self.tally.troubles.cut_off += messages,
            Fate::Lost(Cause::Reset) => self.tally.troubles.reset += messages,
            Fate::Delivered => {}
        }
    }

    /// What has come in a datagram comes again where it does not belong, if that is to go wrong.
    fn stray(&mut self, envelope: Envelope, message: &Message) {
        let Wire::Ethernet(ethernet) = &self.setup.wire else { return };
        let Strays { stale, wrong_run } = ethernet.strays;
        if ethernet.strays == Strays::default() {
            return;
        }
        if self.random.chance(stale) {
            self.tally.troubles.stale += 1;
            let former = Incarnation(envelope.from_incarnation.0.wrapping_sub(1));
            self.comes_astray(Envelope { from_incarnation: former, ..envelope }, message);
        }
        if self.random.chance(wrong_run) {
            self.tally.troubles.wrong_run += 1;
            self.comes_astray(Envelope { run: RunNumber(envelope.run.0 ^ 1), ..envelope }, message);
        }
    }

    fn comes_astray(&mut self, envelope: Envelope, message: &Message) {
        let at = self.now + self.latency();
        self.schedule(at, What::Arrives(envelope.to, Arriving::Message(envelope, message.clone())));
    }

    /// What data for building take through the port of their builder, unless they find no room there.
    fn pass_port(&mut self, to: NodeId, message: &Message) -> Option<Duration> {
        let (Wire::Links { port: Some(port), .. }, Message::EventReply { replies, bulk, .. }) =
            (&self.setup.wire, message)
        else {
            return Some(Duration::ZERO);
        };
        let takes = |bytes: u64| Duration::from_nanos(bytes * 1_000_000_000 / port.bytes_per_s);
        let takes_this = takes((bulk.len() + REPLY_HEAD_BYTES * (1 + replies.len())) as u64);
        let free = self.arrivals.ports.entry(to).or_default();
        let waits = free.since(self.now) + takes_this;
        if waits > takes(port.buffer_bytes) {
            self.tally.troubles.overflows += 1;
            return None;
        }
        *free = self.now + waits;
        Some(waits)
    }

    fn send_unreliably(&mut self, envelope: Envelope, message: Message) {
        let links = if self.is_healed() { self.links().healed() } else { self.links() };
        let to = envelope.to;
        if let Some(at) = self.arrival_by_type(&envelope, &message) {
            return self.schedule(at, What::Arrives(to, Arriving::Message(envelope, message)));
        }
        let Some(waits) = self.pass_port(to, &message) else { return };
        if self.split_until(envelope.from, to).is_some() {
            self.tally.troubles.cut_off += 1;
            return;
        }
        let mut copies =
            if self.random.chance(links.loss) { 0 } else { 1 + usize::from(self.random.chance(links.duplication)) };
        self.tally.troubles.lost += u64::from(copies == 0);
        if self.random.chance(links.corruption) {
            copies = 0;
            self.tally.troubles.damaged += 1;
            self.tally.network.malformed += 1;
        }
        if self.random.chance(links.stray) {
            let stray = if self.random.chance(0.5) {
                self.tally.troubles.wrong_run += 1;
                Envelope { run: RunNumber(envelope.run.0 ^ 1), ..envelope }
            } else {
                self.tally.troubles.stale += 1;
                Envelope { from_incarnation: Incarnation(u32::MAX), ..envelope }
            };
            self.comes_astray(stray, &message);
        }
        for copy in (0..copies).rev() {
            let mut delay = self.latency();
            if self.random.chance(links.delay) {
                delay += links.delay_max.mul_f64(self.random.unit());
            }
            let at = self.now + waits + delay;
            if copy == 0 {
                return self.schedule(at, What::Arrives(to, Arriving::Message(envelope, message)));
            }
            self.schedule(at, What::Arrives(to, Arriving::Message(envelope, message.clone())));
        }
    }

    /// When a message arrives that has a connection for its type, behind all before it of that type.
    fn arrival_by_type(&mut self, envelope: &Envelope, message: &Message) -> Option<Time> {
        let Wire::Links { connected, slow, .. } = &self.setup.wire else { return None };
        let number = TypeSet::number(message).filter(|_| connected.has(message))?;
        let (Envelope { from, to, .. }, slow) = (*envelope, *slow);
        let channel = EventId(u64::from(number + 1) << 32 | u64::from(from.0) << 16 | u64::from(to.0));
        let mut at = self.now + self.latency();
        if slow > 0.0 && unit_of_event(channel, self.setup.seed) < slow {
            at = at + self.links().delay_max.mul_f64(self.random.unit());
        }
        if let Some(until) = self.split_until(from, to) {
            at = at.max(until + self.latency());
        }
        let last = self.arrivals.types.entry((from, to, number)).or_default();
        *last = at.max(*last);
        Some(*last)
    }

    /// Of run control's connections, where the others have a network.
    pub(super) fn links(&self) -> Links {
        match &self.setup.wire {
            Wire::Links { links, .. } => *links,
            Wire::Ethernet(_) => Links::perfect(),
        }
    }

    pub(super) fn latency(&mut self) -> Duration {
        self.links().latency.mul_f64(1.0 + self.random.unit())
    }

    /// When something reliable that is sent now arrives, behind everything sent before.
    pub(super) fn arrival(&mut self, from: NodeId, to: NodeId) -> Time {
        let mut at = self.now + self.latency();
        if self.is_slow(from, to) {
            at = at + self.links().delay_max.mul_f64(self.random.unit());
        }
        // A connection holds until the network is whole again.
        if let Some(until) = self.split_until(from, to) {
            at = at.max(until + self.latency());
        }
        let pair = usize::from(from.0) * (self.slots.len() + 1) + usize::from(to.0);
        let last = &mut self.arrivals.pairs[pair];
        *last = at.max(*last);
        *last
    }

    fn is_slow(&self, from: NodeId, to: NodeId) -> bool {
        let Wire::Links { slow, .. } = &self.setup.wire else { return false };
        let pair = EventId(u64::from(from.0) << 16 | u64::from(to.0));
        *slow > 0.0 && from != to && unit_of_event(pair, self.setup.seed) < *slow
    }

    pub(super) fn is_healed(&self) -> bool {
        self.setup
            .course
            .healed_after
            .is_some_and(|after| self.direction.began + after <= self.now && self.direction.began > Time::ZERO)
    }

    pub(super) fn split_until(&self, one: NodeId, other: NodeId) -> Option<Time> {
        let parts = |side: &[NodeId]| side.contains(&one) != side.contains(&other);
        let now = self.now;
        self.arrivals.splits.iter().filter(|(until, side)| *until > now && parts(side)).map(|(until, _)| *until).max()
    }
}

/// What a driver writes at a time, as processor time.
const PIECE: Duration = Duration::from_micros(200);

/// What a reply has around its data, and for each event.
const REPLY_HEAD_BYTES: usize = 40;
