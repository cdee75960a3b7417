//! Boards that know nothing of Weir: their datagrams are in the files, to the last byte.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};

use testkit::TempDir;

use crate::files::check_all;
use crate::links::in_files;
use crate::running::{Job, examples, program};

#[test]
fn datagrams_of_a_feed_are_recorded_byte_by_byte() {
    let beam = Beam::new(
        "[source.frame]\nheader = 16\nstrip = true\ncounter = { at = 0, width = 4 }\n\
         time = [{ at = 4, width = 8 }]\nlength = { at = 12, width = 4, plus = 16 }\n",
    );
    let record = beam.directory.join("record");
    let mut feed = Command::new(program());
    feed.args(["feed", &beam.at(), "--rate", "5 kHz", "--size", "400 B", "--spread", "exponential"]);
    let found = beam.run(feed.arg("--record").arg(&record));
    let written = written(&fs::read(&record).unwrap());
    for (number, data) in &found {
        assert!(*data == written[number], "event {number}");
    }
}

#[test]
fn the_example_of_a_board_is_recorded_byte_by_byte() {
    // It needs no packages.
    if Command::new("python3").arg("--version").output().is_err() {
        return testkit::skip("the_example_of_a_board_is_recorded_byte_by_byte", "python3 is not installed");
    }
    let path = examples().join("detector/udp-board.py");
    let text = fs::read_to_string(&path).unwrap();
    let described = text.split_once("[source.frame]").unwrap().1.split_once("\"\"\"").unwrap().0;
    let beam = Beam::new(&format!("[source.frame]{described}"));
    let mut board = Command::new("python3");
    let found = beam.run(board.arg(&path).arg(beam.at().strip_prefix("udp://").unwrap()).args(["--rate", "4000"]));
    for (number, data) in found {
        let samples: Vec<u16> = (0..20 + number % 30).map(|at| ((number * 7 + at * at) & 0xfff) as u16).collect();
        assert_eq!(data[..4], [[0xb0, 0xa2], (number as u16).to_be_bytes()].concat(), "event {number}");
        assert!(data[16..] == samples.into_iter().flat_map(u16::to_be_bytes).collect::<Vec<u8>>(), "event {number}");
    }
}

/// A partition whose only source is a board, which leads.
struct Beam {
    directory: TempDir,
    port: u16,
    frame: String,
}

impl Beam {
    fn new(frame: &str) -> Self {
        // The port is free when the run begins, as far as anybody can tell.
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { directory: TempDir::new("boards"), port, frame: frame.to_owned() }
    }

    fn at(&self) -> String {
        format!("udp://127.0.0.1:{}", self.port)
    }

    /// Runs beside a board that never ends: payloads by number. Nothing was lost between.
    fn run(&self, board: &mut Command) -> BTreeMap<u64, Vec<u8>> {
        let text = format!(
            "[partition]\nname = \"beam\"\n[level1]\nsource = \"link\"\n[ros]\ncount = 1\n[dfm]\n[sfi]\ncount = 1\n\
             [sfo]\ncount = 1\n[[source]]\nname = \"board\"\nat = {:?}\n{}",
            self.at(),
            self.frame
        );
        let path = self.directory.join("beam.toml");
        fs::write(&path, text).unwrap();
        let running = Job::of(&path).patient().events(EVENTS).start();
        let board = Board(board.stdin(Stdio::null()).spawn().unwrap());
        let (ended, summary) = running.end().expect_ok();
        drop(board);
        assert_eq!(summary.count("recorded"), EVENTS);
        let device = &summary.0["links"][0]["device"];
        for cause in ["missing", "repeated", "malformed", "foreign"] {
            assert_eq!(device[cause], 0, "{device}");
        }
        check_all(ended.output());
        let found: BTreeMap<u64, Vec<u8>> =
            in_files(ended.output()).into_iter().map(|((number, _), data)| (number, data)).collect();
        let numbers: Vec<u64> = found.keys().copied().collect();
        assert_eq!(numbers.len() as u64, EVENTS);
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
        found
    }
}

/// Ends with the test.
struct Board(Child);

impl Drop for Board {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// What a feed wrote down, by number; the last one may be cut.
fn written(mut record: &[u8]) -> BTreeMap<u64, Vec<u8>> {
    let mut written = BTreeMap::new();
    while record.len() >= 12 {
        let number = u64::from_le_bytes(*record.first_chunk().unwrap());
        let len = u32::from_le_bytes(*record[8..].first_chunk().unwrap()) as usize;
        let Some(data) = record.get(12..12 + len) else { break };
        written.insert(number, data.to_vec());
        record = &record[12 + len..];
    }
    written
}

const EVENTS: u64 = 2_000;
