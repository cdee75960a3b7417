//! Sources that lose or repeat a trigger.

use base::random::Random;
use timing::compare::Comparison;
use timing::slip::{Slip, Slips};

use crate::beam::{Beam, Spacing};

#[test]
fn a_lost_trigger_is_located_within_a_thousand_triggers() {
    let spills = Spacing::Spills(1e5, 250, 1e8);
    for spacing in [Spacing::Random(1e6), Spacing::Random(1e5), Spacing::Equal(1e6), spills] {
        for seed in 0..100 {
            let mut random = Random::new(seed ^ 0x5eed);
            let (at, by) = (500 + random.below(500), [-3, -1, 1, 2][random.below(4) as usize]);
            let mut beam = Beam::new(seed, spacing);
            let mut found = Vec::new();
            let told_at = compare(
                &mut beam,
                at + 1_000,
                |number| number.checked_add_signed(-by).filter(|_| number >= at),
                &mut found,
            );
            let [slip] = found[..] else { panic!("seed {seed}, {spacing:?}: {by} at {at}: {found:?}") };
            // The first number that the source says wrongly; a chance agreement may hide one or two.
            let first = at.saturating_add_signed(-by);
            assert!((first..first + 3).contains(&slip.since), "seed {seed}, {spacing:?}: {by} at {first}: {slip:?}");
            assert_eq!((slip.by, slip.shift), (by, by), "seed {seed}");
            assert!(told_at.unwrap() < at + 100, "seed {seed}: told at {told_at:?}");
        }
    }
}

#[test]
fn slips_one_after_another_add_up() {
    let mut beam = Beam::new(3, Spacing::Random(1e6));
    let mut found = Vec::new();
    let said = |number: u64| match number {
        0..1_000 => None,
        1_000..2_000 => Some(number - 1),
        2_000..3_000 => Some(number - 2),
        _ => Some(number - 1),
    };
    compare(&mut beam, 4_000, said, &mut found);
    let told: Vec<(u64, i64, i64)> = found.iter().map(|slip| (slip.since, slip.by, slip.shift)).collect();
    assert_eq!(told, [(999, 1, 1), (1_998, 1, 2), (2_999, -1, 1)]);
}

#[test]
fn a_source_that_begins_with_another_number_is_told_at_once() {
    let mut beam = Beam::new(4, Spacing::Random(1e6));
    let mut found = Vec::new();
    compare(&mut beam, 1_000, |number| Some(number + 2), &mut found);
    assert_eq!(found, [Slip { since: 2, by: -2, shift: -2 }]);
}

#[test]
fn ten_million_triggers_make_no_false_alarm() {
    // Random and equal distances; little jitter and much; steps of the clock; gaps.
    for (seed, jitter_ns, wild) in [(1, 100.0, 0.0), (2, 1_000.0, 0.02), (3, 5_000.0, 0.001), (4, 50.0, 0.1)] {
        let mut beam = Beam::new(seed, if seed == 3 { Spacing::Equal(1e6) } else { Spacing::Random(1e6) });
        (beam.clock.jitter_ns, beam.clock.wild) = (jitter_ns, wild);
        let mut random = Random::new(seed);
        let mut found = Vec::new();
        let mut comparison = Comparison::new(1);
        for index in 0..2_500_000_u64 {
            beam.clock.offset_ns += if index % 500_000 == 499_999 { 1.3e6 } else { 0.0 };
            let (number, reference, source) = beam.next();
            if !random.chance(0.001) {
                comparison.lead(number, number, reference);
            }
            if !random.chance(0.001) {
                comparison.follow(0, number, false, source);
            }
            comparison.judge(|_, slip| found.push(slip));
        }
        assert!(found.is_empty(), "seed {seed}: {found:?}");
        assert!(comparison.slips(0).clock().steps() >= 4, "seed {seed}: the steps are seen");
    }
}

#[test]
fn whoever_is_ahead_the_same_is_found() {
    let told = |lag: usize| {
        let mut beam = Beam::new(5, Spacing::Random(1e6));
        let said: Vec<_> = (0..3_000).map(|_| beam.next()).collect();
        let (mut comparison, mut found) = (Comparison::new(2), Vec::new());
        for index in 0..said.len() + lag {
            if let Some((number, _, source)) = said.get(index) {
                comparison.follow(1, if *number < 1_500 { *number } else { number + 1 }, false, *source);
            }
            if let Some((number, reference, _)) = index.checked_sub(lag).and_then(|index| said.get(index)) {
                comparison.lead(*number, *number, *reference);
            }
            comparison.judge(|source, slip| found.push((source, slip)));
        }
        found
    };
    let expected = [(1, Slip { since: 1_501, by: -1, shift: -1 })];
    assert_eq!((told(0), told(1_000)), (expected.to_vec(), expected.to_vec()));
}

#[test]
fn a_source_with_a_counter_of_its_own_is_followed_without_the_number_of_others() {
    let mut slips = Slips::default();
    let mut beam = Beam::new(6, Spacing::Random(1e6));
    let said: Vec<_> = (0..2_000).map(|_| beam.next()).collect();
    let mut found = Vec::new();
    // Its counter begins five triggers late, and misses one at 1000.
    let seen = said.iter().skip(5).filter(|(number, ..)| *number != 1_000);
    for (counter, (_, _, source)) in seen.enumerate() {
        let reference = |shift: i64| Some(said.get(counter.checked_add_signed(shift as isize)?)?.1);
        found.extend(slips.observe(counter as u64, *source, reference));
    }
    assert_eq!(found, [Slip { since: 0, by: 5, shift: 5 }, Slip { since: 995, by: 1, shift: 6 }]);
}

/// Lets a source say another number of some triggers. When the first slip was told.
fn compare(beam: &mut Beam, triggers: u64, said: impl Fn(u64) -> Option<u64>, found: &mut Vec<Slip>) -> Option<u64> {
    let mut comparison = Comparison::new(1);
    let mut told_at = None;
    for _ in 0..triggers {
        let (number, reference, source) = beam.next();
        comparison.lead(number, number, reference);
        comparison.follow(0, said(number).unwrap_or(number), false, source);
        comparison.judge(|_, slip| found.push(slip));
        told_at = told_at.or((!found.is_empty()).then_some(number));
    }
    told_at
}
