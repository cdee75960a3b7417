//! The event filter after level 2.

use std::sync::Arc;

use trigger::{
    ChainSpec, Cuts, FilterResult, LEVEL2_RESULT, Menu, Steering, Values, passed_of_trigger_info, trigger_info,
};

use crate::common::chains::reference_chains;
use crate::common::{detector, level2, physics, sample};

#[test]
fn tighter_cuts_drop_exactly_what_is_below_them() {
    let Some(physics) = physics("tighter_cuts_drop_exactly_what_is_below_them") else { return };
    let detector = detector(&physics, "rob160");
    let tighter: Vec<ChainSpec> = reference_chains().into_iter().map(tighten).collect();
    let menu = Arc::new(Menu::new(detector, &tighter, Cuts::default()).unwrap());
    let mut steering = Steering::new(Arc::clone(&menu));
    let mut filter = trigger::Filter::new(Arc::clone(&menu));
    let (mut kept, mut dropped) = (0, 0);
    for event in sample::accepted(&physics.join("dijet_mu0.parquet")) {
        let decision = level2(&mut steering, &event);
        let cut = |chain: &str| if chain == "j100" { 150_000 } else { 30_000 };
        let jets = |chain: &str| {
            let bit = menu.names().position(|name| name == chain).unwrap();
            let above = steering.features().filter(|feature| {
                usize::from(feature.chain) == bit
                    && matches!(feature.values, Values::Jet { et_mev } if et_mev >= cut(chain))
            });
            (bit, above.count())
        };
        let (j100, above) = jets("j100");
        let result = bytes(&decision.to_words());
        let mut fragments = event.slices();
        fragments.push((LEVEL2_RESULT.0, &result));
        let filtered = filter.decide(event.number, &fragments);
        assert_eq!(filtered.input, decision.passed);
        assert_eq!(filtered.passed & !decision.passed, 0);
        if decision.passed >> j100 & 1 != 0 {
            assert_eq!(filtered.passed >> j100 & 1 != 0, above > 0, "event {}", event.number);
            *(if above > 0 { &mut kept } else { &mut dropped }) += 1;
        }
    }
    assert!(kept > 100 && dropped > 100, "{kept} {dropped}");
}

#[test]
fn a_level_2_result_says_which_chains_run() {
    let Some(physics) = physics("a_level_2_result_says_which_chains_run") else { return };
    let menu = crate::common::reference_menu(&detector(&physics, "rob160"));
    let mut steering = Steering::new(Arc::clone(&menu));
    let mut filter = trigger::Filter::new(Arc::clone(&menu));
    for event in &sample::accepted(&physics.join("zee_mu20.parquet"))[..100] {
        let decision = level2(&mut steering, event);
        let without = filter.decide(event.number, &event.slices());
        assert_eq!(without.input, decision.input);
        let mut none = decision;
        (none.passed, none.passed_through) = (0, 0);
        let result = bytes(&none.to_words());
        let mut fragments = event.slices();
        fragments.push((LEVEL2_RESULT.0, &result));
        assert_eq!((filter.decide(event.number, &fragments).input, filter.features().count()), (0, 0));
        let torn = [&fragments[..163], &[(LEVEL2_RESULT.0, &result[..20])]].concat();
        let found = filter.decide(event.number, &torn);
        assert_eq!((found.passed, found.bad_payloads), (without.passed, 1), "as if there were none");
        assert_eq!(filter.problems()[0].0, LEVEL2_RESULT);
        let info = trigger_info(without.passed);
        assert_eq!(passed_of_trigger_info(&info), Some(without.passed));
        let recorded = FilterResult { decision: without, reason: String::new() };
        assert_eq!(FilterResult::from_bytes(&bytes(&recorded.to_words())), Ok(recorded));
    }
}

#[test]
fn the_sum_of_transverse_energy_is_that_of_all_cells() {
    let Some(physics) = physics("the_sum_of_transverse_energy_is_that_of_all_cells") else { return };
    let menu = crate::common::reference_menu(&detector(&physics, "rob160"));
    let mut filter = trigger::Filter::new(menu);
    let mut seen = 0;
    for event in sample::accepted(&physics.join("dijet_mu20.parquet")) {
        filter.decide(event.number, &event.slices());
        let Some(energy) = filter.transverse_energy() else { continue };
        let cells = |sub: u32, mev: i64| -> i64 {
            let of_sub = event.fragments.iter().filter(|(source_id, _)| source_id >> 16 == sub);
            of_sub
                .flat_map(|(_, payload)| eformat::words(payload.as_bytes()).skip(1))
                .map(|word| i64::from(word & 0xffff) * mev)
                .sum()
        };
        assert_eq!(energy.sum_mev, cells(0x41, 20) + cells(0x51, 50));
        assert!(energy.missing_et_mev() <= energy.sum_mev as f64);
        seen += 1;
    }
    assert!(seen > 100, "{seen}");
}

fn tighten(chain: ChainSpec) -> ChainSpec {
    match chain.name.as_str() {
        "j100" => ChainSpec { filter_et_mev: Some(150_000), ..chain },
        "xe60" => ChainSpec { filter_et_mev: Some(90_000), ..chain },
        _ => chain,
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
