//! Reading and writing sockets that never block.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv,
    recvmsg, send, sendmsg,
};
use transport::error::OsError;

use crate::error::{LinkError, Violation};

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The other end has closed it, or has died.
    #[error("the connection ended")]
    Closed,
    /// The other end does not answer any more.
    #[error("the other end does not answer")]
    Silent,
    /// The other end does not read what it is told.
    #[error("the other end does not read what it is told")]
    Deaf,
    /// The other end does not keep to the protocol.
    #[error(transparent)]
    Violated(#[from] Violation),
    /// The directory that files appeared in is not there any more.
    #[error("the directory was removed or has moved")]
    Gone,
    /// The kernel refuses.
    #[error(transparent)]
    System(#[from] OsError),
}

impl From<Lost> for LinkError {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Closed | Lost::Silent | Lost::Deaf | Lost::Gone => Self::Closed,
            Lost::Violated(violation) => Self::Violated(violation),
            Lost::System(error) => Self::System(error),
        }
    }
}

impl Lost {
    fn of(call: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN => Self::Closed,
            Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::NETUNREACH => Self::Silent,
            errno => Self::System(OsError::new(call, errno)),
        }
    }
}

/// Reads what is there; `None` if there is nothing now.
pub(crate) fn read(socket: &OwnedFd, bytes: &mut [u8]) -> Result<Option<usize>, Lost> {
    match retry_on_intr(|| recv(socket, &mut *bytes, RecvFlags::DONTWAIT)) {
        Ok((0, _)) => Err(Lost::Closed),
        Ok((read, _)) => Ok(Some(read)),
        Err(Errno::AGAIN) => Ok(None),
        Err(errno) => Err(Lost::of("recv", errno)),
    }
}

/// As [`read`], to these places one after the other.
pub(crate) fn read_to(socket: &OwnedFd, places: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Lost> {
    match retry_on_intr(|| rustix::io::readv(socket, &mut *places)) {
        Ok(0) => Err(Lost::Closed),
        Ok(read) => Ok(Some(read)),
        Err(Errno::AGAIN) => Ok(None),
        Err(errno) => Err(Lost::of("readv", errno)),
    }
}

/// As [`read`], with the descriptors that came along.
pub(crate) fn read_with_descriptors(
    socket: &OwnedFd,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> Result<Option<usize>, Lost> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags));
    let received = match received {
        Ok(received) => received.bytes,
        Err(Errno::AGAIN) => return Ok(None),
        Err(errno) => return Err(Lost::of("recvmsg", errno)),
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received == 0 { Err(Lost::Closed) } else { Ok(Some(received)) }
}

/// Writes what there is room for; returns how much.
pub(crate) fn write(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Lost> {
    match retry_on_intr(|| send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)) {
        Ok(written) => Ok(written),
        Err(Errno::AGAIN) => Ok(0),
        Err(errno) => Err(Lost::of("send", errno)),
    }
}

/// Writes a short record with descriptors: as a whole, or the connection is of no use.
pub(crate) fn write_with_descriptors(
    socket: &OwnedFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Lost> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "there is space for all descriptors");
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match retry_on_intr(|| sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)) {
        Ok(written) if written == bytes.len() => Ok(()),
        Ok(_) | Err(Errno::AGAIN) => Err(Lost::Deaf),
        Err(errno) => Err(Lost::of("sendmsg", errno)),
    }
}

/// Says that nothing more follows; whether the kernel took it.
pub(crate) fn shut_down(socket: &OwnedFd) -> bool {
    rustix::net::shutdown(socket, rustix::net::Shutdown::Write).is_ok()
}

/// Sleeps until one of these can be read, the first can be written if `writes`, or the time is over.
pub(crate) fn sleep(sources: &[BorrowedFd<'_>], writes: bool, timeout: Duration) -> Result<(), OsError> {
    let timeout = timeout.min(Duration::from_secs(3600));
    let timeout = Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() };
    let mut watched: Vec<PollFd<'_>> =
        sources.iter().map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN)).collect();
    if writes && let Some(first) = sources.first() {
        watched[0] = PollFd::from_borrowed_fd(*first, PollFlags::IN | PollFlags::OUT);
    }
    match poll(&mut watched, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(OsError::new("poll", errno)),
    }
}

/// Whether the process at the other end belongs to our own user.
pub(crate) fn is_own_user(socket: impl AsFd) -> Result<bool, OsError> {
    let peer = rustix::net::sockopt::socket_peercred(socket);
    let peer = peer.map_err(|errno| OsError::new("getsockopt(SO_PEERCRED)", errno))?;
    Ok(peer.uid == rustix::process::geteuid())
}

/// Has the kernel find out within some ten seconds that the host at the other end is gone, and send at once what is written.
pub(crate) fn watch_over(socket: impl AsFd) -> Result<(), OsError> {
    use rustix::net::sockopt::{
        set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_nodelay,
        set_tcp_user_timeout,
    };
    let socket = socket.as_fd();
    set_socket_keepalive(socket, true)
        .and_then(|()| set_tcp_keepidle(socket, Duration::from_secs(5)))
        .and_then(|()| set_tcp_keepintvl(socket, Duration::from_secs(1)))
        .and_then(|()| set_tcp_keepcnt(socket, 5))
        .and_then(|()| set_tcp_user_timeout(socket, 10_000))
        .and_then(|()| set_tcp_nodelay(socket, true))
        .map_err(|errno| OsError::new("setsockopt", errno))
}

/// Of a welcome.
pub(crate) const DESCRIPTORS_MAX: usize = 5;
