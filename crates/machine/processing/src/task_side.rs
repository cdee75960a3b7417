//! The side of a processing task, in Rust.

use core::mem::MaybeUninit;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::fd::OwnedFd;
use rustix::io::{Errno, fcntl_dupfd_cloexec, retry_on_intr};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, recvmsg, send};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::stdio::{dup2_stdin, stdin};
use transport::shared_memory::{Progress, SharedMemoryError, SlotReader};
use trigger::windows::Window;

use crate::event::EventView;
use crate::protocol::{
    EVENT_BYTES, FRAME_BYTES_MAX, HEADER_BYTES, Header, MESSAGE_BYTES_MAX, ONE_BYTES_MAX, RESULT_BYTES_MAX, Setup,
    VERSION, cut, parse_events, push_answer, to_owner, to_task,
};
use crate::verdict::{FailReason, Verdict};

/// Decides events.
pub trait Algorithm {
    /// Decides on one event; its memory is read in place and is somebody else's afterwards.
    fn process(&mut self, event: &EventView<'_>) -> Decision;
}

/// What an algorithm decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The event is to be recorded.
    Accept {
        /// One bit per stream of the setup; 0: the chains decide.
        streams: u32,
        /// Chains that accepted: one bit each.
        chains: u64,
        /// Chains that were tried: one bit each.
        input: u64,
        /// Data words of the event-filter result fragment, at most [`RESULT_WORDS_MAX`].
        result: Vec<u32>,
        /// What of the event is to be recorded; none: all of it.
        windows: Vec<Window>,
    },
    /// The event is to be forgotten.
    Reject {
        /// Chains that accepted before a prescale rejected: one bit each.
        chains: u64,
        /// Chains that were tried: one bit each.
        input: u64,
    },
    /// The event cannot be decided and belongs in the debug stream, with these words.
    Fail(String),
}

/// The largest result of an event, in words.
pub const RESULT_WORDS_MAX: usize = RESULT_BYTES_MAX / 4;

/// Why a processing task ends before its owner ends it.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The program was started by hand.
    #[error("this program is a processing task: it is started by Weir, with a socket as its standard input")]
    NoOwner,
    /// A system call failed.
    #[error("processing task: {0}")]
    System(#[from] io::Error),
    /// The owner's memory cannot be mapped.
    #[error("processing task: {0}")]
    Memory(#[from] SharedMemoryError),
    /// The owner is of another version, or something else.
    #[error("processing task: the owner sent {found}, expected {expected}")]
    Protocol {
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The algorithm cannot be made; the owner was told.
    #[error("{0}")]
    Algorithm(String),
}

/// Serves the owner at the other end of standard input until it closes: makes the algorithm from
/// [`TasksOptions::setup`](crate::TasksOptions::setup), then decides events in order.
///
/// A panic of the algorithm fails the event that it worked on; the algorithm goes on with the next one.
///
/// # Errors
/// A program started by hand, an owner of another version, a failing system call; an algorithm that cannot be made, which
/// the owner knows already. The program is to end with a status other than 0.
pub fn serve<E: core::fmt::Display>(
    make: impl FnOnce(&str) -> Result<Box<dyn Algorithm>, E>,
) -> Result<(), ServeError> {
    match serve_to_the_end(make) {
        // The owner ends the run while we work.
        Err(ServeError::System(error))
            if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
        {
            Ok(())
        }
        other => other,
    }
}

fn serve_to_the_end<E: core::fmt::Display>(
    make: impl FnOnce(&str) -> Result<Box<dyn Algorithm>, E>,
) -> Result<(), ServeError> {
    let socket = take_socket()?;
    tell(&socket, Header { kind: to_owner::HELLO, count: VERSION, more: 0 }, &[])?;
    let Some((setup, slots, progress)) = receive_setup(&socket)? else { return Ok(()) };
    let made = catch_unwind(AssertUnwindSafe(|| make(&setup.setup).map_err(|error| error.to_string())));
    let mut algorithm = match made.unwrap_or_else(|panic| Err(format!("panic: {}", words(panic.as_ref())))) {
        Ok(algorithm) => algorithm,
        Err(problem) => {
            let told = cut(&problem, MESSAGE_BYTES_MAX).as_bytes();
            tell(&socket, Header { kind: to_owner::UNABLE, count: 0, more: 0 }, told)?;
            return Err(ServeError::Algorithm(problem));
        }
    };
    tell(&socket, Header { kind: to_owner::READY, count: 0, more: 0 }, &[])?;
    let mut frame = vec![0; EVENTS_FRAME_BYTES_MAX];
    let mut answers = Answers::default();
    loop {
        let len = retry_on_intr(|| rustix::net::recv(&socket, &mut *frame, RecvFlags::empty())).map_err(gone)?.1;
        if len == 0 {
            return Ok(());
        }
        let found = || ServeError::Protocol { found: format!("a frame of {len} bytes"), expected: "events" };
        let (header, rest) = Header::parse(&frame[..len]).ok_or_else(found)?;
        if header.kind != to_task::EVENTS {
            return Err(found());
        }
        for given in parse_events(header, rest).ok_or_else(found)? {
            progress.store(given.sequence);
            let slot = Some(given.slot as usize).filter(|slot| *slot < slots.slots()).map(|slot| slots.slot(slot));
            let event =
                slot.and_then(|slot| EventView::parse(slot.get(..given.len_bytes as usize)?)).ok_or_else(found)?;
            let verdict = decide(algorithm.as_mut(), &event);
            answers.push(given.sequence, &verdict, &socket)?;
            if answers.count >= header.more {
                answers.send(&socket)?;
            }
        }
        answers.send(&socket)?;
    }
}

fn decide(algorithm: &mut dyn Algorithm, event: &EventView<'_>) -> Verdict {
    match catch_unwind(AssertUnwindSafe(|| algorithm.process(event))) {
        Ok(Decision::Reject { chains, input }) => Verdict::Rejected { chains, input },
        Ok(Decision::Accept { result, .. }) if result.len() > RESULT_WORDS_MAX => {
            let message = format!("a result of {} words, at most {RESULT_WORDS_MAX} are allowed", result.len());
            Verdict::Failed { reason: FailReason::BadAnswer, message }
        }
        Ok(Decision::Accept { streams, chains, input, result, windows }) => {
            if let Err(problem) = Window::check_all(&windows) {
                return Verdict::Failed { reason: FailReason::BadAnswer, message: problem.to_string() };
            }
            let result = result.iter().flat_map(|word| word.to_le_bytes()).collect();
            Verdict::Accepted { streams, chains, input, result, windows }
        }
        Ok(Decision::Fail(message)) => Verdict::Failed { reason: FailReason::Exception, message },
        Err(panic) => {
            let message = format!("panic: {}", words(panic.as_ref()));
            Verdict::Failed { reason: FailReason::Exception, message }
        }
    }
}

/// Answers that were not sent yet.
#[derive(Default)]
struct Answers {
    frame: Vec<u8>,
    count: u32,
}

impl Answers {
    fn push(&mut self, sequence: u64, verdict: &Verdict, socket: &OwnedFd) -> Result<(), ServeError> {
        if HEADER_BYTES + self.frame.len() + ONE_BYTES_MAX > FRAME_BYTES_MAX {
            self.send(socket)?;
        }
        push_answer(sequence, verdict, &mut self.frame);
        self.count += 1;
        Ok(())
    }

    fn send(&mut self, socket: &OwnedFd) -> Result<(), ServeError> {
        if self.count > 0 {
            let count = u16::try_from(self.count).expect("there are few events in a frame");
            tell(socket, Header { kind: to_owner::ANSWERS, count, more: 0 }, &self.frame)?;
            self.frame.clear();
            self.count = 0;
        }
        Ok(())
    }
}

/// The socket goes where nobody finds it by accident; whoever reads standard input finds nothing.
fn take_socket() -> Result<OwnedFd, ServeError> {
    let is_socket =
        rustix::net::sockopt::socket_type(stdin()).is_ok_and(|kind| kind == rustix::net::SocketType::SEQPACKET);
    if !is_socket {
        return Err(ServeError::NoOwner);
    }
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)?;
    let socket = fcntl_dupfd_cloexec(stdin(), 3).map_err(io::Error::from)?;
    dup2_stdin(File::open("/dev/null")?).map_err(io::Error::from)?;
    Ok(socket)
}

/// `None` if the owner is gone already.
fn receive_setup(socket: &OwnedFd) -> Result<Option<(Setup, SlotReader, Progress)>, ServeError> {
    let mut frame = vec![0; FRAME_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(&mut frame)], &mut control, RecvFlags::CMSG_CLOEXEC));
    let received = received.map_err(gone)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let strange = |found: String| ServeError::Protocol { found, expected: "a setup with two descriptors" };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(strange("a frame that is too long".into()));
    }
    let (header, json) = Header::parse(&frame[..received.bytes]).ok_or_else(|| strange("a torn frame".into()))?;
    if (header.kind, header.count) != (to_task::SETUP, VERSION) {
        return Err(strange(format!("kind {} of version {}", header.kind, header.count)));
    }
    let setup: Setup = serde_json::from_slice(json).map_err(|error| strange(error.to_string()))?;
    let found = descriptors.len();
    let Ok([slots, progress]) = <[OwnedFd; 2]>::try_from(descriptors) else {
        return Err(strange(format!("{found} descriptors")));
    };
    let slots = SlotReader::map(slots, setup.slots, setup.slot_bytes)?;
    Ok(Some((setup, slots, Progress::map(progress)?)))
}

fn tell(socket: &OwnedFd, header: Header, body: &[u8]) -> Result<(), ServeError> {
    let frame = [&header.emit(), body].concat();
    retry_on_intr(|| send(socket, &frame, SendFlags::NOSIGNAL)).map_err(gone)?;
    Ok(())
}

fn gone(errno: Errno) -> ServeError {
    ServeError::System(errno.into())
}

fn words(panic: &(dyn core::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// More than an owner gives at a time.
const EVENTS_FRAME_BYTES_MAX: usize = HEADER_BYTES + 1024 * EVENT_BYTES;
