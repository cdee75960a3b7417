//! What a dead recorder left: files that it was writing, files that it had closed and not told of, its journal.
//!
//! Where there is a journal, files are cut by it: an event stays if it is in all its streams. Without one each file keeps all events that
//! are whole in it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use base::causes::sentences;
use dataflow::message::FileRecord;
use storage::finish_left;

use driver::file_record;

use crate::said::Said;

/// The directory of the output. A run has its number for itself: whatever file there has it is of this run.
pub(super) struct LeftFiles {
    directory: PathBuf,
    /// The part of a name that says the run.
    run: String,
}

impl LeftFiles {
    /// `file_run` is the run number in the names of files.
    pub(super) fn new(directory: &str, file_run: u32) -> Self {
        Self { directory: directory.into(), run: format!(".{file_run:08}.") }
    }

    /// The files of this run that `application` has left and that are not among those `told`, and what is to be said
    /// about them. One that was being written is cut behind its last whole event, and removed if nothing was written to
    /// it. A damaged one is kept beside the events saved from it.
    pub(super) fn of(&self, application: &str, told: &[FileRecord]) -> (Vec<FileRecord>, Vec<Said>) {
        let (mut files, mut remarks) = self.by_journal(application, told);
        let part = format!("._{application}._");
        for name in names(&self.directory) {
            let path = self.directory.join(&name);
            let Some(text) = name.to_str().filter(|text| text.contains(&self.run)) else { continue };
            let is_torn = text.ends_with(".writing");
            let is_known = || told.iter().chain(&files).any(|file| Path::new(&file.path).ends_with(&name));
            let is_closed = text.ends_with(".data") && !is_known();
            if !text.contains(&part) || !(is_torn || is_closed) {
                continue;
            }
            if is_torn && fs::metadata(&path).is_ok_and(|file| file.len() == 0) {
                if let Err(error) = fs::remove_file(&path) {
                    let said = Said::warning(format!("{} is empty and cannot be removed", path.display()));
                    remarks.push(said.because(sentences(&error)));
                }
                continue;
            }
            match storage::finish_torn(&path) {
                Ok(recovered) => {
                    if is_torn || !recovered.damages.is_empty() {
                        let said = recovered.to_string();
                        let text = format!("recovered: {}", said.lines().next().unwrap_or_default());
                        // What is whole is as it should be.
                        let is_whole = recovered.events_lost == 0 && !recovered.may_be_more;
                        remarks.push(if is_whole { Said::notice(text) } else { Said::warning(text) });
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
                Err(error) => {
                    let said = Said::error(format!("{} cannot be recovered", path.display()));
                    remarks.push(said.because(sentences(&error)));
                }
            }
        }
        (files, remarks)
    }

    /// The same for files of which its journal tells, which is then removed.
    fn by_journal(&self, application: &str, told: &[FileRecord]) -> (Vec<FileRecord>, Vec<Said>) {
        let (mut files, mut remarks) = (Vec::new(), Vec::new());
        let [journal, compacted] = ["journal", "new"].map(|kind| format!("{}{application}.{kind}", self.run));
        let left = names(&self.directory);
        for name in &left {
            let Some(text) = name.to_str() else { continue };
            let path = self.directory.join(name);
            if text.ends_with(&journal) {
                match finish_left(&path) {
                    Ok(finished) => files.extend(finished.into_iter().map(file_record)),
                    Err(error) => {
                        let said = Said::warning(format!("{application}: events may lack some of their streams"));
                        remarks.push(said.because(sentences(&error)));
                    }
                }
            }
            if text.ends_with(&journal) || text.ends_with(&compacted) {
                // It is of no use any more.
                let _ = fs::remove_file(path);
            }
        }
        files.retain(|file| {
            !told.iter().any(|told| Path::new(&told.path).file_name() == Path::new(&file.path).file_name())
        });
        let was_torn = |file: &&FileRecord| {
            let writing = Path::new(&file.path).with_extension("writing");
            left.iter().any(|name| writing.ends_with(name))
        };
        remarks.extend(files.iter().filter(was_torn).map(|FileRecord { path, events, .. }| {
            Said::notice(format!("recovered: {path}: {events} events kept, those that are in all their streams"))
        }));
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
    use storage::{EventCopy, Streams, Writer, WriterConfig};
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
        for global_id in 0..u64::from(events) {
            let event = EventHeader { global_id, run_number: 7, ..EventHeader::default() };
            event_envelope(&event, [rob.as_slice()], false, &mut header);
            writer.write_event(&[&header, &rob]).unwrap();
        }
        writer
    }

    #[test]
    fn by_a_journal_an_event_is_in_all_its_streams_or_in_none() {
        for is_damaged in [false, true] {
            let directory = TempDir::new("left-files");
            let left = LeftFiles::new(directory.path().to_str().unwrap(), 7);
            let config = WriterConfig {
                directory: directory.path().to_owned(),
                run_number: 7,
                application: "sfo-1".into(),
                ..WriterConfig::default()
            };
            let mut streams = Streams::new(config);
            streams.keep_journal().unwrap();
            let rob = lost_rob(&RobParams::default());
            let mut write = |global_id, stream_names: &[&'static str]| {
                let mut header = Vec::new();
                let event = EventHeader { global_id, run_number: 7, ..EventHeader::default() };
                event_envelope(&event, [rob.as_slice()], false, &mut header);
                let parts = [header.as_slice(), rob.as_slice()];
                let copy =
                    |stream_name: &&'static str| EventCopy { stream_type: "physics", stream_name, parts: &parts };
                let copies: Vec<_> = stream_names.iter().map(copy).collect();
                streams.write_numbered(global_id, 0, &copies).unwrap();
            };
            (1..=3).for_each(|event| write(event, &["Main", "express"]));
            let journal = directory.join("data_test.00000007.sfo-1.journal");
            let known = fs::read(&journal).unwrap();
            // A death between the last copy of an event and its line.
            write(4, &["Main"]);
            drop(streams);
            fs::write(&journal, if is_damaged { b"begin\n".to_vec() } else { known }).unwrap();
            fs::write(journal.with_extension("new"), "begin").unwrap();

            let (files, remarks) = left.of("sfo-1", &[]);
            let events: Vec<_> = files.iter().map(|file| (file.stream.as_str(), file.events)).collect();
            let main = if is_damaged { 4 } else { 3 };
            assert_eq!(events, [("physics_Main", main), ("physics_express", 3)]);
            assert!(remarks.iter().filter(|remark| remark.text.starts_with("recovered: ")).count() == 2, "{remarks:?}");
            assert_eq!(remarks.iter().any(|remark| remark.to_string().contains("damaged")), is_damaged, "{remarks:?}");
            let names = names(directory.path());
            assert!(names.iter().all(|name| name.to_str().unwrap().ends_with(".data")), "{names:?}");
            assert!(names.len() == 2 && left.of("sfo-1", &files) == (Vec::new(), Vec::new()));
        }
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
    fn a_file_that_nothing_was_written_to_is_removed() {
        let directory = TempDir::new("left-files");
        let left = LeftFiles::new(directory.path().to_str().unwrap(), 7);
        let [begun, other] = ["sfo-1", "sfo-2"].map(|application| {
            let path =
                directory.join(format!("data_test.00000007.physics_Main.daq.RAW._lb0001._{application}._0001.writing"));
            fs::write(&path, b"").unwrap();
            path
        });
        assert_eq!(left.of("sfo-1", &[]), (Vec::new(), Vec::new()));
        assert!(!begun.exists() && other.exists());
    }

    #[test]
    fn what_was_not_told_is_found_and_nothing_else() {
        let directory = TempDir::new("left-files");
        let left = LeftFiles::new(directory.path().to_str().unwrap(), 7);
        let (mut dead, _other) = (write(&directory, "sfo-1", 5), write(&directory, "sfo-2", 1));
        let told = record(&dead.take_closed()[0].path);

        let (files, remarks) = left.of("sfo-1", std::slice::from_ref(&told));
        assert_eq!(files.iter().map(|file| file.events).collect::<Vec<_>>(), [2, 1], "{files:?}");
        assert!(files.iter().all(|file| file.path != told.path));
        assert!(matches!(remarks.as_slice(), [remark] if remark.text.contains("1 events kept")), "{remarks:?}");

        let (again, remarks) = left.of("sfo-1", &[&[told], files.as_slice()].concat());
        assert!(again.is_empty() && remarks.is_empty(), "{again:?} {remarks:?}");
    }
}
