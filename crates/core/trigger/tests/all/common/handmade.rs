//! Events with a few hits, in the layout `rob160`.

use trigger::{DataType, Detector, Roi, SubSystem};

use super::regroup::{module_of, payload, record_words};
use super::sample::Event;

/// Words of records by sub-detector.
#[derive(Clone, Default)]
pub struct Hits {
    words: [Vec<u32>; 4],
}

impl Hits {
    pub fn em(mut self, ieta: u32, iphi: u32, counts: u32) -> Self {
        self.words[SubSystem::EmCalo as usize].push((ieta << 8 | iphi) << 16 | counts);
        self
    }

    pub fn had(mut self, ieta: u32, iphi: u32, counts: u32) -> Self {
        self.words[SubSystem::HadCalo as usize].push((ieta * 64 + iphi) << 16 | counts);
        self
    }

    pub fn track(self, eta_q: i16, phi_q: i32, qpt_q: i16, z0_q: i16) -> Self {
        self.pair(SubSystem::Tracker, eta_q, phi_q, qpt_q, z0_q)
    }

    pub fn stub(self, eta_q: i16, phi_q: i32, qpt_q: i16) -> Self {
        self.pair(SubSystem::Muon, eta_q, phi_q, qpt_q, 3)
    }

    fn pair(mut self, sub: SubSystem, eta_q: i16, phi_q: i32, qpt_q: i16, low: i16) -> Self {
        let halves = |high: u16, low: i16| u32::from(high) << 16 | u32::from(low.cast_unsigned());
        self.words[sub as usize].extend([halves(phi_q as u16, eta_q), halves(qpt_q.cast_unsigned(), low)]);
        self
    }

    pub fn event(&self, detector: &Detector, items: u32, rois: &[Roi]) -> Event {
        let mut fragments = Vec::new();
        for sub in SubSystem::ALL {
            let mut modules = vec![Vec::new(); detector.modules(sub).count() as usize];
            for record in self.words[sub as usize].chunks(record_words(sub)) {
                modules[module_of(detector, sub, record[0])].extend_from_slice(record);
            }
            let sources = detector.modules(sub).sources();
            fragments
                .extend(sources.zip(modules).map(|(source_id, words)| (source_id, payload(DataType::of(sub), &words))));
        }
        fragments.sort_by_key(|(source_id, _)| *source_id);
        Event { number: 1, accepted: true, weight: 1.0, items, rois: rois.to_vec(), fragments }
    }
}
