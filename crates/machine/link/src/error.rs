//! What can go wrong on a link.

use std::time::Duration;

use transport::error::OsError;
use transport::page_pool::PoolError;

use crate::kind::Kind;

/// Why there is no link, or no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The address cannot be understood.
    #[error(
        "{at}: {expected}; expected shm:NAME, shm:PARTITION/NAME, shm:/PATH, tcp://HOST:PORT, udp://HOST:PORT, slink://HOST:PORT or file:/PATH"
    )]
    Address {
        /// What was given.
        at: String,
        /// What it lacks.
        expected: &'static str,
    },
    /// Several partitions have a source of this name.
    #[error("shm:{name}: sources of this name are in partitions {partitions}; say shm:PARTITION/{name}")]
    Ambiguous {
        /// The name of the source.
        name: String,
        /// Where it was found.
        partitions: String,
    },
    /// The folder of sockets belongs to somebody else, or others can write to it.
    #[error(
        "{folder}: expected a folder of this user that nobody else can open (mode 0700); remove it or set XDG_RUNTIME_DIR"
    )]
    Folder {
        /// The folder.
        folder: String,
    },
    /// A TCP link without a key: anybody in the network could send fragments.
    #[error("{at}: a link over TCP needs a key on both sides; set partition.key and give the source the same")]
    KeyMissing {
        /// The address.
        at: String,
    },
    /// A device that knows nothing of Weir, without a description of what it sends.
    #[error("{at}: nothing says what the frames look like; describe them in [source.frame]")]
    FramesUndescribed {
        /// The address.
        at: String,
    },
    /// A file of frames that cannot be read.
    #[error("{at}: {why}; expected a regular file, a named pipe or a directory that this user can read")]
    Unreadable {
        /// The address.
        at: String,
        /// Why.
        why: String,
    },
    /// Another process listens there.
    #[error("{at}: another process listens there; end it or choose another address")]
    InUse {
        /// The address.
        at: String,
    },
    /// Nobody answered in time.
    #[error("{at}: no partition within {patience:?}: {last}; start the partition, or check the address")]
    NoPartition {
        /// The address.
        at: String,
        /// How long it was tried.
        patience: Duration,
        /// What the last try met.
        last: String,
    },
    /// Somebody listens there, who has no place for this source for now.
    #[error("{at}: refused for {patience:?}: {why}")]
    Taken {
        /// The address.
        at: String,
        /// How long it was tried.
        patience: Duration,
        /// What the last answer says.
        why: String,
    },
    /// The other end turned us away.
    #[error("{at}: refused: {why}")]
    Refused {
        /// The address.
        at: String,
        /// What it says.
        why: String,
    },
    /// The other end does not know the key.
    #[error("{at}: the other end does not prove the key; give both ends the same")]
    Unproven {
        /// The address.
        at: String,
    },
    /// The other end does not keep to the protocol.
    #[error("link broken: {0}")]
    Violated(#[from] Violation),
    /// The connection is gone.
    #[error("the partition has ended the link")]
    Closed,
    /// A payload that is longer than the partition takes.
    #[error("a fragment of {len} bytes: expected at most {size_max} (size_max of the source)")]
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The longest in bytes.
        size_max: usize,
    },
    /// A commit without a reservation, or of more than was reserved.
    #[error("commit of {len} bytes: {reserved} are reserved; reserve first")]
    NotReserved {
        /// The length to commit in bytes.
        len: usize,
        /// The length reserved in bytes.
        reserved: usize,
    },
    /// A text or name of impossible length.
    #[error("{what} of {len} bytes: expected 1 to {len_max}")]
    Text {
        /// What it is.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The longest in bytes.
        len_max: usize,
    },
    /// Sizes that make no link.
    #[error("a link with {pages} pages for {size_max} bytes each: expected 1 to 1048576 pages of up to 1 GiB")]
    Sizes {
        /// The number of pages asked for.
        pages: usize,
        /// The longest payload in bytes asked for.
        size_max: usize,
    },
    /// No pages.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The kernel refuses.
    #[error("link: {0}")]
    System(#[from] OsError),
}

/// What a peer said that the protocol does not allow. It loses its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A kind of record that there is not.
    #[error("record of kind {found}, which there is not")]
    Kind {
        /// What was found.
        found: u8,
    },
    /// Flags that there are not.
    #[error("flags {found:#04x}: expected only those of version 1")]
    Flags {
        /// What was found.
        found: u8,
    },
    /// A field that has to be zero, since nothing says that it is there.
    #[error("a field is set that the flags do not announce")]
    Unannounced,
    /// A record that is longer or shorter than one of its kind can be.
    #[error("{kind:?} of {len} bytes: expected {expected}")]
    Length {
        /// The kind of record.
        kind: Kind,
        /// The length that it claims, in bytes.
        len: u64,
        /// The legal ones.
        expected: &'static str,
    },
    /// A record that is not its sender's turn to say.
    #[error("{kind:?} out of turn")]
    OutOfTurn {
        /// The kind of record.
        kind: Kind,
    },
    /// Bytes that should be UTF-8.
    #[error("{kind:?} with a text that is not UTF-8")]
    Text {
        /// The kind of record.
        kind: Kind,
    },
    /// Another version of the protocol.
    #[error("version {found} of the link protocol: expected 1; both ends must be of the same release")]
    Version {
        /// What was found.
        found: u32,
    },
    /// A fragment was lost or repeated on the way.
    #[error("fragment with sequence {found}: expected {expected}")]
    Sequence {
        /// What was found.
        found: u64,
        /// The next one.
        expected: u64,
    },
    /// A run that was not announced.
    #[error("record of run {found}: expected run {expected}")]
    Run {
        /// What was found.
        found: u32,
        /// The run of the link.
        expected: u32,
    },
    /// A page that the source does not have.
    #[error("page {index} committed, which was not lent")]
    Page {
        /// Its index.
        index: u64,
    },
    /// A counter of a ring that cannot be.
    #[error("ring counter {found} after {before}: expected at most {capacity} more")]
    Ring {
        /// The value before.
        before: u64,
        /// What was found.
        found: u64,
        /// Entries of the ring.
        capacity: u64,
    },
    /// What is no S-LINK.
    #[error(transparent)]
    Words(#[from] NoLink),
    /// Descriptors that are not the memory they should be.
    #[error("shared memory that is not what was announced")]
    Memory,
}

/// What is no S-LINK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLink {
    /// It did not greet.
    #[error("it greets with {found:02x?}, not as an S-LINK of version 1")]
    Greeting {
        /// What it said.
        found: [u8; 8],
    },
    /// The head of a group is none.
    #[error("{found:#010x} is no head of a group of words: expected 1 to 65535 words and no other bits than 16 and 17")]
    Group {
        /// The head.
        found: u32,
    },
}
