//! What stands around data that have no bytes.

use base::bulk::Bulk;
use dataflow::readout::ros::{Framing, TimedHead};

/// As many bytes as in a file, and the chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Modelled;

impl Framing for Modelled {
    fn frame(&self, head: &TimedHead, chunks: Bulk) -> Bulk {
        let len_bytes = AROUND_BYTES + u32::try_from(chunks.len()).unwrap_or(u32::MAX - AROUND_BYTES);
        Bulk::Modelled { len_bytes, seed: head.event.event.0 as u32 ^ head.rob }
    }
}

/// Headers of ROB and ROD, the head of the event, status and trailer.
const AROUND_BYTES: u32 = 108;
