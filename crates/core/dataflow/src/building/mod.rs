//! Event building: who builds which event, and how.

pub(crate) mod ahead;
mod asked;
pub mod assignment;
pub(crate) mod byte_credits;
pub(crate) mod collected;
pub mod destinations;
pub mod dfm;
pub(crate) mod directing;
mod held;
pub mod push_control;
pub mod pushed;
pub mod request_credits;
pub mod sfi;

pub use byte_credits::EVENT_BYTES;
