//! When triggers are offered, and what belongs together in time.
//!
//! An event is an [`Interval`] of time. A source sends [chunks](chunks::Chunks), each of which covers an interval of its own. An event has
//! the chunks that meet it, so that one may be in several events. All times are in ns of one clock. Events are [slices](slices::Slices)
//! of time, or a trigger each; a [rule](rule::Rule) for each source says what they take of it.
//!
//! Sources have [clocks](clock::Clock) of their own, and may [slip](slip::Slips): lose a trigger that others have. A [watch](watch::Watch)
//! keeps an eye on all of a read-out system.
//!
//! What a read-out system pushes goes at a [rate](rate_division::RateDivision).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod chunks;
pub mod clock;
pub mod coincidence;
pub mod compare;
pub mod dead_time;
pub mod handshake;
mod interval;
pub mod lateness;
pub mod owed;
pub mod pace;
pub mod rate_division;
pub mod rule;
pub mod sliced;
pub mod slices;
pub mod slip;
pub mod unwrap;
pub mod watch;

pub use interval::Interval;
