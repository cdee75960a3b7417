//! The bare machine for processing tasks. The same bytes go to a child process through the same kind of memory and
//! socket, without a supervisor, a layout or a decision.
//!
//! Each event is copied into a free slot of shared memory. One message of a `SOCK_SEQPACKET` socket tells the child
//! of half the slots. The child gives back all of them in one message, while the other half is filled. It reads and
//! checks the number at the beginning of each event.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::resource::UsageWho;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg, socketpair,
};
use transport::clock;
use transport::shared_memory::{SharedSlots, SlotReader};

use super::BenchError;
use partition::cpu::cpu_seconds;

/// Events, wall-clock seconds and processor seconds, of both processes, of a run of at least this many seconds.
pub(super) fn run(event: &[u8], slots: usize, slot_bytes: usize, seconds: f64) -> Result<(u64, f64, f64), BenchError> {
    let system = |error: io::Error| BenchError::System { what: "the bare hand-over of events", error };
    let children_cpu_before = cpu_seconds(UsageWho::RUSAGE_CHILDREN);
    let memory = SharedSlots::new("weir bench", slots, slot_bytes).map_err(|error| system(io::Error::other(error)))?;
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(|errno| system(errno.into()))?;
    let child = Receiver(spawn(theirs).map_err(system)?);
    let mut giver = Giver { socket: ours, memory, free: (0..slots as u64).collect(), given: 0, back: 0 };
    giver.introduce().map_err(system)?;
    let cpu_before = cpu_seconds(UsageWho::RUSAGE_SELF);
    let began = clock::now();
    let end = began + Duration::from_secs_f64(seconds);
    giver.give(event).map_err(system)?;
    while giver.back == 0 || clock::now() < end {
        giver.give(event).and_then(|()| giver.take_back()).map_err(system)?;
    }
    let measured = clock::now().since(began).as_secs_f64();
    let cpu = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_before;
    let events = giver.back;
    drop((giver, child));
    Ok((events, measured, cpu + cpu_seconds(UsageWho::RUSAGE_CHILDREN) - children_cpu_before))
}

/// The life of the child: it gives back what it is told of until the socket closes.
pub(super) fn receiver_main() -> io::Result<()> {
    match receive() {
        // The owner has measured enough, and left.
        Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
        other => other,
    }
}

fn receive() -> io::Result<()> {
    let socket = rustix::stdio::stdin();
    let mut sizes = [0; 16];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut sizes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    let memory = descriptors.flatten().next().ok_or(io::ErrorKind::InvalidData)?;
    let (slots, slot_bytes) = numbers(&sizes).next().expect("the sizes are two numbers");
    let memory = SlotReader::map(memory, slots as usize, slot_bytes as usize).map_err(io::Error::other)?;
    let mut told = vec![0; ENTRY_BYTES * slots as usize];
    loop {
        let (len, _) = recv(socket, &mut *told, RecvFlags::empty())?;
        if len == 0 {
            return Ok(());
        }
        for entry in told[..len].chunks_exact_mut(ENTRY_BYTES) {
            let (slot, _) = numbers(entry).next().expect("an entry is two numbers");
            entry[8..].copy_from_slice(&memory.slot(slot as usize)[..8]);
        }
        send(socket, &told[..len], SendFlags::NOSIGNAL)?;
    }
}

struct Giver {
    socket: OwnedFd,
    memory: SharedSlots,
    free: Vec<u64>,
    given: u64,
    back: u64,
}

impl Giver {
    fn introduce(&mut self) -> io::Result<()> {
        let sizes = entry(self.memory.slots() as u64, self.memory.slot_bytes() as u64);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let memory = [self.memory.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&memory)), "there is space for one descriptor");
        sendmsg(&self.socket, &[IoSlice::new(&sizes)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Fills free slots, at most half of all so that the child has the other half, and tells the child of them.
    fn give(&mut self, event: &[u8]) -> io::Result<()> {
        let count = self.free.len().min(self.memory.slots().div_ceil(2));
        let mut message = Vec::with_capacity(ENTRY_BYTES * count);
        for slot in self.free.drain(..count) {
            let to = &mut self.memory.slot_mut(slot as usize)[..8 + event.len()];
            to[..8].copy_from_slice(&self.given.to_ne_bytes());
            to[8..].copy_from_slice(event);
            message.extend_from_slice(&entry(slot, self.given));
            self.given += 1;
        }
        send(&self.socket, &message, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn take_back(&mut self) -> io::Result<()> {
        let mut message = vec![0; ENTRY_BYTES * self.memory.slots()];
        let (len, _) = recv(&self.socket, &mut *message, RecvFlags::empty())?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (slot, number) in numbers(&message[..len]) {
            if number != self.back {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "an event out of order"));
            }
            self.back += 1;
            self.free.push(slot);
        }
        Ok(())
    }
}

/// The child; it ends with this.
struct Receiver(Child);

impl Drop for Receiver {
    fn drop(&mut self) {
        // Both fail only for a child that has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(socket: OwnedFd) -> io::Result<Child> {
    Command::new(std::env::current_exe()?).args(["bench-part", "receiver"]).stdin(Stdio::from(socket)).spawn()
}

fn entry(slot: u64, number: u64) -> [u8; ENTRY_BYTES] {
    let mut entry = [0; ENTRY_BYTES];
    entry[..8].copy_from_slice(&slot.to_ne_bytes());
    entry[8..].copy_from_slice(&number.to_ne_bytes());
    entry
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    bytes.chunks_exact(ENTRY_BYTES).map(move |entry| (number(&entry[..8]), number(&entry[8..])))
}

const ENTRY_BYTES: usize = 16;
