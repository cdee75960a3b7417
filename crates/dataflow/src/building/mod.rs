//! Event building: who builds which event, and how.

pub mod assignment;
pub mod clears;
pub mod dfm;
pub mod sfi;
