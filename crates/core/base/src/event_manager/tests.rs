use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

const WRAP: u64 = 1 << 32;
const ECR_STEP: u64 = 1 << 24;

#[derive(Clone, Debug)]
enum Operation {
    Insert(usize),
    Remove(usize),
    FindMut(usize),
    RemoveOlderThan(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let index = any::<prop::sample::Index>().prop_map(|index| index.index(usize::MAX));
    (0..100u8, index).prop_map(|(choice, index)| match choice {
        0..=54 => Operation::Insert(index),
        55..=84 => Operation::Remove(index),
        85..=92 => Operation::FindMut(index),
        _ => Operation::RemoveOlderThan(index),
    })
}

/// A set of event numbers to draw from, about twice what fits, so that hits, misses, duplicates and full tables all
/// come.
fn numbers(capacity: usize) -> impl Strategy<Value = Vec<u64>> {
    let count = 2 * capacity as u64 + 2;
    let slots = next_prime(capacity * SLOTS_PER_EVENT) as u64;
    let progression = move |first: u64, stride: u64| {
        (0..count).map(|n| first.wrapping_add(n.wrapping_mul(stride))).collect::<Vec<_>>()
    };
    prop_oneof![
        (0..2 * count).prop_map(move |before| progression(WRAP - before, 1)),
        (0..60u32).prop_map(move |bit| progression(WRAP - 5, 1 << bit)),
        Just(progression(7, slots)),
        Just(progression(u64::MAX - count + 1, 1)),
        Just((0..count).map(|n| n % 8 + n / 8 * ECR_STEP).collect()),
        prop::collection::vec(any::<u64>(), count as usize),
    ]
}

fn run(capacity: usize, numbers: &[u64], operations: Vec<Operation>) {
    let mut manager = EventManager::new(capacity);
    let mut model = BTreeMap::new();
    let memory_bytes = manager.memory_bytes();
    for (value, operation) in operations.into_iter().enumerate() {
        let id = |index: usize| EventId(numbers[index % numbers.len()]);
        match operation {
            Operation::Insert(index) => {
                let expected = if model.contains_key(&id(index)) {
                    Err(InsertError::Duplicate(value))
                } else if model.len() == capacity {
                    Err(InsertError::Full(value))
                } else {
                    model.insert(id(index), value);
                    Ok(())
                };
                assert_eq!(manager.insert(id(index), value), expected);
            }
            Operation::Remove(index) => assert_eq!(manager.remove(id(index)), model.remove(&id(index))),
            Operation::FindMut(index) => {
                let (found, expected) = (manager.find_mut(id(index)), model.get_mut(&id(index)));
                assert_eq!(found, expected);
                if let (Some(found), Some(expected)) = (found, expected) {
                    *found += 1;
                    *expected += 1;
                }
            }
            Operation::RemoveOlderThan(index) => {
                let kept = model.split_off(&id(index));
                let expected: Vec<_> = core::mem::replace(&mut model, kept).into_iter().collect();
                let mut removed = Vec::new();
                let count = manager.remove_older_than(id(index), |id, value| removed.push((id, value)));
                assert_eq!(removed, expected);
                assert_eq!(count, expected.len());
            }
        }
        manager.check();
        assert_eq!((manager.len(), manager.free()), (model.len(), capacity - model.len()));
    }
    for &number in numbers {
        assert_eq!(manager.find(EventId(number)), model.get(&EventId(number)));
    }
    let mut resident: Vec<_> = manager.iter().map(|(id, &value)| (id, value)).collect();
    resident.sort_unstable();
    assert_eq!(resident, model.into_iter().collect::<Vec<_>>());
    assert_eq!(manager.memory_bytes(), memory_bytes);
}

fn scenario() -> impl Strategy<Value = (usize, Vec<u64>, Vec<Operation>)> {
    prop_oneof![0usize..=40, Just(200)]
        .prop_flat_map(|capacity| (Just(capacity), numbers(capacity), prop::collection::vec(operation(), 0..400)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn behaves_as_an_ordered_map_of_limited_size((capacity, numbers, operations) in scenario()) {
        run(capacity, &numbers, operations);
    }
}

/// Fills an event manager to its capacity, removes half of the events in an order unlike that of their arrival, and
/// fills it again.
fn turn_over(ids: impl Fn(u64) -> EventId) -> EventManager<u64> {
    const CAPACITY: u64 = 20_000;
    let mut manager = EventManager::new(CAPACITY as usize);
    for n in 0..CAPACITY {
        assert_eq!(manager.insert(ids(n), n), Ok(()));
    }
    assert_eq!(manager.insert(ids(CAPACITY), 0), Err(InsertError::Full(0)));
    for n in (0..CAPACITY / 2).map(|n| n * 7919 % CAPACITY) {
        assert_eq!(manager.remove(ids(n)), Some(n));
    }
    for n in CAPACITY..CAPACITY + CAPACITY / 2 {
        assert_eq!(manager.insert(ids(n), n), Ok(()));
    }
    manager.check();
    manager
}

fn search_length_max(manager: &EventManager<u64>) -> usize {
    manager.displaced.search_lengths().max().unwrap_or(0)
}

#[test]
fn dense_numbers_and_constant_strides_are_all_at_home() {
    for first in [0, WRAP - 10_000, ECR_STEP * 77] {
        for stride in [1, 2, 3, 10, 1 << 10, 1 << 16, ECR_STEP, 5 * ECR_STEP, WRAP, 1 << 40] {
            let manager = turn_over(|n| EventId(first + n * stride));
            assert_eq!(manager.displaced(), 0, "stride {stride}");
        }
    }
}

#[test]
fn no_numbers_make_the_search_for_displaced_events_long() {
    let slots = next_prime(20_000 * SLOTS_PER_EVENT) as u64;
    let runs_between_ecr = |n: u64| EventId(n % 1000 + n / 1000 * ECR_STEP);
    let worst = turn_over(|n| EventId(n * slots));
    assert_eq!(worst.displaced(), worst.len() - 1, "all have the same home");
    assert!(search_length_max(&worst) <= 6, "{}", search_length_max(&worst));
    let ecr = turn_over(runs_between_ecr);
    assert!(search_length_max(&ecr) <= 6, "{}", search_length_max(&ecr));
    for shift in 0..34 {
        let scattered = turn_over(|n| EventId((n * n) << shift));
        assert!(search_length_max(&scattered) <= 6, "{}", search_length_max(&scattered));
    }
}

#[test]
fn the_first_fragment_of_an_event_stays_and_the_second_comes_back() {
    let mut manager = EventManager::new(1);
    assert_eq!(manager.insert(EventId(3), 'a'), Ok(()));
    assert_eq!(manager.insert(EventId(3), 'b'), Err(InsertError::Duplicate('b')));
    assert_eq!(manager.insert(EventId(4), 'c'), Err(InsertError::Full('c')));
    assert_eq!(manager.find(EventId(3)), Some(&'a'));
}

#[test]
fn removal_of_the_oldest_goes_by_number_whether_few_or_many_numbers_lie_between() {
    for stride in [1, ECR_STEP] {
        let mut manager = EventManager::new(100);
        for n in (0..100).rev() {
            assert_eq!(manager.insert(EventId(WRAP - 50 * stride + n * stride), n), Ok(()));
        }
        for (oldest, expected) in [(WRAP, 0..50), (WRAP, 0..0), (WRAP + 10 * stride, 50..60), (u64::MAX, 60..100)] {
            let mut removed = Vec::new();
            manager.remove_older_than(EventId(oldest), |_, n| removed.push(n));
            assert_eq!(removed, expected.collect::<Vec<_>>());
            manager.check();
        }
    }
}

#[test]
fn memory_is_what_the_documentation_says() {
    type Fragment = ([u64; 2], crate::bulk::Bulk);
    let manager = EventManager::<Fragment>::new(100_000);
    assert_eq!(EventManager::<Fragment>::BYTES_PER_EVENT, 104);
    let expected = 100_000 * EventManager::<Fragment>::BYTES_PER_EVENT;
    assert!((expected..expected + expected / 100).contains(&manager.memory_bytes()));
}
