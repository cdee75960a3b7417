//! Why a process ended, and which event is to blame.

use crate::protocol::{MESSAGE_BYTES_MAX, cut};
use crate::verdict::{Ended, FailReason, Verdict};
use crate::worker::{Ending, Process};

/// Whose fault a death is.
pub(crate) enum Guilt {
    /// Nobody's: the process died between two events.
    None,
    /// That of the event at this position of the process's jobs.
    Of(usize),
    /// One of this many, from the first on.
    AmongFirst(usize),
}

/// The event that the process had begun is guilty. A wrong answer is noticed late, when it may be some events further.
pub(crate) fn guilt(process: &Process) -> Guilt {
    let at = process.progress.load();
    let begun = process.jobs.iter().position(|job| job.given.sequence == at);
    match (&process.ending, begun) {
        // It went on in the moment in which it was killed; what it works on now is innocent.
        (Some(Ending::Timeout { sequence }), _) if *sequence != at => Guilt::None,
        // It did not even begin.
        (Some(Ending::Timeout { .. }), None) if !process.jobs.is_empty() => Guilt::Of(0),
        (Some(Ending::BadAnswer(_)), Some(position)) if position > 0 => Guilt::AmongFirst(position + 1),
        (_, Some(position)) => Guilt::Of(position),
        (_, None) => Guilt::None,
    }
}

pub(crate) fn cause(process: &Process, ended: Ended) -> (FailReason, String) {
    match &process.ending {
        Some(Ending::Timeout { .. }) => (FailReason::Timeout, "the task worked longer than allowed on an event".into()),
        Some(Ending::BadAnswer(problem)) => (FailReason::BadAnswer, format!("the task's answer is wrong: {problem}")),
        _ if OUT_OF_MEMORY.iter().any(|words| process.output.says(words)) => {
            (FailReason::Memory, format!("the task reached its memory limit and was {ended}"))
        }
        _ => (FailReason::Crash(ended), format!("the task {ended}")),
    }
}

pub(crate) fn start_trouble(ending: Option<&Ending>, ended: Ended) -> String {
    match ending {
        Some(Ending::Unable(words)) => words.clone(),
        Some(Ending::StartTimeout) => "it was not ready in time".into(),
        Some(Ending::BadAnswer(problem)) => format!("it does not speak the protocol: {problem}"),
        _ => format!("it {ended} before it was ready"),
    }
}

pub(crate) fn fail(reason: FailReason, message: &str) -> Verdict {
    Verdict::Failed { reason, message: cut(message, MESSAGE_BYTES_MAX).to_owned() }
}

/// How a line begins when an allocation failed, in Rust, and in Python where not even an answer could be made.
const OUT_OF_MEMORY: [&str; 2] = ["memory allocation of ", "MemoryError"];
