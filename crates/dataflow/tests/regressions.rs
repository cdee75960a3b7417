//! A bug leaves a test that is named after it.

use std::time::Duration;

use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::{ClearAfter, Dfm, DfmInput, DfmParameters};
use dataflow::building::push_control::BuildingMode;
use dataflow::component::{Action, Component, Input, Outbox, PeerState};
use dataflow::ids::{EventId, Incarnation, NodeId};
use dataflow::message::{Decision, EventInfo, Message};
use dataflow::time::Time;

/// A group of decisions filled a clear group with its rejects before its accepts were in the books: the clear called the
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
