//! The bare machine for `weir bench sources`: how much dearer memory gets that is spread over many sources.
//!
//! One loop writes, checks and lets go of the same bytes as the system does. For each event and source these are
//! the header and trailer of a fragment in a page, and a handle on it that two have. Sources are visited one by
//! one, each for all events in hand, in an order that is not that of memory. The builder takes in what some sources
//! have given. Nothing else is kept of a source.

use base::random::Random;
use nix::sys::resource::UsageWho;
use transport::clock;

use partition::cpu::cpu_seconds;

/// What is moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) sources: u32,
    /// In hand at the same time.
    pub(super) events: u32,
    /// Over all events and sources.
    pub(super) fragments: u64,
    pub(super) page_bytes: usize,
    /// From the beginning of a page to the end of its trailer.
    pub(super) fragment_bytes: usize,
}

/// What an event of one source takes.
pub(super) struct Each {
    pub(super) seconds: f64,
    /// Processor time.
    pub(super) cpu_seconds: f64,
}

/// Measures.
pub(super) fn run(spread: &Spread) -> Each {
    let mut memory = Memory::new(spread);
    let in_hand = u64::from(spread.sources) * u64::from(spread.events);
    let rounds = (spread.fragments / in_hand).max(1);
    // Memory is touched first in a round that does not count.
    memory.round(0);
    let (before, began) = (cpu_seconds(UsageWho::RUSAGE_SELF), clock::now());
    (1..=rounds).for_each(|round| memory.round(round as u32));
    let cpu_seconds = cpu_seconds(UsageWho::RUSAGE_SELF) - before;
    let seconds = clock::now().since(began).as_secs_f64();
    let fragments = (rounds * in_hand) as f64;
    Each { seconds: seconds / fragments, cpu_seconds: cpu_seconds / fragments }
}

struct Memory {
    spread: Spread,
    pages: Vec<u8>,
    handles: Vec<Handle>,
    /// Sources, in the order in which they are visited.
    order: Vec<u32>,
    /// By event: what the builder has.
    built: Vec<Vec<SliceEntry>>,
}

/// As long as the header of a page.
#[derive(Clone, Copy, Default)]
#[repr(align(16))]
struct Handle {
    holders: u32,
    len_bytes: u32,
}

/// As long as a slice in a list of bulk.
struct SliceEntry {
    handle: usize,
    _start: usize,
    _len_bytes: usize,
    _kind: usize,
}

impl Memory {
    fn new(spread: &Spread) -> Self {
        let Spread { sources, events, page_bytes, .. } = *spread;
        let mut order: Vec<u32> = (0..sources).collect();
        Random::new(1).shuffle(&mut order);
        let in_hand = sources as usize * events as usize;
        Self {
            spread: *spread,
            pages: vec![0; in_hand * page_bytes],
            handles: vec![Handle::default(); in_hand],
            order,
            built: (0..events).map(|_| Vec::with_capacity(sources as usize)).collect(),
        }
    }

    fn round(&mut self, round: u32) {
        for first in (0..self.order.len()).step_by(TAKEN_TOGETHER) {
            let last = (first + TAKEN_TOGETHER).min(self.order.len());
            (first..last).for_each(|place| self.read_out(self.order[place], round));
            (first..last).for_each(|place| self.take(self.order[place], round));
        }
        for event in &mut self.built {
            event.drain(..).for_each(|part| self.handles[part.handle].holders -= 1);
        }
        for &source in &self.order {
            let all = first_of(&self.spread, source)..first_of(&self.spread, source + 1);
            for handle in &mut self.handles[all] {
                handle.holders -= 1;
                assert_eq!(handle.holders, 0, "only the source has it still");
            }
        }
    }

    fn read_out(&mut self, source: u32, round: u32) {
        let Spread { events, page_bytes, fragment_bytes, .. } = self.spread;
        for index in first_of(&self.spread, source)..first_of(&self.spread, source) + events as usize {
            let fragment = &mut self.pages[index * page_bytes..][..fragment_bytes];
            let (header, rest) = fragment.split_at_mut(HEADER_BYTES);
            let trailer = rest.len() - TRAILER_BYTES;
            for words in [header, &mut rest[trailer..]] {
                words.as_chunks_mut().0.iter_mut().for_each(|word| *word = (source ^ round).to_le_bytes());
            }
            self.handles[index] = Handle { holders: 2, len_bytes: fragment_bytes as u32 };
        }
    }

    fn take(&mut self, source: u32, round: u32) {
        let first = first_of(&self.spread, source);
        for (place, event) in self.built.iter_mut().enumerate() {
            let (page, len_bytes) = (first + place, self.handles[first + place].len_bytes as usize);
            let fragment = &self.pages[page * self.spread.page_bytes..][..len_bytes];
            let words = fragment[..HEADER_BYTES].as_chunks().0.iter().chain(fragment[len_bytes - 4..].as_chunks().0);
            let sound = words.fold(true, |sound, word| sound & (u32::from_le_bytes(*word) == source ^ round));
            assert!(sound, "a fragment is as it was written");
            event.push(SliceEntry { handle: page, _start: page, _len_bytes: len_bytes, _kind: 0 });
        }
    }
}

fn first_of(spread: &Spread, source: u32) -> usize {
    source as usize * spread.events as usize
}

/// Of a fragment: ROB and ROD header.
const HEADER_BYTES: usize = 68;
const TRAILER_BYTES: usize = 12;
/// Sources between two turns of the builder.
const TAKEN_TOGETHER: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_nothing_in_hand() {
        let spread = Spread { sources: 20, events: 3, fragments: 600, page_bytes: 256, fragment_bytes: 144 };
        let mut memory = Memory::new(&spread);
        (0..3).for_each(|round| memory.round(round));
        assert!(memory.handles.iter().all(|handle| handle.holders == 0));
        assert!(memory.built.iter().all(Vec::is_empty));
    }
}
