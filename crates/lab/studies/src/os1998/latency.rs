//! From a signal to the program that waits for it: what the paper measures with interrupts of VME [OS1998 §2].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::pthread::{Pthread, pthread_kill, pthread_self};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use transport::clock;
use transport::error::OsError;

use super::machine::{Class, Load, Machine, Seat, beside};
use crate::error::StudyError;

/// What makes the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// An interrupt: the timer of this processor, through `timerfd`.
    Timer,
    /// Another thread, through `eventfd`.
    Event,
    /// Another thread, by a signal of POSIX.
    Signal,
}

/// How the program waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// In a call that waits for this alone.
    Block,
    /// In a call that waits for any of several descriptors.
    Poll,
    /// It looks again and again. For a signal it computes, until the handler interrupts it.
    Spin,
}

impl Source {
    pub(super) const ALL: [Self; 3] = [Self::Timer, Self::Event, Self::Signal];
}

impl Wait {
    pub(super) const ALL: [Self; 3] = [Self::Block, Self::Poll, Self::Spin];
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timer => "timerfd",
            Self::Event => "eventfd",
            Self::Signal => "signal",
        })
    }
}

impl Wait {
    pub(super) fn of(self, source: Source) -> &'static str {
        match (self, source) {
            (Self::Block, Source::Signal) => "sigwait",
            (Self::Block, _) => "read",
            (Self::Poll, Source::Signal) => "poll, signalfd",
            (Self::Poll, _) => "poll, read",
            (Self::Spin, Source::Signal) => "handler",
            (Self::Spin, _) => "read, polling",
        }
    }
}

/// Times from signals to the program, in rising order.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    ns: Vec<u64>,
}

impl Latencies {
    fn new(mut ns: Vec<u64>) -> Self {
        ns.sort_unstable();
        Self { ns }
    }

    pub(super) fn count(&self) -> usize {
        self.ns.len()
    }

    /// Below which this part of them is; none of none.
    pub(super) fn us(&self, part: f64) -> Option<f64> {
        let last = self.ns.len().checked_sub(1)?;
        self.ns.get((part * last as f64).round() as usize).map(|ns| *ns as f64 / 1e3)
    }

    /// Points of the curve of the part that takes longer, for a figure with logarithmic axes.
    pub(super) fn tail(&self) -> Vec<(f64, f64)> {
        let count = self.ns.len();
        // Below a thousandth of them a few are drawn one by one; above it, steps of a twentieth of a decade are enough.
        let mut points = Vec::new();
        let mut next = 1.0_f64;
        for (place, ns) in self.ns.iter().enumerate() {
            let part = (count - place) as f64 / count as f64;
            if part <= next {
                points.push((*ns as f64 / 1e3, part));
                next = part / STEP;
            }
        }
        points
    }
}

/// One way to wait, in one class, beside each load in the order of [`Load::ALL`].
pub(super) struct Row {
    pub(super) source: Source,
    pub(super) wait: Wait,
    pub(super) class: Class,
    pub(super) beside: [Latencies; 3],
}

impl Row {
    pub(super) fn measure(
        machine: &Machine,
        (source, wait): (Source, Wait),
        class: Class,
        each: Duration,
    ) -> Result<Self, StudyError> {
        let mut all: [Latencies; 3] = Default::default();
        for (latencies, load) in all.iter_mut().zip(Load::ALL) {
            let seat = Seat::new(machine.here, class);
            let ns = match source {
                Source::Timer => beside(seat, load, || timer(wait, each))??,
                Source::Event => of_event(machine, wait, class, load, each)?,
                Source::Signal => of_signal(machine, wait, class, load, each)?,
            };
            *latencies = Latencies::new(ns);
        }
        Ok(Self { source, wait, class, beside: all })
    }
}

/// From the time for which the timer is set.
fn timer(wait: Wait, each: Duration) -> Result<Vec<u64>, OsError> {
    let flags = if wait == Wait::Spin { TimerfdFlags::NONBLOCK } else { TimerfdFlags::empty() };
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(failed("timerfd_create"))?;
    let end = now_ns() + ns_of(each);
    let mut latencies = Vec::new();
    while latencies.is_empty() || now_ns() < end {
        let due = now_ns() + PERIOD_NS;
        let it_value = Timespec { tv_sec: (due / NS_PER_S) as i64, tv_nsec: (due % NS_PER_S) as i64 };
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once).map_err(failed("timerfd_settime"))?;
        number(&timer, wait, u64::MAX)?;
        latencies.push(now_ns().saturating_sub(due));
    }
    Ok(latencies)
}

/// From before another thread writes until the number is here, which is the time of the writing.
fn of_event(machine: &Machine, wait: Wait, class: Class, load: Load, each: Duration) -> Result<Vec<u64>, StudyError> {
    let flags = if wait == Wait::Spin { EventfdFlags::NONBLOCK } else { EventfdFlags::empty() };
    let event = eventfd(0, flags).map_err(failed("eventfd"))?;
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        let (say, hear) = mpsc::sync_channel::<()>(1);
        let (event, taken) = (&event, &taken);
        let sender = scope.spawn(move || {
            // Who waits could not take its place.
            let Ok(()) = hear.recv() else { return Ok(()) };
            send_each_period(machine, class, each, taken, |at| {
                write(event, &at.to_ne_bytes()).map(drop).map_err(failed("write to eventfd"))
            })
        });
        let received = beside(Seat::new(machine.here, class), load, move || {
            let _ = say.send(());
            let give_up = now_ns() + ns_of(each) + 2 * PATIENCE_NS;
            let mut latencies = Vec::new();
            while let Some(at) = number(event, wait, give_up)?.filter(|at| *at != END) {
                latencies.push(now_ns().saturating_sub(at));
                taken.fetch_add(1, Ordering::Release);
            }
            Ok::<_, OsError>(latencies)
        });
        sender.join().expect("who sends does not panic")?;
        received?.map_err(StudyError::from)
    })
}

/// From before another thread sends the signal until this one has it, or until its handler begins.
fn of_signal(machine: &Machine, wait: Wait, class: Class, load: Load, each: Duration) -> Result<Vec<u64>, StudyError> {
    let (taken, sent) = (AtomicU64::new(0), AtomicU64::new(0));
    let caught = Arc::new(AtomicBool::new(false));
    let handler = signal_hook::flag::register(SIGNAL as i32, Arc::clone(&caught)).map_err(StudyError::Signals)?;
    let received = thread::scope(|scope| {
        let (say, hear) = mpsc::sync_channel::<Pthread>(1);
        let (sent, taken, caught) = (&sent, &taken, &*caught);
        let sender = scope.spawn(move || {
            // Who waits could not take its place.
            let Ok(receiver) = hear.recv() else { return Ok(()) };
            send_each_period(machine, class, each, taken, |at| {
                sent.store(at, Ordering::Release);
                pthread_kill(receiver, SIGNAL).map_err(|errno| refused("pthread_kill", errno))
            })
        });
        let received = beside(Seat::new(machine.here, class), load, move || {
            let waiting = Waiting::new(wait, caught)?;
            let _ = say.send(pthread_self());
            let mut latencies = Vec::new();
            loop {
                waiting.for_signal()?;
                let (now, at) = (now_ns(), sent.load(Ordering::Acquire));
                if at == END {
                    return Ok::<_, OsError>(latencies);
                }
                latencies.push(now.saturating_sub(at));
                taken.fetch_add(1, Ordering::Release);
            }
        });
        sender.join().expect("who sends does not panic")?;
        received?.map_err(StudyError::from)
    });
    signal_hook::low_level::unregister(handler);
    received
}

/// How a thread waits for signals.
enum Waiting<'a> {
    Block(SigSet),
    Poll(SignalFd),
    Spin(&'a AtomicBool),
}

impl<'a> Waiting<'a> {
    fn new(wait: Wait, caught: &'a AtomicBool) -> Result<Self, OsError> {
        let mut signals = SigSet::empty();
        signals.add(SIGNAL);
        if wait == Wait::Spin {
            return Ok(Self::Spin(caught));
        }
        signals.thread_block().map_err(|errno| refused("pthread_sigmask", errno))?;
        if wait == Wait::Block {
            return Ok(Self::Block(signals));
        }
        SignalFd::with_flags(&signals, SfdFlags::empty()).map(Self::Poll).map_err(|errno| refused("signalfd", errno))
    }

    fn for_signal(&self) -> Result<(), OsError> {
        match self {
            Self::Block(signals) => signals.wait().map(drop).map_err(|errno| refused("sigwait", errno)),
            Self::Poll(signals) => {
                until_ready(signals)?;
                signals.read_signal().map(drop).map_err(|errno| refused("read of signalfd", errno))
            }
            Self::Spin(caught) => {
                while !caught.swap(false, Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                Ok(())
            }
        }
    }
}

/// Sends the time again and again, each time when the one before has been taken, and whatever happens at last [`END`].
fn send_each_period(
    machine: &Machine,
    class: Class,
    each: Duration,
    taken: &AtomicU64,
    send: impl Fn(u64) -> Result<(), OsError>,
) -> Result<(), OsError> {
    let end = now_ns() + ns_of(each);
    let send_all = || {
        let mut sent = 0;
        while sent == 0 || now_ns() < end {
            send(now_ns())?;
            sent += 1;
            while taken.load(Ordering::Acquire) < sent {
                pause();
                // Who waits could not take its place, and says so itself.
                if now_ns() > end + PATIENCE_NS {
                    return Ok(());
                }
            }
            pause();
        }
        Ok(())
    };
    let sent = Seat::new(machine.there, class).take().and_then(|()| send_all());
    send(END)?;
    sent
}

/// The number of a descriptor, waited for like that; a thread that looks again and again gives up at a time.
fn number(fd: &OwnedFd, wait: Wait, give_up_ns: u64) -> Result<Option<u64>, OsError> {
    let mut bytes = [0; 8];
    if wait == Wait::Poll {
        until_ready(fd)?;
    }
    loop {
        match retry_on_intr(|| read(fd, &mut bytes)) {
            Ok(_) => return Ok(Some(u64::from_ne_bytes(bytes))),
            Err(Errno::AGAIN) if wait == Wait::Spin => {
                if now_ns() >= give_up_ns {
                    return Ok(None);
                }
            }
            Err(errno) => return Err(OsError::new("read", errno)),
        }
    }
}

fn until_ready(fd: &impl AsFd) -> Result<(), OsError> {
    retry_on_intr(|| poll(&mut [PollFd::new(fd, PollFlags::IN)], None)).map(drop).map_err(failed("poll"))
}

fn failed(call: &'static str) -> impl Fn(Errno) -> OsError {
    move |errno| OsError::new(call, errno)
}

fn refused(call: &'static str, errno: nix::errno::Errno) -> OsError {
    OsError { call, code: errno as i32 }
}

fn now_ns() -> u64 {
    clock::now().as_ns()
}

#[expect(clippy::disallowed_methods, reason = "who sends does so from time to time")]
fn pause() {
    thread::sleep(PERIOD);
}

fn ns_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

/// No time, and not above what `eventfd` takes.
const END: u64 = u64::MAX - 1;
const PERIOD: Duration = Duration::from_nanos(PERIOD_NS);
const PERIOD_NS: u64 = 100_000;
/// Longer than any load keeps a thread from its processor.
const PATIENCE_NS: u64 = 2 * NS_PER_S;
const NS_PER_S: u64 = 1_000_000_000;
const SIGNAL: Signal = Signal::SIGUSR1;
/// A twentieth of a decade.
const STEP: f64 = 1.122;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_wait_is_measured_beside_every_load() {
        let machine = Machine::new();
        for source in Source::ALL {
            for wait in Wait::ALL {
                let row = Row::measure(&machine, (source, wait), Class::Normal, Duration::from_millis(1)).unwrap();
                for latencies in &row.beside {
                    let (median, most) = (latencies.us(0.5).unwrap(), latencies.us(1.0).unwrap());
                    assert!(latencies.count() > 0 && median > 0.0 && most >= median, "{source} {wait:?}");
                }
            }
        }
    }

    #[test]
    fn tails_fall() {
        let latencies = Latencies::new((1..=10_000).rev().collect());
        assert_eq!((latencies.us(0.0), latencies.us(1.0)), (Some(0.001), Some(10.0)));
        let tail = latencies.tail();
        assert!(tail.len() < 100 && tail.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1));
        assert_eq!(tail[0], (0.001, 1.0));
        assert_eq!(Latencies::default().us(0.5), None);
    }
}
