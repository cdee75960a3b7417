//! A second source of the same name: it takes the place of one that does not answer.

use std::time::Duration;

use base::time::Time;

/// The question whether the source that is connected still lives. The kernel knows that of a process that has ended, and of a host
/// that is gone. It does not know it of a process that is stopped.
#[derive(Debug, Default)]
pub(super) struct Question {
    asked: Option<Time>,
    is_answered: bool,
}

/// What becomes of a second source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is turned away, and the first one is asked.
    Ask,
    /// It is turned away: the first one has time to answer.
    Wait,
    /// It takes the place of the first one, which has not answered.
    Replace,
}

impl Question {
    /// A second source is there.
    pub(super) fn judge(&mut self, now: Time) -> Verdict {
        match self.asked {
            Some(asked) if now.since(asked) < ANSWER_WITHIN => Verdict::Wait,
            Some(_) if !self.is_answered => Verdict::Replace,
            _ => {
                *self = Self { asked: Some(now), is_answered: false };
                Verdict::Ask
            }
        }
    }

    /// The source that is connected has said something, or could not.
    pub(super) fn answer(&mut self) {
        self.is_answered = true;
    }
}

/// Twice as long as a source may leave an order waiting unless it says otherwise.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use base::time::Time;

    use super::{Question, Verdict};

    #[test]
    fn only_who_does_not_answer_is_replaced() {
        let at = |seconds: u64| Time::from_ns(seconds * 1_000_000_000);
        let mut question = Question::default();
        assert_eq!([0, 1, 9].map(|time| question.judge(at(time))), [Verdict::Ask, Verdict::Wait, Verdict::Wait]);
        question.answer();
        assert_eq!([10, 11, 20].map(|time| question.judge(at(time))), [Verdict::Ask, Verdict::Wait, Verdict::Replace]);
    }
}
