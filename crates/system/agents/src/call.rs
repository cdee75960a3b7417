//! A call to `weir host`: it starts the agent of a host, as `ssh` would.
//!
//! Both sides prove that they know the key of the farm. Then the caller says the arguments of the agent, and confides what goes to its
//! standard input. It hears what the agent complains of, and how it has ended.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_user_timeout,
};
use transport::clock;
use transport::error::OsError;
use transport::random::random;

use crate::farm_key::{CALLER, FarmKey, SERVICE};
use crate::introduction::OfAgent;
use crate::peer::{Gone, Heard, Peer};

/// Why there was no call, or not to its end.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum CallError {
    #[error("standard input: {0}: `weir call` is started by `weir run` and `weir serve`, as the launcher of a host")]
    NotIntroduced(io::Error),
    #[error("`weir host` at {address} cannot be reached: {cause}")]
    NotReached { address: String, cause: io::Error },
    #[error("`weir host` at {address} does not listen: {cause}: is the key of the farm the same there?")]
    NotMet { address: String, cause: String },
    #[error("`weir host` at {address} is gone: {cause}")]
    Lost { address: String, cause: String },
    #[error(transparent)]
    Os(#[from] OsError),
}

/// Starts an agent on the host of a `weir host`, and waits for its end: its status. The standard input holds what goes to that of the agent.
///
/// # Errors
/// There was no call, or not to its end.
pub fn call(address: &str, key: &FarmKey, arguments: &[String]) -> Result<u8, CallError> {
    let introduction = OfAgent::hear().map_err(CallError::NotIntroduced)?;
    let stream = reach(address).map_err(|cause| CallError::NotReached { address: address.into(), cause })?;
    let not_met = |gone: Gone| CallError::NotMet { address: address.into(), cause: gone.to_string() };
    let mut peer = Peer::connected(stream, key.secret(), (CALLER, SERVICE), random()?).map_err(not_met)?;
    meet(&mut peer).map_err(not_met)?;
    let lost = |gone: Gone| CallError::Lost { address: address.into(), cause: gone.to_string() };
    let said = peer.say(arguments.join(BETWEEN).as_bytes()).and_then(|()| peer.confide(&introduction.to_bytes()));
    said.map_err(lost)?;
    loop {
        let (heard, result) = turn(&mut peer, None);
        for heard in heard {
            let Heard::Frame(frame) = heard else { continue };
            match frame.split_first() {
                // Nobody is left to be told if that fails.
                Some((&COMPLAINED, words)) => _ = io::stderr().write_all(words),
                Some((&ENDED, [status])) => return Ok(*status),
                _ => return Err(lost(io::Error::other("it says what nobody expects").into())),
            }
        }
        result.map_err(lost)?;
    }
}

fn reach(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in with_port(address).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                // A host that is gone says nothing.
                set_socket_keepalive(&stream, true)?;
                set_tcp_keepidle(&stream, KEEP_ALIVE)?;
                set_tcp_keepintvl(&stream, KEEP_ALIVE)?;
                set_tcp_keepcnt(&stream, KEEP_ALIVE_COUNT)?;
                set_tcp_user_timeout(&stream, UNTAKEN_MS)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// With the usual port, unless it has one.
fn with_port(address: &str) -> String {
    if let Ok(ip) = address.parse::<IpAddr>() {
        SocketAddr::new(ip, PORT).to_string()
    } else if address.contains(':') && !address.ends_with(']') {
        address.to_owned()
    } else {
        format!("{address}:{PORT}")
    }
}

fn meet(peer: &mut Peer) -> Result<(), Gone> {
    let until = clock::now() + PATIENCE;
    while peer.is_stranger() {
        let (_, result) = turn(peer, Some(TICK));
        if peer.is_stranger() {
            result?;
            in_time(until)?;
        }
    }
    Ok(())
}

pub(crate) fn in_time(until: base::time::Time) -> Result<(), Gone> {
    if clock::now() < until { Ok(()) } else { Err(io::Error::from(io::ErrorKind::TimedOut).into()) }
}

/// Sends what waits, and hears what comes, if need be after a wait of at most so long.
pub(crate) fn turn(peer: &mut Peer, wait: Option<Duration>) -> (Vec<Heard>, Result<(), Gone>) {
    if let Err(gone) = peer.flush() {
        return (Vec::new(), Err(gone));
    }
    let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
    // A signal that comes is none that is waited for.
    let _ = poll(&mut [PollFd::from_borrowed_fd(peer.as_fd(), peer.awaits())], wait.as_ref());
    peer.hear()
}

/// The usual port of `weir host`.
pub const PORT: u16 = 7350;
/// Between two arguments.
pub(crate) const BETWEEN: &str = "\0";
/// Before what an agent complains of.
pub(crate) const COMPLAINED: u8 = b'c';
/// Before the status with which it has ended.
pub(crate) const ENDED: u8 = b'e';
/// For a connection and its proof.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
pub(crate) const TICK: Duration = Duration::from_millis(20);
const KEEP_ALIVE: Duration = Duration::from_secs(2);
const KEEP_ALIVE_COUNT: u32 = 3;
/// What was sent is taken within that time.
const UNTAKEN_MS: u32 = 8_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_a_port_get_the_usual_one() {
        for (address, with) in [
            ("10.0.0.2", "10.0.0.2:7350"),
            ("10.0.0.2:1", "10.0.0.2:1"),
            ("daq-2", "daq-2:7350"),
            ("daq-2:80", "daq-2:80"),
            ("fe80::1", "[fe80::1]:7350"),
            ("[fe80::1]:2", "[fe80::1]:2"),
            ("[fe80::1]", "[fe80::1]:7350"),
        ] {
            assert_eq!(with_port(address), with);
        }
    }
}
