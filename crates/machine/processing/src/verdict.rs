//! What becomes of an event.

use core::fmt;

use trigger::windows::Window;

/// What becomes of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// To be recorded.
    Accepted {
        /// One bit per stream of [`TasksOptions::streams`](crate::TasksOptions::streams); 0: the chains decide.
        streams: u32,
        /// Chains that accepted: one bit each.
        chains: u64,
        /// Chains that were tried: one bit each.
        input: u64,
        /// Data words of the event-filter result fragment, little-endian; may be empty.
        result: Vec<u8>,
        /// What of the event is to be recorded; none: all of it.
        windows: Vec<Window>,
    },
    /// To be forgotten.
    Rejected {
        /// Chains that accepted before a prescale rejected: one bit each.
        chains: u64,
        /// Chains that were tried: one bit each.
        input: u64,
    },
    /// Not decided: belongs in the debug stream.
    Failed {
        /// Why.
        reason: FailReason,
        /// Why, for people; bounded.
        message: String,
    },
}

/// Why an event was not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    /// Its PT ended while it worked on it.
    Crash(Ended),
    /// The algorithm raised or panicked.
    Exception,
    /// It took longer than allowed.
    Timeout,
    /// It needed more memory than allowed.
    Memory,
    /// It does not fit in a slot.
    TooLarge,
    /// Its bytes are not fragments one behind the other.
    Malformed,
    /// The PT's answer cannot be understood or is larger than allowed.
    BadAnswer,
    /// No PT can be started any more.
    Unavailable,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By this signal.
    Signal(i32),
    /// With this exit status.
    Status(i32),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |signal| match signal {
            4 => "SIGILL",
            6 => "SIGABRT",
            7 => "SIGBUS",
            8 => "SIGFPE",
            9 => "SIGKILL",
            11 => "SIGSEGV",
            15 => "SIGTERM",
            24 => "SIGXCPU",
            _ => "signal",
        };
        match self {
            Self::Signal(signal) => write!(f, "killed by {} ({signal})", name(*signal)),
            Self::Status(status) => write!(f, "exited with status {status}"),
        }
    }
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash(ended) => write!(f, "crash ({ended})"),
            Self::Exception => f.write_str("exception"),
            Self::Timeout => f.write_str("time-out"),
            Self::Memory => f.write_str("memory limit"),
            Self::TooLarge => f.write_str("event too large"),
            Self::Malformed => f.write_str("malformed event"),
            Self::BadAnswer => f.write_str("bad answer"),
            Self::Unavailable => f.write_str("no processing task"),
        }
    }
}
