//! A supervisor that dies and returns: level 1 tells it again what it had in hand, the DFM what it had decided.

use alloc::vec::Vec;

use super::{Event, L2sv};
use crate::component::Outbox;
use crate::message::{Decision, EventInfo, Grounds, Message, Roi, Settlement};
use base::ids::EventId;
use base::time::Time;

use crate::level2::outlet::Outlet;
use crate::level2::settling::{Settling, Told};

impl L2sv {
    /// What is settled of the events of former lives.
    pub(super) fn on_resume(
        &mut self,
        now: Time,
        [rejected, accepted, forced, incomplete]: [u64; 4],
        uncleared: &[EventId],
        out: &mut Outbox,
    ) {
        self.resumed = true;
        self.counters.received += rejected + accepted;
        self.counters.rejected += rejected;
        self.counters.accepted += accepted;
        self.counters.forced += forced;
        self.counters.incomplete += incomplete;
        self.clear_settled(now, uncleared, out);
    }

    /// An event of a former life. Where a DFM takes decisions over, it says first whether it has that of the event.
    pub(super) fn on_l1_again(&mut self, now: Time, event: EventInfo, rois: Vec<Roi>, out: &mut Outbox) {
        let number = event.event;
        self.issued_up_to = self.issued_up_to.max(Some(number));
        self.counters.received += 1;
        if self.ending.is_abandoned() {
            self.counters.abandoned += 1;
            return;
        }
        let settling = self.settling.as_mut();
        if let Some(settlement) = settling.as_ref().and_then(|settling| settling.decided_before(number)) {
            return self.count_decided(settlement);
        }
        if let Some(settling) = settling
            && settling.is_sure()
            && number < self.outlet.finished_below()
        {
            settling.tell_group(0, alloc::vec![rejected(number)], out);
            return self.count_decided(rejected(number));
        }
        let undecided = Event { event, rois, since: now, attempt: 0, assigned_to: None, overdue: None };
        if !self.undecided.insert(number, undecided) {
            self.counters.received -= 1;
            return;
        }
        self.counters.told_again += 1;
        match self.settling.as_mut().filter(|settling| !settling.is_sure()) {
            Some(settling) => settling.wait_for_dfm(number),
            None => self.queue.push_back(number),
        }
        self.assign(now, out);
        self.update_busy(now, out);
    }

    /// The DFM says what it has open of former lives. One that has returned itself has it from here.
    pub(super) fn on_accepted_before(&mut self, decisions: Vec<Decision>) {
        if self.settling.as_ref().is_some_and(|settling| !settling.is_sure()) {
            self.outlet.keep(decisions);
        }
    }

    /// The DFM says what it has taken over from former lives.
    pub(super) fn on_taken_before(&mut self, now: Time, mut decided: Vec<Settlement>, last: bool, out: &mut Outbox) {
        let Some(settling) = &mut self.settling else { return };
        if last {
            // The DFM names all accepted events, even those finished for good, and even after its own return. Any other was rejected.
            let below = self.outlet.finished_below();
            let finished = settling.not_named(&decided).into_iter().filter(|event| *event < below);
            decided.extend(finished.map(rejected));
        }
        let waiting = settling.on_taken_before(decided, last, out);
        for event in waiting {
            match self.settling.as_ref().and_then(|settling| settling.decided_before(event)) {
                Some(settlement) if self.undecided.remove(event).is_some() => self.count_decided(settlement),
                _ => self.queue.push_back(event),
            }
        }
        self.assign(now, out);
        self.update_busy(now, out);
    }

    /// Nobody can say what former lives have decided.
    pub(super) fn decide_unsure(&mut self, now: Time, out: &mut Outbox) {
        if let Some(settling) = &mut self.settling {
            self.queue.extend(settling.be_sure());
        }
        self.assign(now, out);
    }

    fn count_decided(&mut self, settlement: Settlement) {
        self.counters.accepted += u64::from(settlement.accept);
        self.counters.rejected += u64::from(!settlement.accept);
        self.count_grounds(settlement.grounds);
    }

    pub(super) fn count_grounds(&mut self, grounds: Grounds) {
        self.counters.forced += u64::from(grounds == Grounds::Timeout);
        self.counters.incomplete += u64::from(grounds == Grounds::PartOfData);
    }

    /// A decision goes to the DFM, or into the clears by way of level 1.
    pub(super) fn pass_on(&mut self, now: Time, decision: Decision, out: &mut Outbox) {
        if let (Some(settling), Outlet::Clears(_)) = (&mut self.settling, &self.outlet) {
            if settling.add(now, Settlement::from(&decision), self.ending.is_draining()) {
                settling.tell_pending(out);
            }
        } else if self.outlet.add(now, decision, self.ending.is_draining()) {
            self.flush(now, out);
        }
    }

    /// The DFM has taken groups of decisions over.
    pub(super) fn settle_taken(&mut self, taken: Vec<(u64, Vec<Settlement>)>, out: &mut Outbox) {
        if let Some(settling) = &mut self.settling {
            let told = taken.into_iter().filter(|(_, decided)| !decided.is_empty());
            told.for_each(|(sequence, decided)| settling.tell_group(sequence, decided, out));
        }
    }

    /// Level 1 has taken the oldest settlement.
    pub(super) fn on_settled_taken(&mut self, now: Time, out: &mut Outbox) {
        let Some((told, decided)) = self.settling.as_mut().and_then(Settling::on_taken) else { return };
        let forget = match told {
            Told::Clear => {
                let events: Vec<EventId> = decided.iter().map(|settlement| settlement.event).collect();
                return self.clear_settled(now, &events, out);
            }
            Told::Group(up_to) => Message::Forget { up_to, former: false },
            Told::Former => Message::Forget { up_to: 0, former: true },
        };
        if let Some(dfm) = self.parameters.dfm {
            out.send(dfm, forget);
        }
    }

    /// Level 1 will remember nothing: what waits to be settled is cleared, and nothing is settled any more.
    pub(super) fn settle_no_more(&mut self, now: Time, out: &mut Outbox) {
        if let Some(mut settling) = self.settling.take() {
            self.queue.extend(settling.be_sure());
            self.clear_settled(now, &settling.give_up(), out);
        }
    }

    fn clear_settled(&mut self, now: Time, events: &[EventId], out: &mut Outbox) {
        let Outlet::Clears(clears) = &mut self.outlet else { return };
        events.iter().for_each(|&event| _ = clears.add(now, event));
        if !events.is_empty() {
            self.flush(now, out);
        }
    }
}

fn rejected(event: EventId) -> Settlement {
    Settlement { event, accept: false, grounds: Grounds::Data }
}
