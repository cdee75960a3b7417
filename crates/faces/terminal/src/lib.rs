//! What all commands of Weir share: how they end ([`Exit`]), what they say and where ([`complain`],
//! [`on_standard_streams`]). Also how a user interrupts them ([`Interrupts`]), how
//! they [`conduct`] runs, and the options that several of them take.
#![forbid(unsafe_code)]

mod conducting;
mod exit;
mod interrupts;
mod options;
mod streams;

pub use conducting::{ConductError, conduct};
pub use exit::Exit;
pub use interrupts::Interrupts;
pub use options::{Limits, Overrides};
pub use streams::{can_hold_a_file, complain, on_standard_streams, print_table, quiet};
