//! The sockets over which processes meet.

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use crate::error::OsError;
use crate::link::Lost;
use crate::violation::Violation;

/// A socket that keeps the boundaries of messages and never blocks.
pub(super) fn new_socket() -> Result<OwnedFd, OsError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(|errno| OsError::new("socket", errno))
}

/// Whether the process at the other end belongs to our own user.
pub(super) fn check_user(socket: &OwnedFd) -> Result<(), Lost> {
    let credentials =
        sockopt::socket_peercred(socket).map_err(|errno| Lost::Os(OsError::new("getsockopt(SO_PEERCRED)", errno)))?;
    if credentials.uid == rustix::process::geteuid() {
        Ok(())
    } else {
        Err(Lost::Violated(Violation::OtherUser { uid: credentials.uid.as_raw() }))
    }
}
