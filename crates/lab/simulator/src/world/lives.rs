//! Applications appear, die and return; faults strike.

use std::sync::Arc;
use std::time::Duration;

use base::ids::{Incarnation, NodeId};
use base::time::Time;
use control::controller::Controller;
use dataflow::component::{Input, PeerState};
use dataflow::message::{Envelope, Message};
use dataflow::node::{Node, RUN_CONTROL};

use super::setup::Fault;
use super::{Arriving, Struck, What, Wire, World};

impl World {
    pub(super) fn appear(&mut self, node: NodeId) {
        if self.slot(node).node.is_some() || self.slot(node).gone {
            // It died while it was dead, and has returned already or will not.
            return;
        }
        let incarnation = self.slot(node).incarnation;
        self.trace.tell(self.now, &format!("{node:?} appears in life {}", incarnation.0));
        let component = (self.setup.components)(node, incarnation);
        let new = Node::new(node, self.setup.run, incarnation, Arc::clone(&self.roles), component);
        self.slot_mut(node).node = Some(new);
        self.connect_sources_of(node);
        self.note_return(node);
        self.input(node, Input::Peer { node: RUN_CONTROL, state: PeerState::Up(Incarnation(0)) });
        for index in 0..self.slots.len() {
            let other = self.slots[index].app.node;
            if self.slots[index].gone {
                self.tell_peer(node, other, PeerState::Gone);
            }
            if other == node || self.slots[index].node.is_none() {
                continue;
            }
            let other_incarnation = self.slots[index].incarnation;
            self.introduce((node, incarnation), (other, other_incarnation));
        }
        for command in self.slot(node).commands.clone() {
            self.before_command(node, command);
            self.input(node, Input::Command(command));
            self.after_command(node, command);
        }
    }

    pub(super) fn note_return(&mut self, node: NodeId) {
        let now = self.now;
        let has_died = |struck: &&mut Struck| matches!(struck.fault, Fault::Restart(died, _) if died == node);
        self.tally.struck.iter_mut().filter(has_died).for_each(|struck| _ = struck.back.get_or_insert(now));
    }

    /// The news travels in order with the messages of the peer.
    fn tell_peer(&mut self, to: NodeId, about: NodeId, state: PeerState) {
        if self.drivers.is_some() {
            // What it then sends takes its turn behind that.
            return self.input(to, Input::Peer { node: about, state });
        }
        let at = self.news_at(to, about);
        self.tell_peer_at(at, to, about, state);
    }

    /// Two have found one another. Over a network their connection stands for both at once, or what the first says would come
    /// before the other knows it.
    fn introduce(&mut self, new: (NodeId, Incarnation), other: (NodeId, Incarnation)) {
        let (new_state, other_state) = (PeerState::Up(new.1), PeerState::Up(other.1));
        if self.drivers.is_some() || matches!(self.setup.wire, Wire::Links { .. }) {
            self.tell_peer(other.0, new.0, new_state);
            return self.tell_peer(new.0, other.0, other_state);
        }
        let at = self.news_at(other.0, new.0).max(self.news_at(new.0, other.0));
        self.tell_peer_at(at, other.0, new.0, new_state);
        self.tell_peer_at(at, new.0, other.0, other_state);
    }

    fn news_at(&mut self, to: NodeId, about: NodeId) -> Time {
        let is_here = match &self.setup.wire {
            Wire::Ethernet(ethernet) => ethernet.port(about) == ethernet.port(to),
            Wire::Links { .. } => false,
        };
        if is_here { self.now } else { self.arrival(about, to) }
    }

    fn tell_peer_at(&mut self, at: Time, to: NodeId, about: NodeId, state: PeerState) {
        let incarnation = self.slot(to).incarnation;
        let input = Input::Peer { node: about, state };
        self.schedule(at, What::Arrives(to, Arriving::Input(incarnation, input)));
    }

    pub(super) fn strike(&mut self, index: usize) {
        let now = self.now;
        let fault = self.setup.course.faults[index].1.clone();
        self.trace.tell(now, &format!("{fault:?}"));
        self.tally.struck.push(Struck { at: now, fault: fault.clone(), back: None });
        match fault {
            Fault::Kill(node) | Fault::Restart(node, _) if self.slot(node).gone => {}
            Fault::Kill(node) => _ = self.end_process(node, PeerState::Gone, "killed by a fault"),
            Fault::Restart(node, after) if self.joining.is_some() => {
                self.set_away(node, after);
                self.end_process(node, PeerState::Down, "killed by a fault");
            }
            Fault::Restart(node, after) => {
                self.crash(node, PeerState::Down, "killed by a fault");
                self.schedule(now + after, What::Appear(node));
            }
            Fault::Hang(node) => {
                self.slot_mut(node).hangs = true;
                self.harm.touched.push(node);
            }
            Fault::Force => {
                self.harm.forced = true;
                self.with_controller(|controller, now, out| controller.force(now, "forced by the plan", out));
            }
            Fault::Pause(lasts) => self.pause(lasts),
            Fault::Watch(watched) => self.ask_for_samples(watched),
            Fault::Split(nodes, lasts) => self.arrivals.splits.push((now + lasts, nodes)),
            Fault::Slow { node, each, lasts } => self.slot_mut(node).slow = Some((now + lasts, each)),
            Fault::ClockStep(node, step) => self.slot_mut(node).clock.step_forward(step),
            Fault::ClockBack(node, step) => self.slot_mut(node).clock.step_back(now, step),
            Fault::FullDisk(node, lasts) => self.slot_mut(node).full_until = now + lasts,
            Fault::Forged { from, lives_ahead, to, message } => self.forge(from, lives_ahead, to, *message),
        }
    }

    fn forge(&mut self, from: NodeId, lives_ahead: u32, to: NodeId, message: Message) {
        let life_of = |node| self.slot(node).incarnation;
        let (Incarnation(life), to_incarnation) = (life_of(from), life_of(to));
        let from_incarnation = Incarnation(life + lives_ahead);
        let envelope = Envelope { from, to, run: self.setup.run, from_incarnation, to_incarnation };
        self.schedule(self.now, What::Arrives(to, Arriving::Message(envelope, message)));
    }

    /// The process of an application ends; false if it has none.
    pub(super) fn end_process(&mut self, node: NodeId, state: PeerState, how: &'static str) -> bool {
        let lives = self.joining.is_none() || self.has_process(node);
        if lives && self.only_joins() {
            let member = (node, self.slot(node).incarnation);
            self.slot_mut(node).incarnation.0 += 1;
            self.process_ended(member, how);
        } else if lives {
            self.crash(node, state, how);
        } else {
            self.slot_mut(node).gone |= state == PeerState::Gone;
        }
        lives
    }

    fn crash(&mut self, node: NodeId, state: PeerState, how: &'static str) {
        let member = (node, self.slot(node).incarnation);
        self.before_death(node);
        let (now, slot) = (self.now, self.slot_mut(node));
        let last = slot.node.take().map(|node| node.report(now));
        slot.wake = None;
        slot.woken = false;
        slot.asked = None;
        slot.late = Duration::ZERO;
        slot.gone = state == PeerState::Gone;
        slot.incarnation.0 += 1;
        self.harm.touched.push(node);
        self.cut_sources_of(node);
        self.with_controller(|controller, _, _| controller.on_life_over(node, last));
        self.lose_unsynced(node);
        let is_draining = self.direction.controller.draining().is_some();
        self.monitor.died(node, is_draining);
        if let Wire::Ethernet(ethernet) = &mut self.setup.wire {
            ethernet.reset(node);
        }
        self.take_outcomes();
        if self.joining.is_some() {
            return self.process_ended(member, how);
        }
        for index in 0..self.slots.len() {
            let other = self.slots[index].app.node;
            if other != node {
                self.tell_peer(other, node, state);
            }
        }
        if state == PeerState::Gone {
            self.with_controller(|controller: &mut Controller, now: Time, out| {
                controller.on_death(now, node, how, out);
            });
        }
    }

    /// What a recorder had written and the disk had not.
    fn lose_unsynced(&mut self, node: NodeId) {
        let unsynced = core::mem::take(&mut self.slot_mut(node).unsynced);
        if unsynced == 0 {
            return;
        }
        let lost = self.setup.outside.lost(node, unsynced).min(unsynced);
        let slot = self.slot_mut(node);
        slot.recorded.truncate(slot.recorded.len() - lost);
    }
}
