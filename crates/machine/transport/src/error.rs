//! A system call that failed.

use rustix::io::Errno;

/// A system call that failed for a reason that the caller cannot have foreseen: resources, permissions, configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("system call {call} failed: {}", std::io::Error::from_raw_os_error(*code))]
pub struct OsError {
    /// The call.
    pub call: &'static str,
    /// Its `errno`.
    pub code: i32,
}

impl OsError {
    /// From what the kernel said to this call.
    pub fn new(call: &'static str, errno: Errno) -> Self {
        Self { call, code: errno.raw_os_error() }
    }
}
