//! What travels of a stream.

use super::HostId;
use crate::engine::Instant;

/// Part of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) to: HostId,
    pub(super) len_bytes: u16,
    pub(super) connection: u32,
    pub(super) life: u32,
    pub(super) start: u64,
    pub(super) sent: Instant,
}

/// What a receiver has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    pub(super) to: HostId,
    pub(super) connection: u32,
    pub(super) life: u32,
    /// All before this.
    pub(super) up_to: u64,
    /// When the segment was sent that it answers.
    pub(super) echo: Instant,
}
