//! Waiting for peers.

use super::link::ShmLink;
use super::options::{Address, Process, ShmError};
use super::socket::{check_user, new_socket};
use crate::error::OsError;
use crate::page_pool::Pool;
use crate::poller::{Poller, Readiness};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, SocketFlags, accept_with, bind, getsockname, listen};

/// A socket that processes of this host connect to.
#[derive(Debug)]
pub struct ShmListener {
    socket: OwnedFd,
    address: Address,
    readiness: Readiness,
}

impl ShmListener {
    /// Listens at a name that the kernel chooses.
    ///
    /// # Errors
    /// If the kernel refuses.
    ///
    /// # Panics
    /// Never: the kernel gives a socket that is bound to no name one of its own.
    pub fn bind() -> Result<Self, ShmError> {
        let socket = new_socket()?;
        let refused = |call| move |errno| OsError::new(call, errno);
        bind(&socket, &SocketAddrUnix::new_unnamed()).map_err(refused("bind"))?;
        listen(&socket, BACKLOG).map_err(refused("listen"))?;
        let bound = getsockname(&socket).map_err(refused("getsockname"))?;
        let bound = SocketAddrUnix::try_from(bound).expect("a Unix-domain socket");
        let address = bound.abstract_name().and_then(Address::of_name).expect("a name that the kernel chose");
        Ok(Self { socket, address, readiness: Readiness::default() })
    }

    /// Where peers connect to.
    pub fn address(&self) -> &Address {
        &self.address
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

    /// The next peer that waits; what comes in the ring itself is received into this pool. Peers of another user are turned
    /// away.
    ///
    /// # Errors
    /// A host out of descriptors or memory. The listener can be asked again.
    pub fn accept(&self, process: &Process, pool: &Pool) -> Result<Option<ShmLink>, ShmError> {
        loop {
            self.readiness.clear_readable();
            match accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    self.readiness.set_readable();
                    if check_user(&socket).is_ok() {
                        return ShmLink::new(socket, Ok(()), process, pool, None).map(Some);
                    }
                }
                Err(Errno::AGAIN) => return Ok(None),
                // The peer that waited is gone; the next may be there.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(errno) => {
                    self.readiness.set_readable();
                    return Err(ShmError::Os(OsError::new("accept", errno)));
                }
            }
        }
    }
}

/// Peers that may wait to be accepted; the kernel lowers it to its own bound.
const BACKLOG: i32 = 1024;
