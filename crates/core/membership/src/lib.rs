//! How the members of a run find each other, prove that they belong to it, are lost, and return: pure state machines.
//!
//! `docs/protocols/joining.md` describes the protocol.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate alloc;

pub mod challenge;
pub mod frame_numbers;
pub mod run_secret;
