//! Recording: accepted events into files.

pub mod recorded;
pub mod sfo;
