//! The event filter: decides on built events which are recorded.

pub mod efd;
pub mod policy;
pub mod streams;
