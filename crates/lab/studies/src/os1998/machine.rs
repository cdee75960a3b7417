//! Threads that are bound to a processor, scheduled in a class, and beside a load.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use rustix::process::setpriority_process;
use transport::error::OsError;
use transport::scheduler::{allowed_cpus, pin_to_cpu};
use transport::scheduling::{SchedulingClass, real_time_is_allowed, set_scheduling_class};

/// How a measurement is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Normal,
    RealTime,
}

/// What else runs on its processor [OS1998 §2]. It never sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    None,
    SamePriority,
    LowerPriority,
}

impl Load {
    pub(super) const ALL: [Self; 3] = [Self::None, Self::SamePriority, Self::LowerPriority];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::RealTime => "real time",
        })
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "0 load",
            Self::SamePriority => "load at SP",
            Self::LowerPriority => "load at LP",
        })
    }
}

/// Where a thread runs, and before whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) core: usize,
    class: SchedulingClass,
    /// Of normal threads: 0, or 19 for who takes what others leave.
    nice: i32,
}

impl Seat {
    pub(super) fn new(core: usize, class: Class) -> Self {
        let class = match class {
            Class::Normal => SchedulingClass::Normal,
            Class::RealTime => SchedulingClass::RealTime { priority: PRIORITY },
        };
        Self { core, class, nice: 0 }
    }

    /// Of a load beside it.
    fn of_load(self, load: Load) -> Option<Self> {
        match (load, self.class) {
            (Load::None, _) => None,
            (Load::SamePriority, _) => Some(self),
            (Load::LowerPriority, SchedulingClass::Normal) => Some(Self { nice: LOWEST, ..self }),
            (Load::LowerPriority, SchedulingClass::RealTime { .. }) => {
                Some(Self { class: SchedulingClass::RealTime { priority: PRIORITY_LOWER }, ..self })
            }
        }
    }

    /// Puts the calling thread there.
    pub(super) fn take(self) -> Result<(), OsError> {
        if self.nice != 0 {
            setpriority_process(None, self.nice).map_err(|errno| OsError::new("setpriority", errno))?;
        }
        // A normal thread would not get to run on a core that has real-time ones.
        set_scheduling_class(self.class)?;
        pin_to_cpu(self.core)
    }
}

/// Does something in a thread of its own, beside a load.
pub(super) fn beside<T: Send>(seat: Seat, load: Load, work: impl FnOnce() -> T + Send) -> Result<T, OsError> {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        // However the work ends, the load ends with it.
        let ends_load = Ends(&ends);
        if let Some(seat) = seat.of_load(load) {
            let (say, hear) = mpsc::sync_channel(1);
            let ends = &ends;
            scope.spawn(move || {
                let seated = seat.take();
                let is_seated = seated.is_ok();
                // Who hears it waits for it.
                let _ = say.send(seated);
                while is_seated && !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            hear.recv().expect("the load says how it began")?;
        }
        let worker = scope.spawn(move || {
            let _ends_load = ends_load;
            seat.take().map(|()| work())
        });
        worker.join().expect("a measurement does not panic")
    })
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What is measured on.
pub(super) struct Machine {
    /// The processor of who is measured.
    pub(super) here: usize,
    /// Of who sends to it: another one, if there is one.
    pub(super) there: usize,
    pub(super) cores: Vec<usize>,
    /// Why nothing is measured in real time, if so.
    pub(super) no_real_time: Option<OsError>,
}

impl Machine {
    pub(super) fn new() -> Self {
        let allowed = allowed_cpus();
        let cores = if allowed.is_empty() { vec![0] } else { allowed };
        let (here, there) = (cores[0], cores[cores.len() - 1]);
        Self { here, there, cores, no_real_time: real_time_is_allowed().err() }
    }

    /// The classes that can be measured.
    pub(super) fn classes(&self) -> &'static [Class] {
        if self.no_real_time.is_none() { &[Class::Normal, Class::RealTime] } else { &[Class::Normal] }
    }

    /// In words, with what else keeps it busy now.
    pub(super) fn about(&self) -> String {
        let line = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let model = line("/proc/cpuinfo");
        let model = model.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let model = model.map_or("processors of unknown make", |(_, model)| model);
        let kernel = line("/proc/sys/kernel/osrelease");
        let load = line("/proc/loadavg");
        let load = load.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown");
        format!("{} × {model}, Linux {}, load average {load} when it began", self.cores.len(), kernel.trim())
    }
}

/// Above that of the processes of a partition, and far below what the kernel keeps for itself.
const PRIORITY: i32 = 10;
const PRIORITY_LOWER: i32 = 5;
const LOWEST: i32 = 19;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_where_it_is_to_be_beside_any_load() {
        let machine = Machine::new();
        for load in Load::ALL {
            let seat = Seat::new(machine.here, Class::Normal);
            assert_eq!(beside(seat, load, allowed_cpus), Ok(vec![machine.here]));
        }
    }

    #[test]
    fn a_place_that_there_is_not_is_an_error_for_the_load_too() {
        let seat = Seat::new(1023, Class::Normal);
        for load in Load::ALL {
            assert_eq!(beside(seat, load, || ()).unwrap_err().call, "sched_setaffinity");
        }
    }
}
