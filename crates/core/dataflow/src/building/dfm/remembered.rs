//! What a dataflow manager remembers of decisions of level 2, for supervisors that die and return.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::message::{Decision, Settlement};
use base::ids::EventId;

/// Decisions of one supervisor that were taken over and that level 1 may tell again: its next life must not decide them again.
#[derive(Default)]
pub(super) struct Remembered {
    /// Of its present life.
    groups: VecDeque<Group>,
    /// Of former lives.
    former: Vec<Settlement>,
    /// The oldest of these that was accepted.
    oldest_of_former: Option<EventId>,
}

struct Group {
    sequence: u64,
    decided: Vec<Settlement>,
    oldest_accepted: Option<EventId>,
}

impl Remembered {
    /// A group was taken over.
    pub(super) fn add(&mut self, sequence: u64, decisions: &[Decision]) {
        if !decisions.is_empty() {
            let decided: Vec<Settlement> = decisions.iter().map(Settlement::from).collect();
            let oldest_accepted = oldest_accepted(&decided);
            self.groups.push_back(Group { sequence, decided, oldest_accepted });
        }
    }

    /// Level 1 does not tell again what was in these groups, nor, if so said, what former lives had decided.
    pub(super) fn forget(&mut self, up_to: u64, former: bool) {
        while self.groups.pop_front_if(|group| group.sequence <= up_to).is_some() {}
        if former {
            self.former.clear();
            self.oldest_of_former = None;
        }
    }

    /// The supervisor is in a new life, which counts its groups anew.
    pub(super) fn begin_life(&mut self) {
        self.former.extend(self.groups.drain(..).flat_map(|group| group.decided));
        self.oldest_of_former = oldest_accepted(&self.former);
    }

    /// The oldest accepted event that level 1 may tell again.
    pub(super) fn oldest_accepted(&self) -> Option<EventId> {
        self.groups.iter().filter_map(|group| group.oldest_accepted).chain(self.oldest_of_former).min()
    }

    /// What former lives had decided.
    pub(super) fn of_former_lives(&self) -> Vec<Settlement> {
        self.former.clone()
    }
}

fn oldest_accepted(decided: &[Settlement]) -> Option<EventId> {
    decided.iter().filter(|settlement| settlement.accept).map(|settlement| settlement.event).min()
}
