//! A filter asks for windows. A reader that is not ours finds exactly what meets them in the files; all else is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use eformat::StatusWord;
use serde::Deserialize;

use crate::running::{Ended, Job};
use crate::slices::{AFTER, BEFORE, CHUNKS, Chunk, Ends, FIRST_ID, LENGTH, SOURCES, Stream};

#[test]
fn what_meets_the_windows_around_pulses_is_recorded_and_nothing_else() {
    for processes in [false, true] {
        let Some(stream) = stream("what_meets_the_windows_around_pulses") else { return };
        let job = filtered(stream.0.job(), "Pulses", &stream.1);
        let parameters = format!("{{ before = {AHEAD}, after = {BEHIND}, also = [\"s{ALSO}\"] }}");
        let running = job.set("pt.parameters", &parameters).processes(processes).start();
        let sources: Vec<_> = (0..SOURCES).map(|place| stream.0.source(place, Ends::Well)).collect();
        let (ended, summary) = running.end().expect_ok();
        let sent: Vec<Vec<Chunk>> = sources.into_iter().map(|source| source.join().unwrap()).collect();
        let mut found = read(&ended);
        let mut total = BTreeMap::new();
        let slices = summary.count("level1");
        assert!(sent.iter().all(|chunks| chunks.len() as u64 == CHUNKS));
        for slice in 0..slices {
            let expected = Expected::new(&sent, slice);
            let Some(event) = found.remove(&slice) else {
                assert!(expected.asked.is_empty(), "slice {slice} has pulses");
                continue;
            };
            expected.check(&event, slice);
            expected.add_to(&mut total);
        }
        assert!(found.is_empty(), "slices that were not issued");
        let windows = summary.0["selection"]["windows"].as_object().unwrap();
        let told: BTreeMap<&str, u64> =
            windows.iter().map(|(key, count)| (key.as_str(), count.as_u64().unwrap())).collect();
        assert_eq!(told, total);
        assert_eq!((total["events"], summary.count("recorded")), (summary.count("filter_accepted"), total["events"]));
        assert!(total.values().all(|count| *count > 10) && slices > total["events"], "{total:?} of {slices}");
    }
}

#[test]
fn windows_that_there_are_not_send_the_slice_to_the_debug_stream() {
    let Some(stream) = stream("windows_that_there_are_not") else { return };
    let running = filtered(stream.0.job(), "Wrong", &stream.1).start();
    let sources: Vec<_> = (0..SOURCES).map(|place| stream.0.source(place, Ends::Well)).collect();
    let (ended, summary) = running.end().expect_degraded(&["filter_debug"]);
    sources.into_iter().for_each(|source| drop(source.join().unwrap()));
    assert_eq!(summary.count("filter_debug"), 4);
    let words = [
        "is outside of the event, which reaches from 900000",
        "names the source 0x0000004d",
        "is outside",
        "1025 windows",
    ];
    for (slice, words) in (1..).zip(words) {
        let line = format!("event {slice} goes to the debug stream: bad answer: ");
        let told = ended.stderr.lines().find(|told| told.contains(&line)).unwrap_or_else(|| panic!("{}", ended.stderr));
        assert!(told.contains(words), "{told}");
    }
    for (slice, event) in read(&ended) {
        let is_whole = event.sources.len() == SOURCES && event.sources.values().all(|source| source.chunks.is_some());
        assert!(is_whole && !event.partial, "slice {slice}: {event:?}");
        assert_eq!(
            (event.said.is_none(), event.stream == "debug_FilterBadAnswer"),
            ((1..5).contains(&slice), (1..5).contains(&slice))
        );
    }
}

/// One that has died is marked in the file, and one that no window names has no fragment.
#[test]
fn a_source_that_is_missing_is_told_from_one_that_is_left_out() {
    let Some((stream, python)) = stream("a_source_that_is_missing_is_told_from") else { return };
    let running = filtered(stream.job(), "Two", &python).start();
    let ends = |place| if place == 3 { Ends::Dies } else { Ends::Well };
    let sources: Vec<_> = (0..SOURCES).map(|place| stream.source(place, ends(place))).collect();
    let (ended, _) = running.end().expect_degraded(&["built_incomplete"]);
    sources.into_iter().for_each(|source| drop(source.join().unwrap()));
    let lost = StatusWord::LOST.0;
    let mut missing = BTreeMap::new();
    for (slice, event) in read(&ended) {
        assert_eq!(event.sources.keys().copied().collect::<Vec<_>>(), [id(0), id(3)], "slice {slice}");
        let left_out: BTreeSet<u32> =
            event.said.expect("what was asked for").left_out.iter().map(|one| one.0).collect();
        assert_eq!(left_out, [1, 2, 4, 5, 6, 7].map(id).into(), "slice {slice}");
        let FoundSource { status, chunks } = &event.sources[&id(3)];
        assert_eq!(*status == lost, chunks.is_none(), "slice {slice}");
        *missing.entry(*status == lost).or_insert(0) += 1;
        assert!(event.sources[&id(0)].chunks.is_some(), "empty, where it has ended");
    }
    assert!(missing.values().all(|slices| *slices > 3) && missing.len() == 2, "{missing:?}");
}

/// A triggered partition: its data have no times.
#[test]
fn a_filter_keeps_two_robs_of_each_event() {
    for processes in [false, true] {
        let Some(python) = testkit::python("a_filter_keeps_two_robs_of_each_event") else { return };
        let job = filtered(Job::example("quickstart").patient().set("l2pu.step_accept", "1.0"), "Robs", &python);
        let (ended, summary) = job.processes(processes).events(400).run().expect_degraded(&["filter_debug"]);
        let found = read(&ended);
        let all: BTreeSet<u32> = found[&1].sources.keys().copied().collect();
        let of_trigger = all.iter().copied().filter(|source| source >> 20 == 7);
        let two: BTreeSet<u32> = all.iter().copied().take(2).chain(of_trigger).collect();
        assert!((4..10).contains(&two.len()) && all.len() > 20, "{all:?}");
        for (number, event) in &found {
            let sources: BTreeSet<u32> = event.sources.keys().copied().collect();
            let is_partial = number % 2 == 0 && *number != 10;
            assert_eq!((&sources, event.partial), (if is_partial { &two } else { &all }, is_partial), "event {number}");
            assert_eq!(event.said.as_ref().map_or(0, |said| said.left_out.len()), all.len() - sources.len());
        }
        assert_eq!(found[&10].stream, "debug_FilterBadAnswer");
        assert!(ended.stderr.contains("window 0 names times, but its sources have none"), "{}", ended.stderr);
        let windows = &summary.0["selection"]["windows"];
        let counts = ["events", "left_fragments", "left_chunks", "kept_chunks"].map(|key| windows[key].as_u64());
        assert_eq!(counts, [Some(199), Some(199 * (all.len() - two.len()) as u64), Some(0), Some(0)]);
    }
}

/// Sources with pulses, one of which has a clock of its own, and the interpreter of their filter.
fn stream(test: &str) -> Option<(Stream, std::path::PathBuf)> {
    let python = testkit::python(test)?;
    let more = |place| if place == SHIFTED { "chunks = 64\noffset = \"-20 us\"\n" } else { "chunks = 64\n" };
    let mut stream = Stream::new("60 s", 1024);
    (stream.chunk, stream.more) = (chunk, more);
    Some((stream, python))
}

fn filtered(job: Job, class: &str, python: &Path) -> Job {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/windows.py");
    job.set("pt.algorithm", &format!("{:?}", format!("{}:{class}", file.display())))
        .set("pt.python", &format!("{:?}", python.display().to_string()))
        .set("pt.count", "2")
        .set("pt.timeout", "\"60 s\"")
}

/// A source with a byte for each 100 ns. Here and there is a pulse; one source is silent for three slices.
fn chunk(place: usize, number: u64) -> Chunk {
    let len = 400 + 100 * place as u64;
    let pause = if place == SILENT && number > 50 { 3 * LENGTH } else { 0 };
    let begin = number * (len * BYTE_NS * 9 / 10) + place as u64 * 1000 + pause;
    let mut payload: Vec<u8> = (0..len).map(|at| 128 + ((at * 31 + number * 131 + place as u64) % 128) as u8).collect();
    if (place as u64 * 37 + number * 11).is_multiple_of(89) {
        let at = (number * 53 % (len - 5)) as usize;
        payload[at..at + 5].copy_from_slice(b"PULSE");
    }
    (begin, begin + len * BYTE_NS, payload)
}

/// What a slice has to be like.
struct Expected {
    asked: Vec<(u64, u64, Vec<u32>)>,
    /// Of each source, the chunks that are recorded; no fragment, where no window names it.
    kept: BTreeMap<u32, Option<Vec<Chunk>>>,
    left_out: Vec<(u32, u32, u32, u32)>,
}

impl Expected {
    fn new(sent: &[Vec<Chunk>], slice: u64) -> Self {
        let (begin, end) = ((slice * LENGTH).saturating_sub(BEFORE), (slice + 1) * LENGTH + AFTER);
        let shift = |place: usize| if place == SHIFTED { 20_000 } else { 0 };
        let of = |(place, chunks): (usize, &Vec<Chunk>)| {
            let meets = |chunk: &&Chunk| chunk.0.saturating_sub(shift(place)) < end && begin < chunk.1 - shift(place);
            (place, chunks.iter().filter(meets).cloned().collect())
        };
        let all: Vec<(usize, Vec<Chunk>)> = sent.iter().enumerate().map(of).collect();
        let mut asked = Vec::new();
        for (place, chunks) in &all {
            for (from, _, payload) in chunks {
                let Some(at) = payload.windows(5).position(|bytes| bytes == b"PULSE") else { continue };
                let pulse = from + at as u64 * BYTE_NS - shift(*place);
                let (first, last) = (begin.max(pulse.saturating_sub(AHEAD)), end.min(pulse + BEHIND));
                if first < last {
                    asked.push((first, last, vec![id(*place), id(ALSO)]));
                }
            }
        }
        let (mut kept, mut left_out) = (BTreeMap::new(), Vec::new());
        for (place, chunks) in all {
            let its: Vec<_> = asked.iter().filter(|(_, _, sources)| sources.contains(&id(place))).collect();
            let shift = shift(place);
            let is_kept =
                |chunk: &Chunk| its.iter().any(|(first, last, _)| chunk.0 < last + shift && first + shift < chunk.1);
            let (stay, go): (Vec<Chunk>, Vec<Chunk>) = chunks.into_iter().partition(is_kept);
            let around = if its.is_empty() { AROUND } else { 0 };
            let bytes: usize = go.iter().map(|chunk| 24 + chunk.2.len().next_multiple_of(4)).sum::<usize>() + around;
            if bytes > 0 {
                left_out.push((id(place), stay.len() as u32, go.len() as u32, bytes as u32));
            }
            kept.insert(id(place), (!its.is_empty()).then_some(stay));
        }
        Self { asked, kept, left_out }
    }

    fn check(&self, event: &Found, slice: u64) {
        let said = event.said.as_ref().expect("what was asked for");
        // Fragments are in the order in which they have come.
        assert_eq!(sorted(&said.asked), sorted(&self.asked), "slice {slice}");
        assert_eq!(sorted(&said.left_out), sorted(&self.left_out), "slice {slice}");
        assert!(event.partial && event.stream == "physics_Main", "slice {slice}: {}", event.stream);
        for (source, chunks) in &self.kept {
            let found = event.sources.get(source).map(|source| source.chunks.clone().expect("chunks"));
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let chunks = chunks.as_ref();
            let chunks =
                chunks.map(|chunks| chunks.iter().map(|(b, e, bytes)| (*b, *e, hex(bytes))).collect::<Vec<_>>());
            assert_eq!(found, chunks, "slice {slice}, source {source:#x}");
        }
        assert!(event.sources.values().all(|source| source.status == 0));
    }

    fn add_to(&self, total: &mut BTreeMap<&'static str, u64>) {
        let whole = self.kept.values().filter(|chunks| chunks.is_none()).count();
        let kept: usize = self.kept.values().flatten().map(Vec::len).sum();
        let left = |of: fn(&(u32, u32, u32, u32)) -> u32| self.left_out.iter().map(|one| u64::from(of(one))).sum();
        for (key, count) in [
            ("events", 1),
            ("kept_chunks", kept as u64),
            ("left_chunks", left(|one| one.2)),
            ("left_fragments", whole as u64),
            ("left_bytes", left(|one| one.3)),
        ] {
            *total.entry(key).or_default() += count;
        }
    }
}

/// An event, as `windows_read.py` sees it.
#[derive(Debug, Deserialize)]
struct Found {
    event: u64,
    #[serde(deserialize_with = "bit")]
    partial: bool,
    sources: BTreeMap<u32, FoundSource>,
    stream: String,
    said: Option<Said>,
}

#[derive(Debug, Deserialize)]
struct FoundSource {
    status: u32,
    chunks: Option<Vec<(u64, u64, String)>>,
}

#[derive(Debug, Deserialize)]
struct Said {
    asked: Vec<(u64, u64, Vec<u32>)>,
    left_out: Vec<(u32, u32, u32, u32)>,
}

fn bit<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(u8::deserialize(deserializer)? != 0)
}

/// The events of a run, by number. The reader needs no packages.
fn read(ended: &Ended) -> BTreeMap<u64, Found> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/windows_read.py");
    let told = Command::new("python3").arg(script).arg(ended.output()).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let found: Vec<Found> = serde_json::from_slice(&told.stdout).unwrap();
    let count = found.len();
    let found: BTreeMap<u64, Found> = found.into_iter().map(|event| (event.event, event)).collect();
    assert_eq!(found.len(), count, "an event is recorded twice");
    found
}

fn sorted<T: Clone + Ord>(all: &[T]) -> Vec<T> {
    let mut all = all.to_vec();
    all.sort();
    all
}

fn id(place: usize) -> u32 {
    FIRST_ID + place as u32
}

const BYTE_NS: u64 = 100;
const AHEAD: u64 = 60_000;
const BEHIND: u64 = 30_000;
/// A source that is recorded whenever another has a pulse.
const ALSO: usize = 6;
const SHIFTED: usize = 2;
const SILENT: usize = 5;
/// What stands around the chunks of a fragment, with its checksum.
const AROUND: usize = 68 + 24 + 16 + 4;
