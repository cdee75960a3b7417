//! Frames in a file, a named pipe, or the files of a directory.

mod bench;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base::losses::Losses;
use bench::{Bench, Came, SIZE_MAX};
use link::{ByteOrder, Counter, Extent, Field, FrameFormat, LinkError, LinkOrder, Lost};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use testkit::TempDir;
use transport::clock;

#[test]
fn a_file_is_read_from_its_beginning_in_each_run_and_ends_it() {
    let folder = TempDir::new("link-files");
    let path = folder.join("frames");
    let frames: Vec<Vec<u8>> = (0..5000).map(|number| frame(number, number as usize * 7 % 900)).collect();
    fs::write(&path, frames.concat()).unwrap();
    let mut bench = device(&path, format());
    for run in [1, 2] {
        bench.intake.order(LinkOrder::Start { run });
        let came = bench.came(|came| came.ended.is_some());
        assert!(came.fragments.iter().map(|fragment| &fragment.payload).eq(&frames));
        assert!(came.numbers().into_iter().eq(0..5000) && came.losses.are_none(), "{}", came.losses);
        assert_eq!(came.ended, Some((5000, 5000)));
        bench.intake.order(LinkOrder::Stop);
    }
}

#[test]
fn writers_of_a_pipe_come_and_go_and_one_that_dies_within_a_frame_spoils_that_alone() {
    let folder = TempDir::new("link-files");
    let path = pipe(&folder);
    let mut bench = device(&path, format());
    let mut early = writer(&path);
    early.write_all(&frame(0, 10)).unwrap();
    bench.poll();
    bench.intake.order(LinkOrder::Start { run: 1 });
    // What was written before the run waits for it.
    assert_eq!(bench.came(|came| came.fragments.len() == 1).numbers(), [0]);
    for piece in [frame(1, 500), frame(2, 0), frame(3, 7)].concat().chunks(11) {
        early.write_all(piece).unwrap();
        bench.poll();
    }
    assert_eq!(bench.came(|came| came.fragments.len() == 3).numbers(), [1, 2, 3]);
    early.write_all(&frame(4, 100)[..50]).unwrap();
    drop(early);
    let came = bench.came(|came| came.losses.malformed == 1);
    assert!(came.said[0].contains("pipe, byte 581: not as [source.frame] says: it ends 50 bytes after"), "{came:?}");
    let mut late = writer(&path);
    late.write_all(&frame(4, 100)).unwrap();
    assert_eq!(bench.came(|came| came.fragments.len() == 1).fragments[0].payload, frame(4, 100));
    bench.intake.order(LinkOrder::Stop);
    assert_eq!(bench.came(|came| came.ended.is_some()).ended, Some((5, 5)));
}

#[test]
fn a_pipe_that_its_writer_has_left_lets_the_scheduler_sleep() {
    let folder = TempDir::new("link-files");
    let path = pipe(&folder);
    let mut bench = device(&path, format());
    bench.intake.order(LinkOrder::Start { run: 1 });
    for number in 0..3 {
        let mut writer = writer(&path);
        writer.write_all(&frame(number, 9)).unwrap();
        assert_eq!(bench.came(|came| came.fragments.len() == 1).numbers(), [u64::from(number)]);
        // Once with a writer that waits, once without any.
        settle(&mut bench);
        drop(writer);
        settle(&mut bench);
    }
}

#[test]
fn a_full_readout_stops_the_writer_of_a_pipe_and_loses_nothing() {
    let folder = TempDir::new("link-files");
    let path = pipe(&folder);
    let mut bench = device(&path, format());
    bench.intake.order(LinkOrder::Start { run: 1 });
    bench.room = 0;
    let writing = std::thread::spawn(move || {
        let mut writer = File::options().write(true).open(path).unwrap();
        (0..2000).for_each(|number| writer.write_all(&frame(number, 600)).unwrap());
    });
    (0..20).for_each(|_| bench.poll());
    bench.room = 8;
    let came = bench.came(|came| came.fragments.len() == 2000);
    assert!(came.numbers().into_iter().eq(0..2000) && came.losses.are_none(), "{}", came.losses);
    writing.join().unwrap();
}

#[test]
fn files_of_a_directory_are_frames_in_the_order_of_their_names_each_once() {
    let folder = TempDir::new("link-files");
    let path = |name: &str| folder.join(name);
    for number in [3_u32, 1, 2] {
        fs::write(path(&format!("{number:03}.dat")), frame(number, 50 * number as usize)).unwrap();
    }
    fs::create_dir(path("000")).unwrap();
    fs::write(path(".004.dat"), frame(4, 9)).unwrap();
    let whole = FrameFormat { extent: Extent::Whole, ..format() };
    let mut bench = device(folder.path(), whole);
    bench.intake.order(LinkOrder::Start { run: 1 });
    let came = bench.came(|came| came.fragments.len() == 3);
    assert_eq!(came.numbers(), [1, 2, 3]);
    assert!(
        came.fragments
            .iter()
            .zip(1..)
            .all(|(fragment, number)| fragment.payload == frame(number, 50 * number as usize))
    );
    // What is written comes when it is closed.
    let mut open = File::create(path("005.dat")).unwrap();
    open.write_all(&frame(5, 9)[..20]).unwrap();
    fs::rename(path(".004.dat"), path("004.dat")).unwrap();
    assert_eq!(bench.came(|came| came.fragments.len() == 1).numbers(), [4]);
    open.write_all(&frame(5, 9)[20..]).unwrap();
    drop(open);
    assert_eq!(bench.came(|came| came.fragments.len() == 1).numbers(), [5]);
    // One that was read is not read again, until another one has its name.
    File::options().append(true).open(path("005.dat")).unwrap().write_all(&[0]).unwrap();
    let said = bench.came(|came| !came.said.is_empty()).said;
    assert!(said[0].ends_with("005.dat was read already: what is written to it now is not"), "{said:?}");
    fs::remove_file(path("001.dat")).unwrap();
    fs::write(path("001.dat"), frame(6, 1)).unwrap();
    assert_eq!(bench.came(|came| came.fragments.len() == 1).numbers(), [6]);
    bench.intake.order(LinkOrder::Stop);
    let ended = bench.came(|came| came.ended.is_some());
    assert!(ended.losses.are_none(), "{}", ended.losses);
    assert_eq!(ended.ended, Some((6, 6)));
}

#[test]
fn rubbish_in_a_file_is_counted_and_named_and_the_next_file_is_taken() {
    let folder = TempDir::new("link-files");
    let mut lying = frame(3, 5);
    lying[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
    fs::write(folder.join("a"), [frame(0, 5), frame(1, 5), lying, frame(4, 5)].concat()).unwrap();
    fs::write(folder.join("b"), "This is no frame, but a letter to somebody else.").unwrap();
    fs::write(folder.join("c"), &frame(2, 5)[..9]).unwrap();
    fs::write(folder.join("d"), "").unwrap();
    fs::write(folder.join("e"), [frame(2, 5), frame(2, 5), frame(6, 5)].concat()).unwrap();
    let mut bench = device(folder.path(), format());
    bench.intake.order(LinkOrder::Start { run: 1 });
    let came = bench.came(|came| came.fragments.len() == 4);
    assert_eq!(came.numbers(), [0, 1, 2, 6]);
    assert_eq!(came.losses, Losses { missing: 3, repeated: 1, malformed: 3, ..Losses::default() });
    assert_eq!(came.said.len(), 1, "{came:?}");
    let what = "a, byte 42: not as [source.frame] says: a frame of 4294967311 bytes";
    assert!(came.said[0].contains(what), "{came:?}");
    // Where a file is one frame, one that is empty, too short or too long is none.
    fs::remove_file(folder.join("b")).unwrap();
    let whole = FrameFormat { extent: Extent::Whole, ..format() };
    fs::write(folder.join("a"), vec![0; SIZE_MAX + 1]).unwrap();
    fs::write(folder.join("e"), frame(9, 5)).unwrap();
    let mut bench = device(folder.path(), whole);
    bench.intake.order(LinkOrder::Start { run: 1 });
    let came = bench.came(|came| came.numbers().last() == Some(&9));
    assert_eq!(came.losses.malformed, 3, "{came:?}");
}

#[test]
fn a_directory_that_is_removed_is_a_source_that_is_lost() {
    let folder = TempDir::new("link-files");
    let path = folder.join("drop");
    fs::create_dir(&path).unwrap();
    let mut bench = device(&path, format());
    bench.intake.order(LinkOrder::Start { run: 1 });
    bench.poll();
    fs::remove_dir(&path).unwrap();
    let came = bench.until(|came| came.iter().any(|came| matches!(came, Came::Down(_))));
    assert!(came.iter().any(|came| matches!(came, Came::Down(Lost::Gone))), "{came:?}");
}

#[test]
fn what_cannot_be_read_is_refused_with_its_path() {
    let folder = TempDir::new("link-files");
    let refused = |path: &Path| {
        let at = link::Address::of_intake(&format!("file:{}", path.display()), "test").unwrap();
        let mut parameters = bench::parameters(at, None);
        parameters.frames = Some(format());
        bench::open_intake(parameters).map(drop).expect_err("it cannot be read").to_string()
    };
    let missing = refused(&folder.join("missing"));
    assert!(
        missing.contains("missing: No such file or directory") && missing.contains("expected a regular file"),
        "{missing}"
    );
    assert!(refused(Path::new("/dev/null")).contains("/dev/null: it is none of these"));
    let secret = folder.join("secret");
    fs::write(&secret, frame(0, 1)).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o0)).unwrap();
    // Some users may read everything.
    if File::open(&secret).is_err() {
        assert!(refused(&secret).contains("Permission denied"));
    }
}

#[test]
fn files_without_a_description_are_refused() {
    let folder = TempDir::new("link-files");
    let at = link::Address::of_intake(&format!("file:{}", folder.path().display()), "test").unwrap();
    let refused = bench::open_intake(bench::parameters(at, None)).map(drop);
    assert!(matches!(refused, Err(LinkError::FramesUndescribed { .. })), "{refused:?}");
}

fn device(path: &Path, format: FrameFormat) -> Bench {
    Bench::of_device(&format!("file:{}", path.display()), format)
}

fn pipe(folder: &TempDir) -> PathBuf {
    let path = folder.join("pipe");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
    path
}

/// The intake has the pipe open already.
fn writer(path: &Path) -> File {
    File::options().write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path).unwrap()
}

/// Polls until there is nothing to do.
fn settle(bench: &mut Bench) {
    while bench.intake.is_ready(clock::now(), bench.room) || bench.intake.next_deadline(bench.room).is_some() {
        bench.poll();
    }
}

fn format() -> FrameFormat {
    let field = |at, width| Field { at, width, order: ByteOrder::Big };
    FrameFormat {
        header: HEADER,
        strip: false,
        extent: Extent::Said { field: field(12, 4), unit: 1, plus: HEADER as u64 },
        counter: Some(Counter { field: field(0, 4), modulus: None }),
        time: Vec::new(),
    }
}

fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = [number.to_be_bytes(), [0; 4], [0; 4], (len as u32).to_be_bytes()].concat();
    frame.extend((0..len).map(|at| (at as u32 * 31 + number) as u8));
    frame
}

const HEADER: usize = 16;
