//! Who is given what waits, in turn.

use base::ids::NodeId;
use dataflow::turns::Turns;

#[test]
fn one_after_the_other_gets_all_that_waits_for_it() {
    let mut turns = Turns::new();
    for (to, item) in [(3, 'a'), (1, 'b'), (3, 'c')] {
        turns.push(NodeId(to), item);
    }
    assert_eq!((turns.next_item(), turns.ending()), (Some('a'), None));
    turns.push(NodeId(1), 'd');
    assert_eq!((turns.next_item(), turns.ending()), (Some('c'), Some(NodeId(3))));
    turns.push(NodeId(3), 'e');
    assert_eq!((turns.next_item(), turns.ending()), (Some('e'), Some(NodeId(3))));
    assert_eq!([(); 3].map(|()| turns.next_item()), [Some('b'), Some('d'), None]);
    assert!(turns.is_empty());
}

#[test]
fn who_has_much_waiting_comes_soon_and_the_others_come_in_between() {
    let mut turns = Turns::new();
    (10..13).for_each(|other| turns.push(NodeId(other), 0));
    for much in [1, 2] {
        (0..2 * MUCH).for_each(|_| turns.push(NodeId(much), much));
    }
    let mut order: Vec<u16> = core::iter::from_fn(|| turns.next_item()).collect();
    assert_eq!(order.len(), 3 + 4 * MUCH as usize);
    order.dedup();
    assert_eq!(order, [1, 0, 2, 0]);
    assert!(turns.is_empty() && turns.ending().is_none());
}

/// Who has so much waiting comes in between, as `dataflow::turns` says.
const MUCH: u32 = 16;
