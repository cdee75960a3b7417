//! The driver of one process of a partition.
//!
//! A [`Host`] hands its components what comes from others, carries what they say, and does what takes long. It reads links, steers
//! the selection, filters and writes files. An [`Assembly`] says what it hosts. The components know of no socket, file, clock
//! or thread.
#![forbid(unsafe_code)]

mod assembly;
mod host;
pub mod observer;
mod replies;
pub mod scratch;

pub use assembly::Assembly;
pub use host::{
    Carriers, DatagramOptions, EventMaker, FragmentChecks, Host, InvalidPeerAddress, JOINING_PAGE_LEN, LinkEvent,
    Links, LinksError, Meter, NetworkOptions, PeerAddress, RECORDING_RESUMED, RECORDING_STALLED, RecordedStreams,
    RestingLinks, SHM_BATCH, SLICES_BATCH, Sample, Samples, Section, Steering, Strategy, Workshop, WorkshopError,
    byte_sum, file_record, processed, unpinned,
};
