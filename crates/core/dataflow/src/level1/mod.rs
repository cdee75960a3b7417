//! Level 1: where events begin.

pub mod dead_time;
pub mod external;
pub mod kept;
pub mod led;
pub(crate) mod owed;
pub mod pace;
pub mod roib;
pub mod source;
pub mod trigger;
