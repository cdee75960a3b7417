//! The check that every fragment passes when it enters from its link.

use base::ids::{EventId, Lvl1Id};

/// What a component knows of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHead {
    /// The event it belongs to.
    pub event: EventId,
    /// First status word of its ROB header (format note §7).
    pub status: u32,
    /// Length of the ROB fragment in bytes.
    pub len_bytes: u32,
}

/// Bits of the first ROB status word that this crate sets or counts; the formats crate defines the rest (format note §7).
pub mod status {
    /// Not all that belongs to the event had come when it was made.
    pub const TIMEOUT: u32 = 0x0004;
    /// The checksum is wrong.
    pub const DATA_CORRUPTION: u32 = 0x0008;
    /// The link had a transmission error in the data.
    pub const LINK_DATA: u32 = 0x0004 << 16;
    /// The link had an error in a control word.
    pub const LINK_CONTROL: u32 = 0x0008 << 16;
    /// The link gave no begin.
    pub const NO_BEGIN: u32 = 0x0010 << 16;
    /// The link gave no end.
    pub const NO_END: u32 = 0x0020 << 16;
    /// The level-1 id is not the one after the fragment before.
    pub const OUT_OF_SEQUENCE: u32 = 0x0200 << 16;
    /// The fragment was larger than the configured maximum and was cut.
    pub const TRUNCATED: u32 = 0x0800 << 16;
    /// The fragment is shorter than an empty ROD.
    pub const SHORT: u32 = 0x1000 << 16;
}

/// Follows the level-1 ids of one link: gives each fragment its event number and its sequence status.
#[derive(Clone, Debug)]
pub struct FragmentCheck {
    newest: EventId,
    started: bool,
}

/// A fragment whose level-1 id lies too far from the newest to belong to any event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// The id.
    pub lvl1_id: Lvl1Id,
    /// The newest event of the link.
    pub newest: EventId,
}

impl FragmentCheck {
    /// For a link whose first event is about `first`.
    pub fn new(first: EventId) -> Self {
        Self { newest: first, started: false }
    }

    /// Takes the level-1 id of the next fragment. `problems` are the status bits that parsing found.
    ///
    /// # Errors
    /// If the id is more than 2³⁰ away from the newest: the fragment cannot be kept.
    pub fn examine(&mut self, lvl1_id: Lvl1Id, problems: u32, len_bytes: u32) -> Result<FragmentHead, Unplaced> {
        let newest = self.newest;
        let event = EventId::unwrap_near(newest, lvl1_id).ok_or(Unplaced { lvl1_id, newest })?;
        let in_sequence = !self.started || follows(newest, event);
        self.started = true;
        self.newest = newest.max(event);
        let status = problems | if in_sequence { 0 } else { status::OUT_OF_SEQUENCE };
        Ok(FragmentHead { event, status, len_bytes })
    }
}

/// Whether `next` is the id after `previous`: one more, or the first after an event-counter reset.
fn follows(previous: EventId, next: EventId) -> bool {
    let ecr = |event: EventId| event.0 >> 24;
    next == previous.next() || (next.0 & 0xff_ffff == 0 && ecr(next) == ecr(previous) + 1)
}
