//! Hosts that are not there, for run control that is.
//!
//! One process emulates all hosts of a partition. Each has the real service of an agent over a connection of its own. Each
//! application joins, and answers run control by its real component. Applications have no connections to each other, so no data
//! move. Run control launches a [program](launcher::program) in the place of `weir agent`, which tells the [farm].
#![forbid(unsafe_code)]

mod application;
pub mod farm;
mod host;
pub mod launcher;
mod sockets;
