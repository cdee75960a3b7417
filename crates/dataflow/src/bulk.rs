//! Handles on bulk bytes.
//!
//! Components never touch event data: they pass on handles. In a running system a handle is a slice of a page that the
//! kernel or a producer wrote once; in the simulator it is a size and a seed.

use alloc::vec::Vec;
use bytes::Bytes;

/// A reference-counted slice of a page. The page goes back to its pool when its last slice is dropped, so that a
/// component cannot leak or release a page twice.
///
/// A clone costs one atomic increment; let one thread own the slices of a page where possible.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PageSlice(Bytes);

impl PageSlice {
    /// Wraps bytes whose owner returns its page on drop (`Bytes::from_owner`), or plain bytes in a test.
    pub fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no byte in the slice.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The handle on the page, for parts of it that live on their own.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// A part of this slice; the page stays alive as long as the part does.
    ///
    /// # Panics
    /// If the range is not inside the slice.
    pub fn slice(&self, range: core::ops::Range<usize>) -> Self {
        Self(self.0.slice(range))
    }
}

impl core::fmt::Debug for PageSlice {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PageSlice({} bytes)", self.len())
    }
}

/// Event data as a component sees it: a handle with a length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bulk {
    /// One contiguous slice.
    Pages(PageSlice),
    /// Several slices, in order: the bulk is their concatenation.
    PageList(Vec<PageSlice>),
    /// No bytes at all: a size that the simulator moves through unchanged code, and the seed its content would come from.
    Modelled {
        /// Length in bytes.
        len_bytes: u32,
        /// Identifies the content; equal seeds stand for equal bytes.
        seed: u32,
    },
}

impl Bulk {
    /// Nothing.
    pub fn empty() -> Self {
        Self::Pages(PageSlice::default())
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Pages(slice) => slice.len(),
            Self::PageList(slices) => slices.iter().map(PageSlice::len).sum(),
            Self::Modelled { len_bytes, .. } => *len_bytes as usize,
        }
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// This bulk with another behind it.
    #[must_use]
    pub fn followed_by(self, other: Self) -> Self {
        match (self, other) {
            (first, second) if second.is_empty() => first,
            (Self::Modelled { len_bytes, seed }, second) => {
                Self::Modelled { len_bytes: len_bytes + second.len() as u32, seed }
            }
            (first, second) => {
                let mut slices = match first {
                    Self::PageList(slices) => slices,
                    other => other.slices().to_vec(),
                };
                slices.extend_from_slice(second.slices());
                Self::PageList(slices)
            }
        }
    }

    /// The slices, in order; none for modelled bulk.
    pub fn slices(&self) -> &[PageSlice] {
        match self {
            Self::Pages(slice) => core::slice::from_ref(slice),
            Self::PageList(slices) => slices,
            Self::Modelled { .. } => &[],
        }
    }
}

impl Default for Bulk {
    fn default() -> Self {
        Self::empty()
    }
}
