//! Processor time.

use nix::sys::resource::{UsageWho, getrusage};

/// Processor time, user and system, in seconds: of this process, or of its children that have been waited for.
///
/// # Panics
/// Never: the kernel always knows.
pub(crate) fn cpu_seconds(who: UsageWho) -> f64 {
    let usage = getrusage(who).expect("getrusage cannot fail for this process and its children");
    let (user, system) = (usage.user_time(), usage.system_time());
    (user.tv_sec() + system.tv_sec()) as f64 + 1e-6 * (user.tv_usec() + system.tv_usec()) as f64
}
