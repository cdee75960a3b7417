//! Clocks that drift and step, sources that slip, numbers of few bits.

mod beam;
mod coincidences;
mod slips;

use base::random::Random;
use beam::{Beam, Spacing};
use proptest::prelude::*;
use timing::clock::{BLOCK, Clock, FITTED_AFTER};
use timing::unwrap::Unwrap;

#[test]
fn ten_ppm_are_found_among_jitter_and_wild_times() {
    for seed in 0..50 {
        let mut beam = Beam::new(seed, Spacing::Random(1e6));
        beam.clock.drift_ppm = 10.0;
        let mut clock = Clock::default();
        for _ in 0..3_000 {
            let (_, reference, source) = beam.next();
            clock.observe(reference, source);
        }
        let fit = clock.fit().unwrap();
        assert!((fit.drift - 10_000_000).abs() < 300_000, "seed {seed}: {fit:?}");
        assert!(
            (fit.offset_ns as f64 - beam.offset_ns()).abs() < 20_000.0,
            "seed {seed}: {fit:?} {}",
            beam.offset_ns()
        );
        assert!((200..600).contains(&fit.quality_ns), "seed {seed}: {fit:?}");
        assert_eq!(clock.steps(), 0, "seed {seed}");
    }
}

#[test]
fn a_step_of_a_millisecond_is_found_and_the_drift_stays() {
    for seed in 0..50 {
        let mut beam = Beam::new(seed, Spacing::Random(1e6));
        beam.clock.drift_ppm = 10.0;
        let mut clock = Clock::default();
        for index in 0..4_000 {
            beam.clock.offset_ns += if index == 2_000 { 1e6 } else { 0.0 };
            let (_, reference, source) = beam.next();
            clock.observe(reference, source);
        }
        let fit = clock.fit().unwrap();
        assert_eq!(clock.steps(), 1, "seed {seed}");
        assert!((fit.drift - 10_000_000).abs() < 1_000_000, "seed {seed}: {fit:?}");
        assert!(
            (fit.source_at(fit.at) as f64 - fit.at as f64 - beam.offset_ns()).abs() < 20_000.0,
            "seed {seed}: {fit:?}"
        );
    }
}

/// Before a source is found, data that are near by chance make pairs. Slopes from the first block span most time, so they outweigh others.
#[test]
fn a_first_block_of_chance_is_no_slope() {
    for seed in 0..100 {
        let mut beam = Beam::new(seed, Spacing::Equal(200e3));
        (beam.clock.offset_ns, beam.clock.wild, beam.now_ns) = (0.0, 0.0, 0.0);
        let (mut clock, mut random) = (Clock::default(), Random::new(seed));
        for pair in 0..FITTED_AFTER {
            let (_, reference, source) = beam.next();
            let chance = if pair < BLOCK { 20_000 + random.below(60_000) } else { 0 };
            clock.observe(reference, source + chance);
        }
        let fit = clock.fit().unwrap();
        assert!(fit.drift.abs() < 200_000_000, "seed {seed}: {fit:?}");
        assert!(
            (fit.offset_ns as f64 - beam.offset_ns()).abs() < 10_000.0,
            "seed {seed}: {fit:?} {}",
            beam.offset_ns()
        );
    }
}

#[test]
fn a_steep_slope_of_few_pairs_is_believed() {
    for seed in 0..100 {
        let mut beam = Beam::new(seed, Spacing::Random(100e3));
        beam.clock.drift_ppm = if seed % 2 == 0 { 500.0 } else { -500.0 };
        let mut clock = Clock::default();
        for _ in 0..2 * FITTED_AFTER {
            let (_, reference, source) = beam.next();
            clock.observe(reference, source);
        }
        let drift_ppm = clock.fit().unwrap().drift as f64 / 1e6;
        assert!((drift_ppm - beam.clock.drift_ppm).abs() < 150.0, "seed {seed}: {drift_ppm}");
    }
}

#[test]
fn a_clock_is_known_after_so_many_pairs_and_not_before() {
    let mut beam = Beam::new(1, Spacing::Equal(1e6));
    let mut clock = Clock::default();
    for index in 1..=FITTED_AFTER {
        let (_, reference, source) = beam.next();
        clock.observe(reference, source);
        assert_eq!(clock.fit().is_some(), index == FITTED_AFTER);
    }
}

#[test]
fn equal_pairs_give_equal_models() {
    let of = || {
        let mut beam = Beam::new(7, Spacing::Random(1e6));
        let mut clock = Clock::default();
        (0..10_000).for_each(|_| {
            let (_, reference, source) = beam.next();
            clock.observe(reference, source);
        });
        clock.fit()
    };
    assert_eq!(of(), of());
}

proptest! {
    #[test]
    fn any_times_are_borne(pairs in prop::collection::vec((any::<u64>(), any::<u64>()), 0..2_000)) {
        let mut clock = Clock::default();
        for (reference, source) in pairs {
            clock.observe(reference, source);
            if let Some(fit) = clock.fit() {
                fit.source_at(source);
            }
        }
    }

    #[test]
    fn narrow_numbers_become_whole_through_losses_and_exchanges(bits in 4_u32..=40, seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let (mut unwrap, mut newest) = (Unwrap::of_bits(bits), 0_u64);
        let half = 1_u64 << (bits - 1);
        prop_assert_eq!(unwrap.whole(0), 0);
        for _ in 0..2_000 {
            // Others were lost, or it comes late.
            let number = if random.chance(0.5) { newest + random.below(half) } else { newest - random.below(half.min(newest + 1)) };
            prop_assert_eq!(unwrap.whole(number & ((1 << bits) - 1)), number);
            newest = newest.max(number);
        }
    }
}

#[test]
fn a_counter_of_any_period_goes_on_and_reaches_back_as_far_as_it_may() {
    let whole = |period, back, counts: &[u64]| -> Vec<u64> {
        let mut unwrap = Unwrap::of_period(Some(period), back);
        counts.iter().map(|count| unwrap.whole(*count)).collect()
    };
    assert_eq!(whole(9, 2, &[7, 8, 0, 1, 8, 0]), [7, 8, 9, 10, 8, 9]);
    assert_eq!(whole(1 << 16, 1024, &[65_535, 1, 0, 4, 65_535]), [65_535, 65_537, 65_536, 65_540, 65_535]);
    assert_eq!(whole(256, 64, &[0, 100, 200, 44, 255]), [0, 100, 200, 300, 255]);
    assert_eq!(whole(256, 128, &[0, 100, 200, 44, 172]), [0, 100, 200, 300, 172]);
}

#[test]
fn what_is_no_count_or_far_from_all_is_forgotten() {
    let within = |period: Option<u64>, counts: &[u64]| -> Vec<Option<u64>> {
        let mut unwrap = Unwrap::of_period(period, period.map_or(0, |period| (period / 4).min(1024)));
        counts.iter().map(|count| unwrap.whole_within(*count, 1 << 30)).collect()
    };
    assert_eq!(within(Some(9), &[8, 9, 0]), [Some(8), None, Some(9)]);
    assert_eq!(within(Some(1 << 32), &[5, 3 << 30, 6]), [Some(5), None, Some(6)]);
    assert_eq!(within(Some(1 << 32), &[0, 1 << 31]), [Some(0), None]);
    assert_eq!(within(None, &[5, u64::MAX, 4]), [Some(5), None, Some(4)]);
}

#[test]
fn numbers_of_all_bits_are_whole_already() {
    let mut unwrap = Unwrap::of_bits(64);
    for number in [5, 3, u64::MAX >> 2, 0] {
        assert_eq!(unwrap.whole(number), number);
    }
}
