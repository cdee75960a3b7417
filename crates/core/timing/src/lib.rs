//! When triggers are offered, and what belongs together in time.
//!
//! An event is an [`Interval`] of time. A source sends [chunks](chunks::Chunks), each of which covers an interval of its own. An event has
//! the chunks that meet it, so that one may be in several events. All times are in ns of one clock.
//!
//! Sources have [clocks](clock::Clock) of their own, and may [slip](slip::Slips): lose a trigger that others have.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod chunks;
pub mod clock;
pub mod compare;
pub mod dead_time;
mod interval;
pub mod pace;
pub mod sliced;
pub mod slices;
pub mod slip;
pub mod unwrap;

pub use interval::Interval;
