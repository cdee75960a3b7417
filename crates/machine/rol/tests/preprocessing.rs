//! Zero suppression of fragments.

use base::bulk::{Bulk, PageSlice};
use eformat::{
    EventFormat, ROB_PREFIX_BYTES, Rob, RobParams, Robs, RodHeader, SourceId, check_rob, write_rob_fragment,
};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use rol::{PREPROCESSED, Preprocessing};

const KEEP_ALL: Preprocessing = Preprocessing { suppress_below: 0 };

fn fragment(words: &[u32], adler32: bool) -> Vec<u8> {
    let rod = RodHeader { source_id: SourceId(0x0041_0003), lvl1_id: 77, ..RodHeader::default() };
    let params = RobParams { rod, adler32, ..RobParams::default() };
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut rob = vec![0; params.rob_bytes(data.len())];
    rob[ROB_PREFIX_BYTES..ROB_PREFIX_BYTES + data.len()].copy_from_slice(&data);
    write_rob_fragment(&mut rob, &params, data.len());
    rob
}

fn bulk(bytes: Vec<u8>) -> Bulk {
    Bulk::Pages(PageSlice::from(bytes))
}

fn joined(bulk: &Bulk) -> Vec<u8> {
    bulk.slices().iter().flat_map(|slice| slice.as_bytes().iter().copied()).collect()
}

/// The data of the only fragment, which is whole in every respect, and the status of its ROD.
fn data_of(bytes: &[u8]) -> (Vec<u32>, u32) {
    let summary = check_rob(bytes).unwrap();
    assert_eq!((summary.lvl1_id, summary.source_id), (77, SourceId(0x0041_0003)));
    let rob = Rob::parse(EventFormat::V5, bytes).unwrap();
    assert_eq!(rob.fragment().verify_checksum(), Ok(()));
    let words = bytes[summary.data].as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    (words, rob.rod().unwrap().status_words().next().unwrap())
}

#[test]
fn padding_goes_and_records_stay() {
    for adler32 in [false, true] {
        let padded = fragment(&[0xd101_0002, 0x0007_0005, 0x0008_0064, 0, 0, 0], adler32);
        let out = joined(&KEEP_ALL.apply(bulk(padded.clone())));
        assert_eq!(data_of(&out), (vec![0xd101_0002, 0x0007_0005, 0x0008_0064], PREPROCESSED));
        assert_eq!(out.len(), padded.len() - 12);
        let again = joined(&KEEP_ALL.apply(bulk(out.clone())));
        assert_eq!(again, out, "there is nothing more to take out");
    }
}

#[test]
fn small_cells_go() {
    let suppression = Preprocessing { suppress_below: 6 };
    let cells = [0xd102_0003, 0x0007_0005, 0x0008_0006, 0x0009_0001, 0];
    assert_eq!(data_of(&joined(&suppression.apply(bulk(fragment(&cells, true))))).0, [0xd102_0001, 0x0008_0006]);
    let tracks = [0xd103_0001, 0x0007_0005, 0x0009_0001];
    assert_eq!(joined(&suppression.apply(bulk(fragment(&tracks, true)))), fragment(&tracks, true));
}

#[test]
fn what_is_not_known_to_be_padding_stays() {
    for words in [
        &[0xd101_0001, 0x0007_0005, 0, 3][..],
        &[0xd109_0001, 0x0007_0005, 0, 0],
        &[0xd201_0001, 0x0007_0005, 0, 0],
        &[0xd101_0009, 0x0007_0005, 0, 0],
        &[],
    ] {
        let rob = fragment(words, false);
        assert_eq!(joined(&KEEP_ALL.apply(bulk(rob.clone()))), rob, "{words:x?}");
    }
    let mut damaged = fragment(&[0xd101_0000, 0, 0], true);
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(joined(&KEEP_ALL.apply(bulk(damaged.clone()))), damaged, "a wrong checksum stays wrong");
}

#[test]
fn unchanged_fragments_are_not_copied() {
    let (whole, padded) = (fragment(&[0xd103_0000], false), fragment(&[0xd103_0000, 0, 0], false));
    let first = bulk([whole.clone(), padded.clone(), padded.clone(), whole.clone()].concat());
    let out = KEEP_ALL.apply(first.clone());
    let lengths: Vec<usize> = out.slices().iter().map(PageSlice::len).collect();
    assert_eq!(lengths, [whole.len(), 2 * whole.len(), whole.len()]);
    assert_eq!(out.slices()[0].as_bytes().as_ptr(), first.slices()[0].as_bytes().as_ptr());
    assert_eq!(KEEP_ALL.apply(Bulk::Modelled { len_bytes: 9, seed: 1 }), Bulk::Modelled { len_bytes: 9, seed: 1 });
}

/// Fragments with legal payloads of all kinds, padded or not.
fn payload() -> impl Strategy<Value = Vec<u32>> {
    (1..=6_u32, proptest::collection::vec(any::<u32>(), 0..40), 0..9_usize).prop_map(|(kind, mut words, padding)| {
        let per_record = [1, 1, 2, 2, 4, 1][kind as usize - 1];
        words.truncate(words.len() / per_record * per_record);
        let first = 0xd1 << 24 | kind << 16 | (words.len() / per_record) as u32;
        [vec![first], words, vec![0; padding]].concat()
    })
}

proptest! {
    #[test]
    fn any_bytes_are_survived(words in payload(), noise in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4),
                              suppress_below in any::<u16>(), cut in any::<usize>()) {
        let mut bytes = [fragment(&words, true), fragment(&words, false)].concat();
        for (at, value) in noise {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(cut % (bytes.len() + 1));
        let out = Preprocessing { suppress_below }.apply(bulk(bytes.clone()));
        prop_assert!(out.len() <= bytes.len());
        let legal = |bytes: &[u8]| Robs::new(EventFormat::V5, bytes).filter(Result::is_ok).count();
        prop_assert_eq!(legal(&joined(&out)), legal(&bytes));
    }

    #[test]
    fn records_are_kept(words in payload(), suppress_below in 0..100_u16) {
        let (data, _) = data_of(&joined(&Preprocessing { suppress_below }.apply(bulk(fragment(&words, true)))));
        let kind = words[0] >> 16 & 0xff;
        let per_record = [1, 1, 2, 2, 4, 1][kind as usize - 1];
        let records = &words[1..][..(words[0] & 0xffff) as usize * per_record];
        let is_kept = |word: &&u32| kind > 2 || **word & 0xffff >= u32::from(suppress_below);
        let expected: Vec<u32> = records.iter().filter(is_kept).copied().collect();
        prop_assert_eq!(&data[1..], &expected[..]);
        prop_assert_eq!((data[0] & 0xffff) as usize * per_record, expected.len());
    }
}
