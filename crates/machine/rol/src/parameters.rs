//! How the links of a read-out system are set up, and why they cannot be.

use base::ids::EventId;
use dataflow::readout::fragment::Unplaced;
use transport::page_pool::PoolError;

use crate::replay_error::ReplayError;

/// How the links of a read-out system are set up, whatever their kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkParameters {
    /// Name of the page pool in metrics and messages.
    pub name: String,
    /// Source identifiers of the links; the index in this list is the number of the link.
    pub source_ids: Vec<u32>,
    /// Run number in the ROD headers.
    pub run_number: u32,
    /// Detector event type in the ROD headers.
    pub event_type: u32,
    /// Whether each fragment ends with an Adler-32 of its ROD.
    pub adler32: bool,
    /// Length of a page in bytes: the longest fragment.
    pub page_bytes: usize,
    /// Pages of all links together. A page is in use until the last holder of its fragment lets go of it. Inside one
    /// process that can be the event builder or the recorder, long after the ROS has cleared the event.
    pub pages: usize,
    /// Whether the pages lie in memory that other processes can be given to read.
    pub shared: bool,
    /// The first event of the run, or one near it.
    pub first: EventId,
    /// Whether events come in order, as with a level 1; if not, an id out of sequence is no problem.
    pub in_order: bool,
}

impl Default for LinkParameters {
    fn default() -> Self {
        Self {
            name: "ros".to_owned(),
            source_ids: Vec::new(),
            run_number: 1,
            event_type: 0,
            adler32: false,
            page_bytes: 4096,
            pages: 1024,
            shared: false,
            first: EventId(0),
            in_order: true,
        }
    }
}

/// Why an event could not be read out; nothing of it was delivered.
#[derive(Debug, thiserror::Error)]
pub enum ReadOutError {
    /// Too few pages are free: try again when some have come back ([`Links::wake_on_return`](crate::Links::wake_on_return)).
    #[error("event {event}: {free} of the {needed} pages that it needs are free in pool {pool}")]
    NoPage {
        /// The event.
        event: EventId,
        /// Name of the pool.
        pool: String,
        /// Free pages.
        free: usize,
        /// Links of this read-out system.
        needed: usize,
    },
    /// The input has no such event: it does not repeat, and level 1 should have stopped.
    #[error("event {event}: the input has {events} events, number {ordinal} was asked for and input.repeat is off")]
    BehindEnd {
        /// The event.
        event: EventId,
        /// Its place in the run, from 0.
        ordinal: u64,
        /// Events of the input.
        events: usize,
    },
    /// The event is too far from the ones before.
    #[error("event {event}: its level-1 id {} is more than 2^30 away from the newest event {}", unplaced.lvl1_id, unplaced.newest)]
    Unplaced {
        /// The event.
        event: EventId,
        /// What the check says.
        unplaced: Unplaced,
    },
    /// The recorded event cannot be read any more.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Why there are no links.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// No memory for the pages, or impossible sizes.
    #[error("ros.pages and ros.page_size: {0}")]
    Pool(#[from] PoolError),
    /// The configured page does not hold what it must.
    #[error(
        "a page of {page_bytes} bytes is too short for {what}: expected ros.page_size of at least {needed_bytes} bytes"
    )]
    PageTooShort {
        /// Length of a page.
        page_bytes: usize,
        /// What does not fit.
        what: &'static str,
        /// The length needed.
        needed_bytes: usize,
    },
    /// Nobody reads out what comes by itself.
    #[error("ros.input = \"links\": sources send by themselves, and only `weir run` waits for them")]
    Pushed,
    /// More links than a ROS can number.
    #[error("{links} links in one read-out system, expected at most 65536")]
    TooMany {
        /// Links asked for.
        links: usize,
    },
    /// A link that the input has no data for.
    #[error("source {source_id:#010x} is not in the input, which has {sources} sources")]
    UnknownSource {
        /// Source identifier of the link.
        source_id: u32,
        /// Sources of the input.
        sources: usize,
    },
}

impl LinkParameters {
    /// Refuses pages that are shorter than what is to stand in one.
    pub(crate) fn check_page(&self, what: &'static str, needed_bytes: usize) -> Result<(), LinksError> {
        let page_bytes = self.page_bytes;
        if page_bytes >= needed_bytes {
            return Ok(());
        }
        Err(LinksError::PageTooShort { page_bytes, what, needed_bytes })
    }
}
