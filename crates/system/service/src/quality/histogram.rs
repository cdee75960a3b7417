//! A histogram, as clients post it and the page shows it.

use serde::{Deserialize, Serialize};

use super::compare::Test;

/// Counts in bins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Histogram {
    /// Its name: letters, digits and `.`, `_`, `-`.
    pub name: String,
    /// What people read.
    #[serde(default)]
    pub title: String,
    /// What the axis is, with its unit.
    #[serde(default)]
    pub axis: String,
    /// The edges of the bins, rising: one more than there are bins.
    pub edges: Vec<f64>,
    /// Entries of each bin.
    pub counts: Vec<f64>,
    /// Entries below the first bin, and above the last.
    #[serde(default)]
    pub outside: [f64; 2],
    /// Of a reference: how it is compared.
    #[serde(default)]
    pub test: Test,
    /// Of a reference: the alarm comes below this probability.
    #[serde(default = "limit")]
    pub limit: f64,
}

/// What is wrong with a histogram.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("histogram {name:?}: expected {expected}, found {found}")]
pub struct BadHistogram {
    name: String,
    expected: String,
    found: String,
}

impl Histogram {
    /// One of name, title and axis, to be compared as is usual.
    pub(crate) fn of(
        (name, title, axis): (&str, &str, &str),
        edges: Vec<f64>,
        counts: Vec<f64>,
        outside: [f64; 2],
    ) -> Self {
        let [name, title, axis] = [name, title, axis].map(str::to_owned);
        Self { name, title, axis, edges, counts, outside, test: Test::default(), limit: LIMIT }
    }

    /// Checks what comes from outside.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn checked(self) -> Result<Self, BadHistogram> {
        let problem = self.problem();
        problem.map_or(Ok(()), |(expected, found)| {
            let name = self.name.chars().take(NAME_MAX).collect();
            Err(BadHistogram { name, expected, found })
        })?;
        Ok(self)
    }

    /// Whether the bins are the same.
    pub fn is_binned_as(&self, other: &Self) -> bool {
        self.edges == other.edges
    }

    /// The counts of all bins; those outside are the first and the last one.
    pub(crate) fn all_counts(&self) -> Vec<f64> {
        let [below, above] = self.outside;
        core::iter::once(below).chain(self.counts.iter().copied()).chain([above]).collect()
    }

    /// All entries, those outside the bins too.
    pub fn entries(&self) -> f64 {
        self.counts.iter().chain(&self.outside).sum()
    }

    fn problem(&self) -> Option<(String, String)> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_count = |count: &f64| count.is_finite() && (0.0..=COUNT_MAX).contains(count);
        let bins = self.counts.len();
        if self.name.is_empty() || self.name.len() > NAME_MAX || !self.name.chars().all(is_name) {
            return Some((format!("a name of 1 to {NAME_MAX} letters, digits, `.`, `_` and `-`"), "another".into()));
        }
        for text in [&self.title, &self.axis] {
            if text.chars().count() > TEXT_MAX || text.contains(char::is_control) {
                return Some((format!("title and axis of at most {TEXT_MAX} characters in one line"), "more".into()));
            }
        }
        if !(1..=BINS_MAX).contains(&bins) || self.edges.len() != bins + 1 {
            let found = format!("{bins} counts and {} edges", self.edges.len());
            return Some((format!("1 to {BINS_MAX} counts, and one edge more"), found));
        }
        let rise = self.edges.is_sorted_by(|a, b| a < b) && self.edges.iter().all(|edge| edge.is_finite());
        if !rise {
            return Some(("edges that rise".into(), "others".into()));
        }
        if !self.counts.iter().chain(&self.outside).all(is_count) {
            return Some((format!("counts from 0 to {COUNT_MAX:e}"), "others".into()));
        }
        if !(0.0..1.0).contains(&self.limit) {
            return Some(("a limit from 0 to below 1".into(), self.limit.to_string()));
        }
        None
    }
}

fn limit() -> f64 {
    LIMIT
}

/// Once in a hundred thousand comparisons chance alone brings an alarm.
const LIMIT: f64 = 1e-5;
const NAME_MAX: usize = 64;
const TEXT_MAX: usize = 120;
const BINS_MAX: usize = 1000;
/// Below the largest whole number that adding one still changes.
const COUNT_MAX: f64 = 1e15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_histogram_is_refused_with_the_reason() {
        let good = r#"{"name": "charge", "edges": [0, 1, 2.5], "counts": [3, 4], "outside": [0, 1]}"#;
        let read = |text: &str| serde_json::from_str::<Histogram>(text).unwrap().checked();
        assert_eq!(read(good).unwrap().entries(), 8.0);
        for (wrong, why) in [
            (good.replace("charge", ""), "a name of 1 to 64"),
            (good.replace("charge", "../charge"), "a name of 1 to 64"),
            (good.replace("charge", &"a".repeat(65)), "a name of 1 to 64"),
            (good.replace("[3, 4]", "[]"), "found 0 counts and 3 edges"),
            (good.replace("[3, 4]", "[3, 4, 5]"), "found 3 counts and 3 edges"),
            (good.replace("2.5", "1"), "edges that rise"),
            (good.replace("[3, 4]", "[3, -4]"), "counts from 0"),
            (good.replace("[3, 4]", "[3, 1e300]"), "counts from 0"),
            (good.replace("\"edges\"", "\"limit\": 1, \"edges\""), "a limit from 0"),
            (good.replace("\"edges\"", "\"title\": \"a\\nb\", \"edges\""), "in one line"),
        ] {
            let error = read(&wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
        let bins = |count: usize| Histogram {
            edges: (0..=count).map(|edge| edge as f64).collect(),
            counts: vec![0.0; count],
            ..read(good).unwrap()
        };
        assert!(bins(1000).checked().is_ok() && bins(1001).checked().is_err());
    }
}
