//! What a dataflow manager remembers of decisions of level 2, for supervisors that die and return.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::message::{Decision, Settlement};

/// Decisions of one supervisor that were taken over and that level 1 may tell again: its next life must not decide them again.
#[derive(Default)]
pub(super) struct Remembered {
    /// Of its present life, by group.
    groups: VecDeque<(u64, Vec<Settlement>)>,
    /// Of former lives.
    former: Vec<Settlement>,
}

impl Remembered {
    /// A group was taken over.
    pub(super) fn add(&mut self, sequence: u64, decisions: &[Decision]) {
        if !decisions.is_empty() {
            self.groups.push_back((sequence, decisions.iter().map(Settlement::from).collect()));
        }
    }

    /// Level 1 does not tell again what was in these groups, nor, if so said, what former lives had decided.
    pub(super) fn forget(&mut self, up_to: u64, former: bool) {
        while self.groups.pop_front_if(|(sequence, _)| *sequence <= up_to).is_some() {}
        if former {
            self.former.clear();
        }
    }

    /// The supervisor is in a new life, which counts its groups anew.
    pub(super) fn begin_life(&mut self) {
        self.former.extend(self.groups.drain(..).flat_map(|(_, settlements)| settlements));
    }

    /// What former lives had decided.
    pub(super) fn of_former_lives(&self) -> Vec<Settlement> {
        self.former.clone()
    }
}
