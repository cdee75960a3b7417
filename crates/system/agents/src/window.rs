//! Where an application shows events to whoever is logged in at its host.
//!
//! It listens at a socket in no file system, whose name has the id of its process, and takes its own user alone. The question is a line of
//! words: `sample`, of how many events one is wanted, and trigger types, if not all are. The answer is `ok` or `no` and a reason, each a line.
//! Behind `ok` come events, each behind its length in four bytes, until either side goes.

use std::io::{self, ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::str;
use std::time::Duration;

use base::time::Time;
use rustix::net::sockopt::socket_peercred;
use transport::error::OsError;
use transport::poller::{Poller, Readiness};

use crate::visit::hear;

/// The application's side. It shows events to one viewer at a time.
pub struct Window {
    listener: UnixListener,
    readiness: Readiness,
    viewer: Option<Viewer>,
}

/// Which events somebody at a host wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Level-1 trigger types, one bit each; with none of them set it is all.
    pub trigger_types: [u64; 4],
    /// Of these events, one in so many.
    pub prescale: u64,
}

struct Viewer {
    stream: UnixStream,
    readiness: Readiness,
    said: Vec<u8>,
    wanted: Option<Wanted>,
    /// What was not taken yet.
    waiting: Vec<u8>,
    /// When more is asked for, if all was taken by then; before the question has come, until when it has to.
    next: Time,
}

impl Window {
    /// Of this process.
    ///
    /// # Errors
    /// Somebody else has its name, or the kernel refuses.
    pub fn open(poller: &mut Poller) -> io::Result<Self> {
        Self::of(std::process::id(), poller)
    }

    pub(crate) fn of(process: u32, poller: &mut Poller) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&address_of(process)?)?;
        listener.set_nonblocking(true)?;
        let readiness = poller.register(&listener).map_err(in_kernel)?;
        Ok(Self { listener, readiness, viewer: None })
    }

    /// Whether [`serve`](Self::serve) has something to do. No system call.
    pub fn is_due(&self, now: Time) -> bool {
        self.readiness.is_readable() || self.viewer.as_ref().is_some_and(|viewer| viewer.is_due(now))
    }

    /// When it has, whatever happens.
    pub fn next_deadline(&self) -> Option<Time> {
        self.viewer.as_ref().map(|viewer| viewer.next)
    }

    /// Hears who comes, goes and asks, and waits for nobody. What is to be shown from now on, if that is to be said again: nothing when a
    /// viewer has gone.
    pub fn serve(&mut self, now: Time, poller: &mut Poller) -> Option<Option<Wanted>> {
        let word = self.hear(now);
        let is_free = self.viewer.is_none();
        self.admit(now, poller);
        // Who comes in the pass in which another one goes is asked at once, and else nobody says that the other one has gone.
        if is_free { self.hear(now).or(word) } else { word }
    }

    fn hear(&mut self, now: Time) -> Option<Option<Wanted>> {
        let viewer = self.viewer.as_mut()?;
        let had_asked = viewer.wanted.is_some();
        if !viewer.goes_on(now) {
            self.viewer = None;
            return had_asked.then_some(None);
        }
        viewer.asks(now).map(Some)
    }

    /// Shows a whole event; dropped if nobody is there.
    pub fn show(&mut self, event: &[u8]) {
        let Some(viewer) = self.viewer.as_mut().filter(|viewer| viewer.wanted.is_some()) else { return };
        let Ok(len) = u32::try_from(event.len()) else { return };
        viewer.waiting.extend_from_slice(&len.to_le_bytes());
        viewer.waiting.extend_from_slice(event);
    }

    /// Few at a time: whoever knocks without end does not hold up the application.
    fn admit(&mut self, now: Time, poller: &mut Poller) {
        self.readiness.clear_readable();
        for _ in 0..ADMITTED_MAX {
            let Ok((stream, _)) = self.listener.accept() else { return };
            self.let_in(now, stream, poller);
        }
        self.readiness.set_readable();
    }

    fn let_in(&mut self, now: Time, mut stream: UnixStream, poller: &mut Poller) {
        if !is_ours(&stream) || stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.viewer.is_some() {
            // Whoever takes nothing loses the answer.
            let _ = stream.write_all(b"no\nsomebody else looks into it already\n");
            return;
        }
        let Ok(readiness) = poller.register(&stream) else { return };
        let (said, waiting) = (Vec::new(), Vec::new());
        self.viewer = Some(Viewer { stream, readiness, said, wanted: None, waiting, next: now + PATIENCE });
    }
}

impl Viewer {
    fn is_due(&self, now: Time) -> bool {
        let may_write = !self.waiting.is_empty() && self.readiness.is_writable();
        self.readiness.is_readable() || may_write || self.next <= now
    }

    /// Hears and tells; false once it is to go.
    fn goes_on(&mut self, now: Time) -> bool {
        self.hear() && self.tell() && (self.wanted.is_some() || now < self.next)
    }

    fn hear(&mut self) -> bool {
        self.readiness.clear_readable();
        hear(&mut self.stream, &mut self.said, LINE_MAX)
    }

    fn tell(&mut self) -> bool {
        while !self.waiting.is_empty() {
            match self.stream.write(&self.waiting) {
                Ok(0) => return false,
                Ok(len) => drop(self.waiting.drain(..len)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readiness.clear_writable();
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// What it asks for now: for the first time, or for more. One that has not taken what it was shown asks for nothing.
    fn asks(&mut self, now: Time) -> Option<Wanted> {
        if self.wanted.is_none() {
            let end = self.said.iter().position(|byte| *byte == b'\n')?;
            self.wanted = str::from_utf8(&self.said[..end]).ok().and_then(Wanted::from_line);
            if self.wanted.is_none() {
                self.waiting.extend_from_slice(b"no\nexpected: sample PRESCALE TYPES\n");
                self.tell();
                self.next = now;
                return None;
            }
            self.waiting.extend_from_slice(b"ok\n");
            self.tell();
        } else if now < self.next {
            return None;
        }
        self.next = now + ASK_EVERY;
        self.wanted.filter(|_| self.waiting.is_empty())
    }
}

impl Wanted {
    fn from_line(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let prescale = words.next().filter(|verb| *verb == "sample").and_then(|_| words.next()?.parse().ok())?;
        let mut trigger_types = [0; 4];
        for word in words {
            let number: u8 = word.parse().ok()?;
            trigger_types[usize::from(number / 64)] |= 1 << (number % 64);
        }
        (prescale > 0).then_some(Self { trigger_types, prescale })
    }

    fn to_line(self) -> String {
        let is_set = |number: &u8| self.trigger_types[usize::from(number / 64)] >> (number % 64) & 1 == 1;
        let types: String = (0..=u8::MAX).filter(is_set).map(|number| format!(" {number}")).collect();
        format!("sample {}{types}\n", self.prescale)
    }
}

/// The viewer's side: events of a process, one after the other.
pub(crate) struct View {
    stream: UnixStream,
    /// The process has said that it shows them.
    is_shown: bool,
}

impl View {
    /// Asks the process of this number, and does not wait for its answer.
    pub(crate) fn open(process: u32, wanted: Wanted) -> io::Result<Self> {
        let mut stream = UnixStream::connect_addr(&address_of(process)?)?;
        if !is_ours(&stream) {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "it is of another user"));
        }
        stream.write_all(wanted.to_line().as_bytes())?;
        Ok(Self { stream, is_shown: false })
    }

    /// Another handle, by which another thread can end it.
    pub(crate) fn handle(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    /// The next event; waits for it, and for the answer in front of the first one for [`PATIENCE`].
    pub(crate) fn next(&mut self) -> io::Result<Vec<u8>> {
        if !self.is_shown {
            self.hear_answer()?;
        }
        let mut len = [0; 4];
        self.stream.read_exact(&mut len)?;
        let (len, mut event) = (u64::from(u32::from_le_bytes(len)), Vec::new());
        let found = (&mut self.stream).take(len).read_to_end(&mut event)?;
        if found as u64 == len { Ok(event) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    fn hear_answer(&mut self) -> io::Result<()> {
        self.stream.set_read_timeout(Some(PATIENCE))?;
        if read_line(&mut self.stream)? != "ok" {
            return Err(io::Error::other(read_line(&mut self.stream)?));
        }
        self.is_shown = true;
        self.stream.set_read_timeout(None)
    }
}

/// A short line, without its end.
fn read_line(stream: &mut UnixStream) -> io::Result<String> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < LINE_MAX {
        stream.read_exact(&mut byte)?;
        if byte == *b"\n" {
            return Ok(String::from_utf8_lossy(&line).into_owned());
        }
        line.extend(byte);
    }
    Err(io::Error::new(ErrorKind::InvalidData, "it says a line without an end"))
}

fn address_of(process: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("weir-samples-{process}"))
}

fn is_ours(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

fn in_kernel(error: OsError) -> io::Error {
    io::Error::other(error)
}

const LINE_MAX: usize = 1100;
/// As run control asks.
const ASK_EVERY: Duration = Duration::from_millis(250);
const ADMITTED_MAX: usize = 4;
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The number of no process of this machine: tests of one process have windows of their own.
    pub(crate) fn made_up(test: u32) -> u32 {
        // The kernel gives fewer.
        (test << PROCESS_BITS) + std::process::id()
    }

    const PROCESS_BITS: u32 = 23;

    #[test]
    fn a_question_is_read_as_it_is_said() {
        for trigger_types in [[0; 4], [1, 1 << 4, 0, 1 << 63], [u64::MAX; 4]] {
            let wanted = Wanted { trigger_types, prescale: 100 };
            let line = wanted.to_line();
            assert!(line.len() <= LINE_MAX);
            assert_eq!(Wanted::from_line(line.trim_end()), Some(wanted));
        }
        for line in ["", "sample", "sample 0", "sample 1 256", "dance 1"] {
            assert_eq!(Wanted::from_line(line), None, "{line}");
        }
    }

    #[test]
    fn whoever_looks_is_shown_what_he_takes_and_one_at_a_time() {
        let mut poller = Poller::new().unwrap();
        let mut window = Window::of(made_up(1), &mut poller).unwrap();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let wanted = Wanted { trigger_types: [0; 4], prescale: 3 };
        let looking = std::thread::spawn(move || {
            let mut view = View::open(made_up(1), wanted).unwrap();
            view.hear_answer().unwrap();
            let other = View::open(made_up(1), wanted).unwrap().next();
            (other.unwrap_err().to_string(), view.next().unwrap())
        });
        let mut told = None;
        while told.is_none() {
            told = window.serve(at(0), &mut poller);
        }
        assert_eq!(told, Some(Some(wanted)));
        assert_eq!(window.serve(at(249), &mut poller), None);
        window.show(b"an event");
        let mut last = None;
        while last != Some(None) {
            last = window.serve(at(250), &mut poller).or(last);
        }
        let (refused, event) = looking.join().unwrap();
        assert_eq!((refused.as_str(), event.as_slice()), ("somebody else looks into it already", &b"an event"[..]));
        window.show(b"for nobody");
        assert!(window.viewer.is_none() && window.next_deadline().is_none());
    }

    #[test]
    fn who_comes_when_another_one_has_just_gone_is_shown_something() {
        let mut poller = Poller::new().unwrap();
        let mut window = Window::of(made_up(2), &mut poller).unwrap();
        let wanted = |prescale| Wanted { trigger_types: [0; 4], prescale };
        let look = |prescale| {
            let mut stream = UnixStream::connect_addr(&address_of(made_up(2)).unwrap()).unwrap();
            stream.write_all(wanted(prescale).to_line().as_bytes()).unwrap();
            stream
        };
        let mut ready = |window: &mut Window| {
            poller.wait(Some(Duration::ZERO)).unwrap();
            window.serve(Time::ZERO, &mut poller)
        };
        let first = look(1);
        assert_eq!(ready(&mut window), Some(Some(wanted(1))));
        drop(first);
        let _second = look(2);
        assert_eq!(ready(&mut window), Some(Some(wanted(2))));
        assert_eq!(ready(&mut window), None);
    }
}
