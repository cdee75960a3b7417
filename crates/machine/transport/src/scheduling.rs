//! How the kernel shares processors out among threads.

use crate::error::OsError;
use rustix::io::Errno;

/// Whom the kernel gives a processor. A thread that is made inherits it from the one that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulingClass {
    /// A fair share for each.
    Normal,
    /// Before all normal threads, and before real-time ones of lower priority; those of the same priority take turns of some
    /// milliseconds.
    RealTime {
        /// 1 to 99.
        priority: i32,
    },
}

/// Puts the calling thread into a class.
///
/// # Errors
/// A priority that there is not; real time where neither `CAP_SYS_NICE` nor `ulimit -r` allow it.
pub fn set_scheduling_class(class: SchedulingClass) -> Result<(), OsError> {
    let (policy, sched_priority) = match class {
        SchedulingClass::Normal => (libc::SCHED_OTHER, 0),
        SchedulingClass::RealTime { priority } => (libc::SCHED_RR, priority),
    };
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: the call reads the parameters, which live through it, and changes nothing in memory; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(OsError::new("sched_setscheduler", Errno::from_raw_os_error(last_error()))),
    }
}

/// Whether this process may have threads that are scheduled in real time.
///
/// # Errors
/// What the kernel says against it.
///
/// # Panics
/// If the process can have no further thread.
pub fn real_time_is_allowed() -> Result<(), OsError> {
    let tried = std::thread::spawn(|| set_scheduling_class(SchedulingClass::RealTime { priority: 1 }));
    tried.join().expect("a system call does not panic")
}

fn last_error() -> i32 {
    std::io::Error::last_os_error().raw_os_error().expect("the last error of the kernel has a number")
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_priority_that_there_is_not_is_refused() {
        let error = set_scheduling_class(SchedulingClass::RealTime { priority: 100 }).unwrap_err();
        assert_eq!(error, OsError::new("sched_setscheduler", Errno::INVAL));
        assert_eq!(set_scheduling_class(SchedulingClass::Normal), Ok(()));
    }
}
