//! The system calls that `rustix` does not offer: receiving many datagrams at a time, and socket options of UDP.

use crate::error::OsError;
use core::mem::{MaybeUninit, size_of, zeroed};
use core::ptr::from_mut;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The most datagrams of one call.
pub const DATAGRAMS_PER_CALL: usize = 64;
/// What the kernel says of a datagram that it has delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Datagram {
    /// Its length in bytes; that of all together if the kernel has joined several.
    pub len: usize,
    /// From where; `None` for an address of another family.
    pub source: Option<SocketAddr>,
    /// Whether it was longer than its place.
    pub is_truncated: bool,
    /// The length of each but the last of several that the kernel has joined (GRO).
    pub joined_len: Option<usize>,
    /// How many datagrams the socket has dropped so far for want of room, wrapping.
    pub dropped: Option<u32>,
}

/// Room for what one call tells besides the bytes.
pub struct DatagramBatch {
    names: Box<[Name]>,
    controls: Box<[Control]>,
    datagrams: Box<[Datagram]>,
}

impl DatagramBatch {
    /// Room for [`DATAGRAMS_PER_CALL`].
    pub fn empty() -> Self {
        Self {
            names: vec![Name([0; NAME_LEN]); DATAGRAMS_PER_CALL].into(),
            controls: vec![Control([0; CONTROL_LEN]); DATAGRAMS_PER_CALL].into(),
            datagrams: vec![Datagram::default(); DATAGRAMS_PER_CALL].into(),
        }
    }

    /// Receives, without waiting, one datagram into each `parts_per_datagram` of `parts`; returns how many.
    /// # Errors
    /// What the kernel says; [`Errno::AGAIN`] if nothing is there.
    pub fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        parts: &mut [IoSliceMut<'_>],
        parts_per_datagram: usize,
    ) -> Result<usize, Errno> {
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; DATAGRAMS_PER_CALL];
        let places = self.names.iter_mut().zip(&mut self.controls).zip(&mut messages);
        let mut asked = 0;
        for (parts, ((name, control), message)) in parts.chunks_exact_mut(parts_per_datagram).zip(places) {
            // SAFETY: integers and pointers, for all of which zero is a value.
            let mut header: libc::msghdr = unsafe { zeroed() };
            header.msg_name = from_mut(&mut name.0).cast();
            header.msg_namelen = NAME_LEN as libc::socklen_t;
            // `IoSliceMut` is documented to be compatible with `iovec`.
            header.msg_iov = parts.as_mut_ptr().cast();
            header.msg_iovlen = parts.len() as _;
            header.msg_control = from_mut(&mut control.0).cast();
            header.msg_controllen = CONTROL_LEN as _;
            message.write(libc::mmsghdr { msg_hdr: header, msg_len: 0 });
            asked += 1;
        }
        let received = loop {
            // SAFETY: the first `asked` headers are initialised. Each points to a name, a control buffer and parts of its own
            // with their true lengths. All of them are borrowed exclusively until this function returns.
            let received = unsafe {
                let messages = messages.as_mut_ptr().cast();
                libc::recvmmsg(socket.as_raw_fd(), messages, asked, libc::MSG_DONTWAIT as _, core::ptr::null_mut())
            };
            match usize::try_from(received) {
                Ok(received) => break received,
                Err(_) => match last_errno() {
                    Errno::INTR => {}
                    errno => return Err(errno),
                },
            }
        };
        for (index, message) in messages[..received].iter().enumerate() {
            // SAFETY: the call returns no more than it was asked for, and those were initialised.
            let message = unsafe { message.assume_init_ref() };
            let control_len = message.msg_hdr.msg_controllen;
            self.datagrams[index] = Datagram {
                len: message.msg_len as usize,
                source: self.names[index].address(),
                is_truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                ..Datagram::default()
            };
            self.controls[index].read(control_len, &mut self.datagrams[index]);
        }
        Ok(received)
    }

    /// What the last call told of its datagram `index`.
    pub fn datagram(&self, index: usize) -> Datagram {
        self.datagrams[index]
    }
}

/// Cuts what is sent into datagrams of `len` bytes in the kernel (GSO); zero: sends as it is.
pub(super) fn set_segmentation(socket: BorrowedFd<'_>, len: usize) -> Result<(), OsError> {
    let len = i32::try_from(len).expect("a datagram has less than 64 KiB");
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, len, "setsockopt(UDP_SEGMENT)")
}

/// Lets the kernel join datagrams of equal length from one sender (GRO).
pub(super) fn set_joining(socket: BorrowedFd<'_>) -> Result<(), OsError> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1, "setsockopt(UDP_GRO)")
}

/// Tells with each datagram how many were dropped before it.
pub(super) fn set_drop_counter(socket: BorrowedFd<'_>) -> Result<(), OsError> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1, "setsockopt(SO_RXQ_OVFL)")
}

fn set_option(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32, call: &'static str) -> Result<(), OsError> {
    let len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value is an integer of the length stated, and lives across the call.
    let outcome = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), len) };
    if outcome == 0 { Ok(()) } else { Err(OsError::new(call, last_errno())) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).expect("a failed call has left its reason")
}

/// A `sockaddr_in` or `sockaddr_in6` as the kernel writes it.
#[derive(Clone)]
#[repr(align(8))]
struct Name([u8; NAME_LEN]);

impl Name {
    fn address(&self) -> Option<SocketAddr> {
        let bytes = &self.0;
        let family = u16::from_ne_bytes([bytes[0], bytes[1]]);
        let port = u16::from_be_bytes([bytes[2], bytes[3]]);
        if i32::from(family) == libc::AF_INET {
            return Some(SocketAddr::from((Ipv4Addr::from(*bytes[4..].first_chunk::<4>()?), port)));
        }
        if i32::from(family) != libc::AF_INET6 {
            return None;
        }
        let address = Ipv6Addr::from(*bytes[8..].first_chunk::<16>()?);
        let scope = u32::from_ne_bytes(*bytes[24..].first_chunk::<4>()?);
        Some(SocketAddrV6::new(address, port, 0, scope).into())
    }
}

/// Control messages as the kernel writes them: each a `cmsghdr` and its data, padded to its alignment.
#[derive(Clone)]
#[repr(align(8))]
struct Control([u8; CONTROL_LEN]);

impl Control {
    fn read(&self, len: usize, datagram: &mut Datagram) {
        let mut rest = &self.0[..len.min(CONTROL_LEN)];
        while rest.len() >= CONTROL_HEADER_LEN {
            let (header, data) = rest.split_at(CONTROL_HEADER_LEN);
            let field = |at: usize| header[at..].first_chunk::<4>().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
            let stated = header.first_chunk().map_or(0, |bytes| usize::from_ne_bytes(*bytes));
            let value = data.first_chunk::<4>().map(|bytes| i32::from_ne_bytes(*bytes));
            match (field(CONTROL_LEVEL_AT), field(CONTROL_LEVEL_AT + 4)) {
                (libc::SOL_UDP, libc::UDP_GRO) => datagram.joined_len = value.and_then(|len| usize::try_from(len).ok()),
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => datagram.dropped = value.map(i32::cast_unsigned),
                _ => {}
            }
            let whole = stated.max(CONTROL_HEADER_LEN).next_multiple_of(size_of::<usize>());
            rest = &rest[whole.min(rest.len())..];
        }
    }
}

const NAME_LEN: usize = size_of::<libc::sockaddr_in6>();
/// Two messages of one integer each, with room to spare.
const CONTROL_LEN: usize = 64;
const CONTROL_HEADER_LEN: usize = size_of::<libc::cmsghdr>();
const CONTROL_LEVEL_AT: usize = core::mem::offset_of!(libc::cmsghdr, cmsg_level);
