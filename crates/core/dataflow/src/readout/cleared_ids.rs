//! Events that were cleared, as long as a fragment of theirs may come.

use alloc::collections::VecDeque;

use base::ids::EventId;

/// A bounded set of event numbers: the events that a read-out system was told to forget. A fragment of theirs that comes late,
/// or again, is dropped.
///
/// Events are cleared in about their order, so most of them share a word with those before. Each has a bit in the last word,
/// which is looked at first. Any other order is possible, with a binary search and 16 bytes for each event.
#[derive(Debug)]
pub struct ClearedIds {
    /// By rising number, without empty ones.
    words: VecDeque<Word>,
    len: usize,
    capacity: usize,
}

/// Neighbouring events.
#[derive(Clone, Copy, Debug)]
struct Word {
    /// Of the word: it begins with the event of [`BITS`] times this number.
    number: u64,
    events: u64,
}

impl ClearedIds {
    /// An empty set for at most `capacity` events.
    pub fn new(capacity: usize) -> Self {
        Self { words: VecDeque::new(), len: 0, capacity }
    }

    /// Remembers that an event was cleared, unless the set is full. Then a late fragment of it stays until it is older than the
    /// oldest valid event.
    pub fn insert(&mut self, id: EventId) {
        if self.len == self.capacity {
            return;
        }
        let (number, bit) = place_of(id);
        let place = self.place(number).unwrap_or_else(|place| {
            self.words.insert(place, Word { number, events: 0 });
            place
        });
        let word = &mut self.words[place];
        self.len += usize::from(word.events & bit == 0);
        word.events |= bit;
    }

    /// Whether an event is in the set.
    pub fn contains(&self, id: EventId) -> bool {
        let (number, bit) = place_of(id);
        self.place(number).is_ok_and(|place| self.words[place].events & bit != 0)
    }

    /// Forgets all events below `oldest_valid`, since their fragments are dropped for their age.
    pub fn prune_older_than(&mut self, oldest_valid: EventId) {
        let (number, bit) = place_of(oldest_valid);
        while let Some(word) = self.words.front_mut().filter(|word| word.number <= number) {
            let kept = if word.number == number { word.events & !(bit - 1) } else { 0 };
            self.len -= (word.events ^ kept).count_ones() as usize;
            word.events = kept;
            if kept != 0 {
                return;
            }
            self.words.pop_front();
        }
    }

    /// Checks internal consistency.
    ///
    /// # Panics
    /// If there is none.
    pub fn check(&self) {
        assert!(self.words.iter().is_sorted_by(|first, second| first.number < second.number), "words in order");
        assert!(self.words.iter().all(|word| word.events != 0), "no empty words");
        let len: usize = self.words.iter().map(|word| word.events.count_ones() as usize).sum();
        assert_eq!(len, self.len, "events in words");
        assert!(len <= self.capacity, "a bounded set");
    }

    /// Where a word is, or would be.
    #[inline]
    fn place(&self, number: u64) -> Result<usize, usize> {
        match self.words.back() {
            Some(last) if last.number == number => Ok(self.words.len() - 1),
            Some(last) if last.number > number => self.search(number),
            _ => Err(self.words.len()),
        }
    }

    // Apart, since fragments are mostly newer than all that is cleared.
    #[inline(never)]
    fn search(&self, number: u64) -> Result<usize, usize> {
        self.words.binary_search_by_key(&number, |word| word.number)
    }
}

/// The number of an event's word, and its bit.
fn place_of(id: EventId) -> (u64, u64) {
    (id.0 / BITS, 1 << (id.0 % BITS))
}

const BITS: u64 = u64::BITS as u64;
