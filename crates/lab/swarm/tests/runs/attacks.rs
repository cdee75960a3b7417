//! Messages that nobody of the partition has sent: none of them alone costs an event.

use std::sync::Arc;
use std::time::Duration;

use base::bulk::PageSlice;
use base::ids::{EventId, NodeId, Role};
use dataflow::building::dfm::ClearAfter;
use dataflow::message::Message;
use dataflow::report::RosCounters;

use simulator::world::{Fault, Outcomes};
use swarm::{InputKind, Plan};

const EVENTS: u64 = 300;
/// Within the run, and long before its end.
const TIMES_US: [u64; 4] = [1_000, 1_700, 2_300, 3_100];
/// Far beyond all events and all groups of a run.
const FAR: u64 = 1 << 40;

#[test]
fn a_forged_bound_of_valid_events_costs_no_event_and_is_counted() {
    for clear_after in [ClearAfter::Built, ClearAfter::Recorded] {
        for input in [InputKind::Level2, InputKind::Level1, InputKind::SelfTrigger] {
            for at_us in TIMES_US {
                let plan = Plan::plain(EVENTS).with(|plan| {
                    plan.input = input;
                    plan.building.clear_after = clear_after;
                });
                let attacked = attacked(&plan, at_us, 0, |next| clear(next, EventId(FAR)));
                assert!(ros(&attacked).clears_refused > 0, "{:?}", ros(&attacked));
            }
        }
    }
}

#[test]
fn a_clear_group_from_far_ahead_costs_no_event_and_is_counted() {
    for at_us in TIMES_US {
        for oldest_valid in [EventId(0), EventId(FAR)] {
            let plan = Plan::plain(EVENTS).with(|plan| plan.building.clear_group = 1);
            let attacked = attacked(&plan, at_us, 0, |_| clear(FAR, oldest_valid));
            assert!(ros(&attacked).clears_refused > 0, "{:?}", ros(&attacked));
        }
    }
}

/// As if the DFM had returned: its clears count from 1 again.
#[test]
fn clears_of_another_life_cost_no_event_and_are_counted() {
    for at_us in TIMES_US {
        let attacked = attacked(&Plan::plain(EVENTS), at_us, 1, |_| clear(1, EventId(FAR)));
        let of_ros = attacked.ending.reports.values().filter(|report| report.role == Role::Ros);
        assert!(of_ros.map(|report| report.stale).eq([1, 1]), "one for each");
    }
}

fn clear(sequence: u64, oldest_valid: EventId) -> Message {
    Message::Clear { sequence, oldest_valid, last: false, events: Arc::default() }
}

/// Each read-out system is told this once in the name of the DFM, and nothing is lost. The forger knows about which clear group is next.
fn attacked(plan: &Plan, at_us: u64, lives_ahead: u32, forged: impl Fn(u64) -> Message) -> Outcomes {
    let dfm = nodes(plan, Role::Dfm)[0];
    let at = Duration::from_micros(at_us);
    let forged = |to| {
        let message = Box::new(forged(2));
        (at, Fault::Forged { from: dfm, lives_ahead, to, message })
    };
    let faults = nodes(plan, Role::Ros).into_iter().map(forged).collect();
    let attacked = plan.clone().with(|plan| plan.course.faults = faults).run().outcomes;
    let undisturbed = plan.run_checked();
    assert_eq!(attacked.account, undisturbed.account, "at {at_us} µs of {plan:#?}");
    assert_eq!(attacked.account.built_incomplete + attacked.account.level2_incomplete, 0);
    attacked
}

fn ros(outcomes: &Outcomes) -> RosCounters {
    RosCounters::total(outcomes.ending.reports.values().filter(|report| report.role == Role::Ros))
}

fn nodes(plan: &Plan, role: Role) -> Vec<NodeId> {
    plan.applications().into_iter().filter(|app| app.role == role).map(|app| app.node).collect()
}

/// Each message that the gate of a component lets through has an arm there, whatever it says. A frame of each kind
/// comes, with wild numbers, in the name of each who may say it.
#[test]
fn no_message_that_passes_the_gate_ends_a_component() {
    let plan = Plan::plain(40).with(|plan| plan.input = InputKind::Level2);
    let applications = plan.applications();
    let mut ended = Vec::new();
    let mut tried = 0;
    for (name, message) in frames_of_every_kind() {
        for from in &applications {
            let may_go = |to: &Role| message.may_go(from.role, *to) && !is_for_the_model(&message, *to);
            for to in applications.iter().filter(|to| may_go(&to.role)) {
                let forged =
                    Fault::Forged { from: from.node, lives_ahead: 0, to: to.node, message: Box::new(message.clone()) };
                let attacked =
                    plan.clone().with(|plan| plan.course.faults = vec![(Duration::from_micros(1_700), forged)]);
                tried += 1;
                if std::panic::catch_unwind(|| attacked.run()).is_err() {
                    ended.push(format!("{name} {}: {} -> {}", message.name(), from.name, to.name));
                }
            }
        }
    }
    assert!(tried > 100 && ended.is_empty(), "of {tried} messages these ended a component: {ended:#?}");
}

/// The model of the outside has no such event. Its links number fragments by the words of level 1, and its filters count those in it.
fn is_for_the_model(message: &Message, to: Role) -> bool {
    match message {
        Message::L1Accept { .. } => to == Role::Ros,
        Message::BuiltEvent(_) | Message::Record(_) => true,
        _ => false,
    }
}

/// The frames that fuzzing begins with: one or more of each kind.
fn frames_of_every_kind() -> Vec<(String, Message)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/corpus/message");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut named: Vec<_> = files.filter(|path| name(path).starts_with("kind_")).collect();
    named.sort();
    let decoded = |path: &std::path::PathBuf| {
        let bytes = PageSlice::copy_of(&std::fs::read(path).unwrap());
        (name(path), dataflow::wire::decode(&bytes).unwrap().1)
    };
    named.iter().map(decoded).collect()
}
