//! What can be wrong with a catalogue.

use std::path::PathBuf;

/// Why the catalogue cannot do what was asked.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum CatalogueError {
    #[error("run catalogue {}: {cause}", path.display())]
    Database { path: PathBuf, cause: rusqlite::Error },
    #[error("messages {}: {cause}", path.display())]
    Messages { path: PathBuf, cause: rusqlite::Error },
    #[error("there is no run catalogue {}; `control.catalogue` of a configuration, or --catalogue, names it", path.display())]
    Missing { path: PathBuf },
    #[error("run catalogue {}: expected a directory that can be written to: {cause}", path.display())]
    Directory { path: PathBuf, cause: std::io::Error },
    #[error(
        "{} is not a run catalogue that this program can read: expected version {expected}, found {found}",
        path.display()
    )]
    Version { path: PathBuf, expected: i64, found: i64 },
    #[error("{} is another program's database: it has no version, but tables", path.display())]
    Foreign { path: PathBuf },
    #[error("run {number} is in the catalogue already: leave run.number out for the next free one")]
    NumberTaken { number: u32 },
    #[error("run {number} is not in the catalogue; `weir runs ls` lists those that are")]
    NoSuchRun { number: u32 },
    #[error("the catalogue has run {}, the last number there can be: begin another catalogue", u32::MAX)]
    Exhausted,
    #[error("run catalogue {}: run {number} has {what} that cannot be read: {cause}", path.display())]
    Damaged { path: PathBuf, number: u32, what: &'static str, cause: String },
}
