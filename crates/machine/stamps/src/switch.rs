//! The one trace of this process, which several may begin and end while it runs.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::file::TraceError;
use crate::recorder::stamp_polls;
use crate::recording::Recording;

/// Who has begun a trace: nobody else ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Whoever has started the process, or can signal it.
    Process,
    /// Run control.
    RunControl,
}

struct Switch {
    /// Where files go, and what they are named after.
    place: Option<(PathBuf, String)>,
    recording: Option<(Owner, Recording)>,
    /// Of the trace that goes on, or of the last one.
    file: Option<PathBuf>,
}

static SWITCH: Mutex<Switch> = Mutex::new(Switch { place: None, recording: None, file: None });

/// Traces of this process go to this directory from now on, and are named after the process.
pub fn prepare(directory: &Path, process: &str) {
    switch().place = Some((directory.to_owned(), process.to_owned()));
}

/// Begins a trace, unless one goes on; with stamps of Poll functions if that is wanted. One that broke is over.
///
/// # Errors
/// The file cannot be made.
pub fn begin(owner: Owner, polls: bool) -> Result<(), TraceError> {
    let mut switch = switch();
    if switch.recording.as_ref().is_some_and(|(_, recording)| !recording.is_broken()) {
        return Ok(());
    }
    switch.recording = None;
    let (directory, process) = switch.place.clone().unwrap_or_else(|| (DIRECTORY.into(), PROCESS.to_owned()));
    stamp_polls(polls);
    let recording = Recording::start(&directory, &process)?;
    let file = recording.path();
    switch.file = Some(file.canonicalize().unwrap_or_else(|_| file.to_owned()));
    switch.recording = Some((owner, recording));
    Ok(())
}

/// Ends the trace that this owner has begun, if one goes on.
///
/// # Errors
/// The file could not be written to its end.
pub fn end(owner: Owner) -> Result<(), TraceError> {
    let mut switch = switch();
    match switch.recording.take_if(|(of, _)| *of == owner) {
        Some((_, recording)) => recording.end().map(drop),
        None => Ok(()),
    }
}

/// Why the trace that this owner has begun is over already, if its file takes no more. It is said once.
pub fn broken(owner: Owner) -> Option<TraceError> {
    let (_, recording) = switch().recording.take_if(|(of, recording)| *of == owner && recording.is_broken())?;
    recording.end().err()
}

/// Whether a trace goes on that this owner has begun.
pub fn is_on(owner: Owner) -> bool {
    switch().recording.as_ref().is_some_and(|(of, _)| *of == owner)
}

/// The file of the trace that goes on, or of the last one, with its whole path.
pub fn file() -> Option<PathBuf> {
    switch().file.clone()
}

fn switch() -> MutexGuard<'static, Switch> {
    SWITCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where traces go if nobody says it.
pub const DIRECTORY: &str = "trace";
const PROCESS: &str = "weir";

#[cfg(test)]
mod tests {
    use testkit::TempDir;

    use super::*;
    use crate::file::Trace;
    use crate::recorder::is_armed;

    #[test]
    fn a_trace_ends_by_whoever_has_begun_it() {
        let directory = TempDir::new("switch");
        prepare(directory.path(), "switched");
        begin(Owner::RunControl, false).unwrap();
        let first = file().unwrap();
        begin(Owner::Process, false).unwrap();
        assert_eq!(file(), Some(first.clone()), "one trace at a time");
        end(Owner::Process).unwrap();
        assert!(is_armed() && is_on(Owner::RunControl) && !is_on(Owner::Process));
        end(Owner::RunControl).unwrap();
        assert!(!is_armed() && !is_on(Owner::RunControl));
        assert_eq!(Trace::read(&first).unwrap().torn_at, None);
        begin(Owner::RunControl, false).unwrap();
        end(Owner::RunControl).unwrap();
        assert_ne!(file(), Some(first), "nothing is overwritten");
    }
}
