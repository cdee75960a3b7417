//! Frames: what a link carries.
//!
//! A frame is a byte string whose first four bytes are its total length in bytes, these four included, as an unsigned
//! little-endian integer. The rest is opaque here; nothing is aligned. On a byte stream a wrong length loses the
//! boundaries of all that follows, so that the connection has to be closed.

use base::bulk::{Bulk, PageSlice};

/// The length field.
pub const LENGTH_FIELD_LEN: usize = 4;

/// The legal lengths of a frame in bytes, its length field included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    len_min: usize,
    len_max: usize,
}

impl FrameLimits {
    /// Frames of `len_min` to `len_max` bytes.
    ///
    /// # Errors
    /// If the shortest cannot hold its length field, the longest does not fit in it, or there is none between them.
    pub fn new(len_min: usize, len_max: usize) -> Result<Self, InvalidLimits> {
        let legal = LENGTH_FIELD_LEN <= len_min && len_min <= len_max && u32::try_from(len_max).is_ok();
        if legal { Ok(Self { len_min, len_max }) } else { Err(InvalidLimits { len_min, len_max }) }
    }

    /// Length of the shortest frame in bytes.
    pub const fn len_min(self) -> usize {
        self.len_min
    }

    /// Length of the longest frame in bytes.
    pub const fn len_max(self) -> usize {
        self.len_max
    }

    /// The length of the frame that begins here; `None` if its length field is not complete.
    ///
    /// # Errors
    /// A length outside the limits; `offset` says where in the stream.
    pub(crate) fn read_len(self, bytes: &[u8], offset: u64) -> Result<Option<usize>, Malformed> {
        let Some(field) = bytes.first_chunk::<LENGTH_FIELD_LEN>() else {
            return Ok(None);
        };
        let len = u32::from_le_bytes(*field);
        let Self { len_min, len_max } = self;
        if (len_min..=len_max).contains(&(len as usize)) {
            Ok(Some(len as usize))
        } else {
            Err(Malformed { offset, len, len_min, len_max })
        }
    }

    /// The length of a frame of our own making.
    ///
    /// # Panics
    /// If the parts are not one legal frame whose length field agrees.
    pub(crate) fn checked_len(self, head: &[u8], bulk: &Bulk) -> usize {
        let len = head.len() + bulk.len();
        assert!(!matches!(bulk, Bulk::Modelled { .. }), "modelled bulk has no bytes to send");
        let stated = self.read_len(head, 0).expect("a frame of our own is within the limits");
        assert_eq!(stated, Some(len), "a frame states the sum of its parts as its length");
        len
    }
}

/// Limits that allow no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frames of {len_min} to {len_max} bytes: expected 4 <= shortest <= longest < 4 GiB")]
pub struct InvalidLimits {
    /// The shortest asked for, in bytes.
    pub len_min: usize,
    /// The longest asked for, in bytes.
    pub len_max: usize,
}

/// A peer stated an impossible frame length: what follows in the stream has no known boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "frame at byte {offset} of the stream states {len} bytes, expected {len_min} to {len_max}: close the connection"
)]
pub struct Malformed {
    /// Where the frame begins, in bytes from the beginning of the stream.
    pub offset: u64,
    /// The length it states.
    pub len: u32,
    /// The shortest legal frame in bytes.
    pub len_min: usize,
    /// The longest legal frame in bytes.
    pub len_max: usize,
}

/// A frame as it arrived: bytes, then bulk that was passed on by handle.
///
/// A byte stream delivers all in `head`; a link inside the process keeps the sender's parts. [`split`](Self::split) makes both alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The frame's beginning or all of it.
    pub head: PageSlice,
    /// What follows `head`.
    pub rest: Bulk,
}

impl Frame {
    /// A frame in one piece.
    pub fn whole(bytes: PageSlice) -> Self {
        Self { head: bytes, rest: Bulk::empty() }
    }

    /// Length in bytes, the length field included.
    pub fn len(&self) -> usize {
        self.head.len() + self.rest.len()
    }

    /// Never: a frame holds its length field.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first `head_len` bytes as one slice and the others as bulk; `None` if the first bytes are not in one piece.
    pub fn split(self, head_len: usize) -> Option<(PageSlice, Bulk)> {
        let Self { head, rest } = self;
        if head.len() == head_len {
            return Some((head, rest));
        }
        if head.len() < head_len || !rest.is_empty() {
            return None;
        }
        let bulk = head.slice(head_len..head.len());
        Some((head.slice(0..head_len), Bulk::Pages(bulk)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, FrameLimits, Malformed};
    use base::bulk::{Bulk, PageSlice};

    fn slice(bytes: &'static [u8]) -> PageSlice {
        PageSlice::from_static(bytes)
    }

    #[test]
    fn limits_are_checked() {
        for (len_min, len_max) in [(3, 8), (9, 8), (4, 1 << 32)] {
            assert!(FrameLimits::new(len_min, len_max).is_err());
        }
        assert!(FrameLimits::new(4, u32::MAX as usize).is_ok());
    }

    #[test]
    fn a_length_is_read_when_complete_and_legal() {
        let limits = FrameLimits::new(8, 16).unwrap();
        assert_eq!(limits.read_len(&[8, 0, 0], 0), Ok(None));
        assert_eq!(limits.read_len(&[16, 0, 0, 0, 1], 0), Ok(Some(16)));
        for len in [0, 7, 17, u32::MAX] {
            let expected = Malformed { offset: 5, len, len_min: 8, len_max: 16 };
            assert_eq!(limits.read_len(&len.to_le_bytes(), 5), Err(expected));
        }
    }

    #[test]
    fn a_frame_splits_alike_in_one_piece_and_in_parts() {
        let whole = Frame::whole(slice(b"headbulk"));
        let parts = Frame { head: slice(b"head"), rest: Bulk::Pages(slice(b"bulk")) };
        for frame in [whole, parts.clone()] {
            let (head, bulk) = frame.split(4).unwrap();
            assert_eq!((head.as_bytes(), bulk), (&b"head"[..], Bulk::Pages(slice(b"bulk"))));
        }
        assert_eq!(parts.clone().split(5), None);
        assert_eq!(parts.split(3), None);
        assert_eq!(Frame::whole(slice(b"head")).split(5), None);
    }
}
