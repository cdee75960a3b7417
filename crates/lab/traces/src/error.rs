//! What can be wrong with a question to traces.

use std::io;
use std::path::PathBuf;

use stamps::file::TraceError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum TracesError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("there are no stamps in these files: was anything done while they were recorded?")]
    NoStamps,
    #[error("no section is called {name}; these are: {known}")]
    UnknownSection { name: String, known: String },
    #[error("these traces hold nothing of {0}")]
    NothingSeen(String),
    #[error("event {0} is in none of these traces")]
    UnknownEvent(u64),
    #[error("{path}: {cause}", path = path.display())]
    Output { path: PathBuf, cause: io::Error },
    #[error("there is no scheduler: {0}")]
    Scheduler(transport::error::OsError),
    #[error("--seconds {0}: expected a number above 0 and at most 3600")]
    Seconds(f64),
    #[error("process {0}: expected `weir run` or `weir serve`, with a partition on this machine that runs")]
    NoPartition(i32),
    #[error(
        "process {pid} traces already, to {}; a run that began with --trace does so to its end: wait for that, or send SIGUSR2 to \
         each process",
        list(files)
    )]
    Traced { pid: i32, files: Vec<PathBuf> },
    #[error("process {pid} cannot be told: {cause}")]
    Untold { pid: i32, cause: nix::Error },
}

fn list(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

pub(crate) fn write(path: &std::path::Path, text: &str) -> Result<(), TracesError> {
    std::fs::write(path, text).map_err(|cause| TracesError::Output { path: path.to_owned(), cause })
}
