//! Texts about files that people read. `UPDATE_GOLDEN=1` writes them anew.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::{Directory, config};
use eformat::stream_tag::{Entry, StreamTag, encode};
use eformat::*;
use storage::*;

/// An event with everything that an event may have.
fn event(id: u32, data: &[u32]) -> Vec<u8> {
    let (bcid, trigger_type) = (Bcid::new(99).unwrap(), 0x84);
    let source_id = SourceId(0x42_0002);
    let rod = RodHeader { source_id, run_number: 7, lvl1_id: id, bcid, trigger_type, ..Default::default() };
    let params = RobParams { rod, ..Default::default() };
    let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut rob = vec![0; params.rob_bytes(bytes.len())];
    rob[ROB_PREFIX_BYTES..ROB_PREFIX_BYTES + bytes.len()].copy_from_slice(&bytes);
    write_rob_fragment(&mut rob, &params, bytes.len());
    let tags = [
        Entry::Tag(StreamTag::new("physics", "Main", true).unwrap()),
        Entry::Foreign(b"of \"another\" writer".to_vec()),
    ];
    let header = EventHeader {
        global_id: id.into(),
        lvl1_id: id,
        run_number: 7,
        lumi_block: 3,
        seconds: 1_180_000_000,
        nanoseconds: 5,
        bcid,
        trigger_type,
        lvl1_info: vec![1, 0xabcd],
        hlt_info: vec![7],
        stream_tags: encode(&tags),
        ..Default::default()
    };
    let mut out = Vec::new();
    event_envelope(&header, [rob.as_slice(), &lost_rob(&params)], false, &mut out);
    [out, rob, lost_rob(&params).to_vec()].concat()
}

fn file(directory: &Directory) -> Vec<u8> {
    let stamp = Stamp { date: Date::new(5, 6, 2007).unwrap(), time: Time::new(8, 9, 10).unwrap() };
    let config = WriterConfig {
        lumi_block: 3,
        metadata: vec!["Shift=night".to_owned()],
        clock: Arc::new(move || stamp),
        guids: Arc::new(|| Guid::from_bytes([7; 16])),
        ..config(directory)
    };
    let mut writer = Writer::new(config).unwrap();
    for (id, words) in [(1, 0), (2, 1), (3, 17), (4, 2), (5, 2), (6, 2)] {
        writer.write_event(&[&event(id, &(0..words).map(|word| id << 24 | word).collect::<Vec<_>>())]).unwrap();
    }
    fs::read(&writer.finish().unwrap()[0].path).unwrap()
}

/// The header of the fourth event is damaged, the second ROB of the fifth, and the ROD of the first one of the sixth.
fn damaged(directory: &Directory) -> Vec<u8> {
    let mut file = file(directory);
    let at: Vec<usize> = file_events(&file).unwrap().map(|event| event.unwrap().offset as usize).collect();
    file[at[3] + 8] ^= 1;
    let robs = |block: usize| {
        let bytes = &file[block..];
        let words = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let first = block + words(8) * 4;
        (first, first + u32::from_le_bytes(file[first + 4..first + 8].try_into().unwrap()) as usize * 4)
    };
    let (of_fifth, of_sixth) = (robs(at[4]).1, robs(at[5]).0);
    file[of_fifth] ^= 1;
    file[of_sixth + ROB_PREFIX_BYTES - 36] ^= 1;
    file
}

/// All items, one behind the other.
fn told(path: &Path, options: DumpOptions) -> String {
    dump(path, options).unwrap().map(|item| item.unwrap().to_string() + "\n").collect()
}

fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&path).unwrap());
}

#[test]
fn what_is_told_of_a_file_stays_the_same() {
    let directory = Directory::new();
    let path = directory.file("a.data", &damaged(&directory));
    assert_golden("dump.txt", &told(&path, DumpOptions { data: true, ..DumpOptions::default() }));
    let listing = ls(&path).unwrap().to_string();
    let bytes = fs::metadata(&path).unwrap().len();
    let shown = path.display();
    assert_eq!(
        listing,
        format!("{shown}  v6  run 7  physics_Main  SFO-1  2007-06-05 08:09:10  6 events  {bytes} bytes")
    );
    let torn = directory.file("b.data", &fs::read(&path).unwrap()[..bytes as usize - 1]);
    assert!(ls(&torn).unwrap().to_string().ends_with(&format!("  not closed  {} bytes", bytes - 1)));
}

#[test]
fn as_much_is_told_as_was_asked_for() {
    let directory = Directory::new();
    let path = directory.file("a.data", &file(&directory));
    let lines = |skip, events_max, robs, data| told(&path, DumpOptions { skip, events_max, robs, data });
    let all = lines(0, u64::MAX, true, false);
    assert_eq!(all, told(&path, DumpOptions::default()));
    let counts =
        |text: &str| ["file start: ", " at byte ", "ROB ", "file end: "].map(|kind| text.matches(kind).count());
    assert_eq!(counts(&all), [1, 6, 12, 1]);
    assert_eq!(counts(&lines(0, u64::MAX, false, true)), [1, 6, 0, 1]);
    assert_eq!(counts(&lines(2, 3, true, false)), [1, 3, 6, 0], "the end was not reached");
    assert_eq!(counts(&lines(2, 4, true, false)), [1, 4, 8, 0]);
    assert_eq!(counts(&lines(2, 5, true, false)), [1, 4, 8, 1]);
    assert_eq!(counts(&lines(0, 0, true, false)), [1, 0, 0, 0]);
    assert_eq!(counts(&lines(6, u64::MAX, true, false)), [1, 0, 0, 1]);
    assert!(lines(2, 1, true, false).contains("\nevent 3 at byte "));
    assert_eq!(lines(2, 1, true, true).lines().filter(|line| line.starts_with("    ")).count(), 3, "17 words");
}

#[test]
fn what_was_recovered_is_told_in_one_line_for_each_damage() {
    let directory = Directory::new();
    let path = directory.file("a.data", &damaged(&directory));
    let text = recover(&path, None).unwrap().to_string();
    let text = text.replace(&format!("{}/", directory.path().display()), "");
    assert_golden("recovered.txt", &(text + "\n"));
}
