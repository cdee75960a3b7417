//! When level 1 hears how many of its triggers were taken.

use std::time::Duration;

use base::ids::NodeId;
use base::time::Time;
use dataflow::component::{Action, Outbox};
use dataflow::message::Message;
use dataflow::window::TakenCount;

const LEVEL1: NodeId = NodeId(1);

fn told(out: &mut Outbox) -> Vec<Action> {
    out.drain().collect()
}

fn taken(count: u64) -> [Action; 1] {
    [Action::Send { to: LEVEL1, message: Message::Taken(count) }]
}

#[test]
fn a_quarter_of_the_window_is_told_at_once() {
    let (mut count, mut out) = (TakenCount::new(Some(LEVEL1), 16), Outbox::new());
    count.take(Time::ZERO, 3, &mut out);
    assert_eq!(told(&mut out), []);
    count.take(Time::ZERO, 1, &mut out);
    assert_eq!((told(&mut out).as_slice(), count.next_deadline()), (&taken(4)[..], None));
    count.take(Time::ZERO, 3, &mut out);
    assert_eq!(told(&mut out), []);
    count.take(Time::ZERO, 9, &mut out);
    assert_eq!(told(&mut out), taken(16));
}

#[test]
fn what_is_less_than_a_quarter_is_told_in_time_after_the_first() {
    let (mut count, mut out) = (TakenCount::new(Some(LEVEL1), 16), Outbox::new());
    let (first, later) = (Time::from_ns(1_000), Time::from_ns(500_000));
    count.take(first, 1, &mut out);
    count.take(later, 1, &mut out);
    let due = first + Duration::from_millis(1);
    assert_eq!(count.next_deadline(), Some(due));
    count.on_deadline(later, &mut out);
    assert_eq!(told(&mut out), []);
    count.on_deadline(due, &mut out);
    assert_eq!((told(&mut out).as_slice(), count.next_deadline()), (&taken(2)[..], None));
}

#[test]
fn without_level_1_nothing_is_told_or_due() {
    let (mut count, mut out) = (TakenCount::new(None, 16), Outbox::new());
    (0..20).for_each(|_| count.take(Time::ZERO, 1, &mut out));
    assert_eq!((told(&mut out).as_slice(), count.next_deadline()), (&[][..], None));
}
