//! The ATLAS raw event format ("eformat") and the RAW file format ("EventStorage"): bytes to values and back.
//!
//! No I/O. Two kinds of types:
//!
//! * checked **views** over byte slices of any alignment: [`Event`], [`Fragment`], [`Rob`], [`Rod`]. After the check of
//!   their constructor no method panics;
//! * **plain values**, which hold only legal content: [`EventHeader`], [`RobHeader`], [`RodHeader`], [`FileHeader`],
//!   [`FileEnd`] …; `emit` undoes parsing.
//!
//! | format | read | write |
//! |---|---|---|
//! | file version 6, event 5.0 | yes | yes |
//! | file version 5 (also `Compression=zlib`), event 4.0 | yes | no |
//! | file version 2, event 3.0 (BESIII dialect) | yes | file yes, events byte for byte by [`replay`] |
//!
//! "Format note §x" in the documentation means the section of Weir's note on these formats. What is wrong with bytes is
//! a [`Problem`]: where, what was found, what was expected.
//!
//! ```
//! use eformat::{check_event, check_rob, event_envelope, write_rob_fragment};
//! use eformat::{CheckOptions, Event, EventHeader, RobParams, RodHeader, SourceId, ROB_PREFIX_BYTES};
//!
//! // A fragment: the data lie in the buffer already, headers and trailer are written around them.
//! let rod = RodHeader { source_id: SourceId(0x0042_0002), lvl1_id: 0x0100_0001, ..Default::default() };
//! let params = RobParams { rod, adler32: true, ..Default::default() };
//! let mut rob = vec![0xab; params.rob_bytes(64)];
//! write_rob_fragment(&mut rob, &params, 64);
//! let summary = check_rob(&rob)?;
//! assert_eq!((summary.lvl1_id, summary.data), (0x0100_0001, ROB_PREFIX_BYTES..ROB_PREFIX_BYTES + 64));
//!
//! // An event around it, then everything checked.
//! let mut header = Vec::new();
//! let event_header = EventHeader { global_id: 1, lvl1_id: 0x0100_0001, ..Default::default() };
//! let trailer = event_envelope(&event_header, [rob.as_slice()], true, &mut header);
//! let event = [header.as_slice(), &rob, &trailer.expect("checksum asked for")].concat();
//! let mut problems = Vec::new();
//! check_event(&event, &CheckOptions::default(), &mut problems);
//! assert!(problems.is_empty());
//! assert_eq!(Event::parse(&event)?.global_id(), 1);
//! # Ok::<(), eformat::Problem>(())
//! ```

#![forbid(unsafe_code)]

mod check;
mod checksum;
mod compression;
mod event;
mod event_header;
mod file;
mod file_check;
mod file_name;
mod fragment;
#[doc(hidden)]
pub mod fuzzing;
mod guid;
mod id_set;
mod layout;
mod pieces;
mod problem;
mod record;
mod renumber;
pub mod replay;
mod rob;
mod rod;
mod run;
mod source_id;
mod stamp;
mod status;
pub mod stream_tag;
mod tree;
mod twice;
mod word;

pub use check::{CheckOptions, Coverage, check_event};
pub use checksum::{Adler32, ChecksumType, adler32, crc16_ccitt};
pub use compression::{CompressionType, ZLIB_LEVEL, zlib_pack, zlib_unpack};
pub use event::Event;
pub use event_header::{EventFraming, EventHeader, compressed_event, event_envelope, event_size_bytes};
pub use file::{FileEvent, FileEvents, FileHeader, FileParser, FileStep, file_events};
pub use file_check::{FileChecker, check_file};
pub use file_name::{BadFileName, FileName};
pub use fragment::{EventFormat, Fragment};
pub use guid::{BadGuid, Guid};
pub use id_set::IdSet;
pub use layout::{
    EMPTY_ROB_WORDS, EVENT_HEADER_WORDS_MIN, ROB_HEADER_WORDS, ROD_HEADER_WORDS, ROD_TRAILER_WORDS, ROD_VERSION, marker,
};
pub use pieces::{check_parts, each_rob};
pub use problem::{Part, Problem, ProblemKind};
pub use record::{
    DataSeparator, FileEnd, FileNames, FileStart, FileVersion, Metadata, Parsed, RECORD_BYTES_MAX, RESERVED_KEYS,
    RunParameters,
};
pub use renumber::advance_ids;
pub use rob::{
    LOST_ROB_BYTES, ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, Rob, RobHeader, RobParams, RobSummary, Robs, check_rob,
    lost_rob, rob_prefix, rob_suffix, write_rob_fragment,
};
pub use rod::{Rod, RodHeader};
pub use run::{BadDetectorMask, Bcid, DetectorMask, RunType};
pub use source_id::{DetectorGroup, SourceId, SubDetector};
pub use stamp::{Date, Stamp, Time};
pub use status::{EventStatus, GenericStatus, OnlineErrorCode, RobStatus, StatusWord};
pub use tree::EventRobs;
pub use twice::{FileFacts, Ids};
pub use word::{WORD_BYTES, words};
