//! Links between processes of a host through memory that they share.
//!
//! Each side of a [`ShmLink`] makes one region of memory that it alone can write and the peer maps read-only: a ring of
//! frames, a ring of tickets that come back, and what it says of the peer's rings. Bulk that lies in a
//! [shared pool](crate::page_pool::Pool::shared) travels as a handle (where it lies, how long it is, and a ticket) and is
//! read in place; other bulk is copied once, to a page of a shared pool, and what is short travels in the ring itself.
//!
//! # Who owns a page
//! The sender. Its ledger holds the slice of each handle until the ticket comes back, which is when the receiver has dropped
//! its last slice of it, or until it is certain that the receiver reads no more: its socket has reached its end, because
//! it died or gave all up. A receiver's slices stay valid as long as they live, the sender's death included.
//!
//! # Waking
//! A process says in a word that its peers read whether it sleeps; a peer makes a system call (on an `eventfd`) only if it
//! does, once per sleep. A word is written before the other is read on both sides, so that no wake-up is lost.
//!
//! # What a peer can do
//! Nothing that it writes is believed: offsets, lengths, tickets and counters are copied before they are checked, and
//! what cannot be is a typed loss ([`Violation`]). Its memory cannot shrink under us (sealed) nor be written by us, nor can it
//! write ours. It can change the bytes of its own pages while we read them; an honest one does not before its ticket is
//! back.
//!
//! # Setting up
//! Over a Unix-domain socket with an abstract name, which is in no file system and goes with its owner; the memory travels as
//! descriptors, and both sides must belong to the same user. A process that dies leaves nothing behind.
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
mod ring;

pub(crate) use bell::SleepWord;
pub use lane::Violation;
pub use link::ShmLink;
pub use listener::ShmListener;
pub use options::{Address, InvalidAddress, LENT_POOLS_MAX, Process, ShmError, ShmOptions};

#[cfg(all(test, not(miri)))]
mod tests;
