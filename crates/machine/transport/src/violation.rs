//! What ends a link through shared memory.

/// What a peer did that no peer of ours does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A counter that goes back, or further than there is room.
    #[error("the peer's counter of {what} went from {before} to {found}: close the link")]
    Counter {
        /// What is counted.
        what: &'static str,
        /// Its last value.
        before: u64,
        /// What was found.
        found: u64,
    },
    /// A record that cannot be in the ring.
    #[error("the peer's record at byte {position} is impossible: close the link")]
    Record {
        /// Where it begins, in bytes from the beginning of the stream.
        position: u64,
    },
    /// Bulk that lies in none of the peer's pages.
    #[error("the peer's handle on {len} bytes at {offset} of region {region} lies outside: close the link")]
    Handle {
        /// Number of the region.
        region: u32,
        /// Where the bulk begins.
        offset: u64,
        /// Its length in bytes.
        len: u32,
    },
    /// A ticket that is not out, or one too many.
    #[error("the peer's ticket {ticket} is not one that can be out: close the link")]
    Ticket {
        /// The ticket.
        ticket: u64,
    },
    /// The peer does not greet as it should.
    #[error("the peer's greeting is not understood: both sides must be of the same version of weir")]
    Greeting,
    /// The peer's memory is not what it says, or does not fit our settings.
    #[error("the peer's memory is shorter than it says, not sealed, or does not fit our pages")]
    Memory,
    /// The peer belongs to somebody else.
    #[error("the peer belongs to user {uid}, expected our own")]
    OtherUser {
        /// Its user.
        uid: u32,
    },
}
