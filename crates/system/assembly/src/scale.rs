//! What no configuration says: constants of live runs, and room that follows from other numbers.

use std::time::Duration;

/// What no configuration says. A run of a few events and fragments of some bytes meets the bounds of live runs only if they are
/// smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Most bytes of replies for building in one message.
    pub reply_group_bytes: usize,
    /// Records of a level-1 processor that wait before it is told to send nothing, at most.
    pub triggers_ahead: usize,
    /// So many events make a recorder sync what it wrote, before it is old.
    pub sync_group: usize,
    /// After this time a recorder tries again to write.
    pub retry_recording_after: Duration,
    /// Replies to one builder or unit of level 2 that a read-out system keeps for the transport.
    pub replies_kept: usize,
    /// The window of level 1; without it, what is configured and finds pages.
    pub in_flight: Option<u64>,
    /// Pages of the pROS; without it, one for each event that can be in its time.
    pub result_pages: Option<usize>,
    /// Events whose data a builder keeps in phased selection; without it, as many as it has slots.
    pub collected: Option<usize>,
    /// Events whose pushed data a builder keeps before they are assigned; without it, as many as there are pages.
    pub pushed_ahead: Option<usize>,
}

impl Default for Scale {
    fn default() -> Self {
        Self {
            reply_group_bytes: REPLY_GROUP_BYTES,
            triggers_ahead: 256,
            sync_group: 1000,
            retry_recording_after: Duration::from_secs(1),
            replies_kept: 0,
            in_flight: None,
            result_pages: None,
            collected: None,
            pushed_ahead: None,
        }
    }
}

/// Most bytes of replies for building in one message of a live run, unless an event alone has more. The cost of a
/// message no longer counts then, and a builder works on the first while the next are on their way.
pub const REPLY_GROUP_BYTES: usize = 64 << 10;
