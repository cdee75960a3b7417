//! The command that makes a point ready.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use configuration::Interval;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};

use super::interrupted::Interrupted;
use super::plan::{Plan, Point, Prepare};

/// Why a point is not ready.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReady {
    #[error("prepare.command: {0} cannot be run: {1}")]
    NotRun(String, io::Error),
    #[error("prepare.command ended with status {0}")]
    Failed(i32),
    #[error("prepare.command was ended by signal {0}")]
    Killed(i32),
    #[error("prepare.command took longer than prepare.timeout = \"{0}\"")]
    Late(Interval),
    #[error("interrupted while prepare.command ran")]
    Interrupted,
}

/// Runs the command of the plan for a point, from the folder of the plan, and waits for it. One that is late, interrupted or
/// failed is ended with all that it has started in its process group.
pub(super) fn prepare(plan: &Plan, point: &Point, interrupted: &Interrupted) -> Result<(), NotReady> {
    let Some(prepare) = &plan.prepare else { return Ok(()) };
    let name = &prepare.command[0];
    let not_run = |error| NotReady::NotRun(name.clone(), error);
    let mut child = command(prepare, &plan.folder, point, plan.points.len()).spawn().map_err(not_run)?;
    let over = until_ended(&child, interrupted.fd(), prepare.timeout.duration());
    // Nobody could wait for it any more.
    let over = over.or_else(|error| end(&mut child).and(Err(error))).map_err(not_run)?;
    if !over || interrupted.any() {
        end(&mut child).map_err(not_run)?;
        return Err(if interrupted.any() { NotReady::Interrupted } else { NotReady::Late(prepare.timeout) });
    }
    let status = ended(&mut child).map_err(not_run)?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(NotReady::Failed(code)),
        (None, signal) => Err(NotReady::Killed(signal.unwrap_or_default())),
    }
}

fn command(prepare: &Prepare, folder: &Path, point: &Point, points: usize) -> Command {
    // The system would look for a relative one from the folder of this process.
    let name = Path::new(&prepare.command[0]);
    let program = if name.components().count() > 1 { folder.join(name) } else { name.to_owned() };
    let mut command = Command::new(program);
    command.args(&prepare.command[1..]).current_dir(folder).process_group(0);
    // The standard output is for the table.
    command.stdin(Stdio::null()).stdout(io::stderr());
    command.env("WEIR_POINT", point.number.to_string()).env("WEIR_POINTS", points.to_string());
    point.settings.iter().for_each(|setting| _ = command.env(setting.variable(), setting.bare()));
    command
}

/// Waits until the child has ended or this descriptor can be read; whether that was within the limit.
fn until_ended(child: &Child, wakes: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let child = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    let mut polled = [PollFd::new(&child, PollFlags::IN), PollFd::from_borrowed_fd(wakes, PollFlags::IN)];
    Ok(retry_on_intr(|| poll(&mut polled, Some(&limit)))? > 0)
}

/// How a child has ended. Of one that has failed nothing stays; one that has done its work may leave something that goes on.
fn ended(child: &mut Child) -> io::Result<ExitStatus> {
    let group = Pid::from_child(child);
    // Before it is waited for: until then its number is nobody else's.
    let status = waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    if status.and_then(|status| status.exit_status()) != Some(0) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    child.wait()
}

/// Asks the process group to end, then makes it.
fn end(child: &mut Child) -> io::Result<()> {
    let group = Pid::from_child(child);
    // A group that is gone needs no signal.
    let _ = kill_process_group(group, Signal::TERM);
    let never = eventfd(0, EventfdFlags::CLOEXEC)?;
    until_ended(child, never.as_fd(), MERCY)?;
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().map(drop)
}

/// So long a command may take to end when it is asked to.
const MERCY: Duration = Duration::from_secs(2);
