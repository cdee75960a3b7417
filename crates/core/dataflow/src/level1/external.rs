//! Triggers that come from outside, through the driver.

use alloc::collections::VecDeque;

use crate::component::{Outbox, Ticket, Work};
use crate::level1::source::Trigger;

/// Level 1's side of a source of triggers that it does not control: it asks for as many as it has credit for.
///
/// Level 1 asks for none while it is held back; the outside then has to wait, and its own dead time begins.
#[derive(Clone, Debug)]
pub struct External {
    credit: usize,
    outstanding: usize,
    arrived: VecDeque<Trigger>,
    asked: u64,
    ended: bool,
}

impl External {
    /// At most `credit` triggers asked for and not yet issued.
    ///
    /// # Panics
    /// Without any credit.
    pub fn new(credit: usize) -> Self {
        assert!(credit > 0, "a credit for at least one trigger");
        Self { credit, outstanding: 0, arrived: VecDeque::with_capacity(credit), asked: 0, ended: false }
    }

    /// Asks for more: at most `wanted` in hand or on their way.
    pub fn ask(&mut self, wanted: u64, out: &mut Outbox) {
        let most = self.credit.min(usize::try_from(wanted).unwrap_or(usize::MAX));
        while !self.ended && self.outstanding + self.arrived.len() < most {
            self.outstanding += 1;
            self.asked += 1;
            out.start(Ticket(self.asked), Work::NextTrigger);
        }
    }

    /// Takes the answer to one request; `None` says that the outside has ended, and voids all requests.
    pub fn arrive(&mut self, trigger: Option<Trigger>) {
        self.outstanding = self.outstanding.saturating_sub(1);
        match trigger {
            Some(trigger) => self.arrived.push_back(trigger),
            None => {
                self.ended = true;
                self.outstanding = 0;
            }
        }
    }

    /// The next trigger, in the order in which they came.
    pub fn pop(&mut self) -> Option<Trigger> {
        self.arrived.pop_front()
    }

    /// Whether there is no trigger to issue now.
    pub fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// Whether there is none now, and may be one later.
    pub fn has_to_be_waited_for(&self) -> bool {
        self.arrived.is_empty() && !self.ended
    }

    /// Whether there will be none, either.
    pub fn is_over(&self) -> bool {
        self.ended && self.arrived.is_empty()
    }

    /// Drops what came and was not issued; how many.
    pub fn discard(&mut self) -> usize {
        self.arrived.drain(..).count()
    }

    /// Asserts that the credit is kept.
    ///
    /// # Panics
    /// If it is not.
    pub fn check(&self) {
        assert!(self.outstanding + self.arrived.len() <= self.credit, "triggers from outside within the credit");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(external: &mut External, wanted: u64) -> usize {
        let mut out = Outbox::new();
        external.ask(wanted, &mut out);
        out.drain().count()
    }

    #[test]
    fn requests_and_triggers_in_hand_share_the_credit() {
        let mut external = External::new(3);
        assert_eq!((asked(&mut external, 2), asked(&mut external, 9), asked(&mut external, 9)), (2, 1, 0));
        external.arrive(Some(Trigger::default()));
        assert_eq!(asked(&mut external, 9), 0);
        assert!(external.pop().is_some() && external.pop().is_none());
        assert_eq!(asked(&mut external, 9), 1);
        external.check();
    }

    #[test]
    fn a_trigger_is_waited_for_while_there_is_none_and_one_may_come() {
        let mut external = External::new(2);
        assert!(external.has_to_be_waited_for());
        external.arrive(Some(Trigger::default()));
        assert!(!external.has_to_be_waited_for());
        external.pop();
        assert!(external.has_to_be_waited_for());
        external.arrive(None);
        assert!(!external.has_to_be_waited_for());
    }

    #[test]
    fn after_the_end_nothing_is_asked_for() {
        let mut external = External::new(2);
        assert_eq!(asked(&mut external, 9), 2);
        external.arrive(Some(Trigger::default()));
        external.arrive(None);
        assert!(!external.is_over() && asked(&mut external, 9) == 0);
        assert_eq!(external.discard(), 1);
        assert!(external.is_over());
    }
}
