//! Who may go on with a run in the place of a source that was lost.

/// Whether anybody may follow the source of a link in this run.
pub(super) struct Succession {
    returning: Returning,
    /// Nobody may, since it has sent fragments that only it counts.
    is_last: bool,
}

/// Whether a source that was lost may go on with the run. One that counts by itself does not know what it has missed: its fragments would
/// get the numbers of other events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Returning {
    Always,
    IfNumbered,
    Never,
}

impl Returning {
    /// Of a source with numbers of its own, of so many bits if they are few.
    pub(super) fn of_bits(bits: Option<u32>) -> Self {
        if bits.is_some() { Self::Never } else { Self::IfNumbered }
    }
}

impl Succession {
    pub(super) fn new(returning: Returning) -> Self {
        Self { returning, is_last: false }
    }

    pub(super) fn on_fragment(&mut self, has_number: bool) {
        self.is_last |= match self.returning {
            Returning::Always => false,
            Returning::IfNumbered => !has_number,
            Returning::Never => true,
        };
    }

    /// The source has ended. If it was told to stop, what follows it waits for the next run.
    pub(super) fn on_ended(&mut self, is_stopped: bool) {
        self.is_last &= !is_stopped;
    }

    /// Why nobody may follow it.
    pub(super) fn refusal(&self) -> Option<&'static str> {
        self.is_last.then_some(COUNTS_ITSELF)
    }
}

/// Why a source may not return.
const COUNTS_ITSELF: &str =
    "it counts by itself, so nobody knows to which events it would go on; it may return with the next run";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_counts_by_itself_is_the_last_one_of_its_run() {
        for (returning, of_numbered, of_counted) in [
            (Returning::Always, None, None),
            (Returning::IfNumbered, None, Some(COUNTS_ITSELF)),
            (Returning::Never, Some(COUNTS_ITSELF), Some(COUNTS_ITSELF)),
        ] {
            let mut succession = Succession::new(returning);
            assert_eq!(succession.refusal(), None, "{returning:?}: it has sent nothing");
            succession.on_fragment(true);
            assert_eq!(succession.refusal(), of_numbered, "{returning:?}");
            succession.on_fragment(false);
            succession.on_fragment(true);
            assert_eq!(succession.refusal(), of_counted, "{returning:?}");
            succession.on_ended(false);
            assert_eq!(succession.refusal(), of_counted, "{returning:?}: the run goes on");
            succession.on_ended(true);
            assert_eq!(succession.refusal(), None, "{returning:?}: the next run");
        }
    }

    #[test]
    fn few_bits_do_not_say_how_much_was_missed() {
        assert_eq!([Some(15), None].map(Returning::of_bits), [Returning::Never, Returning::IfNumbered]);
    }
}
