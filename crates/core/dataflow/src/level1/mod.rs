//! Level 1: where events begin.

pub mod external;
pub mod kept;
pub mod led;
pub mod roib;
pub mod source;
pub mod trigger;

pub use timing::{dead_time, pace, sliced};
