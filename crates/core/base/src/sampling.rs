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
    /// By the rule of the partition.
    control: Share,
    /// By the rule of whoever watches at this host.
    here: Share,
    /// Whether either of them has asked.
    is_asked: bool,
    /// Chosen, and shown.
    pub given: u64,
    /// Chosen, and not shown: nobody had asked for more, or they were too large.
    pub lost: u64,
}

/// What one of those who watch is shown.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// None where this stage shows nothing.
    rule: Option<SamplingRule>,
    /// What viewers still wait for; none before the first of them asks.
    room: Option<Room>,
}

#[derive(Clone, Copy, Debug)]
struct Room {
    samples: u32,
    bytes: usize,
}

/// Who is shown an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Viewers {
    /// Run control.
    pub control: bool,
    /// Whoever watches at this host.
    pub here: bool,
}

impl Viewers {
    /// Whether there are any.
    pub fn any(self) -> bool {
        self.control || self.here
    }
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
    /// Nobody has asked yet. Run control may ask for events by this rule.
    pub fn new(rule: Option<SamplingRule>) -> Self {
        Self { control: Share { rule, room: None }, here: Share::default(), is_asked: false, given: 0, lost: 0 }
    }

    /// Run control asks for samples. Its earlier questions count no more.
    pub fn ask(&mut self) {
        self.control.ask();
        self.note_asked();
    }

    /// Somebody at this host asks for samples by a rule of his own, or for none any more.
    pub fn watch(&mut self, rule: Option<SamplingRule>) {
        self.here = Share { rule, room: None };
        self.here.ask();
        self.note_asked();
    }

    fn note_asked(&mut self) {
        self.is_asked = self.control.room.is_some() || self.here.room.is_some();
    }

    /// Whether anybody watches.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.is_asked
    }

    /// Whether somebody watches by a rule that chooses such an event.
    #[inline]
    pub fn chooses(&self, event: EventId, trigger_type: u8, items: u32) -> bool {
        let by = |share: &Share| share.chooses(event, trigger_type, items);
        self.is_asked && (by(&self.control) || by(&self.here))
    }

    /// Names the viewers that get such an event of that length now, and counts it as shown.
    #[inline]
    pub fn takes(&mut self, event: EventId, trigger_type: u8, items: u32, len_bytes: usize) -> Viewers {
        if self.is_asked { self.take(event, trigger_type, items, len_bytes) } else { Viewers::default() }
    }

    fn take(&mut self, event: EventId, trigger_type: u8, items: u32, len_bytes: usize) -> Viewers {
        let Self { control, here, given, lost, .. } = self;
        let mut take = |share: &mut Share| {
            let fits = share.chooses(event, trigger_type, items).then(|| share.take(len_bytes));
            *given += u64::from(fits == Some(true));
            *lost += u64::from(fits == Some(false));
            fits == Some(true)
        };
        Viewers { control: take(control), here: take(here) }
    }
}

impl Share {
    fn ask(&mut self) {
        self.room = self.rule.map(|rule| Room { samples: rule.samples, bytes: rule.bytes });
    }

    fn chooses(&self, event: EventId, trigger_type: u8, items: u32) -> bool {
        self.room.is_some() && self.rule.is_some_and(|rule| rule.chooses(event, trigger_type, items))
    }

    /// Whether so many bytes still fit; then their room is taken.
    fn take(&mut self, len_bytes: usize) -> bool {
        let room = self.room.as_mut().filter(|room| room.samples > 0 && len_bytes <= room.bytes);
        room.is_some_and(|room| {
            room.samples -= 1;
            room.bytes -= len_bytes;
            true
        })
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
        let give = |sampler: &mut Sampler, len| {
            (0..5).filter(|&number| sampler.takes(EventId(number), 0, 0, len).control).count()
        };
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

    #[test]
    fn whoever_watches_at_a_host_has_a_rule_and_room_of_his_own() {
        let mut sampler = Sampler::new(Some(RULE));
        sampler.ask();
        let of_type = SamplingRule { trigger_types: [0, 1 << 3, 0, 0], samples: 1, ..RULE };
        sampler.watch(Some(of_type));
        let mut take = |trigger_type| sampler.takes(EventId(1), trigger_type, 0, 1);
        assert_eq!(take(0), Viewers { control: true, here: false });
        assert_eq!(take(67), Viewers { control: true, here: true });
        assert_eq!(take(67), Viewers { control: true, here: false }, "he has asked for one");
        assert_eq!((sampler.given, sampler.lost), (4, 1));
        sampler.watch(None);
        assert!(!sampler.takes(EventId(1), 67, 0, 1).here);
        let mut silent = Sampler::new(None);
        silent.watch(Some(of_type));
        assert_eq!(silent.takes(EventId(1), 67, 0, 1), Viewers { control: false, here: true });
    }
}
