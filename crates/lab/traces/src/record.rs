//! Tracing a partition that runs: SIGUSR2 to its processes, which begin and end traces by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stamps::file::ENDING;

use crate::error::TracesError;
use crate::{Done, RecordArgs};

pub(crate) fn record(args: &RecordArgs) -> Done {
    if !(args.seconds > 0.0 && args.seconds <= 3600.0) {
        return Err(TracesError::Seconds(args.seconds));
    }
    let processes = processes(args.pid);
    if processes.is_empty() {
        return Err(TracesError::NoPartition(args.pid));
    }
    // The signal would end that trace.
    if let Some(pid) = processes.iter().copied().find(|pid| is_traced(*pid)) {
        return Err(TracesError::Traced { pid, files: files(pid) });
    }
    for (told, pid) in processes.iter().enumerate() {
        if let Err(cause) = tell(*pid) {
            processes[..told].iter().for_each(|pid| _ = tell(*pid));
            return Err(TracesError::Untold { pid: *pid, cause });
        }
    }
    wait_until(|| processes.iter().all(|pid| is_traced(*pid) || !is_ready(*pid)));
    let traced: Vec<(i32, Vec<PathBuf>)> =
        processes.into_iter().filter(|pid| is_traced(*pid)).map(|pid| (pid, files(pid))).collect();
    wait(Duration::from_secs_f64(args.seconds));
    // Those that have ended meanwhile have ended their traces, too. One that does not trace would begin to.
    traced.iter().filter(|(pid, _)| is_traced(*pid)).for_each(|(pid, _)| _ = tell(*pid));
    wait_until(|| !traced.iter().any(|(pid, _)| is_traced(*pid)));
    Ok(told(traced.len(), args.seconds, traced.into_iter().flat_map(|(_, files)| files)))
}

fn told(processes: usize, seconds: f64, files: impl Iterator<Item = PathBuf>) -> String {
    let mut told = format!("{processes} processes traced for {seconds} s\n");
    let mut folders = BTreeMap::<PathBuf, usize>::new();
    files
        .filter_map(|file| file.parent().map(PathBuf::from))
        .for_each(|folder| *folders.entry(folder).or_default() += 1);
    for (folder, count) in folders {
        writeln!(told, "  {count} files in {}", folder.display()).expect("a string takes all");
    }
    told
}

/// A process and all below it, whether agents are between or not, as far as they wait for the signal. Others would be ended by it.
fn processes(parent: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut children = BTreeMap::<i32, Vec<i32>>::new();
    for pid in all {
        let of = field(pid, "PPid:").and_then(|of| of.parse().ok());
        of.into_iter().for_each(|of| children.entry(of).or_default().push(pid));
    }
    let mut found = BTreeSet::new();
    let mut open = vec![parent];
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(children.remove(&pid).unwrap_or_default());
        }
    }
    found.into_iter().filter(|pid| is_ready(*pid)).collect()
}

/// Whether it catches the signal, and with the thread that traces by it: another program may take it for something else.
fn is_ready(pid: i32) -> bool {
    let caught = field(pid, "SigCgt:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    caught.is_some_and(|mask| mask >> (Signal::SIGUSR2 as i32 - 1) & 1 == 1) && has_thread(pid, WAITING)
}

fn is_traced(pid: i32) -> bool {
    has_thread(pid, RECORDING)
}

fn has_thread(pid: i32, name: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.into_iter().any(|found| found.trim_end() == name)
}

/// The trace files that a process writes.
fn files(pid: i32) -> Vec<PathBuf> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let files = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    files.filter(|file| file.extension().is_some_and(|ending| ending == ENDING)).collect()
}

fn field(pid: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

/// One that has ended meanwhile needs no word.
fn tell(pid: i32) -> Result<(), nix::Error> {
    match kill(Pid::from_raw(pid), Signal::SIGUSR2) {
        Err(nix::Error::ESRCH) => Ok(()),
        told => told,
    }
}

/// A process takes a signal when it comes to run; one that does not in this time is left out.
fn wait_until(holds: impl Fn() -> bool) {
    for _ in 0..LOOKS_MAX {
        if holds() {
            return;
        }
        wait(BETWEEN_LOOKS);
    }
}

fn wait(duration: Duration) {
    // Nobody ever sends.
    let (_kept, never): (_, Receiver<()>) = sync_channel(0);
    let _ = never.recv_timeout(duration);
}

/// The thread of a process that waits for the signal.
const WAITING: &str = "traces";
/// The thread of a trace.
const RECORDING: &str = stamps::recording::THREAD;
const LOOKS_MAX: usize = 1000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
