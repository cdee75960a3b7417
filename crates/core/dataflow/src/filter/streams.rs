//! Which streams an accepted event is recorded in.

use alloc::vec::Vec;

use base::ids::EventId;
use base::random::hash_of_event;

/// When a stream takes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRule {
    /// Takes events that one of these chains accepted. A stream without chains takes every accepted event, unless it is
    /// `by_name`.
    pub chains: u64,
    /// Takes only events for which the algorithm asks for it by name.
    pub by_name: bool,
    /// Of the events that it would take, one in so many: at least 1. A function of the event, so that who decides does
    /// not matter.
    pub prescale: u64,
}

/// The streams among `rules` that take an accepted event, one bit each.
///
/// These are the ones that its algorithm named (`asked`), else those of the chains that accepted it and those without
/// chains. If no chain accounts for it (a time-out of level 2, an override, a filter without chains), it is the first. Of
/// each the prescale takes its part. An event whose chains are in no stream has none.
pub fn streams_of(rules: &[StreamRule], event: EventId, asked: u32, passed: u64) -> u32 {
    let by_chain = |rule: &StreamRule| if rule.chains == 0 { !rule.by_name } else { rule.chains & passed != 0 };
    let bits = |takes: &dyn Fn(usize, &StreamRule) -> bool| {
        let taking = rules.iter().enumerate().filter(|(index, rule)| takes(*index, rule));
        taking.fold(0, |bits, (index, _)| bits | 1 << index)
    };
    let wanted = match (asked, bits(&|_, rule| by_chain(rule))) {
        (0, 0) if passed == 0 => 1,
        (0, of_chains) => of_chains,
        (asked, _) => asked,
    };
    bits(&|index, rule| wanted >> index & 1 == 1 && keeps(event, index, rule.prescale))
}

fn keeps(event: EventId, stream: usize, prescale: u64) -> bool {
    prescale <= 1 || hash_of_event(EventId(event.0 ^ (stream as u64 + 1) << 56)).is_multiple_of(prescale)
}

/// A single stream that takes everything.
pub fn one_stream() -> Vec<StreamRule> {
    [StreamRule { chains: 0, by_name: false, prescale: 1 }].into()
}
