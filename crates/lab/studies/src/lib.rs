//! The laboratory of Weir: what is measured, not run for data.
//!
//! [`simulation`] puts a configuration on simulated hosts and networks. [`calibration`] measures what inputs cost
//! on this machine. [`mod@bench`] sets the system beside the bare machine, and [`study`] measures figures and
//! tables of the papers again.
#![forbid(unsafe_code)]

pub mod bench;
pub mod calibration;
pub mod lossy;
mod runs;
pub mod simulation;
pub mod study;
