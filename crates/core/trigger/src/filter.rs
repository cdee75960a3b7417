//! The event filter: the menu again, on the whole event and with tighter cuts.

use std::sync::Arc;

use dataflow::message::Roi;
use eformat::{SourceId, WORD_BYTES};

use crate::data::Data;
use crate::detector::{Detector, RoiKind};
use crate::feature::{Feature, Values};
use crate::menu::{Menu, Selection};
use crate::missing_et::{Calorimeter, TransverseEnergy};
use crate::payload::{BadPayload, DataType, Records};
use crate::result::{BadResult, Decision, FilterDecision, LEVEL2_RESULT};
use crate::sequence::{Level, Sequences, bits};

/// The event filter's selection; a context that is reused for each event.
#[derive(Debug)]
pub struct Filter {
    menu: Arc<Menu>,
    sequences: Sequences,
    calorimeter: Calorimeter,
    rois: Vec<Roi>,
    /// Bytes of records of each fragment of the event.
    record_bytes: Vec<usize>,
    energy: Option<TransverseEnergy>,
    energy_features: Vec<Feature>,
    problems: Vec<(SourceId, BadFragment)>,
}

/// Why a fragment of a built event is taken as one without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFragment {
    /// Detector or level-1 data.
    #[error(transparent)]
    Payload(#[from] BadPayload),
    /// The level-2 result.
    #[error(transparent)]
    Result(#[from] BadResult),
}

impl Filter {
    /// A context for events of this menu.
    #[must_use]
    pub fn new(menu: Arc<Menu>) -> Self {
        Self {
            menu,
            sequences: Sequences::default(),
            calorimeter: Calorimeter::new(),
            rois: Vec::new(),
            record_bytes: Vec::new(),
            energy: None,
            energy_features: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Decides on a built event: source identifiers, rising, and ROD payloads of all its fragments, the level-2 result
    /// among them.
    ///
    /// The chains that passed level 2 run again. Without a legal level-2 result (there is no level 2, or a time-out
    /// accepted the event) those run that level 2 would have run.
    pub fn decide(&mut self, event: u64, fragments: &[(u32, &[u8])]) -> FilterDecision {
        let missing_fragments = self.check(fragments);
        let level2 = self.level2(fragments);
        let menu = Arc::clone(&self.menu);
        let data = BuiltEvent { fragments, record_bytes: &self.record_bytes };
        let (input, passed_through) = match &level2 {
            Some(decision) => (decision.passed & menu.all(), decision.passed_through & menu.all()),
            None => {
                let input = menu.input(event, items(menu.detector(), &data));
                (input, menu.passed_through(event, input))
            }
        };
        rois(menu.detector(), &data, &mut self.rois);
        self.sequences.begin(&menu, Level::Filter, input, &self.rois);
        while !self.sequences.are_decided() {
            self.sequences.advance(&menu, &data);
        }
        let of_rois = self.sequences.passed(&menu, input);
        let of_event = self.whole_event(input, fragments);
        FilterDecision {
            input,
            passed: of_rois | of_event | passed_through & input,
            missing_fragments,
            bad_payloads: self.problems.len() as u32,
        }
    }

    /// What was found, in order of chain, then region of interest; missing energy last.
    pub fn features(&self) -> impl Iterator<Item = Feature> + '_ {
        self.sequences.features().chain(self.energy_features.iter().copied())
    }

    /// Sum and missing transverse energy, if a chain of the event asked for it.
    #[must_use]
    pub fn transverse_energy(&self) -> Option<TransverseEnergy> {
        self.energy
    }

    /// The fragments of the event that were taken as ones without content.
    #[must_use]
    pub fn problems(&self) -> &[(SourceId, BadFragment)] {
        &self.problems
    }

    /// Looks at all first words; returns how many fragments are missing.
    fn check(&mut self, fragments: &[(u32, &[u8])]) -> u32 {
        self.record_bytes.clear();
        self.problems.clear();
        let detector = self.menu.detector();
        let (mut present, mut previous) = (0, None);
        for (source_id, payload) in fragments {
            let parsed = detector.data_type(*source_id).map(|expected| Records::parse(payload, expected));
            present += u32::from(parsed.is_some() && previous != Some(source_id));
            previous = Some(source_id);
            let bytes = match parsed {
                Some(Ok(records)) => records.bytes(),
                Some(Err(problem)) => {
                    self.problems.push((SourceId(*source_id), problem.into()));
                    0
                }
                None => 0,
            };
            self.record_bytes.push(bytes);
        }
        detector.source_count().saturating_sub(present)
    }

    fn level2(&mut self, fragments: &[(u32, &[u8])]) -> Option<Decision> {
        let index = fragments.binary_search_by_key(&LEVEL2_RESULT.0, |(source_id, _)| *source_id).ok()?;
        match Decision::from_bytes(fragments[index].1) {
            Ok(decision) => Some(decision),
            Err(problem) => {
                self.problems.push((LEVEL2_RESULT, problem.into()));
                None
            }
        }
    }

    /// The chains that look at the event as a whole.
    fn whole_event(&mut self, input: u64, fragments: &[(u32, &[u8])]) -> u64 {
        self.energy = None;
        self.energy_features.clear();
        let mut passed = 0;
        for chain in bits(input) {
            let passes = match self.menu.chain(chain).selection {
                Selection::Rois(_) => continue,
                Selection::Pass => true,
                Selection::MissingEt { et_mev } => {
                    let missing_mev = self.energy(fragments).missing_et_mev();
                    let passes = missing_mev >= et_mev.filter as f64;
                    let values = Values::MissingEt { et_mev: missing_mev as i64 };
                    self.energy_features.push(Feature { chain: chain as u8, roi: None, values, passed: passes });
                    passes
                }
            };
            passed |= u64::from(passes) << chain;
        }
        passed
    }

    fn energy(&mut self, fragments: &[(u32, &[u8])]) -> TransverseEnergy {
        let data = BuiltEvent { fragments, record_bytes: &self.record_bytes };
        let (calorimeter, detector) = (&mut self.calorimeter, self.menu.detector());
        *self.energy.get_or_insert_with(|| calorimeter.transverse_energy(detector, &data))
    }
}

/// Fragments in rising source identifier, and how many bytes of records each has behind its first word.
struct BuiltEvent<'a> {
    fragments: &'a [(u32, &'a [u8])],
    record_bytes: &'a [usize],
}

impl Data for BuiltEvent<'_> {
    fn records(&self, source_id: u32) -> Records<'_> {
        let found = self.fragments.binary_search_by_key(&source_id, |(source_id, _)| *source_id).ok();
        found.filter(|index| self.record_bytes[*index] > 0).map_or_else(Records::default, |index| {
            Records::of_checked(&self.fragments[index].1[WORD_BYTES..][..self.record_bytes[index]])
        })
    }
}

/// Level-1 items after prescale.
fn items(detector: &Detector, data: &impl Data) -> u32 {
    data.records(detector.central_trigger).central_trigger().map_or(0, |trigger| trigger.items)
}

/// Regions of interest in the order of level 1: by kind, and within a kind as in their fragment.
fn rois(detector: &Detector, data: &impl Data, rois: &mut Vec<Roi>) {
    let calorimeter = || data.records(detector.calorimeter_rois).rois();
    let muons = data.records(detector.muon_rois).rois();
    let muon = RoiKind::Muon as u8;
    rois.clear();
    rois.extend(calorimeter().filter(|roi| roi.kind < muon));
    rois.extend(muons.filter(|roi| roi.kind == muon));
    rois.extend(calorimeter().filter(|roi| roi.kind > muon));
}

impl Detector {
    /// What the fragments of a source hold, if it is one of the detector's or of level 1's.
    fn data_type(&self, source_id: u32) -> Option<DataType> {
        if let Some(sub) = self.sub_system(source_id) {
            return Some(DataType::of(sub));
        }
        match source_id {
            id if id == self.calorimeter_rois || id == self.muon_rois => Some(DataType::Rois),
            id if id == self.central_trigger => Some(DataType::CentralTrigger),
            _ => None,
        }
    }
}
