//! What stamps and the scheduler cost on this machine [DAQ1999 §4.2, Fig. 3].

use std::fmt::Write;
use std::hint::black_box;

use stamps::recorder::{arm, disarm, drain, stamp_polls};
use stamps::{NOWHERE, Section, Stamp, StampKind, clock};
use transport::error::OsError;
use transport::idle::IdleStrategy;
use transport::scheduler::{Context, Scheduler, Task};

use crate::Done;
use crate::error::TracesError;

/// Times in nanoseconds.
pub struct Costs {
    /// The loop around the stamps of `unarmed` and `armed`; each time is the mean of many.
    pub alone: Vec<f64>,
    /// A stamp that is not armed, with its loop.
    pub unarmed: Vec<f64>,
    /// A stamp that is armed, with its loop.
    pub armed: Vec<f64>,
    /// From one Poll function of the scheduler to the next, armed.
    pub transitions: Vec<f64>,
    /// A pass of four tasks that have nothing to do, unarmed; each time is the mean of many.
    pub idle: Vec<f64>,
}

impl Costs {
    /// Measures all.
    ///
    /// # Errors
    /// The kernel has no descriptors for a scheduler.
    pub fn measure() -> Result<Self, OsError> {
        // Not a function: its call would cost more than a stamp that is not armed.
        let stamp = |event| stamps::enter(Section(0), 1, 2, Some(event));
        disarm();
        let alone = bursts(|_| ());
        let unarmed = bursts(stamp);
        let idle = idle_loop(&mut scheduler()?)?;
        arm(1 << 16);
        let armed = bursts(stamp);
        disarm();
        let transitions = transitions(&mut scheduler()?)?;
        Ok(Self { alone, unarmed, armed, transitions, idle })
    }
}

pub(crate) fn costs() -> Done {
    let Costs { alone, unarmed, armed, transitions, idle } = Costs::measure().map_err(TracesError::Scheduler)?;
    let mut text = format!("{:52}{:>10}{:>10}\n", "ns", "median", "99.9 %");
    for (name, mut times) in [
        ("loop around the stamps", alone),
        ("stamp, unarmed, with its loop", unarmed),
        ("stamp, armed, with its loop", armed),
        ("scheduler, from one Poll function to the next, armed", transitions),
        ("scheduler, pass of four idle tasks, unarmed", idle),
    ] {
        times.sort_by(f64::total_cmp);
        let at = |part: f64| times.get((times.len().saturating_sub(1) as f64 * part) as usize).copied();
        let [median, tail] = [0.5, 0.999].map(|part| at(part).unwrap_or_default());
        let _ = writeln!(text, "{name:52}{median:>10.2}{tail:>10.2}");
    }
    Ok(text)
}

/// The mean of each of many short bursts.
fn bursts(mut work: impl FnMut(u64)) -> Vec<f64> {
    let burst = |_| {
        let begin = clock::now().as_ns();
        (0..BURST).for_each(|event| work(black_box(event)));
        (clock::now().as_ns() - begin) as f64 / BURST as f64
    };
    (0..BURSTS).map(burst).collect()
}

/// Never has work.
struct Bored;

impl Task for Bored {
    fn poll(&mut self, _context: &mut Context<'_>) -> bool {
        black_box(false)
    }

    fn action(&mut self, _context: &mut Context<'_>) {}
}

fn scheduler() -> Result<Scheduler<'static>, OsError> {
    let mut scheduler = Scheduler::new(IdleStrategy::Spin)?;
    TASKS.iter().for_each(|name| scheduler.add(name, Bored));
    Ok(scheduler)
}

fn idle_loop(scheduler: &mut Scheduler<'_>) -> Result<Vec<f64>, OsError> {
    let mut failed = None;
    // The scheduler reads the clock once per pass.
    let times = bursts(|_| failed = scheduler.pass(clock::now(), &mut ()).err().or(failed.take()));
    failed.map_or(Ok(times), Err)
}

/// From the end of a Poll function to the beginning of the next one in the same pass.
fn transitions(scheduler: &mut Scheduler<'_>) -> Result<Vec<f64>, OsError> {
    stamp_polls(true);
    arm(1 << 16);
    let passed = (0..PASSES).try_for_each(|_| scheduler.pass(clock::now(), &mut ()).map(drop));
    disarm();
    stamp_polls(false);
    passed?;
    let first = stamps::section(&format!("poll {}", TASKS[0]));
    let is_next = |pair: &&[Stamp]| {
        let [before, next] = pair else { return false };
        before.kind == StampKind::Leave
            && next.kind == StampKind::Enter
            && next.section != first
            && next.place == NOWHERE
    };
    let of_thread = |stamps: Vec<Stamp>| {
        let pairs = stamps.windows(2).filter(is_next);
        pairs.map(|pair| (pair[1].at_ns - pair[0].at_ns) as f64).collect::<Vec<f64>>()
    };
    Ok(drain().into_iter().flat_map(|thread| of_thread(thread.stamps)).collect())
}

const TASKS: [&str; 4] = ["first", "second", "third", "fourth"];
const BURST: u64 = 1_000;
const BURSTS: usize = 5_000;
/// Eight stamps each.
const PASSES: usize = 8_000;

#[cfg(test)]
mod tests {
    #[test]
    fn each_cost_has_a_line_with_numbers() {
        let text = super::costs().unwrap();
        assert_eq!(text.lines().count(), 6, "{text}");
        for line in text.lines().skip(1) {
            let numbers: Vec<f64> = line.split_whitespace().rev().take(2).map(|word| word.parse().unwrap()).collect();
            assert!(numbers.iter().all(|ns| *ns > 0.0), "{line}");
        }
    }
}
