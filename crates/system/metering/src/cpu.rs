//! Processor time.

use std::{fs, thread};

use base::time::Time;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use stamps::clock;

/// Processor time, user and system, in seconds: of this process, or of its children that have been waited for.
///
/// # Panics
/// Never: the kernel always knows.
pub fn cpu_seconds(who: UsageWho) -> f64 {
    let usage = getrusage(who).expect("getrusage cannot fail for this process and its children");
    let (user, system) = (usage.user_time(), usage.system_time());
    (user.tv_sec() + system.tv_sec()) as f64 + 1e-6 * (user.tv_usec() + system.tv_usec()) as f64
}

/// Processor time of a process with all the threads that it has had, in seconds; `None` if there is no such process.
pub fn cpu_seconds_of(process: u32) -> Option<f64> {
    let process = Pid::from_raw(i32::try_from(process).ok().filter(|process| *process > 0)?);
    let had = clock_getcpuclockid(process).ok()?.now().ok()?;
    Some(had.tv_sec() as f64 + 1e-9 * had.tv_nsec() as f64)
}

/// What the processors of this machine have done since it was made.
pub struct Processors {
    at: Time,
    before: Option<(Ticks, f64)>,
}

impl Processors {
    /// From now on; with the processor time that our processes have had so far, in seconds.
    pub fn watch(ours_s: Option<f64>) -> Self {
        Self { at: clock::now(), before: Ticks::now().zip(ours_s) }
    }

    /// How many processors ours have used in the mean; 0 where the kernel does not say.
    pub fn used(&self, ours_s: Option<f64>) -> f64 {
        let elapsed_s = clock::now().since(self.at).as_secs_f64();
        self.before.zip(ours_s).map_or(0.0, |((_, before_s), ours_s)| (ours_s - before_s) / elapsed_s)
    }

    /// The part of the time of all processors that no other process or virtual machine has taken, given our processes'
    /// time up to now. `None` where the kernel does not say. Interrupts are ours: messages through the kernel take
    /// them.
    pub fn left_to_us(&self, ours_s: Option<f64>) -> Option<f64> {
        let cores = thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        let elapsed_s = clock::now().since(self.at).as_secs_f64();
        let ((before, ours_before_s), (now, ours_s)) = self.before.zip(Ticks::now().zip(ours_s))?;
        Some(left(before, now, ours_s - ours_before_s, elapsed_s * cores))
    }
}

/// The part of so many seconds of processors that others have not taken, where ours have had some of the time between these ticks.
fn left(before: Ticks, now: Ticks, ours_s: f64, all_s: f64) -> f64 {
    let others_s = (now.processes - before.processes) / TICKS_PER_S - ours_s;
    let stolen_s = (now.stolen - before.stolen) / TICKS_PER_S;
    1.0 - (others_s.max(0.0) + stolen_s) / all_s
}

/// Counts of the first line of `/proc/stat`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    /// Of processes, in the kernel or not.
    processes: f64,
    stolen: f64,
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::read(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn read(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let counts: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, _, _, _, _, stolen, ..] = counts[..] else { return None };
        Some(Self { processes: user + nice + system, stolen })
    }
}

/// `USER_HZ`, which is the same on all machines that we know.
const TICKS_PER_S: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_all_processors_is_read() {
        let text = "cpu  410 2 48 1000 7 30 60 5 0 0\ncpu0 1 2 3\n";
        assert_eq!(Ticks::read(text), Some(Ticks { processes: 460.0, stolen: 5.0 }));
        assert_eq!(Ticks::read("intr 3"), None);
    }

    #[test]
    fn a_process_has_had_the_time_of_all_its_threads_also_of_those_that_have_ended() {
        assert_eq!((cpu_seconds_of(u32::MAX), cpu_seconds_of(0)), (None, None));
        let before = cpu_seconds_of(std::process::id()).unwrap();
        let least = work() + thread::spawn(work).join().unwrap();
        let found = cpu_seconds_of(std::process::id()).unwrap() - before;
        let all = cpu_seconds(UsageWho::RUSAGE_SELF);
        assert!(least <= found && found <= all + 1e-3, "{least} s <= {found} s <= {all} s");
    }

    /// Uses some processor time, and says how much its thread has had at least: its microseconds are cut off.
    fn work() -> f64 {
        let had = || cpu_seconds(UsageWho::RUSAGE_THREAD);
        let before = had();
        while had() < before + 0.02 {}
        had() - 2e-6
    }

    #[test]
    fn what_others_and_other_machines_take_is_not_left() {
        let ticks = |processes, stolen| Ticks { processes, stolen };
        // Of 4 s the processes have had 2.5 s, ours 1.5 s of them, and other machines 0.5 s.
        assert_eq!(left(ticks(100.0, 20.0), ticks(350.0, 70.0), 1.5, 4.0), 1.0 - (1.0 + 0.5) / 4.0);
        assert_eq!(left(ticks(100.0, 0.0), ticks(350.0, 0.0), 2.5, 4.0), 1.0, "all of it was ours");
        assert_eq!(
            left(ticks(100.0, 0.0), ticks(350.0, 100.0), 3.0, 4.0),
            0.75,
            "ticks are coarser than what ours say"
        );
    }

    #[test]
    fn nobody_has_more_than_all() {
        let share = Processors::watch(Some(0.0)).left_to_us(Some(f64::MAX));
        assert!(share.is_none_or(|share| share <= 1.0), "{share:?}");
        assert_eq!(Processors::watch(None).left_to_us(Some(1.0)), None);
        assert_eq!(Processors::watch(Some(0.0)).left_to_us(None), None);
    }
}
