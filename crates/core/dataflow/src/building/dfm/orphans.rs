//! Events that were built, are not built again, and have lost their builder: only filter daemons can have them
//! still. They were cleared, or no builder is left.
//!
//! A builder that is out of reach has its events still, and may come back as it was. They are lost when its life is
//! over: when the builder is seen in a later life, or will not return. Each daemon within reach is then asked. It
//! answers when it has seen the life end: what the builder had sent has arrived by then. It also says what it had
//! told the builder of others, which may have told nobody. What no daemon knows is lost, and bounds nothing any
//! more.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::Dfm;
use crate::building::dfm::books::Granted;
use crate::building::dfm::closed::Outcome;
use crate::component::{Note, Outbox, PeerState};
use crate::ledger::Finish;
use crate::message::Message;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;

/// Events without a builder, until their fate is known.
pub(super) struct Orphans {
    efds: Vec<Efd>,
    turn: usize,
    /// By the builder that was lost.
    lost: BTreeMap<NodeId, Lost>,
}

struct Efd {
    node: NodeId,
    reachable: bool,
    gone: bool,
}

struct Lost {
    /// Its last life.
    life: Incarnation,
    events: BTreeMap<EventId, Orphan>,
    /// Daemons that have not said what they have.
    silent: BTreeSet<NodeId>,
}

struct Orphan {
    granted: Granted,
    /// Daemons that have it.
    holders: BTreeSet<NodeId>,
}

impl Orphans {
    pub(super) fn new(efds: &[NodeId]) -> Self {
        let efd = |&node: &NodeId| Efd { node, reachable: false, gone: false };
        Self { efds: efds.iter().map(efd).collect(), turn: 0, lost: BTreeMap::new() }
    }

    /// One that can be reached, each in its turn.
    pub(super) fn next_daemon(&mut self) -> Option<NodeId> {
        self.turn += 1;
        let reachable = || self.efds.iter().filter(|efd| efd.reachable);
        reachable().nth(self.turn % reachable().count().max(1)).map(|efd| efd.node)
    }

    pub(super) fn len(&self) -> usize {
        self.lost.values().map(|lost| lost.events.len()).sum()
    }

    pub(super) fn contains(&self, event: EventId) -> bool {
        self.lost.values().any(|lost| lost.events.contains_key(&event))
    }

    pub(super) fn oldest(&self) -> Option<EventId> {
        self.lost.values().filter_map(|lost| lost.events.keys().next()).min().copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (EventId, &Granted)> {
        self.lost.values().flat_map(|lost| &lost.events).map(|(event, orphan)| (*event, &orphan.granted))
    }

    /// Its fate is known. What it counts as, if it was there.
    pub(super) fn finish(&mut self, event: EventId) -> Option<Granted> {
        let orphan = self.lost.values_mut().find_map(|lost| lost.events.remove(&event))?;
        self.lost.retain(|_, lost| !lost.events.is_empty());
        Some(orphan.granted)
    }

    /// A builder is lost, in this life, with these events.
    fn lose(&mut self, sfi: NodeId, life: Incarnation, events: Vec<(EventId, Granted)>, out: &mut Outbox) {
        if events.is_empty() {
            return;
        }
        let known = self.lost.remove(&sfi).map(|lost| lost.events).unwrap_or_default();
        let known = known.into_iter().map(|(event, orphan)| (event, orphan.granted));
        let unheld = |(event, granted)| (event, Orphan { granted, holders: BTreeSet::new() });
        let events: BTreeMap<_, _> = known.chain(events).map(unheld).collect();
        let silent = self.efds.iter().filter(|efd| !efd.gone).map(|efd| efd.node).collect();
        for efd in self.efds.iter().filter(|efd| efd.reachable) {
            out.send(efd.node, Message::Orphaned { sfi, life });
        }
        self.lost.insert(sfi, Lost { life, events, silent });
    }

    /// What a daemon had it may not have any more; one that comes up is asked.
    fn on_efd(&mut self, node: NodeId, state: PeerState, out: &mut Outbox) {
        let Some(efd) = self.efds.iter_mut().find(|efd| efd.node == node) else { return };
        (efd.reachable, efd.gone) = (matches!(state, PeerState::Up(_)), state == PeerState::Gone);
        for (&sfi, lost) in &mut self.lost {
            lost.events.values_mut().for_each(|orphan| _ = orphan.holders.remove(&node));
            if efd.gone {
                lost.silent.remove(&node);
            } else {
                lost.silent.insert(node);
            }
            if efd.reachable {
                out.send(node, Message::Orphaned { sfi, life: lost.life });
            }
        }
    }

    fn on_told(&mut self, from: NodeId, sfi: NodeId, life: Incarnation, events: &[EventId], last: bool) {
        let Some(lost) = self.lost.get_mut(&sfi).filter(|lost| lost.life == life) else { return };
        for event in events {
            lost.events.get_mut(event).into_iter().for_each(|orphan| _ = orphan.holders.insert(from));
        }
        if last {
            lost.silent.remove(&from);
        }
    }

    /// Takes out those that nobody has.
    fn take_lost(&mut self) -> Vec<(EventId, Granted)> {
        let mut taken = Vec::new();
        for lost in self.lost.values_mut().filter(|lost| lost.silent.is_empty()) {
            let unheld = lost.events.iter().filter(|(_, orphan)| orphan.holders.is_empty());
            taken.extend(unheld.map(|(event, orphan)| (*event, orphan.granted)));
            lost.events.retain(|_, orphan| !orphan.holders.is_empty());
        }
        self.lost.retain(|_, lost| !lost.events.is_empty());
        taken
    }
}

impl Dfm {
    /// A builder came or went: what it had built and was cleared may be lost with its former life.
    pub(super) fn orphan(&mut self, sfi: usize, state: PeerState, out: &mut Outbox) {
        let is_over = match state {
            PeerState::Up(life) => self.sfis[sfi].life != Some(life),
            PeerState::Down => false,
            PeerState::Gone => true,
        };
        if is_over {
            self.orphan_cleared(sfi, out);
        }
        if let PeerState::Up(life) = state {
            self.sfis[sfi].life = Some(life);
        }
    }

    /// The life in which the builder was seen last is over.
    pub(super) fn orphan_cleared(&mut self, sfi: usize, out: &mut Outbox) {
        let Some(life) = self.sfis[sfi].life else { return };
        let mut events = Vec::new();
        self.cleared.retain(|event, granted: &Granted| {
            let is_its = usize::from(granted.sfi) == sfi;
            if is_its {
                events.push((event, *granted));
            }
            !is_its
        });
        self.orphans.lose(self.sfis[sfi].node, life, events, out);
        self.give_up_lost(out);
    }

    pub(super) fn on_efd(&mut self, node: NodeId, state: PeerState, out: &mut Outbox) {
        self.orphans.on_efd(node, state, out);
        self.give_up_lost(out);
    }

    pub(super) fn on_orphans(
        &mut self,
        from: NodeId,
        (sfi, life): (NodeId, Incarnation),
        events: &[EventId],
        last: bool,
        out: &mut Outbox,
    ) {
        self.orphans.on_told(from, sfi, life, events, last);
        self.give_up_lost(out);
    }

    /// Of what a lost builder was told it may have told some before it was lost.
    pub(super) fn finish_orphans(&mut self, now: Time, fates: &[Finish], out: &mut Outbox) {
        for finish in fates.iter().filter(|finish| self.orphans.contains(finish.event)).collect::<Vec<_>>() {
            self.finish(now, finish, out);
        }
    }

    fn give_up_lost(&mut self, out: &mut Outbox) {
        for (event, Granted { complete, grounds, .. }) in self.orphans.take_lost() {
            self.counters.lost_built += 1;
            out.note(Note::LostBuilt(event));
            self.closed_events.insert(event, Outcome::Lost { complete }, grounds);
        }
    }
}
