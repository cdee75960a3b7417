//! How the members of a run find each other, prove that they belong to it, are lost, and return: pure state machines.
//!
//! [`registrar::Registrar`] is run control's side, [`participant::Participant`] that of an application. Each is told what
//! happens on connections and to processes, and says what is to be done through a trait that its driver implements. The
//! simulator drives both through drawn faults. Of these a live run takes the proofs so far, which [`challenge`] holds, and sees to
//! the rest itself. [`passage`] says what a connection lets through behind the proofs.
//!
//! `docs/protocols/joining.md` describes the protocol.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod challenge;
pub mod frame_numbers;
pub mod participant;
pub mod passage;
pub mod registrar;
pub mod restarts;
pub mod run_secret;

use base::ids::Incarnation;

/// The life of an application that was not started again.
pub const FIRST_LIFE: Incarnation = Incarnation(0);
