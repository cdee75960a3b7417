//! RAW files on disk: written, recovered, checked, listed and read with bounded memory.
//!
//! * [`Writer`] records the events of one stream, [`Streams`] those of several. They write without a copy, roll
//!   over by size and count, and sum up each file (Adler-32). A file is `.writing` until it is closed, then
//!   `.data`;
//! * [`recover`] writes a valid file with what is whole in a damaged one;
//! * [`Streams::resume`] goes on where a writer has died; [`finish_left`] and [`finish_torn`] close what it has
//!   left;
//! * [`check`], [`ls`] and [`dump`] look at files;
//! * [`FileReader`] gives the events of a file one by one.
//!
//! What the bytes mean is the business of `eformat`; "format note §x" is explained there.
//!
//! ```
//! use eformat::{EventHeader, RobParams, event_envelope, lost_rob};
//! use storage::{CheckLimits, FileReader, Writer, WriterConfig, check};
//!
//! let directory = testkit::TempDir::new("storage-example");
//! let config = WriterConfig { directory: directory.path().to_owned(), run_number: 7, ..WriterConfig::default() };
//! let mut writer = Writer::new(config)?;
//! let (mut header, rob) = (Vec::new(), lost_rob(&RobParams::default()));
//! event_envelope(&EventHeader { run_number: 7, ..EventHeader::default() }, [rob.as_slice()], false, &mut header);
//! writer.write_event(&[&header, &rob])?;
//! let files = writer.finish()?;
//!
//! assert!(check(&files[0].path, &CheckLimits::default())?.is_good());
//! let mut reader = FileReader::open(&files[0].path)?;
//! let event = reader.next_event()?.expect("one event was written");
//! assert_eq!(event.bytes, [header.as_slice(), &rob].concat());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod backend;
mod check;
mod clock;
mod closed_file;
#[cfg(test)]
mod damage_table;
mod dump;
mod journal;
mod left;
mod ls;
mod output;
mod reader;
mod rebuild;
mod recover;
mod resume;
mod salvage;
mod scan;
mod single;
mod streams;
mod write_error;
mod writer;
mod writer_config;

pub use backend::{Backend, Disk, OutputFile};
pub use check::{CheckLimits, CheckReport, Checks, Duplicates, check};
pub use clock::{fresh_guid, local_stamp};
pub use closed_file::{ClosedFile, Unfinished};
pub use dump::{Dump, DumpItem, DumpOptions, EventContent, EventDump, RobDump, dump};
pub use left::finish_torn;
pub use ls::{Listing, ls};
pub use reader::{FileReader, ReadEvent};
pub use recover::{RecoverError, Recovered, recover};
pub use resume::{ResumeError, Resumed, finish_left};
pub use salvage::Damage;
pub use scan::{EVENT_BYTES_MAX, ReadError};
pub use single::file_of;
pub use streams::{EventCopy, Streams};
pub use write_error::WriteError;
pub use writer::Writer;
pub use writer_config::{Dialect, WriterConfig};
