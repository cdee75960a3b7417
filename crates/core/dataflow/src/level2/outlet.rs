//! Where the decisions of a supervisor go: to the DFM, in groups; or, where there is none, into clears.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::component::{Outbox, PeerState};
use crate::ledger::Ledger;
use crate::message::{Decision, Holdings, Message, MissedClears, Settlement};
use crate::readout::clears::Clears;
use crate::report::L2svCounters;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;

/// The way out of a supervisor.
pub(crate) enum Outlet {
    /// A DFM takes the decisions over, and clears.
    Dfm(Groups),
    /// Nobody builds: every decided event is cleared `[L2SCI2000 §2.1.5]`.
    Clears(Clears),
}

/// Groups of decisions, each kept until the DFM has taken it over. Accepted events stay until they are finished for good, to
/// be told again to a DFM that returns.
pub(crate) struct Groups {
    dfm: NodeId,
    size: usize,
    age: Duration,
    group: Vec<Decision>,
    due: Option<Time>,
    report_due: Option<Time>,
    /// Flushed and not taken over.
    sent: VecDeque<Group>,
    sent_decisions: usize,
    /// The DFM knows so many of these groups, from the front, and so many decisions. It hears the others as it takes those over:
    /// for a DFM that returns they may be many.
    told: usize,
    told_decisions: usize,
    /// Behind the last group nothing follows, and the DFM was not told that.
    owes_no_more: bool,
    /// Taken over; with accepted events only, of which one at least may be unfinished.
    taken: VecDeque<Group>,
    /// What the DFM has counted, for a later life of it.
    ledger: Ledger,
    /// The life of the DFM that was seen last.
    life: Option<Incarnation>,
    sequence: u64,
    gone: bool,
}

struct Group {
    sequence: u64,
    oldest_undecided: EventId,
    decisions: Vec<Decision>,
}

impl Outlet {
    /// For groups of `size` decisions, none kept back longer than `age`.
    pub(crate) fn new(dfm: Option<NodeId>, size: usize, age: Duration) -> Self {
        let Some(dfm) = dfm else { return Self::Clears(Clears::new(size, age)) };
        Self::Dfm(Groups {
            dfm,
            size,
            age,
            group: Vec::with_capacity(size),
            due: None,
            report_due: None,
            sent: VecDeque::new(),
            sent_decisions: 0,
            told: 0,
            told_decisions: 0,
            owes_no_more: false,
            taken: VecDeque::new(),
            ledger: Ledger::default(),
            life: None,
            sequence: 0,
            gone: false,
        })
    }

    /// The run begins.
    pub(crate) fn start(&mut self, now: Time) {
        if let Self::Clears(clears) = self {
            clears.start(now);
        }
    }

    /// Adds a decision; whether the group is full. `hurry` makes no decision wait for others, where that matters.
    pub(crate) fn add(&mut self, now: Time, decision: Decision, hurry: bool) -> bool {
        match self {
            Self::Dfm(groups) => {
                groups.group.push(decision);
                groups.due.get_or_insert(now + groups.age);
                groups.group.len() >= groups.size || hurry
            }
            Self::Clears(clears) => clears.add(now, decision.event.event),
        }
    }

    /// The DFM is to know before long how far level 2 has come.
    pub(crate) fn report_soon(&mut self, now: Time) {
        if let Self::Dfm(groups) = self {
            groups.report_due.get_or_insert(now + REPORT_EVERY);
        }
    }

    /// Sends what there is, and how far level 2 has come, even if there is nothing else. `oldest` is the oldest undecided
    /// event; `None` before level 1 has issued anything.
    pub(crate) fn flush(&mut self, now: Time, oldest: Option<EventId>, counters: &mut L2svCounters, out: &mut Outbox) {
        match self {
            Self::Dfm(groups) => groups.flush(now, oldest, out),
            Self::Clears(clears) => {
                counters.clear_groups += 1;
                out.multicast_to_readout(clears.flush(now, oldest.unwrap_or_default(), false));
            }
        }
    }

    /// Nothing follows what was flushed.
    pub(crate) fn close(&mut self, now: Time, counters: &mut L2svCounters, out: &mut Outbox) {
        match self {
            Self::Dfm(groups) => {
                groups.owes_no_more = true;
                groups.tell(out);
            }
            Self::Clears(clears) => {
                counters.clear_groups += 1;
                out.multicast_to_readout(clears.flush(now, EventId(u64::MAX), true));
            }
        }
    }

    /// The DFM has taken all groups up to this one over, and everything below an event is finished for good. If wanted, what
    /// these groups had decided.
    pub(crate) fn on_taken(
        &mut self,
        up_to: u64,
        oldest_unfinished: EventId,
        wanted: bool,
        out: &mut Outbox,
    ) -> Vec<(u64, Vec<Settlement>)> {
        let Self::Dfm(groups) = self else { return Vec::new() };
        let is_taken = |group: &&Group| group.sequence <= up_to;
        let settled = |group: &Group| (group.sequence, group.decisions.iter().map(Settlement::from).collect());
        let taken = if wanted { groups.sent.iter().take_while(is_taken).map(settled).collect() } else { Vec::new() };
        groups.on_taken(up_to, oldest_unfinished);
        groups.tell(out);
        taken
    }

    /// A read-out system has missed some clears.
    pub(crate) fn on_clear_ask(
        &self,
        from: NodeId,
        missed: MissedClears,
        counters: &mut L2svCounters,
        out: &mut Outbox,
    ) {
        if let Self::Clears(clears) = self {
            for group in clears.repeat(missed) {
                counters.clears_repeated += 1;
                out.send(from, group);
            }
        }
    }

    /// Events that former lives have accepted and that may be unfinished: a DFM that comes back is told of them, too.
    pub(crate) fn keep(&mut self, decisions: Vec<Decision>) {
        let Self::Dfm(groups) = self else { return };
        let accepted: Vec<Decision> = decisions.into_iter().filter(|decision| decision.accept).collect();
        if !accepted.is_empty() {
            // How far level 2 has come is told by the groups behind it.
            groups.taken.push_front(Group { sequence: 0, oldest_undecided: EventId(0), decisions: accepted });
        }
    }

    /// What has become of all events below a bound.
    pub(crate) fn on_ledger(&mut self, ledger: &Ledger) {
        if let Self::Dfm(groups) = self
            && ledger.below > groups.ledger.below
        {
            groups.ledger = *ledger;
        }
    }

    /// Everything below is finished for good, as far as the DFM has said so.
    pub(crate) fn finished_below(&self) -> EventId {
        match self {
            Self::Dfm(groups) => groups.ledger.below,
            Self::Clears(_) => EventId(0),
        }
    }

    /// A DFM that comes back is told again what it has not taken over. Whether groups have new numbers.
    pub(crate) fn on_peer(&mut self, node: NodeId, state: PeerState, done: bool, out: &mut Outbox) -> bool {
        let Self::Dfm(groups) = self else { return false };
        if node != groups.dfm {
            return false;
        }
        let mut anew = false;
        groups.gone = state == PeerState::Gone;
        if let PeerState::Up(life) = state {
            if groups.life.replace(life) != Some(life) {
                let ledger = Box::new(groups.ledger);
                if ledger.below > EventId(0) {
                    out.send(node, Message::Held(Holdings { ledger, ..Holdings::default() }));
                }
                groups.begin_anew();
                anew = true;
            }
            (groups.told, groups.told_decisions) = (0, 0);
            groups.owes_no_more = done;
            groups.tell(out);
        }
        anew
    }

    /// Decided events that the DFM has not taken over.
    pub(crate) fn in_hand(&self) -> usize {
        match self {
            Self::Dfm(groups) => groups.group.len() + groups.sent_decisions,
            Self::Clears(_) => 0,
        }
    }

    /// Whether there is nothing to flush.
    pub(crate) fn is_flushed(&self) -> bool {
        match self {
            Self::Dfm(groups) => groups.group.is_empty(),
            Self::Clears(_) => true,
        }
    }

    /// Whether all that was flushed has arrived, as far as anybody waits for it.
    pub(crate) fn is_taken(&self) -> bool {
        match self {
            Self::Dfm(groups) => groups.gone || groups.sent_decisions == 0,
            Self::Clears(_) => true,
        }
    }

    /// Waits no longer for the DFM.
    pub(crate) fn abandon(&mut self) {
        if let Self::Dfm(groups) = self {
            groups.sent.clear();
            groups.taken.clear();
            groups.sent_decisions = 0;
            (groups.told, groups.told_decisions) = (0, 0);
        }
    }

    /// When to flush.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        match self {
            Self::Dfm(groups) => [groups.due, groups.report_due].into_iter().flatten().min(),
            Self::Clears(clears) => clears.next_deadline(),
        }
    }

    /// Asserts that the outlet is consistent.
    pub(crate) fn check(&self) {
        if let Self::Dfm(groups) = self {
            let sent: usize = groups.sent.iter().map(|group| group.decisions.len()).sum();
            assert_eq!(groups.sent_decisions, sent, "decisions that the DFM has to acknowledge");
            let told: usize = groups.sent.iter().take(groups.told).map(|group| group.decisions.len()).sum();
            assert_eq!(groups.told_decisions, told, "decisions that the DFM was told");
            assert!(
                groups.taken.iter().flat_map(|group| &group.decisions).all(|d| d.accept),
                "accepted events are kept"
            );
        }
    }
}

impl Groups {
    fn flush(&mut self, now: Time, oldest: Option<EventId>, out: &mut Outbox) {
        self.due = None;
        self.report_due = Some(now + REPORT_EVERY);
        let Some(oldest_undecided) = oldest else { return };
        self.sequence += 1;
        let decisions = core::mem::replace(&mut self.group, Vec::with_capacity(self.size));
        let group = Group { sequence: self.sequence, oldest_undecided, decisions };
        self.sent_decisions += group.decisions.len();
        let waits = self.told < self.sent.len();
        self.sent.push_back(group);
        if waits {
            self.tell(out);
        } else {
            self.tell_next(out);
        }
    }

    /// Tells groups that wait, as far as the DFM has taken over what it was told.
    fn tell(&mut self, out: &mut Outbox) {
        while let Some(group) = self.sent.get(self.told)
            && (self.told_decisions == 0 || self.told_decisions + group.decisions.len() <= TOLD_TOGETHER_MAX)
        {
            self.tell_next(out);
        }
        if self.told == self.sent.len() && core::mem::take(&mut self.owes_no_more) {
            out.send(self.dfm, Message::NoMore);
        }
    }

    fn tell_next(&mut self, out: &mut Outbox) {
        let group = &self.sent[self.told];
        out.send(self.dfm, group.message());
        self.told += 1;
        self.told_decisions += group.decisions.len();
    }

    fn on_taken(&mut self, up_to: u64, oldest_unfinished: EventId) {
        while let Some(mut group) = self.sent.pop_front_if(|group| group.sequence <= up_to) {
            self.sent_decisions -= group.decisions.len();
            // A DFM that was told in an earlier connection names groups that were not told again yet.
            if self.told > 0 {
                self.told -= 1;
                self.told_decisions -= group.decisions.len();
            }
            group.decisions.retain(|decision| decision.accept && decision.event.event >= oldest_unfinished);
            if !group.decisions.is_empty() {
                self.taken.push_back(group);
            }
        }
        let is_finished = |group: &mut Group| group.decisions.iter().all(|d| d.event.event < oldest_unfinished);
        while self.taken.pop_front_if(is_finished).is_some() {}
    }

    /// A new life of the DFM has taken nothing over: it counts groups from 1, and is told of all that may be unfinished.
    fn begin_anew(&mut self) {
        self.taken.append(&mut self.sent);
        // In as few messages as may be, however small the groups were.
        for mut group in core::mem::take(&mut self.taken) {
            match self.sent.back_mut() {
                Some(last) if last.decisions.len() + group.decisions.len() <= TOLD_TOGETHER_MAX => {
                    last.oldest_undecided = group.oldest_undecided;
                    last.decisions.append(&mut group.decisions);
                }
                _ => self.sent.push_back(Group { sequence: self.sent.len() as u64 + 1, ..group }),
            }
        }
        self.sequence = self.sent.len() as u64;
        self.sent_decisions = self.sent.iter().map(|group| group.decisions.len()).sum();
    }
}

impl Group {
    fn message(&self) -> Message {
        let Self { sequence, oldest_undecided, ref decisions } = *self;
        Message::Decisions { sequence, oldest_undecided, decisions: decisions.clone() }
    }
}

/// Far below the room that a frame has for lists. No more is told again at a time, either.
pub const TOLD_TOGETHER_MAX: usize = 512;
/// The DFM learns at least this often how far level 2 has come, also when it is idle.
const REPORT_EVERY: Duration = Duration::from_millis(100);
