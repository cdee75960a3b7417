//! Where events of push by number go.

use base::ids::{EventId, NodeId};
use dataflow::building::destinations::{DestinationTable, Destinations, VERSIONS_MAX};

#[test]
fn a_version_holds_from_its_event_on() {
    let mut destinations = DestinationTable::default();
    assert_eq!(destinations.of(EventId(1)), None);
    destinations.take(table(1, 0, &[7, 8, 9]));
    destinations.take(table(2, 4, &[7, 9]));
    assert_eq!(of(&destinations, 2..7), [Some(9), Some(7), Some(7), Some(9), Some(7)]);
    destinations.forget_below(EventId(3));
    assert_eq!(destinations.versions().count(), 2);
    destinations.forget_below(EventId(4));
    assert_eq!(destinations.versions().count(), 1);
    assert_eq!(destinations.of(EventId(3)), None);
}

#[test]
fn a_version_replaces_those_that_begin_later_and_old_ones_are_ignored() {
    let mut destinations = DestinationTable::default();
    destinations.take(table(1, 0, &[7]));
    destinations.take(table(2, 10, &[8]));
    destinations.take(table(3, 5, &[9]));
    destinations.take(table(2, 0, &[6]));
    assert_eq!(of(&destinations, 4..12), [7, 9, 9, 9, 9, 9, 9, 9].map(Some));
    destinations.take(table(4, 12, &[]));
    assert_eq!((destinations.of(EventId(12)), destinations.newest().map(|newest| newest.version)), (None, Some(4)));
}

#[test]
fn events_in_a_row_go_to_the_same_builder() {
    let mut destinations = DestinationTable::default();
    destinations.take(Destinations { run: 3, ..table(1, 0, &[7, 8]) });
    assert_eq!(of(&destinations, 0..7), [7, 7, 7, 8, 8, 8, 7].map(Some));
}

#[test]
fn what_is_kept_is_bounded() {
    let mut destinations = DestinationTable::default();
    for version in 1..1000 {
        destinations.take(table(version, version, &[7]));
    }
    assert_eq!(destinations.versions().count(), VERSIONS_MAX);
    assert_eq!(vec![destinations.of(EventId(1)), destinations.of(EventId(999))], [None, Some(NodeId(7))]);
}

fn table(version: u64, first: u64, sfis: &[u16]) -> Destinations {
    Destinations { version, first: EventId(first), run: 1, sfis: sfis.iter().map(|&sfi| NodeId(sfi)).collect() }
}

fn of(table: &DestinationTable, events: core::ops::Range<u64>) -> Vec<Option<u16>> {
    events.map(|event| table.of(EventId(event)).map(|sfi| sfi.0)).collect()
}
