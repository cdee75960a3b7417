//! The run catalogue: a SQLite file that keeps of each run its number, configuration, times, end, account, files and remarks. Messages are in a file beside it.
//!
//! A run is [reserved](Catalogue::reserve) before it begins, so that no number comes twice, and [ended](Catalogue::end) with its
//! summary. One whose run control died has no end; [`Entry::quality`] says so. Several processes may use a catalogue at the same time.
//!
//! ```
//! use catalogue::{Catalogue, Numbering, Quality, now};
//! use configuration::Partition;
//!
//! # let directory = testkit::TempDir::new("catalogue-doc");
//! # let file = directory.join("runs.sqlite");
//! let partition = Partition::parse("p", "partition.name = \"p\"\nros.count = 1\nsfi.count = 1\n", &[]).unwrap();
//! let mut catalogue = Catalogue::open(&file)?;
//! let run = catalogue.reserve(&partition, Numbering::From(1), "anna", now())?;
//! assert_eq!(run.number, Some(1));
//! catalogue.remark(run.id, "bob", "beam was off", Some(Quality::Tainted), now())?;
//! # Ok::<(), catalogue::CatalogueError>(())
//! ```
#![forbid(unsafe_code)]

mod date;
mod difference;
mod entry;
mod error;
mod holder;
mod keeper;
mod messages;
mod quality;
mod store;

pub use date::now;
pub use difference::{Difference, differences};
pub use entry::{Entry, Record, Remark, RunId};
pub use error::CatalogueError;
pub use keeper::{Keeper, NotReserved};
pub use messages::{
    MESSAGES_AGE_MAX, MESSAGES_MAX, Message, MessageStore, NEWEST, NEWEST_MAX, NoSeverity, Severity, Sought,
};
pub use quality::Quality;
pub use store::{Catalogue, Numbering, Reserved};
