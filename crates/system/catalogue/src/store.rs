//! The SQLite file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use configuration::Partition;
use partition::summary::{FileSummary, Summary};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, TransactionBehavior, params};

use crate::entry::{Entry, Record, Remark, RunId};
use crate::error::CatalogueError;
use crate::holder::{may_live, this_process};
use crate::quality::Quality;

/// A catalogue that is open.
#[derive(Debug)]
pub struct Catalogue {
    database: Connection,
    path: PathBuf,
}

/// The number that a run is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// The one above all that are there, and not below this one.
    From(u32),
    /// This one, which must not be there.
    Given(u32),
    /// That of the files that are replayed, which may be there and is known at the end.
    Replayed,
}

/// A run that may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Which one it is.
    pub id: RunId,
    /// Its number, unless it replays.
    pub number: Option<u32>,
}

impl Catalogue {
    /// Opens a catalogue, or begins one where no file is.
    ///
    /// # Errors
    /// The file cannot be read or written, or is something else.
    pub fn open(path: &Path) -> Result<Self, CatalogueError> {
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(|cause| CatalogueError::Directory { path: path.to_owned(), cause })?;
        }
        Self::with(path, OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a catalogue that is there.
    ///
    /// # Errors
    /// It is not, cannot be read or written, or is something else.
    pub fn existing(path: &Path) -> Result<Self, CatalogueError> {
        if !path.is_file() {
            return Err(CatalogueError::Missing { path: path.to_owned() });
        }
        Self::with(path, OpenFlags::empty())
    }

    fn with(path: &Path, further: OpenFlags) -> Result<Self, CatalogueError> {
        let failed = |cause| CatalogueError::Database { path: path.to_owned(), cause };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | further;
        let mut database = Connection::open_with_flags(path, flags).map_err(failed)?;
        database.busy_timeout(BUSY).map_err(failed)?;
        database.pragma_update(None, "foreign_keys", true).map_err(failed)?;
        let tables = database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let version: i64 = tables.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
        let is_empty = || tables.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0));
        match version {
            VERSION => {}
            0 if is_empty().map_err(failed)? => {
                tables.execute_batch(TABLES).map_err(failed)?;
                tables.pragma_update(None, "user_version", VERSION).map_err(failed)?;
            }
            0 => return Err(CatalogueError::Foreign { path: path.to_owned() }),
            found => return Err(CatalogueError::Version { path: path.to_owned(), expected: VERSION, found }),
        }
        tables.commit().map_err(failed)?;
        Ok(Self { database, path: path.to_owned() })
    }

    /// A new run of a partition, which `operator` begins at `now`.
    ///
    /// # Errors
    /// The number is there already, or the file cannot be written.
    pub fn reserve(
        &mut self,
        partition: &Partition,
        number: Numbering,
        operator: &str,
        now: SystemTime,
    ) -> Result<Reserved, CatalogueError> {
        let failed = failed(&self.path);
        let both = self.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let number = match number {
            Numbering::Replayed => None,
            Numbering::From(least) => {
                let last = "SELECT coalesce(max(number), 0) FROM runs";
                let last: u32 = both.query_row(last, [], |row| row.get(0)).map_err(&failed)?;
                Some(last.checked_add(1).ok_or(CatalogueError::Exhausted)?.max(least))
            }
            Numbering::Given(number) => {
                let there = "SELECT count(*) > 0 FROM runs WHERE number = ?1";
                if both.query_row(there, [number], |row| row.get(0)).map_err(&failed)? {
                    return Err(CatalogueError::NumberTaken { number });
                }
                Some(number)
            }
        };
        let name = &partition.partition.name;
        let text = partition.without_secrets().to_toml();
        both.execute(
            "INSERT INTO runs (number, partition, operator, began_ms, holder, configuration) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![number, name, operator, to_ms(now), this_process(), text],
        )
        .map_err(&failed)?;
        let id = RunId(both.last_insert_rowid());
        both.commit().map_err(&failed)?;
        Ok(Reserved { id, number })
    }

    /// The newest run of a number that has not ended is this process's from now on, if there is one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn resume(&mut self, number: u32) -> Result<Option<Reserved>, CatalogueError> {
        let failed = failed(&self.path);
        let taken = "UPDATE runs SET holder = ?2 WHERE id = (SELECT max(id) FROM runs WHERE summary IS NULL AND \
                     ended_ms IS NULL AND (number = ?1 OR number IS NULL)) RETURNING id, number";
        let reserved = |row: &Row<'_>| Ok(Reserved { id: RunId(row.get(0)?), number: row.get(1)? });
        self.database.query_row(taken, params![number, this_process()], reserved).optional().map_err(failed)
    }

    /// Takes back a run that did not begin; its number is free again.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn withdraw(&mut self, run: RunId) -> Result<(), CatalogueError> {
        let taken = self.database.execute("DELETE FROM runs WHERE id = ?1 AND summary IS NULL", [run.0]);
        taken.map(drop).map_err(failed(&self.path))
    }

    /// A run ends of which nobody knows how it went, for this reason.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn interrupt(&mut self, run: RunId, reason: &str, now: SystemTime) -> Result<(), CatalogueError> {
        let ended = "UPDATE runs SET ended_ms = ?2, quality = coalesce(quality, ?3), reason = ?4, holder = NULL \
                     WHERE id = ?1 AND summary IS NULL";
        let values = params![run.0, to_ms(now), Quality::Interrupted.name(), reason];
        self.database.execute(ended, values).map(drop).map_err(failed(&self.path))
    }

    /// Keeps how a run went; `forced` if what was in hand was given up.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn end(&mut self, run: RunId, summary: &Summary, forced: bool, now: SystemTime) -> Result<(), CatalogueError> {
        let failed = failed(&self.path);
        let all = self.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let (quality, json) = (Quality::of(summary, forced).name(), summary.to_json());
        all.execute(
            "UPDATE runs SET number = ?2, ended_ms = ?3, quality = coalesce(quality, ?4), reason = ?5, summary = ?6, \
             recorded = ?7, holder = NULL WHERE id = ?1",
            params![run.0, summary.run_number, to_ms(now), quality, summary.reason, json, summary.accounting.recorded],
        )
        .map_err(&failed)?;
        for FileSummary { path, stream, events, bytes, adler32 } in &summary.files {
            all.execute(
                "INSERT INTO files (run, path, stream, events, bytes, adler32) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![run.0, path, stream, events, bytes, adler32],
            )
            .map_err(&failed)?;
        }
        all.commit().map_err(&failed)
    }

    /// Adds what a person says of a run, and what it is worth from now on.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn remark(
        &mut self,
        run: RunId,
        author: &str,
        text: &str,
        quality: Option<Quality>,
        now: SystemTime,
    ) -> Result<(), CatalogueError> {
        let failed = failed(&self.path);
        let both = self.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let quality = quality.map(Quality::name);
        both.execute(
            "INSERT INTO remarks (run, at_ms, author, text, quality) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![run.0, to_ms(now), author, text, quality],
        )
        .map_err(&failed)?;
        both.execute("UPDATE runs SET quality = coalesce(?2, quality) WHERE id = ?1", params![run.0, quality])
            .map_err(&failed)?;
        both.commit().map_err(&failed)
    }

    /// The newest runs, at most `limit`, the newest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn runs(&self, limit: u32) -> Result<Vec<Entry>, CatalogueError> {
        let failed = failed(&self.path);
        let sql = format!("{ENTRIES} ORDER BY id DESC LIMIT ?1");
        let mut query = self.database.prepare(&sql).map_err(&failed)?;
        let rows = query.query_map([limit], entry).map_err(&failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    /// The newest run of a number: a replay may have that of its files again.
    ///
    /// # Errors
    /// There is none, or what is kept of it cannot be read.
    pub fn run(&self, number: u32) -> Result<Record, CatalogueError> {
        let failed = failed(&self.path);
        let sql = format!("{ENTRIES} WHERE number = ?1 ORDER BY id DESC LIMIT 1");
        let found = self.database.query_row(&sql, [number], entry).optional().map_err(&failed)?;
        let entry = found.ok_or(CatalogueError::NoSuchRun { number })?;
        let id = entry.id.0;
        let (configuration, summary): (String, Option<String>) = self
            .database
            .query_row("SELECT configuration, summary FROM runs WHERE id = ?1", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .map_err(&failed)?;
        let summary = summary.map(|text| serde_json::from_str(&text)).transpose().map_err(|cause| {
            CatalogueError::Damaged { path: self.path.clone(), number, what: "a summary", cause: cause.to_string() }
        })?;
        let (files, remarks) = (self.files(id).map_err(&failed)?, self.remarks(id).map_err(failed)?);
        Ok(Record { entry, configuration, summary, files, remarks })
    }

    fn files(&self, run: i64) -> rusqlite::Result<Vec<FileSummary>> {
        let mut query = self
            .database
            .prepare("SELECT path, stream, events, bytes, adler32 FROM files WHERE run = ?1 ORDER BY rowid")?;
        let file = |row: &Row<'_>| {
            let (path, stream, events, bytes) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(FileSummary { path, stream, events, bytes, adler32: row.get(4)? })
        };
        query.query_map([run], file)?.collect()
    }

    fn remarks(&self, run: i64) -> rusqlite::Result<Vec<Remark>> {
        let mut query =
            self.database.prepare("SELECT at_ms, author, text, quality FROM remarks WHERE run = ?1 ORDER BY rowid")?;
        let remark = |row: &Row<'_>| {
            let at = from_ms(row.get(0)?);
            Ok(Remark { at, author: row.get(1)?, text: row.get(2)?, quality: quality(row.get(3)?) })
        };
        query.query_map([run], remark)?.collect()
    }
}

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> CatalogueError + use<> {
    let path = path.to_owned();
    move |cause| CatalogueError::Database { path: path.clone(), cause }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let holder: Option<String> = row.get("holder")?;
    let mut entry = Entry {
        id: RunId(row.get("id")?),
        number: row.get("number")?,
        partition: row.get("partition")?,
        operator: row.get("operator")?,
        began: from_ms(row.get("began_ms")?),
        ended: row.get::<_, Option<i64>>("ended_ms")?.map(from_ms),
        reason: row.get("reason")?,
        quality: quality(row.get("quality")?),
        recorded: row.get("recorded")?,
        bytes: row.get("bytes")?,
        remarks: row.get("remarks")?,
    };
    if holder.is_some_and(|holder| !may_live(&holder)) {
        entry.quality = entry.quality.or(Some(Quality::Interrupted));
        entry.reason = Some(NO_END.to_owned());
    }
    Ok(entry)
}

fn quality(name: Option<String>) -> Option<Quality> {
    name.and_then(|name| name.parse().ok())
}

/// Milliseconds since 1970; a clock before that counts as then.
pub(crate) fn to_ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn from_ms(ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// Another process that writes is done within this time.
pub(crate) const BUSY: Duration = Duration::from_secs(10);
const VERSION: i64 = 1;
const NO_END: &str = "its run control is gone and did not say how it ended";
const ENTRIES: &str = "SELECT *, (SELECT coalesce(sum(bytes), 0) FROM files WHERE run = runs.id) AS bytes, \
                       (SELECT count(*) FROM remarks WHERE run = runs.id) AS remarks FROM runs";
const TABLES: &str = "
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER,
    partition TEXT NOT NULL,
    operator TEXT NOT NULL,
    began_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    holder TEXT,
    quality TEXT,
    reason TEXT,
    recorded INTEGER NOT NULL DEFAULT 0,
    configuration TEXT NOT NULL,
    summary TEXT
) STRICT;
CREATE INDEX runs_by_number ON runs (number);
CREATE TABLE files (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    stream TEXT NOT NULL,
    events INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    adler32 TEXT NOT NULL
) STRICT;
CREATE INDEX files_by_run ON files (run);
CREATE TABLE remarks (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    at_ms INTEGER NOT NULL,
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    quality TEXT
) STRICT;
CREATE INDEX remarks_by_run ON remarks (run);
";
