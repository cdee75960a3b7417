//! The tables of the file, one type each; a field is a key, and its documentation is the schema's description.

mod building;
mod readout;
mod recording;
mod system;
mod trigger;

pub use building::{ClearAfter, Dfm, DfmInput, Ef, FilterPolicy, Sfi, SfiAssignment};
pub use readout::{FRAGMENT_OVERHEAD_BYTES, Fragment, FragmentKind, Input, Ros, RosInput, SizeDistribution};
pub use recording::{Checksum, Compression, Dialect, Durability, EventOrder, Output, Sfo};
pub use system::{Identity, Idle, LossAction, OnLoss, Processes, Run, RunType, Secret, Transport};
pub use trigger::{L2pu, L2sv, L2svAssignment, Level1, Level1Source, Spacing, Strategy};
