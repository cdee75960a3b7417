//! Markers, versions and word offsets of all fragments, pinned at compile time.

/// Marker words (format note §1).
pub mod marker {
    /// Full event fragment.
    pub const FULL_EVENT: u32 = 0xaa12_34aa;
    /// Sub-detector fragment (event format 3.0).
    pub const SUB_DETECTOR: u32 = 0xbb12_34bb;
    /// ROS fragment (event format 3.0).
    pub const ROS: u32 = 0xcc12_34cc;
    /// ROB fragment.
    pub const ROB: u32 = 0xdd12_34dd;
    /// ROD fragment.
    pub const ROD: u32 = 0xee12_34ee;
}

/// ROD version written: major 3.1, minor 0 (the minor is the detector's own).
pub const ROD_VERSION: u32 = 0x0301_0000;

/// Words of a ROD header.
pub const ROD_HEADER_WORDS: usize = 9;
/// Words of a ROD trailer.
pub const ROD_TRAILER_WORDS: usize = 3;
/// Words of a ROB header with one status word.
pub const ROB_HEADER_WORDS: usize = generic::fixed_words(1);
/// Words of a ROB with one ROB status word, one ROD status word, no data and no checksum.
pub const EMPTY_ROB_WORDS: usize = ROB_HEADER_WORDS + ROD_HEADER_WORDS + 1 + ROD_TRAILER_WORDS;
/// Words of a full event header of format 5.0 without status, trigger info and stream tags.
pub const EVENT_HEADER_WORDS_MIN: usize = event5::COUNTED_WORDS;

/// Generic header, format note §2.
pub(crate) mod generic {
    pub(crate) const MARKER: usize = 0;
    pub(crate) const FRAGMENT_SIZE: usize = 1;
    pub(crate) const HEADER_SIZE: usize = 2;
    pub(crate) const VERSION: usize = 3;
    pub(crate) const SOURCE_ID: usize = 4;
    pub(crate) const STATUS_COUNT: usize = 5;
    pub(crate) const STATUS: usize = 6;
    /// Smallest header: no status word.
    pub(crate) const WORDS_MIN: usize = fixed_words(0);

    /// Words before the specific header, with `status` status words.
    pub(crate) const fn fixed_words(status: usize) -> usize {
        STATUS + status + 1
    }
}

/// Specific header of a full event of format 5.0, relative to the end of the generic one, note §3a.
pub(crate) mod event5 {
    pub(crate) const SECONDS: usize = 0;
    pub(crate) const NANOSECONDS: usize = 1;
    pub(crate) const GLOBAL_ID_LOW: usize = 2;
    pub(crate) const GLOBAL_ID_HIGH: usize = 3;
    pub(crate) const RUN_TYPE: usize = 4;
    pub(crate) const RUN_NUMBER: usize = 5;
    pub(crate) const LUMI_BLOCK: usize = 6;
    pub(crate) const LVL1_ID: usize = 7;
    pub(crate) const BCID: usize = 8;
    pub(crate) const TRIGGER_TYPE: usize = 9;
    pub(crate) const COMPRESSION: usize = 10;
    pub(crate) const UNPACKED_WORDS: usize = 11;
    pub(crate) const INFO: usize = 12;
    /// The constant of the rule "header size = 23 + N + n1 + n2 + n3 + n4".
    pub(crate) const COUNTED_WORDS: usize = super::generic::WORDS_MIN + INFO + 4;
}

/// Specific header of a full event of format 4.0, note §3b.
pub(crate) mod event4 {
    pub(crate) const SECONDS: usize = 0;
    pub(crate) const NANOSECONDS: usize = 1;
    pub(crate) const GLOBAL_ID: usize = 2;
    pub(crate) const RUN_TYPE: usize = 3;
    pub(crate) const RUN_NUMBER: usize = 4;
    pub(crate) const LUMI_BLOCK: usize = 5;
    pub(crate) const LVL1_ID: usize = 6;
    pub(crate) const BCID: usize = 7;
    pub(crate) const TRIGGER_TYPE: usize = 8;
    pub(crate) const INFO: usize = 9;
    /// The constant of the rule "header size = 20 + N + n1 + n2 + n3 + n4".
    pub(crate) const COUNTED_WORDS: usize = super::generic::WORDS_MIN + INFO + 4;
}

/// Specific header of a full event of format 3.0, note §2a.
pub(crate) mod event3 {
    pub(crate) const SECONDS: usize = 0;
    pub(crate) const GLOBAL_ID: usize = 1;
    pub(crate) const RUN_NUMBER: usize = 2;
    pub(crate) const LVL1_ID: usize = 3;
    pub(crate) const TRIGGER_TYPE: usize = 4;
    pub(crate) const LVL2_INFO: usize = 5;
    pub(crate) const EVENT_FILTER_INFO: usize = 6;
    pub(crate) const EVENT_FILTER_WORDS: usize = 4;
    pub(crate) const WORDS: usize = EVENT_FILTER_INFO + EVENT_FILTER_WORDS;
    pub(crate) const ROS_WORDS: usize = 3;
}

/// ROD header and, counted from the end, trailer, note §5.
pub(crate) mod rod {
    pub(crate) const MARKER: usize = 0;
    pub(crate) const HEADER_SIZE: usize = 1;
    pub(crate) const VERSION: usize = 2;
    pub(crate) const SOURCE_ID: usize = 3;
    pub(crate) const RUN_NUMBER: usize = 4;
    pub(crate) const LVL1_ID: usize = 5;
    pub(crate) const BCID: usize = 6;
    pub(crate) const TRIGGER_TYPE: usize = 7;
    pub(crate) const EVENT_TYPE: usize = 8;
    pub(crate) const TRAILER_STATUS_COUNT: usize = 3;
    pub(crate) const TRAILER_DATA_COUNT: usize = 2;
    pub(crate) const TRAILER_POSITION: usize = 1;
}

const _: () = {
    assert!(generic::WORDS_MIN == 7 && ROB_HEADER_WORDS == 8);
    assert!(generic::STATUS == generic::STATUS_COUNT + 1 && generic::SOURCE_ID == 4);
    assert!(event5::COUNTED_WORDS == 23 && event4::COUNTED_WORDS == 20);
    assert!(event5::INFO == event5::UNPACKED_WORDS + 1 && event4::INFO == event4::TRIGGER_TYPE + 1);
    assert!(event3::WORDS == 10 && event3::ROS_WORDS == 3);
    assert!(ROD_HEADER_WORDS == rod::EVENT_TYPE + 1 && ROD_HEADER_WORDS == 9);
    assert!(ROD_TRAILER_WORDS == rod::TRAILER_STATUS_COUNT);
    assert!(ROD_HEADER_WORDS + ROD_TRAILER_WORDS == 12 && EMPTY_ROB_WORDS == 21);
};
