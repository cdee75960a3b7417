//! Seeded random runs of whole partitions with every fault of a network and its hosts.

mod world;

use world::World;
use world::plan::{InputKind, Plan, Planted};

/// Seeds per level of faults; `WEIR_SEEDS` sets another number for long campaigns.
fn seeds() -> u64 {
    std::env::var("WEIR_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_600)
}

/// Prints the run of one seed: `WEIR_SEED=LEVEL:SEED cargo test -p dataflow --test seeds one_seed -- --nocapture`.
#[test]
fn one_seed() {
    let Ok(text) = std::env::var("WEIR_SEED") else { return };
    let (level, seed) = text.split_once(':').expect("WEIR_SEED is LEVEL:SEED");
    let plan = Plan::draw(seed.parse().expect("a seed"), level.parse().expect("a level"));
    eprintln!("{plan:#?}");
    plan.applications().iter().for_each(|app| eprintln!("{} {}", app.node.0, app.name));
    let mut world = World::new(plan);
    world.prints = true;
    eprintln!("{:#?}", world.run().account);
}

fn campaign(level: u32) {
    for seed in 0..seeds() {
        let plan = Plan::draw(seed, level);
        let result = std::panic::catch_unwind(|| World::new(plan.clone()).run());
        assert!(result.is_ok(), "level {level}, seed {seed}: {plan:#?}");
    }
}

#[test]
fn healthy_partitions() {
    campaign(0);
}

#[test]
fn lossy_networks_and_late_starts() {
    campaign(1);
}

#[test]
fn restarts() {
    campaign(2);
}

#[test]
fn deaths_and_forced_ends() {
    campaign(3);
}

#[test]
fn the_same_plan_gives_the_same_trace() {
    for seed in 0..20 {
        let trace = |plan: Plan| World::new(plan).run().trace;
        assert_eq!(trace(Plan::draw(seed, 2)), trace(Plan::draw(seed, 2)));
        assert_ne!(trace(Plan::draw(seed, 2)), trace(Plan::draw(seed + 1, 2)));
    }
}

#[test]
fn a_planted_loss_a_duplicate_and_a_miscount_are_found() {
    for planted in [Planted::LostEvent, Planted::Duplicate, Planted::Miscount] {
        let outcome = World::new(Plan { planted: Some(planted), ..Plan::plain(50) }).run();
        assert!(outcome.account.residual > 0, "{planted:?}: {:#?}", outcome.account);
    }
}

#[test]
fn a_plain_run_accounts_for_everything() {
    for input in [InputKind::Level2, InputKind::Level1, InputKind::SelfTrigger] {
        let outcome = World::new(Plan { input, ..Plan::plain(500) }).run();
        assert!(outcome.ending.reasons.is_empty(), "{:?}", outcome.ending.reasons);
        let account = outcome.account;
        assert_eq!((account.level1, account.residual), (500, 0), "{account:#?}");
        assert!(account.recorded > 100 && account.recorded == account.recorded_copies, "{account:#?}");
    }
}

#[test]
fn without_a_builder_what_level_2_accepts_counts_as_recorded() {
    let outcome = World::new(Plan { input: InputKind::Level2Only, ..Plan::plain(500) }).run();
    let account = outcome.account;
    assert_eq!((account.level1, account.residual, account.recorded_copies), (500, 0, 0), "{account:#?}");
    assert!(account.level2_rejected > 100 && account.level2_accepted > 100, "{account:#?}");
    assert_eq!((account.built_complete, account.recorded), (account.level2_accepted, account.level2_accepted));
}
