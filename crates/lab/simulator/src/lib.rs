//! The simulator: whole systems in virtual time, equal for equal seeds.
//!
//! [`engine`] orders events; [`network`] moves messages over simulated Ethernet, [`atm`] cells through switches.
//! [`world`] hosts the real components of `dataflow` on simulated hosts and links. [`swarm`] draws partitions and
//! faults from seeds and checks every run.
#![forbid(unsafe_code)]

pub mod atm;
pub mod engine;
pub mod network;
mod slab;
pub mod swarm;
pub mod world;
