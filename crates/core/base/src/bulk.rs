//! Handles on bulk bytes.
//!
//! Components never touch event data: they pass on handles. In a running system a handle is a slice of a page that
//! the kernel or a producer wrote once. In the simulator it is a size and a seed.

use alloc::vec::Vec;

pub use pages::PageSlice;

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
    #[inline]
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
            (first, second) if first.is_empty() => second,
            (Self::Modelled { len_bytes, seed }, second) => {
                Self::Modelled { len_bytes: len_bytes + second.len() as u32, seed }
            }
            (first, second) => {
                let mut slices = first.into_slices();
                match second {
                    Self::Pages(slice) => slices.push(slice),
                    second => slices.append(&mut second.into_slices()),
                }
                Self::PageList(slices)
            }
        }
    }

    fn into_slices(self) -> Vec<PageSlice> {
        match self {
            Self::Pages(slice) => alloc::vec![slice],
            Self::PageList(slices) => slices,
            Self::Modelled { .. } => Vec::new(),
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

/// Takes a bulk apart, from its beginning.
#[derive(Debug)]
pub struct BulkParts {
    slices: alloc::vec::IntoIter<PageSlice>,
    /// What is left of the slice that was begun.
    begun: PageSlice,
    modelled: Option<(u32, u32)>,
}

impl BulkParts {
    /// All of it is left.
    pub fn new(bulk: Bulk) -> Self {
        let (slices, begun, modelled) = match bulk {
            Bulk::Pages(slice) => (Vec::new(), slice, None),
            Bulk::PageList(slices) => (slices, PageSlice::default(), None),
            Bulk::Modelled { len_bytes, seed } => (Vec::new(), PageSlice::default(), Some((len_bytes, seed))),
        };
        Self { slices: slices.into_iter(), begun, modelled }
    }

    /// The next `len` bytes, or what is left.
    #[inline]
    pub fn take(&mut self, len: usize) -> Bulk {
        let is_whole = self.begun.is_empty() && self.slices.as_slice().first().is_some_and(|slice| slice.len() == len);
        let whole = if is_whole { self.slices.next() } else { None };
        whole.map_or_else(|| self.take_parts(len), Bulk::Pages)
    }

    fn take_parts(&mut self, len: usize) -> Bulk {
        if let Some((left, seed)) = &mut self.modelled {
            let len_bytes = (*left).min(u32::try_from(len).unwrap_or(u32::MAX));
            *left -= len_bytes;
            return Bulk::Modelled { len_bytes, seed: *seed };
        }
        let first = self.take_slice(len);
        if first.len() == len {
            return Bulk::Pages(first);
        }
        let (mut left, mut slices) = (len - first.len(), alloc::vec![first]);
        while left > 0 {
            let slice = self.take_slice(left);
            if slice.is_empty() {
                break;
            }
            left -= slice.len();
            slices.push(slice);
        }
        Bulk::PageList(slices)
    }

    /// At most `len` bytes, none only if none are left.
    fn take_slice(&mut self, len: usize) -> PageSlice {
        if len > 0 && self.begun.is_empty() {
            self.begun = self.slices.find(|slice| !slice.is_empty()).unwrap_or_default();
        }
        self.begun.split_to(len.min(self.begun.len()))
    }
}

impl Default for Bulk {
    fn default() -> Self {
        Self::empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bulk_comes_apart_wherever_its_slices_end() {
        let slice = PageSlice::from_static;
        let bytes = |bulk: Bulk| bulk.slices().iter().flat_map(|slice| slice.as_bytes().to_vec()).collect::<Vec<_>>();
        for bulk in [
            Bulk::Pages(slice(b"abcdefgh")),
            Bulk::PageList(alloc::vec![slice(b"abc"), slice(b""), slice(b"d"), slice(b"efgh")]),
        ] {
            let mut parts = BulkParts::new(bulk);
            let taken = [2, 0, 4, 9, 1].map(|len| bytes(parts.take(len)));
            assert_eq!(taken, [&b"ab"[..], b"", b"cdef", b"gh", b""]);
        }
        let mut modelled = BulkParts::new(Bulk::Modelled { len_bytes: 10, seed: 3 });
        assert_eq!([4, 0, 9].map(|len| modelled.take(len).len()), [4, 0, 6]);
    }
}
