//! Windows and the ROBs that hold their data, in all layouts.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use trigger::{Detector, Filter, Steering, SubSystem, Window};

use crate::common::regroup::{module_of, regroup};
use crate::common::{detector, level2, physics, reference_menu, sample};

const LAYOUTS: [&str; 3] = ["rob160", "rob40", "rob4"];

#[test]
fn a_window_has_exactly_the_robs_of_its_channels() {
    let Some(physics) = physics("a_window_has_exactly_the_robs_of_its_channels") else { return };
    let detectors = LAYOUTS.map(|layout| detector(&physics, layout));
    let calorimeter = prop_oneof![Just(SubSystem::EmCalo), Just(SubSystem::HadCalo)];
    let window = (calorimeter, -20..220_i32, 0..40_i32, -300..600_i32, 1..300_i32);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    runner
        .run(&window, |(sub, eta, etas, phi, phis)| {
            let window = Window { sub, eta: eta..eta + etas, phi: phi..phi + phis };
            for detector in &detectors {
                let found: Vec<u32> = detector.robs(&window).collect();
                prop_assert_eq!(&found, &by_channels(detector, &window), "{} {:?}", detector.layout(), &window);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_window_of_angles_has_exactly_the_robs_of_its_corners_and_edges() {
    let Some(physics) = physics("a_window_of_angles_has_exactly_the_robs_of_its_corners_and_edges") else { return };
    let detectors = LAYOUTS.map(|layout| detector(&physics, layout));
    let angles = prop_oneof![Just(SubSystem::Tracker), Just(SubSystem::Muon)];
    let window = (angles, -3000..53_000_i32, 1..6000_i32, -70_000..140_000_i32, 1..5000_i32);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    runner
        .run(&window, |(sub, eta, etas, phi, phis)| {
            let window = Window { sub, eta: eta..eta + etas, phi: phi..phi + phis };
            for detector in &detectors {
                let found: Vec<u32> = detector.robs(&window).collect();
                prop_assert_eq!(&found, &by_angles(detector, &window), "{} {:?}", detector.layout(), &window);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn decisions_do_not_depend_on_how_the_same_hits_are_cut_into_robs() {
    let Some(physics) = physics("decisions_do_not_depend_on_how_the_same_hits_are_cut_into_robs") else { return };
    let fine = detector(&physics, "rob160");
    for layout in ["rob40", "rob4"] {
        let coarse = detector(&physics, layout);
        let mut contexts = [&fine, &coarse].map(|detector| {
            let menu = reference_menu(detector);
            (Steering::new(Arc::clone(&menu)), Filter::new(menu))
        });
        for name in ["zee_mu20", "zmumu_mu20", "dijet_mu20"] {
            for event in sample::accepted(&physics.join(format!("{name}.parquet"))) {
                let events = [event.clone(), regroup(&event, &fine, &coarse)];
                let [expected, found] = [0, 1].map(|n| {
                    let (steering, filter) = &mut contexts[n];
                    let decision = level2(steering, &events[n]);
                    let filtered = filter.decide(event.number, &events[n].slices());
                    assert_eq!((filtered.missing_fragments, filtered.bad_payloads), (0, 0));
                    (decision.passed, filtered.passed, steering.features().collect::<Vec<_>>())
                });
                assert_eq!(found, expected, "{name}, event {} in {layout}", event.number);
            }
        }
    }
}

/// Goes through all channels of the sub-detector.
fn by_channels(detector: &Detector, window: &Window) -> Vec<u32> {
    let grid = window.sub.grid();
    let mut robs = BTreeSet::new();
    for eta in window.eta.clone().filter(|eta| (0..grid.eta.cast_signed()).contains(eta)) {
        for phi in window.phi.clone() {
            let phi = phi.rem_euclid(grid.phi.cast_signed()).cast_unsigned();
            let channel = if window.sub == SubSystem::EmCalo { eta << 8 } else { eta * 64 }.cast_unsigned() + phi;
            robs.insert(source(detector, window.sub, channel << 16));
        }
    }
    robs.into_iter().collect()
}

/// A module is larger than the step, so no module lies between two points that are looked at.
fn by_angles(detector: &Detector, window: &Window) -> Vec<u32> {
    let steps = |range: &std::ops::Range<i32>| {
        let last = range.end - 1;
        range.clone().step_by(1000).chain([last]).collect::<Vec<_>>()
    };
    let mut robs = BTreeSet::new();
    // The cut at the ends of η comes first: beyond them there is nothing to look at.
    let eta = window.eta.start.max(0)..window.eta.end.min(50_000);
    if eta.is_empty() {
        return Vec::new();
    }
    for eta in steps(&eta) {
        for phi in steps(&window.phi) {
            let (eta_q, phi_q) = (eta - 25_000, phi.rem_euclid(65_536).cast_unsigned());
            robs.insert(source(detector, window.sub, phi_q << 16 | u32::from(eta_q as u16)));
        }
    }
    robs.into_iter().collect()
}

fn source(detector: &Detector, sub: SubSystem, word: u32) -> u32 {
    detector.modules(sub).sub_detector << 16 | module_of(detector, sub, word) as u32
}
