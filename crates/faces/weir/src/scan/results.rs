//! What came of the points of a scan: a line of JSON for each try, written when it is over.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use catalogue::Quality;
use partition::summary::Summary;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::plan::{Plan, Point};

/// What came of one try of a point.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Try {
    /// Its number in the plan, from 1.
    pub point: usize,
    /// Which try it was, from 1.
    pub attempt: u32,
    /// The value of each axis.
    pub settings: Map<String, Value>,
    /// What all points have in common: [`Plan::common`].
    #[serde(default)]
    pub common: String,
    /// What the run is worth; none if none began.
    pub quality: Option<Quality>,
    /// Why the run was not good, or did not begin.
    pub reason: Option<String>,
    /// Whether somebody has ended the run before its limit.
    #[serde(default)]
    pub interrupted: bool,
    /// All that the run tells.
    pub summary: Option<Summary>,
}

/// The file of results, open for more.
pub(super) struct Results {
    path: PathBuf,
    file: File,
    /// The numbers of the points that were taken well before.
    taken: BTreeSet<usize>,
}

/// Why there is no place for results.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoResults {
    #[error("{0}: another scan writes its results there")]
    Used(PathBuf),
    #[error(
        "{0}, line {1}: it was taken with another configuration, `set`, `processes` or `prepare`: with these, --results FILE writes others"
    )]
    Different(PathBuf, usize),
    #[error("{0} has the results of a scan: --resume goes on with it, --results FILE writes others")]
    There(PathBuf),
    #[error("{0}, line {1}: expected a result of a scan, as JSON: {2}")]
    Wrong(PathBuf, usize, serde_json::Error),
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
}

impl Results {
    /// Opens a file without results; to resume, one that may have some of the same plan. Those of `plan.accept` or better count as taken.
    pub(super) fn open(path: &Path, resume: bool, plan: &Plan) -> Result<Self, NoResults> {
        let failed = |error| NoResults::File(path.into(), error);
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => NoResults::Used(path.into()),
            TryLockError::Error(error) => failed(error),
        })?;
        if !resume && file.metadata().map_err(failed)?.len() > 0 {
            return Err(NoResults::There(path.into()));
        }
        let (mut taken, mut whole) = (BTreeSet::new(), 0);
        let (mut lines, mut line) = (BufReader::new(&file), String::new());
        for number in 1.. {
            line.clear();
            let length = lines.read_line(&mut line).map_err(failed)?;
            // A process that was ended in the middle of a line leaves a part of it, which is no result.
            if !line.ends_with('\n') {
                break;
            }
            whole += length as u64;
            let result: Result<Try, _> = serde_json::from_str(&line);
            let result = result.map_err(|error| NoResults::Wrong(path.into(), number, error))?;
            if result.common != plan.common {
                return Err(NoResults::Different(path.into(), number));
            }
            if result.is_taken(plan.accept) {
                // The axes may be longer now. Of points that are equal, each needs a result of its own.
                let is_meant =
                    |point: &&Point| !taken.contains(&point.number) && is_same(&settings(point), &result.settings);
                taken.extend(plan.points.iter().find(is_meant).map(|point| point.number));
            }
        }
        file.set_len(whole).map_err(failed)?;
        Ok(Self { path: path.into(), file, taken })
    }

    /// Whether the point was taken well before.
    pub(super) fn has(&self, point: &Point) -> bool {
        self.taken.contains(&point.number)
    }

    /// Keeps a result, whatever happens to this process.
    pub(super) fn add(&mut self, taken: &Try) -> Result<(), NoResults> {
        let line = serde_json::to_string(taken).expect("numbers, strings and lists are JSON") + "\n";
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| NoResults::File(self.path.clone(), error))
    }
}

impl Try {
    /// Whether the run is of `accept` or better, and has reached its limit.
    pub(super) fn is_taken(&self, accept: Quality) -> bool {
        let rank = |quality| Quality::ALL.iter().position(|known| *known == quality);
        !self.interrupted && self.quality.is_some_and(|quality| rank(quality) <= rank(accept))
    }
}

/// The values of a point, by axis.
pub(super) fn settings(point: &Point) -> Map<String, Value> {
    let value = |value| serde_json::to_value(value).expect("a value of TOML is one of JSON");
    point.settings.iter().map(|setting| (setting.name.clone(), value(&setting.value))).collect()
}

/// Whether both have the same values. A number that is read from a file may have lost its last digit.
fn is_same(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let is_near = |a: &Value, b: &Value| match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || is_close(a.as_f64(), b.as_f64()),
        _ => a == b,
    };
    one.len() == other.len() && one.iter().all(|(name, a)| other.get(name).is_some_and(|b| is_near(a, b)))
}

fn is_close(a: Option<f64>, b: Option<f64>) -> bool {
    a.zip(b).is_some_and(|(a, b)| (a - b).abs() <= a.abs() * 2.0 * f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_same_when_it_comes_from_a_file() {
        let map = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let float = |value: f64| Map::from_iter([("a".to_owned(), Value::from(value))]);
        let value = 3.123_456_789_012e-11_f64;
        assert!(is_same(&float(value), &float(f64::from_bits(value.to_bits() + 1))));
        assert!(!is_same(&float(1e15), &map("{\"a\": 1000000000000001}")));
        assert!(!is_same(&map("{\"a\": 1}"), &map("{\"b\": 1}")));
        assert!(!is_same(&map("{\"a\": \"1 V\"}"), &map("{\"a\": \"2 V\"}")));
    }
}
