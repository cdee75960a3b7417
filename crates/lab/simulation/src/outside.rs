//! What comes from outside a configured partition, and the work that its drivers do.

use std::collections::BTreeMap;
use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, NodeId, Role};
use configuration::RosInput;
use dataflow::component::{Processed, Selection, Steer, Steered};
use dataflow::message::{BuiltEvent, EventInfo, Recording};
use eformat::{ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, WORD_BYTES};
use simulator::world::{Effort, Outside, Place};

use super::content::Content;
use super::tasks::Tasks;
use assembly::ByLot;
use driver::{Steering, Strategy};
use partition::Assembly;
use timing::Interval;

/// Read-out links, decisions and times.
pub(super) struct Surroundings {
    pub(super) content: Content,
    pub(super) level2: Level2,
    pub(super) tasks: Tasks,
    pub(super) steering: Duration,
    pub(super) processing: Duration,
    pub(super) disk_bytes_per_s: Option<u64>,
}

/// How level 2 decides.
pub(super) enum Level2 {
    /// By lot, where there are no data.
    Skeleton(ByLot),
    /// As in a live run: the steering of each L2PU.
    Units(BTreeMap<NodeId, Steering>),
}

impl Level2 {
    /// As it is configured.
    pub(super) fn new(assembly: &Assembly) -> Self {
        let run_number = assembly.partition.run.number();
        match (assembly.partition.ros.input, Strategy::of(assembly)) {
            (RosInput::Emulator | RosInput::Links, Strategy::Skeleton(skeleton)) => Self::Skeleton(skeleton),
            _ => {
                let steering = || Steering::new(Strategy::of(assembly), Duration::ZERO, run_number, None);
                Self::Units(assembly.of(Role::L2pu).into_iter().map(|node| (node, steering())).collect())
            }
        }
    }
}

impl Outside for Surroundings {
    fn links(&self, node: NodeId) -> u16 {
        self.content.links(node)
    }

    fn fragment(&mut self, node: NodeId, rob: u16, event: &EventInfo) -> Bulk {
        self.content.fragment(node, rob, event)
    }

    fn pushed(&mut self, node: NodeId, rob: u16, event: EventId) -> Bulk {
        self.content.pushed().fragment(node, rob, event)
    }

    fn chunk(&mut self, node: NodeId, rob: u16, _: Interval, place: u64) -> Bulk {
        self.content.pushed().chunk(node, rob, place)
    }

    fn steer(&mut self, node: NodeId, steer: &Steer) -> Steered {
        match &mut self.level2 {
            Level2::Units(units) => units.get_mut(&node).expect("an L2PU of the partition").step(steer),
            Level2::Skeleton(skeleton) => match skeleton.step(steer) {
                Steered::Decide(selection) if selection.accept => {
                    let result = Bulk::Modelled { len_bytes: RESULT_BYTES, seed: 1 };
                    Steered::Decide(Selection { result, ..selection })
                }
                other => other,
            },
        }
    }

    fn process(&mut self, built: &BuiltEvent) -> Option<Processed> {
        Some(self.tasks.process(built))
    }

    fn record(&mut self, _: NodeId, _: &Recording) -> bool {
        true
    }

    fn effort(&mut self, _: Duration, work: Effort<'_>) -> (Duration, Place) {
        match work {
            Effort::Steer(_) => (self.steering, Place::Thread),
            Effort::Process(_) => (self.processing, Place::Anywhere),
            Effort::Record(bytes) => {
                let per_s = self.disk_bytes_per_s;
                let takes = per_s.map_or(0.0, |per_s| bytes as f64 / per_s as f64);
                (Duration::from_secs_f64(takes), Place::Aside)
            }
            Effort::Sync => (Duration::ZERO, Place::Aside),
        }
    }
}

/// A result of skeleton steering: a ROB fragment with two words of data.
const RESULT_BYTES: u32 = (ROB_PREFIX_BYTES + ROB_SUFFIX_BYTES + 2 * WORD_BYTES) as u32;
