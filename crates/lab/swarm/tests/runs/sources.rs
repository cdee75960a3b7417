//! Links that push: what sources do is really met, and what was once made wrong of it.

use std::time::Duration;

use configuration::{OnMissing, ProcessorLoss};
use simulator::world::{Doings, Habits, Rhythm};
use swarm::{Drawn, EDITION_OF_LINKS, InputKind, LEVELS, Plan, Sending};

/// A partition with two sources on each of two read-out systems, which do nothing amiss; the first leads.
fn plain(events: u64) -> Plan {
    let drawn = |(ros, rob): (usize, u16)| Drawn {
        ros,
        rob,
        leads: (ros, rob) == (0, 0),
        one_by_one: false,
        rhythm: if (ros, rob) == (0, 0) {
            Rhythm::Alone(Duration::from_micros(50))
        } else {
            Rhythm::Behind(Duration::from_micros(20))
        },
        latency: Duration::from_micros(5),
        is_unordered: false,
        on_missing: OnMissing::Flag,
        cut: None,
        matched: None,
        on_loss: ProcessorLoss::Stop,
        habits: Habits::default(),
    };
    let each = [(0, 0), (0, 1), (1, 0), (1, 1)].map(drawn).to_vec();
    let sending = Some(Sending { gaps: 0.3, more: 0, each, slices: None, matching: None });
    Plan::plain(events).with(|plan| {
        plan.input = InputKind::Level1;
        plan.readout.robs_per_ros = 2;
        plan.readout.sending = sending;
    })
}

#[test]
fn every_fragment_of_good_sources_is_recorded() {
    for input in [InputKind::Level1, InputKind::Level2] {
        let outcomes = plain(500).with(|plan| plan.input = input).run_checked();
        let account = outcomes.account;
        assert_eq!((account.level1, account.built_incomplete, account.residual), (500, 0, 0), "{account:#?}");
        assert!(outcomes.sources.iter().all(|source| source.sent == 500), "{:?}", outcomes.sources);
        assert!(outcomes.issued.values().last().is_some_and(|last| last.0 > 600), "numbers have gaps");
    }
}

/// What plans have sources do is what their runs see, at all levels of faults.
#[test]
fn sources_misbehave_in_every_way_there_is() {
    let mut met = Doings::default();
    let (mut dead_leaders, mut late, mut silent, mut unordered, mut tolerated) = (0, 0, 0, 0, 0);
    let mut read_out_crashed = 0;
    for seed in 0..600 {
        let plan = Plan::draw_in(EDITION_OF_LINKS, seed, seed as u32 % LEVELS);
        let outcomes = plan.run_checked();
        let sources = &outcomes.setup.detectors.each;
        for (source, doings) in sources.iter().zip(&outcomes.sources) {
            add(&mut met, doings);
            dead_leaders += u64::from(source.leads && doings.died > 0);
            late += u64::from(!source.habits.late.is_zero());
            silent += u64::from(source.habits.is_silent && doings.connected > 0);
            read_out_crashed += u64::from(outcomes.touched.contains(&source.ros));
        }
        let drawn = plan.readout.sending.iter().flat_map(|sending| &sending.each);
        drawn.for_each(|drawn| {
            unordered += u64::from(drawn.is_unordered);
            tolerated += u64::from(drawn.on_missing == OnMissing::Tolerate);
        });
    }
    let Doings { sent, swapped, doubled, damaged, wild, back, left_out, invented, idle, hesitated, .. } = met;
    let Doings { unasked, turned_off, blocked, died, returned, unended, .. } = met;
    let by_fragment = [sent, swapped, doubled, damaged, wild, back, left_out, invented, idle, hesitated, unasked];
    let by_source = [turned_off, blocked, died, returned, unended, late, silent, unordered, tolerated, dead_leaders];
    assert!(by_fragment.iter().all(|count| *count > 50), "{met:?}");
    assert!(by_source.iter().all(|count| *count > 5) && read_out_crashed > 20, "{by_source:?} {read_out_crashed}");
}

pub(super) fn add(sum: &mut Doings, more: &Doings) {
    sum.sent += more.sent;
    sum.swapped += more.swapped;
    sum.doubled += more.doubled;
    sum.damaged += more.damaged;
    sum.wild += more.wild;
    sum.back += more.back;
    sum.left_out += more.left_out;
    sum.invented += more.invented;
    sum.idle += more.idle;
    sum.hesitated += more.hesitated;
    sum.unasked += more.unasked;
    sum.turned_off += more.turned_off;
    sum.blocked += more.blocked;
    sum.died += more.died;
    sum.returned += more.returned;
    sum.unended += more.unended;
}

/// A read-out system that gave up waiting named the fragment of a source that events may be without.
#[test]
fn an_event_is_complete_without_a_tolerated_source_that_is_late() {
    holds(21, 1);
}

/// Level 1 was to issue what the leading source had sent, and there was no DFM any more to take it.
#[test]
fn a_run_with_a_leading_source_ends_when_its_dfm_has_died() {
    holds(21, 4);
}

/// A source was lost when level 1 had begun and its read-out system had not heard of that: it was awaited for ever.
#[test]
fn a_source_that_is_lost_when_the_run_has_begun_does_not_hold_it() {
    holds(1_059, 1);
}

/// The supervisor had no unit of level 2 left, was full, and level 1 was to issue more before it ended.
#[test]
fn a_run_with_a_leading_source_ends_when_level_2_is_full_for_ever() {
    holds(1_229, 3);
}

/// The leading source died between the order to stop and its end, and returned: nobody told it again.
#[test]
fn a_leading_source_that_dies_while_it_stops_and_returns_is_stopped_again() {
    holds(18, 3);
}

fn holds(seed: u64, level: u32) {
    Plan::draw_in(EDITION_OF_LINKS, seed, level).run_checked();
}
