//! What comes from outside a configured partition, and the work that its drivers do.

use std::collections::BTreeMap;
use std::time::Duration;

use configuration::{Partition, SizeDistribution};
use dataflow::bulk::Bulk;
use dataflow::component::{Processed, Selection, Steer, Steered};
use dataflow::filter::policy::FilterPolicy;
use dataflow::ids::NodeId;
use dataflow::level1::trigger::Trigger;
use dataflow::level2::steering::Skeleton;
use dataflow::message::{BuiltEvent, Chains, EventInfo, Recording};
use eformat::{ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, WORD_BYTES};
use rol::FragmentSizes;
use simulator::world::{Effort, Outside, Place};

/// Sizes, lots and times; there are no data.
pub(super) struct Modelled {
    pub(super) skeleton: Skeleton,
    pub(super) policy: FilterPolicy,
    /// By node and link.
    pub(super) sizes: BTreeMap<NodeId, Vec<FragmentSizes>>,
    /// Bytes around the data of a fragment.
    pub(super) overhead_bytes: usize,
    pub(super) steering: Duration,
    pub(super) processing: Duration,
    pub(super) disk_bytes_per_s: Option<u64>,
}

impl Modelled {
    /// The sizes of the links of each read-out system.
    pub(super) fn sizes(
        partition: &Partition,
        distribution: &SizeDistribution,
        links: impl Iterator<Item = (NodeId, Vec<u32>)>,
    ) -> BTreeMap<NodeId, Vec<FragmentSizes>> {
        let of_link = |link: u32| FragmentSizes::new(distribution, partition.run.seed, link);
        links.map(|(node, links)| (node, links.into_iter().map(of_link).collect())).collect()
    }

    /// Bytes of headers and trailers of a fragment.
    pub(super) fn overhead_bytes(partition: &Partition) -> usize {
        let checksum = if partition.ros.checksum == configuration::Checksum::Adler32 { WORD_BYTES } else { 0 };
        ROB_PREFIX_BYTES + ROB_SUFFIX_BYTES + checksum
    }
}

impl Outside for Modelled {
    fn links(&self, node: NodeId) -> u16 {
        self.sizes.get(&node).map_or(0, |links| links.len() as u16)
    }

    fn fragment_bytes(&mut self, node: NodeId, rob: u16, event: &EventInfo) -> u32 {
        let data = self.sizes[&node][usize::from(rob)].data_bytes(event.event);
        (data / WORD_BYTES * WORD_BYTES + self.overhead_bytes) as u32
    }

    fn trigger(&mut self) -> Option<Trigger> {
        None
    }

    fn steer(&mut self, steer: &Steer) -> Steered {
        match self.skeleton.step(steer) {
            Steered::Decide(selection) if selection.accept => {
                let result = Bulk::Modelled { len_bytes: RESULT_BYTES, seed: 1 };
                Steered::Decide(Selection { result, ..selection })
            }
            other => other,
        }
    }

    fn process(&mut self, built: &BuiltEvent) -> Option<Processed> {
        let chains = Chains::default();
        Some(if self.policy.accepts(built.event.event, built.event.ordinal) {
            Processed::Accept { streams: 0, chains, result: Bulk::empty() }
        } else {
            Processed::Reject { chains }
        })
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
