//! The scheduler of an I/O module \[DAQ1999 §2.2\]: tasks with a Poll and an Action function, one after the other, in one
//! thread.
//!
//! A pass asks each task's Poll function whether there is work and runs its Action function if so. A Poll looks at
//! memory only. One call per pass fetches the kernel's news about all registered sources, none if nothing is
//! registered. An Action does a bounded amount of work, many frames at a time, and leaves the rest for the next
//! pass. Nothing is allocated while running.

use crate::clock;
use crate::error::OsError;
use crate::idle::{Idle, IdleStrategy, Pause};
use crate::poller::{Poller, Readiness, sleep_until};
use crate::waker::Waker;
use base::time::Time;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, sched_yield};
use stamps::{NOWHERE, Section};
use std::sync::{Arc, OnceLock};
use std::thread;

/// A task; `S` is what the tasks of a scheduler share, such as the software FIFOs between them.
pub trait Task<S = ()> {
    /// Whether there is work. Called once per pass: cheap, no system call.
    fn poll(&mut self, context: &mut Context<'_, S>) -> bool;

    /// Does a bounded amount of the work.
    fn action(&mut self, context: &mut Context<'_, S>);

    /// When [`poll`](Self::poll) has to be called even if no source is ready and nobody wakes the scheduler.
    fn next_deadline(&self) -> Option<Time> {
        None
    }
}

/// What a task may use.
pub struct Context<'a, S = ()> {
    /// The time at the beginning of the pass.
    pub now: Time,
    /// What the tasks share.
    pub shared: &'a mut S,
    /// Where sources are registered.
    pub poller: &'a mut Poller,
    idle: &'a mut Idle,
    stop: &'a AtomicBool,
}

impl<S> Context<'_, S> {
    /// Changes how the scheduler waits when no task has work.
    pub fn set_idle(&mut self, strategy: IdleStrategy) {
        *self.idle = Idle::new(strategy);
    }

    /// Ends [`Scheduler::run`] after this pass.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What a scheduler has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerCounters {
    /// Passes over all tasks.
    pub passes: u64,
    /// Passes in which no task had work.
    pub idle_passes: u64,
    /// Actions run.
    pub actions: u64,
    /// Times the processor was yielded.
    pub yields: u64,
    /// Times it slept.
    pub sleeps: u64,
}

/// A fixed list of tasks under one thread.
pub struct Scheduler<'t, S = ()> {
    tasks: Vec<Entry<'t, S>>,
    poller: Poller,
    waker: Waker,
    waker_readiness: Readiness,
    kernel: KernelNews,
    idle: Idle,
    stop: Arc<AtomicBool>,
    counters: SchedulerCounters,
}

impl<'t, S> Scheduler<'t, S> {
    /// A scheduler without tasks.
    ///
    /// # Errors
    /// If the kernel has no more descriptors to give.
    pub fn new(idle: IdleStrategy) -> Result<Self, OsError> {
        let (waker, mut poller) = (Waker::new()?, Poller::new()?);
        let waker_readiness = poller.register(&waker)?;
        Ok(Self {
            tasks: Vec::new(),
            poller,
            waker,
            waker_readiness,
            kernel: KernelNews::default(),
            idle: Idle::new(idle),
            stop: Arc::new(AtomicBool::new(false)),
            counters: SchedulerCounters::default(),
        })
    }

    /// Adds a task behind the others; the name is that of its time stamps.
    pub fn add(&mut self, name: &str, task: impl Task<S> + 't) {
        let [poll, action] = ["poll", "action"].map(|function| stamps::section(&format!("{function} {name}")));
        self.tasks.push(Entry { poll, action, task: Box::new(task) });
    }

    /// Where sources are registered before running.
    pub fn poller(&mut self) -> &mut Poller {
        &mut self.poller
    }

    /// Wakes this scheduler.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Stops this scheduler from any thread.
    pub fn stopper(&self) -> Stopper {
        Stopper { stop: Arc::clone(&self.stop), waker: self.waker() }
    }

    /// The counters.
    pub fn counters(&self) -> SchedulerCounters {
        self.counters
    }

    /// Runs until it is stopped. It can be run again.
    ///
    /// # Errors
    /// If the kernel does not report on the sources.
    pub fn run(&mut self, shared: &mut S) -> Result<(), OsError> {
        while !self.stop.load(Ordering::Relaxed) {
            let now = clock::now();
            if self.pass(now, shared)? {
                let pause = self.idle.busy();
                if !pause.is_zero() {
                    self.counters.sleeps += 1;
                    rest(pause);
                }
                continue;
            }
            match self.idle.idle(now) {
                Pause::None => core::hint::spin_loop(),
                Pause::Yield => {
                    self.counters.yields += 1;
                    sched_yield();
                }
                Pause::Sleep => self.sleep(shared)?,
            }
        }
        self.stop.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// One pass over all tasks; returns whether any had work.
    ///
    /// # Errors
    /// If the kernel does not report on the sources.
    pub fn pass(&mut self, now: Time, shared: &mut S) -> Result<bool, OsError> {
        self.waker.begin_pass();
        if self.poller.watches_more_than_one() && self.kernel.is_due(now) {
            let news = self.poller.wait(Some(Duration::ZERO))?;
            self.kernel.asked(now, news > 0);
        }
        let is_busy = self.run_tasks(now, shared);
        self.kernel.is_busy = is_busy;
        Ok(is_busy)
    }

    fn run_tasks(&mut self, now: Time, shared: &mut S) -> bool {
        let (mut actions, polls) = (0, stamps::are_polls_armed());
        let (poller, idle, stop) = (&mut self.poller, &mut self.idle, &*self.stop);
        let mut context = Context { now, shared, poller, idle, stop };
        for Entry { poll, action, task } in &mut self.tasks {
            if polls {
                stamps::enter(*poll, NOWHERE, NOWHERE, None);
            }
            let has_work = task.poll(&mut context);
            if polls {
                stamps::leave();
            }
            if has_work {
                stamps::enter(*action, NOWHERE, NOWHERE, None);
                task.action(&mut context);
                stamps::leave();
                actions += 1;
            }
        }
        self.counters.passes += 1;
        self.counters.actions += actions;
        self.counters.idle_passes += u64::from(actions == 0);
        actions > 0
    }

    fn sleep(&mut self, shared: &mut S) -> Result<(), OsError> {
        if !self.waker.begin_sleep() {
            return Ok(());
        }
        if self.waker.announce_sleep() && self.run_tasks(clock::now(), shared) {
            self.waker.end_sleep();
            return Ok(());
        }
        // Nobody would wake a scheduler that a task has stopped.
        if self.stop.load(Ordering::Relaxed) {
            self.waker.end_sleep();
            return Ok(());
        }
        let deadline = self.tasks.iter().filter_map(|entry| entry.task.next_deadline()).min();
        self.counters.sleeps += 1;
        let woken = self.poller.wait(sleep_until(deadline, clock::now()));
        self.kernel = KernelNews::default();
        self.waker.end_sleep();
        self.waker_readiness.clear_readable();
        woken.map(|_| ())
    }
}

#[expect(clippy::disallowed_methods, reason = "the time itself is what is waited for")]
fn rest(pause: Duration) {
    thread::sleep(pause);
}

/// How often the kernel is asked for news: in each pass, unless it had none for many while work came from memory. Passes may
/// be long: it is asked again within [`UNASKED_MAX`] and a pass.
#[derive(Debug, Default)]
struct KernelNews {
    /// How often it was asked in vain, one time after the other.
    in_vain: u32,
    passes_since: u32,
    asked_at: Time,
    /// Whether the last pass had work.
    is_busy: bool,
}

impl KernelNews {
    fn is_due(&mut self, now: Time) -> bool {
        self.passes_since += 1;
        let passes = match (self.in_vain < IN_VAIN_MIN, self.is_busy) {
            (true, _) => 1,
            (false, true) => PASSES_BUSY,
            (false, false) => PASSES_IDLE,
        };
        self.passes_since >= passes || now.since(self.asked_at) >= UNASKED_MAX
    }

    fn asked(&mut self, now: Time, had_news: bool) {
        self.asked_at = now;
        self.passes_since = 0;
        self.in_vain = if had_news { 0 } else { self.in_vain.saturating_add(1) };
    }
}

/// Stops a scheduler from any thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    stop: Arc<AtomicBool>,
    waker: Waker,
}

impl Stopper {
    /// Ends [`Scheduler::run`] after the pass that it is in.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
    }
}

/// Binds the calling thread to one processor.
///
/// # Errors
/// If the host does not have the processor or does not let us use it.
pub fn pin_to_cpu(cpu: usize) -> Result<(), OsError> {
    let mut set = CpuSet::new();
    if cpu >= CpuSet::MAX_CPU {
        return Err(OsError::new("sched_setaffinity", rustix::io::Errno::INVAL));
    }
    set.set(cpu);
    let before = sched_getaffinity(None);
    sched_setaffinity(None, &set).map_err(|errno| OsError::new("sched_setaffinity", errno))?;
    let _ = before.map(|before| BEFORE_PINNED.get_or_init(|| before));
    Ok(())
}

/// Lets the calling thread run on all processors that its process was given, if any thread of the process was ever bound.
///
/// # Errors
/// If the host has taken these processors away.
pub fn unpin() -> Result<(), OsError> {
    let Some(before) = BEFORE_PINNED.get() else { return Ok(()) };
    sched_setaffinity(None, before).map_err(|errno| OsError::new("sched_setaffinity", errno))
}

/// Where the first thread that was bound could run before.
static BEFORE_PINNED: OnceLock<CpuSet> = OnceLock::new();

/// The processors on which the calling thread may run, in rising order; none where the kernel does not say.
pub fn allowed_cpus() -> Vec<usize> {
    let set = sched_getaffinity(None);
    set.map_or(Vec::new(), |set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

struct Entry<'t, S> {
    poll: Section,
    action: Section,
    task: Box<dyn Task<S> + 't>,
}

/// A process that talks through the kernel has news more often than once in as many passes.
const IN_VAIN_MIN: u32 = 8;
const PASSES_BUSY: u32 = 16;
const PASSES_IDLE: u32 = 4;

/// Longer than many short passes, shorter than what a peer behind a socket would notice.
const UNASKED_MAX: Duration = Duration::from_micros(200);

#[cfg(test)]
mod tests {
    use super::{IN_VAIN_MIN, KernelNews, UNASKED_MAX};
    use base::time::Time;

    #[test]
    fn the_kernel_is_asked_less_often_while_work_comes_from_memory_alone() {
        let mut kernel = KernelNews { is_busy: true, ..KernelNews::default() };
        let mut ask = |passes: usize, had_news: bool| {
            let mut pass = || {
                let is_due = kernel.is_due(Time::ZERO);
                if is_due {
                    kernel.asked(Time::ZERO, had_news);
                }
                is_due
            };
            (0..passes).filter(|_| pass()).count()
        };
        assert_eq!(ask(IN_VAIN_MIN as usize, false), IN_VAIN_MIN as usize);
        assert_eq!(ask(160, false), 10);
        assert_eq!(ask(16, true), 1);
        assert_eq!(ask(5, true), 5);
    }

    #[test]
    fn the_kernel_is_asked_in_time_however_long_passes_are() {
        let mut kernel = KernelNews { is_busy: true, in_vain: IN_VAIN_MIN, ..KernelNews::default() };
        let pass = UNASKED_MAX / 2;
        let asked: Vec<bool> = (1..=4)
            .map(|number| {
                let now = Time::ZERO + pass * number;
                let is_due = kernel.is_due(now);
                if is_due {
                    kernel.asked(now, false);
                }
                is_due
            })
            .collect();
        assert_eq!(asked, [false, true, false, true]);
    }
}
