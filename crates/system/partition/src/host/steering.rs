//! The work of an L2PU: a step of steering on the data that it collected.

use std::sync::Arc;
use std::time::Duration;

use assembly::ByLot;
use base::bulk::{Bulk, PageSlice};
use dataflow::component::{Selection, Steer, Steered};
use dataflow::message::{Chains, EventInfo};
use eformat::{Bcid, EventFormat, RobParams, Robs, RodHeader, SourceId, rob_prefix, rob_suffix};
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

/// The ROB fragments of a reply, with the detector data of each. One that is damaged inside is missing; where none begins the
/// reply ends.
pub fn fragments(bulk: &Bulk) -> impl Iterator<Item = (u32, PageSlice)> {
    joined(bulk).into_iter().flat_map(|slice| {
        let robs = Robs::new(EventFormat::V5, slice.as_bytes()).map_while(Result::ok);
        let found = robs.filter_map(|rob| Some((rob.source_id().0, slice.slice_of(rob.rod().ok()?.data()))));
        found.collect::<Vec<_>>()
    })
}

/// Slices with whole fragments: one that lies in several pieces is put together.
fn joined(bulk: &Bulk) -> Vec<PageSlice> {
    let is_whole = |slice: &PageSlice| Robs::new(EventFormat::V5, slice.as_bytes()).all(|rob| rob.is_ok());
    if bulk.slices().len() < 2 || bulk.slices().iter().all(is_whole) {
        return bulk.slices().to_vec();
    }
    vec![PageSlice::from(bulk.slices().iter().flat_map(PageSlice::as_bytes).copied().collect::<Vec<u8>>())]
}

/// A ROB fragment of our own around these data words.
pub(super) fn rob_fragment(source_id: SourceId, event: &EventInfo, run_number: u32, words: &[u32]) -> Bulk {
    let EventInfo { event, bcid, trigger_type, .. } = *event;
    let rod = RodHeader {
        source_id,
        run_number,
        lvl1_id: event.lvl1_id().0,
        bcid: Bcid::new(bcid).unwrap_or_default(),
        trigger_type,
        ..RodHeader::default()
    };
    let params = RobParams { rod, ..RobParams::default() };
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rob = [rob_prefix(&params, data.len()).as_slice(), &data, rob_suffix(&params, data.len()).as_ref()].concat();
    Bulk::Pages(PageSlice::from(rob))
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
