//! What can be told from messages alone, beside the components' own counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use assembly::bounds::{Bounds, Credit};
use base::ids::{EventId, Incarnation, NodeId, Role};
use base::time::Time;
use dataflow::component::Note;
use dataflow::ledger::Finish;
use dataflow::message::{BusyCause, DataReply, Envelope, EventInfo, Fate, Message, UNASKED};

/// Follows credits, busy, clears and who serves an event in what is sent.
#[derive(Default)]
pub(super) struct Monitor {
    enabled: bool,
    /// Without these buffers an event is dropped, or set apart.
    withheld: BTreeSet<u32>,
    sfis: BTreeSet<NodeId>,
    /// When level 1 issued the events that level 2 has not decided.
    issued: BTreeMap<EventId, Time>,
    /// What level 1 has told anybody, by its place in the run.
    pub(super) ordinals: BTreeMap<u64, EventId>,
    /// No event up to this one will be issued, as it has told anybody.
    pub(super) issued_up_to: EventId,
    pub(super) level2: Vec<Decided>,
    /// Who has told whom that it is busy.
    busy: BTreeSet<(NodeId, BusyCause, NodeId)>,
    /// Who has drained, and is not to be busy when the run ends.
    drained: BTreeSet<NodeId>,
    pub(super) busy_changes: Vec<(Time, BusyCause, bool)>,
    /// Of each EFD at each SFI, in their lives: what it has asked for beyond what it was sent.
    pulls: BTreeMap<(Life, Life), i64>,
    /// The clear group of each event, and the life of whoever sent it: what its former life has cleared may be cleared again.
    cleared: BTreeMap<EventId, (Incarnation, u64)>,
    /// The living event builder that has served or finished an event.
    served: BTreeMap<EventId, NodeId>,
    /// Event builders that a DFM did not wait for any longer: what they hold may be built a second time.
    given_up: BTreeSet<NodeId>,
    pub(super) pushed: Vec<Pushed>,
    /// What builders have said that they took of what sources have pushed.
    taken: BTreeMap<(NodeId, NodeId), u64>,
    /// Who has rejected events, or was the last that is known to have taken that over.
    rejected: BTreeMap<EventId, NodeId>,
    /// Of these buffers, those that the copy of each event lacked that was served first, and whether another copy lacked others.
    lacking: BTreeMap<EventId, (Vec<u32>, bool)>,
    /// Events that level 2 has rejected.
    not_built: BTreeSet<EventId>,
    /// Events whose fate a filter daemon that lives has told, and who knows it last.
    fates: BTreeMap<EventId, (NodeId, NodeId)>,
    /// Events that a DFM that lives took for lost with their builder: its next life may find them.
    lost_built: BTreeMap<EventId, NodeId>,
    /// What may be on its way, and what is. The key is the life that has sent it, the life that is to take it, and the credit.
    bounds: Option<Bounds>,
    on_the_way: BTreeMap<(Life, Life, Credit), usize>,
    /// What must never be.
    pub(super) violations: Vec<String>,
}

/// A decision of level 2 as the DFM hears of it.
#[derive(Clone, Copy, Debug)]
pub struct Decided {
    /// When it was told.
    pub at: Time,
    /// Since level 1 had issued the event.
    pub latency: Duration,
}

/// An event that a read-out system has pushed.
#[derive(Clone, Copy, Debug)]
pub struct Pushed {
    /// The read-out system.
    pub from: NodeId,
    /// Its life.
    pub life: Incarnation,
    /// The event builder.
    pub to: NodeId,
    /// When it may have been decided to send it, by the clock of the sender: the beginning of its pass.
    pub earliest: Time,
    /// When it was sent, by that clock.
    pub at: Time,
    /// How late its sender was called in its life until then, at the worst.
    pub late: Duration,
    /// The event.
    pub event: EventId,
    /// Its data in bytes.
    pub len_bytes: u32,
    /// What the builder had said by then that it had taken, in bytes.
    pub credit: u64,
}

/// An application in one of its lives.
pub(super) type Life = (NodeId, Incarnation);

impl Monitor {
    pub(super) fn new(enabled: bool, withheld: BTreeSet<u32>, sfis: impl Iterator<Item = NodeId>) -> Self {
        Self { enabled, withheld, sfis: sfis.collect(), ..Self::default() }
    }

    /// No more than this may be on its way.
    pub(super) fn bounded(&mut self, bounds: Bounds) {
        self.bounds = Some(bounds);
    }

    /// A message is on its way.
    ///
    /// # Panics
    /// If no credit is left for it.
    pub(super) fn goes(&mut self, envelope: &Envelope, message: &Message) {
        let Some(bounds) = &self.bounds else { return };
        let Some((credit, count)) = Credit::of(message) else { return };
        let on_the_way = self.on_the_way.entry(way_of(envelope, credit)).or_default();
        *on_the_way += count;
        let most = bounds.most_between(credit, envelope.from, envelope.to);
        let Envelope { from, to, .. } = envelope;
        assert!(*on_the_way <= most, "{on_the_way} of {credit:?} from {from:?} to {to:?}: {most} credits");
    }

    /// It is taken.
    pub(super) fn comes(&mut self, envelope: &Envelope, message: &Message) {
        if self.bounds.is_some()
            && let Some((credit, count)) = Credit::of(message)
            && let Some(on_the_way) = self.on_the_way.get_mut(&way_of(envelope, credit))
        {
            *on_the_way = on_the_way.saturating_sub(count);
        }
    }

    /// A place in the run has one event, and numbers rise with places.
    fn orders(&mut self, info: &EventInfo) {
        let EventInfo { event, ordinal, .. } = *info;
        let known = *self.ordinals.entry(ordinal).or_insert(event);
        let before = self.ordinals.range(..ordinal).next_back().is_none_or(|(_, before)| *before < event);
        let after = self.ordinals.range(ordinal + 1..).next().is_none_or(|(_, after)| *after > event);
        if known != event || !before || !after {
            self.violations
                .push(format!("{event} is in place {ordinal} of the run, where {known} is, or out of order"));
        }
    }

    pub(super) fn noted(&mut self, from: NodeId, note: &Note) {
        match note {
            Note::RecoveredWithout(node) => _ = self.given_up.insert(*node),
            Note::LostBuilt(event) => _ = self.lost_built.insert(*event, from),
            _ => {}
        }
    }

    /// An event has one builder among those that live, whatever became of the DFM.
    fn serves(&mut self, from: NodeId, event: EventId) {
        let before = self.served.insert(event, from).filter(|before| *before != from);
        if let Some(before) = before
            && !self.given_up.contains(&before)
            && !self.given_up.contains(&from)
        {
            self.violations.push(format!("{before:?} and {from:?} both serve {event}"));
        }
    }

    /// A copy of an event comes to the event filter.
    fn lacks(&mut self, event: EventId, missing: &[u32]) {
        let missing: Vec<u32> = missing.iter().copied().filter(|rob| self.withheld.contains(rob)).collect();
        let (before, differ) = self.lacking.entry(event).or_insert_with(|| (missing.clone(), false));
        *differ |= *before != missing;
    }

    fn rejects(&mut self, from: NodeId, fates: &[Finish]) {
        let rejected = fates.iter().filter(|finish| finish.fate == Fate::Rejected);
        self.rejected.extend(rejected.map(|finish| (finish.event, from)));
    }

    pub(super) fn sent(&mut self, now: Time, envelope: &Envelope, message: &Message) {
        if !self.enabled {
            return;
        }
        let Envelope { from, to, from_incarnation, to_incarnation, .. } = *envelope;
        let (sender, receiver) = ((from, from_incarnation), (to, to_incarnation));
        match message {
            Message::L1Accept { events, .. } => events.iter().for_each(|event| self.orders(event)),
            Message::IssuedUpTo(last) => self.issued_up_to = self.issued_up_to.max(*last),
            Message::L1Result { event, .. } => {
                self.orders(event);
                self.issued.insert(event.event, now);
            }
            Message::Decisions { decisions, .. } => {
                for decision in decisions {
                    if !decision.accept {
                        self.rejected.insert(decision.event.event, from);
                        self.not_built.insert(decision.event.event);
                    }
                    if let Some(issued) = self.issued.remove(&decision.event.event) {
                        self.level2.push(Decided { at: now, latency: now.since(issued) });
                    }
                }
            }
            Message::Busy { cause, on } => {
                self.busy_changes.push((now, *cause, *on));
                if *on {
                    self.busy.insert((from, *cause, to));
                } else {
                    self.busy.remove(&(from, *cause, to));
                }
            }
            Message::Pull(count) => {
                *self.pulls.entry((sender, receiver)).or_default() += i64::from(*count);
            }
            Message::BuiltEvent(built) => {
                self.serves(from, built.event.event);
                self.lacks(built.event.event, &built.missing);
                if let Some(open) = self.pulls.get_mut(&(receiver, sender)) {
                    *open -= 1;
                }
            }
            Message::Finished(fates) if self.sfis.contains(&from) => {
                fates.iter().for_each(|finish| self.serves(from, finish.event));
                for finish in fates {
                    self.fates.entry(finish.event).and_modify(|(_, knows)| *knows = to);
                }
                self.rejects(from, fates);
            }
            Message::Finished(fates) => {
                self.fates.extend(fates.iter().map(|finish| (finish.event, (from, to))));
                self.rejects(from, fates);
            }
            Message::Held(holdings) if self.sfis.contains(&from) => {
                let granted = holdings.events.iter().filter(|held| held.granted).map(|held| held.assigned.event.event);
                let finished = holdings.finished.iter().map(|finish| finish.event);
                granted.chain(finished).for_each(|event| self.serves(from, event));
                self.rejects(from, &holdings.finished);
            }
            _ => {}
        }
    }

    /// It has let go of all it had.
    pub(super) fn drained(&mut self, node: NodeId) {
        self.drained.insert(node);
    }

    /// Who is busy though it has drained, in words.
    pub(super) fn still_busy(&self) -> Vec<String> {
        let has_drained = self.busy.iter().filter(|(node, ..)| self.drained.contains(node));
        has_drained.map(|(node, cause, _)| format!("{node:?}: {}", cause.describe())).collect()
    }

    /// What a source sends that nobody asked it for. It has the begin of the pass that decided it, now, and how late
    /// the source was at the worst.
    pub(super) fn pushed(
        &mut self,
        (earliest, at, late): (Time, Time, Duration),
        envelope: &Envelope,
        message: &Message,
    ) {
        let Envelope { from, to, from_incarnation: life, .. } = *envelope;
        match message {
            Message::EventReply { replies, .. } if self.enabled => {
                let credit = self.taken.get(&(from, to)).copied().unwrap_or(0);
                // One that names what may come yet brings no data.
                let brings = |reply: &&DataReply| reply.missing.iter().all(|missing| missing.lost);
                let pushed = replies.iter().filter(|reply| reply.request == UNASKED).filter(brings);
                self.pushed.extend(pushed.map(|reply| {
                    let (event, len_bytes) = (reply.event, reply.len_bytes);
                    Pushed { from, life, to, earliest, at, late, event, len_bytes, credit }
                }));
            }
            Message::Credit(taken) => {
                let before = self.taken.entry((to, from)).or_default();
                *before = (*before).max(*taken);
            }
            _ => {}
        }
    }

    /// Clears that every read-out system is sent; those that one asks for again go to it alone.
    pub(super) fn multicast(&mut self, from: NodeId, life: Incarnation, message: &Message) {
        let Message::Clear { sequence, events, .. } = message else { return };
        if !self.enabled {
            return;
        }
        for event in events.iter() {
            self.rejected.entry(*event).and_modify(|who| *who = from);
            if let Some((in_life, before)) = self.cleared.insert(*event, (life, *sequence))
                && in_life == life
                && before != *sequence
            {
                self.violations.push(format!("{from:?} clears {event} in group {before} and in group {sequence}"));
            }
        }
    }

    /// Nothing that it is owed or owes survives. If nobody drains any longer, its next life may take up old events, and nobody waits for
    /// those.
    pub(super) fn died(&mut self, node: NodeId, is_draining: bool) {
        self.busy.retain(|(from, _, to)| *from != node && *to != node);
        if !is_draining {
            self.drained.remove(&node);
        }
        self.served.retain(|_, sfi| *sfi != node);
        // A builder that dies takes along what it has not passed on: the event is built once more.
        let is_builder = self.sfis.contains(&node);
        self.fates.retain(|_, (efd, knows)| *efd != node && !(is_builder && *knows == node));
        self.lost_built.retain(|_, dfm| *dfm != node);
        // What it had said may not have been taken by anybody.
        self.rejected.retain(|_, who| *who != node);
    }

    /// Events that count as lost, though somebody has them: by the word of a filter daemon, or in a file.
    pub(super) fn falsely_lost(&self, recorded: &BTreeSet<EventId>) -> Vec<String> {
        let is_known = |event: &&EventId| self.fates.contains_key(event) || recorded.contains(event);
        let lost = self.lost_built.keys().filter(is_known);
        lost.map(|event| format!("{event} counts as lost with its builder, and its fate is known")).collect()
    }

    /// Events that are in files though level 2 or the event filter has rejected them. The filter may have dropped one copy of an event,
    /// and not another one.
    pub(super) fn rejected_and_recorded(&self, recorded: &BTreeSet<EventId>) -> Vec<String> {
        let differ =
            |event| self.lacking.get(event).is_some_and(|(_, differ)| *differ) && !self.not_built.contains(event);
        let both = self.rejected.iter().filter(|(event, _)| recorded.contains(event) && !differ(event));
        both.map(|(event, who)| format!("{event} is recorded, though {who:?} has rejected it")).collect()
    }

    /// Credits of EFDs that are not at their builders again, between the lives that are left.
    pub(super) fn lost_credits(&self, lives: impl Fn(Life) -> bool) -> Vec<String> {
        let Some(bounds) = &self.bounds else { return Vec::new() };
        let all = bounds.most(Credit::Pull, Role::Efd, Role::Sfi) as i64;
        let lost = self.pulls.iter().filter(|((efd, sfi), open)| **open != all && lives(*efd) && lives(*sfi));
        let words = |((efd, sfi), open): (&(Life, Life), &i64)| {
            format!("{:?} has {open} of {all} credits at {:?}", efd.0, sfi.0)
        };
        lost.map(words).collect()
    }
}

fn way_of(envelope: &Envelope, credit: Credit) -> (Life, Life, Credit) {
    ((envelope.from, envelope.from_incarnation), (envelope.to, envelope.to_incarnation), credit)
}

#[cfg(test)]
mod tests {
    use base::ids::RunNumber;
    use dataflow::message::{Decision, EventInfo, Grounds};

    use super::*;

    const L2SV: NodeId = NodeId(2);
    const DFM: NodeId = NodeId(3);
    const SFI: NodeId = NodeId(4);
    const EFD: NodeId = NodeId(6);
    const EVENT: EventId = EventId(7);

    fn says(monitor: &mut Monitor, from: NodeId, to: NodeId, message: &Message) {
        let (from_incarnation, to_incarnation) = (Incarnation(0), Incarnation(0));
        let envelope = Envelope { from, to, run: RunNumber(1), from_incarnation, to_incarnation };
        monitor.sent(Time::ZERO, &envelope, message);
    }

    fn is_rejected(monitor: &Monitor) -> bool {
        !monitor.rejected_and_recorded(&BTreeSet::from([EVENT])).is_empty()
    }

    #[test]
    fn who_has_drained_is_not_to_be_busy_and_who_returns_after_that_may_be() {
        let mut monitor = Monitor::new(true, BTreeSet::new(), [SFI].into_iter());
        let busy = Message::Busy { cause: BusyCause::BuildQueue, on: true };
        says(&mut monitor, DFM, L2SV, &busy);
        assert!(monitor.still_busy().is_empty(), "it has not drained");
        monitor.drained(DFM);
        assert_eq!(monitor.still_busy(), ["NodeId(3): events waiting to be built"]);
        monitor.died(DFM, true);
        assert!(monitor.still_busy().is_empty(), "its busy has died with it");
        says(&mut monitor, DFM, L2SV, &busy);
        assert_eq!(monitor.still_busy().len(), 1, "others drain, and wait for what its new life holds");
        monitor.died(DFM, false);
        says(&mut monitor, DFM, L2SV, &busy);
        assert!(monitor.still_busy().is_empty(), "nobody waits any longer");
    }

    #[test]
    fn a_rejection_that_a_builder_took_over_outlives_the_daemon_but_not_the_builder() {
        let mut monitor = Monitor::new(true, BTreeSet::new(), [SFI].into_iter());
        let fates = Message::Finished(vec![Finish {
            event: EVENT,
            fate: Fate::Rejected,
            complete: true,
            grounds: Grounds::Data,
        }]);
        says(&mut monitor, EFD, SFI, &fates);
        says(&mut monitor, SFI, DFM, &fates);
        monitor.died(EFD, false);
        assert!(is_rejected(&monitor));
        monitor.died(SFI, false);
        assert!(!is_rejected(&monitor), "it is served again");
    }

    #[test]
    fn a_rejection_that_the_dfm_has_cleared_outlives_who_rejected() {
        let info = EventInfo { event: EVENT, ..EventInfo::default() };
        let decisions = vec![Decision { event: info, accept: false, has_result: false, builder: None }];
        let decisions = Message::Decisions { sequence: 1, oldest_undecided: EventId(8), decisions };
        for is_cleared in [false, true] {
            let mut monitor = Monitor::new(true, BTreeSet::new(), [SFI].into_iter());
            says(&mut monitor, L2SV, DFM, &decisions);
            if is_cleared {
                let group =
                    Message::Clear { sequence: 1, oldest_valid: EventId(8), last: false, events: vec![EVENT].into() };
                monitor.multicast(DFM, Incarnation(0), &group);
            }
            monitor.died(L2SV, false);
            assert_eq!(is_rejected(&monitor), is_cleared);
        }
    }

    #[test]
    fn a_rejection_is_excused_by_the_filter_alone_and_only_if_a_copy_lacked_what_events_are_withheld_for() {
        let info = EventInfo { event: EVENT, ..EventInfo::default() };
        let fates = vec![Finish { event: EVENT, fate: Fate::Rejected, complete: false, grounds: Grounds::Data }];
        let decisions = vec![Decision { event: info, accept: false, has_result: false, builder: None }];
        let decisions = Message::Decisions { sequence: 1, oldest_undecided: EventId(8), decisions };
        for (lacking, by_level2, is_excused) in [(9, false, true), (8, false, false), (9, true, false)] {
            let mut monitor = Monitor::new(true, BTreeSet::from([9]), [SFI].into_iter());
            if by_level2 {
                says(&mut monitor, L2SV, DFM, &decisions);
            }
            monitor.lacks(EVENT, &[]);
            monitor.lacks(EVENT, &[lacking]);
            says(&mut monitor, EFD, SFI, &Message::Finished(fates.clone()));
            assert_eq!(is_rejected(&monitor), !is_excused, "lacks {lacking}, rejected by level 2: {by_level2}");
        }
    }
}
