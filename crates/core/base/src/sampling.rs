//! Events that are shown to those who watch a run, without slowing it. A stage gives run control copies of some of its events, as
//! many as that has asked for and no more.
//!
//! Which events may be shown is a function of the event alone, so every stage chooses the same ones. What is chosen when nobody has
//! asked for more is lost as a sample, and counted; the event itself goes on as ever.

use crate::ids::EventId;
use crate::random::hash_of_event;

/// Which events a stage may show, and how many at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplingRule {
    /// The level-1 trigger types, one bit each; with none of them set it is all.
    pub trigger_types: [u64; 4],
    /// An event needs one of these level-1 items; with none of them set, no item.
    pub items: u32,
    /// Of these events, one in so many, at least 1.
    pub prescale: u64,
    /// Samples that run control is given each time it asks, at most.
    pub samples: u32,
    /// Their bytes, at most: a larger event is never shown.
    pub bytes: usize,
}

/// The samples of one application.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// None where this stage shows nothing.
    rule: Option<SamplingRule>,
    /// What run control has asked for and was not given; none before it has asked for the first time.
    room: Option<Room>,
    /// Chosen, and shown.
    pub given: u64,
    /// Chosen, and not shown: run control had not asked for more, or they were too large.
    pub lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct Room {
    samples: u32,
    bytes: usize,
}

impl SamplingRule {
    /// Whether an event of that trigger type and with these level-1 items may be shown.
    pub fn chooses(&self, event: EventId, trigger_type: u8, items: u32) -> bool {
        let (word, bit) = (usize::from(trigger_type / 64), trigger_type % 64);
        let is_of_type = self.trigger_types == [0; 4] || self.trigger_types[word] >> bit & 1 == 1;
        let has_item = self.items == 0 || self.items & items != 0;
        // Streams and recorders choose by other hashes, so that this choice is independent of theirs.
        let in_turn = || hash_of_event(EventId(event.0 ^ SALT)).is_multiple_of(self.prescale.max(1));
        is_of_type && has_item && in_turn()
    }
}

impl Sampler {
    /// Nobody has asked yet.
    pub fn new(rule: Option<SamplingRule>) -> Self {
        Self { rule, room: None, given: 0, lost: 0 }
    }

    /// Run control asks for samples. Its earlier questions count no more.
    pub fn ask(&mut self) {
        self.room = self.rule.map(|rule| Room { samples: rule.samples, bytes: rule.bytes });
    }

    /// Whether run control watches, and the rule chooses such an event.
    pub fn chooses(&self, event: EventId, trigger_type: u8, items: u32) -> bool {
        self.room.is_some() && self.rule.is_some_and(|rule| rule.chooses(event, trigger_type, items))
    }

    /// Whether such an event of that length is to be shown now; if so, it is counted as shown.
    #[inline]
    pub fn takes(&mut self, event: EventId, trigger_type: u8, items: u32, len_bytes: usize) -> bool {
        match (&self.rule, &mut self.room) {
            (Some(rule), Some(room)) if rule.chooses(event, trigger_type, items) => {
                let fits = room.samples > 0 && len_bytes <= room.bytes;
                if fits {
                    room.samples -= 1;
                    room.bytes -= len_bytes;
                }
                *(if fits { &mut self.given } else { &mut self.lost }) += 1;
                fits
            }
            _ => false,
        }
    }
}

/// "sample", beyond the numbers of events of a run.
const SALT: u64 = 0x7361_6d70_6c65_0000;

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: SamplingRule = SamplingRule { trigger_types: [0; 4], items: 0, prescale: 1, samples: 3, bytes: 100 };

    #[test]
    fn a_prescale_takes_its_share_and_the_same_events_everywhere() {
        let rule = SamplingRule { prescale: 10, ..RULE };
        let chosen: alloc::vec::Vec<u64> = (0..100_000).filter(|&number| rule.chooses(EventId(number), 0, 0)).collect();
        assert!((9_600..10_400).contains(&chosen.len()), "{}", chosen.len());
        // Also of those that another prescale by number has left.
        let left = chosen.iter().filter(|number| *number % 10 == 3).count();
        assert!((900..1_100).contains(&left), "{left}");
    }

    #[test]
    fn types_and_items_choose() {
        let rule = SamplingRule { trigger_types: [0, 1 << 3, 0, 1 << 63], items: 0b110, ..RULE };
        let chooses = |trigger_type, items| rule.chooses(EventId(1), trigger_type, items);
        assert!(chooses(67, 0b010) && chooses(255, 0b111));
        assert!(!chooses(3, 0b010) && !chooses(67, 0b001));
    }

    #[test]
    fn nothing_is_given_that_was_not_asked_for() {
        let mut sampler = Sampler::new(Some(RULE));
        let give =
            |sampler: &mut Sampler, len| (0..5).filter(|&number| sampler.takes(EventId(number), 0, 0, len)).count();
        assert_eq!((give(&mut sampler, 1), sampler.given, sampler.lost), (0, 0, 0), "nobody watches");
        sampler.ask();
        assert_eq!((give(&mut sampler, 1), sampler.given, sampler.lost), (3, 3, 2));
        assert_eq!((give(&mut sampler, 1), sampler.given, sampler.lost), (0, 3, 7), "and none more");
        sampler.ask();
        sampler.ask();
        assert_eq!(give(&mut sampler, 50), 2, "by their bytes");
        sampler.ask();
        assert_eq!(give(&mut sampler, 101), 0);
        let mut silent = Sampler::new(None);
        silent.ask();
        assert_eq!((give(&mut silent, 1), silent.given, silent.lost), (0, 0, 0));
    }
}
