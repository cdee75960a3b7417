//! What may be wrong with a fragment: what its status words say of it, and what people are told.

use core::fmt;

use eformat::{GenericStatus, RobStatus, StatusWord};
use link::{Faults, Flags, Head};

/// Fragments that something is wrong with, by cause, in the order of [`CAUSES`]; since the last run.
#[derive(Default)]
pub(super) struct Marked([u64; CAUSES.len()]);

impl Marked {
    /// What is wrong with a fragment, as far as its source, its link or its checksum says; counted.
    #[inline]
    pub(super) fn status_of(&mut self, head: &Head, faults: Faults) -> StatusWord {
        if faults.is_empty() && !is_damaged(head) { StatusWord::GOOD } else { self.count(head, faults) }
    }

    fn count(&mut self, head: &Head, faults: Faults) -> StatusWord {
        let mut status = (GenericStatus::default(), RobStatus::default());
        for (Cause { flag, fault, generic, rob, .. }, count) in CAUSES.iter().zip(&mut self.0) {
            if head.flags.intersects(*flag) || faults.intersects(*fault) {
                *count += 1;
                status = (status.0 | *generic, status.1 | *rob);
            }
        }
        StatusWord::rob(status.0, status.1)
    }

    pub(super) fn are_none(&self) -> bool {
        self.0 == [0; CAUSES.len()]
    }
}

impl fmt::Display for Marked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (cause, count) in CAUSES.iter().zip(&self.0).filter(|(_, count)| **count > 0) {
            write!(f, "{separator}{count} {}", cause.words)?;
            separator = ", ";
        }
        Ok(())
    }
}

/// Whether the source says that a fragment is not as it was.
pub(super) fn is_damaged(head: &Head) -> bool {
    head.flags.intersects(Flags::TRANSMISSION_ERROR | Flags::CUT)
}

/// What may be wrong with a fragment, and what is said of it.
struct Cause {
    flag: Flags,
    fault: Faults,
    generic: GenericStatus,
    rob: RobStatus,
    words: &'static str,
}

impl Cause {
    const fn of_link(fault: Faults, rob: RobStatus, words: &'static str) -> Self {
        let rob = rob.union(RobStatus::LINK_ERROR);
        Self { flag: Flags::empty(), fault, generic: GenericStatus::empty(), rob, words }
    }
}

const CAUSES: [Cause; 6] = [
    Cause {
        generic: GenericStatus::DATA_CORRUPTION,
        ..Cause::of_link(Faults::CHECKSUM, RobStatus::LINK_ERROR, "with a wrong checksum")
    },
    Cause {
        flag: Flags::TRANSMISSION_ERROR,
        ..Cause::of_link(Faults::empty(), RobStatus::LINK_DATA_ERROR, "with a transmission error")
    },
    Cause::of_link(Faults::CONTROL_WORD, RobStatus::LINK_CONTROL_ERROR, "with a damaged control word"),
    Cause::of_link(Faults::NO_BEGIN, RobStatus::NO_BOF, "without a begin"),
    Cause::of_link(Faults::NO_END, RobStatus::NO_EOF, "without an end"),
    Cause {
        flag: Flags::CUT,
        fault: Faults::empty(),
        generic: GenericStatus::empty(),
        rob: RobStatus::TRUNCATED,
        words: "cut",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_word_has_all_that_is_wrong_with_a_fragment() {
        let mut marked = Marked::default();
        assert_eq!(marked.status_of(&Head::default(), Faults::empty()), StatusWord::GOOD);
        assert!(marked.are_none());
        let checksum = marked.status_of(&Head::default(), Faults::CHECKSUM);
        assert_eq!(checksum, StatusWord::rob(GenericStatus::DATA_CORRUPTION, RobStatus::LINK_ERROR));
        let cut = Head { flags: Flags::CUT | Flags::TRANSMISSION_ERROR, ..Head::default() };
        let rob = RobStatus::LINK_ERROR | RobStatus::LINK_DATA_ERROR | RobStatus::NO_EOF | RobStatus::TRUNCATED;
        assert_eq!(marked.status_of(&cut, Faults::NO_END), StatusWord::rob(GenericStatus::empty(), rob));
        // It is no fault of the link.
        let cut = Head { flags: Flags::CUT, ..Head::default() };
        let truncated = StatusWord::rob(GenericStatus::empty(), RobStatus::TRUNCATED);
        assert_eq!(marked.status_of(&cut, Faults::empty()), truncated);
        let words = "1 with a wrong checksum, 1 with a transmission error, 1 without an end, 2 cut";
        assert_eq!(marked.to_string(), words);
    }
}
