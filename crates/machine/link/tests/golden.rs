//! The bytes of version 1. Programs at detectors are built with them: they do not change.

use link::wire::{Greeting, MemorySizes, Prover, RecordHead, Welcome, record, refusal};
use link::{Flags, Head, Kind, Secret};

const FRAGMENT: &str =
    "09000000 20 17 0300 8877665544332211 0100000000000000 0200000000000000 0900000000000000 839206e3 07000000";
const END: &str =
    "00000000 23 00 0000 0000000000000000 0000000000000000 0000000000000000 2a00000000000000 00000000 07000000";
const NO_REST: &str = "0000000000000000 0000000000000000 0000000000000000 0000000000000000 00000000";

#[test]
fn a_fragment() {
    let head = Head {
        number: Some(0x1122_3344_5566_7788),
        time: Some((1, 2)),
        trigger_type: 3,
        flags: Flags::CRC | Flags::CUT,
    };
    let record = RecordHead::of_fragment(&head, 9, 9, 7, || 0xe306_9283);
    assert_eq!(record.encode()[..], bytes(FRAGMENT));
    assert_eq!(RecordHead::decode(&record.encode()), Ok(record));
    let flags = Flags::CRC | Flags::CUT | Flags::NUMBER | Flags::TIME;
    assert_eq!(record.fragment(), Head { flags, ..head });
}

#[test]
fn a_fragment_of_which_little_is_known() {
    let record = RecordHead::of_fragment(&Head::default(), 0, 0, 1, || unreachable!("nobody asked for a checksum"));
    assert_eq!(record.encode()[..], bytes(&format!("00000000 20 00 0000 {NO_REST} 01000000")));
}

#[test]
fn the_end_of_a_run() {
    let record = RecordHead { sequence: 42, run: 7, ..RecordHead::plain(Kind::End, 0) };
    assert_eq!(record.encode()[..], bytes(END));
}

#[test]
fn what_is_said_before() {
    let greeting = Greeting { version: 1, id: Some(0x51_0000), nonce: [0xab; 32], name: "tlu".into() };
    let nonce = "ab".repeat(32);
    let expected = format!("2f000000 01 00 0000 {NO_REST} 00000000 01000000 01000000 00005100 {nonce} 746c75");
    assert_eq!(greeting.encode(), bytes(&expected));
    assert_eq!(Greeting::decode(&greeting.encode()[48..]), Ok(greeting));
    let memory = MemorySizes { page_len: 0x1_0080, pages: 4096, headroom: 92, ring: 2048 };
    let welcome = Welcome { proof: Some([0xcd; 32]), size_max: 0x1_0000, memory: Some(memory), run: 7 };
    let sizes = "01000000 00000100 80000100 00100000 5c000000 00080000";
    let expected = format!("38000000 04 00 0000 {NO_REST} 07000000 {sizes} {}", "cd".repeat(32));
    assert_eq!(welcome.encode(), bytes(&expected));
    let head = RecordHead::decode(welcome.encode().first_chunk().unwrap()).unwrap();
    assert_eq!(Welcome::decode(&head, &welcome.encode()[48..]), Ok(welcome));
    assert_eq!(record(Kind::Challenge, 0, &[1, 2]), bytes(&format!("02000000 02 00 0000 {NO_REST} 00000000 0102")));
    assert_eq!(refusal("no", true), bytes(&format!("02000000 05 00 0100 {NO_REST} 00000000 6e6f")));
}

/// By another implementation of BLAKE3.
#[test]
fn proofs_of_both_ends() {
    let greeting = Greeting { version: 1, id: Some(0x51_0000), nonce: [0xab; 32], name: "tlu".into() }.encode();
    for (prover, proof) in [
        (Prover::Source, "826c47b621c50db10ce4d1f9790b745e76198bebb05ead77b6d2d1bdab42d80d"),
        (Prover::Intake, "a0cf7fd144046c593e9cdef56065ed1ff58d42445c3269ef8648f9b6cc42a5f3"),
    ] {
        assert_eq!(Secret::new("key").proof(prover, &greeting, &[0xcd; 32])[..], bytes(proof), "{prover:?}");
    }
}

#[test]
fn each_kind_has_its_number() {
    let kinds = [
        (Kind::Greeting, 1),
        (Kind::Challenge, 2),
        (Kind::Proof, 3),
        (Kind::Welcome, 4),
        (Kind::Refused, 5),
        (Kind::Start, 16),
        (Kind::Stop, 17),
        (Kind::Xoff, 18),
        (Kind::Xon, 19),
        (Kind::Ask, 20),
        (Kind::Single, 21),
        (Kind::Fragment, 32),
        (Kind::Idle, 33),
        (Kind::Status, 34),
        (Kind::End, 35),
        (Kind::Here, 36),
    ];
    let mut known = 0;
    for byte in 0..=u8::MAX {
        let head = bytes(&format!("00000000 {byte:02x} 00 0000 {NO_REST} 00000000"));
        let decoded = RecordHead::decode(head.first_chunk().unwrap());
        let expected = kinds.iter().find(|(_, number)| *number == byte);
        known += usize::from(decoded.is_ok());
        assert_eq!(decoded.ok().map(|head| head.kind), expected.map(|(kind, _)| *kind), "{byte}");
    }
    assert_eq!(known, kinds.len());
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u32> = hexadecimal.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}
