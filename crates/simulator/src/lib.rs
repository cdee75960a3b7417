//! The simulator: whole systems in virtual time, equal for equal seeds.
//!
//! [`engine`] orders events; [`network`] moves messages over simulated Ethernet; hosts that run the real components of
//! `dataflow` stand on these two.
#![forbid(unsafe_code)]

pub mod atm;
pub mod engine;
pub mod network;
