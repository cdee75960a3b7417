//! Handles on pages of event data.
//!
//! A [`PageSlice`] is a part of a page that is not written any more. It counts as a holder in the [`PageHeader`] of
//! its page. The page's [owner](PageOwner) says where that is: a pool keeps it among its pages, a link beside what
//! another process has lent. So making, cloning or dropping a handle is one atomic operation on one cache line (but
//! for a page's last). Nothing is allocated.
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
//! Who makes the first slice of a page ([`PageSlice::first`], [`PageSlice::beside_writer`]) promises this. As long as a
//! slice of the page counts, header, owner and bytes stay where they are, and the bytes do not change. All other slices
//! are parts of one that counts. A slice counts until it is dropped, once. The owner takes the last one back (`let_go`)
//! and still finds the header there. Counting off is a release, and finding the page without slices an acquire. So all
//! reading has happened before the page is written again.

#![no_std]

extern crate alloc;

mod header;
mod slice;

pub use header::{Left, PageHeader, PageOwner};
pub use slice::PageSlice;
