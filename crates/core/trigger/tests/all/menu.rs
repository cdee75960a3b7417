//! What a menu refuses, which events prescales take, and the selection on hits made by hand.

use std::fs;
use std::sync::Arc;

use trigger::{
    AlgorithmSpec, ChainSpec, Cuts, Detector, DetectorError, Filter, Menu, MenuError, Next, Roi, RoiKind, Steering,
    SubSystem,
};

use crate::common::chains::{chain, reference_chains};
use crate::common::{detector, physics};

#[test]
fn errors_name_the_chain_what_is_wrong_and_what_there_is() {
    let test = "errors_name_the_chain_what_is_wrong_and_what_there_is";
    let Some(physics) = physics(test) else { return };
    let detector = detector(&physics, "rob160");
    let error = |change: &dyn Fn(&mut Vec<ChainSpec>)| {
        let mut chains = reference_chains();
        change(&mut chains);
        Menu::new(Arc::clone(&detector), &chains, Cuts::default()).unwrap_err().to_string()
    };
    let found = error(&|chains| chains[3].item = "L1_MU21".into());
    assert!(found.starts_with("chain 3 `mu20`: unknown level-1 item `L1_MU21`; known are L1_EM7, L1_EM15"), "{found}");
    let found = error(&|chains| {
        chains[4].algorithm = AlgorithmSpec::Muon { threshold: "EM7".into(), et_mev: 1, count: 1 };
    });
    let expected = "chain 4 `2mu6`: unknown level-1 threshold `EM7` for muons; known are MU4, MU6, MU10, MU20";
    assert_eq!(found, expected);
    let found = error(&|chains| chains[8].name = "e25i".into());
    assert_eq!(found, "chain 8 is called `e25i` like chain 0: give each its own name");
    let found = error(&|chains| chains.extend((0..56).map(|n| pass(&format!("c{n}")))));
    assert_eq!(found, "the menu has 65 chains; at most 64 are possible");
    let found = error(&|chains| chains[1].prescale = 0);
    assert!(found.starts_with("chain 1 `2e15i`, `prescale`: expected 1 or more"), "{found}");
    let found = error(&|chains| chains[2].name.clear());
    assert_eq!(found, "chain 2 ``, `name`: expected a name, found none");
    let found = error(&|chains| {
        chains[5].algorithm = AlgorithmSpec::Jet { threshold: "J75".into(), et_mev: -1, count: 1 };
    });
    assert_eq!(found, "chain 5 `j100`, `et_mev`: expected 0 or more, found -1");
    let found = error(&|chains| {
        chains[5].algorithm = AlgorithmSpec::Jet { threshold: "J75".into(), et_mev: 1, count: 0 };
    });
    assert_eq!(found, "chain 5 `j100`, `count`: expected 1 or more, found 0");
    let found = error(&|chains| chains[0].filter_et_mev = Some(24_999));
    assert_eq!(found, "chain 0 `e25i`, `filter_et_mev`: expected at least the cut of level 2, 25000, found 24999");
    let found = error(&|chains| chains[8].filter_et_mev = Some(1));
    assert!(found.starts_with("chain 8 `rnd`, `filter_et_mev`: expected none"), "{found}");
}

#[test]
fn sixty_four_chains_are_possible() {
    let Some(physics) = physics("sixty_four_chains_are_possible") else { return };
    let chains: Vec<ChainSpec> = (0..64).map(|n| pass(&format!("c{n}"))).collect();
    let menu = Menu::new(detector(&physics, "rob4"), &chains, Cuts::default()).unwrap();
    assert_eq!(menu.input(1, 1 << 17), u64::MAX);
    assert_eq!(menu.input(1, !(1 << 17)), 0);
}

#[test]
fn constants_out_of_range_are_refused() {
    let Some(physics) = physics("constants_out_of_range_are_refused") else { return };
    let detector = detector(&physics, "rob160");
    let bad = [
        Cuts { r_eta_min_permil: 1001, ..Cuts::default() },
        Cuts { em_calibration_permil: 0, ..Cuts::default() },
        Cuts { stub_delta_phi_q_max: 40_000, ..Cuts::default() },
        Cuts { track_delta_eta_max: f64::NAN, ..Cuts::default() },
        Cuts { stub_pt_factor: -1.0, ..Cuts::default() },
    ];
    for (cuts, key) in bad.into_iter().zip(["r_eta", "em_cal", "stub_delta_phi", "track_delta_eta", "stub_pt"]) {
        let error = Menu::new(Arc::clone(&detector), &reference_chains(), cuts).unwrap_err();
        assert!(matches!(&error, MenuError::Cut(cut) if cut.key.starts_with(key)), "{error}");
    }
}

#[test]
fn a_detector_description_that_cannot_be_used_says_where() {
    let Some(physics) = physics("a_detector_description_that_cannot_be_used_says_where") else { return };
    let text = fs::read_to_string(physics.join("detector.json")).unwrap();
    let unknown = Detector::from_json(&text, "rob99").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "unknown read-out layout `rob99`: the detector description has rob160, rob4, rob40"
    );
    assert!(matches!(Detector::from_json("{", "rob160"), Err(DetectorError::Json(_))));
    let cases = [
        ("\"n_eta\": 200", "\"n_eta\": 100", "em_calo.n_eta", "200", "100"),
        ("\"b_tesla\": 2.0", "\"b_tesla\": 0", "solenoid.b_tesla", "above 0", "0"),
        ("\"mev_et_per_count\": 50", "\"mev_et_per_count\": \"x\"", "had_calo.mev_et_per_count", "1 to 1000", "x"),
        ("\"eta_modules\": 4", "\"eta_modules\": 0", "layouts.rob160.TRACKER.eta_modules", "1 to 50000", "0"),
        (
            "\"bit\": 6,\n    \"name\": \"EM20I\"",
            "\"bit\": 32,\n    \"name\": \"\"",
            "em_thresholds[6].bit",
            "31",
            "32",
        ),
        ("\"0x41\": \"EM_CALO\"", "\"0x41\": \"EMC\"", "sub_detectors", "EM_CALO", "none"),
        ("\"q_over_pt_unit_per_gev\": 3.125e-05", "\"q\": 1", "tracker.q_over_pt_unit_per_gev", "above 0", "nothing"),
        (
            "\"q_over_pt_unit_per_gev\": 3.125e-05",
            "\"q_over_pt_unit_per_gev\": 3e-05",
            "tracker.q_over_pt_unit_per_gev",
            "one over a whole number",
            "0.00003",
        ),
        (
            "\"q_over_pt_unit_per_gev\": 3.125e-05",
            "\"q_over_pt_unit_per_gev\": 1e-10",
            "tracker.q_over_pt_unit_per_gev",
            "from 1 to 1000000000",
            "0.0000000001",
        ),
        ("\"items\": [", "\"things\": [", "level1.items", "a list", "nothing"),
        // A source identifier has 16 bits for the module.
        ("\"eta_modules\": 4", "\"eta_modules\": 8193", "layouts.rob160.TRACKER", "at most 65536 modules", "65544"),
    ];
    for (from, to, key, expected, found) in cases {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let error = Detector::from_json(&changed, "rob160").unwrap_err().to_string();
        assert!(error.contains(&format!("{key}`")), "{error}");
        assert!(error.contains(expected) && error.ends_with(found) || error.contains(found), "{error}");
    }
    let detector = Detector::from_json(&text, "rob160").unwrap();
    assert_eq!((detector.item("L1_RD0"), detector.threshold(RoiKind::TotalEt, "TE400")), (Some(17), Some(2)));
    assert_eq!((detector.source_count(), detector.sources().count()), (163, 160));
    assert!(detector.sources().is_sorted());
    assert_eq!(detector.level1_sources(), [0x73_0000, 0x76_0000, 0x77_0000]);
    let largest = Detector::from_json(&text.replacen("\"eta_modules\": 4", "\"eta_modules\": 8192", 1), "rob160");
    assert_eq!(largest.unwrap().modules(SubSystem::Tracker).count(), 1 << 16);
}

#[test]
fn prescale_and_pass_through_take_their_fraction_and_always_the_same_events() {
    let test = "prescale_and_pass_through_take_their_fraction_and_always_the_same_events";
    let Some(physics) = physics(test) else { return };
    let detector = detector(&physics, "rob4");
    let never = AlgorithmSpec::Jet { threshold: "J15".into(), et_mev: i32::MAX, count: 1 };
    let every = |name: &str, prescale, pass_through| ChainSpec {
        prescale,
        pass_through,
        ..chain(name, "L1_RD0", never.clone())
    };
    let chains = [every("a", 1, 0), every("b", 10, 0), every("c", 1, 100), every("d", 10, 10), every("e", 10, 0)];
    let menu = |chains: &[ChainSpec]| Arc::new(Menu::new(Arc::clone(&detector), chains, Cuts::default()).unwrap());
    let events = 200_000;
    let mut steering = Steering::new(menu(&chains));
    let (mut input, mut passed, mut both) = ([0_u32; 5], [0_u32; 5], 0);
    for event in 0..events {
        steering.begin(event, 1 << 17, &[]);
        let Next::Decided(decision) = steering.step(&mut std::iter::empty()) else { panic!("nothing to ask for") };
        assert_eq!(decision.passed, decision.passed_through);
        for chain in 0..5 {
            input[chain] += u32::from(decision.input >> chain & 1 != 0);
            passed[chain] += u32::from(decision.passed >> chain & 1 != 0);
        }
        both += u32::from(decision.input & 0b10010 == 0b10010);
    }
    let near = |found: u32, fraction: f64| {
        let mean = events as f64 * fraction;
        assert!((f64::from(found) - mean).abs() < 5.0 * mean.sqrt(), "{found} of {mean}");
    };
    assert_eq!((input[0], input[2]), (200_000, 200_000));
    [1, 3, 4].into_iter().for_each(|chain| near(input[chain], 0.1));
    assert_eq!([passed[0], passed[1], passed[4]], [0; 3]);
    near(passed[2], 0.01);
    near(passed[3], 0.01);
    near(both, 0.01);

    let reversed: Vec<ChainSpec> = chains.iter().rev().cloned().collect();
    let (one, other) = (menu(&chains), menu(&reversed));
    for event in (0..events).chain([u64::MAX]) {
        let (found, mirrored) = (one.input(event, 1 << 17), other.input(event, 1 << 17));
        assert_eq!(found, mirrored.reverse_bits() >> 59, "a chain takes the same events at another place of a menu");
        let through = (one.passed_through(event, found), other.passed_through(event, mirrored));
        assert_eq!(through.0, through.1.reverse_bits() >> 59);
    }
}

#[test]
fn what_is_passed_through_is_looked_at_all_the_same() {
    let Some(physics) = physics("what_is_passed_through_is_looked_at_all_the_same") else { return };
    let jet = AlgorithmSpec::Jet { threshold: "J15".into(), et_mev: 1000, count: 1 };
    let chains = [ChainSpec { pass_through: 1, ..chain("j1", "L1_J20", jet) }];
    let menu = Arc::new(Menu::new(detector(&physics, "rob4"), &chains, Cuts::default()).unwrap());
    let mut steering = Steering::new(Arc::clone(&menu));
    let jet = Roi { kind: 1, ieta: 20, iphi: 63, thresholds: 1, ..Roi::default() };
    steering.begin(5, 1 << 10, &[jet]);
    assert_eq!(steering.step(&mut std::iter::empty()), Next::Ask(vec![0x0041_0000, 0x0051_0000]));
    let Next::Decided(decision) = steering.step(&mut std::iter::empty()) else { panic!("one step") };
    assert_eq!((decision.passed, decision.passed_through), (1, 1));
    assert_eq!(steering.features().count(), 1);
    let mut filter = Filter::new(menu);
    let level2: Vec<u8> = decision.to_words().iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(filter.decide(5, &[(trigger::LEVEL2_RESULT.0, &level2)]).passed, 1);
    assert_eq!(filter.decide(5, &[(trigger::LEVEL2_RESULT.0, &level2[4..])]).bad_payloads, 1);
}

fn pass(name: &str) -> ChainSpec {
    chain(name, "L1_RD0", AlgorithmSpec::Pass)
}
