//! What the catalogue tells of a run.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use partition::summary::{FileSummary, Summary};
use serde::{Serialize, Serializer};

use crate::quality::Quality;

/// Which run of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(pub(crate) i64);

/// A run in one line. In JSON times are of UTC, as in RFC 3339.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Which one it is in the catalogue.
    #[serde(skip)]
    pub id: RunId,
    /// Its number; none of a replay whose files were not opened yet.
    #[serde(rename = "run_number")]
    pub number: Option<u32>,
    /// Name of its partition.
    pub partition: String,
    /// Who took it.
    pub operator: String,
    /// When it began.
    #[serde(serialize_with = "utc")]
    pub began: SystemTime,
    /// When it ended; none while it goes on, and of one whose run control died.
    #[serde(serialize_with = "utc_if_any")]
    pub ended: Option<SystemTime>,
    /// Why it did not end well.
    pub reason: Option<String>,
    /// What it is worth; none while it goes on.
    pub quality: Option<Quality>,
    /// Distinct events recorded.
    pub recorded: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// How many remarks people made.
    #[serde(rename = "remark_count")]
    pub remarks: u64,
}

/// All that is known of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// The run in one line.
    #[serde(flatten)]
    pub entry: Entry,
    /// The configuration in effect, with all defaults and without secrets, as TOML.
    pub configuration: String,
    /// Its summary (DESIGN §7); none before its end.
    pub summary: Option<Summary>,
    /// Its files.
    pub files: Vec<FileSummary>,
    /// What people said of it, the oldest first.
    pub remarks: Vec<Remark>,
}

/// What a person said of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// When.
    #[serde(serialize_with = "utc")]
    pub at: SystemTime,
    /// Who.
    pub author: String,
    /// The words.
    pub text: String,
    /// What the run is worth from then on, if that was changed.
    pub quality: Option<Quality>,
}

fn utc<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&DateTime::<Utc>::from(*time).to_rfc3339_opts(SecondsFormat::Millis, true))
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn utc_if_any<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => utc(time, serializer),
        None => serializer.serialize_none(),
    }
}
