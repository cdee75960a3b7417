//! One process of a task, and what it is working on.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use base::time::Time;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv,
    send, sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, kill_process_group, pidfd_open, prlimit};
use transport::shared_memory::Progress;

use crate::options::{TasksError, TasksOptions};
use crate::output::{self, Output};
use crate::protocol::{DEPTH_MAX, Given, Header, Setup, VERSION, emit_events, to_task};
use crate::verdict::Ended;

/// An event that waits or is worked on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) ticket: u64,
    pub(crate) given: Given,
    /// How many tasks died while it waited behind another event.
    pub(crate) witnessed: u32,
    /// Whether it must be worked on with no other beside: it is suspected.
    pub(crate) alone: bool,
}

/// A live process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Pid,
    death: OwnedFd,
    /// `None` after its end of stream.
    socket: Option<OwnedFd>,
    pub(crate) output: Output,
    pub(crate) progress: Progress,
    pub(crate) stage: Stage,
    /// Why it was or will be killed by us.
    pub(crate) ending: Option<Ending>,
    pub(crate) jobs: VecDeque<Job>,
    /// Its progress when we last looked, and since when.
    watched: (u64, Time),
    /// When it began to work on its oldest event, as far as we know.
    busy_since: Time,
    mean_ns: u64,
    /// Whether it has decided anything.
    pub(crate) was_useful: bool,
    is_reaped: bool,
}

/// How far a process has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It must be ready by then.
    Starting { deadline: Time, said_hello: bool },
    /// It decides events.
    Ready,
}

/// Why we end a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It works too long on this event.
    Timeout { sequence: u64 },
    /// It breaks the protocol.
    BadAnswer(String),
    /// It takes no more events: about to end by itself, or killed then.
    HungUp { deadline: Time },
    /// It says itself that it cannot start.
    Unable(String),
    /// It was not ready in time.
    StartTimeout,
}

impl Process {
    /// Starts a process; it says hello when it can.
    pub(crate) fn start(options: &TasksOptions, task: &str, now: Time) -> Result<Self, TasksError> {
        let system = |cause: io::Error| TasksError::System { name: task.to_owned(), cause };
        let errno = |errno: Errno| system(errno.into());
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).map_err(errno)?;
        let (read, write) = output::pipe().map_err(system)?;
        let progress =
            Progress::new("weir progress").map_err(|cause| TasksError::Memory { name: task.to_owned(), cause })?;
        let (program, arguments) = options.command.split_first().expect("checked: a command has a program");
        let stdout = write.try_clone().map_err(system)?;
        let child = Command::new(program)
            .args(arguments)
            .envs(options.environment.iter().map(|(name, value)| (name, value)))
            .stdin(theirs)
            .stdout(stdout)
            .stderr(write)
            // A group of its own keeps the terminal's Ctrl-C away and is killed with all that it started.
            .process_group(0)
            .spawn();
        let program = || program.to_string_lossy().into_owned();
        let mut child =
            child.map_err(|cause| TasksError::Program { task: task.to_owned(), program: program(), cause })?;
        let group = Pid::from_child(&child);
        let death = match pidfd_open(group, PidfdFlags::empty()) {
            Ok(death) => death,
            Err(refused) => {
                kill_and_wait(&mut child, group);
                return Err(errno(refused));
            }
        };
        let stage = Stage::Starting { deadline: now + options.start_timeout, said_hello: false };
        let (socket, output) = (Some(ours), Output::new(read));
        let (jobs, watched, busy_since) = (VecDeque::new(), (0, now), now);
        let (ending, mean_ns, was_useful, is_reaped) = (None, BATCH_NS, false, false);
        Ok(Self {
            child,
            group,
            death,
            socket,
            output,
            progress,
            stage,
            ending,
            jobs,
            watched,
            busy_since,
            mean_ns,
            was_useful,
            is_reaped,
        })
    }

    /// Becomes readable when the process has ended.
    pub(crate) fn death(&self) -> BorrowedFd<'_> {
        self.death.as_fd()
    }

    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Answers its hello. The limit is set here, by us, so that it holds for a task in any language.
    pub(crate) fn set_up(&self, setup: &Setup, slots: BorrowedFd<'_>, memory_limit: Option<u64>) -> io::Result<()> {
        if let Some(limit) = memory_limit {
            prlimit(Some(self.group), Resource::Data, Rlimit { current: Some(limit), maximum: Some(limit) })?;
        }
        let header = Header { kind: to_task::SETUP, count: VERSION, more: 0 }.emit();
        let json = serde_json::to_vec(setup).expect("strings and numbers are JSON");
        let descriptors = [slots, self.progress.as_fd()];
        let mut space = [core::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)), "the space is for two descriptors");
        let parts = [IoSlice::new(&header), IoSlice::new(&json)];
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        sendmsg(socket, &parts, &mut control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// How many more events it may have.
    pub(crate) fn room(&self) -> usize {
        let is_taken = self.jobs.back().is_some_and(|job| job.alone);
        if self.stage != Stage::Ready || self.ending.is_some() || is_taken {
            return 0;
        }
        (2 * self.answer_after()).saturating_sub(self.jobs.len())
    }

    /// It answers after as many events as take it about [`BATCH_NS`], and has as many more waiting meanwhile. So fast
    /// tasks never run dry, and slow ones hold up little.
    fn answer_after(&self) -> usize {
        let events = BATCH_NS / self.mean_ns.max(1);
        usize::try_from(events).map_or(BATCH_MAX, |events| events.clamp(1, BATCH_MAX))
    }

    /// Gives it the last `count` of its jobs, by which it has more work than it was told of.
    pub(crate) fn tell(&mut self, count: usize, now: Time, frame: &mut Vec<u8>) {
        if self.jobs.len() == count {
            self.watched = (self.progress.load(), now);
            self.busy_since = now;
        }
        let answer_after = u32::try_from(self.answer_after()).expect("a small number");
        let new = self.jobs.range(self.jobs.len() - count..).map(|job| job.given);
        emit_events(new, answer_after, frame);
        let socket = self.socket.as_ref().expect("a process that hung up gets no work");
        // Its few small frames always fit: a socket that takes no more, or is closed, has no sane task behind it. Its death
        // tells more, if it dies.
        if send(socket, frame, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_err() {
            self.hang_up(now);
        }
    }

    /// The next frame that it sent; `None` if there is none now.
    pub(crate) fn receive<'b>(&mut self, buffer: &'b mut [u8], now: Time) -> Option<&'b [u8]> {
        let received = loop {
            match recv(self.socket.as_ref()?, &mut *buffer, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                // A process that ended with events unread resets the connection, once; what it sent before is still there.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                other => break other.map(|(_, len)| len),
            }
        };
        match received {
            Ok(len) if len > buffer.len() => {
                let max = buffer.len();
                self.end(Ending::BadAnswer(format!("a frame of {len} bytes, at most {max} are allowed")));
            }
            Ok(len) if len > 0 => return Some(&buffer[..len]),
            Err(Errno::AGAIN) => {}
            Ok(_) | Err(_) => {
                self.socket = None;
                self.hang_up(now);
            }
        }
        None
    }

    /// It has answered `count` events.
    pub(crate) fn answered(&mut self, count: usize, now: Time) {
        self.was_useful = true;
        let spent = u64::try_from(now.since(self.busy_since).as_nanos()).unwrap_or(u64::MAX);
        self.busy_since = now;
        let one = spent / (count as u64).max(1);
        self.mean_ns = if one > self.mean_ns { one } else { (self.mean_ns * 7 + one) / 8 };
    }

    /// Ends it if it works too long on an event, does not start, or neither ends nor talks.
    pub(crate) fn watch(&mut self, timeout: Duration, now: Time) {
        match (&self.ending, &self.stage) {
            (Some(Ending::HungUp { deadline }), _) if now >= *deadline => {
                self.end(Ending::BadAnswer("it takes no more events and goes on".into()));
            }
            (Some(_), _) => {}
            (None, Stage::Starting { deadline, .. }) if now >= *deadline => self.end(Ending::StartTimeout),
            (None, Stage::Starting { .. }) => {}
            (None, Stage::Ready) if self.jobs.is_empty() => {}
            (None, Stage::Ready) => {
                let at = self.progress.load();
                if at != self.watched.0 {
                    self.watched = (at, now);
                } else if now.since(self.watched.1) >= timeout {
                    self.end(Ending::Timeout { sequence: at });
                }
            }
        }
    }

    /// When to [`watch`](Self::watch) again.
    pub(crate) fn watch_due(&self, timeout: Duration, now: Time) -> Option<Time> {
        match (&self.ending, &self.stage) {
            (Some(Ending::HungUp { deadline }), _) | (None, Stage::Starting { deadline, .. }) => Some(*deadline),
            (None, Stage::Ready) if !self.jobs.is_empty() => {
                Some((now + timeout / LOOKS_PER_TIMEOUT).min(self.watched.1 + timeout))
            }
            _ => None,
        }
    }

    /// Kills it; its death is seen later. The first reason counts, but a hang-up is none.
    pub(crate) fn end(&mut self, why: Ending) {
        if matches!(self.ending, None | Some(Ending::HungUp { .. })) {
            if matches!(why, Ending::BadAnswer(_)) {
                // What else it sends before it is dead is not to be believed.
                self.socket = None;
            }
            self.ending = Some(why);
            // It may have ended in between.
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }

    /// It gets no more work; what it sent is still to be read.
    fn hang_up(&mut self, now: Time) {
        if self.ending.is_none() {
            self.ending = Some(Ending::HungUp { deadline: now + HANG_UP_GRACE });
        }
    }

    /// Tells it to end: a task ends at the end of its stream.
    pub(crate) fn close(&mut self) {
        self.socket = None;
    }

    /// Kills whatever of it lives, and reaps it.
    pub(crate) fn reap(&mut self) -> Ended {
        self.is_reaped = true;
        kill_and_wait(&mut self.child, self.group)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.reap();
        }
    }
}

/// The group dies before its leader is reaped: until then its number belongs to nobody else.
fn kill_and_wait(child: &mut Child, group: Pid) -> Ended {
    // Nothing of the group may be left.
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().expect("a child of our own can be waited for, once").into()
}

/// A task answers about this often: a wake-up of the owner costs some microseconds.
const BATCH_NS: u64 = 250_000;
const BATCH_MAX: usize = DEPTH_MAX / 2;
const LOOKS_PER_TIMEOUT: u32 = 4;
/// A process closes its socket when it ends; one that goes on is not a task any more.
const HANG_UP_GRACE: Duration = Duration::from_secs(2);
