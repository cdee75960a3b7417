//! Files on disks that fill for good, refuse to write, or lose their names while they are written.

use std::fs;

use crate::common::{Directory, Faults, Faulty, TestEvent, check_good, config, events};
use storage::*;

fn faulty(directory: &Directory, change: impl FnOnce(WriterConfig) -> WriterConfig) -> (Streams, Faults) {
    let faults = Faults::default();
    let backend = faults.clone();
    let streams = Streams::with_backend(change(config(directory)), move || Box::new(Faulty(backend.clone())));
    (streams, faults)
}

fn write(streams: &mut Streams, id: u32, names: &[&str]) -> Result<(), WriteError> {
    let event = TestEvent::new(id, 20);
    let parts = event.parts();
    let copy = |stream_name| EventCopy { stream_type: "physics", stream_name, parts: &parts };
    streams.write_numbered(u64::from(id), 0, &names.iter().copied().map(copy).collect::<Vec<_>>())
}

/// Events of a good file, by their filling.
fn ids(file: &ClosedFile) -> Vec<u32> {
    assert_eq!((check_good(&file.path).adler32, check_good(&file.path).events), (file.adler32, file.events));
    let written: Vec<Vec<u8>> = (0..100).map(|id| TestEvent::new(id, 20).bytes()).collect();
    let id = |event: &Vec<u8>| written.iter().position(|known| known == event).unwrap() as u32;
    events(&file.path).iter().map(id).collect()
}

#[test]
fn a_disk_that_stays_full_left_no_room_for_the_end_of_the_file() {
    for space in (600..6000).step_by(7) {
        let directory = Directory::new();
        let (mut streams, faults) = faulty(&directory, |config| config);
        faults.set(|faults| faults.space = Some(space));
        let names = [["Main", "express"].as_slice(), &["Main"]];
        let full = |id: &u32| match write(&mut streams, *id, names[*id as usize % 2]) {
            Ok(()) => false,
            Err(error) => {
                assert!(error.is_full(), "{error}");
                true
            }
        };
        let count = (0..100).find(full).unwrap();
        let files = streams.finish().unwrap();
        let of = |name: &str| files.iter().find(|file| file.stream == name).map(ids).unwrap_or_default();
        assert_eq!(of("physics_Main"), (0..count).collect::<Vec<_>>(), "{space}");
        assert_eq!(of("physics_express"), (0..count).step_by(2).collect::<Vec<_>>(), "{space}");
        assert!(directory.names().iter().all(|name| name.ends_with(".data")), "{:?}", directory.names());
    }
}

#[test]
fn the_room_for_the_end_goes_back_to_the_disk() {
    use std::os::unix::fs::MetadataExt;
    let directory = Directory::new();
    let mut streams = Streams::new(config(&directory));
    write(&mut streams, 1, &["Main"]).unwrap();
    let file = streams.finish().unwrap().remove(0);
    assert_eq!(ids(&file), [1]);
    let blocks = fs::metadata(&file.path).unwrap().blocks();
    assert!(blocks * 512 < file.bytes + (64 << 10), "{blocks} blocks for {} bytes", file.bytes);
}

#[test]
fn a_directory_that_was_removed_took_the_events_with_it() {
    for (journal, moved) in [(false, false), (false, true), (true, false), (true, true)] {
        let directory = Directory::new();
        let inner = directory.path().join("out");
        let mut streams = Streams::new(WriterConfig { directory: inner.clone(), ..config(&directory) });
        if journal {
            streams.keep_journal().unwrap();
        }
        (0..3).for_each(|id| write(&mut streams, id, &["Main", "express"]).unwrap());
        streams.look().unwrap();
        assert!(streams.take_remarks().is_empty(), "nothing has happened");
        if moved {
            fs::rename(&inner, directory.path().join("elsewhere")).unwrap();
        } else {
            fs::remove_dir_all(&inner).unwrap();
        }
        write(&mut streams, 3, &["Main"]).unwrap();
        streams.look().unwrap();
        let remarks = streams.take_remarks();
        assert!(remarks.len() == 2 && remarks[0].contains("its 4 events are written again"), "{remarks:?}");
        write(&mut streams, 4, &["Main"]).unwrap();
        if journal {
            drop(streams);
            streams = Streams::new(WriterConfig { directory: inner.clone(), ..config(&directory) });
            assert_eq!(streams.resume().unwrap().events, [0, 1, 2, 3, 4]);
        }
        let files = streams.finish().unwrap();
        assert_eq!((ids(&files[0]), ids(&files[1])), (vec![0, 1, 2, 3, 4], vec![0, 1, 2]));
    }
}

#[test]
fn a_single_writer_looks_at_its_file_too() {
    let directory = Directory::new();
    let mut writer = Writer::new(config(&directory)).unwrap();
    writer.look().unwrap();
    let event = TestEvent::new(3, 20);
    writer.write_event(&event.parts()).unwrap();
    let path = writer.path().unwrap().to_owned();
    fs::remove_file(&path).unwrap();
    writer.look().unwrap();
    assert!(path.exists());
    let expected =
        format!("{} was removed or moved away while it was written: its 1 events are written again", path.display());
    assert_eq!(writer.take_remarks(), [expected]);
    let event_bytes = event.bytes().len() as u64;
    assert_eq!(writer.unfinished(), Unfinished { first_copies: 1, copies: 1, event_bytes });
    assert_eq!((writer.events(), ids(&writer.finish().unwrap()[0])), (1, vec![3]));
    assert_eq!((writer.events(), writer.unfinished()), (1, Unfinished::default()));
}

#[test]
fn a_file_that_somebody_cut_was_closed_as_good() {
    for (journal, close) in [(false, false), (false, true), (true, false), (true, true)] {
        let directory = Directory::new();
        let mut streams = Streams::new(WriterConfig { events_max: 4, ..config(&directory) });
        if journal {
            streams.keep_journal().unwrap();
        }
        (0..3).for_each(|id| write(&mut streams, id, &["Main"]).unwrap());
        let path = directory.path().join(directory.names().iter().find(|name| name.ends_with(".writing")).unwrap());
        let bytes = fs::metadata(&path).unwrap().len();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes - 10).unwrap();
        // It is in the file that is cut, and whole there.
        write(&mut streams, 3, &["Main"]).unwrap();
        if close {
            // The next one would close it.
            write(&mut streams, 4, &["Main"]).unwrap();
        } else {
            streams.look().unwrap();
            write(&mut streams, 4, &["Main"]).unwrap();
        }
        let remarks = streams.take_remarks();
        assert!(matches!(&remarks[..], [remark] if remark.contains("its 4 events do not count")), "{remarks:?}");
        let Unfinished { first_copies, copies, .. } = streams.unfinished();
        assert_eq!((first_copies, copies), (5, 5), "four that are set aside, one in the open file");
        if journal {
            drop(streams);
            streams = Streams::new(WriterConfig { events_max: 4, ..config(&directory) });
            let resumed = streams.resume().unwrap();
            assert_eq!((resumed.first_copies, resumed.closed.len()), (1, 0));
            let known = [resumed.set_aside.copies, streams.unfinished().copies];
            assert_eq!(known, [4, 5], "the next life did not know what was set aside");
        }
        let files = streams.finish().unwrap();
        assert_eq!((files.len(), ids(&files[0])), (1, vec![4]));
        let aside = recover(&path.with_extension("damaged"), None).unwrap();
        assert_eq!(aside.events_kept, 3, "all but the one that was cut");
    }
}

#[test]
fn a_file_that_somebody_wrote_to_is_set_aside() {
    let directory = Directory::new();
    let mut streams = Streams::new(config(&directory));
    write(&mut streams, 0, &["Main"]).unwrap();
    let path = directory.path().join(&directory.names()[0]);
    std::io::Write::write_all(&mut fs::OpenOptions::new().append(true).open(&path).unwrap(), b"notes").unwrap();
    assert!(streams.finish().unwrap().is_empty());
    assert_eq!((streams.unfinished().copies, streams.take_remarks().len()), (1, 1));
    assert_eq!(recover(&path.with_extension("damaged"), None).unwrap().events_kept, 1);
}

#[test]
fn a_disk_that_refuses_to_sync_for_good_left_durable_events_in_an_open_file() {
    let directory = Directory::new();
    let (mut streams, faults) = faulty(&directory, |config| WriterConfig { durable: true, ..config });
    write(&mut streams, 0, &["Main", "express"]).unwrap();
    streams.sync().unwrap();
    write(&mut streams, 1, &["Main"]).unwrap();
    faults.set(|faults| (faults.sync_fails, faults.directory_fails) = (true, true));
    assert!(streams.sync().is_err());
    let files = streams.finish().unwrap();
    assert!(files.iter().all(|file| ids(file) == [0]), "{files:?}");
    let remarks = streams.take_remarks();
    let says =
        |remark: &String| remark.contains("the 1 events of the file are durable, its end and its name may not be");
    let (closed, cut): (Vec<String>, Vec<String>) = remarks.into_iter().partition(says);
    assert_eq!(closed.len(), 2);
    assert!(matches!(&cut[..], [cut] if cut.contains("Main") && cut.contains(": 1 events behind")), "{cut:?}");
    let event_bytes = TestEvent::new(1, 20).bytes().len() as u64;
    assert_eq!(streams.unfinished(), Unfinished { first_copies: 1, copies: 1, event_bytes }, "it was cut off");
}

/// A file that is full is made durable when it is closed, whatever becomes of the sync after that. What it had was given up as not recorded.
#[test]
fn files_and_what_is_in_none_are_all_that_was_written() {
    for full_at in 1..7 {
        let directory = Directory::new();
        let change = |config| WriterConfig { durable: true, events_max: full_at, ..config };
        let (mut streams, faults) = faulty(&directory, change);
        write(&mut streams, 0, &["Main", "express"]).unwrap();
        streams.sync().unwrap();
        (1..5).for_each(|id| write(&mut streams, id, &["Main", "express"]).unwrap());
        faults.set(|faults| faults.sync_fails = true);
        assert!(streams.sync().is_err());
        let files = streams.finish().unwrap();
        let sum = |of: fn(&ClosedFile) -> u32| u64::from(files.iter().map(of).sum::<u32>());
        let Unfinished { first_copies, copies, .. } = streams.unfinished();
        let recorded = u64::from(4 / full_at * full_at).max(1);
        assert_eq!((sum(|file| file.first_copies), sum(|file| file.events)), (recorded, 2 * recorded), "{full_at}");
        assert_eq!((first_copies, copies), (5 - recorded, 10 - 2 * recorded), "{full_at}");
    }
}

#[test]
fn what_nobody_has_made_durable_is_not_finished_by_a_disk_that_refuses() {
    let directory = Directory::new();
    let (mut streams, faults) = faulty(&directory, |config| WriterConfig { durable: true, ..config });
    (0..2).for_each(|id| write(&mut streams, id, &["Main"]).unwrap());
    faults.set(|faults| faults.sync_fails = true);
    assert!(streams.finish().is_err());
    assert_eq!(streams.unfinished().first_copies, 2);
    assert!(directory.names().iter().all(|name| name.ends_with(".writing")), "{:?}", directory.names());
    faults.set(|faults| faults.sync_fails = false);
    assert_eq!(ids(&streams.finish().unwrap()[0]), [0, 1]);
}

#[test]
fn a_file_that_cannot_be_written_again_waits_for_its_place() {
    let directory = Directory::new();
    let (mut streams, faults) = faulty(&directory, |config| config);
    write(&mut streams, 0, &["Main"]).unwrap();
    let path = directory.path().join(&directory.names()[0]);
    fs::remove_file(&path).unwrap();
    fs::write(&path, b"precious").unwrap();
    let error = streams.look().unwrap_err().to_string();
    assert!(error.contains("cannot write again") && error.contains("exists"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    fs::remove_file(&path).unwrap();
    faults.set(|faults| faults.space = Some(3));
    assert!(streams.look().unwrap_err().is_full());
    assert!(directory.names().is_empty(), "half a file: {:?}", directory.names());
    faults.set(|faults| faults.space = None);
    streams.look().unwrap();
    write(&mut streams, 1, &["Main"]).unwrap();
    assert_eq!(ids(&streams.finish().unwrap()[0]), [0, 1]);
}

#[test]
fn what_a_failed_sync_left_open_counted_as_durable() {
    let directory = Directory::new();
    let (mut streams, faults) = faulty(&directory, |config| WriterConfig { durable: true, ..config });
    write(&mut streams, 0, &["Main", "express"]).unwrap();
    streams.sync().unwrap();
    write(&mut streams, 1, &["Main"]).unwrap();
    faults.set(|faults| faults.sync_fails = true);
    assert!(streams.sync().is_err());
    // The kernel reports a failure once, and has forgotten the data.
    faults.set(|faults| (faults.sync_fails, faults.read_fails) = (false, true));
    write(&mut streams, 2, &["Main", "express", "late"]).unwrap();
    assert!(streams.sync().is_err(), "the next sync succeeded without the data");
    let files = streams.finish().unwrap();
    let of = |name: &str| files.iter().find(|file| file.stream == name).map(ids).unwrap();
    assert_eq!((of("physics_Main"), of("physics_express"), of("physics_late")), (vec![0], vec![0], vec![]));
    assert!(directory.names().iter().all(|name| name.ends_with(".data")), "{:?}", directory.names());
}

#[test]
fn after_a_failed_sync_a_file_is_written_again() {
    let directory = Directory::new();
    let (mut streams, faults) = faulty(&directory, |config| WriterConfig { durable: true, ..config });
    write(&mut streams, 0, &["Main"]).unwrap();
    faults.set(|faults| faults.sync_fails = true);
    assert!(streams.sync().is_err());
    assert!(streams.sync().is_err());
    let before = fs::metadata(directory.path().join(&directory.names()[0])).unwrap();
    faults.set(|faults| faults.sync_fails = false);
    streams.sync().unwrap();
    let after = fs::metadata(directory.path().join(&directory.names()[0])).unwrap();
    assert_ne!(inode(&before), inode(&after), "the file that the disk refused");
    let remarks = streams.take_remarks();
    assert!(matches!(&remarks[..], [remark] if remark.contains("its 1 events are written again")), "{remarks:?}");
    write(&mut streams, 1, &["Main"]).unwrap();
    let files = streams.finish().unwrap();
    assert_eq!((files.len(), ids(&files[0]), directory.names().len()), (1, vec![0, 1], 1));
}

fn inode(about: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(about)
}
