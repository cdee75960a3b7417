//! Where a fragment belongs, and what is wrong with its number.

use base::ids::{EventId, Lvl1Id};
use dataflow::readout::fragment::{FragmentCheck, status};

#[test]
fn a_sequence_an_ecr_step_and_a_wrap_are_well() {
    let mut check = FragmentCheck::new(EventId(0xffff_fffe));
    for id in [0xffff_fffe, 0xffff_ffff, 0, 1, 0x0100_0000, 0x0100_0001] {
        assert_eq!(check.examine(Lvl1Id(id), 0, 80).map(|head| head.status), Ok(0), "{id:#x}");
    }
}

#[test]
fn a_step_back_or_over_is_flagged_and_placed() {
    let mut check = FragmentCheck::new(EventId(10));
    check.examine(Lvl1Id(10), 0, 80).unwrap();
    let over = check.examine(Lvl1Id(12), 0, 80).unwrap();
    assert_eq!((over.event, over.status), (EventId(12), status::OUT_OF_SEQUENCE));
    let back = check.examine(Lvl1Id(11), 0, 80).unwrap();
    assert_eq!((back.event, back.status), (EventId(11), status::OUT_OF_SEQUENCE));
    assert_eq!(check.examine(Lvl1Id(13), 0, 80).unwrap().status, 0);
}

#[test]
fn a_wild_id_is_refused() {
    let mut check = FragmentCheck::new(EventId(10));
    assert!(check.examine(Lvl1Id(0x8000_0000), 0, 80).is_err());
}
