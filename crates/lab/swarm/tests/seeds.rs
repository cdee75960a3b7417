//! Seeded random runs of whole partitions with every fault of a network and its hosts.

use simulator::world::{Planted, Trace};
use swarm::{
    EDITION, EDITION_OF_CRATE_LINKS, EDITION_OF_CRATES, EDITION_OF_JOINS, EDITION_OF_LINKS, EDITION_OF_MATCHES,
    EDITION_OF_MODULES, EDITION_OF_PROCESSORS, EDITION_OF_RUNS, EDITION_OF_SLICES, EDITION_OF_WATCHERS,
    EDITION_OF_WITHHELD, InputKind, LEVELS, Plan,
};

/// Seeds per level of faults; `WEIR_SEEDS` sets another number for long campaigns.
fn seeds() -> u64 {
    let seeds = number("WEIR_SEEDS").unwrap_or(500);
    assert!(seeds > 0, "WEIR_SEEDS=0 would test nothing");
    seeds
}

/// The first seed; `WEIR_FIRST_SEED` sets another, so that each run of a series has seeds of its own.
fn first_seed() -> u64 {
    number("WEIR_FIRST_SEED").unwrap_or(0)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text}: expected a number")))
}

/// Prints the run of one seed: `WEIR_SEED=LEVEL:SEED cargo test -p swarm --test seeds one_seed -- --nocapture`; with `WEIR_LEAST`
/// set, that of the least plan that fails in the same way. Where applications join, `WEIR_EDITION` names the edition of the draws.
#[test]
fn one_seed() {
    let text = std::env::var("WEIR_SEED").unwrap_or_else(|_| "3:1".to_owned());
    let (level, seed) = text.split_once(':').expect("WEIR_SEED is LEVEL:SEED");
    let edition = number("WEIR_EDITION").map_or(EDITION, |edition| edition as u32);
    let drawn = Plan::draw_in(edition, seed.parse().expect("a seed"), level.parse().expect("a level"));
    let least = std::env::var_os("WEIR_LEAST").and_then(|_| drawn.least());
    let plan = least.map_or(drawn, |(least, _)| least);
    eprintln!("{plan:#?}\n{}", plan.to_toml().unwrap_or_default());
    plan.applications().iter().for_each(|app| eprintln!("{} {}", app.node.0, app.name));
    let run = plan.run_traced(Trace::Text(Box::new(std::io::stderr())));
    eprintln!("{:#?}\n{}", run.outcomes.account, run.failures.join("\n"));
    assert!(run.outcomes.account.level1 > 0, "the run has events");
    assert!(run.failures.is_empty(), "{:?}", run.failures);
}

fn campaign(level: u32) {
    campaign_of(level, |seed, level| Some(Plan::draw(seed, level)));
}

fn campaign_of(level: u32, draw: impl Fn(u64, u32) -> Option<Plan>) {
    let first = first_seed();
    for seed in first..first + seeds() {
        let Some(plan) = draw(seed, level) else { continue };
        if let Some(failure) = plan.verdict() {
            let (least, how) = plan.least().expect("a run repeats");
            let toml = plan.to_toml().unwrap_or_default();
            panic!("level {level}, seed {seed}: {failure}\n{plan:#?}\n{toml}\nthe least that fails: {how}\n{least:#?}");
        }
    }
}

fn campaigns_in(edition: u32) {
    levels().for_each(|level| campaign_of(level, |seed, level| Some(Plan::draw_in(edition, seed, level))));
}

/// All levels of faults, or that of `WEIR_LEVEL`.
fn levels() -> impl Iterator<Item = u32> {
    let level = number("WEIR_LEVEL").map(|level| level as u32);
    (0..LEVELS).filter(move |one| level.is_none_or(|level| level == *one))
}

#[test]
fn applications_join_whoever_else_wants_to() {
    campaigns_in(EDITION_OF_JOINS);
}

#[test]
fn sources_send_what_they_like_when_they_like() {
    campaigns_in(EDITION_OF_LINKS);
}

#[test]
fn level_1_processors_trigger_when_they_like() {
    campaigns_in(EDITION_OF_PROCESSORS);
}

#[test]
fn read_out_systems_stand_in_crates_or_alone() {
    campaigns_in(EDITION_OF_CRATES);
}

#[test]
fn links_push_within_crates() {
    campaigns_in(EDITION_OF_CRATE_LINKS);
}

#[test]
fn some_watch_and_take_nothing() {
    campaigns_in(EDITION_OF_WATCHERS);
}

#[test]
fn some_watch_read_out_systems_and_crates() {
    campaigns_in(EDITION_OF_MODULES);
}

#[test]
fn one_run_follows_another_in_the_same_processes() {
    campaigns_in(EDITION_OF_RUNS);
}

#[test]
fn events_are_slices_of_time() {
    campaigns_in(EDITION_OF_SLICES);
}

#[test]
fn data_belong_to_triggers_by_time_or_count() {
    campaigns_in(EDITION_OF_MATCHES);
}

#[test]
fn events_without_a_source_are_dropped_or_set_apart() {
    campaigns_in(EDITION_OF_WITHHELD);
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
fn single_crashes_lose_nothing() {
    campaign(4);
}

#[test]
fn several_crashes_that_have_to_do_with_one_another() {
    campaign(5);
}

#[test]
fn the_same_plan_gives_the_same_trace() {
    for seed in 0..50 {
        let trace = |plan: Plan| plan.run_traced(Trace::Hash(std::hash::DefaultHasher::new())).outcomes.trace;
        let level = seed as u32 % LEVELS;
        assert_eq!(trace(Plan::draw(seed, level)), trace(Plan::draw(seed, level)));
        assert_ne!(trace(Plan::draw(seed, level)), trace(Plan::draw(seed + 1, level)));
    }
}

#[test]
fn every_planted_bug_is_found_and_reduced() {
    for planted in Planted::ALL {
        let fails = |plan: &Plan| plan.verdict().is_some();
        let edition = match planted {
            _ if planted.is_of_joining() => EDITION_OF_JOINS,
            _ if planted.is_of_slices() => EDITION_OF_SLICES,
            _ if planted.is_of_matching() => EDITION_OF_MATCHES,
            _ if planted.is_of_crate_links() => EDITION_OF_CRATE_LINKS,
            _ => EDITION,
        };
        let with = |seed| Plan::draw_in(edition, seed, planted.level()).with(|plan| plan.planted = Some(planted));
        let found = (0..1000).find(|&seed| fails(&with(seed)));
        let plan = with(found.unwrap_or_else(|| panic!("{planted:?} is not found")));
        assert!(plan.clone().with(|plan| plan.planted = None).verdict().is_none(), "the bug is the only reason");
        let (least, _) = plan.least().expect("it fails");
        assert!(
            fails(&least)
                && least.triggers.events <= plan.triggers.events
                && least.course.faults.len() <= plan.course.faults.len()
        );
        eprintln!("{planted:?}: seed {found:?}, {} events, {:?}", least.triggers.events, least.counts);
    }
}

/// Credits are home, too, where an application has died and returned.
#[test]
fn a_lost_credit_is_found_beside_a_restart() {
    let found = (0..1000).find(|&seed| {
        let run = Plan::draw(seed, 2).with(|plan| plan.planted = Some(Planted::LostCredit)).run();
        !run.outcomes.touched.is_empty() && run.failures.iter().any(|failure| failure.contains("credits at"))
    });
    assert!(found.is_some());
}

/// More is on its way then than credits cover, whatever becomes of it.
#[test]
fn a_credit_that_is_given_twice_is_found_by_the_bounds() {
    let found = (0..100).find(|&seed| {
        let failure = Plan::draw(seed, 0).with(|plan| plan.planted = Some(Planted::DoubleCredit)).verdict();
        failure.is_some_and(|failure| failure.contains("of Pull from") || failure.contains("of Slot from"))
    });
    assert!(found.is_some());
}

#[test]
fn a_plain_run_accounts_for_everything() {
    for input in [InputKind::Level2, InputKind::Level1, InputKind::SelfTrigger] {
        let outcomes = Plan::plain(500).with(|plan| plan.input = input).run_checked();
        assert!(outcomes.ending.reasons.is_empty(), "{:?}", outcomes.ending.reasons);
        let account = outcomes.account;
        assert_eq!((account.level1, account.residual), (500, 0), "{account:#?}");
        assert!(account.recorded > 100 && account.recorded == account.recorded_copies, "{account:#?}");
    }
}

#[test]
fn without_a_builder_what_level_2_accepts_counts_as_recorded() {
    let outcomes = Plan::plain(500).with(|plan| plan.input = InputKind::Level2Only).run_checked();
    let account = outcomes.account;
    assert_eq!((account.level1, account.residual, account.recorded_copies), (500, 0, 0), "{account:#?}");
    assert!(account.level2_rejected > 100 && account.level2_accepted > 100, "{account:#?}");
    assert_eq!((account.built_complete, account.recorded), (account.level2_accepted, account.level2_accepted));
}
