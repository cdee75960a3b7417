//! The summary of a run against the rules of accounting and against the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::files;
use crate::running::Ended;

/// A summary that has been read.
pub(crate) struct Summary(pub(crate) Value);

impl Ended {
    /// Asserts that the run ended well and that everything adds up.
    pub(crate) fn expect_ok(self) -> (Self, Summary) {
        let (ended, summary) = self.expect(0).expect_account("ok");
        assert_eq!(summary.0.get("reason"), None);
        assert_eq!(
            (summary.losses(), summary.count("duplicates")),
            (BTreeMap::new(), 0),
            "{summary:?}\n{}",
            ended.stderr
        );
        (ended, summary)
    }

    /// Asserts that the run ended in order and that everything adds up. Events are lost or incomplete for exactly these
    /// causes, and the run says so.
    pub(crate) fn expect_degraded(self, causes: &[&str]) -> (Self, Summary) {
        let (ended, summary) = self.expect(4).expect_account("degraded");
        let losses = summary.losses();
        assert!(
            losses.keys().eq(causes.iter().collect::<BTreeSet<_>>()),
            "{causes:?} in {summary:?}\n{}",
            ended.stderr
        );
        let last = ended.stdout.lines().last().unwrap_or_default();
        assert!(
            last.contains("degraded, residual 0: ") && last.contains(summary.0["reason"].as_str().unwrap()),
            "{last}"
        );
        (ended, summary)
    }

    /// Asserts that the run ended in order and that everything adds up: well, or degraded by what the account says.
    pub(crate) fn expect_end(self) -> (Self, Summary) {
        let (ended, summary) = match self.status.code() {
            Some(0) => return self.expect_account("ok"),
            _ => self.expect(4).expect_account("degraded"),
        };
        assert!(!summary.losses().is_empty(), "{summary:?}");
        (ended, summary)
    }

    /// Asserts that the run was cut short for a reason with these words, and that everything adds up nevertheless.
    pub(crate) fn expect_aborted(self, words: &[&str]) -> (Self, Summary) {
        let (ended, summary) = self.expect(3).expect_account("aborted");
        let reason = summary.0["reason"].as_str().unwrap_or_default();
        for word in words {
            assert!(reason.contains(word), "expected {word:?} in {reason:?}\n{}", ended.stderr);
        }
        (ended, summary)
    }

    /// Asserts that the run ended in this state, that the lines of the account hold, and that it agrees with the files.
    pub(crate) fn expect_account(self, state: &str) -> (Self, Summary) {
        let text = fs::read_to_string(self.directory.join("summary.json")).unwrap();
        let summary = Summary(serde_json::from_str(&text).unwrap());
        assert_eq!(summary.0["state"], state, "{summary:?}\n{}", self.stderr);
        summary.check_lines();
        assert!(state != "ok" || summary.losses().is_empty(), "{summary:?}");
        let checked = files::check_all(self.output());
        let listed: Vec<(String, u64)> = summary.files();
        assert_eq!(checked, listed, "the files, against those of the summary\n{}", self.stderr);
        (self, summary)
    }
}

impl Summary {
    /// A count of the account.
    pub(crate) fn count(&self, key: &str) -> u64 {
        self.0["accounting"][key].as_u64().unwrap_or_else(|| panic!("no count {key}: {self:?}"))
    }

    /// Events that are lost, incomplete, or decided without all their data, by cause.
    pub(crate) fn losses(&self) -> BTreeMap<&str, u64> {
        assert!(self.0["degraded_by"].is_object(), "{self:?}");
        self.by_cause("degraded_by")
    }

    fn by_cause(&self, key: &str) -> BTreeMap<&str, u64> {
        let by_cause = self.0[key].as_object().into_iter().flatten();
        by_cause.map(|(cause, events)| (cause.as_str(), events.as_u64().unwrap())).collect()
    }

    /// Files with their events, in the order of their names.
    fn files(&self) -> Vec<(String, u64)> {
        let files = self.0["files"].as_array().unwrap().iter();
        let mut files: Vec<_> =
            files.map(|file| (file["path"].as_str().unwrap().to_owned(), file["events"].as_u64().unwrap())).collect();
        files.sort();
        files
    }

    fn check_lines(&self) {
        let n = |key| self.count(key);
        assert_eq!(n("residual"), 0, "{self:?}");
        assert_eq!(n("level1"), n("level2_rejected") + n("level2_accepted") + n("level2_lost"), "{self:?}");
        assert_eq!(n("level2_accepted"), n("built_complete") + n("built_incomplete") + n("not_built"), "{self:?}");
        let built = n("built_complete") + n("built_incomplete");
        let filtered = n("filter_rejected") + n("filter_accepted") + n("filter_debug");
        assert_eq!(built, filtered + n("lost_after_build"), "{self:?}");
        let passed = n("filter_accepted") + n("filter_debug");
        assert_eq!(n("recorded") + n("lost_in_recording"), passed, "{self:?}");
        let in_files: u64 = self.files().iter().map(|(_, events)| events).sum();
        assert_eq!(n("recorded_copies"), in_files, "{self:?}");
        let losses = LOSSES.into_iter().map(|key| (key, n(key))).filter(|(_, events)| *events > 0);
        let said: BTreeMap<&str, u64> = self.losses().into_iter().chain(self.by_cause("tolerated")).collect();
        assert_eq!(said, losses.collect(), "{self:?}");
        let streams: BTreeSet<&str> =
            self.0["files"].as_array().unwrap().iter().filter_map(|f| f["stream"].as_str()).collect();
        if streams.len() < 2 {
            assert_eq!(n("recorded_copies"), n("recorded"), "one stream: {self:?}");
        }
    }
}

/// Counts of the account that say what makes a run `degraded`.
const LOSSES: [&str; 8] = [
    "level2_lost",
    "level2_forced",
    "level2_incomplete",
    "not_built",
    "built_incomplete",
    "lost_after_build",
    "filter_debug",
    "lost_in_recording",
];

impl core::fmt::Debug for Summary {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}
