//! Finding somebody who listens.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use base::time::Time;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::getpeername;
use rustix::net::sockopt::socket_error;
use transport::clock;

use crate::address::{Address, by_any_address};
use crate::socket::{sleep, watch_over};

/// A connection that never blocks.
pub(super) fn connect(address: &Address, until: Time) -> io::Result<OwnedFd> {
    match address {
        Address::Shared(path) => {
            let socket = UnixStream::connect(path)?;
            socket.set_nonblocking(true)?;
            Ok(socket.into())
        }
        Address::Udp(_) | Address::Slink(_) | Address::File(_) => Err(io::Error::other("a device does not connect")),
        Address::Tcp(place) => by_any_address(place, |at| connect_tcp(at, until.max(clock::now() + TRY_MIN))),
    }
}

fn connect_tcp(address: SocketAddr, until: Time) -> io::Result<OwnedFd> {
    let socket = transport::tcp::socket(address).map_err(io::Error::other)?;
    match rustix::net::connect(&socket, &address) {
        Err(Errno::INPROGRESS | Errno::INTR) => await_peer(&socket, until)?,
        connected => connected?,
    }
    watch_over(&socket).map_err(io::Error::other)?;
    Ok(socket)
}

fn await_peer(socket: &OwnedFd, until: Time) -> io::Result<()> {
    loop {
        let left = until.since(clock::now());
        sleep(&[socket.as_fd()], true, left).map_err(io::Error::other)?;
        socket_error(socket)??;
        // A signal ends the sleep before the peer has answered.
        if getpeername(socket).is_ok() {
            return Ok(());
        }
        if left.is_zero() {
            return Err(Errno::TIMEDOUT.into());
        }
    }
}

/// Each address gets at least so long to answer, however short patience is.
const TRY_MIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn who_listens_is_found_and_who_does_not_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let soon = || clock::now() + Duration::from_secs(60);
        let socket = TcpStream::from(connect_tcp(place, soon()).unwrap());
        assert_eq!(listener.accept().unwrap().1, socket.local_addr().unwrap());
        drop(listener);
        assert_eq!(connect_tcp(place, soon()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }

    #[test]
    fn who_does_not_answer_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let place = listener.local_addr().unwrap();
        // The kernel lets one or two wait, and drops what comes then.
        let waiting = (0..8).map(|_| connect_tcp(place, clock::now() + Duration::from_millis(20)));
        let refused: Vec<io::Error> = waiting.filter_map(Result::err).collect();
        assert!(!refused.is_empty());
        assert!(refused.iter().all(|error| error.kind() == ErrorKind::TimedOut), "{refused:?}");
        assert_eq!(refused[0].to_string(), "Connection timed out (os error 110)");
    }
}
