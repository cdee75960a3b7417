//! Sockets and their settings.

use super::options::{SocketBuffers, UdpOptions};
use super::system;
use crate::error::OsError;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind as bind_socket, getsockname, ipproto, socket_with, sockopt,
};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// A socket at this address.
pub(super) fn bind(address: SocketAddr, options: &UdpOptions) -> Result<OwnedFd, OsError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = open(family)?;
    if address.is_ipv4() {
        set_multicast(&socket, options)?;
    }
    bind_socket(&socket, &address).map_err(|errno| OsError::new("bind", errno))?;
    Ok(socket)
}

/// A socket that receives what is sent to a group.
pub(super) fn join(group: SocketAddrV4, interface: Ipv4Addr, options: &UdpOptions) -> Result<OwnedFd, OsError> {
    let socket = open(AddressFamily::INET)?;
    set_multicast(&socket, options)?;
    sockopt::set_socket_reuseaddr(&socket, true).map_err(|errno| OsError::new("setsockopt(SO_REUSEADDR)", errno))?;
    // Bound to the group, it gets nothing that is sent elsewhere.
    bind_socket(&socket, &group).map_err(|errno| OsError::new("bind", errno))?;
    sockopt::set_ip_add_membership(&socket, group.ip(), &interface)
        .map_err(|errno| OsError::new("setsockopt(IP_ADD_MEMBERSHIP)", errno))?;
    Ok(socket)
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
