//! A bug leaves a test that is named after it.

use std::sync::Arc;
use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::{ClearAfter, Dfm, DfmInput, DfmParameters};
use dataflow::building::push_control::BuildingMode;
use dataflow::component::{Action, Component, Input, Outbox, Outcome, PeerState, Work};
use dataflow::message::{DataRequest, Decision, EventInfo, Message, Missing};
use dataflow::readout::fragment::FragmentHead;
use dataflow::readout::ros::{LinksParameters, ReadOut, Ros, RosParameters};
use dataflow::report::{Counters, RosCounters};

use crate::pass::accept;

/// A pROS that had returned let builders wait for results that it had lost.
#[test]
fn what_the_pros_does_not_have_it_says_at_once() {
    let (sfi, l2pu, dfm) = (NodeId(2), NodeId(3), NodeId(4));
    let mut pros = Ros::new(RosParameters { read_out: ReadOut::Results, late: true, ..readout(dfm) });
    let mut out = Outbox::new();
    let result = Message::L2Result { event: EventId(1), bulk: Bulk::Modelled { len_bytes: 64, seed: 1 } };
    pros.handle(Time::ZERO, Input::Message { from: l2pu, message: result }, &mut out);
    let request = |event| DataRequest {
        event: EventInfo { event: EventId(event), ..EventInfo::default() },
        attempt: 1,
        request: 1,
        robs: Vec::new(),
    };
    let message = Message::EventRequest { requests: vec![request(0), request(1)].into() };
    pros.handle(Time::ZERO, Input::Message { from: sfi, message }, &mut out);
    pros.flush(Time::ZERO, &mut out);
    let replies = out.drain().find_map(|action| match action {
        Action::Send { message: Message::EventReply { replies, .. }, .. } => Some(replies),
        _ => None,
    });
    let said: Vec<_> = replies.expect("an answer").into_iter().map(|reply| (reply.missing, reply.len_bytes)).collect();
    assert_eq!(said, [(vec![Missing { rob: RESULTS, lost: true }], 0), (Vec::new(), 64)]);
}

/// A read-out system asked for one gap in a tenth of a second, however many there were. With small groups its pages did not come back.
#[test]
fn a_clear_that_was_asked_for_has_the_next_missing_one_asked_for_at_once() {
    let dfm = NodeId(4);
    let mut ros = Ros::new(readout(dfm));
    let mut asked_after = |sequence| {
        let mut out = Outbox::new();
        let message = Message::Clear { sequence, oldest_valid: EventId(0), last: false, events: Arc::default() };
        ros.handle(Time::ZERO, Input::Message { from: dfm, message }, &mut out);
        ros.flush(Time::ZERO, &mut out);
        let asks = out.drain().filter_map(|action| match action {
            Action::Send { message: Message::ClearAsk(missed), .. } => Some(missed.sequences().collect::<Vec<_>>()),
            _ => None,
        });
        asks.collect::<Vec<_>>()
    };
    assert_eq!([1, 3, 5, 8].map(&mut asked_after), [vec![], vec![vec![2]], vec![], vec![]]);
    assert_eq!([2, 7, 6].map(&mut asked_after), [vec![vec![4, 6, 7]], vec![], vec![]], "4 is still to come");
    assert_eq!(asked_after(4), [[0; 0]; 0]);
    assert_eq!(asked_after(108), [(9..=72).collect::<Vec<_>>()], "as many as are sent again for one request");
    assert_eq!((9..72).flat_map(&mut asked_after).count(), 0);
    assert_eq!(asked_after(72), [(73..=107).collect::<Vec<_>>()]);
}

/// One clear that called all events to come too old had all of them refused, and those in the buffers removed.
#[test]
fn a_clear_beyond_what_level_1_has_issued_loses_nothing() {
    let (level1, sfi, dfm) = (NodeId(1), NodeId(2), NodeId(4));
    let parameters = RosParameters { level1: Some(level1), read_out: ReadOut::OnTrigger, ..readout(dfm) };
    let mut ros = Ros::new(parameters);
    let mut say = |from, message| {
        let mut out = Outbox::new();
        ros.handle(Time::ZERO, Input::Message { from, message }, &mut out);
        let reads: Vec<_> = out.drain().filter(|action| matches!(action, Action::Start { .. })).collect();
        for action in reads {
            let Action::Start { ticket, work: Work::ReadOut(events) } = action else { panic!("{action:?}") };
            for EventInfo { event, .. } in &events {
                let head = FragmentHead { event: *event, status: 0, len_bytes: 64 };
                let bulk = Bulk::Modelled { len_bytes: 64, seed: 1 };
                ros.handle(Time::ZERO, Input::Fragment { rob: 0, head, bulk }, &mut out);
            }
            let outcome = Outcome::ReadOut(events.len());
            ros.handle(Time::ZERO, Input::Done { ticket, outcome }, &mut out);
        }
        ros.flush(Time::ZERO, &mut out);
        let replies = out.drain().find_map(|action| match action {
            Action::Send { message: Message::EventReply { replies, .. }, .. } => Some(replies),
            _ => None,
        });
        (replies.map(|replies| replies[0].missing.clone()), ros.report(Time::ZERO))
    };
    let info = |event| EventInfo { event: EventId(event), ..EventInfo::default() };
    let clear = |sequence, oldest_valid| Message::Clear {
        sequence,
        oldest_valid: EventId(oldest_valid),
        last: false,
        events: Arc::default(),
    };
    let request = |event| {
        let request = DataRequest { event: info(event), attempt: 1, request: 1, robs: Vec::new() };
        Message::EventRequest { requests: vec![request].into() }
    };
    say(level1, accept(vec![info(0), info(1), info(2)]));
    say(dfm, clear(1, 1));
    for (sequence, far) in [(2, 1 << 40), (1 << 40, 2)] {
        say(dfm, clear(sequence, far));
        assert_eq!(say(sfi, request(1)).0, Some(Vec::new()), "what is in the buffers stays");
    }
    say(level1, accept(vec![info(3)]));
    assert_eq!(say(sfi, request(3)).0, Some(Vec::new()), "what comes later is taken");
    let (_, report) = say(dfm, clear(3, 2));
    let c = RosCounters::from_values(&report.counters);
    assert_eq!([c.clears_refused, c.dropped_old, c.garbage_collected, c.clears_asked], [2, 0, 0, 0]);
}

/// A group of decisions filled a clear group with its rejects before its accepts were in the books. The clear called the
/// accepted events too old, and the read-out systems dropped their fragments.
#[test]
fn a_clear_in_the_middle_of_a_group_of_decisions_keeps_its_accepted_events_valid() {
    let (l2sv, sfi) = (NodeId(2), NodeId(4));
    let mut dfm = Dfm::new(DfmParameters {
        input: DfmInput::Level2 { l2svs: vec![l2sv], level1: NodeId(1) },
        sfis: vec![sfi],
        efds: Vec::new(),
        building: 1,
        assignment: SfiAssignment::RoundRobin,
        run: 1,
        mode: BuildingMode::Pull,
        build_timeout: Duration::from_secs(1),
        clear_group: 2,
        clear_age: Duration::from_secs(1),
        clear_after: ClearAfter::Built,
        supervisors_return: false,
        returns: false,
        queue: 10,
        in_flight: 10,
        late: false,
    });
    let mut out = Outbox::new();
    for node in [l2sv, sfi] {
        dfm.handle(Time::ZERO, Input::Peer { node, state: PeerState::Up(Incarnation(0)) }, &mut out);
    }
    out.drain();
    let decision = |event, accept| Decision {
        event: EventInfo { event: EventId(event), ..EventInfo::default() },
        accept,
        has_result: false,
        builder: None,
    };
    let decisions = vec![decision(0, false), decision(1, false), decision(2, true)];
    let message = Message::Decisions { sequence: 1, oldest_undecided: EventId(3), decisions };
    dfm.handle(Time::ZERO, Input::Message { from: l2sv, message }, &mut out);
    dfm.flush(Time::ZERO, &mut out);
    let bounds: Vec<EventId> = out
        .drain()
        .filter_map(|action| match action {
            Action::MulticastToReadout(Message::Clear { oldest_valid, .. }) => Some(oldest_valid),
            _ => None,
        })
        .collect();
    assert_eq!(bounds.len(), 1, "the two rejects fill a group");
    assert!(bounds[0] <= EventId(2), "event 2 has still to be built: {bounds:?}");
}

fn readout(dfm: NodeId) -> RosParameters {
    RosParameters {
        robs: vec![RESULTS],
        pages_per_rob: 4,
        busy_above: 4,
        busy_below: 1,
        request_timeout: Duration::from_millis(100),
        group_bytes_max: 1 << 16,
        read_out: ReadOut::OnRequest,
        links: LinksParameters::default(),
        push: None,
        level1: None,
        in_flight: 16,
        dfm,
        sampling: None,
        late: false,
    }
}

/// Source identifier of the ROB of the pROS.
const RESULTS: u32 = 0x7c_0000;
