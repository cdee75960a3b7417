//! Sockets of TCP links.

use crate::error::OsError;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with, sockopt};
use std::net::{IpAddr, SocketAddr};

/// A socket that is to connect to an address, or to listen there. It never blocks and has no delay.
///
/// It has the congestion control of the system, but `reno` with a loopback address. Some systems space packets by timers (BBR), which
/// can take two thirds of the speed within a host, where nothing gets lost. The timers would stay with a socket that is connected
/// already.
///
/// # Errors
/// A host without descriptors or memory.
pub fn socket(address: SocketAddr) -> Result<OwnedFd, OsError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))
        .map_err(|errno| OsError::new("socket", errno))?;
    sockopt::set_tcp_nodelay(&socket, true).map_err(|errno| OsError::new("setsockopt(TCP_NODELAY)", errno))?;
    if is_loopback(address.ip()) {
        // Nobody has asked for it: a kernel that refuses goes on with its own.
        let _ = sockopt::set_tcp_congestion(&socket, OVER_LOOPBACK);
    }
    Ok(socket)
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Every kernel has it; by default everybody may use it.
const OVER_LOOPBACK: &str = "reno";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameLimits;
    use crate::tcp::TcpOptions;

    fn congestion_control(ip: &str, named: Option<&str>) -> String {
        let address = SocketAddr::new(ip.parse().unwrap(), 0);
        let congestion_control = named.map(str::to_owned);
        let options = TcpOptions { congestion_control, ..TcpOptions::new(FrameLimits::new(4, 8).unwrap()) };
        sockopt::tcp_congestion(options.socket(address).unwrap()).unwrap()
    }

    #[test]
    fn over_the_loopback_nothing_is_paced_unless_somebody_asks_for_it() {
        let of_the_system = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let of_the_system = sockopt::tcp_congestion(of_the_system).unwrap();
        assert_eq!(congestion_control("127.0.0.1", None), OVER_LOOPBACK);
        assert_eq!(congestion_control("127.0.0.1", Some(&of_the_system)), of_the_system);
        assert_eq!(congestion_control("10.0.0.1", None), of_the_system);
    }

    #[test]
    fn loopback_addresses_are_of_either_family() {
        for (ip, is_one) in [
            ("127.0.0.1", true),
            ("127.0.1.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("2001:db8::1", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(is_loopback(ip.parse().unwrap()), is_one, "{ip}");
        }
    }
}
