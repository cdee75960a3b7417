//! What is said in runs, and who has commanded what: the newest lines.

use std::collections::VecDeque;

use serde::Serialize;

/// A line for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Its place among all that were said, from 1.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The run in which it was said, if one went on.
    pub run: Option<u32>,
    /// How much it matters.
    pub severity: Severity,
    /// The words.
    pub text: String,
}

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// All is as it should be.
    Notice,
    /// Somebody should look.
    Warning,
    /// What was wanted did not come to be.
    Error,
}

/// The newest messages.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    kept: VecDeque<Message>,
    said: u64,
}

impl Messages {
    /// Keeps one, and returns it.
    pub(crate) fn say(&mut self, at_ms: u64, run: Option<u32>, severity: Severity, text: String) -> Message {
        self.said += 1;
        let message = Message { number: self.said, at_ms, run, severity, text };
        if self.kept.len() == MESSAGES_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(message.clone());
        message
    }

    /// Number of the newest one; 0 if nothing was said.
    #[cfg(feature = "otlp")]
    pub(crate) fn newest(&self) -> u64 {
        self.said
    }

    /// Those behind that number, the oldest first.
    pub(crate) fn behind(&self, number: u64) -> Vec<Message> {
        self.kept.iter().filter(|message| message.number > number).cloned().collect()
    }
}

const MESSAGES_KEPT: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_numbered() {
        let mut messages = Messages::default();
        (0..1500).for_each(|index| drop(messages.say(index, None, Severity::Notice, index.to_string())));
        let kept = messages.behind(0);
        assert_eq!((kept.len(), kept[0].number, kept[0].text.as_str()), (1000, 501, "500"));
        assert_eq!(messages.behind(1499).len(), 1);
    }
}
