//! Run control: one table of states, one controller, one account.

pub mod accounting;
pub mod controller;
pub mod lives;
pub mod losses;
pub mod states;
