//! Level 2: decides on regions of interest which events are built.

pub(crate) mod farm;
pub mod forced;
pub mod l2pu;
pub mod l2sv;
pub mod outlet;
pub mod overrides;
pub(crate) mod settling;
pub mod steering;
pub(crate) mod undecided;
