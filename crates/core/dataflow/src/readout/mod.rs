//! The read-out system: buffers that keep the fragments of each link until level 2 and building are done with them.

pub mod clear_sequence;
pub mod cleared_ids;
pub mod clears;
pub(crate) mod few_events;
pub mod fragment;
pub mod pusher;
pub(crate) mod replies;
mod requests;
pub mod rob;
pub mod ros;
pub(crate) mod showing;
pub mod valid_bound;

pub use timing::{lateness, rule, slices, watch};
