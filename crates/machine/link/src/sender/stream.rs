//! A stream of bytes (TCP) to a read-out system.

use core::time::Duration;

use rustix::fd::{AsFd, OwnedFd};
use transport::error::OsError;

use crate::record::{HEAD_BYTES, RecordHead};
use crate::socket::{Lost, sleep, write};

/// Records on their way: many small ones go out with one system call.
pub(super) struct Stream {
    socket: OwnedFd,
    buffer: Box<[u8]>,
    /// What was not written yet.
    start: usize,
    end: usize,
    /// Bytes that came since we last tried to write.
    fresh: usize,
}

impl Stream {
    pub(super) fn new(socket: OwnedFd, size_max: usize) -> Self {
        let len = (2 * (HEAD_BYTES + size_max)).max(BUFFER_BYTES_MIN);
        Self { socket, buffer: vec![0; len].into(), start: 0, end: 0, fresh: 0 }
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(super) fn has_room(&self, len: usize) -> bool {
        self.buffer.len() - self.end >= HEAD_BYTES + len
    }

    /// Where a payload goes; there is room for it.
    pub(super) fn payload(&mut self, len: usize) -> &mut [u8] {
        let place = self.end + HEAD_BYTES;
        &mut self.buffer[place..place + len]
    }

    /// Puts the head before the payload that is there.
    pub(super) fn commit(&mut self, head: &RecordHead) {
        self.buffer[self.end..self.end + HEAD_BYTES].copy_from_slice(&head.encode());
        self.end += HEAD_BYTES + head.len as usize;
        self.fresh += HEAD_BYTES + head.len as usize;
    }

    /// Whether it is worth a system call; where the socket was full, not before as much has come again.
    pub(super) fn is_well_filled(&self) -> bool {
        self.fresh >= WRITE_BYTES
    }

    pub(super) fn try_say(&mut self, head: &RecordHead, body: &[u8]) -> bool {
        let has_room = self.has_room(body.len());
        if has_room {
            self.payload(body.len()).copy_from_slice(body);
            self.commit(head);
        }
        has_room
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn flush(&mut self) -> Result<(), Lost> {
        self.fresh = 0;
        if self.start < self.end {
            self.start += write(&self.socket, &self.buffer[self.start..self.end])?;
        }
        self.make_room();
        Ok(())
    }

    pub(super) fn sleep(&self, timeout: Duration) -> Result<(), OsError> {
        sleep(&[self.socket.as_fd()], !self.is_flushed(), timeout)
    }

    /// Moves what is left to the beginning, where that is little beside the room that it makes.
    fn make_room(&mut self) {
        let left = self.end - self.start;
        if left <= self.start {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, left);
        }
    }
}

/// More than two writes of small fragments: where the socket is full, a longer one would be filled beyond the second cache.
const BUFFER_BYTES_MIN: usize = 128 << 10;
/// Of small fragments, so that one system call is little beside what it moves. With one of 14 kB more it still fits in one segment of
/// the loopback interface. A second one costs much, however short it is.
const WRITE_BYTES: usize = 50 << 10;
