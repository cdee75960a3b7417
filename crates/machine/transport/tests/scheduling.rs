//! The scheduler with its idle strategies, wakers, deadlines and time stamps.

use base::time::Time;
use std::time::Duration;
use transport::clock;
use transport::idle::IdleStrategy;
use transport::local::{Receiver, Sender, queue};
use transport::scheduler::{Context, Scheduler, Stopper, Task, allowed_cpus, pin_to_cpu, unpin};

/// Counts down in its actions, and stops the scheduler at zero.
struct Countdown(u32);

impl Task<Vec<&'static str>> for Countdown {
    fn poll(&mut self, context: &mut Context<'_, Vec<&'static str>>) -> bool {
        context.shared.push("poll");
        self.0.is_multiple_of(2) || {
            self.0 -= 1;
            false
        }
    }

    fn action(&mut self, context: &mut Context<'_, Vec<&'static str>>) {
        context.shared.push("action");
        if self.0 == 0 {
            context.stop();
        } else {
            self.0 -= 1;
        }
    }
}

#[test]
fn an_action_runs_when_its_poll_says_so() {
    let mut scheduler = Scheduler::new(IdleStrategy::Yield).unwrap();
    scheduler.add("countdown", Countdown(3));
    let mut calls = Vec::new();
    scheduler.run(&mut calls).unwrap();
    assert_eq!(calls, ["poll", "poll", "action", "poll", "poll", "action"]);
    let counters = scheduler.counters();
    assert_eq!((counters.passes, counters.idle_passes, counters.actions, counters.yields), (4, 2, 2, 2));
}

/// Stops the scheduler in a poll that finds no work.
struct StopInPoll;

impl Task for StopInPoll {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        context.stop();
        false
    }

    fn action(&mut self, _context: &mut Context<'_>) {
        unreachable!("there is never work");
    }
}

#[test]
fn a_poll_that_stops_keeps_the_scheduler_from_sleeping() {
    let park_at_once = IdleStrategy::Park { yield_for: Duration::ZERO };
    let mut scheduler = Scheduler::new(park_at_once).unwrap();
    scheduler.add("stop", StopInPoll);
    scheduler.run(&mut ()).unwrap();
    assert_eq!(scheduler.counters().sleeps, 0);
}

#[test]
fn every_strategy_passes_values_between_threads() {
    let park_at_once = IdleStrategy::Park { yield_for: Duration::ZERO };
    for strategy in [IdleStrategy::Spin, IdleStrategy::Yield, IdleStrategy::default(), park_at_once] {
        // Two threads that spin on a loaded machine wait for each other's time slices.
        ping_pong(strategy, if strategy == IdleStrategy::Spin { 50 } else { 2000 });
    }
}

/// Sends what it receives, plus one, until `last`.
struct Echo {
    from: Receiver<u32>,
    to: Sender<u32>,
    last: u32,
}

impl Task for Echo {
    fn poll(&mut self, _context: &mut Context<'_>) -> bool {
        self.from.is_ready()
    }

    fn action(&mut self, context: &mut Context<'_>) {
        let Ok(value) = self.from.receive() else {
            return context.stop();
        };
        if let Some(value) = value {
            if value >= self.last {
                context.stop();
            }
            let _ = self.to.send(value + 1);
        }
    }
}

fn ping_pong(strategy: IdleStrategy, last: u32) {
    let (mut to_first, from_second) = queue(1);
    let (to_second, from_first) = queue(1);
    to_first.send(0).unwrap();
    let echo = |from, to| Echo { from, to, last };
    let run = |mut echo: Echo| {
        let mut scheduler = Scheduler::new(strategy).unwrap();
        echo.from.set_waker(scheduler.waker());
        echo.to.set_waker(scheduler.waker());
        scheduler.add("echo", echo);
        scheduler.run(&mut ()).unwrap();
        scheduler.counters().actions
    };
    let (first, second) = (echo(from_second, to_second), echo(from_first, to_first));
    let actions = std::thread::scope(|scope| {
        let second = scope.spawn(|| run(second));
        run(first) + second.join().unwrap()
    });
    assert!(actions > u64::from(last), "{actions}");
}

/// Stops the scheduler at its deadline.
struct Alarm(Time);

impl Task for Alarm {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        context.now >= self.0
    }

    fn action(&mut self, context: &mut Context<'_>) {
        context.stop();
    }

    fn next_deadline(&self) -> Option<Time> {
        Some(self.0)
    }
}

#[test]
fn a_deadline_ends_sleep() {
    let mut scheduler = Scheduler::new(IdleStrategy::Park { yield_for: Duration::ZERO }).unwrap();
    // So far away that a busy machine comes to the sleep before.
    let deadline = clock::now() + Duration::from_secs(1);
    scheduler.add("alarm", Alarm(deadline));
    scheduler.add("later alarm", Alarm(deadline + Duration::from_secs(3600)));
    scheduler.run(&mut ()).unwrap();
    assert!(clock::now() >= deadline);
    assert!(scheduler.counters().sleeps > 0);
}

/// Never has work.
struct Bored;

impl Task for Bored {
    fn poll(&mut self, _context: &mut Context<'_>) -> bool {
        false
    }

    fn action(&mut self, _context: &mut Context<'_>) {
        unreachable!("poll never says so");
    }
}

#[test]
fn a_sleeping_scheduler_is_stopped_from_another_thread() {
    let mut scheduler = Scheduler::new(IdleStrategy::default()).unwrap();
    scheduler.add("bored", Bored);
    let stopper: Stopper = scheduler.stopper();
    std::thread::scope(|scope| {
        scope.spawn(|| stopper.stop());
        scheduler.run(&mut ()).unwrap();
    });
}

/// Works once.
struct Work(bool);

impl Task for Work {
    fn poll(&mut self, _context: &mut Context<'_>) -> bool {
        !self.0
    }

    fn action(&mut self, _context: &mut Context<'_>) {
        self.0 = true;
    }
}

#[test]
fn armed_stamps_show_the_sequence_of_a_pass() {
    use stamps::recorder::{arm, disarm, drain, section_names, stamp_polls};

    let mut scheduler = Scheduler::new(IdleStrategy::Spin).unwrap();
    scheduler.add("bored", Bored);
    scheduler.add("work", Work(false));
    stamp_polls(true);
    arm(1 << 12);
    assert!(scheduler.pass(clock::now(), &mut ()).unwrap());
    assert!(!scheduler.pass(clock::now(), &mut ()).unwrap());
    disarm();
    // Other tests of this process have stamps too.
    let this = std::thread::current().name().map(str::to_owned);
    let stamps = drain().into_iter().find(|thread| Some(&thread.name) == this.as_ref()).unwrap().stamps;
    let names = section_names();
    let thread = stamps::Thread { pieces: vec![stamps], ..stamps::Thread::default() };
    let (spans, _) = stamps::spans::spans(&thread);
    let sequence: Vec<_> = spans.iter().map(|span| (&*names[usize::from(span.section.0)], span.is_whole)).collect();
    let expected = ["poll bored", "poll work", "action work", "poll bored", "poll work"];
    assert_eq!(sequence, expected.map(|name| (name, true)));
}

#[test]
fn a_thread_of_one_that_is_bound_may_run_where_its_process_could() {
    let bound = std::thread::spawn(|| {
        let before = allowed_cpus();
        pin_to_cpu(before[0]).unwrap();
        let inherits = || std::thread::spawn(allowed_cpus).join().unwrap();
        assert_eq!(inherits(), before[..1]);
        let unbound = std::thread::spawn(|| unpin().map(|()| allowed_cpus())).join().unwrap();
        assert_eq!((unbound, allowed_cpus()), (Ok(before.clone()), before[..1].to_vec()));
    });
    bound.join().unwrap();
}
