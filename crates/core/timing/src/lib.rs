//! What belongs together in time.
//!
//! An event is an [`Interval`] of time. A source sends [chunks](chunks::Chunks), each of which covers an interval of its own. An event has
//! the chunks that meet it, so that one may be in several events. All times are in ns of one clock.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod chunks;
mod interval;

pub use interval::Interval;
