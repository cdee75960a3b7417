//! Trace files: what is written is read; what is torn is read up to there; what is hostile is refused.

use proptest::prelude::*;
use stamps::block::{Block, Fault, STAMPS_PER_BLOCK};
use stamps::file::{Trace, blocks};
use stamps::recorder::Source;
use stamps::{NOWHERE, Section, Stamp, StampKind};

fn stamps() -> impl Strategy<Value = Vec<Stamp>> {
    let one = (0_u64..1 << 40, 0_usize..4, 0_u16..5, any::<u16>(), any::<u16>(), any::<Option<u64>>());
    prop::collection::vec(one, 0..300).prop_map(|drawn| {
        let mut at_ns = 0;
        let made = drawn.into_iter().map(|(later, kind, section, place, peer, event)| {
            at_ns += later;
            match [StampKind::Enter, StampKind::Leave, StampKind::Send, StampKind::Further][kind] {
                kind @ (StampKind::Enter | StampKind::Send) => {
                    Stamp { at_ns, kind, section: Section(section), place, peer, event }
                }
                kind => Stamp { at_ns, kind, section: Section(0), place: NOWHERE, peer: NOWHERE, event },
            }
        });
        made.collect()
    })
}

const HEAD: &[u8] = b"weirtrac\x01\0\0\0";

fn begin() -> Vec<Block> {
    let names = ["a", "b", "c", "d", "e"].map(|name| Block::Section(name.into()));
    let mut blocks = vec![Block::Process { pid: 300, source: Source::Clock, name: "ros-1".into() }];
    blocks.extend(names);
    blocks.extend([Block::Place(7, "ros-1".into()), Block::Thread("main".into()), Block::Thread("other".into())]);
    blocks
}

prop_compose! {
    fn files()(pieces in prop::collection::vec((0_u16..2, any::<u64>(), stamps()), 0..5)) -> Vec<Block> {
        let stamped = pieces.into_iter().map(|(thread, lost, stamps)| Block::Stamps { thread, lost, stamps });
        begin().into_iter().chain(stamped).chain([Block::End]).collect()
    }
}

fn encoded(blocks: &[Block]) -> Vec<u8> {
    let mut bytes = HEAD.to_vec();
    blocks.iter().for_each(|block| block.encode(&mut bytes));
    bytes
}

fn decoded(bytes: &[u8]) -> Result<Vec<Block>, (u64, Fault)> {
    Ok(blocks(bytes)?.0.into_iter().map(|(_, block)| block).collect())
}

proptest! {
    #[test]
    fn what_is_written_is_read(file in files()) {
        let bytes = encoded(&file);
        prop_assert_eq!(decoded(&bytes), Ok(file.clone()));
        let stamped = |block: &Block| match block {
            Block::Stamps { stamps, .. } => stamps.len() as u64,
            _ => 0,
        };
        prop_assert_eq!(Trace::decode(&bytes).unwrap().counts().0, file.iter().map(stamped).sum::<u64>());
    }

    #[test]
    fn a_torn_file_is_read_up_to_its_last_whole_block(file in files(), cut in any::<prop::sample::Index>()) {
        let bytes = encoded(&file);
        let cut = HEAD.len() + cut.index(bytes.len() - HEAD.len());
        let (whole, torn_at) = blocks(&bytes[..cut]).unwrap();
        let whole: Vec<_> = whole.into_iter().map(|(_, block)| block).collect();
        prop_assert!(file.starts_with(&whole));
        prop_assert_eq!(&encoded(&whole), &bytes[..torn_at.unwrap() as usize]);
        let read = Trace::decode(&bytes[..cut]);
        prop_assert!(read.is_ok_and(|trace| trace.torn_at.is_some()) || whole.is_empty());
    }

    #[test]
    fn nonsense_is_refused_or_torn(mut bytes in prop::collection::vec(any::<u8>(), 0..400), is_trace in any::<bool>()) {
        if is_trace {
            bytes.splice(..0, HEAD.iter().copied());
        }
        prop_assert!(Trace::decode(&bytes).is_err());
    }
}

fn small() -> Vec<Block> {
    let stamp = |at_ns, kind, event| Stamp { at_ns, kind, section: Section(0), place: NOWHERE, peer: NOWHERE, event };
    let stamps = vec![
        Stamp { section: Section(3), place: 7, peer: 300, ..stamp(1_000_000, StampKind::Enter, Some(70_000)) },
        stamp(1_000_200, StampKind::Further, Some(69_999)),
        Stamp { section: Section(1), ..stamp(1_000_300, StampKind::Send, None) },
        stamp(1_000_400, StampKind::Leave, None),
    ];
    begin().into_iter().chain([Block::Stamps { thread: 1, lost: 200, stamps }, Block::End]).collect()
}

#[test]
fn each_flipped_bit_of_a_file_is_found() {
    let bytes = encoded(&small());
    assert!(Trace::decode(&bytes).is_ok());
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Trace::decode(&flipped).is_err(), "bit {bit}");
    }
}

#[test]
fn each_flipped_bit_under_right_checksums_is_refused_or_written_back_alike() {
    let mut read_otherwise = 0;
    for (index, block) in small().iter().enumerate() {
        let mut bytes = Vec::new();
        block.encode(&mut bytes);
        let (kind, content) = (bytes[0], &bytes[9..bytes.len() - 4]);
        for bit in 0..8 * (1 + content.len()) {
            let mut changed = [&[kind], content].concat();
            changed[bit / 8] ^= 1 << (bit % 8);
            let changed = sealed(changed[0], &changed[1..]);
            let mut file = small();
            file.truncate(index);
            let file = [&encoded(&file), &changed[..]].concat();
            if let Ok(read) = decoded(&file) {
                assert_eq!(encoded(&read), file, "block {index}, bit {bit}");
                assert_ne!(read.last(), Some(block));
                read_otherwise += 1;
            }
        }
    }
    assert!(read_otherwise > 100, "{read_otherwise}");
}

/// A block with right checksums.
fn sealed(kind: u8, content: &[u8]) -> Vec<u8> {
    let head = [&[kind][..], &(content.len() as u32).to_le_bytes()].concat();
    let sum = crc32c::crc32c(&head);
    [&head[..], &sum.to_le_bytes(), content, &crc32c::crc32c_append(sum, content).to_le_bytes()].concat()
}

#[test]
fn hostile_blocks_with_right_checksums_are_refused() {
    let head = encoded(&begin());
    let overlong = [0, 0x80, 0];
    let too_great = [&[0][..], &[0xff; 9], &[0x02]].concat();
    let hostile: &[(Vec<u8>, Fault)] = &[
        (sealed(1, &[1, 0, b'x']), Fault::Unexpected(1)),
        (sealed(99, &[]), Fault::Unexpected(99)),
        (sealed(1, &[1, 2, b'x']), Fault::NotCanonical),
        (sealed(2, &[0xff]), Fault::Malformed),
        (sealed(5, &overlong), Fault::NotCanonical),
        (sealed(5, &too_great), Fault::Malformed),
        (sealed(5, &[&[0][..], &[0xff; 11]].concat()), Fault::Malformed),
        (sealed(5, &[0, 0, 4, 0]), Fault::Malformed),
        (sealed(5, &[&[0, 0], &[1, 0].repeat(STAMPS_PER_BLOCK + 1)[..]].concat()), Fault::Malformed),
        (sealed(5, &[2, 0]), Fault::Unnamed),
        (sealed(5, &[0, 0, 0, 0, 9, 0, 0]), Fault::Unnamed),
        (sealed(6, &[0]), Fault::Malformed),
        (sealed(5, &vec![0; 1 << 18 | 1]), Fault::TooLong(1 << 18 | 1)),
        ([sealed(6, &[]), vec![0]].concat(), Fault::Malformed),
    ];
    for (bytes, expected) in hostile {
        let found = Trace::decode(&[&head[..], bytes].concat()).unwrap_err().1;
        assert_eq!(found, *expected, "{:?}", &bytes[..bytes.len().min(40)]);
    }
    assert_eq!(Trace::decode(b"weirtrac\x02\0\0\0"), Err((8, Fault::Version(2))));
    assert_eq!(Trace::decode(b"PK"), Err((0, Fault::NotATrace)));
    assert_eq!(Trace::decode(b""), Err((0, Fault::Empty)));
    assert_eq!(Trace::decode(HEAD), Err((0, Fault::Empty)));
    assert_eq!(Trace::decode(&[HEAD, &sealed(2, b"a")].concat()), Err((12, Fault::Unexpected(2))));
}
