//! TCP over the loopback interface without anything around it.
//!
//! Its congestion control is `reno`, as that of Weir is there (`transport::tcp::socket`): that of the system may space packets.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use rustix::fd::AsFd;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

pub(crate) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    unpace(&socket);
    rustix::net::connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

/// At a free port. Nobody waits for a second try however many connect before one is taken in.
pub(crate) fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // What it accepts has it, too.
    unpace(&listener);
    // The standard library lets 128 wait.
    rustix::net::listen(&listener, BACKLOG)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// A kernel that refuses it does so to all.
fn unpace(socket: impl AsFd) {
    let _ = set_tcp_congestion(socket, "reno");
}

const BACKLOG: i32 = 4096;

#[cfg(test)]
mod tests {
    use rustix::net::sockopt::tcp_congestion;

    use super::*;

    #[test]
    fn both_ends_of_a_connection_are_not_paced() {
        let (listener, address) = listen().unwrap();
        let ends = [connect(address).unwrap(), listener.accept().unwrap().0];
        assert_eq!(ends.map(|end| tcp_congestion(end).unwrap()), ["reno", "reno"]);
    }
}
