//! Links that push: a detector's program sends numbered fragments to a read-out system, when it has them.
//!
//! | side | type | where |
//! |---|---|---|
//! | the program at the detector | [`Sender`] | in that program, also behind the C library |
//! | the read-out system | [`Intake`] | polled by the scheduler of the host |
//!
//! Both speak the protocol of `docs/protocols/link.md` over one of two carriers. Over TCP fragments are bytes in a stream. Over
//! shared memory the source fills pages that the read-out system has lent, and nothing is copied.
//!
//! A device that knows nothing of Weir sends datagrams or [S-LINK words](slink), or writes files; an [`Intake`] takes them by a [`FrameFormat`].

mod address;
mod error;
mod frame;
mod fuzzing;
mod greeting;
mod inbox;
mod intake;
mod kind;
mod memory;
mod proof;
mod record;
mod sender;
pub mod slink;
mod socket;

pub use address::{Address, make_folder, remove_folder, runtime_folder};
pub use error::{LinkError, Violation};
pub use frame::{BadFrame, ByteOrder, Counter, Extent, Field, FrameFormat, Ticks};
pub use intake::{Arrival, Intake, IntakeCounters, IntakeParameters, LinkOrder};
pub use kind::Kind;
pub use proof::Secret;
pub use record::{Flags, Head, NAME_BYTES_MAX, TEXT_BYTES_MAX, VERSION};
pub use sender::{Order, Sender, Settings};
pub use slink::Faults;
pub use socket::Lost;

/// The protocol in bytes: for tests, and for who reads what travels.
pub mod wire {
    pub use crate::fuzzing::{check_any_datagram, check_any_stream};
    pub use crate::greeting::{Greeting, MemorySizes, Welcome, record, refusal, text};
    pub use crate::proof::{Hash, NONCE_BYTES, Nonce, Prover};
    pub use crate::record::{HEAD_BYTES, RecordHead};
    pub use crate::slink::check_any_words;
}
