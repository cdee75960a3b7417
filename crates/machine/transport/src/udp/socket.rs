//! Sockets and their settings.

use super::options::{InvalidOptions, SocketBuffers, UdpOptions};
use super::system;
use crate::error::OsError;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind as bind_socket, getsockname, ipproto, socket_with};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// A socket at this address.
pub(super) fn bind(address: SocketAddr, options: &UdpOptions) -> Result<OwnedFd, InvalidOptions> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = open(family)?;
    if address.is_ipv4() {
        set_multicast(&socket, options)?;
    }
    bind_socket(&socket, &address).map_err(|errno| refused(address, errno))?;
    Ok(socket)
}

/// A socket that receives what is sent to a group.
pub(super) fn join(group: SocketAddrV4, interface: Ipv4Addr, options: &UdpOptions) -> Result<OwnedFd, InvalidOptions> {
    let socket = open(AddressFamily::INET)?;
    set_multicast(&socket, options)?;
    sockopt::set_socket_reuseaddr(&socket, true).map_err(|errno| OsError::new("setsockopt(SO_REUSEADDR)", errno))?;
    // Bound to the group, it gets nothing that is sent elsewhere.
    bind_socket(&socket, &group).map_err(|errno| refused(group.into(), errno))?;
    sockopt::set_ip_add_membership(&socket, group.ip(), &interface)
        .map_err(|errno| OsError::new("setsockopt(IP_ADD_MEMBERSHIP)", errno))?;
    Ok(socket)
}

fn refused(address: SocketAddr, errno: Errno) -> InvalidOptions {
    InvalidOptions::Address { address, cause: OsError::new("bind", errno) }
}

pub(super) fn address(socket: &OwnedFd) -> Result<SocketAddr, OsError> {
    let address = getsockname(socket).map_err(|errno| OsError::new("getsockname", errno))?;
    Ok(SocketAddr::try_from(address).expect("a socket of an Internet family has such an address"))
}

/// Asks for buffers, beyond the system's limit where that is allowed, and says what was granted.
pub(super) fn buffers(socket: &OwnedFd, options: &UdpOptions) -> Result<SocketBuffers, OsError> {
    let (send_asked, receive_asked) = (options.send_buffer_bytes, options.receive_buffer_bytes);
    sockopt::set_socket_send_buffer_size_force(socket, send_asked)
        .or_else(|_| sockopt::set_socket_send_buffer_size(socket, send_asked))
        .map_err(|errno| OsError::new("setsockopt(SO_SNDBUF)", errno))?;
    sockopt::set_socket_recv_buffer_size_force(socket, receive_asked)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, receive_asked))
        .map_err(|errno| OsError::new("setsockopt(SO_RCVBUF)", errno))?;
    let send_granted =
        sockopt::socket_send_buffer_size(socket).map_err(|errno| OsError::new("getsockopt(SO_SNDBUF)", errno))?;
    let receive_granted =
        sockopt::socket_recv_buffer_size(socket).map_err(|errno| OsError::new("getsockopt(SO_RCVBUF)", errno))?;
    // Every kernel that has `recvmmsg` can count.
    system::set_drop_counter(socket.as_fd())?;
    Ok(SocketBuffers { send_asked, send_granted, receive_asked, receive_granted })
}

/// Lets the kernel cut what is sent, if wanted and possible; returns how many datagrams it takes at a time.
pub(super) fn set_segmentation(socket: BorrowedFd<'_>, options: &UdpOptions) -> usize {
    let segments = options.segments_per_send();
    let is_set =
        options.segmentation_offload && segments > 1 && system::set_segmentation(socket, options.datagram_len).is_ok();
    if is_set { segments } else { 1 }
}

/// Has datagrams refused that are longer than their way carries, if they go in fragments; returns whether they are. Where none goes
/// in fragments, the kernel numbers none. Its one counter for all that goes to a host is a cache line that the processors would
/// take from each other.
pub(super) fn refuse_fragments(socket: BorrowedFd<'_>, address: &SocketAddr) -> bool {
    // Those of IPv6 have numbers in fragments only. Hosts that do not learn what a way carries would lose what is longer unseen.
    address.is_ipv4()
        && sockopt::ip_mtu_discover(socket).is_ok_and(|discovery| discovery == Ipv4PathMtuDiscovery::WANT)
        && sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO).is_ok()
}

/// Undoes [`refuse_fragments`]; returns whether it did.
pub(super) fn allow_fragments(socket: BorrowedFd<'_>) -> bool {
    sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::WANT).is_ok()
}

/// Undoes [`set_segmentation`]; returns whether it did.
pub(super) fn unset_segmentation(socket: BorrowedFd<'_>) -> bool {
    system::set_segmentation(socket, 0).is_ok()
}

/// Lets the kernel join what comes, if wanted and possible; returns whether it does.
pub(super) fn set_joining(socket: BorrowedFd<'_>, options: &UdpOptions) -> bool {
    options.receive_offload && options.segments_per_send() > 1 && system::set_joining(socket).is_ok()
}

fn open(family: AddressFamily) -> Result<OwnedFd, OsError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP)).map_err(|errno| OsError::new("socket", errno))
}

fn set_multicast(socket: &OwnedFd, options: &UdpOptions) -> Result<(), OsError> {
    let multicast = options.multicast;
    if let Some(interface) = multicast.interface {
        sockopt::set_ip_multicast_if(socket, &interface)
            .map_err(|errno| OsError::new("setsockopt(IP_MULTICAST_IF)", errno))?;
    }
    sockopt::set_ip_multicast_ttl(socket, multicast.time_to_live.into())
        .map_err(|errno| OsError::new("setsockopt(IP_MULTICAST_TTL)", errno))?;
    sockopt::set_ip_multicast_loop(socket, multicast.loops)
        .map_err(|errno| OsError::new("setsockopt(IP_MULTICAST_LOOP)", errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fragments_that_a_host_sends_by_itself_are_refused() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let socket = open(AddressFamily::INET).unwrap();
        let discovery = || sockopt::ip_mtu_discover(&socket).unwrap();
        sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::WANT).unwrap();
        assert!(refuse_fragments(socket.as_fd(), &address));
        assert_eq!(discovery(), Ipv4PathMtuDiscovery::DO);
        assert!(allow_fragments(socket.as_fd()));
        assert_eq!(discovery(), Ipv4PathMtuDiscovery::WANT);
        for other in [Ipv4PathMtuDiscovery::DONT, Ipv4PathMtuDiscovery::PROBE] {
            sockopt::set_ip_mtu_discover(&socket, other).unwrap();
            assert!(!refuse_fragments(socket.as_fd(), &address));
            assert_eq!(discovery(), other);
        }
    }
}
