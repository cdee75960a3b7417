//! Emulated links.

use base::bulk::PageSlice;
use base::ids::EventId;
use configuration::{Payload, Size, SizeDistribution};
use dataflow::message::EventInfo;
use dataflow::readout::fragment::{FragmentHead, status};
use eformat::{EventFormat, Rob, check_rob};
use rol::{
    Emulation, FragmentSizes, LinkParameters, Links, LinksError, ReadOutError, emulated_source_ids, emulated_word,
};

fn parameters() -> LinkParameters {
    LinkParameters { source_ids: emulated_source_ids(0x51, 3), pages: 6, ..LinkParameters::default() }
}

fn fixed(bytes: u64) -> Emulation {
    Emulation { sizes: SizeDistribution::Fixed(Size::from_bytes(bytes)), seed: 1, payload: Payload::Prefilled }
}

fn info(event: u64) -> EventInfo {
    EventInfo {
        event: EventId(event),
        ordinal: event,
        bcid: 3563,
        trigger_type: 0x84,
        items: 0,
        ..EventInfo::default()
    }
}

fn read_out(links: &mut Links, event: u64) -> Result<Vec<(FragmentHead, PageSlice)>, ReadOutError> {
    let mut fragments = Vec::new();
    links.read_out(&info(event), &mut |link, head, bulk| {
        assert_eq!(usize::from(link), fragments.len());
        assert_eq!(bulk.slices().len(), 1, "a fragment is one slice");
        fragments.push((head, bulk.slices()[0].clone()));
    })?;
    Ok(fragments)
}

#[test]
fn headers_are_those_of_the_event_and_the_link() {
    let mut links = Links::emulator(
        LinkParameters { run_number: 77, event_type: 5, adler32: true, first: EventId(0xffff_ffff), ..parameters() },
        &fixed(1003),
    )
    .unwrap();
    for event in [0xffff_ffff, 0x1_0000_0000] {
        for (link, (head, slice)) in read_out(&mut links, event).unwrap().into_iter().enumerate() {
            assert_eq!((head.event, head.status, head.len_bytes as usize), (EventId(event), 0, slice.len()));
            let rob = check_rob(slice.as_bytes()).unwrap();
            assert_eq!(rob.source_id.0, links.source_ids()[link]);
            assert_eq!((rob.lvl1_id, rob.run_number), (event as u32, 77));
            assert_eq!((rob.bcid, rob.trigger_type, rob.status.0), (3563, 0x84, 0));
            assert_eq!(rob.data.len(), 1000, "rounded down to whole words");
            let view = Rob::parse(EventFormat::V5, slice.as_bytes()).unwrap();
            assert_eq!(view.fragment().verify_checksum(), Ok(()));
            assert_eq!(view.rod().unwrap().event_type(), 5);
        }
    }
    assert_eq!(links.counters().fragments, 6);
}

#[test]
fn data_are_the_pattern_whatever_a_page_held_before() {
    let both = [Payload::Prefilled, Payload::Written];
    for (adler32, payload) in [false, true].into_iter().flat_map(|adler32| both.map(|payload| (adler32, payload))) {
        let sizes = SizeDistribution::Exponential { mean: Size::from_bytes(300) };
        let expected: Vec<FragmentSizes> =
            parameters().source_ids.iter().map(|&id| FragmentSizes::new(&sizes, 9, id)).collect();
        let emulation = Emulation { sizes, seed: 9, payload };
        let mut links = Links::emulator(LinkParameters { adler32, ..parameters() }, &emulation).unwrap();
        for event in 0..2000 {
            for (link, (_, slice)) in read_out(&mut links, event).unwrap().into_iter().enumerate() {
                let data = check_rob(slice.as_bytes()).unwrap().data;
                let words = slice.as_bytes()[data.clone()].as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
                assert!(words.eq((0..data.len() / 4).map(emulated_word)), "event {event}, link {link}");
                assert_eq!(data.len(), expected[link].data_bytes(EventId(event)) / 4 * 4);
            }
        }
    }
}

#[test]
fn a_fragment_longer_than_a_page_is_cut_and_says_so() {
    let mut links = Links::emulator(LinkParameters { page_bytes: 250, ..parameters() }, &fixed(1000)).unwrap();
    for (head, slice) in read_out(&mut links, 0).unwrap() {
        assert_eq!((head.status, head.len_bytes), (status::TRUNCATED, 248));
        let rob = check_rob(slice.as_bytes()).unwrap();
        assert_eq!((rob.status.0, rob.data.len()), (status::TRUNCATED, 164));
    }
    assert_eq!(links.counters().flagged, 3);
}

#[test]
fn an_id_out_of_sequence_is_flagged_where_order_is_expected() {
    for (in_order, expected) in [(true, status::OUT_OF_SEQUENCE), (false, 0)] {
        let mut links = Links::emulator(LinkParameters { in_order, ..parameters() }, &fixed(100)).unwrap();
        read_out(&mut links, 10).unwrap();
        for (head, slice) in read_out(&mut links, 7).unwrap() {
            assert_eq!((head.event, head.status), (EventId(7), expected));
            assert_eq!(check_rob(slice.as_bytes()).unwrap().status.0, expected);
        }
    }
}

#[test]
fn an_event_that_is_too_far_away_is_refused_before_anything_is_delivered() {
    for far in [0x8000_0000, 0x5_0000_0000] {
        let mut links = Links::emulator(parameters(), &fixed(100)).unwrap();
        read_out(&mut links, 10).unwrap();
        let refused = links.read_out(&info(far), &mut |_, _, _| panic!("nothing may be delivered"));
        assert!(matches!(refused, Err(ReadOutError::Unplaced { .. })), "{far:#x}: {refused:?}");
    }
}

#[test]
fn without_pages_nothing_is_delivered_until_they_come_back() {
    let mut links = Links::emulator(LinkParameters { pages: 5, ..parameters() }, &fixed(100)).unwrap();
    let held = read_out(&mut links, 0).unwrap();
    let refused = links.read_out(&info(1), &mut |_, _, _| panic!("nothing may be delivered"));
    assert!(matches!(refused, Err(ReadOutError::NoPage { free: 2, needed: 3, .. })), "{refused:?}");
    assert_eq!(links.counters().no_page, 1);
    drop(held);
    assert_eq!(read_out(&mut links, 1).unwrap().len(), 3);
    assert_eq!(links.counters().events, 2);
}

#[test]
fn runs_with_equal_parameters_are_equal() {
    let run = |seed| {
        let sizes = SizeDistribution::Gaussian { mean: Size::from_bytes(400), sigma: Size::from_bytes(90) };
        let mut links = Links::emulator(parameters(), &Emulation { sizes, seed, payload: Payload::Prefilled }).unwrap();
        let mut all = Vec::new();
        for event in 0..20 {
            for (_, slice) in read_out(&mut links, event).unwrap() {
                all.extend_from_slice(slice.as_bytes());
            }
        }
        all
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn impossible_pages_are_errors() {
    let too_short = Links::emulator(LinkParameters { page_bytes: 80, ..parameters() }, &fixed(0)).err();
    assert!(matches!(too_short, Some(LinksError::PageTooShort { needed_bytes: 88, .. })), "{too_short:?}");
    let no_pages = Links::emulator(LinkParameters { pages: 0, ..parameters() }, &fixed(0)).err();
    assert!(matches!(no_pages, Some(LinksError::Pool(_))), "{no_pages:?}");
}
