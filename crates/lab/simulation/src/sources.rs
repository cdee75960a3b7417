//! Sources that send by themselves: what a simulation has of those that a configuration names.

use std::collections::BTreeMap;
use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, NodeId, Role};
use configuration::{Handshake, LinkSource, Matching, Partition, RosInput, SimulatedSource, Simulation};
use eformat::WORD_BYTES;
use partition::{Assembly, fragment_overhead_bytes};
use rol::{ChunkHead, FragmentSizes};
use simulator::world::{Beam, Chunking, Detectors, Habits, Rhythm, Says, Source};

/// Lengths of what sources send, by node and link.
pub(super) struct Payloads {
    each: BTreeMap<NodeId, Vec<Payload>>,
    /// Bytes around the data of a fragment.
    overhead_bytes: usize,
}

struct Payload {
    sizes: FragmentSizes,
    longest: usize,
}

impl Payloads {
    pub(super) fn new(assembly: &Assembly, simulation: &Simulation) -> Self {
        let partition = &assembly.partition;
        let payload = |(place, source): (usize, &LinkSource)| {
            let sizes = simulation.source(&source.name).sizes(source.size_max);
            Payload {
                sizes: FragmentSizes::new(&sizes, partition.run.seed, source.source_id(place)),
                longest: usize::try_from(source.size_max.bytes()).unwrap_or(usize::MAX),
            }
        };
        let systems = assembly.of(Role::Ros).into_iter().enumerate();
        let each = systems.map(|(index, node)| (node, assembly.sources_of(index).map(payload).collect())).collect();
        Self { each, overhead_bytes: fragment_overhead_bytes(partition) }
    }

    pub(super) fn links(&self, node: NodeId) -> u16 {
        self.each.get(&node).map_or(0, Vec::len) as u16
    }

    /// The fragment of an event.
    pub(super) fn fragment(&self, node: NodeId, rob: u16, event: EventId) -> Bulk {
        self.of(node, rob, event.0, self.overhead_bytes)
    }

    /// What belongs to an event by its time; the source has sent so many before.
    pub(super) fn chunk(&self, node: NodeId, rob: u16, place: u64) -> Bulk {
        self.of(node, rob, place, ChunkHead::BYTES)
    }

    fn of(&self, node: NodeId, rob: u16, number: u64, around: usize) -> Bulk {
        let Payload { sizes, longest } = &self.each[&node][usize::from(rob)];
        let data = sizes.data_bytes(EventId(number)).min(*longest).next_multiple_of(WORD_BYTES);
        Bulk::Modelled { len_bytes: (data + around) as u32, seed: number as u32 }
    }
}

/// The sources of a partition, with the beam that they see.
pub(super) fn detectors(assembly: &Assembly, simulation: &Simulation) -> Detectors {
    let partition = &assembly.partition;
    if partition.ros.input != RosInput::Links {
        return Detectors::default();
    }
    let of_system = |(index, ros): (usize, NodeId)| {
        let own = (0_u16..).zip(assembly.sources_of(index));
        own.map(move |(rob, (place, source))| {
            let simulated = simulation.source(&source.name);
            Source { ros, rob, ..detector(partition, place, source, &simulated) }
        })
    };
    let each = assembly.of(Role::Ros).into_iter().enumerate().flat_map(of_system).collect();
    let first = u64::from(partition.run.first_lvl1_id);
    let beam = Beam { first, end: u64::MAX, gaps: 0.0, seed: partition.run.seed };
    Detectors { beam, room: FRAGMENTS_PER_PASS, clock_begins_ns: CLOCK_BEGINS_NS, each }
}

fn detector(partition: &Partition, place: usize, source: &LinkSource, simulated: &SimulatedSource) -> Source {
    let leads = partition.leader() == Some(place);
    let delay = simulated.delay.duration();
    Source {
        ros: NodeId(0),
        rob: 0,
        leads,
        one_by_one: leads && source.handshake == Some(Handshake::Eudet),
        rhythm: if leads { Rhythm::Alone(simulated.interval().duration()) } else { Rhythm::After(delay) },
        says: match partition.matching(source) {
            Matching::Number => Says::NumberAndTime,
            Matching::Time => Says::Time,
            Matching::Count => Says::Count(source.first_count.unwrap_or_default()),
        },
        chunking: chunking(partition, simulated),
        latency: LATENCY,
        habits: Habits { leaves_out: 1.0 - simulated.efficiency.as_f64(), ..Habits::default() },
    }
}

/// How time is cut, where events are slices of it. A chunk lasts until the next one has begun, and as much longer as they overlap.
fn chunking(partition: &Partition, simulated: &SimulatedSource) -> Option<Chunking> {
    let slice_ns = partition.slice_ns()?;
    let (lasts, every) = (simulated.chunk(slice_ns).duration(), simulated.every(slice_ns).duration());
    Some(Chunking { zero_ns: CLOCK_BEGINS_NS, every, lasts, until: FOR_EVER, step: None })
}

/// As a live read-out system takes them.
const FRAGMENTS_PER_PASS: usize = 256;
/// Of a link in one direction, on one host.
const LATENCY: Duration = Duration::from_micros(5);
/// What all clocks say at the begin of the world: slices and times of triggers are counted by them.
const CLOCK_BEGINS_NS: u64 = 1_700_000_000_000_000_000;
/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(1_000_000);
