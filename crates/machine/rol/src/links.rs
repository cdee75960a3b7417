//! All links of one read-out system.

use std::sync::Arc;

use base::bulk::{Bulk, PageSlice};
use base::ids::EventId;
use dataflow::message::EventInfo;
use dataflow::readout::fragment::{FragmentHead, Unplaced};
use eformat::{LOST_ROB_BYTES, WORD_BYTES};
use transport::page_pool::{Page, Pool, PoolOptions};
use transport::waker::Waker;

use crate::emulator::{Emulation, Emulator};
use crate::fragments::{Fragments, Wanted};
use crate::parameters::{LinkParameters, LinksError, ReadOutError};
use crate::replay::{Replay, ReplayLinks};
use crate::sample::{SampleInput, SampleLinks};

/// The read-out links of one read-out system.
///
/// A fragment is written once, to a page of a pool that these links alone take from. The page comes back when the
/// fragment's last slice is dropped. Apart from the handle of the slice, emulator and sample allocate nothing per
/// fragment.
pub struct Links {
    fragments: Fragments,
    input: Input,
    pool: Pool,
    /// Pages for the next event. While there are too few the pool stays empty, so that a page that returns wakes.
    reserved: Vec<Page>,
    counters: LinkCounters,
}

/// What the links did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Events read out.
    pub events: u64,
    /// Fragments delivered.
    pub fragments: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
    /// Fragments with a status bit set.
    pub flagged: u64,
    /// How often an event was refused because pages were missing.
    pub no_page: u64,
}

enum Input {
    Emulator(Emulator),
    Sample(SampleLinks),
    Replay(ReplayLinks),
}

impl Links {
    /// Emulated links.
    ///
    /// # Errors
    /// Impossible pages or too many links.
    pub fn emulator(parameters: LinkParameters, emulation: &Emulation) -> Result<Self, LinksError> {
        let emulator = Emulator::new(&parameters, emulation);
        let links = Self::new(parameters, Input::Emulator(emulator))?;
        Emulator::prepare(&links.pool);
        Ok(links)
    }

    /// Links that send the fragments of a sample.
    ///
    /// # Errors
    /// Impossible pages, too many links, a link that is not in the sample, or pages too short for padded fragments.
    pub fn sample(parameters: LinkParameters, input: SampleInput) -> Result<Self, LinksError> {
        let padded = input.pad_bytes();
        if padded > 0 {
            let needed = padded.saturating_add(Fragments::new(&parameters).overhead_bytes());
            parameters.check_page("a fragment of input.pad_to", needed)?;
        }
        let links = SampleLinks::new(&parameters, input)?;
        Self::new(parameters, Input::Sample(links))
    }

    /// Links that send the fragments of recorded events. With `repeat` they begin again after the last event.
    ///
    /// # Errors
    /// Impossible pages, too many links, a link that is not in the files, or pages that are shorter than the longest
    /// fragment. A cut ROD could not be put together again.
    pub fn replay(parameters: LinkParameters, replay: Arc<Replay>, repeat: bool) -> Result<Self, LinksError> {
        let links = ReplayLinks::new(&parameters, replay, repeat)?;
        let longest = links.longest_fragment(&Fragments::new(&parameters));
        parameters.check_page("the longest fragment of the files", longest)?;
        Self::new(parameters, Input::Replay(links))
    }

    fn new(parameters: LinkParameters, input: Input) -> Result<Self, LinksError> {
        let links = parameters.source_ids.len();
        if links > usize::from(u16::MAX) + 1 {
            return Err(LinksError::TooMany { links });
        }
        parameters.check_page("an empty fragment", LOST_ROB_BYTES + WORD_BYTES)?;
        let fragments = Fragments::new(&parameters);
        let options = PoolOptions {
            name: parameters.name,
            page_len: parameters.page_bytes,
            pages: parameters.pages,
            prefault: false,
        };
        let pool = if parameters.shared { Pool::shared(&options)? } else { Pool::new(&options)? };
        let counters = LinkCounters::default();
        Ok(Self { fragments, input, pool, reserved: Vec::with_capacity(links), counters })
    }

    /// Source identifiers, by number of the link.
    pub fn source_ids(&self) -> &[u32] {
        self.fragments.source_ids()
    }

    /// Makes the fragment of this event on every link and hands each over: number of the link, checked head, bytes.
    ///
    /// # Errors
    /// Nothing was delivered; see [`ReadOutError`].
    ///
    /// # Panics
    /// Never: a page was reserved for each link.
    pub fn read_out(
        &mut self,
        event: &EventInfo,
        deliver: &mut dyn FnMut(u16, FragmentHead, Bulk),
    ) -> Result<(), ReadOutError> {
        self.reserve_pages(event.event)?;
        self.input.prepare(event)?;
        for link in 0..self.source_ids().len() {
            let page = self.reserved.pop().expect("a page was reserved for each link");
            let wanted = Wanted { link, event, problems: 0 };
            let made = self.input.fragment(&mut self.fragments, page, wanted);
            // All links see the same ids, so it is the first that refuses, before anything is delivered.
            let (head, slice) = made.map_err(|unplaced| ReadOutError::Unplaced { event: event.event, unplaced })?;
            self.counters.count(&head);
            deliver(link as u16, head, Bulk::Pages(slice));
        }
        self.counters.events += 1;
        Ok(())
    }

    fn reserve_pages(&mut self, event: EventId) -> Result<(), ReadOutError> {
        let needed = self.source_ids().len();
        if self.reserved.len() < needed {
            let ahead = (PAGES_AHEAD_BYTES / self.pool.page_len()).clamp(PAGES_AHEAD_MIN, PAGES_AHEAD_MAX);
            let missing = needed - self.reserved.len();
            let taken = self.pool.take_some(missing + ahead, &mut self.reserved);
            if taken < missing {
                // Counts the refusal, and the page that returns next wakes.
                self.reserved.extend(self.pool.take());
            }
        }
        if self.reserved.len() < needed {
            self.counters.no_page += 1;
            let (pool, free) = (self.pool.name().to_owned(), self.reserved.len());
            return Err(ReadOutError::NoPage { event, pool, free, needed });
        }
        Ok(())
    }

    /// Whether a page is free: [`Links::read_out`] may be worth another try.
    pub fn has_page(&self) -> bool {
        self.pool.has_free()
    }

    /// Wakes this scheduler when a page comes back after [`ReadOutError::NoPage`].
    pub fn wake_on_return(&self, waker: Waker) {
        self.pool.wake_on_return(waker);
    }

    /// What the links did so far.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// The page pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl Input {
    fn prepare(&mut self, event: &EventInfo) -> Result<(), ReadOutError> {
        match self {
            Self::Emulator(_) => Ok(()),
            Self::Sample(sample) => sample.prepare(event),
            Self::Replay(replay) => replay.prepare(event),
        }
    }

    fn fragment(
        &self,
        fragments: &mut Fragments,
        page: Page,
        wanted: Wanted<'_>,
    ) -> Result<(FragmentHead, PageSlice), Unplaced> {
        match self {
            Self::Emulator(emulator) => emulator.fragment(fragments, page, wanted),
            Self::Sample(sample) => sample.fragment(fragments, page, wanted),
            Self::Replay(replay) => replay.fragment(fragments, page, wanted),
        }
    }
}

impl LinkCounters {
    fn count(&mut self, head: &FragmentHead) {
        self.fragments += 1;
        self.bytes += u64::from(head.len_bytes);
        self.flagged += u64::from(head.status != 0);
    }
}

/// Bytes of pages that are taken along for the next events. With small fragments the pool is then not asked for each, and
/// they are few enough to stay in the cache.
const PAGES_AHEAD_BYTES: usize = 16 << 10;
/// Of long ones, as many as it takes until the beginning of a page that another process has read is back in the cache.
const PAGES_AHEAD_MIN: usize = 4;
/// As many as are read together: with more, those that came back last and are still in a cache would wait behind others.
const PAGES_AHEAD_MAX: usize = 15;
