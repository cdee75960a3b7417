//! What two sides tell each other first: the sizes of their memory, and its descriptors.

use super::bell::Bell;
use super::lane::{Geometry, Lane};
use crate::error::OsError;
use crate::link::Lost;
use crate::page_pool::SHARED_HEADER_LEN;
use crate::shared_memory::{Region, check_foreign};
use crate::violation::Violation;
use core::mem::MaybeUninit;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::SealFlags;
use rustix::io::Errno;
use rustix::mm::ProtFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};

/// What a peer gave us, checked and mapped.
pub(super) struct Received {
    pub(super) lane: Lane,
    pub(super) bell: Bell,
    pub(super) pages: Vec<Pages>,
    /// The most bytes that it takes in the ring itself per frame.
    pub(super) inline_max: usize,
}

/// The memory of a pool of the peer.
pub(super) struct Pages {
    pub(super) region: Region,
    /// Length of its pages in bytes.
    pub(super) len: usize,
}

/// What a greeting says, besides the descriptors.
pub(super) struct Sizes {
    pub(super) geometry: Geometry,
    pub(super) inline_max: usize,
    /// Lengths of the pools' pages in bytes.
    pub(super) pools: Vec<usize>,
}

/// Sends our greeting: the event counter, the sleep word, the lane, then the pools.
pub(super) fn send(socket: BorrowedFd<'_>, sizes: &Sizes, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    assert_eq!(descriptors.len(), FIXED_DESCRIPTORS + sizes.pools.len(), "a descriptor for each memory");
    let Sizes { geometry, inline_max, pools } = sizes;
    let words = [MAGIC, geometry.ring_bytes as u64, geometry.tickets as u64, *inline_max as u64];
    let words = words.into_iter().chain(pools.iter().map(|len| *len as u64));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "there is space for all descriptors");
    rustix::io::retry_on_intr(|| sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives the peer's greeting; `None` if it has not come.
pub(super) fn receive(socket: BorrowedFd<'_>) -> Result<Option<Received>, Lost> {
    let mut bytes = [0; 8 * (FIXED_WORDS + POOLS_MAX) + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received =
        rustix::io::retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags));
    let received = match received {
        Ok(received) => received,
        Err(Errno::AGAIN) => return Ok(None),
        Err(Errno::CONNRESET) => return Err(Lost::Reset),
        Err(errno) => return Err(Lost::Os(OsError::new("recvmsg", errno))),
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Err(Lost::Closed);
    }
    if received.flags.intersects(ReturnFlags::CTRUNC | ReturnFlags::TRUNC) {
        return Err(Lost::Violated(Violation::Greeting));
    }
    let sizes = parse(&bytes[..received.bytes]).ok_or(Lost::Violated(Violation::Greeting))?;
    map(&sizes, descriptors).ok_or(Lost::Violated(Violation::Memory)).map(Some)
}

fn parse(bytes: &[u8]) -> Option<Sizes> {
    let (words, rest) = bytes.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let [MAGIC, ring_bytes, tickets, inline_max, pools @ ..] = &words[..] else { return None };
    let size = |word: &u64| usize::try_from(*word).ok();
    let geometry = Geometry { ring_bytes: size(ring_bytes)?, tickets: size(tickets)? };
    let pools: Option<Vec<usize>> = pools.iter().map(size).collect();
    let pools = pools.filter(|pools| pools.len() <= POOLS_MAX)?;
    (rest.is_empty() && geometry.is_legal()).then_some(Sizes { geometry, inline_max: size(inline_max)?, pools })
}

fn map(sizes: &Sizes, descriptors: Vec<OwnedFd>) -> Option<Received> {
    if descriptors.len() != FIXED_DESCRIPTORS + sizes.pools.len() {
        return None;
    }
    let mut descriptors = descriptors.into_iter();
    let (event, sleep, lane) = (descriptors.next()?, descriptors.next()?, descriptors.next()?);
    let lane = Lane::of_region(map_one(&lane, sizes.geometry.lane_len())?, sizes.geometry);
    let bell = Bell::new(&sleep, event)?;
    let pages = sizes.pools.iter().zip(descriptors).map(|(len, descriptor)| {
        let region = map_one(&descriptor, len.checked_add(SHARED_HEADER_LEN)?)?;
        Some(Pages { region, len: *len })
    });
    Some(Received { lane, bell, pages: pages.collect::<Option<_>>()?, inline_max: sizes.inline_max })
}

fn map_one(descriptor: &OwnedFd, len: usize) -> Option<Region> {
    check_foreign(descriptor.as_fd(), len, SealFlags::SHRINK | SealFlags::FUTURE_WRITE).ok()?;
    Region::map(descriptor.as_fd(), len, ProtFlags::READ).ok()
}

/// Changes with the layout of the memory.
const MAGIC: u64 = u64::from_le_bytes(*b"weirshm1");
const FIXED_WORDS: usize = 4;
const FIXED_DESCRIPTORS: usize = 3;

/// Shared pools of a process.
pub(super) const POOLS_MAX: usize = 64;

const DESCRIPTORS_MAX: usize = FIXED_DESCRIPTORS + POOLS_MAX;

#[cfg(test)]
mod tests {
    use super::{MAGIC, parse};

    #[test]
    fn only_legal_sizes_are_read() {
        let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let sizes = parse(&bytes(&[MAGIC, 4096, 64, 512, 100, 200])).unwrap();
        assert_eq!((sizes.geometry.ring_bytes, sizes.inline_max, sizes.pools), (4096, 512, vec![100, 200]));
        let impossible: [&[u64]; 6] = [
            &[],
            &[MAGIC, 4096, 64],
            &[MAGIC + 1, 4096, 64, 512],
            &[MAGIC, 4097, 64, 512],
            &[MAGIC, 4096, u64::MAX, 512],
            &[MAGIC, 1 << 40, 64, 512],
        ];
        for words in impossible {
            assert!(parse(&bytes(words)).is_none(), "{words:?}");
        }
        assert!(parse(&bytes(&[MAGIC, 4096, 64, 512])[1..]).is_none());
        let many: Vec<u64> = [MAGIC, 4096, 64, 512].into_iter().chain([1; 65]).collect();
        assert!(parse(&bytes(&many)).is_none());
    }
}
