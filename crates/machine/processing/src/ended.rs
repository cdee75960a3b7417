//! Exit statuses.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::verdict::Ended;

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        match (status.signal(), status.code()) {
            (Some(signal), _) => Self::Signal(signal),
            (None, Some(code)) => Self::Status(code),
            (None, None) => unreachable!("a process that was reaped has a status or a signal"),
        }
    }
}
