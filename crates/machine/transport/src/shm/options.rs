//! How links through shared memory are set up.

use super::greeting::POOLS_MAX;
use super::lane::Geometry;
use super::record::pieces_max;
use crate::error::OsError;
use crate::frame::FrameLimits;
use crate::page_pool::Pool;
use crate::waker::SleepWord;
use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

/// Settings of a link; both sides need the same frame limits, and agree on the smaller of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShmOptions {
    /// Legal lengths of frames.
    pub limits: FrameLimits,
    /// Bulk below this length in bytes is copied through the ring rather than handed over; received frames below it are counted.
    pub copy_below: usize,
    /// Bound in bytes of the frames that wait for room in the ring; at least the longest frame.
    pub queue_bytes_max: usize,
    /// Bound of their number.
    pub queue_frames_max: usize,
    /// Length of the ring in bytes, a power of two: it holds the frames' heads, short bulk, and the handles.
    pub ring_bytes: usize,
    /// The most slices that a peer may hold at a time, a power of two. The protocol above has to do with that many: replies
    /// of which each is needed before any is let go must fit.
    pub tickets_max: usize,
}

impl ShmOptions {
    /// Defaults for frames of these lengths.
    pub fn new(limits: FrameLimits) -> Self {
        Self {
            limits,
            copy_below: 512,
            queue_bytes_max: (4 << 20).max(limits.len_max()),
            queue_frames_max: 4096,
            ring_bytes: 64 << 10,
            tickets_max: 1024,
        }
    }

    pub(super) fn geometry(&self) -> Geometry {
        Geometry { ring_bytes: self.ring_bytes, tickets: self.tickets_max }
    }
}

/// What all links of a process share. Clones are handles on it. Its links are registered with one scheduler: peers see in one
/// word whether that sleeps.
#[derive(Clone)]
pub struct Process(Arc<Shared>);

struct Shared {
    options: ShmOptions,
    /// The pool for copies, then the others.
    pools: Vec<Pool>,
    sleep: Arc<SleepWord>,
}

/// Why there is no link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShmError {
    /// The rings have impossible sizes.
    #[error(
        "a ring of {ring_bytes} bytes and {tickets_max} tickets: expected powers of two, 4 KiB to 256 MiB and up to 1048576"
    )]
    Geometry {
        /// The ring's length asked for.
        ring_bytes: usize,
        /// The number of tickets asked for.
        tickets_max: usize,
    },
    /// Each legal frame has to fit in the empty queue.
    #[error(
        "a send queue of {bytes_max} bytes and {frames_max} frames: expected at least one frame of {frame_len_max} bytes"
    )]
    QueueTooSmall {
        /// The bound in bytes.
        bytes_max: usize,
        /// The bound in frames.
        frames_max: usize,
        /// The longest frame in bytes.
        frame_len_max: usize,
    },
    /// The pages of a pool cannot be given to other processes.
    #[error("page pool {pool} is private: expected one made by Pool::shared")]
    PrivatePool {
        /// The pool's name.
        pool: String,
    },
    /// More pools than a greeting can carry.
    #[error("{pools} shared page pools: expected at most {POOLS_MAX}")]
    TooManyPools {
        /// Pools, that for copies included.
        pools: usize,
    },
    /// The longest frame has to fit in the empty pool for copies, and its handles in the ring.
    #[error(
        "copies of frames of up to {frame_len_max} bytes take {needed} pages of {page_len} bytes: expected as many in pool {pool}, which has {pages}, and at most {handles_max} for the ring and the tickets"
    )]
    CopiesTooSmall {
        /// The longest frame in bytes.
        frame_len_max: usize,
        /// Pages that it takes at worst.
        needed: usize,
        /// The pool's name.
        pool: String,
        /// Its pages.
        pages: usize,
        /// Their length in bytes.
        page_len: usize,
        /// The most handles of a frame.
        handles_max: usize,
    },
    /// The kernel refuses.
    #[error(transparent)]
    Os(#[from] OsError),
}

impl Process {
    /// With a shared pool for copies of what lies in none, and the pools whose pages are given away as they are.
    ///
    /// # Errors
    /// Settings that do not fit together; memory or descriptors that the kernel refuses.
    pub fn new(options: &ShmOptions, copies: Pool, lent: Vec<Pool>) -> Result<Self, ShmError> {
        let ShmOptions { limits, queue_bytes_max, queue_frames_max, ring_bytes, tickets_max, .. } = *options;
        if !options.geometry().is_legal() {
            return Err(ShmError::Geometry { ring_bytes, tickets_max });
        }
        let frame_len_max = limits.len_max();
        if queue_bytes_max < frame_len_max || queue_frames_max == 0 {
            let (bytes_max, frames_max) = (queue_bytes_max, queue_frames_max);
            return Err(ShmError::QueueTooSmall { bytes_max, frames_max, frame_len_max });
        }
        // Slices are not cut unless they are longer than a page: of two pages in a row, more than one is full.
        let needed = 2 * frame_len_max.div_ceil(copies.page_len());
        let handles_max = pieces_max(options.geometry()).min(tickets_max);
        if needed > copies.pages() || needed + 1 > handles_max {
            let (pool, pages, page_len) = (copies.name().to_owned(), copies.pages(), copies.page_len());
            return Err(ShmError::CopiesTooSmall { frame_len_max, needed, pool, pages, page_len, handles_max });
        }
        let pools: Vec<Pool> = [copies].into_iter().chain(lent).collect();
        if pools.len() > POOLS_MAX {
            return Err(ShmError::TooManyPools { pools: pools.len() });
        }
        if let Some(pool) = pools.iter().find(|pool| !pool.is_shared()) {
            return Err(ShmError::PrivatePool { pool: pool.name().to_owned() });
        }
        let sleep = Arc::new(SleepWord::new()?);
        Ok(Self(Arc::new(Shared { options: options.clone(), pools, sleep })))
    }

    /// The settings.
    pub fn options(&self) -> &ShmOptions {
        &self.0.options
    }

    /// The pool for copies, then the others.
    pub(super) fn pools(&self) -> &[Pool] {
        &self.0.pools
    }

    pub(super) fn sleep(&self) -> &Arc<SleepWord> {
        &self.0.sleep
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("pools", &self.0.pools).finish_non_exhaustive()
    }
}

/// Where a process listens, as it is told to its peers: `shm:` and a name that the kernel chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(String);

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no address of shared memory: expected one such as shm:0001a")]
pub struct InvalidAddress {
    text: String,
}

impl Address {
    pub(super) fn of_name(name: &[u8]) -> Option<Self> {
        let name = core::str::from_utf8(name).ok().filter(|name| is_name(name))?;
        Some(Self(name.to_owned()))
    }

    pub(super) fn name(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.0)
    }
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let name = text.strip_prefix(SCHEME).filter(|name| is_name(name));
        name.map(|name| Self(name.to_owned())).ok_or_else(|| InvalidAddress { text: text.to_owned() })
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_LEN_MAX && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

const SCHEME: &str = "shm:";
const NAME_LEN_MAX: usize = 64;

/// The most pools that a process can give pages away from.
pub const LENT_POOLS_MAX: usize = POOLS_MAX - 1;

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let address = Address::of_name(b"0001a").unwrap();
        assert_eq!(address.to_string().parse(), Ok(address));
        for text in ["", "shm:", "127.0.0.1:4000", "shm:a b", "0001a"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
