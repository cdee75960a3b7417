//! Event building: who builds which event, and how.

pub mod assignment;
pub(crate) mod collected;
pub mod dfm;
pub mod sfi;
