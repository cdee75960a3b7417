//! Whose run it is: a process that may have died without saying how the run ended.

use std::fs;

/// The process that conducts a run, named so that no later process of its number is taken for it.
pub(crate) fn this_process() -> String {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    format!("{} {pid} {}", host(), started(pid).unwrap_or_default())
}

/// Whether that process may still live. Of other hosts nobody knows.
pub(crate) fn may_live(holder: &str) -> bool {
    let mut fields = holder.split(' ');
    let (Some(host_name), Some(pid), Some(since)) = (fields.next(), fields.next(), fields.next()) else { return false };
    if host_name != host() {
        return true;
    }
    pid.parse().is_ok_and(|pid| started(pid).is_some_and(|started| started.to_string() == since))
}

fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().replace(' ', "-")
}

/// When a process began, in ticks since the start of the machine; none if it is gone or waits to be reaped.
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses, and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    // State is the third field of proc(5), the time of its start the 22nd.
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let holder = this_process();
        assert!(may_live(&holder));
        let (before, _) = holder.rsplit_once(' ').unwrap();
        for gone in [format!("{before} 1"), format!("{} 4194999 77", host()), String::new(), "one two".to_owned()] {
            assert!(!may_live(&gone), "{gone}");
        }
        assert!(may_live("elsewhere-than-here 1 1"));
    }
}
