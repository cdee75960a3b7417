//! Where sources come in.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_reuseaddr};
use rustix::net::{SocketFlags, accept_with};
use transport::error::OsError;
use transport::poller::{Poller, Readiness};

use crate::address::{Address, by_any_address, make_folder, remove_folder};
use crate::error::LinkError;

/// A socket that sources connect to.
pub(super) struct Doorway {
    socket: OwnedFd,
    readiness: Readiness,
    is_registered: bool,
    address: String,
    /// The socket in the file system, removed in the end.
    path: Option<PathBuf>,
}

impl Doorway {
    pub(super) fn open(at: &Address) -> Result<Self, LinkError> {
        let readiness = Readiness::default();
        match at {
            Address::Tcp(place) | Address::Slink(place) => {
                let refused = |error: io::Error| refusal_of("bind", &error, at);
                let listener = by_any_address(place, listen).map_err(refused)?;
                let address = listener.local_addr().map_err(refused)?.to_string();
                let address = match at {
                    Address::Slink(_) => Address::Slink(address),
                    _ => Address::Tcp(address),
                };
                let address = address.to_string();
                Ok(Self { socket: listener.into(), readiness, is_registered: false, address, path: None })
            }
            Address::Udp(_) | Address::File(_) => unreachable!("devices do not connect"),
            Address::Shared(path) => {
                let listener = bind_in_folder(path, at)?;
                listener.set_nonblocking(true).map_err(|error| refusal_of("fcntl", &error, at))?;
                let (address, path) = (at.to_string(), Some(path.clone()));
                Ok(Self { socket: listener.into(), readiness, is_registered: false, address, path })
            }
        }
    }

    /// Once for all runs.
    pub(super) fn register(&mut self, poller: &mut Poller) -> Result<(), OsError> {
        if !self.is_registered {
            self.readiness = poller.register(&self.socket)?;
            self.is_registered = true;
        }
        Ok(())
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn is_acceptable(&self) -> bool {
        self.readiness.is_readable()
    }

    /// The next visitor. A host out of descriptors lets nobody in until the next one comes.
    pub(super) fn accept(&self) -> Option<OwnedFd> {
        while self.is_acceptable() {
            self.readiness.clear_readable();
            match accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    self.readiness.set_readable();
                    return Some(socket);
                }
                // The one that waited is gone; the next may be there.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => self.readiness.set_readable(),
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for Doorway {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Somebody may have tidied it away.
            let _ = fs::remove_file(path);
            remove_folder(path);
        }
    }
}

/// Who connects has the settings of the listener.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = transport::tcp::socket(address).map_err(|error| io::Error::from_raw_os_error(error.code))?;
    if address.ip().to_canonical().is_loopback() {
        // Nobody has asked for it: a kernel that refuses goes on with its own.
        let _ = set_socket_recv_buffer_size(&socket, LOOPBACK_BUFFER_BYTES);
    }
    set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Whoever removes the folder just now finds it empty: it is made again.
fn bind_in_folder(path: &Path, at: &Address) -> Result<UnixListener, LinkError> {
    for _ in 0..FOLDER_TRIES {
        make_folder(path)?;
        match bind(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            bound => return bound.map_err(|error| refusal_of("bind", &error, at)),
        }
    }
    bind(path).map_err(|error| refusal_of("bind", &error, at))
}

/// Takes the place of a socket whose owner has died.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let answer = UnixStream::connect(path);
            if answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                fs::remove_file(path)?;
                return UnixListener::bind(path);
            }
            Err(error)
        }
        bound => bound,
    }
}

pub(super) fn refusal_of(call: &'static str, error: &io::Error, at: &Address) -> LinkError {
    let at = at.to_string();
    match error.raw_os_error() {
        _ if error.kind() == io::ErrorKind::AddrInUse => LinkError::InUse { at },
        Some(code) => LinkError::System(OsError { call, code }),
        None => LinkError::Address { at, expected: "not an address of this host, or too long a path" },
    }
}

const FOLDER_TRIES: usize = 100;
const BACKLOG: i32 = 128;
/// So much stays in the caches while it waits to be read; the rest waits at the source. The kernel would let many megabytes wait, and
/// fragments of 10 kB would take a tenth longer. With half of it, a reader that sleeps in between gets half of what it could.
const LOOPBACK_BUFFER_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use rustix::net::sockopt::socket_recv_buffer_size;

    use super::*;

    #[test]
    fn little_waits_to_be_read_of_who_connects_over_the_loopback() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let place = listener.local_addr().unwrap();
        listener.set_nonblocking(false).unwrap();
        let _source = std::net::TcpStream::connect(place).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let bounded = transport::tcp::socket(place).unwrap();
        set_socket_recv_buffer_size(&bounded, LOOPBACK_BUFFER_BYTES).unwrap();
        assert_eq!(socket_recv_buffer_size(accepted), socket_recv_buffer_size(bounded), "as the kernel counts it");
        let taken = listen(place).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
