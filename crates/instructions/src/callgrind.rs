//! Counting with callgrind.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Why nothing was counted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallgrindError {
    #[error("valgrind cannot be started: {0}")]
    Start(io::Error),
    #[error("path {path} failed under valgrind ({status}): {said}")]
    Failed { path: String, status: ExitStatus, said: String },
    #[error("callgrind did not say what it collected: {said}")]
    NoCount { said: String },
}

/// Instructions per event of a path.
pub(crate) fn per_event(path: &str, events: u64) -> Result<f64, CallgrindError> {
    let once = count(path, events)?;
    let twice = count(path, 2 * events)?;
    Ok((twice as f64 - once as f64) / events as f64)
}

/// Where the profile of a path is, for `callgrind_annotate`.
pub(crate) fn profile(path: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.parent().unwrap_or(Path::new(".")).join(format!("callgrind.{path}"))
}

fn count(path: &str, events: u64) -> Result<u64, CallgrindError> {
    let program = std::env::current_exe().map_err(CallgrindError::Start)?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", profile(path).display())])
        .arg(program)
        .args(["run", path, &events.to_string()])
        .output()
        .map_err(CallgrindError::Start)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(CallgrindError::Failed { path: path.to_owned(), status: output.status, said });
    }
    collected(&said).ok_or(CallgrindError::NoCount { said })
}

/// The number in a line such as `==12== Collected : 1234567`.
fn collected(said: &str) -> Option<u64> {
    let (_, number) = said.lines().find_map(|line| line.split_once("Collected :"))?;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found() {
        assert_eq!(collected("==1== Events    : Ir\n==1== Collected : 1234567\n==1== \n"), Some(1_234_567));
        assert_eq!(collected("==1== Events    : Ir\n"), None);
    }
}
