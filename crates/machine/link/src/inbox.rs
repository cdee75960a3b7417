//! Records as they come out of a stream of bytes.

use crate::error::Violation;
use crate::record::{HEAD_BYTES, RecordHead};

/// Bytes that were read and not understood yet. It never grows.
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(crate) fn new(len: usize) -> Self {
        Self { bytes: vec![0; len].into(), start: 0, end: 0 }
    }

    /// A longer one with what was read already.
    pub(crate) fn lengthened(&self, len: usize) -> Self {
        let mut longer = Self::new(len.max(self.unread().len()));
        longer.bytes[..self.unread().len()].copy_from_slice(self.unread());
        longer.end = self.unread().len();
        longer
    }

    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Where the next bytes go; empty only if a record is longer than the box.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes were read into the room.
    pub(crate) fn filled(&mut self, len: usize) {
        self.end += len;
        assert!(self.end <= self.bytes.len(), "no more was read than there was room");
    }

    /// Adds bytes that were read elsewhere; there is room for them.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.room()[..bytes.len()].copy_from_slice(bytes);
        self.filled(bytes.len());
    }

    /// The next head, if it is there.
    pub(crate) fn head(&self) -> Result<Option<RecordHead>, Violation> {
        self.unread().first_chunk::<HEAD_BYTES>().map(RecordHead::decode).transpose()
    }

    pub(crate) fn skip(&mut self, len: usize) {
        self.start += len;
        assert!(self.start <= self.end, "no more is taken than there is");
    }

    /// What follows a head of this length, if it is all there: head and body are taken.
    pub(crate) fn body(&mut self, len: usize) -> Option<&[u8]> {
        let start = self.start;
        let end = start + HEAD_BYTES + len;
        if end > self.end {
            return None;
        }
        self.start = end;
        Some(&self.bytes[start + HEAD_BYTES..end])
    }

    /// The next record of at most `len_max` bytes behind its head, if it is all there.
    pub(crate) fn record(&mut self, len_max: usize) -> Result<Option<(RecordHead, &[u8])>, Violation> {
        let Some(head) = self.head()? else { return Ok(None) };
        if head.len as usize > len_max {
            let (kind, len) = (head.kind, head.len.into());
            return Err(Violation::Length { kind, len, expected: "no more than the longest of its kind" });
        }
        Ok(self.body(head.len as usize).map(|body| (head, body)))
    }
}
