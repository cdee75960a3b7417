//! A read-out crate `[DAQ1999]`: read-out systems behind a TRG, their front, and before an EBIF, which gives out their data.

pub mod ebif;
mod gathering;
pub mod trg;
mod windows;

use alloc::vec::Vec;

use base::ids::NodeId;

/// A read-out system of a crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrateRos {
    /// Where it is.
    pub node: NodeId,
    /// Source identifiers of its ROBs.
    pub robs: Vec<u32>,
}
