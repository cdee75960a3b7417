//! A read-out system that pushes by the number of the event: what it reads, and what it sends to whom.

use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::building::destinations::Destinations;
use dataflow::component::{Action, Input, Outcome, PeerState, Ticket, Work};
use dataflow::message::{DataRequest, EventInfo, Message, Missing, PushOrder};
use dataflow::readout::fragment::FragmentHead;
use dataflow::readout::pusher::{Destination, PushParameters};
use dataflow::readout::ros::{LinksParameters, ReadOut, Ros, RosParameters};

use crate::pass::{accept, pass};

const LEVEL1: NodeId = NodeId(1);
const DFM: NodeId = NodeId(3);
const SFIS: [NodeId; 2] = [NodeId(4), NodeId(5)];
const ROB: u32 = 0x42_0001;
const TIMEOUT: Duration = Duration::from_millis(1);

#[test]
fn events_of_a_group_are_read_together_and_go_together() {
    let mut ros = Driver::new();
    let (ticket, events) = ros.accepts(0..5);
    assert_eq!(events, [0, 1, 2, 3, 4]);
    let inputs = (0..5).map(fragment).chain([done(ticket, 5)]);
    assert_eq!(sent(&ros.pass(inputs)), [(SFIS[0], vec![0, 2, 4], false), (SFIS[1], vec![1, 3], false)]);
}

#[test]
fn events_without_a_page_wait_and_are_pushed_in_their_turn() {
    let mut ros = Driver::new();
    let (ticket, events) = ros.accepts(0..10);
    assert_eq!(events.len(), 8, "as many as there are pages");
    ros.pass((0..8).map(fragment).chain([done(ticket, 8)]));
    let clear = Message::Clear {
        sequence: 1,
        oldest_valid: EventId(8),
        last: false,
        events: (0..8).map(EventId).collect::<Vec<_>>().into(),
    };
    let (ticket, events) = started(&ros.pass([says(DFM, clear)]));
    assert_eq!(events, [8, 9]);
    let pushed = ros.pass([fragment(8), fragment(9), done(ticket, 2)]);
    assert_eq!(sent(&pushed), [(SFIS[0], vec![8], false), (SFIS[1], vec![9], false)]);
}

#[test]
fn a_fragment_that_its_link_has_lost_is_pushed_as_lost() {
    let mut ros = Driver::new();
    let (ticket, _) = ros.accepts(0..2);
    assert!(sent(&ros.pass([done(ticket, 1)])).is_empty(), "it can still come");
    let pushed = ros.pass([fragment(1), done(ticket, 1)]);
    assert_eq!(sent(&pushed), [(SFIS[0], vec![0], true), (SFIS[1], vec![1], false)]);
}

#[test]
fn what_comes_too_late_is_not_pushed() {
    let mut ros = Driver::new();
    let (ticket, _) = ros.accepts(0..1);
    ros.pass([done(ticket, 1)]);
    ros.now = Time::ZERO + TIMEOUT;
    ros.pass([Input::Deadline]);
    assert!(sent(&ros.pass([fragment(0)])).is_empty());
}

#[test]
fn an_event_that_its_builder_asks_for_is_not_pushed_as_well() {
    let mut ros = Driver::new();
    let (ticket, _) = ros.accepts(0..3);
    let event = EventInfo { event: EventId(2), ..EventInfo::default() };
    let requests = vec![DataRequest { event, attempt: 2, request: 7, robs: Vec::new() }];
    ros.pass([says(SFIS[0], Message::EventRequest { requests: requests.into() })]);
    let replies = ros.pass((0..3).map(fragment).chain([done(ticket, 3)]));
    assert_eq!(answers(&replies), [(0, 0), (1, 0), (2, 7)], "pushed, pushed, asked for");
}

#[test]
fn an_event_that_is_ordered_and_asked_for_in_a_pass_goes_once() {
    let mut ros = Driver::with(Destination::Assigned);
    let (ticket, _) = ros.accepts(0..2);
    ros.pass((0..2).map(fragment).chain([done(ticket, 2)]));
    let info = |event| EventInfo { event: EventId(event), ..EventInfo::default() };
    let orders = (0..2).map(|event| PushOrder { event: info(event), sfi: SFIS[0] }).collect();
    let requests = vec![DataRequest { event: info(0), attempt: 1, request: 7, robs: Vec::new() }];
    let requests = Message::EventRequest { requests: requests.into() };
    let replies = ros.pass([says(DFM, Message::Push(orders)), says(SFIS[0], requests)]);
    assert_eq!(answers(&replies), [(0, 7), (1, 0)]);
}

#[test]
fn what_was_for_a_former_life_of_a_builder_is_not_pushed() {
    let returns = || {
        let to = |state| Input::Peer { node: SFIS[0], state };
        [to(PeerState::Down), to(PeerState::Up(Incarnation(1)))]
    };
    let mut ros = Driver::new();
    let (ticket, _) = ros.accepts(0..10);
    ros.pass(returns());
    let pushed = ros.pass((0..8).map(fragment).chain([done(ticket, 8)]));
    assert_eq!(sent(&pushed), [(SFIS[1], vec![1, 3, 5, 7], false)], "events that were being read");
    let clear = Message::Clear {
        sequence: 1,
        oldest_valid: EventId(8),
        last: false,
        events: (0..8).map(EventId).collect::<Vec<_>>().into(),
    };
    let (ticket, _) = started(&ros.pass([says(DFM, clear)]));
    let pushed = ros.pass([fragment(8), fragment(9), done(ticket, 2)]);
    assert_eq!(sent(&pushed), [(SFIS[1], vec![9], false)], "events that waited for a page");
    let mut ros = Driver::new();
    let (ticket, _) = ros.accepts(0..2);
    let pushed = ros.pass((0..2).map(fragment).chain([done(ticket, 2)]).chain(returns()));
    assert_eq!(sent(&pushed), [(SFIS[1], vec![1], false)], "events that were read in this pass");
}

/// The table and the triggers travel on connections of their own.
#[test]
fn events_that_come_before_the_first_table_are_pushed_when_it_has_come() {
    let mut ros = Driver::new();
    let life = Incarnation(1);
    ros.pass([Input::Peer { node: DFM, state: PeerState::Up(life) }]);
    let (ticket, _) = ros.accepts(0..4);
    assert_eq!(sent(&ros.pass((0..3).map(fragment).chain([done(ticket, 3)]))), []);
    let event = EventInfo { event: EventId(2), ..EventInfo::default() };
    let requests = vec![DataRequest { event, attempt: 1, request: 1, robs: Vec::new() }];
    let asked = ros.pass([says(SFIS[0], Message::EventRequest { requests: requests.into() })]);
    assert_eq!(answers(&asked), [(2, 1)]);
    let table = Destinations { version: 1, first: EventId(0), run: 1, sfis: SFIS.to_vec() };
    let pushed = ros.pass([says(DFM, Message::Destinations(table))]);
    assert_eq!(answers(&pushed), [(0, 0), (1, 0)], "2 was asked for, 3 is being read");
    assert_eq!(answers(&ros.pass([fragment(3), done(ticket, 1)])), [(3, 0)]);
}

/// Younger events must not take the credit: a builder gives none back before the older ones are whole.
#[test]
fn events_before_the_first_table_go_before_those_behind_it() {
    let mut ros = Driver::new();
    ros.pass([Input::Peer { node: DFM, state: PeerState::Up(Incarnation(1)) }]);
    let (first, _) = ros.accepts(0..3);
    let table = Destinations { version: 1, first: EventId(0), run: 1, sfis: SFIS.to_vec() };
    let inputs = (0..3).map(fragment).chain([done(first, 3), says(DFM, Message::Destinations(table))]);
    let accepted = (3..5).map(|event| EventInfo { event: EventId(event), ..EventInfo::default() }).collect();
    let younger = [says(LEVEL1, accept(accepted)), fragment(3), fragment(4), done(Ticket(first.0 + 1), 2)];
    let pushed = ros.pass(inputs.chain(younger));
    assert_eq!(sent(&pushed), [(SFIS[0], vec![0, 2, 4], false), (SFIS[1], vec![1, 3], false)]);
}

struct Driver {
    ros: Ros,
    now: Time,
}

impl Driver {
    /// With eight pages; builders take turns by number.
    fn new() -> Self {
        Self::with(Destination::Table)
    }

    fn with(destination: Destination) -> Self {
        let push = PushParameters {
            destination,
            sfis: SFIS.to_vec(),
            window_bytes: 10_000,
            bytes_per_s: None,
            burst_bytes: 0,
            group: 1,
            group_age: Duration::from_millis(1),
            seed: 1,
        };
        let ros = Ros::new(RosParameters {
            robs: vec![ROB],
            pages_per_rob: 8,
            busy_above: 8,
            busy_below: 4,
            request_timeout: TIMEOUT,
            group_bytes_max: 10_000,
            read_out: ReadOut::OnTrigger,
            links: LinksParameters::default(),
            push: Some(push),
            level1: Some(LEVEL1),
            in_flight: 100,
            dfm: DFM,
            sampling: None,
            late: false,
        });
        let mut driver = Self { ros, now: Time::ZERO };
        let up = |node| Input::Peer { node, state: PeerState::Up(Incarnation(0)) };
        let table = Destinations { version: 1, first: EventId(0), run: 1, sfis: SFIS.to_vec() };
        let table = says(DFM, Message::Destinations(table));
        driver.pass([LEVEL1, DFM, SFIS[0], SFIS[1]].map(up).into_iter().chain([table]));
        driver
    }

    fn pass(&mut self, inputs: impl IntoIterator<Item = Input>) -> Vec<Action> {
        pass(&mut self.ros, self.now, inputs)
    }

    /// Level 1 issues events; what is read out because of that.
    fn accepts(&mut self, events: std::ops::Range<u64>) -> (Ticket, Vec<u64>) {
        let infos = events.map(|event| EventInfo { event: EventId(event), ..EventInfo::default() });
        started(&self.pass([says(LEVEL1, accept(infos.collect()))]))
    }
}

fn started(actions: &[Action]) -> (Ticket, Vec<u64>) {
    let work = |action: &Action| match action {
        Action::Start { ticket, work: Work::ReadOut(events) } => {
            Some((*ticket, events.iter().map(|event| event.event.0).collect()))
        }
        _ => None,
    };
    let mut all: Vec<_> = actions.iter().filter_map(work).collect();
    assert_eq!(all.len(), 1, "{actions:?}");
    all.remove(0)
}

/// Messages to builders: their events, and whether anything is lost of them.
fn sent(actions: &[Action]) -> Vec<(NodeId, Vec<u64>, bool)> {
    let reply = |action: &Action| match action {
        Action::Send { to, message: Message::EventReply { replies, .. } } => {
            let is_lost = |missing: &[Missing]| missing.iter().any(|missing| missing.lost);
            let lost = replies.iter().any(|reply| is_lost(&reply.missing));
            Some((*to, replies.iter().map(|reply| reply.event.0).collect(), lost))
        }
        _ => None,
    };
    actions.iter().filter_map(reply).collect()
}

/// Events that were sent, by number, with that of the request.
fn answers(actions: &[Action]) -> Vec<(u64, u32)> {
    let replies = actions.iter().flat_map(|action| match action {
        Action::Send { message: Message::EventReply { replies, .. }, .. } => replies.clone(),
        _ => Vec::new(),
    });
    let mut numbers: Vec<(u64, u32)> = replies.map(|reply| (reply.event.0, reply.request)).collect();
    numbers.sort_unstable();
    numbers
}

fn says(from: NodeId, message: Message) -> Input {
    Input::Message { from, message }
}

fn fragment(event: u64) -> Input {
    let head = FragmentHead { event: EventId(event), status: 0, len_bytes: 100 };
    Input::Fragment { rob: 0, head, bulk: Bulk::Modelled { len_bytes: 100, seed: 0 } }
}

fn done(ticket: Ticket, count: usize) -> Input {
    Input::Done { ticket, outcome: Outcome::ReadOut(count) }
}
