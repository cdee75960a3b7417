//! Handles on pages of event data.
//!
//! A [`PageSlice`] is a part of a page that is not written any more. It counts as a holder in the [`PageHeader`] of its
//! page, wherever the page's [owner](PageOwner) keeps that: a pool among its pages', a link among those of what another
//! process has lent. So a handle is made, cloned and dropped with one atomic operation on one cache line (but for
//! a page's last), and nothing is allocated for it.
//!
//! ```
//! use pages::PageSlice;
//! let whole = PageSlice::from(vec![1, 2, 3, 4]);
//! let part = whole.slice(1..3);
//! drop(whole);
//! assert_eq!(part.as_bytes(), [2, 3]);
//! ```
//!
//! # Why this is sound
//! What it takes is promised by who makes the first slice of a page ([`PageSlice::first`], [`PageSlice::beside_writer`]):
//! header, owner and bytes stay where they are, and the bytes do not change, as long as a slice of the page counts. All other
//! slices are parts of one that counts. The count of a slice ends when it is dropped, once; the last one's ends in the
//! owner's hands (`let_go`), which therefore still finds the header there. Counting off is a release and finding the page
//! without slices an acquire, so that all reading has happened before the page is written again.

#![no_std]

extern crate alloc;

mod header;
mod slice;

pub use header::{Left, PageHeader, PageOwner};
pub use slice::PageSlice;
