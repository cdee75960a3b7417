//! The operating-system side of the data path on Linux: page pool, links, scheduler and clock.
//!
//! This crate moves *frames* and knows nothing of what they mean. A frame is a byte string that starts with its own
//! length ([`frame`]). The kernel or a producer writes bulk bytes once, to a page of a fixed [`page_pool::Pool`].
//! From there they travel as [`base::bulk::PageSlice`]s, and the page goes home when its last slice is dropped.
//!
//! | module | holds |
//! |---|---|
//! | [`page_pool`] | fixed pages, handed out as shared slices while their rest is still being filled |
//! | [`frame`] | what a frame is, its legal lengths |
//! | [`link`](mod@link) | what every transport offers: bounded sending, receiving, counters, typed loss |
//! | [`tcp`] | TCP connections and listeners, vectored and batched |
//! | [`udp`] | UDP and multicast, for messages that may be lost: cut, checked, put together again |
//! | [`local`] | queues and links inside a process |
//! | [`shm`] | links between processes of a host through memory that they share |
//! | [`shared_memory`] | memory that other processes of the host read in place |
//! | [`scheduler`] | Poll/Action tasks under one thread \[DAQ1999 §2.2\]; [`idle`], [`poller`], [`waker`] serve it |
//! | [`scheduling`] | whom the kernel gives a processor |
//! | [`random`](mod@random) | numbers that nobody can foretell |
//! | [`clock`] | monotonic time, from `stamps` |
//!
//! # Example
//!
//! ```
//! use base::bulk::Bulk;
//! use transport::clock;
//! use transport::frame::FrameLimits;
//! use transport::link::Link;
//! use transport::page_pool::{Pool, PoolOptions};
//! use transport::tcp::{Connection, Listener, TcpOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::new(&PoolOptions { name: "receive".into(), page_len: 64 << 10, pages: 8, prefault: false })?;
//! let options = TcpOptions::new(FrameLimits::new(8, 32 << 10)?);
//! let listener = Listener::on_loopback(&options)?;
//! let deadline = clock::now() + std::time::Duration::from_secs(10);
//! let mut sender = Connection::connect(listener.local_address(), &options, &pool, deadline)?;
//!
//! let mut page = pool.take().expect("the pool is new");
//! page.bytes_mut()[..9000].fill(5);
//! let bulk = Bulk::Pages(page.freeze(9000));
//! let head = u32::to_le_bytes(4 + 9000);
//! sender.send(&head, &bulk)?;
//!
//! let mut receiver = None;
//! let frame = loop {
//!     sender.flush(clock::now())?;
//!     if receiver.is_none() {
//!         receiver = listener.accept(&options, &pool)?;
//!     }
//!     if let Some(receiver) = &mut receiver {
//!         receiver.fill(clock::now())?;
//!         if let Some(frame) = receiver.next_frame() {
//!             break frame;
//!         }
//!     }
//! };
//! assert_eq!(frame.len(), 4 + 9000);
//! # Ok(()) }
//! ```
//!
//! # Unsafe code
//! * In [`page_pool`] and the memory mapping below it: one holder writes a page while others read the part that is finished;
//! * in [`shared_memory`] and the memory of [`shm`];
//! * in [`udp`] and [`scheduling`] the system calls that `rustix` lacks. All others go through `rustix`.

pub use stamps::clock;

pub mod error;
pub mod frame;
pub mod idle;
pub mod link;
pub mod local;
pub mod page_pool;
pub mod poller;
mod prefetch;
pub mod random;
pub mod scheduler;
pub mod scheduling;
pub mod shared_memory;
pub mod shm;
pub mod tcp;
pub mod udp;
pub mod waker;

mod assembler;
mod mapping;
mod send_queue;
mod violation;
