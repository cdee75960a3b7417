//! Level-2 steering: an event's chains step by step, each step asking for the fragments that it needs.

use std::sync::Arc;

use base::bulk::PageSlice;
use dataflow::message::Roi;

use crate::feature::Feature;
use crate::in_hand::InHand;
use crate::menu::{Menu, Selection};
use crate::payload::BadPayload;
use crate::result::Decision;
use crate::sequence::{Level, Sequences, bits};

/// The level-2 selection of one event in flight; reused for the next.
///
/// [`Steering::begin`], then [`Steering::step`] with nothing, then with the answer to each [`Next::Ask`] until
/// [`Next::Decided`]. What was asked for and is not in the answer counts as missing, and has no records.
#[derive(Debug)]
pub struct Steering {
    menu: Arc<Menu>,
    sequences: Sequences,
    in_hand: InHand,
    items: u32,
    input: u64,
    passed_through: u64,
    requests: u32,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Get the data of these ROBs: rising, each at most once in an event.
    Ask(Vec<u32>),
    /// The event is decided.
    Decided(Decision),
}

impl Steering {
    /// A context for events of this menu.
    #[must_use]
    pub fn new(menu: Arc<Menu>) -> Self {
        Self {
            menu,
            sequences: Sequences::default(),
            in_hand: InHand::default(),
            items: 0,
            input: 0,
            passed_through: 0,
            requests: 0,
        }
    }

    /// Begins an event with the level-1 items that fired, after prescale, and its regions of interest. The steering
    /// lets go of the event before.
    pub fn begin(&mut self, event: u64, items: u32, rois: &[Roi]) {
        self.items = items;
        self.input = self.menu.input(event, items);
        self.passed_through = self.menu.passed_through(event, self.input);
        self.requests = 0;
        self.in_hand.clear();
        self.sequences.begin(&self.menu, Level::Level2, self.input, rois);
    }

    /// Goes on with source identifiers and ROD payloads that were asked for; others are not looked at.
    ///
    /// All sequences take a step together. One that needs nothing new asks for nothing.
    pub fn step(&mut self, fragments: &mut dyn Iterator<Item = (u32, PageSlice)>) -> Next {
        for (source_id, payload) in fragments {
            self.in_hand.put(self.menu.detector(), source_id, &payload);
        }
        while !self.sequences.are_decided() {
            let mut wanted = Vec::with_capacity(WANTED_AT_ONCE);
            self.sequences.wanted(&self.menu, &mut wanted);
            self.in_hand.ask(&mut wanted);
            if !wanted.is_empty() {
                self.requests += 1;
                return Next::Ask(wanted);
            }
            self.sequences.advance(&self.menu, &self.in_hand);
        }
        Next::Decided(self.decision())
    }

    /// What was found, in order of chain, then region of interest.
    pub fn features(&self) -> impl Iterator<Item = Feature> + '_ {
        self.sequences.features()
    }

    /// The payloads of this event that were taken as ones without records, by source identifier.
    #[must_use]
    pub fn problems(&self) -> &[(u32, BadPayload)] {
        &self.in_hand.problems
    }

    /// The menu.
    #[must_use]
    pub fn menu(&self) -> &Menu {
        &self.menu
    }

    fn decision(&self) -> Decision {
        // Missing energy is known after building only; level 1 alone has looked at all of the calorimeter so far.
        let takes_level1 = |chain: &usize| !matches!(self.menu.chain(*chain).selection, Selection::Rois(_));
        let level1 = bits(self.input).filter(takes_level1).fold(0, |set, chain| set | 1 << chain);
        Decision {
            items: self.items,
            input: self.input,
            passed: self.sequences.passed(&self.menu, self.input) | level1 | self.passed_through,
            passed_through: self.passed_through,
            requested_robs: self.in_hand.asked(),
            requested_payload_bytes: self.in_hand.payload_bytes,
            steps: self.requests,
            missing_robs: self.in_hand.missing(),
            bad_payloads: self.in_hand.problems.len() as u32,
        }
    }
}

/// Most steps need no more.
const WANTED_AT_ONCE: usize = 32;
