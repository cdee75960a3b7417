//! The three strategies of skeleton steering `[L2SCI2000 §2.3.2]`: they move data and decide by lot.

use alloc::vec::Vec;

use crate::component::{Selection, Steer, Steered};
use crate::message::Chains;
use base::bulk::Bulk;
use base::ids::EventId;
use base::random::{hash_of_event, unit_of_event};

/// A strategy. The same event is decided alike wherever it is processed.
#[derive(Clone, Debug, PartialEq)]
pub struct Skeleton {
    /// What is done.
    pub strategy: Strategy,
    /// All ROBs that may be asked, by source identifier.
    pub robs: Vec<u32>,
    /// Another seed accepts other events.
    pub seed: u64,
}

/// What skeleton steering does with an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strategy {
    /// No RoI processing: a decision at once.
    None {
        /// Fraction accepted, 0–1.
        accept: f64,
    },
    /// One RoI generated here, whatever level 1 found, and its data fetched.
    Generate {
        /// ROBs that hold the data of the RoI.
        robs_per_step: usize,
        /// Fraction accepted, 0–1.
        accept: f64,
    },
    /// Data fetched twice; most events are rejected after the first time, most of the others after the second.
    TwoStep {
        /// ROBs asked at each step.
        robs_per_step: usize,
        /// Fraction that goes on after each step, 0–1.
        step_accept: f64,
    },
}

impl Skeleton {
    /// Runs one step. The result of an accepted event is empty: a driver puts its own fragment in.
    pub fn step(&self, steer: &Steer) -> Steered {
        let event = steer.event.event;
        let accepts = |fraction: f64| unit_of_event(event, self.seed ^ u64::from(steer.step)) < fraction;
        let verdict = |accept: bool| {
            let (result, chains) = (Bulk::empty(), Chains::default());
            Steered::Decide(Selection { accept, result, chains, payload_bytes: 0, lacks_data: false })
        };
        match self.strategy {
            Strategy::None { accept } => verdict(accepts(accept)),
            Strategy::Generate { robs_per_step, .. } if steer.step == 0 => self.ask(event, 0, robs_per_step),
            Strategy::Generate { accept, .. } => verdict(accepts(accept)),
            Strategy::TwoStep { robs_per_step, step_accept } => match steer.step {
                0 => self.ask(event, 0, robs_per_step),
                step if !accepts(step_accept) || step >= 2 => verdict(step >= 2 && accepts(step_accept)),
                step => self.ask(event, step, robs_per_step),
            },
        }
    }

    /// Neighbouring ROBs at a place that depends on event and step.
    fn ask(&self, event: EventId, step: u32, count: usize) -> Steered {
        let total = self.robs.len();
        let first = hash_of_event(EventId(event.0 ^ u64::from(step) << 48)) as usize % total.max(1);
        Steered::Ask((0..count.min(total)).map(|offset| self.robs[(first + offset) % total]).collect())
    }
}
