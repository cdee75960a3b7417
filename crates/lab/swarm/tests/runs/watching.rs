//! Events are shown to those who watch, and nothing else changes.

use std::time::Duration;

use base::ids::Role;
use configuration::{Sampling, SamplingStage};
use dataflow::level1::pace::Spacing;
use dataflow::report::{Counters, EfdCounters, SfiCounters};
use simulator::world::{Fault, Links, Outcomes, Watched};
use swarm::{InputKind, Plan};

/// A run in which somebody asks for samples at these times.
fn watched(plan: &Plan, at_us: &[u64]) -> Outcomes {
    let faults = at_us.iter().map(|at| (Duration::from_micros(*at), Fault::Watch(Watched::WholeEvents))).collect();
    plan.clone().with(|plan| plan.course.faults = faults).run_checked()
}

/// All counts of all applications, but for those of samples.
fn counts(outcomes: &Outcomes) -> Vec<(Role, Vec<u64>)> {
    let reports = outcomes.ending.reports.values();
    let without_samples = |role, values: &[u64]| match role {
        Role::Sfi => SfiCounters { samples: 0, samples_lost: 0, ..SfiCounters::from_values(values) }.to_values(),
        Role::Efd => EfdCounters { samples: 0, samples_lost: 0, ..EfdCounters::from_values(values) }.to_values(),
        _ => values.to_vec(),
    };
    reports.map(|report| (report.role, without_samples(report.role, &report.counters))).collect()
}

fn sfis(outcomes: &Outcomes) -> SfiCounters {
    SfiCounters::total(outcomes.ending.reports.values().filter(|report| report.role == Role::Sfi))
}

/// A watcher that asks once and then takes nothing more is no reason for anything. The run is the same to the last
/// count and to its last moment, whether nobody watches, somebody does, or somebody has stopped to.
#[test]
fn a_watcher_that_is_stuck_changes_no_count() {
    for input in [InputKind::Level2, InputKind::Level1] {
        let stages = vec![SamplingStage::Sfi, SamplingStage::Efd];
        let links = Links { latency: Duration::ZERO, ..Links::perfect() };
        let sampling = Sampling { stages, ..Sampling::default() };
        let spacing = Spacing::Fixed(Duration::from_micros(200));
        let plan = Plan::plain(500).with(|plan| {
            plan.input = input;
            plan.triggers.spacing = spacing;
            plan.network.links = links;
            plan.sampling = sampling;
        });
        let unwatched = watched(&plan, &[]);
        let stuck = watched(&plan, &[200]);
        let all_along: Vec<u64> = (1..400).map(|times| times * 200).collect();
        let lively = watched(&plan, &all_along);
        for other in [&stuck, &lively] {
            assert_eq!((counts(other), &other.account), (counts(&unwatched), &unwatched.account));
            assert_eq!(other.ended, unwatched.ended);
        }
        assert_eq!((sfis(&unwatched).samples, sfis(&unwatched).samples_lost), (0, 0));
        let c = sfis(&stuck);
        assert_eq!(
            c.samples,
            2 * u64::from(plan.sampling.samples),
            "each of two builders has given what was asked for"
        );
        assert!(c.samples + c.samples_lost > 100 && c.samples_lost > 100, "{c:?}");
        assert!(sfis(&lively).samples > 2 * c.samples, "{:?}", sfis(&lively));
    }
}
