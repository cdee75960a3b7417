//! The work of an L2PU: a step of steering on the data that it collected.

use std::sync::Arc;
use std::time::Duration;

use assembly::ByLot;
use base::bulk::Bulk;
use dataflow::component::{Selection, Steer, Steered};
use dataflow::message::{Chains, EventInfo};
use rol::{fragments, rob_fragment};
use rustix::time::{ClockId, clock_gettime};
use trigger::{Decision, LEVEL2_RESULT, Next};

use crate::assembly::Assembly;
use crate::observer::{Observer, Seen};

/// Steering with what all its steps share.
pub struct Steering {
    strategy: Strategy,
    cost: Duration,
    run_number: u32,
    observer: Option<Observer>,
}

/// How decisions are reached.
pub enum Strategy {
    /// By lot, after data were moved.
    Skeleton(ByLot),
    /// By the chains of a menu: a context for each worker of the unit.
    Menu(Vec<trigger::Steering>),
}

impl Strategy {
    /// That of each L2PU of a partition.
    pub fn of(assembly: &Assembly) -> Self {
        let l2pu = assembly.partition.l2pu.clone().unwrap_or_default();
        match (assembly.menu(), l2pu.strategy) {
            (Some(menu), configuration::Strategy::Menu) => Self::menu(menu, l2pu.workers as usize),
            _ => Self::Skeleton(assembly.skeleton()),
        }
    }

    /// A menu for a unit with so many workers.
    pub fn menu(menu: &Arc<trigger::Menu>, workers: usize) -> Self {
        Self::Menu((0..workers).map(|_| trigger::Steering::new(Arc::clone(menu))).collect())
    }
}

impl Steering {
    /// Each step takes at least `cost` of processor time.
    pub fn new(strategy: Strategy, cost: Duration, run_number: u32, observer: Option<Observer>) -> Self {
        Self { strategy, cost, run_number, observer }
    }

    /// Goes one step with an event.
    pub fn step(&mut self, steer: &Steer) -> Steered {
        burn(self.cost);
        match &mut self.strategy {
            Strategy::Skeleton(skeleton) => match skeleton.step(steer) {
                Steered::Decide(selection) if selection.accept => {
                    // The number of steps, and of ROBs that sent nothing.
                    let result =
                        rob_fragment(LEVEL2_RESULT, &steer.event, self.run_number, &[steer.step, steer.missing]);
                    Steered::Decide(Selection { result, ..selection })
                }
                other => other,
            },
            Strategy::Menu(contexts) => {
                let context = &mut contexts[steer.worker as usize];
                if steer.step == 0 {
                    context.begin(steer.event.event.0, steer.event.items, &steer.rois);
                }
                match context.step(&mut steer.data.iter().flat_map(fragments)) {
                    Next::Ask(robs) => Steered::Ask(robs),
                    Next::Decided(decision) => {
                        if let Some(observer) = &self.observer {
                            let features = context.features().collect();
                            observer.note(Seen::Level2 { ordinal: steer.event.ordinal, decision, features });
                        }
                        // Lets go of the data, whose pages others wait for.
                        context.begin(0, 0, &[]);
                        Steered::Decide(selection(&decision, &steer.event, self.run_number))
                    }
                }
            }
        }
    }
}

fn selection(decision: &Decision, event: &EventInfo, run_number: u32) -> Selection {
    // What a chain would have found in data that are missing is not known: the event filter decides, and the result is marked.
    let lacks_data = decision.missing_robs > 0 || decision.bad_payloads > 0;
    let decision = if lacks_data { Decision { passed: decision.input, ..*decision } } else { *decision };
    let accept = decision.accept();
    let result =
        if accept { rob_fragment(LEVEL2_RESULT, event, run_number, &decision.to_words()) } else { Bulk::empty() };
    let chains = Chains { input: decision.input, passed: decision.passed };
    Selection { accept, result, chains, payload_bytes: decision.requested_payload_bytes, lacks_data }
}

/// Spends processor time, to emulate heavy algorithms.
#[expect(clippy::disallowed_methods, reason = "the clock of the thread's processor time, which no other place needs")]
fn burn(cost: Duration) {
    if !cost.is_zero() {
        let spent =
            || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time since the thread began");
        let end = spent() + cost;
        while spent() < end {
            core::hint::spin_loop();
        }
    }
}
