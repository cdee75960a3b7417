//! What has become of accepted events, for a later life of the dataflow manager.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use super::Dfm;
use crate::building::dfm::books::Granted;
use crate::component::Outbox;
use crate::ledger::{Finish, Ledger, Tally};
use crate::message::{EventInfo, Fate, Grounds, Message};
use crate::report::DfmCounters;
use base::event_map::EventMap;
use base::ids::{EventId, NodeId};

/// Events of which nothing more will be heard: below a bound by their counts, else one by one.
pub(super) struct Closed {
    /// Whether there may be a later life, or was a former one.
    is_kept: bool,
    ledger: Ledger,
    /// Those that are not below the bound, and on what level 2 had accepted them.
    events: EventMap<(Outcome, Grounds)>,
    /// Below which bound peers know the counts.
    told: BTreeMap<NodeId, EventId>,
}

/// What became of an event.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    NotBuilt,
    Lost { complete: bool },
    Finished { complete: bool, fate: Fate },
}

impl Closed {
    pub(super) fn new(is_kept: bool) -> Self {
        Self { is_kept, ledger: Ledger::default(), events: EventMap::new(), told: BTreeMap::new() }
    }

    pub(super) fn contains(&self, event: EventId) -> bool {
        self.is_kept && (event < self.ledger.below || self.events.contains(event))
    }

    pub(super) fn insert(&mut self, event: EventId, outcome: Outcome, grounds: Grounds) {
        if self.is_kept {
            self.events.insert(event, (outcome, grounds));
        }
    }

    /// Everything below is finished for good.
    pub(super) fn raise(&mut self, below: EventId) {
        if below > self.ledger.below {
            let passed = self.pass(below);
            self.ledger.tally = self.ledger.tally.plus(passed);
            self.ledger.below = below;
        }
    }

    /// Those that are not below the bound, each with what level 2 had accepted it on.
    pub(super) fn accepted(&self) -> impl Iterator<Item = (EventId, Grounds)> {
        self.events.iter().map(|(event, (_, grounds))| (event, *grounds))
    }

    /// How many events are below the bound.
    pub(super) fn below_bound(&self) -> u64 {
        self.ledger.tally.events()
    }

    /// Goes on from what somebody else was told. What was counted here of the events below.
    fn replace(&mut self, ledger: &Ledger) -> Tally {
        let counted = self.pass(ledger.below).plus(self.ledger.tally);
        self.ledger = *ledger;
        counted
    }

    /// The peer may be in another life.
    pub(super) fn forget_told(&mut self, node: NodeId) {
        self.told.remove(&node);
    }

    fn pass(&mut self, below: EventId) -> Tally {
        let mut passed = Tally::default();
        while let Some(event) = self.events.first().filter(|event| *event < below) {
            let (outcome, grounds) = self.events.remove(event).expect("the first is there");
            outcome.count_in(&mut passed);
            passed.count_grounds(grounds);
        }
        passed
    }

    /// Asserts that all events that the counters hold as finished are here, once, and with those in hand the grounds of all.
    pub(super) fn check(&self, counters: &DfmCounters, in_hand: impl Iterator<Item = Grounds>) {
        if !self.is_kept {
            return;
        }
        let mut all = self.ledger.tally;
        for (outcome, grounds) in self.events.values() {
            outcome.count_in(&mut all);
            all.count_grounds(*grounds);
        }
        in_hand.for_each(|grounds| all.count_grounds(grounds));
        let DfmCounters { not_built, rejected, accepted, debug, unrecorded, abandoned, lost_built: lost, .. } =
            *counters;
        let (complete, incomplete) = (all.complete, all.incomplete);
        let (forced, on_part) = (counters.taken_forced, counters.taken_incomplete);
        let built = Tally { complete, incomplete, not_built, lost, forced, on_part, ..Tally::default() };
        let counted = Tally { rejected, accepted, debug, unrecorded, abandoned, ..built };
        assert_eq!(all, counted, "every finished event in the books");
    }
}

impl Outcome {
    fn count_in(self, tally: &mut Tally) {
        let complete = match self {
            Self::NotBuilt => return tally.not_built += 1,
            Self::Lost { complete } => {
                tally.lost += 1;
                complete
            }
            Self::Finished { complete, fate } => {
                *tally.of_fate(fate) += 1;
                complete
            }
        };
        *if complete { &mut tally.complete } else { &mut tally.incomplete } += 1;
    }
}

impl Dfm {
    /// A peer that may forget what is below the bound learns first what has become of it.
    pub(super) fn tell_ledger(&mut self, to: NodeId, out: &mut Outbox) {
        if !self.closed_events.is_kept {
            return;
        }
        let bound = self.oldest_unfinished();
        let closed = &mut self.closed_events;
        closed.raise(bound);
        let below = closed.ledger.below;
        if closed.told.insert(to, below).unwrap_or_default() != below {
            out.send(to, Message::Ledger(Box::new(closed.ledger)));
        }
    }

    /// Filter daemons remember what they have said of events until they know these counts, and take turns to be told.
    pub(super) fn tell_next_daemon(&mut self, out: &mut Outbox) {
        if let Some(efd) = self.orphans.next_daemon() {
            self.tell_ledger(efd, out);
        }
    }

    /// Takes over what a former life had counted, as somebody was told. What of these events is in hand here is a void attempt, or was
    /// built twice.
    pub(super) fn on_ledger(&mut self, ledger: &Ledger) {
        if ledger.below <= self.closed_events.ledger.below || !self.closed_events.is_kept {
            return;
        }
        let counted = self.closed_events.replace(ledger);
        self.counters.count(ledger.tally, u64::wrapping_add);
        self.counters.count(counted, u64::wrapping_sub);
        let below = ledger.below;
        while let Some(event) = self.open.first().filter(|event| *event < below) {
            let open = self.open.remove(event).expect("the first is there");
            self.assigning.queue.retain(|waiting| *waiting != event);
            self.forget(open.event.grounds, open.built());
        }
        while let Some(event) = self.cleared.first().filter(|event| *event < below) {
            let granted = self.cleared.remove(event).expect("the first is there");
            self.forget(granted.grounds, Some(granted));
        }
        while let Some(event) = self.orphans.oldest().filter(|event| *event < below) {
            let granted = self.orphans.finish(event).expect("the oldest is there");
            self.forget(granted.grounds, Some(granted));
        }
    }

    fn forget(&mut self, grounds: Grounds, built: Option<Granted>) {
        self.counters.taken_accepted -= 1;
        let mut tally = Tally::default();
        tally.count_grounds(grounds);
        self.counters.count(tally, u64::wrapping_sub);
        if let Some(granted) = built {
            *self.counters.built(granted.complete) -= 1;
        }
    }

    /// What became of an event, from whoever says so first. Whether that was news.
    pub(super) fn close_unseen(&mut self, finish: &Finish) -> bool {
        let Finish { event, complete, grounds, .. } = *finish;
        if self.closed_events.contains(event) || !self.parameters.late {
            return false;
        }
        self.counters.taken_accepted += 1;
        self.count_grounds(grounds);
        *self.counters.built(complete) += 1;
        self.counters.finished_unseen += 1;
        self.close_built(finish);
        true
    }

    /// An event was given up before it was built.
    pub(super) fn close_not_built(&mut self, event: EventInfo) {
        self.counters.not_built += 1;
        self.closed_events.insert(event.event, Outcome::NotBuilt, event.grounds);
    }

    /// An event that counts as built is finished.
    pub(super) fn close_built(&mut self, finish: &Finish) {
        let Finish { event, fate, complete, grounds } = *finish;
        let mut tally = Tally::default();
        *tally.of_fate(fate) += 1;
        self.counters.count(tally, u64::wrapping_add);
        self.closed_events.insert(event, Outcome::Finished { complete, fate }, grounds);
    }
}

impl DfmCounters {
    pub(super) fn built(&mut self, complete: bool) -> &mut u64 {
        if complete { &mut self.built_complete } else { &mut self.built_incomplete }
    }

    fn count(&mut self, tally: Tally, count: fn(u64, u64) -> u64) {
        let change = |counter: &mut u64, by: u64| *counter = count(*counter, by);
        change(&mut self.taken_accepted, tally.events());
        change(&mut self.built_complete, tally.complete);
        change(&mut self.built_incomplete, tally.incomplete);
        change(&mut self.not_built, tally.not_built);
        change(&mut self.lost_built, tally.lost);
        change(&mut self.taken_forced, tally.forced);
        change(&mut self.taken_incomplete, tally.on_part);
        change(&mut self.rejected, tally.rejected);
        change(&mut self.accepted, tally.accepted);
        change(&mut self.debug, tally.debug);
        change(&mut self.unrecorded, tally.unrecorded);
        change(&mut self.abandoned, tally.abandoned);
    }
}
