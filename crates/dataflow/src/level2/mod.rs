//! Level 2: decides on regions of interest which events are built.

pub mod forced;
pub mod l2pu;
pub mod l2sv;
pub mod steering;
