//! The socket to a source, with what is still to be said over it.

use rustix::fd::OwnedFd;
use transport::poller::Readiness;

use crate::socket::{Lost, write};

pub(super) struct Channel {
    pub(super) socket: OwnedFd,
    pub(super) readiness: Readiness,
    outbox: Vec<u8>,
}

impl Channel {
    pub(super) fn new(socket: OwnedFd, readiness: Readiness) -> Self {
        Self { socket, readiness, outbox: Vec::new() }
    }

    /// Whether the kernel would take some of what is still to be said.
    pub(super) fn has_to_say(&self) -> bool {
        !self.outbox.is_empty() && self.readiness.is_writable()
    }

    /// What does not fit into the socket goes with the next [`flush`](Self::flush). Whether anything went.
    pub(super) fn say(&mut self, bytes: &[u8]) -> bool {
        self.outbox.extend_from_slice(bytes);
        // An error is found again by the next poll, which has somebody to tell.
        self.flush().unwrap_or(false)
    }

    /// Says what is still to be said, as far as the kernel takes it. Whether anything was.
    pub(super) fn flush(&mut self) -> Result<bool, Lost> {
        if self.outbox.is_empty() {
            return Ok(false);
        }
        self.readiness.clear_writable();
        let written = write(&self.socket, &self.outbox)?;
        self.outbox.drain(..written);
        if self.outbox.is_empty() {
            self.readiness.set_writable();
        }
        Ok(true)
    }

    /// A source that reads nothing is not told for ever.
    pub(super) fn check_heard(&self) -> Result<(), Lost> {
        if self.outbox.len() > OUTBOX_BYTES_MAX { Err(Lost::Deaf) } else { Ok(()) }
    }
}

const OUTBOX_BYTES_MAX: usize = 64 << 10;
