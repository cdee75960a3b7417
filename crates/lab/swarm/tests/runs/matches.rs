//! Data that belong to triggers by time or count: what sources do is really met, and what was once made wrong of it.

use std::time::Duration;

use base::ids::Role;
use configuration::OnMissing;
use dataflow::report::{EfdCounters, RosCounters};
use simulator::world::{Habits, Rhythm, Telling};
use swarm::{
    ByCount, ByTime, Drawn, EDITION_OF_MATCHES, InputKind, LEVELS, Matched, Matching, OwnClock, Plan, Sending,
};

const US: Duration = Duration::from_micros(1);

fn by_time(clock: OwnClock, telling: Telling) -> ByTime {
    ByTime { before: US * 20, after: US * 20, most: 100, is_exclusive: false, telling, clock }
}

/// A leader, and three sources that follow by this, on two read-out systems.
fn plain(events: u64, matched: Matched) -> Plan {
    let drawn = |(ros, rob): (usize, u16)| {
        let leads = (ros, rob) == (0, 0);
        Drawn {
            ros,
            rob,
            leads,
            one_by_one: false,
            rhythm: if leads { Rhythm::Alone(US * 200) } else { Rhythm::Behind(US * 20) },
            latency: US * 5,
            is_unordered: false,
            on_missing: OnMissing::Flag,
            cut: None,
            matched: (!leads).then_some(matched),
            on_loss: configuration::ProcessorLoss::Stop,
            habits: Habits::default(),
        }
    };
    let matching = Some(Matching { grace: US * 2_000, zero_ns: 1 << 40 });
    let each = [(0, 0), (0, 1), (1, 0), (1, 1)].map(drawn).to_vec();
    Plan::plain(events).with(|plan| {
        plan.input = InputKind::Level1;
        plan.readout.robs_per_ros = 2;
        plan.readout.pages = 1_000;
        plan.readout.sending = Some(Sending { gaps: 0.0, more: 0, each, slices: None, matching });
        plan.counts.ros = 2;
    })
}

#[test]
fn every_event_has_the_data_of_good_sources() {
    let telling = Telling { spread: US * 5, lasts: US * 3, ahead_ns: 12_345, drift: 0 };
    let own = Telling { drift: 50_000, ..telling };
    let all = [
        Matched::Time(by_time(OwnClock::Common, telling)),
        Matched::Time(by_time(OwnClock::InStep, own)),
        Matched::Count(ByCount { first: 0, telling: Telling::default(), has_clock: false }),
        Matched::Count(ByCount { first: 77, telling: own, has_clock: true }),
    ];
    for matched in all {
        let outcomes = plain(300, matched).run_checked();
        let account = outcomes.account;
        assert_eq!((account.level1, account.built_incomplete, account.residual), (300, 0, 0), "{account:#?}");
        let links = outcomes.ending.reports.values().flat_map(|report| &report.links);
        let unpassed: u64 = links.map(|link| link.counters.unpassed).sum();
        assert!(unpassed <= 4, "events but the last are passed: {unpassed}");
    }
}

/// What plans have sources do is what their runs see, at all levels of faults.
#[test]
fn data_by_time_and_count_meet_every_policy() {
    let (mut met, mut filtered) = (RosCounters::default(), EfdCounters::default());
    let (mut by_time, mut by_count, mut known) = (0, 0, 0);
    for seed in 0..400 {
        let plan = Plan::draw_in(EDITION_OF_MATCHES, seed, seed as u32 % LEVELS);
        let outcomes = plan.run_checked();
        for report in outcomes.ending.reports.values().filter(|report| report.role == Role::Ros) {
            for link in &report.links {
                met.cleared += link.counters.cleared;
                met.unpassed += link.counters.unpassed;
                met.dropped_old += link.counters.dropped_old;
                met.dropped_unplaced += link.counters.dropped_unplaced;
                met.never_triggered += link.counters.never_triggered;
                known += u64::from(link.clock.is_some());
            }
        }
        let efds = outcomes.ending.reports.values().filter(|report| report.role == Role::Efd);
        let of_efds = EfdCounters::total(efds);
        filtered.dropped_incomplete += of_efds.dropped_incomplete;
        filtered.debug_incomplete += of_efds.debug_incomplete;
        let matched = plan.readout.sending.iter().flat_map(|sending| &sending.each).filter_map(|drawn| drawn.matched);
        matched.for_each(|matched| match matched {
            Matched::Time(_) => by_time += 1,
            Matched::Count(_) => by_count += 1,
        });
    }
    let counts = [met.cleared, met.unpassed, met.dropped_old, met.dropped_unplaced, met.never_triggered];
    let withheld = [filtered.dropped_incomplete, filtered.debug_incomplete];
    assert!(counts.iter().chain(&withheld).all(|count| *count > 20), "{counts:?} {withheld:?}");
    assert!(by_time > 200 && by_count > 100 && known > 20, "{by_time} {by_count} {known}");
}
