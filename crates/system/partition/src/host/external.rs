//! Triggers that level-1 processors send over the network, for a level 1 that asks for them one by one.

use std::collections::VecDeque;

use dataflow::component::{Outcome, Ticket};
use rol::{Incoming, NetworkTriggers};

use super::recorder::Done;

/// The requests of level 1 and what answers them.
pub(crate) struct External {
    network: NetworkTriggers,
    /// Within the credit of level 1.
    asked: VecDeque<Ticket>,
    next: Option<Incoming>,
}

impl External {
    pub(crate) fn new(network: NetworkTriggers) -> Self {
        Self { network, asked: VecDeque::new(), next: None }
    }

    /// Level 1 wants one trigger more.
    pub(crate) fn ask(&mut self, ticket: Ticket) {
        self.asked.push_back(ticket);
    }

    pub(crate) fn has_work(&self) -> bool {
        match &self.next {
            None => self.network.has_some(),
            Some(Incoming::Notice(_)) => true,
            Some(Incoming::Trigger(_) | Incoming::Ended) => !self.asked.is_empty(),
        }
    }

    /// A trigger for the oldest request; that there are no more answers them all.
    pub(crate) fn next_done(&mut self) -> Option<Done> {
        self.look();
        let is_answer = matches!(self.next, Some(Incoming::Trigger(_) | Incoming::Ended));
        let ticket = if is_answer { self.asked.pop_front()? } else { return None };
        let trigger = match self.next.take() {
            Some(Incoming::Trigger(trigger)) => Some(trigger),
            _ => {
                self.asked.clear();
                None
            }
        };
        Some((ticket, Outcome::Trigger(trigger), None))
    }

    pub(crate) fn next_notice(&mut self) -> Option<String> {
        self.look();
        match self.next.take() {
            Some(Incoming::Notice(text)) => Some(text),
            other => {
                self.next = other;
                None
            }
        }
    }

    /// Ends the reader: what it has still to tell.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let held = self.next.take().and_then(|next| if let Incoming::Notice(text) = next { Some(text) } else { None });
        held.into_iter().chain(self.network.finish()).collect()
    }

    fn look(&mut self) {
        if self.next.is_none() {
            self.next = self.network.take();
        }
    }
}
