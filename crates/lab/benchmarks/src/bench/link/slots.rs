//! A ring of slots each way, in memory that two processes share.
//!
//! A sender writes the beginning of a frame into the next slot, and the receiver reads it in place. The slot's data
//! are what they were from the start; what is short lies in the slot as well. A byte on a socket wakes one that
//! sleeps.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{Ordering, fence};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use transport::shared_memory::{Progress, SharedSlots, SlotReader};

use super::LinkArguments;
use super::line::{LOOK_AGAIN, Line};
use super::talk::{HEAD_BYTES, Outgoing, Talk, head, read_head};
use crate::bench::ring::{receive_descriptors, send_descriptors};

/// One end of both rings.
pub(super) struct Slots {
    /// For waking alone.
    socket: UnixStream,
    out: SharedSlots,
    out_count: u64,
    written: Progress,
    written_until: u64,
    /// How far the peer has read what is written here, as it was seen last.
    read_until: u64,
    peer: PeerSlots,
    taken: u64,
    read: Progress,
    sleeps: Progress,
}

/// What the peer has made.
struct PeerSlots {
    slots: SlotReader,
    written: Progress,
    read: Progress,
    sleeps: Progress,
}

impl Slots {
    pub(super) fn open(arguments: &LinkArguments, socket: &UnixStream, is_near: bool) -> io::Result<Self> {
        let count = usize::try_from(arguments.window).map_err(io::Error::other)?.max(2);
        let slot_bytes = (arguments.frame_bytes as usize).next_multiple_of(SLOT_ALIGN_BYTES);
        let mut out = SharedSlots::new("weir bench", count, slot_bytes).map_err(io::Error::other)?;
        (0..count).for_each(|slot| out.slot_mut(slot).fill(7));
        let number = || Progress::new("weir bench").map_err(io::Error::other);
        let (written, read, sleeps) = (number()?, number()?, number()?);
        let ours: [BorrowedFd<'_>; 4] = [out.as_fd(), written.as_fd(), read.as_fd(), sleeps.as_fd()];
        let bell = is_near.then(UnixStream::pair).transpose()?;
        let bell_of_peer = bell.iter().map(|(_, theirs)| theirs.as_fd());
        send_descriptors(socket, &ours.into_iter().chain(bell_of_peer).collect::<Vec<_>>())?;
        let mut theirs = receive_descriptors(socket)?.into_iter();
        let mut next = || theirs.next().ok_or(io::Error::from(io::ErrorKind::UnexpectedEof));
        let slots = SlotReader::map(next()?, count, slot_bytes).map_err(io::Error::other)?;
        let mut number = || Progress::map(next()?).map_err(io::Error::other);
        let peer = PeerSlots { slots, written: number()?, read: number()?, sleeps: number()? };
        let socket = match bell {
            Some((ours, _)) => ours,
            None => next()?.into(),
        };
        let (written_until, read_until, taken) = (0, 0, 0);
        Ok(Self { socket, out, out_count: count as u64, written, written_until, read_until, peer, taken, read, sleeps })
    }

    fn ring(&mut self) -> io::Result<()> {
        fence(Ordering::SeqCst);
        if self.peer.sleeps.load() == 1 {
            self.peer.sleeps.store(0);
            self.socket.write_all(&[0])?;
        }
        Ok(())
    }
}

impl Line for Slots {
    fn send(&mut self, frame: Outgoing) -> io::Result<bool> {
        if self.written_until - self.read_until == self.out_count {
            self.read_until = self.peer.read.load();
            if self.written_until - self.read_until == self.out_count {
                return Ok(false);
            }
        }
        let slot = self.out.slot_mut((self.written_until % self.out_count) as usize);
        slot[..HEAD_BYTES].copy_from_slice(&head(frame));
        self.written_until += 1;
        Ok(true)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.written.load() == self.written_until {
            return Ok(());
        }
        self.written.store(self.written_until);
        self.ring()
    }

    fn receive(&mut self, talk: &mut Talk) -> io::Result<bool> {
        let until = self.peer.written.load();
        if until == self.taken {
            return Ok(false);
        }
        while self.taken < until {
            let slot = self.peer.slots.slot((self.taken % self.out_count) as usize);
            talk.take(read_head(slot).expect("a whole head").number);
            self.taken += 1;
        }
        self.read.store(self.taken);
        self.ring()?;
        Ok(true)
    }

    fn sleep(&mut self) -> io::Result<()> {
        self.sleeps.store(1);
        // Either this side sees what the other did, or the other sees that this one sleeps.
        fence(Ordering::SeqCst);
        let is_blocked = self.written_until - self.read_until == self.out_count;
        let is_ready =
            self.peer.written.load() != self.taken || (is_blocked && self.peer.read.load() != self.read_until);
        if !is_ready {
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK_AGAIN.subsec_nanos()) };
            if poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout))? > 0
                && self.socket.read(&mut [0; 64])? == 0
            {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.sleeps.store(0);
        Ok(())
    }
}

const SLOT_ALIGN_BYTES: usize = 64;
