//! Status words (format note §7): what a fragment says about itself.

use std::fmt;

use bitflags::bitflags;

bitflags! {
    /// Low half of the first status word, the same for every fragment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct GenericStatus: u16 {
        /// Bunch crossing check failed.
        const BCID_CHECK = 0x1;
        /// Level-1 id check failed.
        const LVL1_ID_CHECK = 0x2;
        /// Time-out.
        const TIMEOUT = 0x4;
        /// Data corruption.
        const DATA_CORRUPTION = 0x8;
        /// Internal overflow.
        const OVERFLOW = 0x10;
        /// Dummy fragment.
        const DUMMY = 0x20;
        const _ = !0;
    }
}

bitflags! {
    /// High half of the first status word of a ROB from a read-out buffer.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct RobStatus: u16 {
        /// Trigger type sync error: low 3 bits of the event id do not match the trigger type.
        const TRIGGER_TYPE_SYNC = 0x0001;
        /// Word count does not match header + trailer + data + status.
        const FRAGMENT_SIZE = 0x0002;
        /// Link transmission error on a data block.
        const LINK_DATA_ERROR = 0x0004;
        /// Link error on a control word.
        const LINK_CONTROL_ERROR = 0x0008;
        /// Fragment without begin-of-fragment word.
        const NO_BOF = 0x0010;
        /// Begin-of-fragment word before the previous end-of-fragment word.
        const NO_EOF = 0x0020;
        /// Invalid ROD header marker.
        const ROD_MARKER = 0x0040;
        /// Unexpected ROD major format version.
        const ROD_VERSION = 0x0080;
        /// Duplicate event: the same level-1 id replaced an older one.
        const DUPLICATE = 0x0100;
        /// Level-1 id not in sequence with the previous one.
        const SEQUENCE = 0x0200;
        /// General link transmission or formatting error; other bits say which.
        const LINK_ERROR = 0x0400;
        /// Larger than the configured maximum, cut.
        const TRUNCATED = 0x0800;
        /// Less than an empty ROD.
        const SHORT = 0x1000;
        /// No data for the requested level-1 id; an empty fragment was generated.
        const LOST = 0x2000;
        /// No data yet, may still come. Only inside the system, never in a file.
        const PENDING = 0x4000;
        /// Discard mode; an empty fragment was generated.
        const DISCARD = 0x8000;
    }
}

bitflags! {
    /// High half of the first status word of a full event. Each bit is named for both generations of the system
    /// where these differ (old / new).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct EventStatus: u16 {
        /// Level-2 processing time-out.
        const LEVEL2_TIMEOUT = 0x0001;
        /// L2PU processing time-out.
        const L2PU_TIMEOUT = 0x0002;
        /// SFI duplication warning.
        const SFI_DUPLICATION = 0x0004;
        /// DFM / HLT supervisor duplication warning.
        const DFM_DUPLICATION = 0x0008;
        /// Problem of the level-2 steering controller.
        const L2PSC_PROBLEM = 0x0010;
        /// EF / DCM processing time-out.
        const EF_TIMEOUT = 0x0100;
        /// PT / HLTPU processing time-out.
        const PT_TIMEOUT = 0x0200;
        /// SFO / DCM duplication warning.
        const SFO_DUPLICATION = 0x0400;
        /// Event recovered by the EFD / DCM.
        const EFD_RECOVERED = 0x0800;
        /// Problem of the EF steering controller.
        const EFPSC_PROBLEM = 0x1000;
        /// EFD / DCM forced accept.
        const EFD_FORCED_ACCEPT = 0x2000;
        /// Partial event.
        const PARTIAL = 0x8000;
        const _ = !0;
    }
}

/// First status word: generic bits in the low half, bits of the fragment type in the high half. 0 = no known error.
///
/// ```
/// use eformat::{GenericStatus, RobStatus, StatusWord};
/// let lost = StatusWord::rob(GenericStatus::DUMMY, RobStatus::LOST);
/// assert_eq!(lost, StatusWord(0x2000_0020));
/// assert!(lost.as_rob().contains(RobStatus::LOST));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StatusWord(pub u32);

impl StatusWord {
    /// No known error.
    pub const GOOD: Self = Self(0);

    /// Status of an empty ROB generated because the data of the event are not there (and will not come).
    pub const LOST: Self = Self::rob(GenericStatus::DUMMY, RobStatus::LOST);

    /// Status of a ROB.
    pub const fn rob(generic: GenericStatus, specific: RobStatus) -> Self {
        Self((specific.bits() as u32) << 16 | generic.bits() as u32)
    }

    /// Status of a full event.
    pub const fn event(generic: GenericStatus, specific: EventStatus) -> Self {
        Self((specific.bits() as u32) << 16 | generic.bits() as u32)
    }

    /// Whether no error is known.
    pub const fn is_good(self) -> bool {
        self.0 == 0
    }

    /// Bits that every fragment has.
    pub const fn generic(self) -> GenericStatus {
        GenericStatus::from_bits_retain(self.0 as u16)
    }

    /// Specific bits, if the fragment is a ROB from a read-out buffer.
    pub const fn as_rob(self) -> RobStatus {
        RobStatus::from_bits_retain((self.0 >> 16) as u16)
    }

    /// Specific bits, if the fragment is a full event.
    pub const fn as_event(self) -> EventStatus {
        EventStatus::from_bits_retain((self.0 >> 16) as u16)
    }
}

impl fmt::Display for StatusWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// Second status word of a full event that failed in the event filter (note §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum OnlineErrorCode {
    /// Unclassified.
    Unclassified = 0,
    /// Before the next event.
    BeforeNextEvent = 1,
    /// The event cannot be retrieved.
    CannotRetrieveEvent = 2,
    /// No event information.
    NoEventInfo = 3,
    /// Scheduling failure.
    SchedulingFailure = 4,
    /// The slot cannot be accessed.
    CannotAccessSlot = 5,
    /// Processing failure.
    ProcessingFailure = 6,
    /// No result.
    NoHltResult = 7,
    /// Output could not be built.
    OutputBuildFailure = 8,
    /// Output could not be sent.
    OutputSendFailure = 9,
    /// After the result was sent.
    AfterResultSent = 10,
    /// Conditions update.
    CoolUpdate = 11,
    /// Time-out.
    Timeout = 12,
    /// The result was cut.
    ResultTruncation = 13,
    /// The CTP fragment is missing.
    MissingCtpFragment = 14,
    /// The CTP fragment is bad.
    BadCtpFragment = 15,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_the_word() {
        let status = StatusWord(0x0802_000c);
        assert_eq!(status.generic(), GenericStatus::TIMEOUT | GenericStatus::DATA_CORRUPTION);
        assert_eq!(status.as_rob(), RobStatus::TRUNCATED | RobStatus::FRAGMENT_SIZE);
        assert_eq!(status.as_event(), EventStatus::EFD_RECOVERED | EventStatus::L2PU_TIMEOUT);
        assert_eq!(StatusWord::rob(status.generic(), status.as_rob()), status);
        assert_eq!(StatusWord::event(status.generic(), status.as_event()), status);
    }
}
