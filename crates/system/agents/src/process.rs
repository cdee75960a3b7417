//! The process of one application.

use std::io;
use std::net::IpAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};

use crate::introduction::Introduction;

/// What the command line of an application says.
pub(crate) struct Line<'a> {
    /// `sfi-1`.
    pub(crate) name: &'a str,
    /// Where run control listens.
    pub(crate) join: &'a str,
    /// Where it listens itself, if an agent starts it.
    pub(crate) at: Option<IpAddr>,
    /// Addresses of its further network ports.
    pub(crate) ports: &'a [IpAddr],
    pub(crate) options: &'a [String],
    /// Applications that are on its host already.
    pub(crate) neighbours: usize,
}

/// With so many neighbours an application gets no huge pages. An idle one touches a few, and all of them would take the memory of the host.
const CROWD: usize = 32;

/// Without them the allocator of a process has the kernel give none to all of it.
const ALLOWS_HUGE_PAGES: &str = "MIMALLOC_ALLOW_THP";

/// `weir node` for an application. Its own process group keeps the terminal's Ctrl-C for the parent.
pub(crate) fn start(program: &Path, line: &Line<'_>, introduction: &Introduction) -> io::Result<Child> {
    let mut command = Command::new(program);
    if line.neighbours >= CROWD && std::env::var_os(ALLOWS_HUGE_PAGES).is_none() {
        command.env(ALLOWS_HUGE_PAGES, "0");
    }
    let mut child = command
        .args(["node", "--name", line.name, "--join", line.join])
        .args(line.at.iter().flat_map(|at| ["--at".to_owned(), at.to_string()]))
        .args(line.ports.iter().flat_map(|port| ["--port".to_owned(), port.to_string()]))
        .args(line.options)
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let input = child.stdin.take().expect("its input is a pipe");
    // A child that is gone already is found when it is reaped.
    let _ = introduction.tell(input);
    Ok(child)
}

/// Ends a child that has not been waited for at once, with whatever it has started in its group.
pub(crate) fn kill_group(child: &mut Child) {
    // It may have ended by itself in between.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
}

/// The kernel ends this process at once when the thread that has started it ends.
///
/// # Errors
/// It does not.
pub fn end_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// How a process has ended, in words.
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match nix::sys::signal::Signal::try_from(signal) {
            Ok(name) => format!("killed by {name}"),
            Err(_) => format!("killed by signal {signal}"),
        },
        (None, Some(code)) => format!("exited with status {code}"),
        (None, None) => "ended".into(),
    }
}
