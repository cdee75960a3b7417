//! The source of level-1 triggers, emulated, sampled or replayed.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::component::{Component, Input, LinkNews, Outbox, PeerState};
use crate::level1::external::External;
use crate::level1::kept::{Keep, Kept};
use crate::level1::led::Led;
pub use crate::level1::source::{Trigger, TriggerSource};
use crate::message::{BusyCause, Command, EventInfo, Grounds, LinkTrigger, Message, Roi};
use crate::node::RUN_CONTROL;
use crate::report::{BlockCause, BlockedClock, Counters, Level1Counters, PeerCount, Report};
use base::ids::{EventId, Incarnation, NodeId, Role};
use base::time::Time;
use timing::Interval;
use timing::dead_time::{DeadTime, DeadTimeCause, DeadTimeParameters};
use timing::owed::Owed;
use timing::pace::{Pace, Spacing};
use timing::sliced::Sliced;

/// Who makes the triggers.
pub enum TriggerInput {
    /// Level 1, from content that it can have at any time.
    Source(Box<dyn TriggerSource + Send>),
    /// Processors outside, which push them: level 1 issues them as they come, in order. The spacing has to be
    /// [`Spacing::Unlimited`]; while somebody is busy the processors are told to send nothing.
    External(Box<External>),
    /// A source that leads: its fragments are the triggers, and their numbers the events. As for triggers from outside, nothing
    /// spaces them; while level 1 is held back its read-out system holds them back in turn.
    Link(Led),
    /// Time: events are its slices. Those that nobody has room for are left out.
    Time(Sliced),
}

impl TriggerInput {
    /// Whether there is no trigger to issue now.
    fn is_empty(&self) -> bool {
        match self {
            Self::Source(_) => false,
            Self::External(external) => external.is_empty(),
            Self::Link(led) => led.is_empty(),
            Self::Time(sliced) => sliced.is_empty(),
        }
    }

    /// Whether there will be none, either.
    fn is_over(&self) -> bool {
        match self {
            Self::Source(_) => false,
            Self::External(external) => external.is_over(),
            Self::Link(led) => led.is_over(),
            Self::Time(sliced) => sliced.is_over(),
        }
    }

    /// Whether there is neither a trigger to issue now nor an end to tell.
    fn has_to_be_waited_for(&self) -> bool {
        self.is_empty() && !self.is_over()
    }

    /// Drops what came and was not issued; how many.
    fn discard(&mut self, now: Time) -> usize {
        match self {
            Self::Source(_) | Self::Time(_) => 0,
            Self::External(external) => external.discard(now),
            Self::Link(led) => led.discard(),
        }
    }
}

impl From<Box<dyn TriggerSource + Send>> for TriggerInput {
    fn from(source: Box<dyn TriggerSource + Send>) -> Self {
        Self::Source(source)
    }
}

/// How level 1 is set up.
#[derive(Clone, Debug)]
pub struct Level1Parameters {
    /// Read-out systems that follow triggers.
    pub readout: Vec<NodeId>,
    /// The L2SVs, which share the events in turn; or the DFM alone.
    pub deciders: Vec<NodeId>,
    /// Which events a decider that returns is told again.
    pub keep: Keep,
    /// Who else may say busy: the DFM behind level 2.
    pub listeners: Vec<NodeId>,
    /// The first event.
    pub first: EventId,
    /// Most events of the run.
    pub limit: Option<u64>,
    /// When triggers are offered.
    pub spacing: Spacing,
    /// Other spacings, each from a time since the start of the run on, rising: a load that changes.
    pub profile: Vec<(Duration, Spacing)>,
    /// Bunch-crossing-accurate times: triggers come in crossings of 25 ns counted from the start of the run, at most one in
    /// each. Level 1 imposes this dead time. `None` for times of any fineness and no such dead time.
    pub crossings: Option<DeadTimeParameters>,
    /// Most triggers that a receiver has not yet taken.
    pub in_flight: u64,
    /// For the spacing.
    pub seed: u64,
}

/// Level 1: issues triggers while nobody is busy and every receiver keeps up.
///
/// An offer that falls into dead time, of whatever cause, is vetoed and lost, as in an experiment. The lateness of level 1 itself is
/// none (`Owed`). Triggers that come as fast as they are taken, and those from outside, are never vetoed: they wait until the dead
/// time is over.
pub struct Level1 {
    parameters: Level1Parameters,
    input: TriggerInput,
    pace: Pace,
    owed: Owed,
    dead_time: Option<DeadTime>,
    receivers: Vec<Receiver>,
    /// Of these, the read-out systems that can be reached.
    readout: Arc<[NodeId]>,
    kept: Kept,
    again: Option<Again>,
    /// Events that read-out systems are told of together.
    accepts: Vec<EventInfo>,
    /// When they were, if the leading source says so of any.
    times: Vec<Interval>,
    /// Of the same events: their deciders, and what these are told.
    results: Vec<(NodeId, Vec<Roi>)>,
    next: EventId,
    tell_due: Option<Time>,
    /// Slices that were left out since read-out systems were told.
    untold: u64,
    running: bool,
    /// A trigger would have come earlier, had there been one, and nobody busy.
    has_waited: bool,
    exhausted: bool,
    draining: bool,
    /// To drain when the leading source has ended, or at this time if nothing can be issued then.
    closing: Option<Time>,
    blocked: BlockedClock,
    counters: Level1Counters,
}

struct Receiver {
    node: NodeId,
    sent: u64,
    taken: u64,
    /// Sent before the receiver's present life, which counts from 0.
    before: u64,
    life: Option<Incarnation>,
    /// Why it is busy: one bit per cause.
    busy: u8,
    /// The causes that the blocked clock runs for.
    blocking: u8,
    reachable: bool,
}

/// A DFM in a new life is being told what may not be finished, within its window: nothing new before that.
struct Again {
    node: NodeId,
    /// The next event that it is told, if that is not finished by then.
    from: EventId,
    /// Events that it was told.
    told: u64,
}

/// Why an offer is not taken.
#[derive(Clone, Copy)]
enum Veto {
    Busy,
    DeadTime(DeadTimeCause),
}

impl Level1 {
    /// A level 1 that waits for [`Command::Start`].
    ///
    /// # Panics
    /// If triggers from outside are to be spaced, or a DFM shares the events with another decider.
    pub fn new(parameters: Level1Parameters, input: impl Into<TriggerInput>) -> Self {
        let input = input.into();
        let spaced = parameters.spacing != Spacing::Unlimited || !parameters.profile.is_empty();
        assert!(!spaced || matches!(input, TriggerInput::Source(_)), "triggers from outside are issued as they come");
        assert!(
            parameters.keep != Keep::Unfinished || parameters.deciders.len() == 1,
            "a DFM that decides has all events"
        );
        let receiver = |&node: &NodeId| Receiver {
            node,
            sent: 0,
            taken: 0,
            before: 0,
            life: None,
            busy: 0,
            blocking: 0,
            reachable: false,
        };
        let receivers =
            parameters.readout.iter().chain(&parameters.deciders).chain(&parameters.listeners).map(receiver).collect();
        let pace = Pace::new(parameters.spacing, parameters.seed).then(parameters.profile.clone());
        Self {
            pace: if parameters.crossings.is_some() { pace.on_crossings() } else { pace },
            owed: Owed::default(),
            dead_time: parameters.crossings.clone().map(DeadTime::new),
            kept: Kept::new(parameters.keep, &parameters.deciders),
            again: None,
            accepts: Vec::new(),
            times: Vec::new(),
            results: Vec::new(),
            next: parameters.first,
            parameters,
            input,
            receivers,
            readout: Arc::default(),
            tell_due: None,
            untold: 0,
            running: false,
            has_waited: false,
            exhausted: false,
            draining: false,
            closing: None,
            blocked: BlockedClock::default(),
            counters: Level1Counters::default(),
        }
    }

    /// Issues what is due, as long as the receivers have room; at most a burst, so that the driver can deliver it. Offers that
    /// are vetoed do not count: after a long pass all that fell into it are behind.
    fn issue(&mut self, now: Time, out: &mut Outbox) {
        self.leave_out_slices(now);
        self.issue_due(now, out);
        self.send_issued(out);
    }

    /// Data are read out while it is decided what becomes of them: accepts go first.
    fn send_issued(&mut self, out: &mut Outbox) {
        if self.accepts.is_empty() {
            return;
        }
        let mut times = core::mem::take(&mut self.times);
        if times.iter().all(|time| time.is_none()) {
            times.clear();
        }
        let accept = |times| Message::L1Accept { events: self.accepts.clone(), times };
        out.broadcast(Arc::clone(&self.readout), accept(times));
        if let Some(dfm) = self.dfm() {
            out.send(dfm, accept(Vec::new()));
            return self.accepts.clear();
        }
        let results = self.accepts.drain(..).zip(self.results.drain(..));
        results.for_each(|(event, (decider, rois))| out.send(decider, Message::L1Result { event, rois }));
    }

    fn issue_due(&mut self, now: Time, out: &mut Outbox) {
        let burst = self.counters.issued + BURST;
        while self.counters.issued < burst {
            let Some(due) = self.pace.next().filter(|due| self.running && !self.exhausted && *due <= now) else {
                return self.note_caught_up();
            };
            if self.input.is_empty() {
                if self.input.is_over() {
                    self.exhaust(out);
                }
                self.has_waited = true;
                return;
            }
            match self.veto(due) {
                Some(Veto::Busy) if self.pace.is_unlimited() => return,
                // What could not come earlier does not lie in an earlier crossing either.
                _ if self.has_waited && self.pace.is_unlimited() => {
                    self.has_waited = false;
                    self.pace.delay(now);
                    continue;
                }
                None => self.issue_one(now, due, out),
                Some(Veto::Busy) if now < self.owed.until(due) => return,
                Some(Veto::DeadTime(_)) if self.pace.is_unlimited() => self.wait(),
                Some(veto) => self.count_veto(now, veto),
            }
        }
    }

    /// Before anything is taken in: what follows in this call may make room.
    fn note_lateness(&mut self, now: Time) {
        if let Some(due) = self.pace.next().filter(|_| !self.pace.is_unlimited()) {
            self.owed.on_call(now, due);
        }
    }

    /// As long as what came late fills the windows, what is in time has to wait for it.
    fn note_caught_up(&mut self) {
        if self.owed.is_late() && !self.is_held_back() {
            self.owed.catch_up();
        }
    }

    /// Slices are left out while nothing is issued at all or read-out systems are full, and when they have waited for long.
    fn leave_out_slices(&mut self, now: Time) {
        let TriggerInput::Time(sliced) = &mut self.input else { return };
        sliced.look(now);
        // Read-out systems hear at once which slice is the first: their links may be full of what lies before.
        if let Some(first) = sliced.next().filter(|first| self.next < *first) {
            (self.next, self.tell_due) = (first, Some(now));
        }
        if !self.cuts_time() {
            return;
        }
        let (at_once, is_held_back) = (self.leaves_out_at_once(), self.is_held_back());
        let TriggerInput::Time(sliced) = &mut self.input else { return };
        while self.untold < UNTOLD_MAX && !sliced.is_empty() && (at_once || (is_held_back && sliced.is_late(now))) {
            let slice = sliced.pop(now).expect("there is one");
            self.next = slice.next();
            self.untold += 1;
            // Behind a window read-out systems hear of it at once: their links may be full. Else the next call could not go on.
            let due = if self.untold < self.parameters.in_flight.min(UNTOLD_MAX) { now + TELL_EVERY } else { now };
            self.tell_due = Some(self.tell_due.map_or(due, |told| told.min(due)));
            if self.running {
                self.counters.offered += 1;
                self.counters.vetoed += 1;
                self.counters.vetoed_busy += 1;
            }
        }
    }

    /// Whether slices that could be made have nothing to wait for.
    fn leaves_out_at_once(&self) -> bool {
        let is_full = |receiver: &Receiver| receiver.reachable && receiver.busy & bit(BusyCause::Pages) != 0;
        !self.running || self.receivers.iter().any(is_full)
    }

    /// Whether slices are made or left out.
    fn cuts_time(&self) -> bool {
        !self.exhausted && !self.draining && (self.running || self.counters.issued > 0)
    }

    fn veto(&self, due: Time) -> Option<Veto> {
        if self.is_held_back() {
            return Some(Veto::Busy);
        }
        self.dead_time.as_ref()?.veto(self.pace.crossing(due)).map(Veto::DeadTime)
    }

    /// A trigger that is there as soon as it can be taken comes after the dead time.
    fn wait(&mut self) {
        let free_from = self.dead_time.as_ref().map_or(0, DeadTime::free_from);
        self.pace.delay_to_crossing(free_from);
    }

    fn count_veto(&mut self, now: Time, veto: Veto) {
        self.pace.take(now);
        self.counters.offered += 1;
        self.counters.vetoed += 1;
        *match veto {
            Veto::Busy => &mut self.counters.vetoed_busy,
            Veto::DeadTime(DeadTimeCause::Simple) => &mut self.counters.vetoed_simple,
            Veto::DeadTime(DeadTimeCause::Complex) => &mut self.counters.vetoed_complex,
        } += 1;
    }

    /// The number of the next event, and what it carries.
    fn next_trigger(&mut self, now: Time) -> Option<(EventId, Trigger)> {
        if self.left() == 0 {
            return None;
        }
        let trigger = match &mut self.input {
            TriggerInput::Source(source) => source.trigger(self.counters.issued),
            TriggerInput::External(external) => {
                let joined = external.pop(now)?;
                let vetoed = u64::from(joined.vetoed);
                self.counters.offered += vetoed;
                self.counters.vetoed += vetoed;
                self.counters.vetoed_busy += vetoed;
                return Some((joined.event, joined.trigger));
            }
            TriggerInput::Link(led) => {
                let LinkTrigger { event, trigger_type, time } = led.pop()?;
                self.times.push(time);
                return Some((event, Trigger { trigger_type, ..Trigger::default() }));
            }
            TriggerInput::Time(sliced) => return sliced.pop(now).map(|slice| (slice, Trigger::default())),
        };
        trigger.map(|trigger| (self.next, trigger))
    }

    /// How many triggers the run may still have.
    fn left(&self) -> u64 {
        self.parameters.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.counters.issued))
    }

    fn issue_one(&mut self, now: Time, due: Time, out: &mut Outbox) {
        let Some((event, trigger)) = self.next_trigger(now) else {
            return self.exhaust(out);
        };
        self.pace.take(now);
        self.counters.offered += 1;
        if let Some(dead_time) = &mut self.dead_time {
            dead_time.note(self.pace.crossing(due));
        }
        let decider = self.next_decider().expect("level 1 is held back while no decider can be reached");
        let Trigger { bcid, trigger_type, items, rois } = trigger;
        let ordinal = self.counters.issued;
        self.next = event.next();
        let event = EventInfo { event, ordinal, bcid, trigger_type, items, grounds: Grounds::Data };
        for receiver in self.receivers[..self.parameters.readout.len()].iter_mut().filter(|r| r.reachable) {
            receiver.sent += 1;
        }
        self.accepts.push(event);
        self.kept.give(decider - self.parameters.readout.len(), event, &rois);
        self.receivers[decider].sent += 1;
        if self.dfm().is_none() {
            self.results.push((self.receivers[decider].node, rois));
        }
        self.counters.issued += 1;
        self.closing = self.closing.map(|_| now + CLOSING_PATIENCE);
        self.tell_due.get_or_insert(now + TELL_EVERY);
        if self.left() == 0 {
            self.exhaust(out);
        }
    }

    /// Who makes the triggers begins when all others have come, and ends first.
    fn lead(&mut self, now: Time, out: &mut Outbox) {
        let may = !(self.closing.is_some() || self.exhausted || self.draining);
        if let TriggerInput::Time(sliced) = &mut self.input {
            let told = if may { &[] } else { sliced.stop() };
            return told.iter().for_each(|ros| out.send(*ros, Message::Lead(false)));
        }
        let awaits = self.receivers.iter().any(|r| r.reachable && r.busy & bit(BusyCause::Source) != 0);
        match &mut self.input {
            TriggerInput::Link(led) => {
                let wanted = may && (self.running || led.is_started());
                if (!wanted || !awaits) && led.turn(wanted) {
                    out.send(led.ros(), Message::Lead(wanted));
                }
            }
            TriggerInput::External(external) => {
                let wanted = may && !external.is_lost() && (self.running || external.is_started());
                if !wanted || external.is_started() || !(awaits || external.is_awaited()) {
                    external.turn(now, wanted, out);
                }
            }
            TriggerInput::Source(_) | TriggerInput::Time(_) => {}
        }
    }

    /// Processors outside are told to send nothing while anybody is busy. Once the run ends, what they send is not kept.
    fn hold(&mut self, now: Time, out: &mut Outbox) {
        let is_over = self.exhausted || self.draining;
        let busy = !self.running || self.is_anybody_busy();
        if let TriggerInput::External(external) = &mut self.input {
            external.hold(now, busy && !is_over, out);
        }
    }

    /// Whether somebody says that it takes nothing, or nobody is there.
    fn is_anybody_busy(&self) -> bool {
        let says_busy = |receiver: &Receiver| receiver.reachable && receiver.busy != 0;
        self.again.is_some() || self.next_decider().is_none() || self.receivers.iter().any(says_busy)
    }

    fn waits_for_leader(&self) -> bool {
        let goes_on = match &self.input {
            TriggerInput::Link(led) => led.is_started() && !led.is_over(),
            TriggerInput::Time(sliced) => !sliced.is_over(),
            TriggerInput::External(external) => external.is_started() && !external.is_over(),
            TriggerInput::Source(_) => false,
        };
        goes_on && !self.exhausted
    }

    /// The run ends with the last trigger of the leading source, or when none could be issued for long: a stop does not hang.
    fn close(&mut self, now: Time, out: &mut Outbox) {
        let Some(due) = self.closing else { return };
        if self.exhausted || (due <= now && self.is_held_back()) {
            self.drain(now, out);
        } else if !self.is_held_back() {
            self.closing = Some(now + CLOSING_PATIENCE);
        }
    }

    fn drain(&mut self, now: Time, out: &mut Outbox) {
        self.closing = None;
        self.running = false;
        self.draining = true;
        self.veto_owed(now);
        self.pace.stop();
        self.tell_issued(out);
        let deciders = self.deciders().iter().filter(|receiver| !self.is_told_again(receiver.node));
        deciders.for_each(|receiver| out.send(receiver.node, Message::NoMore));
        self.discard_unused(now);
    }

    fn on_link(&mut self, now: Time, at: u16, news: LinkNews, out: &mut Outbox) {
        if let TriggerInput::External(external) = &mut self.input {
            external.on_link(now, usize::from(at), news, out);
        }
    }

    /// What time has brought about at processors outside.
    fn look_outside(&mut self, now: Time) {
        if let TriggerInput::External(external) = &mut self.input {
            external.look(now);
            self.discard_unused(now);
        }
    }

    /// Triggers from outside that came too late for the run.
    fn discard_unused(&mut self, now: Time) {
        if self.draining || self.exhausted {
            self.counters.unused += self.input.discard(now) as u64;
        }
    }

    /// The next L2SV in turn that can be reached.
    fn next_decider(&self) -> Option<usize> {
        let first = self.parameters.readout.len();
        let count = self.parameters.deciders.len();
        let turn = self.counters.issued as usize;
        (0..count).map(|step| first + (turn + step) % count).find(|&index| self.receivers[index].reachable)
    }

    fn deciders(&self) -> &[Receiver] {
        let first = self.parameters.readout.len();
        &self.receivers[first..first + self.parameters.deciders.len()]
    }

    /// The DFM, where it is the one decider: it has no use for regions of interest.
    fn dfm(&self) -> Option<NodeId> {
        self.parameters.deciders.first().copied().filter(|_| self.parameters.keep == Keep::Unfinished)
    }

    fn exhaust(&mut self, out: &mut Outbox) {
        if !self.exhausted {
            self.exhausted = true;
            self.pace.stop();
            self.send_issued(out);
            self.tell_issued(out);
            out.send(RUN_CONTROL, Message::Exhausted);
        }
    }

    fn is_held_back(&self) -> bool {
        self.again.is_some() || self.next_decider().is_none() || self.receivers.iter().any(|r| self.is_holding_back(r))
    }

    fn is_holding_back(&self, receiver: &Receiver) -> bool {
        receiver.reachable && (receiver.busy != 0 || self.is_behind(receiver))
    }

    fn is_behind(&self, receiver: &Receiver) -> bool {
        receiver.sent - receiver.taken >= self.parameters.in_flight
    }

    fn update_blocked(&mut self, now: Time) {
        let active = self.running && !self.exhausted;
        for index in 0..self.receivers.len() {
            let receiver = &self.receivers[index];
            let behind = receiver.busy == 0 && self.is_behind(receiver);
            let causes = receiver.busy | if behind { bit(BusyCause::Window) } else { 0 };
            let causes = if active && receiver.reachable { causes } else { 0 };
            let (node, changed) = (receiver.node, receiver.blocking ^ causes);
            for cause in BusyCause::ALL.into_iter().filter(|cause| changed & bit(*cause) != 0) {
                self.blocked.set(now, node, BlockCause::Busy(cause), causes & bit(cause) != 0);
            }
            self.receivers[index].blocking = causes;
        }
    }

    fn tell_issued(&mut self, out: &mut Outbox) {
        (self.tell_due, self.untold) = (None, 0);
        let deciders = self.deciders().iter().filter(|r| r.reachable && !self.is_told_again(r.node));
        deciders.for_each(|receiver| self.tell_last(receiver.node, out));
        if let (TriggerInput::Time(_), Some(last)) = (&self.input, self.next.0.checked_sub(1)) {
            out.broadcast(Arc::clone(&self.readout), Message::IssuedUpTo(EventId(last)));
        }
    }

    fn note_readout(&mut self) {
        let readout = self.receivers[..self.parameters.readout.len()].iter().filter(|receiver| receiver.reachable);
        self.readout = readout.map(|receiver| receiver.node).collect();
    }

    fn tell_last(&self, node: NodeId, out: &mut Outbox) {
        if let Some(last) = self.next.0.checked_sub(1) {
            out.send(node, Message::IssuedUpTo(EventId(last)));
        }
    }

    fn on_message(&mut self, now: Time, from: NodeId, message: &Message, out: &mut Outbox) {
        match message {
            Message::Ledger(ledger) => self.kept.on_ledger(ledger),
            Message::FinishedBelow(oldest) => self.kept.on_finished_below(*oldest),
            Message::LinkTriggers { triggers, last } => {
                if let TriggerInput::Link(led) = &mut self.input {
                    led.arrive(triggers, *last);
                }
                self.discard_unused(now);
            }
            Message::Passed(passed) => {
                if let TriggerInput::Time(sliced) = &mut self.input {
                    sliced.take(now, from, *passed);
                    out.send(from, Message::PassedTaken);
                }
            }
            Message::Settled { cleared, decided } => self.kept.on_settled(from, *cleared, decided, out),
            Message::Taken(count) => {
                if let Some(receiver) = self.receiver(from) {
                    let count = receiver.before.saturating_add(*count);
                    receiver.taken = receiver.taken.max(count.min(receiver.sent));
                }
            }
            Message::Busy { cause, on } => {
                if let Some(receiver) = self.receiver(from) {
                    let others = receiver.busy & !bit(*cause);
                    receiver.busy = if *on { others | bit(*cause) } else { others };
                }
            }
            message => message.passes_no_gate(),
        }
    }

    fn receiver(&mut self, node: NodeId) -> Option<&mut Receiver> {
        self.receivers.iter_mut().find(|receiver| receiver.node == node)
    }

    /// A receiver in a new life begins to count anew, with what it is told again.
    fn on_peer(&mut self, node: NodeId, state: PeerState, out: &mut Outbox) {
        let decides = self.parameters.deciders.contains(&node);
        let Some(receiver) = self.receivers.iter_mut().find(|r| r.node == node) else {
            return;
        };
        receiver.reachable = false;
        receiver.busy = 0;
        let has_sources = match &self.input {
            TriggerInput::Link(_) | TriggerInput::Time(_) => true,
            TriggerInput::External(external) => external.is_after_sources(),
            TriggerInput::Source(_) => false,
        };
        if has_sources && self.parameters.readout.contains(&node) {
            // It says when its sources have come.
            receiver.busy = bit(BusyCause::Source);
        }
        if let TriggerInput::Time(sliced) = &mut self.input {
            match state {
                PeerState::Up(_) => {
                    sliced.come(node);
                    if sliced.is_stopped() && self.parameters.readout.contains(&node) {
                        out.send(node, Message::Lead(false));
                    }
                }
                PeerState::Down | PeerState::Gone => sliced.leave(node, state == PeerState::Gone),
            }
        }
        if let TriggerInput::Link(led) = &mut self.input
            && led.ros() == node
        {
            led.forget();
            if state == PeerState::Gone || self.closing.is_some() {
                led.end();
            }
        }
        if state == PeerState::Gone {
            self.kept.forget(node);
            self.again.take_if(|again| again.node == node);
        }
        if let PeerState::Up(life) = state {
            receiver.reachable = true;
            if receiver.life != Some(life) {
                receiver.life = Some(life);
                receiver.before = receiver.sent;
                receiver.taken = receiver.sent;
                if decides {
                    self.kept.tell_again(node, out);
                    let unfinished = self.kept.unfinished_from(EventId(0));
                    self.again = unfinished.map(|info| Again { node, from: info.event, told: 0 });
                } else if self.next != self.parameters.first && self.parameters.readout.contains(&node) {
                    // The next trigger may be long in coming, and all slices may have been left out.
                    self.tell_last(node, out);
                }
            }
            if decides && !self.is_told_again(node) {
                self.catch_up(node, out);
            }
        }
    }

    fn is_told_again(&self, node: NodeId) -> bool {
        self.again.as_ref().is_some_and(|again| again.node == node)
    }

    /// Tells a DFM that has returned as much as its window holds. It is not told of events that it calls finished meanwhile.
    fn tell_again(&mut self, out: &mut Outbox) {
        let Some(again) = &mut self.again else { return };
        let Some(receiver) = self.receivers.iter_mut().find(|r| r.node == again.node && r.reachable) else { return };
        // It cannot have taken more than it was told, whatever it says.
        let taken = (receiver.taken - receiver.before).min(again.told);
        let mut events = Vec::new();
        while again.told - taken < self.parameters.in_flight
            && let Some(event) = self.kept.unfinished_from(again.from)
        {
            events.push(event);
            again.from = event.event.next();
            again.told += 1;
        }
        for some in events.chunks(BURST as usize) {
            out.send(again.node, Message::L1Accept { events: some.to_vec(), times: Vec::new() });
        }
        receiver.before = receiver.sent - again.told - self.kept.count_from(again.from);
        receiver.taken = receiver.before + taken;
        let (node, from) = (again.node, again.from);
        if self.kept.unfinished_from(from).is_none() {
            self.again = None;
            self.catch_up(node, out);
        }
    }

    /// A decider that comes up learns how far level 1 has come, and whether it goes on.
    fn catch_up(&self, decider: NodeId, out: &mut Outbox) {
        self.tell_last(decider, out);
        if self.draining {
            out.send(decider, Message::NoMore);
        }
    }

    /// Triggers that still wait for room have waited in vain.
    fn veto_owed(&mut self, now: Time) {
        while self.owed.is_late() && self.is_held_back() && self.pace.next().is_some_and(|due| due <= now) {
            self.count_veto(now, Veto::Busy);
        }
        self.owed.catch_up();
    }

    fn on_command(&mut self, now: Time, command: Command, out: &mut Outbox) {
        match command {
            Command::Start | Command::Resume => {
                self.running = true;
                if !self.exhausted {
                    self.pace.start(now);
                }
            }
            Command::Pause => {
                self.running = false;
                self.veto_owed(now);
                self.pace.stop();
            }
            Command::Drain if self.waits_for_leader() => {
                self.running = true;
                self.closing = Some(now + CLOSING_PATIENCE);
                self.pace.start(now);
            }
            Command::Drain | Command::Abandon => {
                if command == Command::Abandon {
                    self.again = None;
                    if let TriggerInput::External(external) = &mut self.input {
                        external.abandon();
                    }
                }
                self.drain(now, out);
            }
            _ => {}
        }
    }
}

impl Component for Level1 {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        self.note_lateness(now);
        match input {
            Input::Message { from, message } => self.on_message(now, from, &message, out),
            Input::Peer { node, state } => {
                self.on_peer(node, state, out);
                self.note_readout();
            }
            Input::Command(command) => self.on_command(now, command, out),
            Input::Link { rob, news } => self.on_link(now, rob, news, out),
            _ => {}
        }
        self.tell_again(out);
        self.look_outside(now);
        self.issue(now, out);
        self.close(now, out);
        self.lead(now, out);
        self.hold(now, out);
        self.has_waited |= self.dead_time.is_some() && self.is_held_back();
        self.update_blocked(now);
        if self.tell_due.is_some_and(|due| due <= now) {
            self.tell_issued(out);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let has_none = self.input.has_to_be_waited_for();
        let waits = has_none || self.pace.is_unlimited() && self.is_held_back();
        let offer = self.pace.next().filter(|_| !waits);
        let owed = self.owed.is_late() && self.is_held_back();
        let offer = offer.map(|due| if owed { self.owed.until(due) } else { due });
        let outside = match &self.input {
            TriggerInput::Time(sliced) if self.cuts_time() && !sliced.is_empty() && self.leaves_out_at_once() => {
                Some(Time::ZERO)
            }
            // What could be made and waits for nobody's room is an offer.
            TriggerInput::Time(sliced) if self.cuts_time() && (sliced.is_empty() || self.is_held_back()) => {
                sliced.next_deadline()
            }
            TriggerInput::External(external) => external.next_deadline(),
            _ => None,
        };
        [offer, self.tell_due, self.closing, outside].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        let may_come = match &self.input {
            TriggerInput::External(external) => external.has_begun() && !external.is_silent(),
            _ => false,
        };
        self.draining && self.again.is_none() && !may_come
    }

    fn report(&self, now: Time) -> Report {
        let deciders = self.deciders();
        let links = if let TriggerInput::External(external) = &self.input { external.report() } else { Vec::new() };
        Report {
            links,
            peers: deciders.iter().map(|r| PeerCount { node: r.node, counts: [r.sent, 0, 0] }).collect(),
            blocked: self.blocked.read(now),
            ..Report::of(Role::Level1, self.counters.to_values())
        }
    }

    fn check(&self) {
        let to_deciders: u64 = self.deciders().iter().map(|r| r.sent).sum();
        assert_eq!(to_deciders, self.counters.issued, "every trigger went to one decider");
        assert!(self.receivers.iter().all(|r| r.taken <= r.sent), "nobody takes what was not sent");
        self.kept.check();
        let c = &self.counters;
        assert_eq!(c.vetoed, c.vetoed_busy + c.vetoed_simple + c.vetoed_complex, "every veto has a cause");
        assert_eq!(c.offered, c.issued + c.vetoed, "every offer issued or vetoed");
        if let TriggerInput::External(external) = &self.input {
            external.check();
        }
    }
}

const fn bit(cause: BusyCause) -> u8 {
    1 << cause as u8
}

const BURST: u64 = 64;
/// Slices that are left out before read-out systems hear of them, at most, and so in one call: level 1 shows that it lives.
const UNTOLD_MAX: u64 = 1 << 12;

/// An idle L2SV learns at least this often how far level 1 has come.
const TELL_EVERY: Duration = Duration::from_millis(10);
/// For so long what is there at the end of a run may wait for room.
const CLOSING_PATIENCE: Duration = Duration::from_secs(1);
