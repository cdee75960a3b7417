//! Where data come from, and how long a source that is away is waited for.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Patience, Sfi, SfiParameters, Source};
use crate::component::{Outbox, PeerState};
use base::time::Time;

pub(super) struct Sources {
    /// How many there are besides the pseudo-ROS.
    pub(super) with_data: usize,
    /// By source: nothing will come from it.
    pub(super) gone: Vec<bool>,
    /// By source: it may come yet, or return.
    pub(super) away: Vec<bool>,
    /// When sources that are away have been waited for: once, as long as all tries of an event take. In order.
    overdue: VecDeque<(Time, u16)>,
    /// By node: its index among the sources.
    pub(super) by_node: Vec<Option<u16>>,
}

impl Sources {
    pub(super) fn new(parameters: &SfiParameters) -> Self {
        let nodes = parameters.sources.iter().map(|source| usize::from(source.node.0) + 1).max().unwrap_or(0);
        let mut by_node = alloc::vec![None; nodes];
        for (index, source) in (0..).zip(&parameters.sources) {
            by_node[usize::from(source.node.0)] = Some(index);
        }
        Self {
            with_data: parameters.sources.iter().filter(|source| !source.results).count(),
            gone: alloc::vec![false; parameters.sources.len()],
            away: alloc::vec![true; parameters.sources.len()],
            overdue: VecDeque::new(),
            by_node,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.overdue.front().map(|(due, _)| *due)
    }
}

impl Sfi {
    pub(super) fn on_source(&mut self, now: Time, source: usize, state: PeerState, out: &mut Outbox) {
        if let Some(intake) = &mut self.intake {
            intake.on_peer(source);
        }
        let was_away = core::mem::replace(&mut self.sources.away[source], state == PeerState::Down);
        let is_overdue = |due: &(Time, u16)| usize::from(due.1) == source;
        match state {
            PeerState::Up(_) => {
                self.sources.gone[source] = false;
                self.sources.overdue.retain(|due| !is_overdue(due));
                self.ask_anew(now, source, out);
            }
            // The results of a pseudo-ROS are lost with its life. One that was never seen may only not be connected yet.
            PeerState::Down if !self.parameters.sources[source].results => {
                if !was_away {
                    self.wait_for(now, source);
                }
            }
            PeerState::Down | PeerState::Gone => {
                self.sources.overdue.retain(|due| !is_overdue(due));
                self.give_up_source(now, source, out);
            }
        }
    }

    /// The run begins: what is not connected yet is waited for as if it had gone away now.
    pub(super) fn wait_for_sources(&mut self, now: Time) {
        for source in 0..self.sources.away.len() {
            if self.sources.away[source] {
                self.wait_for(now, source);
            }
        }
    }

    fn wait_for(&mut self, now: Time, source: usize) {
        if self.parameters.sources[source].patience == Patience::Tries {
            let due = now + self.parameters.request_timeout * (self.parameters.retries + 1);
            self.sources.overdue.push_back((due, source as u16));
        }
    }

    /// What has not returned by now is not waited for event by event. It is asked again once it is there.
    pub(super) fn give_up_overdue(&mut self, now: Time, out: &mut Outbox) {
        while let Some((_, source)) = self.sources.overdue.pop_front_if(|(due, _)| *due <= now) {
            self.give_up_source(now, usize::from(source), out);
        }
    }

    fn give_up_source(&mut self, now: Time, source: usize, out: &mut Outbox) {
        self.sources.gone[source] = true;
        let Source { node, .. } = self.parameters.sources[source];
        self.asking.requests.forget(node);
        for event in self.in_order(|building| self.asking.asked.at(building.number, source).awaited) {
            self.give_up(event, source as u16);
            self.end_if_collected(event, out);
        }
        for event in self.in_order(|building| self.asking.asked.at(building.number, source).unpushed) {
            let building = self.events.find_mut(event).expect("the event is held");
            building.expect_no_more_of(source as u16, &mut self.asking.asked);
            building.missing.extend_from_slice(&self.parameters.sources[source].robs);
            self.end_if_collected(event, out);
        }
        self.ask(now, out);
    }
}
