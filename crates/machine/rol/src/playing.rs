//! The detector in the place of a source, or of a level-1 processor, that a partition plays.

use configuration::{EmulatedSource, Fraction, Handshake, LinkSource, Matching, Partition, Play, Processor, Rate};

use crate::detector::{Beams, Chunks, Content, Detector, Pace, Played, PlayedError, SinceT0, Traits};
use crate::emulator::EmulatedTriggers;
use crate::inputs::Inputs;

/// The detector in this place of the sources of a partition, if it is played. `inputs` are those of the partition.
///
/// # Errors
/// The input has no such ROB, or pages are too short for it.
///
/// # Panics
/// There is no such source.
pub fn detector_of(partition: &Partition, place: usize, inputs: &Inputs) -> Result<Option<Detector>, PlayedError> {
    let source = &partition.source[place];
    let (id, emulated) = (source.source_id(place), &source.emulated);
    let content = match (source.play, inputs.played()) {
        (Play::None, _) => return Ok(None),
        (Play::Emulator, _) => made_up(source),
        (Play::Sample | Play::Replay, Some(inputs)) => Content::Played(Box::new(Played::new(inputs, id)?)),
        (Play::Sample | Play::Replay, None) => unreachable!("inputs that are played are open"),
    };
    let (first, matching) = (u64::from(partition.run.first_lvl1_id), partition.matching(source));
    let counted = source.first_count.filter(|_| matching == Matching::Count);
    let has_t0 = matches!(source.handshake, Some(Handshake::Aida | Handshake::AidaNumber));
    let leads = partition.leader() == Some(place);
    let beam = beam(partition);
    Ok(Some(Detector::new(Traits {
        content,
        seed: partition.run.seed ^ u64::from(id) << 32,
        first,
        pace: match &beam {
            Some(_) if leads => Pace::Trigger,
            Some(_) => Pace::Beam { delay_ns: emulated.delay.ns() },
            None => Pace::Free,
        },
        efficiency: match source.play {
            Play::Emulator => emulated.efficiency,
            _ => Fraction::ONE,
        },
        has_numbers: matching != Matching::Time && source.handshake != Some(Handshake::Aida),
        counts_from: counted.map_or(0, |count| count.saturating_sub_unsigned(first)),
        number_bits: source.bits_of_numbers().unwrap_or(u64::BITS),
        beam,
        chunks: partition.slice_ns().map(|slice_ns| chunks(emulated, slice_ns)),
        t0: has_t0.then_some(SinceT0 { after: 0 }),
        says_event: false,
        ..Traits::default()
    })))
}

/// The detector in this place of the level-1 processors of a partition, if it is played: it has triggers of its own.
///
/// # Panics
/// There is no such processor.
pub fn processor_of(partition: &Partition, place: usize) -> Option<Detector> {
    let level1 = partition.level1.as_ref().expect("a partition with processors has level 1");
    level1.processor[place].played()?;
    let (rois, generator) = (level1.rois_per_event, level1.generator.clone());
    let seed = partition.run.seed ^ u64::from(Processor::source_id(place)) << 32;
    let triggers = move || Box::new(EmulatedTriggers::new(rois, generator.clone(), seed)) as Box<_>;
    Some(Detector::new(Traits {
        content: Content::Triggers(Box::new(triggers)),
        seed,
        first: u64::from(partition.run.first_lvl1_id),
        pace: level1.rate.and_then(Rate::period_ns).map_or(Pace::Free, |period_ns| Pace::Every { period_ns }),
        number_bits: level1.processor[place].number_bits.unwrap_or(u64::BITS),
        says_event: false,
        ..Traits::default()
    }))
}

fn made_up(source: &LinkSource) -> Content {
    Content::MadeUp { mean_bytes: source.emulated.mean(source.size_max).bytes(), spread: source.emulated.spread }
}

/// The triggers that all sources see, where one leads that is played: those of a program nobody here knows.
fn beam(partition: &Partition) -> Option<Beams> {
    let leader = Some(&partition.source[partition.leader()?]).filter(|leader| leader.played().is_some())?;
    Some(Beams {
        seed: partition.run.seed,
        mean_ns: leader.emulated.interval().ns(),
        jitter_ns: JITTER_NS,
        drift_ppm: 0.0,
        clock_step: None,
    })
}

fn chunks(emulated: &EmulatedSource, slice_ns: u64) -> Chunks {
    Chunks {
        length_ns: emulated.chunk(slice_ns).ns(),
        every_ns: emulated.every(slice_ns).ns(),
        delay_ns: emulated.delay.ns(),
        silent_from: None,
    }
}

/// Of times, as `weir feed` has it.
const JITTER_NS: u64 = 100;
