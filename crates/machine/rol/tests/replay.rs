//! Recorded events taken apart, sent over links of several read-out systems, and put together again.

#[path = "../examples/make_replay_data.rs"]
#[allow(dead_code, unreachable_pub)]
mod make_replay_data;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::bulk::PageSlice;
use base::ids::EventId;
use dataflow::level1::trigger::TriggerSource;
use dataflow::message::{EventInfo, Roi};
use eformat::replay::TemplateError;
use eformat::{
    CheckOptions, Event, EventFormat, FileVersion, GenericStatus, Rob, SourceId, advance_ids, check_event, file_events,
};
use rol::{
    AssembleError, LinkParameters, Links, LinksError, RECORD_SOURCE_ID, ReadOutError, Replay, ReplayError,
    ReplayTriggers, Sample, assemble, deal,
};
use testkit::{TempDir, shared};

const PAGE_BYTES: usize = 64 << 10;

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/data/replay.data")
}

fn info(ordinal: u64) -> EventInfo {
    EventInfo { event: EventId(500 + ordinal), ordinal, ..EventInfo::default() }
}

/// The links of a number of read-out systems over the same files.
fn systems(replay: &Arc<Replay>, ros_count: usize, repeat: bool) -> Vec<Links> {
    let links = |source_ids: Vec<u32>| {
        let pages = source_ids.len();
        let parameters =
            LinkParameters { source_ids, pages, page_bytes: PAGE_BYTES, adler32: true, ..LinkParameters::default() };
        Links::replay(parameters, Arc::clone(replay), repeat).unwrap()
    };
    deal(replay.source_ids(), ros_count).into_iter().map(links).collect()
}

fn fragments(systems: &mut [Links], ordinal: u64) -> Vec<PageSlice> {
    let mut fragments = Vec::new();
    for links in systems {
        links
            .read_out(&info(ordinal), &mut |_, head, bulk| {
                assert_eq!((head.event, head.len_bytes as usize), (EventId(500 + ordinal), bulk.len()));
                let [slice] = bulk.slices() else { panic!("a fragment is one slice") };
                let rob = Rob::parse(EventFormat::V5, slice.as_bytes()).unwrap();
                assert_eq!((rob.status().0, rob.fragment().verify_checksum()), (head.status, Ok(())));
                fragments.push(slice.clone());
            })
            .unwrap();
    }
    fragments
}

fn joined(slices: &[PageSlice]) -> Vec<u8> {
    slices.iter().flat_map(|slice| slice.as_bytes().iter().copied()).collect()
}

fn events_of(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    file_events(&bytes).unwrap().map(|event| event.unwrap().block.to_vec()).collect()
}

fn check_round_trip(path: &Path, ros_count: usize) -> Arc<Replay> {
    let events = events_of(path);
    let replay = Arc::new(Replay::open(&[path]).unwrap());
    assert_eq!(replay.events(), events.len());
    let mut systems = systems(&replay, ros_count, false);
    for (ordinal, event) in events.iter().enumerate() {
        let mut fragments = fragments(&mut systems, ordinal as u64);
        fragments.rotate_left(ordinal % replay.source_ids().len());
        let assembled = assemble(&fragments).unwrap();
        assert!(joined(&assembled) == *event, "event {ordinal} of {}", path.display());
        // The same from replies that hold several fragments each.
        let (front, back) = fragments.split_at(fragments.len() / 2);
        let replies = [front, back].map(|part| PageSlice::from(joined(part)));
        assert!(joined(&assemble(&replies).unwrap()) == *event);
    }
    replay
}

#[test]
fn a_besiii_file_comes_out_as_it_went_in() {
    let test = "a_besiii_file_comes_out_as_it_went_in";
    let Some(path) = shared(test, "rawdata/bes3_run0091668_SFO-1_10events.raw") else {
        return;
    };
    let replay = check_round_trip(&path, 4);
    assert_eq!((replay.events(), replay.source_ids().len()), (10, 43));
    assert_eq!(replay.source_ids().last(), Some(&RECORD_SOURCE_ID));
    let facts = replay.facts();
    assert_eq!((facts.version, facts.run.run_number), (FileVersion::V2, 91668));
    assert_eq!((facts.names.application.as_str(), facts.metadata.is_none()), ("SFO-1", true));
    let bytes = fs::read(&path).unwrap();
    let first = file_events(&bytes).unwrap().next().unwrap().unwrap();
    assert_eq!(facts.first_block_number, first.separator.block_number);
}

#[test]
fn files_of_other_programs_come_out_as_they_went_in() {
    let Some(vectors) = shared("files_of_other_programs_come_out_as_they_went_in", "format/vectors") else {
        return;
    };
    for name in ["v5_sfo1.data", "v6_adler.data", "v6_plain.data", "v6_zlib.data", "v6_zlib_adler.data"] {
        check_round_trip(&vectors.join(name), 1);
    }
}

#[test]
fn a_file_with_compressed_blocks_is_replayed_unpacked() {
    let Some(path) = shared("a_file_with_compressed_blocks_is_replayed_unpacked", "format/vectors/v5_sfo2.data") else {
        return;
    };
    let replay = Arc::new(Replay::open(&[&path]).unwrap());
    let mut reader = storage::FileReader::open(&path).unwrap();
    assert!(reader.header().blocks_are_compressed());
    let mut systems = systems(&replay, 2, false);
    for ordinal in 0..replay.events() {
        let assembled = assemble(&fragments(&mut systems, ordinal as u64)).unwrap();
        assert_eq!(joined(&assembled), reader.next_event().unwrap().unwrap().bytes);
    }
}

#[test]
fn bad_files_of_other_programs_are_errors_or_travel_as_they_are() {
    let test = "bad_files_of_other_programs_are_errors_or_travel_as_they_are";
    let Some(vectors) = shared(test, "format/vectors") else {
        return;
    };
    assert!(matches!(Replay::open(&[vectors.join("bad_trunc.data")]), Err(ReplayError::Read(_))));
    assert!(matches!(Replay::open(&[vectors.join("bad_robmarker.data")]), Err(ReplayError::Event { .. })));
    check_round_trip(&vectors.join("bad_robbit.data"), 2);
}

#[test]
fn the_shipped_file_is_what_the_program_makes() {
    let sample = shipped().with_file_name("zee_mu0.parquet");
    assert!(make_replay_data::replay_data(&sample).unwrap() == fs::read(shipped()).unwrap());
    let report = storage::check(&shipped(), &storage::CheckLimits::default()).unwrap();
    assert!(report.is_good(), "{report:?}");
}

#[test]
fn the_shipped_file_comes_out_as_it_went_in() {
    let replay = check_round_trip(&shipped(), 4);
    assert_eq!((replay.facts().version, replay.facts().first_block_number), (FileVersion::V6, 1));
}

#[test]
fn a_source_that_an_event_lacks_sends_an_empty_fragment() {
    let replay = Arc::new(Replay::open(&[shipped()]).unwrap());
    let mut systems = systems(&replay, 4, false);
    let fragments = fragments(&mut systems, 0);
    assert_eq!(fragments.len(), replay.source_ids().len(), "every link sends");
    let robs = fragments.iter().map(|slice| Rob::parse(EventFormat::V5, slice.as_bytes()).unwrap());
    let (dummies, real): (Vec<_>, Vec<_>) = robs.partition(|rob| rob.status().generic().contains(GenericStatus::DUMMY));
    assert!(dummies.iter().all(|rob| rob.rod().unwrap().data().is_empty()));
    let event = &events_of(&shipped())[0];
    let view = Event::parse(event).unwrap();
    assert_eq!(real.len(), view.robs(view.fragment().payload()).count() + 1, "its RODs and the record");
}

#[test]
fn triggers_are_those_of_the_recorded_headers() {
    let replay = Arc::new(Replay::open(&[shipped()]).unwrap());
    let events = events_of(&shipped());
    let mut once = ReplayTriggers::new(Arc::clone(&replay), false);
    let mut round = ReplayTriggers::new(Arc::clone(&replay), true);
    for (ordinal, event) in events.iter().enumerate() {
        let (trigger, view) = (once.trigger(ordinal as u64).unwrap(), Event::parse(event).unwrap());
        assert_eq!((u32::from(trigger.bcid), u32::from(trigger.trigger_type)), (view.bcid(), view.trigger_type()));
        assert_eq!(round.trigger((ordinal + events.len() * 3) as u64), Some(trigger));
    }
    assert_eq!(once.trigger(events.len() as u64), None);
}

#[test]
fn links_end_or_repeat_with_fresh_ids() {
    let replay = Arc::new(Replay::open(&[shipped(), shipped()]).unwrap());
    let events = events_of(&shipped());
    assert_eq!(replay.events(), 2 * events.len());
    let ordinal = (5 * events.len() + 3) as u64;
    let behind = systems(&replay, 1, false)[0].read_out(&info(ordinal), &mut |_, _, _| panic!("nothing"));
    assert!(matches!(behind, Err(ReadOutError::BehindEnd { .. })), "{behind:?}");
    let fragments = fragments(&mut systems(&replay, 1, true), ordinal);
    let ids = |event: &[u8]| Event::parse(event).map(|event| (event.global_id(), event.lvl1_id())).unwrap();
    let global = events.iter().map(|event| ids(event).0);
    let reach = global.clone().max().unwrap() - global.min().unwrap() + 1;
    let mut third_time = joined(&assemble(&fragments).unwrap());
    let ((global, lvl1), was) = (ids(&third_time), ids(&events[3]));
    assert_eq!((global, lvl1 - was.1), (was.0 + 2 * reach, 2 * reach as u32));
    let mut problems = Vec::new();
    check_event(&third_time, &CheckOptions::default(), &mut problems);
    assert!(problems.is_empty(), "{problems:?}");
    advance_ids(&mut third_time, was.0.wrapping_sub(global), was.1.wrapping_sub(lvl1)).unwrap();
    assert!(third_time == events[3]);
}

#[test]
fn compressed_events_are_not_sent_again() {
    let Some(vectors) = shared("compressed_events_are_not_sent_again", "format/vectors") else { return };
    let can_repeat = |name: &str| Replay::open(&[vectors.join(name)]).unwrap().can_repeat();
    assert!(matches!(can_repeat("v6_zlib.data"), Err(ReplayError::Compressed { .. })));
    assert!(can_repeat("v6_adler.data").is_ok() && can_repeat("v5_sfo2.data").is_ok());
}

#[test]
fn an_event_without_all_its_fragments_is_not_assembled() {
    let replay = Arc::new(Replay::open(&[shipped()]).unwrap());
    let all = fragments(&mut systems(&replay, 4, false), 0);
    let rob = |slice: &PageSlice| Rob::parse(EventFormat::V5, slice.as_bytes()).unwrap().source_id().0;
    let mut without_record = all.clone();
    assert_eq!(rob(&without_record.pop().unwrap()), RECORD_SOURCE_ID);
    assert_eq!(assemble(&without_record), Err(AssembleError::NoRecord));

    let real = all.iter().position(|slice| Rob::parse(EventFormat::V5, slice.as_bytes()).unwrap().status().is_good());
    let real = real.unwrap();
    let mut one_missing = all.clone();
    let source_id = SourceId(rob(&one_missing.remove(real)));
    let missing = AssembleError::Record(TemplateError::RodMissing { source_id, occurrence: 0 });
    assert_eq!(assemble(&one_missing), Err(missing.clone()));

    let mut one_lost = all.clone();
    let lost = eformat::lost_rob(&eformat::RobParams {
        rod: eformat::RodHeader { source_id, ..eformat::RodHeader::default() },
        ..eformat::RobParams::default()
    });
    one_lost[real] = PageSlice::from(lost.to_vec());
    assert_eq!(assemble(&one_lost), Err(missing));

    let mut garbage = all;
    garbage[real] = PageSlice::from(vec![0x11; 90]);
    assert!(matches!(assemble(&garbage), Err(AssembleError::Fragment { slice, .. }) if slice == real));
}

/// A copy of the shipped file in which the source identifier of one ROB of event 0 is another one.
fn with_source(directory: &TempDir, index: usize, source_id: impl Fn(&[u32]) -> u32) -> PathBuf {
    let mut bytes = fs::read(shipped()).unwrap();
    let first = file_events(&bytes).unwrap().next().unwrap().unwrap();
    let view = Event::parse(first.block).unwrap();
    let payload_start = first.offset as usize + view.fragment().payload_range().start;
    let robs: Vec<(u32, usize)> = view
        .robs(view.fragment().payload())
        .map(Result::unwrap)
        .map(|rob| (rob.source_id().0, payload_start + rob.offset()))
        .collect();
    let ids: Vec<u32> = robs.iter().map(|(id, _)| *id).collect();
    let at = robs[index].1 + 16;
    bytes[at..at + 4].copy_from_slice(&source_id(&ids).to_le_bytes());
    let path = directory.join("changed.data");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn two_robs_of_one_source_are_two_links() {
    let directory = TempDir::new("rol-occurrence");
    let path = with_source(&directory, 1, |ids| ids[0]);
    let first = Event::parse(&events_of(&path)[0])
        .map(|event| event.robs(event.fragment().payload()).next().unwrap().unwrap().source_id().0)
        .unwrap();
    let replay = check_round_trip(&path, 3);
    assert!(replay.source_ids().contains(&(first | 1 << 24)));
    assert_eq!(replay.source_ids().last(), Some(&RECORD_SOURCE_ID), "behind even that one");
}

#[test]
fn sources_with_a_meaning_of_ours_are_refused() {
    let directory = TempDir::new("rol-source");
    for bad in [RECORD_SOURCE_ID, 0x0121_0000] {
        let path = with_source(&directory, 2, |_| bad);
        let error = Replay::open(&[&path]).unwrap_err();
        assert!(matches!(&error, ReplayError::Source { source_id, .. } if source_id.0 == bad), "{error}");
    }
}

#[test]
fn a_file_that_changes_under_way_is_an_error() {
    let directory = TempDir::new("rol-changed");
    let path = directory.join("file.data");
    fs::copy(shipped(), &path).unwrap();
    let replay = Arc::new(Replay::open(&[&path]).unwrap());
    let mut systems = systems(&replay, 1, false);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(100_000).unwrap();
    let cut = systems[0].read_out(&info(30), &mut |_, _, _| panic!("nothing may be delivered"));
    assert!(matches!(cut, Err(ReadOutError::Replay(ReplayError::Io { .. }))), "{cut:?}");
    file.set_len(0).unwrap();
    file.set_len(300_000).unwrap();
    let zeros = systems[0].read_out(&info(0), &mut |_, _, _| panic!("nothing may be delivered"));
    assert!(matches!(zeros, Err(ReadOutError::Replay(ReplayError::Event { .. }))), "{zeros:?}");
}

#[test]
fn pages_must_hold_the_longest_fragment() {
    let replay = Arc::new(Replay::open(&[shipped()]).unwrap());
    let source_ids = replay.source_ids().to_vec();
    let parameters = LinkParameters { source_ids, page_bytes: 512, ..LinkParameters::default() };
    let error = Links::replay(parameters.clone(), Arc::clone(&replay), false).err();
    let Some(LinksError::PageTooShort { needed_bytes, .. }) = error else { panic!("{error:?}") };
    Links::replay(LinkParameters { page_bytes: needed_bytes, ..parameters.clone() }, Arc::clone(&replay), false)
        .unwrap();
    let shorter = LinkParameters { page_bytes: needed_bytes - 1, ..parameters };
    assert!(Links::replay(shorter, replay, false).is_err());
}

#[test]
fn files_that_are_not_recorded_events_are_errors() {
    let directory = TempDir::new("rol-replay");
    let bad = directory.join("bad.data");
    let whole = fs::read(shipped()).unwrap();
    for length in [0, 3, 50, 1000, whole.len() / 2, whole.len() - 40, whole.len() - 1] {
        fs::write(&bad, &whole[..length]).unwrap();
        let error = Replay::open(&[&bad]).unwrap_err();
        assert!(error.to_string().contains("bad.data"), "{length} bytes: {error}");
    }
    fs::write(&bad, [0x5a; 5000]).unwrap();
    assert!(matches!(Replay::open(&[&bad]), Err(ReplayError::Read(_))));
    assert!(matches!(Replay::open(&[directory.join("absent")]), Err(ReplayError::Read(_))));
    assert!(matches!(Replay::open(&[] as &[&Path]), Err(ReplayError::NoEvents { .. })));
    for at in (0..whole.len()).step_by(1999) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x81;
        fs::write(&bad, &damaged).unwrap();
        if let Err(error) = Replay::open(&[&bad]) {
            assert!(error.to_string().contains("bad.data"), "byte {at}: {error}");
        }
    }
}

#[test]
fn what_to_do_about_a_torn_file_is_said() {
    let directory = TempDir::new("torn");
    let (torn, none) = (directory.join("torn.data"), directory.join("none.data"));
    let whole = fs::read(shipped()).unwrap();
    fs::write(&torn, &whole[..whole.len() / 2]).unwrap();
    let said = Replay::open(&[&torn]).unwrap_err().to_string();
    assert!(said.ends_with("torn.data` makes a file of what is whole in it"), "{said}");
    assert!(said.contains("; `weir file recover /"), "{said}");
    fs::write(&none, "partition.name = 1").unwrap();
    let said = Replay::open(&[&none]).unwrap_err().to_string();
    assert!(!said.contains("recover"), "there is nothing to recover: {said}");
}

#[test]
fn files_of_different_versions_are_refused() {
    let test = "files_of_different_versions_are_refused";
    let Some(path) = shared(test, "rawdata/bes3_run0091668_SFO-1_10events.raw") else {
        return;
    };
    let error = Replay::open(&[path, shipped()]).unwrap_err();
    assert!(matches!(error, ReplayError::Version { found: FileVersion::V6, expected: FileVersion::V2, .. }), "{error}");
}

/// The shipped file was made of the first events of the shipped sample. Level 1's own fragments tell of regions of interest
/// by their tower numbers.
#[test]
fn regions_of_interest_are_those_of_the_fragments_of_level_1() {
    let sample = Sample::load(&[shipped().with_file_name("zee_mu0.parquet")]).unwrap();
    let replay = Replay::open(&[shipped()]).unwrap();
    for event in 0..replay.events() {
        let (found, expected) = (replay.trigger(event), sample.trigger(event));
        assert_eq!((found.items, found.rois.len()), (expected.items, expected.rois.len()));
        for (found, expected) in found.rois.iter().zip(&expected.rois) {
            let fields = |roi: &Roi| (roi.kind, roi.ieta, roi.iphi, roi.et_mev, roi.thresholds);
            assert_eq!(fields(found), fields(expected));
            let is_placed = expected.kind <= 2;
            assert!(!is_placed || (found.eta - expected.eta).abs() < 1e-5 && (found.phi - expected.phi).abs() < 1e-5);
        }
    }
}
