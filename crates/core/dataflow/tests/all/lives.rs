//! What is left of a former life neither takes the room of the next one nor adds to what it is told.

use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::component::{Action, Component, Input, Outbox, Outcome, PeerState, Processed, Ticket};
use dataflow::filter::efd::{Decider, Efd, EfdParameters};
use dataflow::filter::policy::FilterPolicy;
use dataflow::ledger::Ledger;
use dataflow::level2::l2sv::{L2puAssignment, L2sv, L2svParameters};
use dataflow::level2::overrides::Overrides;
use dataflow::message::{BuiltEvent, Chains, Command, EventInfo, Fate, Message, Recording, Settlement};
use dataflow::recording::sfo::{Durable, Sfo, SfoParameters};

use crate::filter_daemon;

const DFM: NodeId = NodeId(1);
const SFI: NodeId = NodeId(2);
const EFDS: [NodeId; 2] = [NodeId(3), NodeId(4)];
const L2PU: NodeId = NodeId(5);
const LEVEL1: NodeId = NodeId(6);
const SFO: NodeId = NodeId(7);

/// Takes one input, and tells what is sent.
fn sent(component: &mut impl Component, input: Input) -> Vec<(NodeId, Message)> {
    let mut out = Outbox::new();
    component.handle(Time::ZERO, input, &mut out);
    component.flush(Time::ZERO, &mut out);
    component.check();
    let of = |action| if let Action::Send { to, message } = action { Some((to, message)) } else { None };
    out.drain().filter_map(of).collect()
}

fn up(node: NodeId, life: u32) -> Input {
    Input::Peer { node, state: PeerState::Up(Incarnation(life)) }
}

fn built(event: u64) -> BuiltEvent {
    let event = EventInfo { event: EventId(event), ..EventInfo::default() };
    BuiltEvent { event, oldest_unfinished: EventId(0), missing: Vec::new(), bulk: Bulk::default() }
}

/// A daemon whose tasks decide when the test says so, with four slots for one builder.
fn daemon() -> Efd {
    let mut efd = Efd::new(filter_daemon::parameters(&[SFI], DFM, Decider::Tasks));
    assert_eq!(sent(&mut efd, up(DFM, 0)), []);
    assert_eq!(sent(&mut efd, up(SFI, 0)), [(SFI, Message::Pull(4))]);
    efd
}

fn serve(efd: &mut Efd, event: u64) -> Vec<(NodeId, Message)> {
    sent(efd, Input::Message { from: SFI, message: Message::BuiltEvent(built(event)) })
}

fn rejected(event: u64) -> Input {
    let processed = Processed::Reject { chains: Chains::default() };
    Input::Done { ticket: Ticket(event), outcome: Outcome::Processed(processed) }
}

#[test]
fn events_of_a_former_life_of_a_builder_keep_their_slots_until_they_are_filtered() {
    let mut efd = daemon();
    (0..3).for_each(|event| _ = serve(&mut efd, event));
    for life in 1..4 {
        assert_eq!(sent(&mut efd, up(SFI, life)), [(SFI, Message::Pull(1))]);
    }
    let told = sent(&mut efd, rejected(0));
    assert!(matches!(&told[..], [(DFM, Message::Finished(_)), (SFI, Message::Pull(1))]), "{told:?}");
}

#[test]
fn a_builder_whose_former_lives_have_taken_all_slots_is_asked_for_nothing_yet() {
    let mut efd = daemon();
    (0..4).for_each(|event| _ = serve(&mut efd, event));
    assert_eq!(sent(&mut efd, up(SFI, 1)), []);
}

#[test]
fn an_event_that_is_served_again_after_a_broken_connection_takes_no_second_slot() {
    let mut efd = daemon();
    (0..3).for_each(|event| _ = serve(&mut efd, event));
    sent(&mut efd, Input::Peer { node: SFI, state: PeerState::Down });
    assert_eq!(sent(&mut efd, up(SFI, 0)), [(SFI, Message::Pull(1))]);
    assert_eq!(serve(&mut efd, 0), [(SFI, Message::Pull(1))]);
    let told = sent(&mut efd, rejected(0));
    assert!(matches!(&told[..], [(SFI, Message::Finished(fates)), (SFI, Message::Pull(1))] if fates.len() == 1));
}

fn finished(sent: &[(NodeId, Message)]) -> Vec<(u64, Fate)> {
    let of = |(_, message): &(NodeId, Message)| match message {
        Message::Finished(fates) => fates.iter().map(|finish| (finish.event.0, finish.fate)).collect(),
        _ => Vec::new(),
    };
    sent.iter().flat_map(of).collect()
}

#[test]
fn a_daemon_gives_up_what_its_tasks_have_when_it_is_told_to_and_not_before() {
    let mut efd = daemon();
    serve(&mut efd, 3);
    for command in [Command::Start, Command::Drain] {
        assert_eq!(sent(&mut efd, Input::Command(command)), []);
    }
    assert_eq!(finished(&sent(&mut efd, Input::Command(Command::Abandon))), [(3, Fate::Abandoned)]);
    assert_eq!(finished(&serve(&mut efd, 4)), [(4, Fate::Abandoned)]);
}

#[test]
fn what_nobody_is_left_to_record_is_finished() {
    let mut efd = recording_daemon();
    serve(&mut efd, 0);
    let gone = Input::Peer { node: SFO, state: PeerState::Gone };
    assert_eq!(finished(&sent(&mut efd, gone)), [(0, Fate::Unrecorded)]);
    assert_eq!(finished(&serve(&mut efd, 1)), [(1, Fate::Unrecorded)]);
}

/// A daemon that accepts everything, and a recorder.
fn recording_daemon() -> Efd {
    let decider = Decider::Policy(FilterPolicy::Prescale { factor: 1 });
    let parameters = EfdParameters { sfos: vec![SFO], ..filter_daemon::parameters(&[SFI], DFM, decider) };
    let mut efd = Efd::new(parameters);
    [DFM, SFI, SFO].into_iter().for_each(|node| _ = sent(&mut efd, up(node, 0)));
    efd
}

/// A recorder that syncs when it is told to stop.
fn recorder() -> Sfo {
    let durable = Durable::Sync { age: Duration::from_secs(1), events: 10 };
    Sfo::new(SfoParameters { durable, retry_after: Duration::from_secs(1), late: false })
}

fn ask(sfo: &mut Sfo, efd: NodeId) -> Vec<(NodeId, Message)> {
    let recording = Recording { built: built(7), streams: 1, debug: None };
    sent(sfo, Input::Message { from: efd, message: Message::Record(recording) })
}

/// Written and synced.
fn finish(sfo: &mut Sfo) -> Vec<(NodeId, Message)> {
    let outcome = Outcome::Recorded { copies: 1, bytes: 10, closed: Vec::new() };
    sent(sfo, Input::Done { ticket: Ticket(1), outcome });
    sent(sfo, Input::Command(Command::Drain));
    sent(sfo, Input::Done { ticket: Ticket(2), outcome: Outcome::Synced })
}

fn recorded(fresh: bool) -> Message {
    Message::Recorded { event: EventId(7), fresh, complete: true }
}

#[test]
fn a_recorder_answers_a_daemon_once_however_often_it_has_died() {
    let mut sfo = recorder();
    for life in 0..3 {
        sent(&mut sfo, up(EFDS[0], life));
        assert_eq!(ask(&mut sfo, EFDS[0]), []);
    }
    assert_eq!(finish(&mut sfo), [(EFDS[0], recorded(true))]);
}

#[test]
fn who_has_asked_second_counts_an_event_as_recorded_for_it_where_the_first_has_died() {
    for (dies, answers) in
        [(false, vec![(EFDS[0], recorded(true)), (EFDS[1], recorded(false))]), (true, vec![(EFDS[1], recorded(true))])]
    {
        let mut sfo = recorder();
        EFDS.into_iter().for_each(|efd| _ = ask(&mut sfo, efd));
        if dies {
            sent(&mut sfo, Input::Peer { node: EFDS[0], state: PeerState::Gone });
        }
        assert_eq!(finish(&mut sfo), answers);
    }
}

/// A supervisor that had so many events accepted, which the DFM has taken over and not finished.
fn supervisor(events: u64) -> L2sv {
    let mut l2sv = L2sv::new(l2sv_parameters());
    [LEVEL1, L2PU, DFM].into_iter().for_each(|node| _ = sent(&mut l2sv, up(node, 0)));
    for number in 0..events {
        accept(&mut l2sv, number);
        taken(&mut l2sv, number + 1);
    }
    l2sv
}

/// In its second life.
fn returning_supervisor() -> L2sv {
    let mut l2sv = L2sv::new(L2svParameters { returns: true, ..l2sv_parameters() });
    [LEVEL1, L2PU, DFM].into_iter().for_each(|node| _ = sent(&mut l2sv, up(node, 0)));
    let resume = Message::Resume { rejected: 0, accepted: 0, forced: 0, incomplete: 0, uncleared: Vec::new() };
    sent(&mut l2sv, Input::Message { from: LEVEL1, message: resume });
    l2sv
}

fn l2sv_parameters() -> L2svParameters {
    L2svParameters {
        level1: LEVEL1,
        l2pus: vec![L2PU],
        share: 10,
        dfm: Some(DFM),
        supervisors: 1,
        overrides: Overrides::default(),
        assignment: L2puAssignment::RoundRobin,
        events_in_system: 10_000,
        timeout: Duration::from_secs(1),
        forced_limit: 1.0,
        group: 1,
        group_age: Duration::from_secs(1),
        in_flight: 10,
        returns: false,
        seed: 1,
    }
}

fn accept(l2sv: &mut L2sv, number: u64) -> Vec<(NodeId, Message)> {
    let event = EventInfo { event: EventId(number), ..EventInfo::default() };
    let from_level1 = Message::L1Result { event, rois: Vec::new() };
    sent(l2sv, Input::Message { from: LEVEL1, message: from_level1 });
    let (event, attempt, accept, lacks_data) = (EventId(number), 1, true, false);
    let decision = Message::L2Decision { event, attempt, accept, lacks_data, has_result: false, builder: None };
    sent(l2sv, Input::Message { from: L2PU, message: decision })
}

/// What is told when the DFM has taken over what it was told: numbers of decisions, by group.
fn taken(l2sv: &mut L2sv, up_to: u64) -> Vec<(u64, usize)> {
    let message = Message::DecisionsTaken { up_to, oldest_unfinished: EventId(0) };
    groups(&sent(l2sv, Input::Message { from: DFM, message }))
}

fn groups(sent: &[(NodeId, Message)]) -> Vec<(u64, usize)> {
    let of = |(_, message): &(NodeId, Message)| match message {
        Message::Decisions { sequence, decisions, .. } => Some((*sequence, decisions.len())),
        _ => None,
    };
    sent.iter().filter_map(of).collect()
}

#[test]
fn a_dfm_that_returns_is_told_of_more_events_as_it_takes_them_over() {
    let mut l2sv = supervisor(1200);
    assert_eq!(groups(&sent(&mut l2sv, up(DFM, 1))), [(1, 512)]);
    assert_eq!(groups(&accept(&mut l2sv, 1200)), [], "what is new waits behind");
    assert_eq!(taken(&mut l2sv, 1), [(2, 512)]);
    assert_eq!(taken(&mut l2sv, 2), [(3, 176), (4, 1)]);
    assert_eq!(groups(&accept(&mut l2sv, 1201)), [(5, 1)]);
}

#[test]
fn that_nothing_follows_is_told_behind_all_that_a_dfm_is_told_again() {
    let mut l2sv = supervisor(600);
    sent(&mut l2sv, Input::Message { from: LEVEL1, message: Message::NoMore });
    sent(&mut l2sv, Input::Command(Command::Drain));
    let is_last = |sent: &[(NodeId, Message)]| sent.contains(&(DFM, Message::NoMore));
    let told = sent(&mut l2sv, up(DFM, 1));
    assert!(groups(&told).len() == 1 && !is_last(&told), "{told:?}");
    let message = Message::DecisionsTaken { up_to: 1, oldest_unfinished: EventId(0) };
    let told = sent(&mut l2sv, Input::Message { from: DFM, message });
    assert!(groups(&told) == [(2, 88)] && is_last(&told), "{told:?}");
}

#[test]
fn a_dfm_that_returns_is_told_what_its_former_life_had_counted() {
    let held = |sent: &[(NodeId, Message)]| -> Vec<EventId> {
        let of = |(_, message): &(NodeId, Message)| match message {
            Message::Held(holdings) => Some(holdings.ledger.below),
            _ => None,
        };
        sent.iter().filter_map(of).collect()
    };
    let mut l2sv = supervisor(1);
    assert_eq!(held(&sent(&mut l2sv, up(DFM, 1))), [], "it had counted nothing");
    let ledger = Box::new(Ledger { below: EventId(9), ..Ledger::default() });
    sent(&mut l2sv, Input::Message { from: DFM, message: Message::Ledger(ledger) });
    assert_eq!(held(&sent(&mut l2sv, up(DFM, 2))), [EventId(9)]);
}

#[test]
fn a_supervisor_that_gives_up_does_not_wait_for_the_dfm() {
    let mut l2sv = supervisor(0);
    accept(&mut l2sv, 0);
    sent(&mut l2sv, Input::Message { from: LEVEL1, message: Message::NoMore });
    sent(&mut l2sv, Input::Command(Command::Drain));
    assert!(!l2sv.is_drained(), "the DFM has not taken the event");
    sent(&mut l2sv, Input::Command(Command::Abandon));
    assert!(l2sv.is_drained());
}

/// Of what is below the bound, the DFM names all that was accepted.
#[test]
fn an_event_below_the_bound_that_the_dfm_does_not_name_was_rejected_and_the_next_was_not() {
    let mut l2sv = returning_supervisor();
    let ledger = Box::new(Ledger { below: EventId(6), ..Ledger::default() });
    sent(&mut l2sv, Input::Message { from: DFM, message: Message::Ledger(ledger) });
    for event in [5, 6] {
        let event = EventInfo { event: EventId(event), ..EventInfo::default() };
        sent(&mut l2sv, Input::Message { from: LEVEL1, message: Message::L1Again { event, rois: Vec::new() } });
    }
    let told =
        sent(&mut l2sv, Input::Message { from: DFM, message: Message::TakenBefore { decided: vec![], last: true } });
    let assigned =
        |(_, message): &(NodeId, Message)| matches!(message, Message::Assign { event, .. } if event.event.0 == 6);
    assert_eq!(told.iter().filter(|said| assigned(said)).count(), 1, "{told:?}");
    let settled = |(_, message): &(NodeId, Message)| match message {
        Message::Settled { decided, .. } => decided.clone(),
        _ => Vec::new(),
    };
    let settled: Vec<Settlement> = told.iter().flat_map(settled).collect();
    assert!(matches!(settled[..], [Settlement { event: EventId(5), accept: false, .. }]), "{settled:?}");
}
