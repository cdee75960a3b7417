//! Which event builder gets the next event.

use dataflow::building::assignment::{SfiAssignment, SfiChooser};

#[test]
fn round_robin_passes_over_the_full() {
    let mut chooser = SfiChooser::new(SfiAssignment::RoundRobin);
    let mut choose = |room: [usize; 3]| chooser.choose(room.into_iter());
    assert_eq!([choose([1, 1, 1]), choose([1, 0, 1]), choose([1, 1, 1])], [Some(0), Some(2), Some(0)]);
    assert_eq!(choose([0, 0, 0]), None);
}

#[test]
fn a_run_ends_when_it_is_long_enough_or_there_is_no_room() {
    let mut chooser = SfiChooser::new(SfiAssignment::RoundRobin).in_runs_of(3);
    let mut choose = |room: [usize; 2]| chooser.choose(room.into_iter());
    assert_eq!([(); 4].map(|()| choose([9, 9])), [Some(0), Some(0), Some(0), Some(1)]);
    assert_eq!([choose([9, 0]), choose([9, 9])], [Some(0), Some(0)]);
}

#[test]
fn the_least_loaded_is_chosen_and_equals_in_turn() {
    let mut chooser = SfiChooser::new(SfiAssignment::LeastLoaded);
    let mut choose = |room: [usize; 3]| chooser.choose(room.into_iter());
    assert_eq!([choose([3, 5, 4]), choose([3, 4, 4]), choose([4, 4, 4])], [Some(1), Some(2), Some(0)]);
}
