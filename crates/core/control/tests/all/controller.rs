//! One controller conducts several runs of the same applications.

use std::time::Duration;

use base::ids::{NodeId, Role};
use base::time::Time;
use control::controller::{Application, Controller, Ending, RunLimits};
use control::states::{Illegal, State, Verb};
use dataflow::component::{Action, Outbox};
use dataflow::message::{Command, FileRecord, Message};
use dataflow::report::{Report, Unexpected};

const LEVEL1: NodeId = NodeId(1);
const SFI: NodeId = NodeId(2);

fn controller() -> Controller {
    let app = |name: &str, role, node| Application { name: name.into(), role, node };
    Controller::new(vec![app("level1", Role::Level1, LEVEL1), app("sfi-1", Role::Sfi, SFI)])
}

fn limits(duration_s: u64) -> RunLimits {
    RunLimits { duration: Some(Duration::from_secs(duration_s)), stop_timeout: Duration::from_secs(8) }
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn commands(out: &mut Outbox) -> Vec<(NodeId, Command)> {
    let command = |action| match action {
        Action::Send { to, message: Message::Command(command) } => (to, command),
        action => panic!("{action:?} is no command"),
    };
    out.drain().map(command).collect()
}

fn a_file() -> FileRecord {
    FileRecord { path: "f".into(), stream: "s".into(), events: 1, first_copies: 1, bytes: 1, adler32: 1 }
}

/// Begins a run that ends after some seconds.
fn begin(controller: &mut Controller, now: Time, duration_s: u64) {
    let mut out = Outbox::new();
    controller.configure(limits(duration_s)).unwrap();
    controller.connect().unwrap();
    controller.start(now, &mut out).unwrap();
    assert_eq!(commands(&mut out), [(SFI, Command::Start), (LEVEL1, Command::Start)], "sinks first");
}

/// Lets all that live drain and report so much, in answer to what the controller says.
fn drain(controller: &mut Controller, now: Time, dead: &[NodeId], stale: u64) -> Ending {
    let mut out = Outbox::new();
    controller.on_deadline(now, &mut out);
    while !controller.has_ended() {
        let said = commands(&mut out);
        assert!(!said.is_empty(), "the controller waits for nobody");
        for (node, command) in said.into_iter().filter(|(node, _)| !dead.contains(node)) {
            let role = if node == SFI { Role::Sfi } else { Role::Level1 };
            let report = Report { node, stale, ..Report::of(role, Vec::new()) };
            let answer = match command {
                Command::Drain => Message::Drained,
                Command::Report => Message::Report(Box::new(report)),
                command => panic!("{command:?} to {node:?}"),
            };
            controller.on_message(now, node, answer, &mut out);
        }
    }
    controller.ending().unwrap()
}

#[test]
fn the_second_run_knows_nothing_of_the_first() {
    let mut controller = controller();
    controller.boot().unwrap();
    controller.joined().unwrap();
    begin(&mut controller, at(0), 10);
    assert_eq!(controller.next_deadline(), Some(at(10)));
    controller.on_message(at(3), SFI, Message::FileClosed(a_file()), &mut Outbox::new());
    let first = drain(&mut controller, at(10), &[], 1);
    assert_eq!((first.began, first.stopped, first.files.len()), (Some(at(0)), Some(at(10)), 1));
    assert_eq!(controller.state(), State::Connected);
    controller.disconnect().unwrap();
    begin(&mut controller, at(20), 5);
    assert!(controller.lives().all().is_empty());
    assert_eq!(controller.next_deadline(), Some(at(25)), "each run has limits of its own");
    let second = drain(&mut controller, at(25), &[], 2);
    assert_eq!((second.began, second.stopped, second.files.len()), (Some(at(20)), Some(at(25)), 0));
    assert!(second.reports.values().all(|report| report.stale == 2));
    assert!(second.reasons.is_empty() && second.dead.is_empty());
    assert_eq!(controller.shut_down().map(|()| controller.state()), Ok(State::Absent));
}

#[test]
fn who_died_in_one_run_takes_part_in_the_next() {
    let mut controller = controller();
    controller.boot().unwrap();
    controller.joined().unwrap();
    begin(&mut controller, at(0), 10);
    let mut out = Outbox::new();
    controller.on_death(at(1), SFI, "killed", &mut out);
    assert_eq!(commands(&mut out), [(LEVEL1, Command::Drain)]);
    assert_eq!(controller.awaited(), (vec![LEVEL1], 1), "the stage that drains");
    controller.on_message(at(1), LEVEL1, Message::Drained, &mut out);
    assert_eq!(commands(&mut out), [(LEVEL1, Command::Report), (SFI, Command::Report)]);
    assert_eq!(controller.awaited(), (vec![LEVEL1], 2), "a dead one does not report");
    let report = Box::new(Report::of(Role::Level1, Vec::new()));
    controller.on_message(at(1), LEVEL1, Message::Report(report), &mut out);
    assert_eq!((controller.ending().unwrap().dead, controller.awaited().0), (vec![SFI], vec![]));
    controller.disconnect().unwrap();
    begin(&mut controller, at(2), 1);
    let second = drain(&mut controller, at(3), &[], 0);
    assert_eq!((second.dead.len(), second.reports.len(), second.forced), (0, 2, false));
}

#[test]
fn what_comes_between_two_runs_is_of_neither() {
    let mut controller = controller();
    controller.boot().unwrap();
    controller.joined().unwrap();
    controller.configure(limits(1)).unwrap();
    controller.connect().unwrap();
    let mut out = Outbox::new();
    controller.on_message(at(0), SFI, Message::Drained, &mut out);
    controller.on_message(at(0), SFI, Message::FileClosed(a_file()), &mut out);
    controller.on_message(at(0), LEVEL1, Message::Exhausted, &mut out);
    controller.start(at(1), &mut out).unwrap();
    commands(&mut out);
    controller.stop(at(2), &mut out);
    assert_eq!(commands(&mut out), [(LEVEL1, Command::Drain)]);
    controller.on_message(at(2), LEVEL1, Message::Drained, &mut out);
    assert_eq!(controller.draining(), Some(Role::Sfi), "what it said before the run does not count");
}

#[test]
fn only_what_the_table_allows_is_done() {
    let mut controller = controller();
    let mut out = Outbox::new();
    assert_eq!(controller.start(at(0), &mut out), Err(Illegal { state: State::Absent, verb: Verb::Start }));
    controller.boot().unwrap();
    controller.joined().unwrap();
    assert_eq!(controller.connect(), Err(Illegal { state: State::Booted, verb: Verb::Connect }));
    begin(&mut controller, at(0), 1);
    let refused = |verb| Err(Illegal { state: State::Running, verb });
    assert_eq!(controller.configure(limits(9)), refused(Verb::Configure));
    assert_eq!(controller.disconnect(), refused(Verb::Disconnect));
    assert_eq!(controller.shut_down(), refused(Verb::Shutdown));
    drain(&mut controller, at(1), &[], 0);
    assert!(controller.start(at(2), &mut out).is_err(), "its applications have counted already");
    controller.fail().unwrap();
    assert_eq!(controller.configure(limits(9)), Err(Illegal { state: State::Fault, verb: Verb::Configure }));
    controller.disconnect().unwrap();
    begin(&mut controller, at(3), 1);
}

#[test]
fn reasons_to_end_are_those_of_a_run_that_has_not_ended() {
    let mut controller = controller();
    controller.boot().unwrap();
    controller.joined().unwrap();
    begin(&mut controller, at(0), 10);
    let mut out = Outbox::new();
    controller.stop_because(at(1), "a disk is full", &mut out);
    controller.stop_because(at(2), "a key is wrong", &mut out);
    assert_eq!(commands(&mut out), [(LEVEL1, Command::Drain)], "it stops once");
    controller.force(at(3), "interrupted", &mut out);
    controller.force(at(4), "interrupted again", &mut out);
    let both = [(LEVEL1, Command::Abandon), (SFI, Command::Abandon)];
    assert_eq!(commands(&mut out), both, "it is forced once");
    [LEVEL1, SFI].iter().for_each(|node| controller.on_message(at(4), *node, Message::Drained, &mut out));
    for (node, role) in [(LEVEL1, Role::Level1), (SFI, Role::Sfi)] {
        let report = Report { node, ..Report::of(role, Vec::new()) };
        controller.on_message(at(5), node, Message::Report(Box::new(report)), &mut out);
    }
    assert!(controller.has_ended());
    controller.stop_because(at(6), "late", &mut out);
    let ending = controller.ending().unwrap();
    assert!(ending.forced);
    assert_eq!(ending.reasons, ["a disk is full", "a key is wrong", "interrupted"]);
}

#[test]
fn what_nobody_has_to_say_to_run_control_is_counted_in_its_run() {
    let mut controller = controller();
    controller.boot().unwrap();
    controller.joined().unwrap();
    begin(&mut controller, at(0), 1);
    (0..2).for_each(|_| controller.refuse(SFI, &Message::Taken(1)));
    let unexpected = drain(&mut controller, at(1), &[], 0).unexpected;
    assert_eq!(unexpected, [Unexpected { from: SFI, message: Message::Taken(1).name(), count: 2 }]);
    controller.disconnect().unwrap();
    begin(&mut controller, at(2), 1);
    assert_eq!(drain(&mut controller, at(3), &[], 0).unexpected, []);
}

#[test]
fn the_next_life_of_run_control_says_again_whether_triggers_go_on() {
    for (is_paused, expected) in [(true, Command::Pause), (false, Command::Resume)] {
        let (mut former, mut next, mut out) = (controller(), controller(), Outbox::new());
        former.boot().unwrap();
        former.joined().unwrap();
        begin(&mut former, at(0), 10);
        if is_paused {
            former.pause(&mut out);
        }
        next.boot().unwrap();
        next.joined().unwrap();
        next.configure(limits(10)).unwrap();
        next.connect().unwrap();
        next.inherit(former.legacy().unwrap()).unwrap();
        let mut out = Outbox::new();
        next.go_on(&mut out);
        assert_eq!(commands(&mut out), [(LEVEL1, expected)]);
        next.stop(at(5), &mut out);
        out.drain().count();
        next.go_on(&mut out);
        assert!(commands(&mut out).is_empty(), "it drains");
    }
}
