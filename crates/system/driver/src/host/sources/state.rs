//! How far the source of a link is: what it was told, and what it has said last.

use base::sources::{SourceNow, SourcePhase};
use dataflow::component::LinkOrder;

/// The state of a source, as its link knows it.
#[derive(Default)]
pub(super) struct SourceState {
    /// Whether it is there, and what it was told.
    is_there: bool,
    is_started: bool,
    pub(super) is_stopped: bool,
    pub(super) is_off: bool,
    /// What it has said last; what it is doing is in the fields above.
    last: SourceNow,
}

impl SourceState {
    /// It is told to do this.
    pub(super) fn order(&mut self, order: LinkOrder) {
        match order {
            LinkOrder::Start => (self.is_started, self.is_stopped) = (true, false),
            LinkOrder::Stop => self.is_stopped = true,
            LinkOrder::Off => self.is_off = true,
            LinkOrder::On => self.is_off = false,
        }
    }

    /// It is there, or is not; with what is to be said of that.
    pub(super) fn set_there(&mut self, is_there: bool, status: &str) {
        self.is_there = is_there;
        self.last.say(status);
    }

    /// A fragment has come with this number and these times.
    pub(super) fn on_fragment(&mut self, number: u64, time: Option<(u64, u64)>) {
        self.last.number = number;
        self.last.time_ns = time.map_or(self.last.time_ns, |(_, end)| end);
    }

    /// What it says of itself. Whether that is a message for people.
    pub(super) fn on_status(&mut self, text: &str) -> bool {
        let before = core::mem::take(&mut self.last.status);
        self.last.say(text);
        !differ_by_numbers_alone(&before, &self.last.status)
    }

    /// For those who watch the run.
    pub(super) fn now(&self, is_configured: bool) -> SourceNow {
        let phase = match self {
            _ if !self.is_there => SourcePhase::Absent,
            _ if self.is_stopped => SourcePhase::Stopped,
            _ if self.is_started => SourcePhase::Started,
            _ if is_configured => SourcePhase::Configured,
            _ => SourcePhase::Connected,
        };
        SourceNow { phase, is_off: self.is_off, ..self.last.clone() }
    }
}

/// A source tells every second how far it is: that is in the view of sources, and no message.
fn differ_by_numbers_alone(before: &str, now: &str) -> bool {
    let words = |text: &str| text.replace(|c: char| c.is_ascii_digit() || "+-.".contains(c), "");
    !before.is_empty() && words(before) == words(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_message_when_its_words_change() {
        let counts = ["event 12", "event 2041"];
        assert!(differ_by_numbers_alone(counts[0], counts[1]) && differ_by_numbers_alone("9.5 V, -3 A", "10 V, 3 A"));
        assert!(!differ_by_numbers_alone("", counts[0]) && !differ_by_numbers_alone(counts[1], "event 2041, armed"));
    }

    #[test]
    fn a_source_is_as_far_as_it_was_told_while_it_is_there() {
        let mut state = SourceState::default();
        let phase = |state: &SourceState| state.now(true).phase;
        assert_eq!(phase(&state), SourcePhase::Absent);
        state.set_there(true, "");
        assert_eq!((state.now(false).phase, phase(&state)), (SourcePhase::Connected, SourcePhase::Configured));
        state.order(LinkOrder::Start);
        assert_eq!(phase(&state), SourcePhase::Started);
        state.order(LinkOrder::Stop);
        assert_eq!(phase(&state), SourcePhase::Stopped);
        state.order(LinkOrder::Start);
        state.order(LinkOrder::Off);
        assert_eq!((phase(&state), state.now(true).is_off), (SourcePhase::Started, true));
        state.order(LinkOrder::On);
        state.set_there(false, "lost");
        let lost = state.now(true);
        assert_eq!((lost.phase, lost.is_off, lost.status.as_str()), (SourcePhase::Absent, false, "lost"));
    }

    #[test]
    fn a_fragment_without_a_time_leaves_the_last_one() {
        let mut state = SourceState::default();
        state.on_fragment(4, Some((90, 95)));
        state.on_fragment(5, None);
        assert_eq!((state.now(true).number, state.now(true).time_ns), (5, 95));
    }
}
