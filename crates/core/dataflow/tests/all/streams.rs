//! Which streams an event goes to.

use base::ids::EventId;
use dataflow::filter::streams::{StreamRule, one_stream, streams_of};

const MAIN: StreamRule = StreamRule { chains: 0b11, by_name: false, prescale: 1 };
const EXPRESS: StreamRule = StreamRule { chains: 0b01, by_name: false, prescale: 4 };
const NAMED: StreamRule = StreamRule { chains: 0, by_name: true, prescale: 1 };

#[test]
fn chains_and_names_ask_for_streams() {
    let rules = [MAIN, NAMED];
    assert_eq!(streams_of(&rules, EventId(1), 0, 0b10), 0b01);
    assert_eq!(streams_of(&rules, EventId(1), 0b10, 0b10), 0b10);
    assert_eq!(streams_of(&rules, EventId(1), 0b10, 0), 0b10);
    assert_eq!(streams_of(&rules, EventId(1), 0, 0b100), 0);
}

#[test]
fn a_stream_without_chains_takes_what_names_no_other() {
    assert_eq!(streams_of(&one_stream(), EventId(1), 0, 0), 1);
    let rules = [one_stream()[0], NAMED];
    assert_eq!(streams_of(&rules, EventId(1), 0b10, 0), 0b10);
}

#[test]
fn an_event_that_no_chain_accounts_for_is_not_lost() {
    assert_eq!(streams_of(&[MAIN, EXPRESS], EventId(1), 0, 0), 0b01);
    assert_eq!(streams_of(&[MAIN, one_stream()[0]], EventId(1), 0, 0), 0b10);
}

#[test]
fn a_prescale_takes_its_part_whoever_decides() {
    let take = |event| streams_of(&[MAIN, EXPRESS], EventId(event), 0, 1);
    let both = (0..10_000).filter(|&event| take(event) == 0b11).count();
    assert!((2_300..2_700).contains(&both), "{both}");
    assert!((0..100).all(|event| take(event) & 1 == 1));
}
