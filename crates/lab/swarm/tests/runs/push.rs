//! Push building: what is pushed need not be asked for, and what goes wrong is.

use std::time::Duration;

use base::ids::{EventId, NodeId, Role};
use dataflow::level1::pace::Spacing;
use dataflow::message::Message;
use dataflow::readout::pusher::Destination;
use dataflow::report::{DfmCounters, RosCounters, SfiCounters};

use simulator::world::{Fault, Links, Outcomes};
use swarm::{Crates, InputKind, Plan, Push};

const EVENTS: u64 = 400;
const ROS: u64 = 2;
/// Of a run without changes: one for all builders that come before its start.
const TABLES: u64 = 1;

fn push(destination: Destination) -> Option<Push> {
    Some(Push { destination, window_bytes: 3_000, bytes_per_s: None, burst_bytes: 0, group: 1, ahead: 20 })
}

/// Slow enough for every builder to have room.
fn plan(destination: Destination) -> Plan {
    let spacing = Spacing::Fixed(Duration::from_micros(400));
    Plan::plain(EVENTS).with(|plan| {
        plan.input = InputKind::Level1;
        plan.building.push = push(destination);
        plan.triggers.spacing = spacing;
    })
}

fn counts(outcomes: &Outcomes) -> (DfmCounters, SfiCounters, RosCounters) {
    let of = |role| outcomes.ending.reports.values().filter(move |report| report.role == role);
    (DfmCounters::total(of(Role::Dfm)), SfiCounters::total(of(Role::Sfi)), RosCounters::total(of(Role::Ros)))
}

/// Runs a plan that loses no event.
fn run(plan: &Plan) -> (DfmCounters, SfiCounters, RosCounters) {
    let events = plan.triggers.events;
    let outcomes = plan.run_checked();
    let account = &outcomes.account;
    assert_eq!((account.residual, account.recorded, account.built_incomplete), (0, events, 0), "{account:#?}");
    counts(&outcomes)
}

#[test]
fn nothing_that_is_pushed_is_asked_for() {
    for destination in [Destination::Assigned, Destination::Table] {
        let (_, sfi, ros) = run(&plan(destination));
        assert_eq!((ros.pushed, ros.event_requests), (ROS * EVENTS, 0), "{destination:?}: {ros:?}");
        assert_eq!((sfi.pushed, sfi.pushed_dropped, sfi.requests), (ROS * EVENTS, 0, 0), "{destination:?}: {sfi:?}");
    }
    let (_, sfi, ros) = run(&plan(Destination::Assigned).with(|plan| plan.input = InputKind::SelfTrigger));
    assert_eq!((sfi.pushed, ros.event_requests), (ROS * EVENTS, 0), "the order to push reads out: {sfi:?}");
}

/// A message without an event that said that all events far ahead were finished had a builder drop whatever was pushed from then on.
#[test]
fn a_forged_bound_of_finished_events_drops_nothing() {
    let plan = plan(Destination::Table);
    let node = |role| plan.applications().into_iter().find(|app| app.role == role).expect("one of the role").node;
    let message = Box::new(Message::Build { events: Vec::new(), oldest_unfinished: EventId(1 << 40) });
    let forged = Fault::Forged { from: node(Role::Dfm), lives_ahead: 0, to: node(Role::Sfi), message };
    let (_, sfi, ros) = run(&plan.clone().with(|plan| plan.course.faults = vec![(Duration::from_millis(20), forged)]));
    assert_eq!((sfi.pushed_dropped, ros.event_requests), (0, 0), "{sfi:?}");
}

#[test]
fn events_by_number_are_pushed_ahead_of_their_assignment() {
    let (dfm, sfi, _) = run(&plan(Destination::Table));
    assert!(sfi.pushed_ahead > 0 && dfm.destinations == TABLES, "{sfi:?} {dfm:?}");
    let spacing = Spacing::Unlimited;
    let (_, sfi, ros) = run(&plan(Destination::Table).with(|plan| {
        plan.triggers.spacing = spacing;
        plan.building.push = push(Destination::Table).map(|p| Push { ahead: 1, ..p });
    }));
    assert!(sfi.pushed_dropped > 0, "there is no room for all: {sfi:?}");
    assert!(ros.event_requests >= sfi.pushed_dropped / 2, "what is dropped is asked for: {ros:?}");
}

#[test]
fn groups_that_come_ahead_of_their_assignment_find_room() {
    let groups = push(Destination::Table).map(|p| Push { group: 4, ahead: 200, window_bytes: 700, ..p });
    let (_, sfi, ros) = run(&plan(Destination::Table).with(|plan| {
        plan.triggers.spacing = Spacing::Unlimited;
        plan.building.push = groups;
        plan.triggers.in_flight = 100;
        plan.building.queue = 200;
    }));
    assert_eq!((sfi.pushed_dropped, ros.event_requests), (0, 0), "{sfi:?}");
}

#[test]
fn lost_pushes_and_credits_leak_no_credit() {
    for destination in [Destination::Assigned, Destination::Table] {
        let links = Links { loss: 0.2, duplication: 0.1, delay: 0.05, ..Links::perfect() };
        let plan = plan(destination).with(|plan| {
            plan.network.links = links;
            plan.triggers.events = 2_000;
            plan.building.requests = 40;
        });
        let retries_suffice = plan.with(|plan| {
            plan.building.at_once = 30;
            plan.building.events = 60;
            plan.triggers.in_flight = 64;
            plan.building.queue = 100;
        });
        let outcomes = retries_suffice.run_checked();
        assert_eq!(outcomes.account.residual, 0, "{:#?}", outcomes.account);
        let (_, sfi, ros) = counts(&outcomes);
        // 0.8 of the orders arrive where there are orders, and 0.8 of the pushes.
        let least = ROS * 2_000 * if destination == Destination::Assigned { 55 } else { 68 } / 100;
        assert!(sfi.pushed > least, "{destination:?}: {sfi:?} {ros:?}");
        assert!(sfi.pushed_late > 0 && sfi.pushed + sfi.requests > ROS * 2_000, "{sfi:?}");
    }
}

#[test]
fn the_share_of_a_builder_that_dies_moves_at_an_event_number() {
    let mut plan = plan(Destination::Table);
    let sfis = nodes(&plan, Role::Sfi);
    plan.course.faults = vec![(Duration::from_millis(30), Fault::Restart(sfis[1], Duration::from_millis(300)))];
    let outcomes = plan.run_checked();
    let account = &outcomes.account;
    assert_eq!((account.residual, account.level1, account.not_built), (0, EVENTS, 0), "{account:#?}");
    let (dfm, sfi, ros) = counts(&outcomes);
    assert_eq!(dfm.destinations, TABLES + 2, "{dfm:?}");
    // Events of the dead builder until the new table holds: the window of level 1, and what was in building.
    let moved = (plan.triggers.in_flight + plan.building.at_once as u64) * ROS;
    assert!(ros.event_requests > 0 && ros.event_requests <= moved, "{ros:?}");
    assert!(sfi.pushed_late <= moved, "{sfi:?}");
    plan.course.faults = vec![(Duration::from_millis(30), Fault::Kill(sfis[1]))];
    let account = plan.run_checked().account;
    assert_eq!((account.residual, account.not_built), (0, 0), "{account:#?}");
}

#[test]
fn a_builder_that_returns_gets_its_share_again() {
    let mut plan = plan(Destination::Table);
    let sfis = nodes(&plan, Role::Sfi);
    plan.course.faults = vec![(Duration::from_millis(30), Fault::Restart(sfis[0], Duration::from_millis(10)))];
    let outcomes = plan.run_checked();
    assert_eq!((outcomes.account.residual, outcomes.account.not_built), (0, 0), "{:#?}", outcomes.account);
    let (dfm, _, ros) = counts(&outcomes);
    assert_eq!(dfm.destinations, TABLES + 2, "{dfm:?}");
    assert!(ros.event_requests < ROS * EVENTS / 4, "{ros:?}");
}

#[test]
fn a_builder_that_hangs_is_taken_out_of_the_table() {
    let mut plan = plan(Destination::Table).with(|plan| {
        plan.triggers.in_flight = 64;
        plan.building.queue = 200;
    });
    let sfis = nodes(&plan, Role::Sfi);
    plan.course.faults = vec![(Duration::from_millis(30), Fault::Hang(sfis[0]))];
    plan.course.stop_timeout = Duration::from_millis(900);
    let outcomes = plan.run_checked();
    let (dfm, _, _) = counts(&outcomes);
    assert_eq!((outcomes.account.residual, outcomes.account.not_built), (0, 0), "{:#?}", outcomes.account);
    assert!(dfm.destinations == TABLES + 1 && dfm.reassigned > 0, "{dfm:?}");
    assert!(outcomes.account.recorded > EVENTS * 9 / 10, "the others build: {:#?}", outcomes.account);
}

#[test]
fn a_read_out_system_that_comes_late_goes_by_the_table() {
    let mut plan = plan(Destination::Table);
    let ros = nodes(&plan, Role::Ros);
    plan.course.late = vec![(ros[1], Duration::from_millis(15))];
    let outcomes = plan.run_checked();
    assert_eq!(outcomes.account.residual, 0, "{:#?}", outcomes.account);
    let (_, sfi, ros) = counts(&outcomes);
    assert!(sfi.pushed > ROS * EVENTS * 3 / 4, "{sfi:?} {ros:?}");
}

#[test]
fn groups_are_filled_and_none_waits_for_ever() {
    for destination in [Destination::Assigned, Destination::Table] {
        let grouped = push(destination).map(|push| Push { group: 4, ..push });
        let (_, sfi, ros) = run(&plan(destination).with(|plan| {
            plan.building.push = grouped;
            plan.triggers.events = EVENTS + 3;
        }));
        assert_eq!((sfi.pushed, ros.event_requests), (ROS * (EVENTS + 3), 0), "{destination:?}: {sfi:?}");
    }
}

/// The builder asked only after its time-out for what a crate could not push whole. That was for every event, while the crate was there.
#[test]
fn no_event_waits_for_a_time_out_where_a_crate_knows_that_a_fragment_is_missing() {
    const TIMEOUT: Duration = Duration::from_secs(20);
    let mut plan = plan(Destination::Assigned).with(|plan| {
        plan.counts.ros = 4;
        plan.readout.crates = Some(Crates { count: 1, ros: 3, group: 1, age: Duration::ZERO });
        (plan.building.request_timeout, plan.building.timeout) = (TIMEOUT, TIMEOUT * 10);
    });
    let ros = nodes(&plan, Role::Ros)[1];
    plan.course.faults = vec![(Duration::from_millis(20), Fault::Restart(ros, Duration::from_millis(60)))];
    let outcomes = plan.run_checked();
    let account = &outcomes.account;
    assert_eq!((account.residual, account.level1, account.not_built), (0, EVENTS, 0), "{account:#?}");
    let lasted = outcomes.ended.since(outcomes.began);
    assert!(account.built_incomplete > EVENTS / 4 && lasted < TIMEOUT, "{lasted:?}: {account:#?}");
}

fn nodes(plan: &Plan, role: Role) -> Vec<NodeId> {
    plan.applications().into_iter().filter(|app| app.role == role).map(|app| app.node).collect()
}
