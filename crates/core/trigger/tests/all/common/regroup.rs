//! The same hits cut into the ROBs of another layout.

use base::bulk::PageSlice;
use trigger::{DataType, Detector, SubSystem};

use super::sample::Event;

/// The event as a detector with another layout would have sent it; fragments that are not of sub-detectors stay.
pub fn regroup(event: &Event, from: &Detector, to: &Detector) -> Event {
    let mut fragments = Vec::new();
    for sub in [SubSystem::Tracker, SubSystem::EmCalo, SubSystem::HadCalo, SubSystem::Muon] {
        let mut modules: Vec<Vec<u32>> = vec![Vec::new(); to.modules(sub).count() as usize];
        for source_id in from.modules(sub).sources() {
            let words: Vec<u32> = eformat::words(event.payload(source_id).as_bytes()).skip(1).collect();
            for record in words.chunks(record_words(sub)) {
                modules[module_of(to, sub, record[0])].extend_from_slice(record);
            }
        }
        for (source_id, mut words) in to.modules(sub).sources().zip(modules) {
            if record_words(sub) == 1 {
                words.sort_unstable();
            }
            fragments.push((source_id, payload(DataType::of(sub), &words)));
        }
    }
    let others = event.fragments.iter().filter(|(source_id, _)| from.sub_system(*source_id).is_none());
    fragments.extend(others.cloned());
    fragments.sort_by_key(|(source_id, _)| *source_id);
    Event { fragments, ..event.clone() }
}

pub fn payload(data_type: DataType, words: &[u32]) -> PageSlice {
    let record_words = match data_type {
        DataType::Tracks | DataType::MuonStubs => 2,
        DataType::Rois => 4,
        DataType::EmCells | DataType::HadTowers | DataType::CentralTrigger => 1,
    };
    let first = 0xd1 << 24 | (data_type as u32) << 16 | (words.len() / record_words) as u32;
    let words = std::iter::once(&first).chain(words);
    PageSlice::from(words.flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
}

pub fn record_words(sub: SubSystem) -> usize {
    if matches!(sub, SubSystem::Tracker | SubSystem::Muon) { 2 } else { 1 }
}

/// The formulae of the samples' description.
pub fn module_of(detector: &Detector, sub: SubSystem, word: u32) -> usize {
    let (modules, grid) = (detector.modules(sub), sub.grid());
    let (eta, phi) = match sub {
        SubSystem::EmCalo => (word >> 24, word >> 16 & 0xff),
        SubSystem::HadCalo => ((word >> 16) / 64, (word >> 16) % 64),
        SubSystem::Tracker | SubSystem::Muon => ((i32::from(word as i16) + 25_000).cast_unsigned(), word >> 16),
    };
    let eta = u64::from(eta) * u64::from(modules.eta) / u64::from(grid.eta);
    let phi = u64::from(phi) * u64::from(modules.phi) / u64::from(grid.phi);
    (eta * u64::from(modules.phi) + phi) as usize
}
