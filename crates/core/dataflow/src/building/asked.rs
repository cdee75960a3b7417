//! What sources were asked for, of all events that a builder holds.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use base::time::Time;

/// What one source was asked for. There is one for each source of each event held: a quarter of a cache line.
#[derive(Clone, Copy, Default)]
pub(super) struct Asked {
    pub(super) sent: Time,
    /// How often it was asked.
    pub(super) serial: u16,
    /// Replies to tries from this one on are to what is still missing; an earlier one could bring a fragment twice.
    pub(super) valid_from: u16,
    /// Whether an answer is awaited.
    pub(super) awaited: bool,
    /// Whether its data will come unasked.
    pub(super) unpushed: bool,
}

impl Asked {
    /// Whether the answer to this try is awaited.
    #[inline]
    pub(super) fn awaits(&self, request: u32) -> bool {
        self.awaited && (u32::from(self.valid_from)..=u32::from(self.serial)).contains(&request)
    }
}

/// What the sources were asked for, by event and source; events have numbers that are used again.
///
/// Sources are asked, and answer, for several events at a time and in any order: what concerns one source lies together for
/// [`EVENTS`] events. By event it would be in as many cache lines as there are events. With thousands of sources none of them
/// would still be in the cache.
pub(super) struct AskedTable {
    sources: usize,
    /// By event, then by source.
    blocks: Vec<Box<[[Asked; EVENTS]]>>,
}

impl AskedTable {
    /// No event has a place yet.
    pub(super) fn new(sources: usize) -> Self {
        Self { sources, blocks: Vec::new() }
    }

    /// This event has a place from now on. Nothing is expected of any source: so [`AskedTable::forget`] leaves a place, and so do
    /// sources that have all answered.
    pub(super) fn begin(&mut self, event: usize) {
        while self.blocks.len() <= event / EVENTS {
            self.blocks.push(vec![[Asked::default(); EVENTS]; self.sources].into_boxed_slice());
        }
    }

    /// Nothing is expected for this event any more.
    pub(super) fn forget(&mut self, event: usize) {
        self.blocks[event / EVENTS].iter_mut().for_each(|source| source[event % EVENTS] = Asked::default());
    }

    #[inline]
    pub(super) fn at(&self, event: usize, source: usize) -> &Asked {
        &self.blocks[event / EVENTS][source][event % EVENTS]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, event: usize, source: usize) -> &mut Asked {
        &mut self.blocks[event / EVENTS][source][event % EVENTS]
    }

    /// What all sources were asked for of one event, in order.
    pub(super) fn of(&self, event: usize) -> impl Iterator<Item = &Asked> {
        self.blocks[event / EVENTS].iter().map(move |source| &source[event % EVENTS])
    }
}

/// Four cache lines for each source.
const EVENTS: usize = 16;
