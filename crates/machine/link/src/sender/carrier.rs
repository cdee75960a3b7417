//! What carries fragments.

use core::time::Duration;

use rustix::fd::OwnedFd;
use transport::error::OsError;

use super::shared::Shared;
use super::stream::Stream;
use crate::record::RecordHead;
use crate::socket::Lost;

pub(super) enum Carrier {
    Stream(Stream),
    Shared(Shared),
}

impl Carrier {
    pub(super) fn socket(&self) -> &OwnedFd {
        match self {
            Self::Stream(stream) => stream.socket(),
            Self::Shared(shared) => shared.socket(),
        }
    }

    /// Whether the socket is worth reading; over a stream only the kernel knows.
    #[inline]
    pub(super) fn has_news(&mut self) -> bool {
        match self {
            Self::Stream(_) => true,
            Self::Shared(shared) => shared.has_news(),
        }
    }

    /// As [`has_news`](Self::has_news), where it costs no system call.
    #[inline]
    pub(super) fn shows_news(&mut self) -> bool {
        match self {
            Self::Stream(_) => false,
            Self::Shared(shared) => shared.has_news(),
        }
    }

    #[inline]
    pub(super) fn has_room(&mut self, len: usize) -> bool {
        match self {
            Self::Stream(stream) => stream.has_room(len),
            Self::Shared(shared) => shared.has_room(),
        }
    }

    /// Where a payload goes; there is room for it.
    #[inline]
    pub(super) fn payload(&mut self, len: usize) -> &mut [u8] {
        match self {
            Self::Stream(stream) => stream.payload(len),
            Self::Shared(shared) => shared.payload(len),
        }
    }

    #[inline]
    pub(super) fn commit(&mut self, head: &RecordHead) {
        match self {
            Self::Stream(stream) => stream.commit(head),
            Self::Shared(shared) => shared.commit(head),
        }
    }

    /// Whether what was committed is worth a system call.
    #[inline]
    pub(super) fn is_well_filled(&self) -> bool {
        match self {
            Self::Stream(stream) => stream.is_well_filled(),
            Self::Shared(_) => false,
        }
    }

    /// Says something that is no fragment, behind those committed before; false: not now.
    pub(super) fn try_say(&mut self, head: &RecordHead, body: &[u8]) -> bool {
        match self {
            Self::Stream(stream) => stream.try_say(head, body),
            Self::Shared(shared) => shared.try_say(head, body),
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), Lost> {
        match self {
            Self::Stream(stream) => stream.flush(),
            Self::Shared(shared) => shared.flush(),
        }
    }

    pub(super) fn is_flushed(&self) -> bool {
        match self {
            Self::Stream(stream) => stream.is_flushed(),
            Self::Shared(shared) => shared.is_flushed(),
        }
    }

    pub(super) fn sleep(&mut self, wants_room: bool, wants_to_say: bool, timeout: Duration) -> Result<(), OsError> {
        match self {
            Self::Stream(stream) => stream.sleep(timeout),
            Self::Shared(shared) => shared.sleep(wants_room, wants_to_say, timeout),
        }
    }
}
