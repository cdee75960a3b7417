//! Recorded files.

use std::fs;
use std::path::{Path, PathBuf};

use storage::{CheckLimits, FileReader, check};

/// The files of an output directory, in the order of their names. Nothing but finished RAW files may be there.
pub(crate) fn recorded(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let foreign: Vec<_> = files.iter().filter(|path| path.extension().is_none_or(|end| end != "data")).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    files
}

/// Checks all files of an output directory completely; the path of each with its events.
pub(crate) fn check_all(directory: &Path) -> Vec<(String, u64)> {
    let checked = recorded(directory).into_iter().map(|path| {
        let report = check(&path, &CheckLimits::default()).unwrap();
        assert!(report.is_good(), "{report}");
        (path.display().to_string(), u64::from(report.events))
    });
    checked.collect()
}

/// Shows every event of a file to `look`; `look` may keep what it likes.
pub(crate) fn each_event(path: &Path, mut look: impl FnMut(&[u8])) {
    let mut reader = FileReader::open(path).unwrap();
    while let Some(event) = reader.next_event().unwrap() {
        look(event.bytes);
    }
}

/// All events of some files, one behind the other.
pub(crate) fn events(files: &[PathBuf]) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    files.iter().for_each(|file| each_event(file, |event| events.push(event.to_vec())));
    events
}
