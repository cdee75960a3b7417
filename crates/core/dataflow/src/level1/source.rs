//! Sources of the content of triggers.

use alloc::vec::Vec;

use crate::message::Roi;

/// What a trigger carries, apart from its number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trigger {
    /// Bunch crossing.
    pub bcid: u16,
    /// Level-1 trigger type.
    pub trigger_type: u8,
    /// Items that fired, after their prescale.
    pub items: u32,
    /// Regions of interest.
    pub rois: Vec<Roi>,
}

/// Gives triggers their content: an emulator, a physics sample, or a recorded file.
pub trait TriggerSource {
    /// The trigger with this ordinal; `None` when there are no more.
    fn trigger(&mut self, ordinal: u64) -> Option<Trigger>;
}
