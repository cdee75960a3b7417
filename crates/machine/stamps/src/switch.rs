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
    /// Why traces broke that others have followed, until it is said: one for each owner.
    untold: Vec<(Owner, TraceError)>,
    /// Of the trace that goes on, or of the last one.
    file: Option<PathBuf>,
}

static SWITCH: Mutex<Switch> = Mutex::new(Switch { place: None, recording: None, untold: Vec::new(), file: None });

/// Traces of this process go to this directory from now on, and are named after the process.
pub fn prepare(directory: &Path, process: &str) {
    switch().place = Some((directory.to_owned(), process.to_owned()));
}

/// Begins a trace, unless one goes on; with stamps of Poll functions if that is wanted. One that broke is over: [`broken`] says so to
/// whoever had begun it.
///
/// # Errors
/// The file cannot be made.
pub fn begin(owner: Owner, polls: bool) -> Result<(), TraceError> {
    let mut switch = switch();
    if switch.recording.as_ref().is_some_and(|(_, recording)| !recording.is_broken()) {
        return Ok(());
    }
    switch.set_aside();
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
/// The file could not be written to its end, or that of a trace before, which nobody has heard of yet.
pub fn end(owner: Owner) -> Result<(), TraceError> {
    let mut switch = switch();
    if let Some((_, recording)) = switch.recording.take_if(|(of, _)| *of == owner) {
        recording.end()?;
    }
    switch.take_untold(owner).map_or(Ok(()), Err)
}

/// Why the trace that this owner has begun is over already, if its file takes no more. It is said once.
pub fn broken(owner: Owner) -> Option<TraceError> {
    let mut switch = switch();
    if let Some(error) = switch.take_untold(owner) {
        return Some(error);
    }
    let (_, recording) = switch.recording.take_if(|(of, recording)| *of == owner && recording.is_broken())?;
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

impl Switch {
    /// A trace that broke makes room for the next one.
    fn set_aside(&mut self) {
        let Some((owner, recording)) = self.recording.take() else { return };
        let error = recording.end().err().filter(|_| self.untold.iter().all(|(of, _)| *of != owner));
        self.untold.extend(error.map(|error| (owner, error)));
    }

    fn take_untold(&mut self, owner: Owner) -> Option<TraceError> {
        let place = self.untold.iter().position(|(of, _)| *of == owner)?;
        Some(self.untold.swap_remove(place).1)
    }
}

fn switch() -> MutexGuard<'static, Switch> {
    SWITCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where traces go if nobody says it.
pub const DIRECTORY: &str = "trace";
const PROCESS: &str = "weir";

#[cfg(test)]
mod tests {
    use std::thread;

    use testkit::TempDir;

    use super::*;
    use crate::NOWHERE;
    use crate::file::Trace;
    use crate::recorder::{arm, enter, is_armed, section, source};
    use crate::writer::TraceWriter;

    #[test]
    fn a_trace_ends_by_whoever_has_begun_it() {
        let _alone = alone();
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

    /// Whoever began another one in its place had it dropped without a word.
    #[test]
    fn a_trace_that_broke_is_told_to_its_owner_whoever_begins_the_next() {
        let _alone = alone();
        let directory = TempDir::new("broken");
        for broke in [Owner::Process, Owner::RunControl] {
            for next in [Owner::Process, Owner::RunControl] {
                prepare(directory.path(), "switched");
                break_trace(broke, directory.path());
                begin(next, false).unwrap();
                assert!(is_on(next) && is_armed(), "{broke:?}, {next:?}");
                let other = if broke == Owner::Process { Owner::RunControl } else { Owner::Process };
                assert!(broken(other).is_none(), "{broke:?}, {next:?}");
                let error = broken(broke).unwrap().to_string();
                assert!(error.contains("No space left"), "{broke:?}, {next:?}: {error}");
                assert!(broken(broke).is_none(), "{broke:?}, {next:?}: it is said once");
                end(next).unwrap();
            }
        }
    }

    #[test]
    fn a_trace_that_broke_is_told_although_the_next_one_cannot_begin() {
        let _alone = alone();
        let directory = TempDir::new("broken");
        break_trace(Owner::Process, directory.path());
        prepare(Path::new("/dev/null/nothing"), "switched");
        assert!(begin(Owner::RunControl, false).is_err() && !is_armed());
        assert!(end(Owner::RunControl).is_ok());
        let told = end(Owner::Process).map_err(|error| error.to_string());
        assert!(told.as_ref().is_err_and(|error| error.contains("No space left")), "{told:?}");
        assert!(end(Owner::Process).is_ok(), "it is said once");
    }

    /// The one trace is that of the process, and so of all tests.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A trace of this owner whose disk has become full.
    fn break_trace(owner: Owner, directory: &Path) {
        arm(4);
        let writer = TraceWriter::create(directory, "full", source().unwrap()).unwrap();
        enter(section("full"), NOWHERE, NOWHERE, None);
        let recording = Recording::of(writer.with_full_disk()).unwrap();
        while !recording.is_broken() {
            thread::yield_now();
        }
        switch().recording = Some((owner, recording));
    }
}
