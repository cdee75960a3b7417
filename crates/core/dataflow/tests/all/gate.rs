//! The gate in front of a component: who may say what to it.

use std::sync::Arc;

use base::ids::{EventId, Incarnation, NodeId, Role, RunNumber};
use base::time::Time;
use dataflow::component::{Action, Component, Input, Outbox, PeerState};
use dataflow::ledger::{EVENTS_MAX, Ledger, Tally};
use dataflow::message::{Command, Envelope, Message};
use dataflow::node::{Node, RUN_CONTROL};
use dataflow::report::{Report, Unexpected};

use crate::pass::accept;

/// Counts the messages that it gets.
struct Listener(u64);

impl Component for Listener {
    fn handle(&mut self, _: Time, input: Input, _: &mut Outbox) {
        self.0 += u64::from(matches!(input, Input::Message { .. }));
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn report(&self, _: Time) -> Report {
        Report::of(Role::Ros, vec![self.0])
    }

    fn check(&self) {}
}

const ROLES: [Role; 4] = [Role::RunControl, Role::Level1, Role::Ros, Role::Sfi];
const LEVEL1: NodeId = NodeId(1);
const ROS: NodeId = NodeId(2);
const SFI: NodeId = NodeId(3);

/// A read-out system with a level 1 and an event builder.
fn ros() -> Node {
    let mut node = Node::new(ROS, RunNumber(1), Incarnation(0), ROLES.into(), Box::new(Listener(0)));
    for peer in [RUN_CONTROL, LEVEL1, SFI] {
        let up = Input::Peer { node: peer, state: PeerState::Up(Incarnation(0)) };
        node.handle(Time::ZERO, up, &mut Outbox::new());
    }
    node
}

fn say(node: &mut Node, from: NodeId, message: Message) {
    let (run, life) = (RunNumber(1), Incarnation(0));
    let envelope = Envelope { from, to: node.id(), run, from_incarnation: life, to_incarnation: life };
    node.receive(Time::ZERO, &envelope, message, &mut Outbox::new());
}

#[test]
fn what_a_role_has_not_to_say_is_counted_by_kind_and_sender_and_goes_no_further() {
    let mut node = ros();
    say(&mut node, LEVEL1, accept(Vec::new()));
    say(&mut node, SFI, Message::EventRequest { requests: Arc::default() });
    assert_eq!(node.report(Time::ZERO).unexpected, []);
    // A builder issues no triggers, level 1 asks for no data, nobody but run control commands.
    (0..2).for_each(|_| say(&mut node, SFI, accept(Vec::new())));
    say(&mut node, LEVEL1, Message::EventRequest { requests: Arc::default() });
    say(&mut node, SFI, Message::Command(Command::Abandon));
    say(&mut node, LEVEL1, Message::L2ResultTaken(EventId(1)));
    let report = node.report(Time::ZERO);
    let refused = |from, message: &str, count| Unexpected { from, message: message.into(), count };
    let expected = [
        refused(SFI, "L1Accept", 2),
        refused(LEVEL1, "EventRequest", 1),
        refused(SFI, "Command", 1),
        refused(LEVEL1, "L2ResultTaken", 1),
    ];
    assert_eq!((report.counters.as_slice(), report.unexpected.as_slice()), (&[2][..], &expected[..]));
}

/// Each application may say these to each other one, and no component takes them.
#[test]
fn what_connects_applications_was_swallowed_behind_the_gate() {
    let mut node = ros();
    say(&mut node, SFI, Message::Greet { part: 0, datagrams: Box::default() });
    say(&mut node, SFI, Message::Confirm { proof: Default::default() });
    say(&mut node, RUN_CONTROL, Message::Gone(SFI));
    say(&mut node, RUN_CONTROL, Message::Peers(Vec::new()));
    let report = node.report(Time::ZERO);
    let counted: Vec<_> = report.unexpected.iter().map(|refused| (refused.from, refused.message.as_str())).collect();
    assert_eq!(counted, [(SFI, "Greet"), (SFI, "Confirm"), (RUN_CONTROL, "Gone"), (RUN_CONTROL, "Peers")]);
    assert_eq!(report.counters, [0]);
}

/// What the node tells run control.
fn tells(node: &mut Node, command: Command) -> Vec<Message> {
    let mut out = Outbox::new();
    assert!(out.is_empty());
    node.handle(Time::ZERO, Input::Command(command), &mut out);
    let is_silent = out.is_empty();
    let of = |action| match action {
        Action::Send { to: RUN_CONTROL, message } => message,
        other => panic!("{other:?}"),
    };
    let said: Vec<Message> = out.drain().map(of).collect();
    assert_eq!(said.is_empty(), is_silent);
    said
}

#[test]
fn run_control_is_told_what_it_asks_for_and_once_that_all_is_drained() {
    let mut node = ros();
    assert_eq!(tells(&mut node, Command::Start), []);
    let report = tells(&mut node, Command::Report);
    assert!(matches!(report[..], [Message::Report(_)]), "{report:?}");
    assert_eq!(tells(&mut node, Command::Pause), []);
    assert_eq!(tells(&mut node, Command::Drain), [Message::Drained]);
    assert_eq!(tells(&mut node, Command::Drain), []);
}

#[test]
fn a_later_life_goes_on_counting_what_former_ones_refused() {
    let (mut former, mut later) = (ros(), ros());
    say(&mut former, SFI, Message::NoMore);
    say(&mut former, LEVEL1, Message::NoMore);
    say(&mut later, SFI, Message::NoMore);
    let all = later.report(Time::ZERO).after(&former.report(Time::ZERO));
    let counted: Vec<_> = all.unexpected.iter().map(|refused| (refused.from, refused.count)).collect();
    assert_eq!(counted, [(SFI, 2), (LEVEL1, 1)]);
}

/// Such counts, taken over, ended the component or the account.
#[test]
fn counts_that_do_not_add_up_are_refused_and_go_no_further() {
    let ledger = |tally| Message::Ledger(Box::new(Ledger { below: EventId(9), tally }));
    let resume = |accepted| Message::Resume { rejected: 1, accepted, forced: 0, incomplete: 0, uncleared: Vec::new() };
    let built = Tally { complete: 2, incomplete: 1, not_built: 1, rejected: 2, lost: 1, forced: 4, ..Tally::default() };
    let wild = EVENTS_MAX + 1;
    assert!(ledger(built).adds_up() && resume(EVENTS_MAX).adds_up());
    assert!(!resume(wild).adds_up());
    let most = Tally { complete: wild, accepted: wild, ..Tally::default() };
    for tally in [Tally { lost: 2, ..built }, Tally { lost: u64::MAX, ..built }, Tally { on_part: 1, ..built }, most] {
        assert!(!ledger(tally).adds_up(), "{tally:?}");
        let roles = [Role::RunControl, Role::Sfi, Role::Dfm].into();
        let mut node = Node::new(NodeId(1), RunNumber(1), Incarnation(0), roles, Box::new(Listener(0)));
        let up = Input::Peer { node: NodeId(2), state: PeerState::Up(Incarnation(0)) };
        node.handle(Time::ZERO, up, &mut Outbox::new());
        say(&mut node, NodeId(2), ledger(built));
        say(&mut node, NodeId(2), ledger(tally));
        let report = node.report(Time::ZERO);
        let refused = Unexpected { from: NodeId(2), message: "Ledger".to_owned(), count: 1 };
        assert_eq!((report.counters, report.unexpected), (vec![1], vec![refused]));
    }
}

#[test]
fn only_who_is_named_may_say_it() {
    let finished = Message::Finished(Vec::new());
    assert!(finished.may_go(Role::Efd, Role::Sfi) && finished.may_go(Role::Sfi, Role::Dfm));
    assert!(!finished.may_go(Role::Sfi, Role::Sfi) && !finished.may_go(Role::Ros, Role::Dfm));
    assert!(Message::NoMore.may_go(Role::Sfi, Role::Dfm) && !Message::NoMore.may_go(Role::Sfi, Role::L2sv));
    assert!(!Message::Drained.may_go(Role::Sfi, Role::Dfm));
    assert_eq!(finished.name(), "Finished");
}
