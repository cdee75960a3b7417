//! Waiting for peers.

use super::{Connection, InvalidOptions, TcpOptions};
use crate::error::OsError;
use crate::page_pool::Pool;
use crate::poller::{Poller, Readiness};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, bind, getsockname, listen, sockopt};
use std::net::{Ipv4Addr, SocketAddr};

/// A socket that peers connect to.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    address: SocketAddr,
    readiness: Readiness,
}

/// Why nobody can connect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// The address cannot be listened at: in use, not of this host, or not permitted.
    #[error("cannot listen at {address}: {cause}")]
    Address {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        cause: OsError,
    },
    /// A peer waits, and the host has no descriptor or memory for it.
    #[error("cannot accept a connection at {address}: {cause}")]
    Accept {
        /// Where the peer connected.
        address: SocketAddr,
        /// What the kernel said.
        cause: OsError,
    },
    /// The connection's settings are impossible.
    #[error(transparent)]
    Invalid(#[from] InvalidOptions),
}

impl Listener {
    /// Listens at a free port of the loopback address.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn on_loopback(options: &TcpOptions) -> Result<Self, ListenError> {
        Self::bind((Ipv4Addr::LOCALHOST, 0).into(), options)
    }

    /// Listens at `address`; port 0 is a free one.
    ///
    /// # Errors
    /// An address that is not to be had, settings that the kernel refuses.
    ///
    /// # Panics
    /// Never: the kernel gives a TCP socket an internet address.
    pub fn bind(address: SocketAddr, options: &TcpOptions) -> Result<Self, ListenError> {
        let refused = |call| move |errno| ListenError::Address { address, cause: OsError::new(call, errno) };
        let socket = options.socket(address)?;
        // A port whose former connections are still dying can be listened at again.
        sockopt::set_socket_reuseaddr(&socket, true).map_err(refused("setsockopt(SO_REUSEADDR)"))?;
        bind(&socket, &address).map_err(refused("bind"))?;
        listen(&socket, BACKLOG).map_err(refused("listen"))?;
        let bound = getsockname(&socket).map_err(refused("getsockname"))?;
        let address = SocketAddr::try_from(bound).expect("a TCP socket has an internet address");
        Ok(Self { socket, address, readiness: Readiness::default() })
    }

    /// The address with the real port.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Lets a scheduler sleep until a peer comes.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn register(&mut self, poller: &mut Poller) -> Result<(), OsError> {
        self.readiness = poller.register(&self.socket)?;
        Ok(())
    }

    /// Whether a peer may wait. No system call.
    pub fn is_acceptable(&self) -> bool {
        self.readiness.is_readable()
    }

    /// The next peer that waits.
    ///
    /// # Errors
    /// Settings that do not fit; a host out of descriptors or memory. The listener can be asked again.
    pub fn accept(&self, options: &TcpOptions, pool: &Pool) -> Result<Option<Connection>, ListenError> {
        loop {
            self.readiness.clear_readable();
            match accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    self.readiness.set_readable();
                    return Ok(Some(Connection::accepted(socket, options, pool)?));
                }
                Err(Errno::AGAIN) => return Ok(None),
                // The peer that waited is gone; the next may be there.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => {}
                Err(errno) => {
                    self.readiness.set_readable();
                    return Err(ListenError::Accept { address: self.address, cause: OsError::new("accept", errno) });
                }
            }
        }
    }
}

/// Peers that may wait to be accepted; the kernel lowers it to its own bound.
const BACKLOG: i32 = 4096;
