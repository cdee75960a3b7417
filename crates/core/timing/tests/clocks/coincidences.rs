//! Sources that say times alone are found, and followed.

use base::random::Random;
use timing::coincidence::{Coincidence, Jump};

use crate::beam::{Beam, Spacing};

#[test]
fn a_clock_is_followed_without_numbers_through_losses_and_noise() {
    for seed in 0..20 {
        let mut run = Run::new(seed, true);
        run.beam.clock.offset_ns = 3_000.0;
        run.beam.clock.drift_ppm = 10.0;
        assert_eq!(run.take(4_000), [], "seed {seed}");
        let fit = run.coincidence.clock().fit().unwrap();
        assert!((fit.drift - 10_000_000).abs() < 500_000, "seed {seed}: {fit:?}");
        assert!(run.is_off_by() < 2_000.0, "seed {seed}: {}", run.is_off_by());
    }
}

#[test]
fn a_source_that_begins_anywhere_is_found() {
    for seed in 0..20 {
        let mut run = Run::new(seed, false);
        assert!(!run.coincidence.is_known());
        assert_eq!(run.take(400), [], "seed {seed}");
        assert!(run.coincidence.is_known() && run.is_off_by() < 5_000.0, "seed {seed}: {}", run.is_off_by());
    }
}

#[test]
fn a_step_of_a_millisecond_is_told_and_followed_within_a_hundred_triggers() {
    for (seed, step) in (0..20).flat_map(|seed| [(seed, 1e6), (seed, -1e6)]) {
        let mut run = Run::new(seed, true);
        run.beam.clock.offset_ns = 0.0;
        run.beam.clock.drift_ppm = 10.0;
        assert_eq!(run.take(2_000), [], "seed {seed}");
        let since = run.newest;
        run.beam.clock.offset_ns += step;
        let earlier = run.coincidence.source_at(since - 1_000_000);
        let jumps = run.take(100);
        let [Jump { since: told, by }] = jumps[..] else { panic!("seed {seed}: {jumps:?}") };
        assert!((by as f64 - step).abs() < 5_000.0 && told.abs_diff(since) < 50_000_000, "seed {seed}: {by} {told}");
        assert!(run.is_off_by() < 5_000.0, "seed {seed}: {}", run.is_off_by());
        let earlier = run.coincidence.source_at(since - 50_000_000).abs_diff(earlier - 49_000_000);
        assert!(earlier < 5_000, "seed {seed}: what was is not changed: {earlier}");
        assert_eq!(run.take(2_000), [], "seed {seed}");
        let clock = run.coincidence.clock();
        assert_eq!(clock.steps(), 1, "seed {seed}");
        assert!((clock.fit().unwrap().drift - 10_000_000).abs() < 1_000_000, "seed {seed}: {:?}", clock.fit());
    }
}

#[test]
fn pauses_soon_after_the_first_triggers_lose_no_clock() {
    for seed in 0..400 {
        let (mean, pause) = (50e3 + 5e3 * (seed % 50) as f64, 1e6 * (10 + seed % 20) as f64);
        let mut beam = Beam::new(seed, Spacing::Spills(mean, 32 + seed % 40, pause));
        beam.clock.offset_ns = 0.0;
        beam.now_ns = 0.0;
        beam.clock.drift_ppm *= 2.0;
        beam.clock.wild = 0.0;
        let mut coincidence = Coincidence::new(10_000, true);
        for _ in 0..400 {
            assert_eq!(pair(&mut coincidence, &mut beam), None, "seed {seed}");
            if let Some(fit) = coincidence.clock().fit() {
                let off = is_off_by(&coincidence, &beam);
                assert!(off < 10_000.0, "seed {seed}: {off} {fit:?}");
            }
        }
        assert_eq!(coincidence.clock().steps(), 0, "seed {seed}");
    }
}

#[test]
fn a_clock_that_a_long_pause_has_lost_is_found_once() {
    for seed in 0..100 {
        let mut beam = Beam::new(seed, Spacing::Spills(100e3, 150, 1e9));
        beam.clock.offset_ns = 0.0;
        beam.clock.wild = 0.0;
        let mut coincidence = Coincidence::new(10_000, true);
        beam.now_ns = 0.0;
        let mut jumps = Vec::new();
        for trigger in 0..600 {
            // Within the first pause the clock steps, too.
            beam.clock.offset_ns = if trigger < 150 { 0.0 } else { 1e6 };
            jumps.extend(pair(&mut coincidence, &mut beam));
            let off = is_off_by(&coincidence, &beam);
            assert!(!(290..299).contains(&trigger) || off < 10_000.0, "seed {seed}, {trigger}: {off}");
        }
        // Later pauses may lose it by what its slope is wrong, each once.
        assert!((1..=3).contains(&jumps.len()), "seed {seed}: {jumps:?}");
        assert!((jumps[0].by - 1_000_000).abs() < 100_000, "seed {seed}: {jumps:?}");
    }
}

#[test]
fn a_step_among_data_that_are_near_by_chance_is_found() {
    for seed in 0..100 {
        let mut beam = Beam::new(seed, Spacing::Random(100e3));
        beam.clock.offset_ns = 0.0;
        beam.now_ns = 0.0;
        beam.clock.jitter_ns = 2_000.0;
        let mut coincidence = Coincidence::new(15_000, true);
        let mut jumps = Vec::new();
        for trigger in 0..1_000 {
            beam.clock.offset_ns = if trigger < 300 { 0.0 } else { 3e6 };
            jumps.extend(pair(&mut coincidence, &mut beam));
        }
        let [Jump { by, .. }] = jumps[..] else { panic!("seed {seed}: {jumps:?}") };
        assert!((by - 3_000_000).abs() < 10_000, "seed {seed}: {by}");
    }
}

#[test]
fn what_has_nothing_to_do_with_the_triggers_is_not_found() {
    let mut coincidence = Coincidence::new(50_000, false);
    let (mut triggers, mut others) = (Beam::new(1, Spacing::Random(1e6)), Beam::new(2, Spacing::Random(1e6)));
    for _ in 0..5_000 {
        coincidence.lead(triggers.next().1);
        coincidence.follow(others.next().2);
        assert_eq!(coincidence.judge(), None);
    }
    assert!(!coincidence.is_known());
}

/// A beam whose triggers a source sees with gaps, with noise between, and a little later than they are known.
struct Run {
    beam: Beam,
    random: Random,
    coincidence: Coincidence,
    late: std::collections::VecDeque<u64>,
    newest: u64,
}

impl Run {
    fn new(seed: u64, is_found: bool) -> Self {
        let beam = Beam::new(seed, Spacing::Random(1e6));
        let coincidence = Coincidence::new(50_000, is_found);
        Self { beam, random: Random::new(!seed), coincidence, late: Default::default(), newest: 0 }
    }

    fn take(&mut self, triggers: u64) -> Vec<Jump> {
        let mut jumps = Vec::new();
        for _ in 0..triggers {
            let (_, reference, source) = self.beam.next();
            self.newest = reference;
            self.coincidence.lead(reference);
            if self.random.chance(0.8) {
                self.late.push_back(source);
            }
            if self.random.chance(0.2) {
                self.late.push_back(source + self.random.below(1_000_000));
            }
            while self.late.len() > 20 {
                self.coincidence.follow(self.late.pop_front().unwrap());
            }
            jumps.extend(self.coincidence.judge());
        }
        jumps
    }

    fn is_off_by(&self) -> f64 {
        is_off_by(&self.coincidence, &self.beam)
    }
}

/// The next trigger, and its data.
fn pair(coincidence: &mut Coincidence, beam: &mut Beam) -> Option<Jump> {
    let (_, reference, source) = beam.next();
    coincidence.lead(reference);
    coincidence.follow(source);
    coincidence.judge()
}

/// How far from the truth the source is expected now, ns.
fn is_off_by(coincidence: &Coincidence, beam: &Beam) -> f64 {
    let reference = beam.now_ns as u64;
    (coincidence.source_at(reference) as f64 - reference as f64 - beam.offset_ns()).abs()
}
