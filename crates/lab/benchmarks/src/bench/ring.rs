//! The bare machine for event building in shared memory: a ring of slots for each source, and nothing else.
//!
//! Source processes write the header of their fragment of every event into the next slot of a ring in a memory
//! file. They write the data too if these are to be `written`; else the data stay what they were at the start. One
//! builder maps all rings, checks every header in place, and sums all data if that is wanted. A source is ahead
//! of the builder by as many events as its ring has slots. Both sides are idle as the system is, by the same rule.
//! A byte on a socket wakes one that sleeps; its peer has done a good part of a ring meanwhile.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use nix::sys::resource::UsageWho;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::thread::sched_yield;
use transport::clock;
use transport::idle::{Idle, IdleStrategy, Pause};
use transport::shared_memory::{Progress, SharedSlots, SlotReader};

use super::reference::{Header, Measurement, ReferenceError, Sources};
use super::{PATIENCE, touch};
use partition::cpu::cpu_seconds;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    pub(super) sources: u32,
    /// Data of a fragment, in bytes, without its header.
    pub(super) fragment_bytes: u32,
    /// Whether sources write all data.
    pub(super) written: bool,
    /// Whether the builder sums all data.
    pub(super) summed: bool,
    /// Slots of each ring: the working set, in events.
    pub(super) slots: u32,
    pub(super) seconds: f64,
}

/// What a source needs to know; it finds its end of the socket as its standard input.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingArguments {
    pub(super) id: u32,
    pub(super) fragment_bytes: u32,
    pub(super) slots: u32,
    pub(super) touched: bool,
}

/// Measures. The sources have ended when this returns.
pub(super) fn run(ring: &Ring) -> Result<Measurement, ReferenceError> {
    let children_cpu_before = cpu_seconds(UsageWho::RUSAGE_CHILDREN);
    let mut sources = Sources(Vec::new());
    let mut ends = Vec::new();
    for id in 0..ring.sources {
        let (ours, theirs) = UnixStream::pair().map_err(ReferenceError::Listen)?;
        let Ring { fragment_bytes, slots, written: touched, .. } = *ring;
        let arguments = RingArguments { id, fragment_bytes, slots, touched };
        sources.0.push(spawn(&arguments, theirs.into()).map_err(|error| ReferenceError::Spawn { id, error })?);
        ends.push(BuilderEnd::accept(ours, ring).map_err(ReferenceError::Hello)?);
    }
    let mut measurement = build(&mut ends, ring)?;
    drop(ends);
    drop(sources);
    measurement.cpu_seconds += cpu_seconds(UsageWho::RUSAGE_CHILDREN) - children_cpu_before;
    Ok(measurement)
}

/// The life of a source: it writes until the builder goes away.
pub(super) fn source_main(arguments: &RingArguments) -> io::Result<()> {
    match write_events(arguments) {
        Err(error) if is_gone(&error) => Ok(()),
        other => other,
    }
}

fn write_events(arguments: &RingArguments) -> io::Result<()> {
    let RingArguments { id: source, fragment_bytes, slots: slot_count, touched } = *arguments;
    let memory = SharedSlots::new("weir bench", slot_count as usize, slot_bytes(fragment_bytes));
    let mut slots = memory.map_err(io::Error::other)?;
    let socket = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let made: Vec<Progress> =
        (0..NUMBERS).map(|_| Progress::new("weir bench")).collect::<Result<_, _>>().map_err(io::Error::other)?;
    let descriptors: Vec<BorrowedFd<'_>> = std::iter::once(slots.as_fd()).chain(made.iter().map(AsFd::as_fd)).collect();
    send_descriptors(&socket, &descriptors)?;
    let [written, read, own_sleep, peer_sleep]: [Progress; NUMBERS] = made.try_into().expect("as many as were made");
    let mut bell = Bell::new(socket, own_sleep, peer_sleep);
    let (data_end, slot_count) = (Header::LEN_BYTES + fragment_bytes as usize, u64::from(slot_count));
    for slot in 0..slot_count as usize {
        touch::write(&mut slots.slot_mut(slot)[Header::LEN_BYTES..data_end]);
    }
    let mut free_until = slot_count;
    for event in 0.. {
        if event == free_until {
            bell.ring()?;
            bell.wait(|| read.load() + slot_count > event)?;
            free_until = read.load() + slot_count;
        }
        let slot = slots.slot_mut((event % slot_count) as usize);
        Header { event, source, fragment_bytes }.write(slot);
        if touched {
            touch::write(&mut slot[Header::LEN_BYTES..data_end]);
        }
        written.store(event + 1);
        if (event + 1).is_multiple_of(slot_count.div_ceil(4)) {
            bell.ring()?;
        }
    }
    Ok(())
}

fn build(ends: &mut [BuilderEnd], ring: &Ring) -> Result<Measurement, ReferenceError> {
    let slots = u64::from(ring.slots);
    let data_end = Header::LEN_BYTES + ring.fragment_bytes as usize;
    let (mut built, mut bad, mut sum) = (0, 0, 0_u64);
    let cpu_before = cpu_seconds(UsageWho::RUSAGE_SELF);
    let began = clock::now();
    let mut seconds = 0.0;
    while seconds < ring.seconds {
        for at in 0..ends.len() {
            let source = at as u32;
            let lost = |error| ReferenceError::Receive { id: source, event: built, error };
            if ends[at].written_until <= built {
                ends[at].written_until = ends[at].written.load();
            }
            if ends[at].written_until <= built {
                give_back(ends, built).map_err(lost)?;
                let BuilderEnd { bell, written, written_until, .. } = &mut ends[at];
                bell.wait(|| written.load() > built).map_err(lost)?;
                *written_until = written.load();
            }
            let slot = ends[at].slots.slot((built % slots) as usize);
            let expected = Header { event: built, source, fragment_bytes: ring.fragment_bytes };
            bad += u64::from(Header::read(slot) != expected);
            if ring.summed {
                sum += touch::sum(&slot[Header::LEN_BYTES..data_end]);
            }
        }
        built += 1;
        if built.is_multiple_of(slots.div_ceil(2)) {
            give_back(ends, built).map_err(|error| ReferenceError::Receive { id: 0, event: built, error })?;
            seconds = clock::now().since(began).as_secs_f64();
        }
    }
    let cpu_seconds = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_before;
    bad += u64::from(ring.summed && sum != touch::expected(ring.fragment_bytes) * built * u64::from(ring.sources));
    Ok(Measurement { events: built, seconds, cpu_seconds, bad })
}

/// Tells all sources how far the builder is, and wakes those that sleep.
fn give_back(ends: &mut [BuilderEnd], built: u64) -> io::Result<()> {
    for end in ends {
        end.read.store(built);
        end.bell.ring()?;
    }
    Ok(())
}

/// The builder's end of one ring.
struct BuilderEnd {
    slots: SlotReader,
    written: Progress,
    /// As far as it was seen.
    written_until: u64,
    read: Progress,
    bell: Bell,
}

impl BuilderEnd {
    fn accept(socket: UnixStream, ring: &Ring) -> io::Result<Self> {
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        let mut descriptors = receive_descriptors(&socket)?.into_iter();
        let mut next = || descriptors.next().ok_or(io::Error::from(io::ErrorKind::UnexpectedEof));
        let slots = SlotReader::map(next()?, ring.slots as usize, slot_bytes(ring.fragment_bytes));
        let slots = slots.map_err(io::Error::other)?;
        let mut number = || Progress::map(next()?).map_err(io::Error::other);
        let [written, read, peer_sleep, own_sleep] = [number()?, number()?, number()?, number()?];
        Ok(Self { slots, written, written_until: 0, read, bell: Bell::new(socket, own_sleep, peer_sleep) })
    }
}

/// How one side waits for the other, and wakes it.
struct Bell {
    socket: UnixStream,
    own_sleep: Progress,
    peer_sleep: Progress,
    idle: Idle,
}

impl Bell {
    fn new(socket: UnixStream, own_sleep: Progress, peer_sleep: Progress) -> Self {
        Self { socket, own_sleep, peer_sleep, idle: Idle::new(IdleStrategy::default()) }
    }

    fn wait(&mut self, mut ready: impl FnMut() -> bool) -> io::Result<()> {
        while !ready() {
            match self.idle.idle(clock::now()) {
                Pause::None => core::hint::spin_loop(),
                Pause::Yield => sched_yield(),
                Pause::Sleep => {
                    self.own_sleep.store(1);
                    // Either this side sees what the other did, or the other sees that this one sleeps.
                    fence(Ordering::SeqCst);
                    if !ready() && self.socket.read(&mut [0; 64])? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    self.own_sleep.store(0);
                }
            }
        }
        self.idle.busy();
        Ok(())
    }

    fn ring(&mut self) -> io::Result<()> {
        fence(Ordering::SeqCst);
        if self.peer_sleep.load() == 1 {
            self.peer_sleep.store(0);
            self.socket.write_all(&[0])?;
        }
        Ok(())
    }
}

pub(super) fn send_descriptors(socket: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(NUMBERS + 1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "there is space for all");
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(super) fn receive_descriptors(socket: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(NUMBERS + 1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    Ok(rights.flatten().collect())
}

fn spawn(arguments: &RingArguments, socket: OwnedFd) -> io::Result<Child> {
    let RingArguments { id, fragment_bytes, slots, touched } = arguments;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench-part", "ring"]).args([id, fragment_bytes, slots].map(u32::to_string));
    if *touched {
        command.arg("--touched");
    }
    command.stdin(Stdio::from(socket)).spawn()
}

fn slot_bytes(fragment_bytes: u32) -> usize {
    (Header::LEN_BYTES + fragment_bytes as usize).next_multiple_of(SLOT_ALIGN_BYTES)
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// How far the source has written and the builder has read, and whether each sleeps.
const NUMBERS: usize = 4;
const SLOT_ALIGN_BYTES: usize = 64;
const SILENCE_MAX: Duration = PATIENCE;
