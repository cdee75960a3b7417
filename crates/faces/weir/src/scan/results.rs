//! What came of the points of a scan: a line of JSON for each try, written when it is over.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use catalogue::Quality;
use partition::summary::Summary;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::plan::Point;

/// What came of one try of a point.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Taken {
    /// Its number in the plan, from 1.
    pub point: usize,
    /// Which try it was, from 1.
    pub attempt: u32,
    /// The value of each axis.
    pub settings: Map<String, Value>,
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
    /// The settings with which a point was taken well.
    taken: Vec<Map<String, Value>>,
}

/// Why there is no place for results.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoResults {
    #[error("{0} has the results of a scan: --resume goes on with it, --results FILE writes others")]
    There(PathBuf),
    #[error("{0}, line {1}: expected a result of a scan, as JSON: {2}")]
    Wrong(PathBuf, usize, serde_json::Error),
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
}

impl Results {
    /// Opens a new file; to resume, one that may have results. Those of `accept` or better count as taken.
    pub(super) fn open(path: &Path, resume: bool, accept: Quality) -> Result<Self, NoResults> {
        let failed = |error| NoResults::File(path.into(), error);
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        let file = if resume { options.create(true).open(path) } else { options.create_new(true).open(path) };
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => NoResults::There(path.into()),
            _ => failed(error),
        })?;
        let (mut taken, mut whole) = (Vec::new(), 0);
        let (mut lines, mut line) = (BufReader::new(&file), String::new());
        for number in 1.. {
            line.clear();
            let length = lines.read_line(&mut line).map_err(failed)?;
            // A process that was ended in the middle of a line leaves a part of it, which is no result.
            if !line.ends_with('\n') {
                break;
            }
            whole += length as u64;
            let result: Result<Taken, _> = serde_json::from_str(&line);
            let result = result.map_err(|error| NoResults::Wrong(path.into(), number, error))?;
            if result.is_taken(accept) {
                taken.push(result.settings);
            }
        }
        file.set_len(whole).map_err(failed)?;
        Ok(Self { path: path.into(), file, taken })
    }

    /// Whether the point was taken well before.
    pub(super) fn has(&self, point: &Point) -> bool {
        self.taken.contains(&settings(point))
    }

    /// Keeps a result, whatever happens to this process.
    pub(super) fn add(&mut self, taken: &Taken) -> Result<(), NoResults> {
        let line = serde_json::to_string(taken).expect("numbers, strings and lists are JSON") + "\n";
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| NoResults::File(self.path.clone(), error))
    }
}

impl Taken {
    /// Whether the run is of `accept` or better, and has reached its limit.
    pub(super) fn is_taken(&self, accept: Quality) -> bool {
        let rank = |quality| Quality::ALL.iter().position(|known| *known == quality);
        !self.interrupted && self.quality.is_some_and(|quality| rank(quality) <= rank(accept))
    }
}

/// The values of a point, by axis; as they are read from a file, where numbers may lose their last digit.
pub(super) fn settings(point: &Point) -> Map<String, Value> {
    let read = |value| serde_json::to_string(value).and_then(|text| serde_json::from_str(&text));
    let value = |value| read(value).expect("a value of TOML is one of JSON");
    point.settings.iter().map(|setting| (setting.name.clone(), value(&setting.value))).collect()
}
