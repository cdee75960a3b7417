//! All protocol logic of Weir: pure state machines, one per role of the dataflow.
//!
//! Nothing in here does I/O, reads a clock, starts a thread, or draws a random number that a seed does not fix. The
//! crate is `no_std`, and a test checks its list of dependencies. The same source runs in real processes and in
//! virtual time.
//!
//! The modules follow the data: [`level1`] issues triggers, [`readout`] keeps fragments, [`roc`] makes crates of it, [`level2`]
//! decides which events are built. [`building`] builds them, [`filter`] selects, [`recording`] records. Every role is a
//! [`component::Component`] behind a [`node::Node`]. The crate `control` conducts runs and draws up their accounts.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod building;
pub mod component;
pub(crate) mod ending;
pub mod filter;
pub(crate) mod groups;
pub mod ledger;
pub mod level1;
pub mod level2;
pub mod message;
pub mod node;
pub mod readout;
pub mod recording;
pub mod report;
pub mod roc;
pub mod turns;
pub mod window;
pub mod wire;
pub mod work_kind;
