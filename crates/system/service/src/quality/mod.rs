//! Histograms of a run beside their references, and alarms.

mod compare;
mod histogram;
mod own;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use compare::{Comparison, Test};
pub use histogram::{BadHistogram, Histogram};
pub(crate) use own::Own;

/// A histogram of this run, and what a comparison with its reference says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Judged {
    /// Who has filled it: `system`, or the name of a client.
    pub by: String,
    /// When it came, in milliseconds since 1970.
    pub at_ms: u64,
    /// The run.
    pub run: Option<u32>,
    /// Its entries, those outside its bins too.
    pub entries: f64,
    /// What the comparison found; none without a reference, or with too few entries.
    pub comparison: Option<Comparison>,
    /// Why it cannot be compared with its reference.
    pub problem: Option<String>,
    /// It differs from its reference by more than chance explains.
    pub alarm: bool,
    /// The histogram itself.
    pub histogram: Histogram,
    /// Its reference.
    pub reference: Option<Histogram>,
}

impl Judged {
    fn head(&self) -> Head<'_> {
        Head {
            name: &self.histogram.name,
            title: &self.histogram.title,
            by: &self.by,
            at_ms: self.at_ms,
            run: self.run,
            entries: self.entries,
            comparison: self.comparison,
            problem: self.problem.as_deref(),
            alarm: self.alarm,
        }
    }
}

/// A file of references.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct References {
    /// Each with how it is compared.
    pub histograms: Vec<Histogram>,
}

/// Why references cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum BadReferences {
    #[error("control.references {}: {cause}", path.display())]
    File { path: PathBuf, cause: std::io::Error },
    #[error("control.references {}: {cause}; expected a file as /api/references gives it", path.display())]
    Json { path: PathBuf, cause: serde_json::Error },
    #[error("control.references {}: {cause}", path.display())]
    Histogram { path: PathBuf, cause: BadHistogram },
}

/// Why a histogram is not kept.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum NotKept {
    #[error(transparent)]
    Bad(#[from] BadHistogram),
    #[error("histogram {0:?}: names that begin with `system.` are those of the system")]
    OfSystem(String),
    #[error("histogram {0:?} of {1} is that of another client; expected a name of its own")]
    OfAnother(String, String),
    #[error("histogram {0:?}: there are {HISTOGRAMS_MAX} already, and no room for more")]
    TooMany(String),
}

/// What a list says of a histogram.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Head<'a> {
    name: &'a str,
    title: &'a str,
    by: &'a str,
    at_ms: u64,
    run: Option<u32>,
    entries: f64,
    comparison: Option<Comparison>,
    problem: Option<&'a str>,
    alarm: bool,
}

/// The histograms of the run that goes on, or of the last one.
#[derive(Debug, Default)]
pub(crate) struct Quality {
    references: BTreeMap<String, Histogram>,
    judged: BTreeMap<String, Judged>,
}

impl References {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn read(path: &Path) -> Result<Self, BadReferences> {
        let path = path.to_owned();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(cause) => return Err(BadReferences::File { path, cause }),
        };
        let read: Self = match serde_json::from_str(&text) {
            Ok(read) => read,
            Err(cause) => return Err(BadReferences::Json { path, cause }),
        };
        let checked: Result<_, _> = read.histograms.into_iter().map(Histogram::checked).collect();
        checked.map(|histograms| Self { histograms }).map_err(|cause| BadReferences::Histogram { path, cause })
    }
}

impl Quality {
    /// Without histograms yet.
    pub(crate) fn with(references: References) -> Self {
        let references = references.histograms.into_iter().map(|histogram| (histogram.name.clone(), histogram));
        Self { references: references.collect(), judged: BTreeMap::new() }
    }

    /// A run begins; nothing of the one before is left.
    pub(crate) fn begin(&mut self) {
        self.judged.clear();
    }

    /// Keeps what a client has filled, in the place of what it has posted before; what people should read, if its alarm has changed.
    pub(crate) fn post(
        &mut self,
        by: &str,
        when: (u64, Option<u32>),
        histogram: Histogram,
    ) -> Result<Option<(bool, String)>, NotKept> {
        let histogram = histogram.checked()?;
        let name = &histogram.name;
        if name.starts_with(OF_SYSTEM) {
            return Err(NotKept::OfSystem(name.clone()));
        }
        match self.judged.get(name) {
            Some(before) if before.by != by => Err(NotKept::OfAnother(name.clone(), before.by.clone())),
            None if self.judged.len() >= HISTOGRAMS_MAX => Err(NotKept::TooMany(name.clone())),
            _ => Ok(self.judge(by, when, histogram)),
        }
    }

    /// Keeps a histogram, compares it with its reference, and says how its alarm has changed.
    pub(crate) fn judge(
        &mut self,
        by: &str,
        (at_ms, run): (u64, Option<u32>),
        histogram: Histogram,
    ) -> Option<(bool, String)> {
        let name = histogram.name.clone();
        let had_alarm = self.judged.get(&name).is_some_and(|before| before.alarm);
        let reference = self.references.get(&name).cloned();
        let has_other_bins = reference.as_ref().is_some_and(|reference| !reference.is_binned_as(&histogram));
        let problem = has_other_bins.then(|| "its reference has other bins".to_owned());
        let compared = reference.as_ref().filter(|_| !has_other_bins);
        let comparison =
            compared.and_then(|reference| reference.test.compare(&histogram.all_counts(), &reference.all_counts()));
        let limit = compared.map_or(0.0, |reference| reference.limit);
        // An alarm that has come goes when chance explains the difference well.
        let limit = if had_alarm { limit.sqrt().min(limit * AGAIN_WELL) } else { limit };
        let alarm = comparison.is_some_and(|found| found.probability < limit);
        let entries = histogram.entries();
        let title = if histogram.title.is_empty() { &name } else { &histogram.title };
        let words = (alarm != had_alarm).then(|| match comparison {
            Some(Comparison { probability, .. }) if alarm => {
                format!("{title} differs from its reference: by chance in {:.0e} of all cases", probability.max(1e-300))
            }
            Some(_) => format!("{title} agrees with its reference again"),
            None => format!("{title} cannot be compared with its reference any more"),
        });
        let judged =
            Judged { by: by.to_owned(), at_ms, run, entries, comparison, problem, alarm, histogram, reference };
        self.judged.insert(name, judged);
        words.map(|words| (alarm, words))
    }

    /// All of them, by name.
    pub(crate) fn heads(&self) -> Vec<Head<'_>> {
        self.judged.values().map(Judged::head).collect()
    }

    /// The one of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Judged> {
        self.judged.get(name)
    }

    /// How many differ from their references.
    pub(crate) fn alarms(&self) -> usize {
        self.judged.values().filter(|judged| judged.alarm).count()
    }

    /// The histograms as references for later runs; how they are compared stays, and what has not come in this run.
    pub(crate) fn to_references(&self) -> References {
        let mut all = self.references.clone();
        for judged in self.judged.values() {
            let mut histogram = judged.histogram.clone();
            if let Some(before) = all.get(&histogram.name) {
                (histogram.test, histogram.limit) = (before.test, before.limit);
            }
            all.insert(histogram.name.clone(), histogram);
        }
        References { histograms: all.into_values().collect() }
    }
}

/// Of names of histograms that the system fills.
pub(crate) const OF_SYSTEM: &str = "system.";
/// Those of the system with them.
const HISTOGRAMS_MAX: usize = 256;
const AGAIN_WELL: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(name: &str, counts: [f64; 3]) -> Histogram {
        let text = format!(r#"{{"name": "{name}", "edges": [0, 1, 2, 3], "counts": [0, 0, 0]}}"#);
        Histogram { counts: counts.to_vec(), ..serde_json::from_str(&text).unwrap() }
    }

    #[test]
    fn an_alarm_comes_once_and_goes_when_all_is_well() {
        let mut quality = Quality::with(References { histograms: vec![histogram("a", [1e4, 2e4, 1e4])] });
        let mut post = |counts| quality.post("task", (1, Some(1)), histogram("a", counts)).unwrap();
        assert_eq!(post([1.0, 9.0, 1.0]), None, "too few");
        assert_eq!(post([110.0, 195.0, 104.0]), None);
        let (alarm, words) = post([500.0, 200.0, 100.0]).unwrap();
        assert!(alarm && words.starts_with("a differs from its reference"), "{words}");
        assert_eq!(post([600.0, 210.0, 110.0]), None, "as before");
        assert_eq!(post([1010.0, 2000.0, 1000.0]), Some((false, "a agrees with its reference again".to_owned())));
        assert_eq!((quality.alarms(), quality.heads().len()), (0, 1));
        quality.begin();
        assert_eq!(quality.heads().len(), 0);
    }

    #[test]
    fn clients_have_names_of_their_own_and_little_room() {
        let mut quality = Quality::default();
        let mut post = |by: &str, name: &str| quality.post(by, (1, None), histogram(name, [1.0; 3]));
        assert_eq!(post("one", "a"), Ok(None));
        assert_eq!(post("one", "a"), Ok(None));
        assert_eq!(post("other", "a"), Err(NotKept::OfAnother("a".into(), "one".into())));
        assert_eq!(post("one", "system.size"), Err(NotKept::OfSystem("system.size".into())));
        (1..HISTOGRAMS_MAX).for_each(|index| assert_eq!(post("one", &index.to_string()), Ok(None)));
        assert_eq!(post("one", "b"), Err(NotKept::TooMany("b".into())));
        assert_eq!(post("one", "a"), Ok(None), "what is there may change");
    }

    #[test]
    fn references_are_what_was_shown_and_other_bins_are_a_problem() {
        let mut first = Quality::default();
        first.post("task", (1, None), histogram("a", [50.0, 60.0, 70.0])).unwrap();
        let text = serde_json::to_string(&first.to_references()).unwrap();
        let folder = testkit::TempDir::new("references");
        fs::write(folder.join("references.json"), &text).unwrap();
        let mut second = Quality::with(References::read(&folder.join("references.json")).unwrap());
        second.post("task", (1, None), histogram("a", [50.0, 60.0, 70.0])).unwrap();
        let judged = second.get("a").unwrap();
        assert_eq!(judged.comparison.map(|found| found.probability), Some(1.0), "{judged:?}");
        let other = Histogram { edges: vec![0.0, 1.0, 2.0, 4.0], ..histogram("a", [1.0; 3]) };
        second.post("task", (1, None), other).unwrap();
        assert_eq!(second.get("a").unwrap().problem.as_deref(), Some("its reference has other bins"));
        for (text, why) in [("{", "expected a file as /api/references"), (&text.replace("50.0", "-1"), "counts from 0")]
        {
            fs::write(folder.join("references.json"), text).unwrap();
            let error = References::read(&folder.join("references.json")).unwrap_err().to_string();
            assert!(error.contains("control.references") && error.contains(why), "{error}");
        }
    }
}
