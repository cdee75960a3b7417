//! Sources that run free, without any trigger: what they send is in the slices of its time, or counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use eformat::Event;
use link::{Head, Order, Sender, Settings};
use rol::{ChunkHead, EventHead};
use testkit::TempDir;

use crate::account::Summary;
use crate::files::{check_all, each_event, recorded};
use crate::running::{Job, Running};

#[test]
fn every_chunk_of_eight_sources_is_in_each_slice_that_it_meets() {
    for processes in [false, true] {
        let stream = Stream::new("60 s", 1024);
        let running = stream.start(processes);
        let sources: Vec<_> = (0..SOURCES).map(|place| stream.source(place, Ends::Well)).collect();
        let (ended, summary) = running.end().expect_ok();
        let sent: Vec<Vec<Chunk>> = sources.into_iter().map(|source| source.join().unwrap()).collect();
        check_all(ended.output());
        let slices = in_files(ended.output());
        assert_eq!(slices.len() as u64, summary.count("recorded"));
        assert_eq!(slices.keys().copied().collect::<Vec<_>>(), Vec::from_iter(0..=last_slice(&sent)));
        assert_eq!(slices, expected(&sent, slices.keys().copied()));
        for link in links(&summary) {
            assert_eq!((link["fragments"].as_u64(), books(link)), (Some(CHUNKS), CHUNKS), "{link}");
            assert_eq!((link["late"].as_u64(), link["never_triggered"].as_u64()), (Some(0), Some(0)), "{link}");
        }
    }
}

#[test]
fn slices_are_built_without_a_source_that_has_died_and_marked() {
    let stream = Stream::new("60 s", 1024);
    let running = stream.start(false);
    let ends = |place| if place == 3 { Ends::Dies } else { Ends::Well };
    let sources: Vec<_> = (0..SOURCES).map(|place| stream.source(place, ends(place))).collect();
    let (ended, summary) = running.end().expect_degraded(&["built_incomplete"]);
    let sent: Vec<Vec<Chunk>> = sources.into_iter().map(|source| source.join().unwrap()).collect();
    let found = in_files(ended.output());
    for (slice, by_source) in expected(&sent, found.keys().copied()) {
        for (source, chunks) in by_source.into_iter().filter(|(source, _)| *source != FIRST_ID + 3) {
            assert_eq!(found[&slice].get(&source), Some(&chunks), "slice {slice}");
        }
    }
    assert!(links(&summary)[3]["missing"].as_u64().unwrap() > 0);
}

#[test]
fn a_silent_source_holds_nobody_up_and_what_it_says_late_is_counted() {
    let stream = Stream::new("20 ms", 1024);
    let mut running = stream.start(false);
    let (say, heard) = sync_channel::<()>(1);
    let silent = stream.source_after(7, Ends::Well, Some(heard));
    let sources: Vec<_> = (0..SOURCES - 1).map(|place| stream.source(place, Ends::Well)).collect();
    running.until_recording();
    say.send(()).unwrap();
    let (_, summary) = running.end().expect_end();
    sources.into_iter().chain([silent]).for_each(|source| drop(source.join().unwrap()));
    assert_eq!(summary.0["accounting"]["residual"].as_u64().unwrap_or(0), 0);
    let late = &links(&summary)[7];
    assert!(late["late"].as_u64().unwrap() > 0, "{late}");
    links(&summary).iter().for_each(|link| assert_eq!(link["fragments"].as_u64(), Some(books(link)), "{link}"));
}

#[test]
fn overload_leaves_out_whole_slices_everywhere_alike() {
    let stream = Stream::new("60 s", 64);
    let running = stream.start(false);
    let sources: Vec<_> = (0..SOURCES).map(|place| stream.source(place, Ends::Well)).collect();
    let (ended, summary) = running.end().expect_end();
    let sent: Vec<Vec<Chunk>> = sources.into_iter().map(|source| source.join().unwrap()).collect();
    let found = in_files(ended.output());
    assert_eq!(found, expected(&sent, found.keys().copied()), "what is there is whole");
    links(&summary).iter().for_each(|link| assert_eq!(link["fragments"].as_u64(), Some(books(link)), "{link}"));
}

#[test]
fn chunks_whose_time_goes_back_are_late_and_take_no_slice_of_others() {
    let stream = Stream::new("60 s", 1024);
    let running = stream.start(false);
    let ends = |place| if place == 2 { Ends::GoingBack } else { Ends::Well };
    let sources: Vec<_> = (0..SOURCES).map(|place| stream.source(place, ends(place))).collect();
    let (ended, summary) = running.end().expect_end();
    let sent: Vec<Vec<Chunk>> = sources.into_iter().map(|source| source.join().unwrap()).collect();
    assert_eq!(summary.0["accounting"]["residual"].as_u64().unwrap_or(0), 0);
    let found = in_files(ended.output());
    for (slice, by_source) in expected(&sent, found.keys().copied()) {
        for (source, chunks) in by_source.into_iter().filter(|(source, _)| *source != FIRST_ID + 2) {
            assert_eq!(found[&slice].get(&source), Some(&chunks), "slice {slice}");
        }
    }
    links(&summary).iter().for_each(|link| assert_eq!(link["fragments"].as_u64(), Some(books(link)), "{link}"));
}

/// When a source ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Well,
    /// Well, though each tenth of its chunks is of a time long before.
    GoingBack,
    Dies,
}

/// A chunk: begin, end, payload.
pub(crate) type Chunk = (u64, u64, Vec<u8>);

/// The chunks of a slice, by source.
type Slices = BTreeMap<u64, BTreeMap<u32, Vec<Chunk>>>;

/// Eight sources over shared memory, two read-out systems.
pub(crate) struct Stream {
    directory: TempDir,
    grace: &'static str,
    pages: u32,
    /// What a source sends, by its place and the number of the chunk.
    pub(crate) chunk: fn(usize, u64) -> Chunk,
    /// More of the configuration of a source, by its place.
    pub(crate) more: fn(usize) -> &'static str,
}

impl Stream {
    pub(crate) fn new(grace: &'static str, pages: u32) -> Self {
        Self { directory: TempDir::new("stream"), grace, pages, chunk, more: |_| "" }
    }

    fn at(&self, place: usize) -> String {
        format!("shm:{}/{place}.sock", self.directory.path().display())
    }

    fn start(&self, processes: bool) -> Running {
        self.job().patient().processes(processes).start()
    }

    pub(crate) fn job(&self) -> Job {
        let Self { grace, pages, .. } = self;
        let mut text = format!(
            "[partition]\nname = \"stream\"\n[level1]\nsource = \"time\"\nslice = \"1 ms\"\nbefore = \"100 us\"\n\
             after = \"50 us\"\ngrace = {grace:?}\n[ros]\ncount = 2\npages = {pages}\nchecksum = \"adler32\"\n[dfm]\n\
             [sfi]\ncount = 1\n[sfo]\ncount = 1\n"
        );
        for place in 0..SOURCES {
            text += &format!("[[source]]\nname = \"s{place}\"\nat = {:?}\nsize_max = \"4 kB\"\n", self.at(place));
            text += (self.more)(place);
        }
        let path = self.directory.join("stream.toml");
        fs::write(&path, text).unwrap();
        Job::of(&path)
    }

    pub(crate) fn source(&self, place: usize, ends: Ends) -> JoinHandle<Vec<Chunk>> {
        self.source_after(place, ends, None)
    }

    /// Sends its chunks as fast as they are taken, when it is told to.
    fn source_after(&self, place: usize, ends: Ends, told: Option<Receiver<()>>) -> JoinHandle<Vec<Chunk>> {
        let (at, chunk) = (self.at(place), self.chunk);
        thread::spawn(move || {
            let settings =
                Settings { name: format!("s{place}"), id: None, key: None, patience: Duration::from_secs(60) };
            let mut sender = Sender::open(&at, &settings).unwrap();
            while !matches!(sender.wait(Duration::from_secs(60)).unwrap(), Order::Start { .. }) {}
            if let Some(told) = told {
                told.recv().unwrap();
            }
            let mut sent = Vec::new();
            let count = if ends == Ends::Dies { CHUNKS / 2 } else { CHUNKS };
            for number in 0..count {
                let (mut begin, mut end, payload) = chunk(place, number);
                if ends == Ends::GoingBack && number % 10 == 9 {
                    (begin, end) = (begin / 2, end / 2);
                }
                loop {
                    if let Ok(Some(slot)) = sender.reserve(payload.len()) {
                        slot[..payload.len()].copy_from_slice(&payload);
                        break;
                    }
                    if sender.wait(Duration::from_millis(10)).unwrap() == Order::Closed {
                        return sent;
                    }
                }
                let head = Head { number: None, time: Some((begin, end)), ..Head::default() };
                sender.commit(&head, payload.len()).unwrap();
                sent.push((begin, end, payload));
            }
            if ends == Ends::Dies {
                sender.flush().unwrap();
                return sent;
            }
            sender.end().unwrap();
            sender.flush().unwrap();
            while sender.wait(Duration::from_secs(60)).is_ok_and(|order| order != Order::Closed) {}
            sent
        })
    }
}

/// Each source has chunks of a length of its own; a tenth of each is in the next one, too. Some are longer than a slice.
fn chunk(place: usize, number: u64) -> Chunk {
    let length = 150_000 + 170_000 * place as u64;
    let begin = number * (length - length / 10) + place as u64 * 1000;
    let len = 30 + (number as usize * 7 + place) % 900;
    let payload = (0..len).map(|at| (at as u64 * 31 + number * 131 + place as u64) as u8).collect();
    (begin, begin + length, payload)
}

/// What slices these are made of.
fn expected(sent: &[Vec<Chunk>], slices: impl Iterator<Item = u64>) -> Slices {
    let of = |slice: u64| {
        let (begin, end) = ((slice * LENGTH).saturating_sub(BEFORE), (slice + 1) * LENGTH + AFTER);
        let meets = |chunk: &&Chunk| chunk.0 < end && begin < chunk.1;
        let of_source = |chunks: &Vec<Chunk>| chunks.iter().filter(meets).cloned().collect::<Vec<_>>();
        (FIRST_ID..).zip(sent).map(|(id, chunks)| (id, of_source(chunks))).collect()
    };
    slices.map(|slice| (slice, of(slice))).collect()
}

fn last_slice(sent: &[Vec<Chunk>]) -> u64 {
    sent.iter().flatten().map(|(begin, _, _)| begin / LENGTH).max().unwrap()
}

/// What the files hold, without fragments that are marked as lost.
fn in_files(output: &Path) -> Slices {
    let mut found = Slices::new();
    for file in recorded(output) {
        each_event(&file, |bytes| {
            let event = Event::parse(bytes).unwrap();
            let payload = event.unpacked_payload(64 << 20).unwrap();
            let slice = event.global_id();
            let of_slice = found.entry(slice).or_default();
            for rob in event.robs(&payload) {
                let rob = rob.unwrap();
                let rod = rob.rod().unwrap();
                let Some((head, chunks)) = ChunkHead::all_in(rod.data()) else { continue };
                let begin = (slice * LENGTH).saturating_sub(BEFORE);
                let chunks: Vec<Chunk> =
                    chunks.into_iter().map(|(chunk, payload)| (chunk.begin, chunk.end, payload.to_vec())).collect();
                let EventHead { begin: from, end, chunks: count, .. } = head;
                assert_eq!((from, end, count as usize), (begin, (slice + 1) * LENGTH + AFTER, chunks.len()));
                of_slice.insert(rob.source_id().0, chunks);
            }
        });
    }
    found
}

fn links(summary: &Summary) -> &Vec<serde_json::Value> {
    summary.0["links"].as_array().unwrap()
}

/// All that became of the chunks of a source.
fn books(link: &serde_json::Value) -> u64 {
    ["kept", "never_triggered", "late", "unplaced"].iter().map(|key| link[key].as_u64().unwrap()).sum()
}

pub(crate) const SOURCES: usize = 8;
pub(crate) const CHUNKS: u64 = 300;
pub(crate) const LENGTH: u64 = 1_000_000;
pub(crate) const BEFORE: u64 = 100_000;
pub(crate) const AFTER: u64 = 50_000;
pub(crate) const FIRST_ID: u32 = 0x0051_0000;
