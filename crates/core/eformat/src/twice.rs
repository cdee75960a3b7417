//! What an event, its fragments and its file say of the same thing must agree. No checksum covers the header of an event, so this
//! is all that verifies it.

use crate::event::Event;
use crate::fragment::{EventFormat, Fragment};
use crate::id_set::IdSet;
use crate::layout::{event3, event4, event5, rod};
use crate::problem::{Part, Problem, ProblemKind};
use crate::record::RunParameters;
use crate::rob::Rob;
use crate::rod::Rod;
use crate::status::{GenericStatus, RobStatus, StatusWord};
use crate::word::{WORD_BYTES, word};

/// What all events of a file have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileFacts {
    /// Run number, if it is known.
    pub run_number: Option<u32>,
    /// Luminosity block; `None` for a file of several, or one that does not say.
    pub lumi_block: Option<u32>,
    /// How the event ids of the file go with its level-1 ids.
    pub ids: Ids,
}

/// How event ids and level-1 ids go together. Where one system counts both they are the same in their low 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ids {
    /// It is not known yet.
    #[default]
    Unknown,
    /// They are the same in this one event, which may be chance.
    Once,
    /// They are the same.
    Same,
    /// They have nothing to do with each other.
    Apart,
}

/// Compares events with their file and with one another.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    facts: FileFacts,
    /// Counter of event-counter resets of the last event: with a reset the ids may part.
    resets: Option<u32>,
    known: IdSet,
    not_compared: u32,
}

impl Comparison {
    pub(crate) fn new(facts: FileFacts) -> Self {
        Self { facts, resets: None, known: IdSet::default(), not_compared: 0 }
    }

    /// Compares the event with what is known and remembers its id, if there is nothing wrong with it.
    pub(crate) fn event(&mut self, event: &Event<'_>, problems: &mut Vec<Problem>) {
        let first = problems.len();
        let facts = self.facts;
        let mut compare = |field, at, found, other, expected| {
            if found != expected {
                let kind = ProblemKind::Mismatch { part: Part::FullEvent, field, found, other, expected };
                problems.push(Problem::new(event.specific_offset(at), kind));
            }
        };
        let places = Places::of(event.format());
        if let Some(expected) = facts.run_number {
            compare("run number", places.run_number, event.run_number(), Part::RunParameters, expected);
        }
        if let (Some(expected), Some(at)) = (facts.lumi_block, places.lumi_block) {
            compare("luminosity block", at, event.lumi_block(), Part::Metadata, expected);
        }
        let (id, lvl1_id) = (event.global_id(), event.lvl1_id());
        let wrong = |kind| Problem::new(event.specific_offset(places.global_id), kind);
        let (are_same, resets) = (id as u32 == lvl1_id, lvl1_id >> 24);
        if facts.ids == Ids::Same && !are_same && self.resets.is_none_or(|before| before == resets) {
            problems.push(wrong(ProblemKind::EventId { event: id, lvl1_id }));
        }
        if problems.len() > first {
            return;
        }
        if self.known.ranges().len() >= RANGES_MAX {
            self.not_compared = self.not_compared.saturating_add(1);
        } else if !self.known.insert(id) {
            return problems.push(wrong(ProblemKind::DuplicateEvent { event: id }));
        }
        self.facts.ids = match facts.ids {
            Ids::Unknown if are_same => Ids::Once,
            Ids::Once | Ids::Same if are_same => Ids::Same,
            _ => Ids::Apart,
        };
        self.resets = Some(resets);
    }

    /// Ids of the events so far.
    pub(crate) fn known(&self) -> &IdSet {
        &self.known
    }

    /// Events whose id was not compared with those before, to bound the memory.
    pub(crate) fn not_compared(&self) -> u32 {
        self.not_compared
    }
}

/// Compares a ROD, at `offset` of the bytes that problems are told of, with the header of its event. A fault that its ROB tells
/// of is no problem. In format 3.0 RODs leave words at 0, and those of one detector count level-1 ids from another number.
pub(crate) fn compare_rod(event: &Event<'_>, rob: &Rob<'_>, rod: &Rod<'_>, offset: usize, problems: &mut Vec<Problem>) {
    let status = rob.status();
    if event.format() == EventFormat::V3 || !tells_of_event(status) {
        return;
    }
    let mut compare = |field, at, flag, mask, expected: u32| {
        let found = word(rod.bytes(), at) & mask;
        // Not every detector knows its run.
        let is_given = found != 0 || at != rod::RUN_NUMBER;
        if is_given && found != expected & mask && status.0 & flag == 0 {
            let kind = ProblemKind::Mismatch {
                part: Part::Rod,
                field,
                found,
                other: Part::FullEvent,
                expected: expected & mask,
            };
            problems.push(Problem::new(offset + at * WORD_BYTES, kind));
        }
    };
    let generic = |flag: GenericStatus| u32::from(flag.bits());
    compare("run number", rod::RUN_NUMBER, 0, RUN_NUMBER_MASK, event.run_number());
    compare("level-1 id", rod::LVL1_ID, generic(GenericStatus::LVL1_ID_CHECK), u32::MAX, event.lvl1_id());
    compare("bunch crossing", rod::BCID, generic(GenericStatus::BCID_CHECK), BCID_MASK, event.bcid());
    let unsynchronised = StatusWord::rob(GenericStatus::empty(), RobStatus::TRIGGER_TYPE_SYNC).0;
    compare("trigger type", rod::TRIGGER_TYPE, unsynchronised, TRIGGER_TYPE_MASK, event.trigger_type());
}

/// Compares a ROS fragment of format 3.0 at `offset` with the header of its event.
pub(crate) fn compare_ros(event: &Event<'_>, ros: &Fragment<'_>, offset: usize, problems: &mut Vec<Problem>) {
    let specific = (ros.header_words() - event3::ROS_WORDS) * WORD_BYTES;
    let (found, expected) = (word(ros.specific(), ROS_RUN_NUMBER), event.run_number());
    if found != 0 && found != expected {
        let (part, other, field) = (Part::Ros, Part::FullEvent, "run number");
        let kind = ProblemKind::Mismatch { part, field, found, other, expected };
        problems.push(Problem::new(offset + specific + ROS_RUN_NUMBER * WORD_BYTES, kind));
    }
}

/// Whether the ROD in a ROB of this status was sent for the event, and arrived as it was sent.
fn tells_of_event(status: StatusWord) -> bool {
    let lost = RobStatus::LOST | RobStatus::PENDING | RobStatus::DISCARD | RobStatus::SHORT | RobStatus::ROD_MARKER;
    let broken = RobStatus::LINK_DATA_ERROR | RobStatus::LINK_CONTROL_ERROR | RobStatus::LINK_ERROR;
    let torn = RobStatus::NO_BOF | RobStatus::NO_EOF;
    let generic = GenericStatus::DUMMY | GenericStatus::DATA_CORRUPTION;
    status.0 & StatusWord::rob(generic, lost | broken | torn).0 == 0
}

/// Where fields lie in the specific header.
struct Places {
    global_id: usize,
    run_number: usize,
    lumi_block: Option<usize>,
}

impl Places {
    fn of(format: EventFormat) -> Self {
        let (global_id, run_number, lumi_block) = match format {
            EventFormat::V5 => (event5::GLOBAL_ID_LOW, event5::RUN_NUMBER, Some(event5::LUMI_BLOCK)),
            EventFormat::V4 => (event4::GLOBAL_ID, event4::RUN_NUMBER, Some(event4::LUMI_BLOCK)),
            EventFormat::V3 => (event3::GLOBAL_ID, event3::RUN_NUMBER, None),
        };
        Self { global_id, run_number, lumi_block }
    }
}

impl FileFacts {
    /// What a file says of its events.
    pub fn of(run: &RunParameters, metadata: Option<&crate::Metadata>) -> Self {
        let lumi_block = metadata.and_then(|metadata| metadata.value("LumiBlock")?.parse().ok());
        Self { run_number: Some(run.run_number), lumi_block: lumi_block.filter(|block| *block != 0), ids: Ids::Unknown }
    }
}

/// A ROD keeps 31 bits of the run number (note §5).
const RUN_NUMBER_MASK: u32 = 0x7fff_ffff;
/// In the specific header of a ROS fragment (note §2a).
const ROS_RUN_NUMBER: usize = 0;
const BCID_MASK: u32 = 0xfff;
const TRIGGER_TYPE_MASK: u32 = 0xff;
/// Ranges of event ids that are remembered, some 30 bytes each.
const RANGES_MAX: usize = 1 << 24;
