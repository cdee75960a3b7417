//! What is said in runs, and who has commanded what: the newest lines.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;

pub use catalogue::{Message, Severity, Sought};

/// How much a message of a run matters.
pub(crate) fn severity_of(severity: partition::Severity) -> Severity {
    match severity {
        partition::Severity::Notice => Severity::Notice,
        partition::Severity::Warning => Severity::Warning,
        partition::Severity::Error => Severity::Error,
    }
}

/// What is to be said.
#[derive(Debug)]
pub(crate) struct Saying {
    pub(crate) at_ms: u64,
    pub(crate) run: Option<u32>,
    pub(crate) severity: Severity,
    pub(crate) text: String,
    pub(crate) causes: Vec<String>,
}

/// The newest messages.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Names of the applications.
    applications: BTreeSet<String>,
    kept: VecDeque<Message>,
    said: u64,
}

impl Messages {
    /// Of a partition with these applications, and with the newest ones of a former service.
    pub(crate) fn of(applications: impl IntoIterator<Item = String>, restored: &[Message]) -> Self {
        let said = restored.last().map_or(0, |newest| newest.number);
        let kept = restored[restored.len().saturating_sub(MESSAGES_KEPT)..].iter().cloned().collect();
        Self { applications: applications.into_iter().collect(), kept, said }
    }

    /// From now on the applications have these names.
    pub(crate) fn rename(&mut self, applications: impl IntoIterator<Item = String>) {
        self.applications = applications.into_iter().collect();
    }

    /// Keeps one, and returns it. A warning or an error that was said a short while ago is counted instead.
    ///
    /// One that goes on gets a new number each minute, for those who ask behind the last number. Notices say who has commanded
    /// what: each is kept.
    pub(crate) fn say(&mut self, saying: Saying) -> Message {
        let Saying { at_ms, run, severity, text, causes } = saying;
        let is_same = |message: &&mut Message| {
            severity >= Severity::Warning
                && message.text == text
                && (message.run, message.severity) == (run, severity)
                && message.causes == causes
                && at_ms.saturating_sub(message.at_ms) <= REPEATED_WITHIN_MS
        };
        if let Some(message) = self.kept.iter_mut().rev().take(LOOKED_AT).find(is_same) {
            message.repeats += 1;
            message.last_ms = at_ms;
            return message.clone();
        }
        self.said += 1;
        let application = self.subject(&text).or_else(|| causes.iter().find_map(|cause| self.subject(cause)));
        let (number, repeats, last_ms) = (self.said, 0, at_ms);
        let message = Message { number, at_ms, run, application, severity, text, causes, repeats, last_ms };
        if self.kept.len() == MESSAGES_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(message.clone());
        message
    }

    /// The first application that a sentence names says it, or it is about that one.
    fn subject(&self, text: &str) -> Option<String> {
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '-'));
        words.find_map(|word| self.applications.get(word)).cloned()
    }

    /// Number of the newest one; 0 if nothing was said.
    #[cfg(feature = "otlp")]
    pub(crate) fn newest(&self) -> u64 {
        self.said
    }

    /// Number of the oldest one that is here; of the next one, if none is.
    pub(crate) fn oldest(&self) -> u64 {
        self.kept.front().map_or(self.said + 1, |oldest| oldest.number)
    }

    /// Those that are sought, the oldest first.
    pub(crate) fn find(&self, sought: &Sought) -> Vec<Message> {
        let Ok(found) = sought.among(self.kept.iter().rev().cloned().map(Ok::<_, Infallible>));
        found
    }
}

const MESSAGES_KEPT: usize = 1000;
/// Of these a new message may be a repetition.
const LOOKED_AT: usize = 16;
const REPEATED_WITHIN_MS: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(at_ms: u64, text: &str) -> Saying {
        Saying { at_ms, run: None, severity: Severity::Notice, text: text.to_owned(), causes: Vec::new() }
    }

    fn warning(at_ms: u64, text: &str) -> Saying {
        Saying { severity: Severity::Warning, ..notice(at_ms, text) }
    }

    #[test]
    fn the_newest_are_kept_and_numbered() {
        let mut messages = Messages::default();
        (0..1500).for_each(|index| drop(messages.say(notice(index, &index.to_string()))));
        let kept = messages.find(&Sought::default());
        assert_eq!((kept.len(), kept[0].number, kept[0].text.as_str()), (1000, 501, "500"));
        assert_eq!(messages.find(&Sought::behind(1499)).len(), 1);
    }

    #[test]
    fn what_is_said_again_within_a_minute_is_counted() {
        let mut messages = Messages::default();
        for at_ms in [0, 10, 60_000, 60_001, 120_001] {
            messages.say(warning(at_ms, "full"));
            messages.say(Saying { run: Some(1), ..warning(at_ms, "full") });
        }
        let told: Vec<_> =
            messages.find(&Sought::default()).into_iter().map(|m| (m.number, m.run, m.repeats, m.last_ms)).collect();
        let expected = [(1, None, 2, 60_000), (2, Some(1), 2, 60_000), (3, None, 1, 120_001), (4, Some(1), 1, 120_001)];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_said_all_the_time_gets_a_new_number_each_minute() {
        let mut messages = Messages::default();
        (0..3600).for_each(|s| drop(messages.say(warning(s * 1000, "full"))));
        let told: Vec<_> = messages.find(&Sought::default()).iter().map(|m| (m.number, m.at_ms)).collect();
        assert_eq!((told.len(), told[1], told[58]), (60, (2, 61_000), (59, 3_538_000)));
    }

    #[test]
    fn notices_are_all_kept() {
        let mut messages = Messages::default();
        (0..2).for_each(|at_ms| drop(messages.say(notice(at_ms, "anna commands"))));
        let told: Vec<_> = messages.find(&Sought::default()).iter().map(|m| (m.number, m.repeats)).collect();
        assert_eq!(told, [(1, 0), (2, 0)]);
    }

    #[test]
    fn a_message_is_of_the_first_application_that_it_names() {
        let messages = Messages::of(["sfi-1", "dfm"].map(str::to_owned), &[]);
        let of = |text| messages.subject(text);
        assert_eq!(of("no run has begun: sfi-1 could not start").as_deref(), Some("sfi-1"));
        assert_eq!(of("\"dfm\" waits for sfi-1.").as_deref(), Some("dfm"));
        assert_eq!(of("sfi-12 and my-dfm are others"), None);
    }

    #[test]
    fn a_message_that_names_none_is_of_the_one_that_its_causes_name() {
        let mut messages = Messages::of(["sfi-1", "dfm"].map(str::to_owned), &[]);
        let causes = ["an order", "sfi-1 could not start", "dfm"].map(str::to_owned).to_vec();
        let message = messages.say(Saying { causes: causes.clone(), ..warning(0, "no run has begun") });
        assert_eq!((message.application.as_deref(), message.causes), (Some("sfi-1"), causes));
    }

    #[test]
    fn a_service_goes_on_with_the_numbers_of_the_one_before() {
        let mut former = Messages::default();
        (0..1500).for_each(|index| drop(former.say(warning(index, &index.to_string()))));
        let restored = former.find(&Sought::default());
        let mut messages = Messages::of([], &restored);
        assert_eq!((messages.oldest(), messages.say(notice(2000, "new")).number), (501, 1501));
        assert_eq!(messages.say(warning(2000, "1499")).repeats, 1, "it was said a short while ago");
        assert_eq!(messages.find(&Sought { newest: Some(2), before: Some(1500), ..Sought::default() })[0].number, 1498);
        assert_eq!(Messages::default().oldest(), 1);
    }

    #[test]
    fn messages_are_sought_by_all_that_they_say() {
        let mut messages = Messages::of(["sfi-1", "sfi-12", "dfm"].map(str::to_owned), &[]);
        messages.say(notice(0, "sfi-12: no room"));
        let causes = vec!["killed by SIGKILL".to_owned()];
        messages.say(Saying { run: Some(7), severity: Severity::Error, causes, ..notice(1, "sfi-1 died") });
        messages.say(Saying { severity: Severity::Warning, ..notice(2, "dfm: No room") });
        messages.say(notice(3, "nobody commands"));
        let numbers = |sought: Sought| -> Vec<u64> { messages.find(&sought).iter().map(|m| m.number).collect() };
        let of = |name: &str| Sought { application: Some(name.to_owned()), ..Sought::default() };
        assert_eq!(numbers(of("sfi-1")), [2]);
        assert_eq!(numbers(of("sfi")), [1, 2]);
        assert!(numbers(of("nobody")).is_empty());
        assert_eq!(numbers(Sought { severity: Some(Severity::Warning), ..Sought::default() }), [2, 3]);
        assert_eq!(numbers(Sought { run: Some(7), ..Sought::default() }), [2]);
        assert_eq!(numbers(Sought { words: Some("no ROOM".to_owned()), ..Sought::behind(1) }), [3]);
        assert_eq!(numbers(Sought { words: Some("sigkill".to_owned()), ..Sought::default() }), [2], "of causes, too");
    }
}
