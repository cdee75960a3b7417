//! What a dead recorder left: files that it was writing, files that it had closed and not told of, its journal.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use dataflow::message::FileRecord;

/// The directory of the output, as it was before the run.
pub(super) struct LeftFiles {
    directory: PathBuf,
    /// The part of a name that says the run.
    run: String,
    /// A former run of this number, too, may have left files.
    before: BTreeSet<OsString>,
}

impl LeftFiles {
    /// `file_run` is the run number in the names of files.
    pub(super) fn new(directory: &str, file_run: u32) -> Self {
        let directory = Path::new(directory).to_owned();
        let before = names(&directory).into_iter().collect();
        Self { directory, run: format!(".{file_run:08}."), before }
    }

    /// The files of this run that `application` has left and that are not among those `told`, and what is to be said about them.
    /// One that was being written is cut behind its last whole event.
    pub(super) fn of(&self, application: &str, told: &[FileRecord]) -> (Vec<FileRecord>, Vec<String>) {
        let (mut files, mut remarks) = (Vec::new(), Vec::new());
        let part = format!("._{application}._");
        let journal = format!("{}{application}.journal", self.run);
        for name in names(&self.directory) {
            let path = self.directory.join(&name);
            let Some(text) = name.to_str().filter(|text| text.contains(&self.run)) else { continue };
            if text.ends_with(&journal) {
                // It is of no use any more; one that stays is replaced by the next run of this number.
                let _ = fs::remove_file(&path);
            }
            let is_torn = text.ends_with(".writing");
            let is_closed = text.ends_with(".data") && !told.iter().any(|file| Path::new(&file.path).ends_with(&name));
            if !text.contains(&part) || self.before.contains(&name) || !(is_torn || is_closed) {
                continue;
            }
            match storage::recover(&path) {
                Ok(recovered) => {
                    if is_torn {
                        remarks.push(format!("recovered: {recovered}"));
                    }
                    files.push(FileRecord {
                        path: recovered.path.display().to_string(),
                        stream: recovered.stream.unwrap_or_default(),
                        events: u64::from(recovered.events_kept),
                        first_copies: u64::from(recovered.first_copies),
                        bytes: recovered.bytes,
                        adler32: recovered.adler32,
                    });
                }
                Err(error) => remarks.push(format!("{} cannot be recovered: {error}", path.display())),
            }
        }
        (files, remarks)
    }
}

/// Names in a directory, in order; none, if it cannot be read.
fn names(directory: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use eformat::{EventHeader, RobParams, event_envelope, lost_rob};
    use storage::{Writer, WriterConfig};
    use testkit::TempDir;

    use super::*;

    /// Starts files of two events each of run 7, and leaves the last one open.
    fn write(directory: &TempDir, application: &str, events: u32) -> Writer {
        let mut writer = Writer::new(WriterConfig {
            directory: directory.path().to_owned(),
            run_number: 7,
            application: application.into(),
            events_max: 2,
            ..WriterConfig::default()
        })
        .unwrap();
        let (mut header, rob) = (Vec::new(), lost_rob(&RobParams::default()));
        for _ in 0..events {
            header.clear();
            event_envelope(&EventHeader::default(), [rob.as_slice()], false, &mut header);
            writer.write_event(&[&header, &rob]).unwrap();
        }
        writer
    }

    fn record(path: &Path) -> FileRecord {
        FileRecord {
            path: path.display().to_string(),
            stream: String::new(),
            events: 2,
            first_copies: 2,
            bytes: 0,
            adler32: 0,
        }
    }

    #[test]
    fn what_was_not_told_is_found_and_nothing_else() {
        let directory = TempDir::new("left-files");
        write(&directory, "sfo-1", 2).finish().unwrap();
        let left = LeftFiles::new(directory.path().to_str().unwrap(), 7);
        let (mut dead, _other) = (write(&directory, "sfo-1", 5), write(&directory, "sfo-2", 1));
        let told = record(&dead.take_closed()[0].path);

        let (files, remarks) = left.of("sfo-1", std::slice::from_ref(&told));
        assert_eq!(files.iter().map(|file| file.events).collect::<Vec<_>>(), [2, 1], "{files:?}");
        assert!(files.iter().all(|file| file.path != told.path));
        assert!(matches!(remarks.as_slice(), [remark] if remark.contains("1 events kept")), "{remarks:?}");

        let (again, remarks) = left.of("sfo-1", &[&[told], files.as_slice()].concat());
        assert!(again.is_empty() && remarks.is_empty(), "{again:?} {remarks:?}");
    }
}
