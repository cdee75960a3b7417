//! The sequences of one event: an algorithm with a cut on a region of interest each. All advance together, step by step.

use dataflow::message::Roi;

use crate::data::Data;
use crate::feature::Feature;
use crate::menu::{Menu, RoiAlgorithm, Selection};
use crate::object::{Object, Verdict};

/// Which of a chain's cuts is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Level2,
    Filter,
}

/// The sequences of the chains that run for an event; reused for the next.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    /// In order of chain, then region of interest.
    sequences: Vec<Sequence>,
    regions: Vec<Region>,
    /// For each region of interest of the event the index of its region, or `NONE`.
    region_of_roi: Vec<u32>,
    /// Which chain counts which sequence.
    members: Vec<(u8, u32)>,
    /// Regions with a sequence that goes on.
    going_on: usize,
}

#[derive(Debug)]
struct Region {
    roi: u32,
    object: Object,
    /// The step to take next.
    step: u8,
    goes_on: bool,
    /// Head of the list of its sequences.
    first: u32,
}

#[derive(Debug)]
struct Sequence {
    chain: u8,
    region: u32,
    /// The next sequence of the region, or `NONE`.
    next: u32,
    algorithm: RoiAlgorithm,
    et_min_mev: i64,
    steps: u8,
    verdict: Verdict,
}

impl Sequences {
    /// Sets up what these chains look for in these regions of interest.
    pub(crate) fn begin(&mut self, menu: &Menu, level: Level, chains: u64, rois: &[Roi]) {
        self.sequences.clear();
        self.regions.clear();
        self.members.clear();
        self.region_of_roi.clear();
        self.region_of_roi.resize(rois.len(), NONE);
        for chain in bits(chains) {
            let Selection::Rois(selection) = menu.chain(chain).selection else { continue };
            let et_min_mev = match level {
                Level::Level2 => selection.et_mev.level2,
                Level::Filter => selection.et_mev.filter,
            };
            let kind = selection.algorithm.roi_kind() as u8;
            for (index, roi) in rois.iter().enumerate() {
                if roi.kind == kind && roi.thresholds >> selection.threshold & 1 != 0 {
                    let region = self.region(index, selection.algorithm, roi);
                    let sequence = self.sequence(chain as u8, region, selection.algorithm, et_min_mev);
                    self.members.push((chain as u8, sequence));
                }
            }
        }
        self.going_on = self.regions.len();
    }

    /// Whether nothing goes on.
    pub(crate) fn are_decided(&self) -> bool {
        self.going_on == 0
    }

    /// Adds the ROBs that the next step needs, in any order, some more than once.
    pub(crate) fn wanted(&self, menu: &Menu, source_ids: &mut Vec<u32>) {
        for region in self.regions.iter().filter(|region| region.goes_on) {
            let windows = region.object.windows(region.step, menu.cuts());
            windows.iter().flatten().for_each(|window| source_ids.extend(menu.detector().robs(window)));
        }
    }

    /// Takes the next step of all sequences that go on.
    pub(crate) fn advance(&mut self, menu: &Menu, data: &impl Data) {
        self.going_on = 0;
        for region in self.regions.iter_mut().filter(|region| region.goes_on) {
            region.object.extract(region.step, menu, data);
            region.goes_on = false;
            let mut next = region.first;
            while let Some(sequence) = self.sequences.get_mut(next as usize) {
                next = sequence.next;
                if sequence.verdict == Verdict::GoOn {
                    sequence.steps += 1;
                    sequence.verdict = region.object.judge(region.step, sequence.algorithm, sequence.et_min_mev, menu);
                    region.goes_on |= sequence.verdict == Verdict::GoOn;
                }
            }
            region.step += 1;
            self.going_on += usize::from(region.goes_on);
        }
    }

    /// Of these chains, those with enough regions of interest that passed.
    pub(crate) fn passed(&self, menu: &Menu, chains: u64) -> u64 {
        let mut counts = [0_u32; u64::BITS as usize];
        for (chain, sequence) in &self.members {
            counts[usize::from(*chain)] += u32::from(self.sequences[*sequence as usize].verdict == Verdict::Passed);
        }
        let passes = |chain: usize| match menu.chain(chain).selection {
            Selection::Rois(selection) => counts[chain] >= selection.count,
            Selection::MissingEt { .. } | Selection::Pass => false,
        };
        bits(chains).filter(|chain| passes(*chain)).fold(0, |set, chain| set | 1 << chain)
    }

    /// What was found, in order of chain, then region of interest.
    pub(crate) fn features(&self) -> impl Iterator<Item = Feature> + '_ {
        self.sequences.iter().map(|sequence| {
            let region = &self.regions[sequence.region as usize];
            Feature {
                chain: sequence.chain,
                roi: Some(region.roi),
                values: region.object.values(sequence.steps),
                passed: sequence.verdict == Verdict::Passed,
            }
        })
    }

    fn region(&mut self, roi_index: usize, algorithm: RoiAlgorithm, roi: &Roi) -> u32 {
        let known = &mut self.region_of_roi[roi_index];
        if *known == NONE {
            *known = index(self.regions.len());
            let object = Object::new(algorithm, roi);
            self.regions.push(Region { roi: index(roi_index), object, step: 0, goes_on: true, first: NONE });
        }
        *known
    }

    /// The sequence of another chain if it is the same, else a new one.
    fn sequence(&mut self, chain: u8, region: u32, algorithm: RoiAlgorithm, et_min_mev: i64) -> u32 {
        let mut known = self.regions[region as usize].first;
        while let Some(sequence) = self.sequences.get(known as usize) {
            if (sequence.algorithm, sequence.et_min_mev) == (algorithm, et_min_mev) {
                return known;
            }
            known = sequence.next;
        }
        let new = index(self.sequences.len());
        let next = std::mem::replace(&mut self.regions[region as usize].first, new);
        let verdict = Verdict::GoOn;
        self.sequences.push(Sequence { chain, region, next, algorithm, et_min_mev, steps: 0, verdict });
        new
    }
}

/// The numbers of the bits that are set, rising.
pub(crate) fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        bit
    })
}

fn index(length: usize) -> u32 {
    u32::try_from(length)
        .ok()
        .filter(|index| *index != NONE)
        .expect("64 chains of the regions of interest of a message")
}

const NONE: u32 = u32::MAX;
