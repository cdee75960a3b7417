//! Run control as logic: one table of states, one controller, one account.
//!
//! A [`controller::Controller`] leads a partition through the [state table](states), over messages of `dataflow`. It keeps
//! what all [lives] of an application have counted. From these counts an [account](accounting) is drawn up, and the
//! [losses] of a run are told by cause.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod accounting;
pub mod controller;
pub mod lives;
pub mod losses;
pub mod states;
