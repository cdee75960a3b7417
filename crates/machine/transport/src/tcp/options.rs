//! How TCP links are set up.

use crate::error::OsError;
use crate::frame::FrameLimits;
use crate::page_pool::Pool;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::net::SocketAddr;

/// Settings of a connection; both sides need the same frame limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Legal lengths of frames.
    pub limits: FrameLimits,
    /// Parts of frames below this length in bytes are copied on sending; received frames below it are counted.
    pub copy_below: usize,
    /// Bound of the send queue in bytes; at least the longest frame.
    pub queue_bytes_max: usize,
    /// Bound of the send queue in frames.
    pub queue_frames_max: usize,
    /// The most that one [`fill`](crate::link::Link::fill) takes in, in bytes. One read ends at the end of a page as well.
    /// So pages of 1 MiB let a busy connection read half a megabyte at a time.
    pub read_budget_bytes: usize,
    /// Size of the kernel's send buffer in bytes (`SO_SNDBUF`), instead of what it finds itself.
    pub send_buffer_bytes: Option<usize>,
    /// Size of the kernel's receive buffer in bytes (`SO_RCVBUF`), instead of what it finds itself.
    pub receive_buffer_bytes: Option<usize>,
    /// Congestion control of the kernel by name, such as `cubic`, instead of the [usual](super::socket) one.
    pub congestion_control: Option<String>,
}

/// Settings that make no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOptions {
    /// A frame has to fit in a page, where it is put together.
    #[error(
        "frames of up to {frame_len_max} bytes do not fit in the pages of pool {pool}: expected pages of at least that, found {page_len} bytes"
    )]
    PageTooSmall {
        /// The longest frame in bytes.
        frame_len_max: usize,
        /// The pool's name.
        pool: String,
        /// Its page length in bytes.
        page_len: usize,
    },
    /// Each legal frame has to fit in the empty queue.
    #[error(
        "a send queue of {bytes_max} bytes and {frames_max} frames: expected at least one frame of {frame_len_max} bytes"
    )]
    QueueTooSmall {
        /// The bound in bytes.
        bytes_max: usize,
        /// The bound in frames.
        frames_max: usize,
        /// The longest frame in bytes.
        frame_len_max: usize,
    },
    /// Nothing could be received.
    #[error("a read budget of 0 bytes: expected at least 1")]
    NoReadBudget,
    /// The kernel does not have this congestion control, or we may not choose it.
    #[error("TCP congestion control \"{name}\": {cause}{}", instead(.others))]
    Congestion {
        /// The name.
        name: String,
        /// What the kernel says.
        cause: OsError,
        /// Those to be had here, separated by spaces; none where the kernel does not say.
        others: String,
    },
    /// The kernel refuses another setting.
    #[error(transparent)]
    Socket(#[from] OsError),
}

impl TcpOptions {
    /// Defaults for frames of these lengths.
    pub fn new(limits: FrameLimits) -> Self {
        Self {
            limits,
            copy_below: 2048,
            queue_bytes_max: (4 << 20).max(limits.len_max()),
            queue_frames_max: 4096,
            read_budget_bytes: 1 << 20,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            congestion_control: None,
        }
    }

    pub(super) fn check(&self, pool: &Pool) -> Result<(), InvalidOptions> {
        let frame_len_max = self.limits.len_max();
        if frame_len_max > pool.page_len() {
            let (pool, page_len) = (pool.name().to_owned(), pool.page_len());
            return Err(InvalidOptions::PageTooSmall { frame_len_max, pool, page_len });
        }
        if self.queue_bytes_max < frame_len_max || self.queue_frames_max == 0 {
            let (bytes_max, frames_max) = (self.queue_bytes_max, self.queue_frames_max);
            return Err(InvalidOptions::QueueTooSmall { bytes_max, frames_max, frame_len_max });
        }
        if self.read_budget_bytes == 0 {
            return Err(InvalidOptions::NoReadBudget);
        }
        Ok(())
    }

    /// A socket that is to connect to an address, or to listen there: a listener hands its settings on to what it accepts.
    pub(super) fn socket(&self, address: SocketAddr) -> Result<OwnedFd, InvalidOptions> {
        let socket = super::socket(address)?;
        if let Some(name) = &self.congestion_control {
            sockopt::set_tcp_congestion(&socket, name).map_err(|errno| refused(name, errno))?;
        }
        if let Some(bytes) = self.send_buffer_bytes {
            sockopt::set_socket_send_buffer_size(&socket, bytes)
                .map_err(|errno| OsError::new("setsockopt(SO_SNDBUF)", errno))?;
        }
        if let Some(bytes) = self.receive_buffer_bytes {
            sockopt::set_socket_recv_buffer_size(&socket, bytes)
                .map_err(|errno| OsError::new("setsockopt(SO_RCVBUF)", errno))?;
        }
        Ok(socket)
    }
}

/// Why a congestion control is not to be had.
fn refused(name: &str, errno: Errno) -> InvalidOptions {
    // One that is there may be kept for others.
    let which = if errno == Errno::PERM { "allowed" } else { "available" };
    let list = std::fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{which}_congestion_control"));
    let others = list.unwrap_or_default().trim().to_owned();
    let cause = OsError::new("setsockopt(TCP_CONGESTION)", errno);
    InvalidOptions::Congestion { name: name.to_owned(), cause, others }
}

fn instead(others: &str) -> String {
    if others.is_empty() { String::new() } else { format!("; expected one of {others}") }
}
