//! How the members of a run find each other, prove that they belong to it, are lost, and return: pure state machines.
//!
//! [`registrar::Registrar`] is run control's side, [`participant::Participant`] that of an application. Each is told what
//! happens on connections and to processes, and says what is to be done through a trait that its driver implements. The live
//! driver is in `partition`; the simulator drives the same two through drawn faults. [`challenge`] holds the proofs, and
//! [`passage`] what a connection lets through behind them. [`door`] is about those that have not proved anything, [`agents`] about applications on several hosts.
//!
//! `docs/protocols/joining.md` describes the protocol.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod agents;
pub mod challenge;
pub mod door;
pub mod frame_numbers;
pub mod participant;
pub mod passage;
pub mod registrar;
pub mod restarts;
pub mod run_secret;
pub mod severity;

use base::ids::RunNumber;

/// An application that joins a partition for several runs proves that before any of them.
pub const NO_RUN: RunNumber = RunNumber(0);
