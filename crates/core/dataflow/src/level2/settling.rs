//! What level 1 is told of decided events, so that it does not tell them again to a supervisor that returns.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::component::Outbox;
use crate::message::{Message, Settlement};
use base::ids::{EventId, NodeId};
use base::time::Time;

/// Decided events on their way into the memory of level 1.
///
/// Behind a DFM an event is settled when the DFM has taken its decision over. The DFM remembers it until level 1 has
/// forgotten the event. A supervisor that clears settles each event first. So the next life finds all data of an event
/// that is not settled, and decides it anew.
pub(crate) struct Settling {
    level1: NodeId,
    /// Told to level 1 and not acknowledged, in order.
    told: VecDeque<Group>,
    /// Decided and not told; without a DFM only.
    pending: Vec<Settlement>,
    /// Of these.
    oldest_pending: Option<EventId>,
    due: Option<Time>,
    size: usize,
    age: Duration,
    /// Groups that were cleared.
    cleared: u64,
    /// Told again by level 1, until the DFM has said what it has of them.
    unsure: Vec<EventId>,
    /// What the DFM has taken over from former lives; `None` before it has said so.
    before: Option<BTreeMap<EventId, Settlement>>,
    /// As far as it has said so.
    before_so_far: BTreeMap<EventId, Settlement>,
}

/// Decisions that level 1 was told at once.
struct Group {
    told: Told,
    decided: Vec<Settlement>,
    /// The oldest of them.
    oldest: Option<EventId>,
}

/// What level 1 has been told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Decisions in this group to the DFM; 0: to a former life of it.
    Group(u64),
    /// Decisions of former lives.
    Former,
    /// Decisions without a DFM, to be cleared.
    Clear,
}

impl Settling {
    /// For groups of `size` events, none kept back longer than `age`.
    pub(crate) fn new(level1: NodeId, size: usize, age: Duration) -> Self {
        Self {
            level1,
            told: VecDeque::new(),
            pending: Vec::new(),
            oldest_pending: None,
            due: None,
            size,
            age,
            cleared: 0,
            unsure: Vec::new(),
            before: None,
            before_so_far: BTreeMap::new(),
        }
    }

    /// Tells level 1 that the DFM has taken a group of decisions over.
    pub(crate) fn tell_group(&mut self, sequence: u64, decided: Vec<Settlement>, out: &mut Outbox) {
        self.tell(Told::Group(sequence), decided, out);
    }

    fn tell(&mut self, told: Told, decided: Vec<Settlement>, out: &mut Outbox) {
        out.send(self.level1, self.message(told, &decided));
        let oldest = decided.iter().map(|settlement| settlement.event).min();
        self.told.push_back(Group { told, decided, oldest });
    }

    fn message(&self, told: Told, decided: &[Settlement]) -> Message {
        let cleared = if told == Told::Clear { self.cleared } else { u64::MAX };
        Message::Settled { cleared, decided: decided.to_vec() }
    }

    /// Level 1 is within reach, and was not before.
    pub(crate) fn tell_again(&self, out: &mut Outbox) {
        self.told.iter().for_each(|group| out.send(self.level1, self.message(group.told, &group.decided)));
    }

    /// Adds an event that is to be cleared; whether the group is full.
    pub(crate) fn add(&mut self, now: Time, settlement: Settlement, hurry: bool) -> bool {
        self.oldest_pending = Some(self.oldest_pending.map_or(settlement.event, |oldest| oldest.min(settlement.event)));
        self.pending.push(settlement);
        self.due.get_or_insert(now + self.age);
        self.pending.len() >= self.size || hurry
    }

    /// Tells level 1 what waits to be told.
    pub(crate) fn tell_pending(&mut self, out: &mut Outbox) {
        self.due = None;
        self.oldest_pending = None;
        if !self.pending.is_empty() {
            let decided = core::mem::take(&mut self.pending);
            self.tell(Told::Clear, decided, out);
        }
    }

    /// Level 1 has taken the oldest of what it was told.
    pub(crate) fn on_taken(&mut self) -> Option<(Told, Vec<Settlement>)> {
        let Group { told, decided, .. } = self.told.pop_front()?;
        match told {
            Told::Group(_) => {}
            // Level 1 tells nothing of that again, and what it had told has come.
            Told::Former => self.before = Some(BTreeMap::new()),
            Told::Clear => self.cleared += 1,
        }
        Some((told, decided))
    }

    /// A DFM that returns does not know the groups that were told.
    pub(crate) fn void_groups(&mut self) {
        for group in &mut self.told {
            if let Told::Group(sequence) = &mut group.told {
                *sequence = 0;
            }
        }
    }

    /// The DFM says what it has taken over from former lives; the events that had waited for that, once it has said all.
    pub(crate) fn on_taken_before(&mut self, decided: Vec<Settlement>, last: bool, out: &mut Outbox) -> Vec<EventId> {
        if self.before.is_some() {
            return Vec::new();
        }
        self.before_so_far.extend(decided.iter().map(|settlement| (settlement.event, *settlement)));
        if !last {
            // The DFM may forget what it has said when level 1 knows all of it.
            self.tell(Told::Group(0), decided, out);
            return Vec::new();
        }
        self.tell(Told::Former, decided, out);
        self.before = Some(core::mem::take(&mut self.before_so_far));
        core::mem::take(&mut self.unsure)
    }

    /// How a former life has decided an event, if the DFM has said so.
    pub(crate) fn decided_before(&self, event: EventId) -> Option<Settlement> {
        self.before.as_ref()?.get(&event).copied()
    }

    /// Those of the events that wait for the DFM which it has not named.
    pub(crate) fn not_named(&self, decided: &[Settlement]) -> Vec<EventId> {
        let is_named = |event: &EventId| {
            self.before_so_far.contains_key(event) || decided.iter().any(|settlement| settlement.event == *event)
        };
        self.unsure.iter().copied().filter(|event| !is_named(event)).collect()
    }

    /// Whether the DFM has said what it has taken over from former lives.
    pub(crate) fn is_sure(&self) -> bool {
        self.before.is_some()
    }

    /// Keeps an event that level 1 tells again until the DFM has spoken.
    pub(crate) fn wait_for_dfm(&mut self, event: EventId) {
        self.unsure.push(event);
    }

    /// Nobody will say what former lives have decided; the events that had waited for that.
    pub(crate) fn be_sure(&mut self) -> Vec<EventId> {
        self.before.get_or_insert_default();
        core::mem::take(&mut self.unsure)
    }

    /// The oldest event that is decided and not settled, where it is cleared here. Asked for each event: costs the groups that
    /// are not acknowledged.
    pub(crate) fn oldest(&self) -> Option<EventId> {
        self.to_clear().filter_map(|group| group.oldest).chain(self.oldest_pending).min()
    }

    /// Whether nothing waits to be cleared.
    pub(crate) fn is_flushed(&self) -> bool {
        self.pending.is_empty() && self.to_clear().next().is_none()
    }

    fn to_clear(&self) -> impl Iterator<Item = &Group> {
        self.told.iter().filter(|group| group.told == Told::Clear)
    }

    /// All that was to be settled before it is cleared: level 1 is gone, or everything is given up.
    pub(crate) fn give_up(&mut self) -> Vec<EventId> {
        self.due = None;
        self.oldest_pending = None;
        let told = self.told.drain(..).filter(|group| group.told == Told::Clear).flat_map(|group| group.decided);
        told.chain(self.pending.drain(..)).map(|settlement| settlement.event).collect()
    }

    /// When to tell what is pending.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Grounds;

    #[test]
    fn the_oldest_is_that_of_what_level_1_has_not_taken() {
        let mut settling = Settling::new(NodeId(1), 2, Duration::from_millis(1));
        let mut out = Outbox::new();
        assert_eq!((settling.oldest(), settling.is_flushed()), (None, true));
        for events in [[5, 3], [4, 9]] {
            for event in events {
                let settlement = Settlement { event: EventId(event), accept: true, grounds: Grounds::Data };
                settling.add(Time::ZERO, settlement, false);
            }
            assert!(settling.oldest() == Some(EventId(3)));
            settling.tell_pending(&mut out);
        }
        assert_eq!(settling.oldest(), Some(EventId(3)));
        settling.on_taken();
        assert_eq!((settling.oldest(), settling.is_flushed()), (Some(EventId(4)), false));
        assert_eq!(settling.give_up(), [EventId(4), EventId(9)]);
        assert_eq!((settling.oldest(), settling.is_flushed()), (None, true));
    }
}
