//! Processing tasks of the event filter (PTs): supervised child processes that read built events in place, in shared
//! memory, and decide.
//!
//! | module | holds |
//! |---|---|
//! | [`tasks`] | the owner's side: [`Tasks`] starts the PTs, gives them events, collects [`Verdict`]s |
//! | [`options`] | what the owner says about them, and why they do not start |
//! | [`verdict`] | what becomes of an event |
//! | [`event`] | an event in its slot: how the owner writes it, how a PT reads it |
//! | [`task_side`] | the PT's side in Rust: [`serve`] an [`Algorithm`] |
//! | [`python`] | the PT's side in Python: the package `weir`, embedded |
//!
//! # What happens to an event
//! [`Tasks::submit`] copies it, once, into a free slot: that makes it contiguous for the algorithm. A PT works on
//! its events in order. It has a few more waiting, as many as it decides in a fraction of a millisecond. An event
//! *fails*, with the reason, if its PT raises, crashes, takes too long or needs too much memory. The PT is ended if
//! need be and started again. The events that waited behind go to another PT or to the new one. Every event gets a
//! verdict.
//!
//! # Protocol, version 2
//! A Unix socket of type `SOCK_SEQPACKET` is the PT's standard input when it starts; all integers are little-endian.
//!
//! 1. PT → owner `HELLO`: `u16` kind 1, `u16` version, `u32` 0. Sent when the PT dies with its parent (`PR_SET_PDEATHSIG`)
//!    and has put `/dev/null` in the socket's place. Until then it has run no user's code.
//! 2. Owner → PT `SETUP`: `u16` kind 1, `u16` version, `u32` 0, then JSON: `name`, `task`, `slots`, `slot_bytes`,
//!    `result_bytes_max`, `windows_max`, `windows_bytes_max`, `message_bytes_max`, `frame_bytes_max`, `streams`, `setup`.
//!    Two descriptors (`SCM_RIGHTS`) come with it: the slots (read-only) and the PT's progress (8 bytes, read and write).
//! 3. PT → owner `READY`: kind 2, 0, 0; or `UNABLE`: kind 3, 0, 0, then words, and the PT ends.
//! 4. Owner → PT `EVENTS`: `u16` kind 2, `u16` count, `u32` number of events after which to answer. Then follow per
//!    event `u64` sequence, `u32` slot, `u32` length in bytes. The PT stores the sequence in its progress before it
//!    begins an event. So the owner knows whose fault a death is, and which event takes long.
//! 5. PT → owner `ANSWERS`: `u16` kind 4, `u16` count, `u32` 0. Then follow per event `u64` sequence, `u8` verdict (0
//!    rejected, 1 accepted, 2 failed), `u8` reason (0 exception, 1 memory, 2 bad answer), `u16` 0. Then `u32` streams,
//!    `u64` chains, `u64` input, `u32` length of the body, `u32` length of the windows. Then comes the body (result
//!    words, or a message in UTF-8). At last come the windows (each `u64` begin, `u64` end, `u32` count, and as many
//!    `u32` source identifiers), padded to 8 bytes. Several events per frame, in order. The slot is the owner's again.
//!
//! A PT ends at the end of the stream. Its standard output and error are one pipe, read line by line ([`Notice`]).
//! The layout of a slot is described in [`event`].

#![forbid(unsafe_code)]

pub mod event;
pub mod options;
pub mod python;
pub mod task_side;
pub mod tasks;
pub mod verdict;

mod bell;
mod blame;
mod driver;
mod ended;
mod notice;
mod output;
mod protocol;
mod worker;

pub use event::{EventHead, EventView, FragmentView};
pub use notice::{Notice, NoticeKind};
pub use options::{TasksError, TasksOptions};
pub use task_side::{Algorithm, Decision, ServeError, serve};
pub use tasks::Tasks;
pub use verdict::{FailReason, Verdict};
