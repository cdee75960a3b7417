//! Sources that send by themselves, as the ends of their links see them.

use alloc::borrow::ToOwned;
use alloc::string::String;

/// A source at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceNow {
    /// How far it is.
    pub phase: SourcePhase,
    /// Whether it was told to send nothing for now (XOFF).
    pub is_off: bool,
    /// The number of the fragment that came last. Where the source says none, fragments are counted.
    pub number: u64,
    /// The end of that fragment in ns, by the clock of the source; 0 if it says none.
    pub time_ns: u64,
    /// The last words of the source, or about it, in at most [`STATUS_BYTES_MAX`] bytes.
    pub status: String,
}

/// How far a source is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SourcePhase {
    /// It is not there.
    #[default]
    Absent = 0,
    /// It is there.
    Connected = 1,
    /// It waits for a run.
    Configured = 2,
    /// It was told that a run has begun.
    Started = 3,
    /// It was told that the run ends.
    Stopped = 4,
}

impl SourceNow {
    /// Keeps as much of the text as there is room for.
    pub fn say(&mut self, text: &str) {
        let len = (0..=STATUS_BYTES_MAX.min(text.len())).rev().find(|len| text.is_char_boundary(*len));
        self.status = text[..len.unwrap_or(0)].to_owned();
    }
}

impl SourcePhase {
    /// From the wire value.
    pub const fn from_u8(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Absent),
            1 => Some(Self::Connected),
            2 => Some(Self::Configured),
            3 => Some(Self::Started),
            4 => Some(Self::Stopped),
            _ => None,
        }
    }
}

/// What is kept of a text that a source says: a report has one of each.
pub const STATUS_BYTES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_letters() {
        let mut now = SourceNow::default();
        now.say("armed");
        assert_eq!(now.status, "armed");
        now.say(&"ä".repeat(STATUS_BYTES_MAX));
        assert_eq!(now.status, "ä".repeat(STATUS_BYTES_MAX / 2));
        let odd = "x".to_owned() + &"ä".repeat(STATUS_BYTES_MAX);
        now.say(&odd);
        assert_eq!(now.status.len(), STATUS_BYTES_MAX - 1);
    }
}
