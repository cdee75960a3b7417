//! Links between processes of a host through memory that they share.
//!
//! Each side of a [`ShmLink`] makes one region of memory. It alone can write that, and the peer maps it read-only.
//! The region holds a ring of frames, a ring of tickets that come back, and what the side says of the peer's rings.
//! Bulk in a [shared pool](crate::page_pool::Pool::shared) travels as a handle (where it lies, its length, a
//! ticket) and is read in place. Other bulk is copied once, to a page of a shared pool; what is short travels in
//! the ring itself.
//!
//! # Who owns a page
//! The sender. Its ledger holds the slice of each handle until the ticket comes back: the receiver has then dropped
//! its last slice of it. The ledger also lets go when the receiver certainly reads no more: its socket has reached
//! its end, because it died or gave all up. A receiver's slices stay valid as long as they live, also when the
//! sender dies.
//!
//! # Waking
//! A process writes a word that its peers read: whether it sleeps. A peer makes a system call (on an `eventfd`)
//! only if it does, once per sleep. Each side writes its word before it reads the other's, so that no wake-up is
//! lost.
//!
//! # What a peer can do
//! Nothing that it writes is believed. Offsets, lengths, tickets and counters are copied before they are checked;
//! what cannot be is a typed loss ([`Violation`]). Its memory is sealed and cannot shrink under us. We cannot write
//! it, and it cannot write ours. It can change the bytes of its own pages while we read them; an honest peer waits
//! for its ticket.
//!
//! # Setting up
//! Over a Unix-domain socket with an abstract name, which is in no file system and goes with its owner. The memory
//! travels as descriptors. Both sides must belong to the same user. A process that dies leaves nothing behind.
//!
//! # Example
//!
//! ```
//! use base::bulk::Bulk;
//! use transport::clock;
//! use transport::frame::FrameLimits;
//! use transport::link::Link;
//! use transport::page_pool::{Pool, PoolOptions};
//! use transport::shm::{Process, ShmLink, ShmListener, ShmOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = |name: &str| PoolOptions { name: name.into(), page_len: 64 << 10, pages: 8, prefault: false };
//! let (receive, copies, pages) = (Pool::new(&pool("receive"))?, Pool::shared(&pool("copies"))?, Pool::shared(&pool("pages"))?);
//! let options = ShmOptions::new(FrameLimits::new(8, 32 << 10)?);
//! let process = Process::new(&options, copies, vec![pages.clone()])?;
//! let listener = ShmListener::bind()?;
//! let deadline = clock::now() + std::time::Duration::from_secs(10);
//! let mut sender = ShmLink::connect(listener.address(), &process, &receive, deadline)?;
//! let mut receiver = listener.accept(&process, &receive)?.expect("a connection to this host is there at once");
//!
//! let mut page = pages.take().expect("the pool is new");
//! page.bytes_mut()[..9000].fill(5);
//! sender.send(&u32::to_le_bytes(4 + 9000), &Bulk::Pages(page.freeze(9000)))?;
//! sender.flush(clock::now())?;
//! let frame = loop {
//!     receiver.fill(clock::now())?;
//!     sender.flush(clock::now())?;
//!     if let Some(frame) = receiver.next_frame() {
//!         break frame;
//!     }
//! };
//! assert_eq!(frame.rest.slices()[0].as_bytes(), [5; 9000]);
//! # Ok(()) }
//! ```

mod bell;
mod greeting;
mod intake;
mod lane;
mod ledger;
mod link;
mod listener;
mod options;
mod outbox;
mod peer;
mod record;
mod ring;
mod socket;

pub use crate::violation::Violation;
pub use crate::waker::SleepWord;
pub use bell::Bell;
pub use link::ShmLink;
pub use listener::ShmListener;
pub use options::{Address, InvalidAddress, LENT_POOLS_MAX, Process, ShmError, ShmOptions};

#[cfg(all(test, not(miri)))]
mod tests;
