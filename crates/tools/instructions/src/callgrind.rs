//! Counting with callgrind: instructions and system calls are what it counts anyway, allocations and copies are the calls of
//! the functions that do them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::counts::Counts;

/// Why nothing was counted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallgrindError {
    #[error("valgrind cannot be started: {0}")]
    Start(io::Error),
    #[error("path {path} failed under valgrind ({status}): {said}")]
    Failed { path: String, status: ExitStatus, said: String },
    #[error("{}: {cause}", file.display())]
    Profile { file: PathBuf, cause: io::Error },
    #[error("{}: expected a profile with instructions and system calls, such as valgrind 3.19 writes", file.display())]
    NoCount { file: PathBuf },
}

/// What an event of a path costs.
pub(crate) fn per_event(path: &str, events: u64) -> Result<Counts, CallgrindError> {
    let once = count(path, events)?;
    let twice = count(path, 2 * events)?;
    Ok(twice.since(once).shared_by(events))
}

/// Where the profile of a path is, for `callgrind_annotate`.
pub(crate) fn profile(path: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.parent().unwrap_or(Path::new(".")).join(format!("callgrind.{path}"))
}

fn count(path: &str, events: u64) -> Result<Counts, CallgrindError> {
    let program = std::env::current_exe().map_err(CallgrindError::Start)?;
    let file = profile(path);
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-systime=yes", "--compress-strings=no"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args(["run", path, &events.to_string()])
        // Else the allocator gives memory back to the kernel after a time.
        .env("MIMALLOC_PURGE_DELAY", "-1")
        .output()
        .map_err(CallgrindError::Start)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(CallgrindError::Failed { path: path.to_owned(), status: output.status, said });
    }
    match std::fs::read_to_string(&file) {
        Ok(profile) => counts(&profile).ok_or(CallgrindError::NoCount { file }),
        Err(cause) => Err(CallgrindError::Profile { file, cause }),
    }
}

/// The sums of a profile, whose functions have their names in full.
fn counts(profile: &str) -> Option<Counts> {
    let (mut counts, mut caller, mut callee) = (Counts::default(), "", "");
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            caller = name;
        } else if let Some(name) = line.strip_prefix("cfn=") {
            callee = name;
        } else if let Some(calls) = line.strip_prefix("calls=") {
            let calls: f64 = calls.split(' ').next()?.parse().ok()?;
            if is_allocation(callee) && !is_of_allocator(caller) {
                counts.allocations += calls;
            } else if is_copy(callee) && !is_copy(caller) && !is_of_tags(caller) {
                counts.copies += calls;
            }
        } else if let Some(totals) = line.strip_prefix("totals: ") {
            let mut totals = totals.split(' ');
            counts.instructions = totals.next()?.parse().ok()?;
            counts.system_calls = totals.next()?.parse().ok()?;
            return Some(counts);
        }
    }
    None
}

/// Entries of the program's allocator that give memory; those that begin with room for more count, too.
fn is_allocation(function: &str) -> bool {
    let entry = function.strip_suffix("_aligned").unwrap_or(function);
    ["mi_malloc", "mi_zalloc", "mi_realloc"].contains(&entry)
}

fn is_of_allocator(function: &str) -> bool {
    function.starts_with("mi_") || function.starts_with("_mi_")
}

/// The library that makes tags of datagrams has a variant for each kind of processor, and these copy their state in different ways.
fn is_of_tags(function: &str) -> bool {
    function.starts_with("state_mac_")
}

/// As the C library names them, with what the processor has: `__memcpy_avx_unaligned_erms`.
fn is_copy(function: &str) -> bool {
    function.starts_with("__memcpy") || function.starts_with("__memmove")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_functions_that_count_are_added_up() {
        let profile = "events: Ir sysCount sysTime\n\nfn=some::path\n16 400\ncfn=mi_malloc\ncalls=4 0 \n\
                       16 1000\ncfn=mi_malloc_aligned\ncalls=1 0 \n16 1000\ncfn=__memcpy_avx_unaligned_erms\ncalls=7 0 \n17 90\n\nfn=mi_realloc_aligned\n\
                       cfn=mi_malloc_aligned\ncalls=3 0 \n3 3\ncfn=__memmove_avx_unaligned\ncalls=2 0 \n3 3\n\n\
                       fn=state_mac_clone\ncfn=__memcpy_avx_unaligned_erms\ncalls=4 0 \n3 3\n\n\
                       totals: 1234567 6 12\n";
        let expected = Counts { instructions: 1_234_567.0, copies: 9.0, allocations: 5.0, system_calls: 6.0 };
        assert_eq!(counts(profile), Some(expected));
        assert_eq!(counts("events: Ir\nfn=some::path\n16 400\ntotals: 400\n"), None);
    }
}
