//! What of a device did not become fragments.

use core::fmt;
use core::ops::{AddAssign, Sub};

/// What did not become fragments, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Frames that the counter of the device has counted, and that did not come, or too late to be put in order.
    pub missing: u64,
    /// Frames that came twice, or too late.
    pub repeated: u64,
    /// Frames that are not as described, or what could not be taken apart into frames.
    pub malformed: u64,
    /// Datagrams of others than the device.
    pub foreign: u64,
    /// Datagrams that came when there was no run.
    pub outside: u64,
    /// Datagrams that the kernel has dropped, since nobody had room for them.
    pub unread: u64,
}

impl Losses {
    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    fn each(&self) -> [(u64, &'static str); 6] {
        [
            (self.missing, "missing"),
            (self.repeated, "repeated or late"),
            (self.malformed, "not as described"),
            (self.foreign, "of others"),
            (self.outside, "outside of the run"),
            (self.unread, "dropped by the kernel"),
        ]
    }
}

impl AddAssign for Losses {
    fn add_assign(&mut self, other: Self) {
        self.missing += other.missing;
        self.repeated += other.repeated;
        self.malformed += other.malformed;
        self.foreign += other.foreign;
        self.outside += other.outside;
        self.unread += other.unread;
    }
}

impl Sub for Losses {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            missing: self.missing - other.missing,
            repeated: self.repeated - other.repeated,
            malformed: self.malformed - other.malformed,
            foreign: self.foreign - other.foreign,
            outside: self.outside - other.outside,
            unread: self.unread - other.unread,
        }
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (count, words) in self.each().into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{separator}{count} {words}")?;
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}
