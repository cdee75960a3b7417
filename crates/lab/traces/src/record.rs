//! Tracing a partition that runs: SIGUSR2 to its processes, which begin and end traces by it.

use std::fs;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::TracesError;
use crate::{Done, RecordArgs};

pub(crate) fn record(args: &RecordArgs) -> Done {
    if !(args.seconds > 0.0 && args.seconds <= 3600.0) {
        return Err(TracesError::Seconds(args.seconds));
    }
    let processes = processes(args.pid);
    if processes.first() != Some(&args.pid) {
        return Err(TracesError::NoPartition(args.pid));
    }
    for pid in &processes {
        kill(Pid::from_raw(*pid), Signal::SIGUSR2).map_err(|cause| TracesError::Untold { pid: *pid, cause })?;
    }
    wait(Duration::from_secs_f64(args.seconds));
    // Those that have ended meanwhile have ended their traces, too.
    processes.iter().filter(|pid| catches(**pid)).for_each(|pid| _ = kill(Pid::from_raw(*pid), Signal::SIGUSR2));
    Ok(format!("{} processes traced for {} s\n", processes.len(), args.seconds))
}

/// The parent of a partition and its applications, as far as they are ready for the signal. Others would be ended by it.
fn processes(parent: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found: Vec<i32> =
        all.filter(|pid| *pid == parent || field(*pid, "PPid:") == Some(parent.to_string())).collect();
    found.retain(|pid| catches(*pid));
    found.sort_by_key(|pid| (*pid != parent, *pid));
    found
}

fn catches(pid: i32) -> bool {
    let caught = field(pid, "SigCgt:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    caught.is_some_and(|mask| mask >> (Signal::SIGUSR2 as i32 - 1) & 1 == 1)
}

fn field(pid: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

fn wait(duration: Duration) {
    // Nobody ever sends.
    let (_kept, never): (_, Receiver<()>) = sync_channel(0);
    let _ = never.recv_timeout(duration);
}
