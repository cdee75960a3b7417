//! The file of limits: the machine that they are of, then the name of a path and its counts on each line.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::counts::Counts;

/// What an event costs, by path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Processor type and compiler.
    pub(crate) machine: String,
    entries: Vec<(String, Counts)>,
}

/// Why there are no limits.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LimitsError {
    #[error("{}: {cause}", file.display())]
    File { file: PathBuf, cause: io::Error },
    #[error("{}:{line}: expected `machine TEXT` or `PATH INSTRUCTIONS COPIES ALLOCATIONS SYSTEM_CALLS`, found {text:?}", file.display())]
    Line { file: PathBuf, line: usize, text: String },
    #[error("there is no limit for the path {path}: run `make limits`")]
    Missing { path: String },
}

impl Limits {
    /// None yet, for this machine.
    pub(crate) fn none() -> Self {
        Self { machine: machine(), entries: Vec::new() }
    }

    pub(crate) fn read(file: &Path) -> Result<Self, LimitsError> {
        let text = fs::read_to_string(file).map_err(|cause| LimitsError::File { file: file.to_owned(), cause })?;
        let mut limits = Self { machine: String::new(), entries: Vec::new() };
        for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.starts_with('#')) {
            let entry = text.split_once(' ').and_then(|(name, value)| {
                if name == MACHINE {
                    limits.machine = value.to_owned();
                    return Some(());
                }
                limits.entries.push((name.to_owned(), value.parse().ok()?));
                Some(())
            });
            entry.ok_or_else(|| LimitsError::Line { file: file.to_owned(), line, text: text.to_owned() })?;
        }
        Ok(limits)
    }

    pub(crate) fn write(&self, file: &Path) -> Result<(), LimitsError> {
        let mut text = format!("{HEAD}{MACHINE} {}\n", self.machine);
        writeln!(text, "# {:<14} {}", "path", Counts::HEAD).expect("a string takes all");
        for (name, counts) in &self.entries {
            writeln!(text, "{name:<16} {counts}").expect("a string takes all");
        }
        fs::write(file, text).map_err(|cause| LimitsError::File { file: file.to_owned(), cause })
    }

    pub(crate) fn is_for_this_machine(&self) -> bool {
        self.machine == machine()
    }

    pub(crate) fn of(&self, path: &str) -> Result<Counts, LimitsError> {
        let entry = self.entries.iter().find(|(name, _)| name == path);
        entry.map(|(_, limit)| *limit).ok_or_else(|| LimitsError::Missing { path: path.to_owned() })
    }

    pub(crate) fn set(&mut self, path: &str, limit: Counts) {
        self.entries.push((path.to_owned(), limit));
    }
}

/// Processor type and compiler.
pub(crate) fn machine() -> String {
    let version = Command::new("rustc").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    format!("{}, {version}", std::env::consts::ARCH)
}

const MACHINE: &str = "machine";
const HEAD: &str =
    "# What an event of each hot path costs. Written by `make limits`, held to by `make instructions`.\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let directory = testkit::TempDir::new("limits");
        let file = directory.path().join("limits.txt");
        let mut limits = Limits::none();
        let counts = Counts { instructions: 1234.0, copies: 1.5, allocations: 2.0, system_calls: 0.25 };
        limits.set("building", counts);
        limits.write(&file).unwrap();
        let read = Limits::read(&file).unwrap();
        assert_eq!(read, limits);
        assert!(read.is_for_this_machine());
        assert_eq!(read.of("building").unwrap(), counts);
        assert!(matches!(read.of("level2"), Err(LimitsError::Missing { .. })));
        fs::write(&file, "machine x\nbuilding many\n").unwrap();
        assert!(matches!(Limits::read(&file), Err(LimitsError::Line { line: 2, .. })));
    }
}
