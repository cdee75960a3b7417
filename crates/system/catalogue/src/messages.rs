//! What was said of runs and between them, kept for those who look later.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags, Row, TransactionBehavior, params};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use crate::error::CatalogueError;
use crate::store::{BUSY, to_ms};

/// A line for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Its place among all that were said of its partition, from 1.
    pub number: u64,
    /// When it was said first, in milliseconds since 1970.
    pub at_ms: u64,
    /// The run in which it was said, if one went on.
    pub run: Option<u32>,
    /// The application that says it, or that it is about, if it is one.
    pub application: Option<String>,
    /// How much it matters.
    pub severity: Severity,
    /// The words.
    pub text: String,
    /// What led to it, the nearest cause first.
    pub causes: Vec<String>,
    /// How often a warning or an error was said again in the minute behind the first time. It keeps its number.
    pub repeats: u64,
    /// When it was said last.
    pub last_ms: u64,
}

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// All is as it should be.
    Notice,
    /// Somebody should look.
    Warning,
    /// What was wanted did not come to be.
    Error,
}

/// Which messages somebody wants: the newest of all, unless it says more.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Sought {
    /// Those behind this number.
    pub behind: u64,
    /// Those before this number.
    pub before: Option<u64>,
    /// The newest of them, so many; without it [`NEWEST`].
    #[serde(deserialize_with = "few")]
    pub newest: Option<u32>,
    /// Those that matter at least so much.
    pub severity: Option<Severity>,
    /// Those of this application, or of a role, such as `sfi-1` or `sfi`.
    pub application: Option<String>,
    /// Those of this run.
    pub run: Option<u32>,
    /// Those with these words, in whatever case, also in a cause.
    #[serde(deserialize_with = "short")]
    pub words: Option<String>,
}

/// So many messages are found, unless somebody wants more or fewer.
pub const NEWEST: u32 = 1000;

impl Severity {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What is none of the severities.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected notice, warning or error, found {0:?}")]
pub struct NoSeverity(String);

impl FromStr for Severity {
    type Err = NoSeverity;

    fn from_str(text: &str) -> Result<Self, NoSeverity> {
        let found = [Self::Notice, Self::Warning, Self::Error].into_iter().find(|severity| severity.name() == text);
        found.ok_or_else(|| NoSeverity(text.to_owned()))
    }
}

impl Sought {
    /// All behind this number.
    pub fn behind(behind: u64) -> Self {
        Self { behind, ..Self::default() }
    }

    /// How many at most.
    pub fn limit(&self) -> usize {
        self.newest.unwrap_or(NEWEST) as usize
    }

    /// The sought ones of `messages`, which come the newest first. They are returned the oldest first.
    ///
    /// # Errors
    /// The first that `messages` have, before there are enough.
    pub fn among<E>(&self, messages: impl Iterator<Item = Result<Message, E>>) -> Result<Vec<Message>, E> {
        let words = self.words.as_deref().map(str::to_lowercase);
        let is_sought =
            |message: &Result<Message, E>| message.as_ref().map_or(true, |it| self.is(it, words.as_deref()));
        let mut found = messages.filter(is_sought).take(self.limit()).collect::<Result<Vec<_>, E>>()?;
        found.reverse();
        Ok(found)
    }

    /// Whether it is one of these; the words are in lower case.
    fn is(&self, message: &Message, words: Option<&str>) -> bool {
        let Self { behind, before, severity, application, run, .. } = self;
        let of = |name: &String| {
            let said = message.application.as_deref().and_then(|said| said.strip_prefix(name.as_str()));
            said.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        message.number > *behind
            && before.is_none_or(|before| message.number < before)
            && severity.is_none_or(|least| message.severity >= least)
            && run.is_none_or(|run| message.run == Some(run))
            && application.as_ref().is_none_or(of)
            && words.is_none_or(|words| {
                let mut sentences = std::iter::once(&message.text).chain(&message.causes);
                sentences.any(|sentence| sentence.to_lowercase().contains(words))
            })
    }
}

/// The messages of the partitions of a catalogue, in a file beside it. Whoever writes messages holds up nobody who begins a run, and whoever
/// reads them waits for no writer, not even for one that hangs.
#[derive(Debug)]
pub struct MessageStore {
    database: Connection,
    path: PathBuf,
}

impl MessageStore {
    /// Opens the messages of this catalogue, or begins them where no file is: that of `runs.sqlite` is `runs.sqlite.messages`.
    ///
    /// # Errors
    /// The file cannot be read or written, or is something else.
    pub fn beside(catalogue: &Path) -> Result<Self, CatalogueError> {
        Self::open(file_of(catalogue), OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens the messages of this catalogue, if there are any.
    ///
    /// # Errors
    /// The file cannot be read, or is something else.
    pub fn existing(catalogue: &Path) -> Result<Option<Self>, CatalogueError> {
        let path = file_of(catalogue);
        path.is_file().then(|| Self::open(path, OpenFlags::empty())).transpose()
    }

    fn open(path: PathBuf, further: OpenFlags) -> Result<Self, CatalogueError> {
        let failed = failed(&path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | further;
        let mut database = Connection::open_with_flags(&path, flags).map_err(&failed)?;
        database.busy_timeout(BUSY).map_err(&failed)?;
        let found = match version(&database).map_err(&failed)? {
            0 => begin(&mut database).map_err(&failed)?,
            found => found,
        };
        match found {
            VERSION => {}
            0 => return Err(CatalogueError::Foreign { path }),
            _ => return Err(CatalogueError::Version { path, expected: VERSION, found }),
        }
        // A loss of power may take the newest messages; the death of a process takes none.
        database.pragma_update(None, "synchronous", "normal").map_err(&failed)?;
        Ok(Self { database, path })
    }

    /// Keeps messages of a partition; those that it has already are kept as they are now. The oldest go where there are too many.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&mut self, partition: &str, messages: &[Message]) -> Result<(), CatalogueError> {
        keep(&mut self.database, partition, messages).map_err(failed(&self.path))
    }

    /// Removes the messages of a partition that are older than [`MESSAGES_AGE_MAX`].
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn forget_old(&mut self, partition: &str, now: SystemTime) -> Result<(), CatalogueError> {
        let oldest = to_ms(now).saturating_sub(MESSAGES_AGE_MAX.as_millis() as i64);
        let removed = "DELETE FROM messages WHERE partition = ?1 AND last_ms < ?2";
        self.database.execute(removed, params![partition, oldest]).map(drop).map_err(failed(&self.path))
    }

    /// The messages of a partition that are sought, the oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(&self, partition: &str, sought: &Sought) -> Result<Vec<Message>, CatalogueError> {
        find(&self.database, partition, sought).map_err(failed(&self.path))
    }
}

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> CatalogueError + use<> {
    let path = path.to_owned();
    move |cause| CatalogueError::Messages { path: path.clone(), cause }
}

fn file_of(catalogue: &Path) -> PathBuf {
    let mut name = catalogue.as_os_str().to_owned();
    name.push(".messages");
    name.into()
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn version(database: &Connection) -> rusqlite::Result<i64> {
    database.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Begins a file in which nothing is; its version behind that. Another process may do the same at the same time.
fn begin(database: &mut Connection) -> rusqlite::Result<i64> {
    // A file system that cannot have it keeps what it has: readers wait for writers there. Another process may be about to do the same.
    let set = database.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()));
    set.or_else(|error| if is_busy(&error) { Ok(()) } else { Err(error) })?;
    let tables = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if tables.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))? {
        tables.execute_batch(TABLE)?;
        tables.pragma_update(None, "user_version", VERSION)?;
    }
    tables.commit()?;
    version(database)
}

fn keep(database: &mut Connection, partition: &str, messages: &[Message]) -> rusqlite::Result<()> {
    let all = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut insert = all.prepare(
        "INSERT OR REPLACE INTO messages (partition, number, at_ms, run, application, severity, text, causes, repeats, last_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for message in messages {
        let Message { number, at_ms, run, application, severity, text, causes, repeats, last_ms } = message;
        let causes = serde_json::to_string(causes).expect("texts are JSON");
        insert.execute(params![
            partition,
            signed(*number),
            signed(*at_ms),
            run,
            application,
            severity.name(),
            text,
            causes,
            signed(*repeats),
            signed(*last_ms)
        ])?;
    }
    drop(insert);
    let newest = messages.iter().map(|message| message.number).max().unwrap_or_default();
    let gone = newest.saturating_sub(MESSAGES_MAX);
    all.execute("DELETE FROM messages WHERE partition = ?1 AND number <= ?2", params![partition, signed(gone)])?;
    all.commit()
}

fn find(database: &Connection, partition: &str, sought: &Sought) -> rusqlite::Result<Vec<Message>> {
    let mut query = database.prepare(
        "SELECT number, at_ms, run, application, severity, text, causes, repeats, last_ms FROM messages \
         WHERE partition = ?1 AND number > ?2 AND number < ?3 AND (?4 IS NULL OR run = ?4) ORDER BY number DESC",
    )?;
    let before = sought.before.map_or(i64::MAX, signed);
    let rows = query.query_map(params![partition, signed(sought.behind), before, sought.run], message)?;
    sought.among(rows)
}

fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    let number = |place| row.get(place).map(|number: i64| u64::try_from(number).unwrap_or_default());
    let (severity, causes): (String, String) = (row.get(4)?, row.get(6)?);
    Ok(Message {
        number: number(0)?,
        at_ms: number(1)?,
        run: row.get(2)?,
        application: row.get(3)?,
        // What a later version calls otherwise is looked at.
        severity: severity.parse().unwrap_or(Severity::Warning),
        text: row.get(5)?,
        causes: serde_json::from_str(&causes).unwrap_or_default(),
        repeats: number(7)?,
        last_ms: number(8)?,
    })
}

/// SQLite has no larger numbers.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Few words are enough to find a message.
fn short<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let words = Option::<String>::deserialize(deserializer)?;
    match &words {
        Some(words) if words.chars().count() > WORDS_MAX => {
            Err(D::Error::custom(format!("words: expected at most {WORDS_MAX} characters")))
        }
        _ => Ok(words),
    }
}

/// Nobody reads more at a time.
fn few<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let newest = Option::<u32>::deserialize(deserializer)?;
    match newest {
        Some(newest) if !(1..=NEWEST_MAX).contains(&newest) => {
            Err(D::Error::custom(format!("newest: expected 1 to {NEWEST_MAX}, found {newest}")))
        }
        _ => Ok(newest),
    }
}

/// So many of a partition are kept.
pub const MESSAGES_MAX: u64 = 100_000;
/// And none that are older, as far as they are looked at: when run control begins.
pub const MESSAGES_AGE_MAX: Duration = Duration::from_secs(366 * 86_400);
/// And so many at most.
pub const NEWEST_MAX: u32 = 10_000;
/// Characters of the words that are sought.
const WORDS_MAX: usize = 200;
const VERSION: i64 = 1;
/// Two run controls of one name would take each other's numbers, but do not say something at the same time.
const TABLE: &str = "
CREATE TABLE messages (
    partition TEXT NOT NULL,
    number INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    run INTEGER,
    application TEXT,
    severity TEXT NOT NULL,
    text TEXT NOT NULL,
    causes TEXT NOT NULL,
    repeats INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    PRIMARY KEY (partition, number, at_ms)
) STRICT, WITHOUT ROWID;
";
