//! The number of files that a process may have open at a time.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the number to the largest that this user may have. Each connection of an application is an open file, and
/// many systems begin with a thousand. Where that is refused, the number stays.
pub(crate) fn allow_as_many_as_possible() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
