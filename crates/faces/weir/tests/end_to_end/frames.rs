//! Frames from a file, a named pipe and a directory: they are in the files, to the last byte.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use testkit::TempDir;

use crate::files::check_all;
use crate::links::in_files;
use crate::running::Job;

#[test]
fn every_frame_of_a_file_a_pipe_and_a_directory_is_recorded_and_the_end_of_the_file_ends_the_run() {
    let directory = TempDir::new("frames");
    let (file, pipe, spool) = (directory.join("lead"), directory.join("pipe"), directory.join("spool"));
    let lead: Vec<u8> = (0..EVENTS).flat_map(|number| frame(1, number)).collect();
    fs::write(&file, lead).unwrap();
    mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    fs::create_dir(&spool).unwrap();
    let running = beam(&directory, &[&file, &pipe, &spool]).endless().start();
    let writer = thread::spawn(move || {
        let mut pipe = File::options().write(true).open(pipe).unwrap();
        (0..EVENTS).for_each(|number| pipe.write_all(&frame(2, number)).unwrap());
    });
    for (place, numbers) in (0..EVENTS).collect::<Vec<_>>().chunks(100).enumerate() {
        let frames: Vec<u8> = numbers.iter().flat_map(|number| frame(3, *number)).collect();
        fs::write(spool.join(".unready"), frames).unwrap();
        fs::rename(spool.join(".unready"), spool.join(format!("{place:04}"))).unwrap();
    }
    let (ended, summary) = running.end().expect_ok();
    writer.join().unwrap();
    assert_eq!(summary.count("recorded"), u64::from(EVENTS));
    check_all(ended.output());
    let found = in_files(ended.output());
    for (place, source) in (1..=3).enumerate() {
        let device = &summary.0["links"][place]["device"];
        for cause in ["missing", "repeated", "malformed"] {
            assert_eq!(device[cause], 0, "source {source}: {device}");
        }
        for number in 0..EVENTS {
            let data = &found[&(number.into(), FIRST_ID + place as u32)];
            assert!(*data == frame(source, number)[HEADER..], "source {source}, event {number}");
        }
    }
}

#[test]
fn damaged_frames_are_named_by_file_and_byte_and_counted() {
    let directory = TempDir::new("frames");
    let path = directory.join("damaged");
    let frames: Vec<u8> = (0..20).flat_map(|number| frame(1, number)).collect();
    fs::write(&path, [&frames[..], b"rubbish that nobody has ordered"].concat()).unwrap();
    let (ended, summary) = beam(&directory, &[&path]).endless().start().end().expect_ok();
    assert_eq!(summary.count("recorded"), 20);
    assert_eq!(summary.0["links"][0]["device"]["malformed"], 1);
    let place = format!("{}, byte {}: not as [source.frame] says", path.display(), frames.len());
    assert!(ended.stderr.contains(&place), "{}", ended.stderr);
}

#[test]
fn a_path_that_leads_nowhere_is_said_before_the_run() {
    let directory = TempDir::new("frames");
    let path = directory.join("nowhere");
    let ended = beam(&directory, &[&path]).endless().start().end();
    assert!(!ended.status.success(), "{}", ended.stderr);
    let said = format!("file:{}: No such file or directory", path.display());
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
}

/// A partition with these sources, the first of which leads.
fn beam(directory: &TempDir, sources: &[&PathBuf]) -> Job {
    let mut text = "[partition]\nname = \"beam\"\n[level1]\nsource = \"link\"\n[ros]\ncount = 1\n[dfm]\n[sfi]\n\
                    count = 1\n[sfo]\ncount = 1\n"
        .to_owned();
    for (place, path) in sources.iter().enumerate() {
        text += &format!(
            "[[source]]\nname = \"source-{place}\"\nat = \"file:{}\"\n[source.frame]\nheader = {HEADER}\nstrip = true\n\
             counter = {{ at = 4, width = 4 }}\nlength = {{ at = 0, width = 4 }}\n",
            path.display()
        );
    }
    let path: &Path = &directory.join("beam.toml");
    fs::write(path, text).unwrap();
    Job::of(path).patient()
}

/// Its length, its number, and data that no other one has.
fn frame(source: u32, number: u32) -> Vec<u8> {
    let len = (number * 7 + source * 13) % 500;
    let data = (0..len).map(|at| (at * 31 + number * source) as u8);
    let head = [HEADER as u32 + len, number].map(u32::to_be_bytes).concat();
    head.into_iter().chain(data).collect()
}

const HEADER: usize = 8;
const EVENTS: u32 = 3_000;
const FIRST_ID: u32 = 0x0051_0000;
