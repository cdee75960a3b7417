//! What an event builder does when the DFM is lost, and what it tells one that returns.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Fates, Phase, Sfi};
use crate::building::held::Building;
use crate::component::{Outbox, PeerState};
use crate::ledger::{Finish, Ledger};
use crate::message::{Assignment, Ended, HeldEvent, Holdings, Message};
use base::ids::{EventId, Incarnation};
use base::time::Time;

/// What the DFM has given to the builder and been told by it, as far as one that returns has to know.
#[derive(Default)]
pub(super) struct History {
    /// The life of the DFM that was seen last.
    dfm: Option<Incarnation>,
    newest: Option<EventId>,
    ledger: Ledger,
    /// In the order in which they were finished. One that is below the bound leaves when it comes to the front.
    finished: VecDeque<Finish>,
}

impl History {
    pub(super) fn given(&mut self, event: EventId) {
        self.newest = self.newest.max(Some(event));
    }

    pub(super) fn finished(&mut self, finish: Finish) {
        self.finished.push_back(finish);
    }

    /// What it has finished and is not below the bound.
    fn unfinished_for_all(&self) -> impl Iterator<Item = Finish> {
        self.finished.iter().copied().filter(|finish| finish.event >= self.ledger.below)
    }

    /// What the DFM has counted, of events below a bound.
    pub(super) fn on_ledger(&mut self, ledger: &Ledger) {
        if ledger.below > self.ledger.below {
            self.ledger = *ledger;
        }
    }

    /// Everything below is finished for good, and nobody will ask for it.
    pub(super) fn forget_below(&mut self, oldest: EventId) {
        self.ledger.below = self.ledger.below.max(oldest);
        while self.finished.pop_front_if(|finish| finish.event < self.ledger.below).is_some() {}
    }
}

impl Sfi {
    /// While the DFM is away everything goes on that needs no grant.
    pub(super) fn on_dfm(&mut self, now: Time, state: PeerState, out: &mut Outbox) {
        self.dfm.is_up = matches!(state, PeerState::Up(_));
        self.dfm.is_gone = state == PeerState::Gone;
        match state {
            PeerState::Up(life) => {
                self.dfm.was_told_all = false;
                let before = self.history.dfm.replace(life);
                if before == Some(life) {
                    // It has given what was not granted to others.
                    self.drop_ungranted();
                }
                if life > Incarnation::FIRST {
                    self.tell_held(out);
                } else {
                    self.tell_finished(out);
                }
                self.serve(now, out);
            }
            PeerState::Down => {}
            PeerState::Gone => {
                self.drop_ungranted();
                self.serve(now, out);
            }
        }
    }

    /// Nobody will grant what was not granted; what was is served on.
    pub(super) fn drop_ungranted(&mut self) {
        for event in self.in_order(|building| !building.is_granted()) {
            let dropped = self.remove(event).expect("the event is held");
            self.reuse(dropped);
            self.counters.revoked += 1;
        }
        self.asking.credits.come_home(self.asking.credits.outstanding());
        self.asking.requests.clear();
        self.ended.clear();
        self.asking.to_ask.clear();
        self.busy = false;
    }

    /// A DFM in a later life learns what the builder has, and gives it nothing before.
    fn tell_held(&mut self, out: &mut Outbox) {
        self.fates = Fates::default();
        let dfm = self.parameters.dfm;
        if self.busy {
            // Ahead of the rest, behind which events may be assigned.
            out.send(dfm, Message::SfiBusy(true));
        }
        let held: Vec<HeldEvent> =
            self.in_order(|_| true).into_iter().filter_map(|event| self.events.find(event)).map(|b| held(b)).collect();
        let finished: Vec<Finish> = self.history.unfinished_for_all().collect();
        let some = |last| Holdings {
            ledger: Box::new(self.history.ledger),
            newest: self.history.newest,
            last,
            ..Holdings::default()
        };
        for finished in finished.chunks(TOLD_TOGETHER_MAX) {
            out.send(dfm, Message::Held(Holdings { finished: finished.to_vec(), ..some(false) }));
        }
        for events in held.chunks(TOLD_TOGETHER_MAX) {
            out.send(dfm, Message::Held(Holdings { events: events.to_vec(), ..some(false) }));
        }
        out.send(dfm, Message::Held(some(true)));
        self.ended.clear();
        for event in self.in_order(|building| building.phase == Phase::Ended) {
            let building = self.events.find(event).expect("the event is held");
            let ended = Ended { event, attempt: building.attempt, missing: building.missing.len() as u32 };
            self.end(ended, out);
        }
    }
}

fn held(building: &Building) -> HeldEvent {
    let Building { event, attempt, has_result, .. } = *building;
    let assigned = Assignment { event, attempt, has_result };
    HeldEvent { assigned, granted: building.is_granted(), missing: building.missing.len() as u32 }
}

/// Far below the room that a frame has for lists.
const TOLD_TOGETHER_MAX: usize = 512;
