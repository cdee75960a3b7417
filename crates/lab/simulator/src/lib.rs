//! The simulator: whole systems in virtual time, equal for equal seeds.
//!
//! [`engine`] orders events; [`network`] moves messages over simulated Ethernet, [`atm`] cells through switches.
//! [`world`] hosts the real components of `dataflow` on simulated hosts and links. The crate `swarm` draws its
//! partitions and faults from seeds.
#![forbid(unsafe_code)]

pub mod atm;
pub mod engine;
pub mod network;
mod slab;
pub mod world;
