//! Which event builder gets which event, and what happens to events of one that is slow or lost.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Dfm, DfmInput, DfmParameters};
use crate::building::assignment::SfiChooser;
use crate::building::dfm::books::{BuildState, Open, Sfi};
use crate::building::push_control::Choice;
use crate::component::{Note, Outbox};
use crate::message::{Assignment, Message};
use base::ids::{EventId, NodeId};
use base::time::Time;

/// Events on their way to builders.
pub(super) struct Assigning {
    pub(super) queue: VecDeque<EventId>,
    pub(super) timeouts: VecDeque<(Time, EventId, u16)>,
    chooser: SfiChooser,
}

impl Assigning {
    pub(super) fn new(parameters: &DfmParameters) -> Self {
        let chooser = SfiChooser::new(parameters.assignment).in_runs_of(parameters.run);
        Self { queue: VecDeque::new(), timeouts: VecDeque::new(), chooser }
    }
}

impl Dfm {
    pub(super) fn has_room(&self) -> bool {
        self.sfis.iter().any(|sfi| sfi.room(self.parameters.building) > 0)
    }

    pub(super) fn assign(&mut self, now: Time, out: &mut Outbox) {
        if self.returning.recovery.is_some() {
            return;
        }
        self.assign_queued(now, out);
        self.update_busy(now, out);
        if self.sfis.iter().all(|sfi| sfi.gone) && !self.assigning.queue.is_empty() {
            self.give_up_queue(out);
            self.update_busy(now, out);
            self.acknowledge(out);
        }
    }

    pub(super) fn assign_queued(&mut self, now: Time, out: &mut Outbox) {
        while let Some(&event) = self.assigning.queue.front() {
            let Some(sfi) = self.choose(event) else { return };
            self.assigning.queue.pop_front();
            self.build_at(now, event, sfi, out);
        }
    }

    /// An SFI for an event, if one has room.
    pub(super) fn choose(&mut self, event: EventId) -> Option<usize> {
        if let Some(only) = self.only(event) {
            return Some(only).filter(|&sfi| self.sfis[sfi].room(self.parameters.building) > 0);
        }
        let room = self.sfis.iter().map(|sfi| sfi.room(self.parameters.building));
        self.preferred(event).or_else(|| self.assigning.chooser.choose(room))
    }

    /// The SFI that the event's data are pushed to by its number, if it builds.
    pub(super) fn only(&self, event: EventId) -> Option<usize> {
        let Choice::Only(node) = self.push.choice(event) else { return None };
        let is_new = self.open.get(event).is_some_and(|open| open.attempt == 0);
        self.sfis.iter().position(|sfi| sfi.node == node && sfi.builds()).filter(|_| is_new)
    }

    /// The table of destinations holds those SFIs that build.
    pub(super) fn publish(&mut self, out: &mut Outbox) {
        if self.push.is_on() && self.returning.recovery.is_none() {
            let building: Vec<NodeId> = self.sfis.iter().filter(|sfi| sfi.builds()).map(|sfi| sfi.node).collect();
            if building.len() == self.sfis.len() {
                self.push.start();
            }
            let oldest = self.oldest_unfinished();
            self.counters.destinations += u64::from(self.push.publish(building, oldest, out));
        }
    }

    pub(super) fn set_late(&mut self, sfi: usize, late: bool, out: &mut Outbox) {
        if self.sfis[sfi].late != late {
            self.sfis[sfi].late = late;
            self.publish(out);
        }
    }

    /// The SFI that has some of the event's data, if it has room.
    pub(super) fn preferred(&self, event: EventId) -> Option<usize> {
        let DfmInput::Level2 { .. } = self.parameters.input else { return None };
        let builder = self.open.get(event)?.builder?;
        let is_it = |sfi: &Sfi| sfi.node == builder && sfi.room(self.parameters.building) > 0;
        self.sfis.iter().position(is_it)
    }

    pub(super) fn build_at(&mut self, now: Time, event: EventId, sfi: usize, out: &mut Outbox) {
        let Some(open) = self.open.get_mut(event) else { return };
        let to = self.sfis[sfi].node;
        // The first attempt is pushed; one that is not, is not the first.
        let is_late = open.attempt == 0 && self.push.is_on() && !self.push.is_pushed(event, to);
        open.attempt = open.attempt.saturating_add(if is_late { 2 } else { 1 });
        open.state = BuildState::Building { sfi, since: now };
        self.sfis[sfi].building += 1;
        self.assigning.timeouts.push_back((now + self.parameters.build_timeout, event, open.attempt));
        let Open { event, has_result, attempt, .. } = *open;
        if attempt == 1 {
            self.push.order(event, to, out);
        }
        if let Some(events) = self.outgoing.builds.add(to, Assignment { event, attempt, has_result }, 1) {
            self.tell_ledger(to, out);
            out.send(to, Message::Build { events, oldest_unfinished: self.oldest_unfinished() });
        }
    }

    /// A slow event goes to another SFI, if one has room.
    pub(super) fn on_timeout(&mut self, now: Time, event: EventId, attempt: u16, out: &mut Outbox) {
        let Some(open) = self.open.get(event).filter(|open| open.attempt == attempt) else { return };
        let BuildState::Building { sfi: late, .. } = open.state else { return };
        if self.returning.recovery.is_some() {
            // Its end may have come, and waits.
            return self.assigning.timeouts.push_back((now + self.parameters.build_timeout, event, attempt));
        }
        self.set_late(late, true, out);
        let most = self.parameters.building;
        let room = self.sfis.iter().enumerate().map(|(sfi, it)| if sfi == late { 0 } else { it.room(most) });
        match self.assigning.chooser.choose(room).filter(|_| attempt < ATTEMPTS_MAX) {
            Some(sfi) => {
                self.counters.reassigned += 1;
                self.build_at(now, event, sfi, out);
            }
            None => self.assigning.timeouts.push_back((now + self.parameters.build_timeout, event, attempt)),
        }
    }

    /// The open events of an SFI that was lost are built elsewhere.
    pub(super) fn reclaim(&mut self, lost: usize) {
        for (event, open) in self.open.iter_mut().rev() {
            match open.state {
                BuildState::Building { sfi, .. } if sfi == lost => {}
                BuildState::Granted { sfi } if sfi == lost => {
                    let counted = &mut self.sfis[lost];
                    let complete = open.granted.is_some_and(|granted| granted.complete);
                    *self.counters.built(complete) -= 1;
                    *if complete { &mut counted.complete } else { &mut counted.incomplete } -= 1;
                }
                _ => continue,
            }
            open.state = BuildState::Queued;
            self.counters.reassigned += 1;
            self.assigning.queue.push_front(event);
        }
    }

    /// Nobody is left to build. What was built and not finished is not built again: the filter daemons are asked.
    pub(super) fn give_up_queue(&mut self, out: &mut Outbox) {
        while let Some(event) = self.assigning.queue.pop_front() {
            if let Some(open) = self.open.remove(event) {
                self.give_up(event, &open);
                if open.granted.is_none() {
                    out.note(Note::NotBuilt(event));
                }
            }
        }
        (0..self.sfis.len()).for_each(|sfi| self.orphan_cleared(sfi, out));
    }

    /// An event that was granted before may be with an EFD still: its fate can come.
    pub(super) fn give_up(&mut self, event: EventId, open: &Open) {
        let Some(granted) = open.granted else {
            return self.close_not_built(open.event);
        };
        if open.built().is_none() {
            self.count_built_before(granted.complete);
        }
        self.cleared.insert(event, granted);
    }
}

/// After so many attempts an event stays where it is: if all SFIs are slow, taking it from one to the next would never end.
const ATTEMPTS_MAX: u16 = 3;
