//! Sources that send by themselves: what a simulation has of those that a configuration names.

use std::collections::BTreeMap;
use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, NodeId, Role};
use configuration::{EmulatedSource, Handshake, LinkSource, Matching, Partition, RosInput};
use eformat::WORD_BYTES;
use partition::{Assembly, fragment_overhead_bytes};
use rol::{ChunkHead, FragmentSizes};
use simulator::world::{Beam, Chunking, Detectors, Habits, Rhythm, Says, Source, Telling};

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
    pub(super) fn new(assembly: &Assembly) -> Self {
        let partition = &assembly.partition;
        let payload = |(place, source): (usize, &LinkSource)| {
            let sizes = source.emulated.sizes(source.size_max);
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
pub(super) fn detectors(assembly: &Assembly) -> Detectors {
    let partition = &assembly.partition;
    if partition.ros.input != RosInput::Links {
        return Detectors::default();
    }
    let of_system = |(index, ros): (usize, NodeId)| {
        let own = (0_u16..).zip(assembly.sources_of(index));
        own.map(move |(rob, (place, source))| Source { ros, rob, ..detector(partition, place, source) })
    };
    let each = assembly.of(Role::Ros).into_iter().enumerate().flat_map(of_system).collect();
    let first = u64::from(partition.run.first_lvl1_id);
    let beam = Beam { first, end: u64::MAX, gaps: 0.0, seed: partition.run.seed };
    Detectors { beam, room: FRAGMENTS_PER_PASS, clock_begins_ns: CLOCK_BEGINS_NS, each }
}

/// Says which sources have sizes from `emulated` here, where a live run reads them from its input.
pub(super) fn not_simulated(partition: &Partition) -> Vec<String> {
    let plays = |source: &&LinkSource| source.play.input().is_some();
    let played: Vec<&str> = partition.source.iter().filter(plays).map(|source| source.name.as_str()).collect();
    if played.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "data of sources that play input.files are not read: sizes of {} are those of source.emulated, and each has data of the part \
         of the events that source.emulated.efficiency says",
        played.join(", ")
    )]
}

fn detector(partition: &Partition, place: usize, source: &LinkSource) -> Source {
    let emulated = &source.emulated;
    let leads = partition.leader() == Some(place);
    let delay = emulated.delay.duration();
    Source {
        ros: NodeId(0),
        rob: 0,
        leads,
        one_by_one: leads && source.handshake == Some(Handshake::Eudet),
        rhythm: if leads { Rhythm::Alone(emulated.interval().duration()) } else { Rhythm::After(delay) },
        says: match partition.matching(source) {
            Matching::Number => Says::NumberAndTime,
            Matching::Time => Says::Time,
            Matching::Count => Says::Count(source.first_count.unwrap_or_default()),
        },
        telling: Telling::default(),
        chunking: chunking(partition, emulated),
        latency: LATENCY,
        habits: Habits { leaves_out: 1.0 - emulated.efficiency.as_f64(), ..Habits::default() },
    }
}

/// How time is cut, where events are slices of it. A chunk lasts until the next one has begun, and as much longer as they overlap.
fn chunking(partition: &Partition, emulated: &EmulatedSource) -> Option<Chunking> {
    let slice_ns = partition.slice_ns()?;
    let (lasts, every) = (emulated.chunk(slice_ns).duration(), emulated.every(slice_ns).duration());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_are_not_those_of_the_input_are_said() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/data/replay.data");
        let notes = |play: &str| {
            let text = format!(
                "partition.name = \"p\"\ninput.files = [{file:?}]\nlevel1.source = \"link\"\nros.count = 1\nsfi.count = 1\n\
                 [[source]]\nname = \"calo\"\nplay = \"{play}\"\n"
            );
            not_simulated(&Partition::parse("p", &text, &[]).unwrap_or_else(|error| panic!("{error}")))
        };
        assert!(notes("emulator").is_empty());
        let told = notes("replay");
        assert!(told[0].contains("sizes of calo are those of source.emulated"), "{told:?}");
    }
}
