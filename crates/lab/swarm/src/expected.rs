//! What is to become of each event by the plan alone, written anew: the selection of the product is under test, and so not asked.

use base::ids::EventId;
use dataflow::filter::policy::FilterPolicy;
use dataflow::filter::streams::StreamRule;
use dataflow::level2::overrides::Override;
use dataflow::level2::steering::Strategy;

use super::plan::Plan;

/// What is to become of an event that nothing is lost of, and that no time-out forces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// Level 2 rejects it.
    RejectedByLevel2,
    /// The event filter rejects it, or prescales leave it out of all streams.
    Filtered,
    /// It is recorded in these streams, one bit each; in none of them, but in the debug stream, if a filter has failed.
    Recorded(u32),
}

/// An event and its place in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) event: EventId,
    pub(super) ordinal: u64,
}

impl Plan {
    /// What is to become of an event.
    pub(super) fn expected(&self, numbered: Numbered) -> Expected {
        if self.is_accepted(numbered) { self.expected_of_filter(numbered) } else { Expected::RejectedByLevel2 }
    }

    /// The same, if level 2 accepts it.
    pub(super) fn expected_of_filter(&self, numbered: Numbered) -> Expected {
        let Numbered { event: EventId(event), ordinal } = numbered;
        if self.filter.has_tasks && mixed(event).is_multiple_of(17) {
            return Expected::Recorded(0);
        }
        let passes = match self.filter.policy {
            FilterPolicy::AcceptAll => true,
            FilterPolicy::Prescale { factor } => ordinal.is_multiple_of(factor),
            FilterPolicy::Random { accept, seed } => lot(event, seed) < accept,
        };
        match self.streams_expected(event) {
            0 => Expected::Filtered,
            _ if !passes => Expected::Filtered,
            streams => Expected::Recorded(streams),
        }
    }

    /// Whether level 2 lets it pass.
    pub(super) fn is_accepted(&self, numbered: Numbered) -> bool {
        if !self.has_level2() {
            return true;
        }
        // Sources and processors say nothing of items, but for the one that does nothing amiss.
        let item = if self.has_numbers_of_its_own() { 0 } else { 1_u32 << (numbered.ordinal % 7) };
        match self.level2.overrides.all {
            Override::ForceAccept => return true,
            Override::ForceReject => return false,
            Override::None => {}
        }
        if self.level2.overrides.veto_items & item != 0 {
            return false;
        }
        self.is_recommended(numbered.event) || self.level2.overrides.force_accept_items & item != 0
    }

    /// Whether the steering of level 2 accepts it: whether a lot of each step is small enough, of which the first only asks for data.
    pub(super) fn is_recommended(&self, EventId(event): EventId) -> bool {
        let drawn = |step: u64| lot(event, self.seed ^ step);
        match (self.level2.sink, self.level2.strategy) {
            (Some(fraction), _) => lot(event, 0) < fraction,
            (None, Strategy::None { accept }) => drawn(0) < accept,
            (None, Strategy::Generate { accept, .. }) => drawn(1) < accept,
            (None, Strategy::TwoStep { step_accept, .. }) => drawn(1).max(drawn(2)) < step_accept,
        }
    }

    /// What a processing task says of an event: the streams that it asks for by name, and the chains that have accepted it.
    pub(super) fn said_of(&self, EventId(event): EventId) -> (u32, u64) {
        if self.recording.streams.len() == 1 {
            return (0, 0);
        }
        let said = mixed(event) >> 8;
        let named = if said.is_multiple_of(3) { (said >> 4) as u32 % (1 << self.recording.streams.len()) } else { 0 };
        (named, said >> 16 & 0b11)
    }

    fn streams_expected(&self, event: u64) -> u32 {
        let (named, passed) = if self.filter.has_tasks { self.said_of(EventId(event)) } else { (0, 0) };
        let is_of_chain = |rule: &StreamRule| if rule.chains == 0 { !rule.by_name } else { rule.chains & passed != 0 };
        let nobody_says = named == 0 && passed == 0 && !self.recording.streams.iter().any(is_of_chain);
        let mut streams = 0;
        for (place, rule) in self.recording.streams.iter().enumerate() {
            let is_wanted = match named {
                0 => is_of_chain(rule) || (nobody_says && place == 0),
                named => named & 1 << place != 0,
            };
            let own = event ^ ((place as u64 + 1) << 56);
            if is_wanted && (rule.prescale <= 1 || mixed(own).is_multiple_of(rule.prescale)) {
                streams |= 1 << place;
            }
        }
        streams
    }
}

/// A number in [0, 1) that is the event's own: its hash with that of the seed.
fn lot(event: u64, seed: u64) -> f64 {
    (mixed(event ^ mixed(seed)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// The finalizer of `SplitMix64` (Steele, Lea, Flood 2014).
pub(super) fn mixed(value: u64) -> u64 {
    let (first, second) = (0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb_u64);
    let once = (value >> 30 ^ value).wrapping_mul(first);
    let twice = (once >> 27 ^ once).wrapping_mul(second);
    twice >> 31 ^ twice
}
