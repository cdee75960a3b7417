//! What the system costs on this machine.
//!
//! [`mod@bench`] sets the system beside the bare machine doing the same work. [`calibration`] measures what the inputs of
//! components cost, for simulations.
#![forbid(unsafe_code)]

pub mod bench;
pub mod calibration;
pub mod lossy;
