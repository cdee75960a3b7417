//! The inputs that a fuzzer found, and the seeds that it begins with, replayed on stable Rust.

use std::fs;
use std::path::PathBuf;

use link::slink::{BEGIN, END, GREETING, Words};
use link::wire::{Greeting, RecordHead, Welcome, record, refusal};
use link::{Flags, Head, Kind};

#[test]
fn whatever_comes_is_understood_or_refused() {
    replay("link", &seeds(), link::wire::check_any_stream);
}

#[test]
fn whatever_a_board_sends_is_taken_apart_or_counted() {
    replay("frames", &frames(), link::wire::check_any_datagram);
}

#[test]
fn whatever_an_s_link_sends_is_parted_alike_in_pieces_of_any_length() {
    replay("slink", &words(), link::wire::check_any_words);
}

fn replay(corpus: &str, seeds: &[(&str, Vec<u8>)], check: impl Fn(&[u8])) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(corpus);
    if std::env::var_os("UPDATE_CORPUS").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
    let entries: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(entries.len() >= seeds.len(), "the corpus lies in {}", folder.display());
    for entry in entries {
        check(&fs::read(entry).unwrap());
    }
}

/// A description in eight bytes, then a datagram: see `check_any_datagram`.
fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let said = |counts: &[u8]| -> Vec<u8> {
        let frames = counts.iter().flat_map(|count| [&[6, *count][..], &[0xa5; 6]].concat());
        [&[0b1100, 2, 0, 0, 1, 0, 9, 2][..], &frames.collect::<Vec<_>>()].concat()
    };
    vec![
        ("in_order", said(&[7, 8, 0, 1])),
        ("turned_round", said(&[0, 2, 1, 1, 5, 3])),
        ("lying_length", [&said(&[0])[..], &[0xff, 1, 2]].concat()),
        ("fixed", [&[0b10, 4, 0, 0, 0, 3, 0, 5][..], &[0, 0, 0, 1, 9, 0, 0, 0, 2, 9, 0, 0]].concat()),
        ("whole", [&[0x80, 4, 0, 0, 0, 7, 0, 0][..], &[0xff; 12]].concat()),
        ("nothing", Vec::new()),
    ]
}

/// A greeting, then groups of words.
fn words() -> Vec<(&'static str, Vec<u8>)> {
    let sent = |add: &dyn Fn(&mut Words)| {
        let mut words = Words::default();
        add(&mut words);
        [&GREETING[..], &words.bytes].concat()
    };
    let block = |words: &mut Words, len: usize, errors: u32| {
        words.control(BEGIN, 0);
        words.data(&vec![0xa5; len], false);
        words.control(END, errors);
    };
    let well = sent(&|words| (0..3).for_each(|count| block(words, 4 * count, 0)));
    let cut = well[..well.len() - 3].to_vec();
    vec![
        ("well", well),
        ("cut", cut),
        ("too_long", sent(&|words| block(words, 400, 0))),
        ("errors", sent(&|words| (0..4).for_each(|errors| block(words, 8, errors)))),
        ("no_begin", sent(&|words| words.data(&[1; 12], true))),
        ("no_end", sent(&|words| (0..2).for_each(|_| words.control(BEGIN, 0)))),
        ("lying_head", [&GREETING[..], &[0xff; 12]].concat()),
        ("no_greeting", b"S-LINK\0\x02".to_vec()),
    ]
}

/// Conversations of each end, and what is almost one.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let greeting = Greeting { version: 1, id: Some(1), nonce: [7; 32], name: "tlu".into() }.encode();
    let welcome = Welcome { proof: None, size_max: 100, memory: None, run: 3 }.encode();
    let head = Head { number: Some(5), time: Some((6, 7)), trigger_type: 8, flags: Flags::CRC };
    let fragment = [&RecordHead::of_fragment(&head, 3, 0, 3, || 9).encode()[..], b"abc"].concat();
    let status = record(Kind::Status, 3, "läuft".as_bytes());
    let end = RecordHead { sequence: 1, run: 3, ..RecordHead::plain(Kind::End, 0) }.encode();
    let source = [&greeting[..], &record(Kind::Proof, 0, &[1; 32]), &fragment, &status, &end].concat();
    let orders = [Kind::Start, Kind::Xoff, Kind::Xon, Kind::Stop].map(|kind| record(kind, 3, &[])).concat();
    let intake = [&record(Kind::Challenge, 0, &[2; 32])[..], &welcome, &orders, &refusal("no more", false)].concat();
    let too_long = RecordHead::plain(Kind::Status, u32::MAX).encode().to_vec();
    let not_text = record(Kind::Status, 0, &[0xff, 0xfe]);
    let cut = source[..source.len() - 20].to_vec();
    vec![
        ("source", source),
        ("intake", intake),
        ("too_long", too_long),
        ("not_text", not_text),
        ("cut", cut),
        ("nothing", Vec::new()),
    ]
}
