//! TCP links.
//!
//! Sending gathers many frames in one call. Receiving reads as much as a page takes, straight into the page, and
//! cuts the frames out in place. Sockets never block and have no delay (`TCP_NODELAY`): frames are gathered here,
//! not in the kernel.

mod connection;
mod listener;
mod options;
mod socket;

pub use connection::Connection;
pub use listener::{ListenError, Listener};
pub use options::{InvalidOptions, TcpOptions};
pub use socket::socket;
