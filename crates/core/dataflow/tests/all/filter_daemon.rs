//! What a filter daemon tells event builders, and when.

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::component::{Action, Component, Input, Outbox, Outcome, PeerState, Processed, Ticket, Windowed, Work};
use dataflow::filter::efd::{Decider, Demand, Efd, EfdParameters};
use dataflow::filter::policy::FilterPolicy;
use dataflow::filter::streams::{StreamRule, one_stream};
use dataflow::ledger::Finish;
use dataflow::message::{BuiltEvent, Chains, Command, EventInfo, Fate, Grounds, Message};
use dataflow::report::{Counters, EfdCounters};

const DFM: NodeId = NodeId(1);
const SFIS: [NodeId; 2] = [NodeId(2), NodeId(3)];

#[test]
fn selections_take_their_share() {
    let share = |policy: FilterPolicy| (0..10_000).filter(|&n| policy.accepts(EventId(n), n)).count();
    assert_eq!(share(FilterPolicy::AcceptAll), 10_000);
    assert_eq!(share(FilterPolicy::Prescale { factor: 10 }), 1_000);
    let random = share(FilterPolicy::Random { accept: 0.3, seed: 5 });
    assert!((2_800..3_200).contains(&random), "{random}");
}

#[test]
fn fates_of_a_pass_travel_together_and_as_many_events_are_asked_for() {
    let mut daemon = Daemon::new();
    for (sfi, event) in [(0, 0), (1, 1), (0, 2), (0, 3)] {
        assert_eq!(daemon.built(SFIS[sfi], event), []);
    }
    let fates = |fates: &[(u64, Fate)]| {
        fates
            .iter()
            .map(|(event, fate)| Finish { event: EventId(*event), fate: *fate, complete: true, grounds: Grounds::Data })
            .collect()
    };
    let first = fates(&[(0, Fate::Accepted), (2, Fate::Accepted), (3, Fate::Rejected)]);
    let expected = [
        (SFIS[0], Message::Finished(first)),
        (SFIS[0], Message::Pull(3)),
        (SFIS[1], Message::Finished(fates(&[(1, Fate::Rejected)]))),
        (SFIS[1], Message::Pull(1)),
    ];
    assert_eq!(daemon.flush(), expected);
    assert_eq!(daemon.flush(), []);
}

#[test]
fn what_was_for_one_life_of_a_builder_does_not_go_to_the_next() {
    let mut daemon = Daemon::new();
    daemon.built(SFIS[0], 0);
    daemon.peer(SFIS[0], PeerState::Down);
    assert_eq!(daemon.peer(SFIS[0], PeerState::Up(Incarnation(1))), [(SFIS[0], Message::Pull(2))]);
    assert_eq!(daemon.flush(), []);
}

#[test]
fn an_event_without_what_it_needs_is_dropped_or_goes_to_the_debug_stream() {
    let mut daemon = Daemon::new();
    daemon.efd = Efd::new(EfdParameters {
        demands: vec![(7, Demand::Drop), (8, Demand::Debug)],
        ..parameters(&SFIS, DFM, Decider::Policy(FilterPolicy::AcceptAll))
    });
    [DFM, SFIS[0]].into_iter().for_each(|node| _ = daemon.peer(node, PeerState::Up(Incarnation(0))));
    for (event, missing) in [(0, vec![]), (1, vec![7]), (2, vec![6, 8]), (3, vec![7, 8]), (4, vec![6])] {
        daemon.built_without(SFIS[0], event, missing);
    }
    let Some((_, Message::Finished(fates))) = daemon.flush().into_iter().next() else { panic!("no fates") };
    let fates: Vec<Fate> = fates.into_iter().map(|finish| finish.fate).collect();
    assert_eq!(fates, [Fate::Accepted, Fate::Rejected, Fate::Debug, Fate::Debug, Fate::Accepted]);
    let c = EfdCounters::from_values(&daemon.efd.report(Time::ZERO).counters);
    assert_eq!((c.dropped_incomplete, c.debug_incomplete, c.rejected, c.debug), (1, 2, 1, 2));
}

#[test]
fn what_windows_leave_of_an_event_is_recorded_and_the_rest_counted() {
    let mut daemon = Daemon::new();
    let streams = vec![StreamRule { by_name: true, ..one_stream()[0] }];
    let sfos = vec![NodeId(9)];
    daemon.efd = Efd::new(EfdParameters { sfos, streams, ..parameters(&SFIS, DFM, Decider::Tasks) });
    [DFM, SFIS[0], NodeId(9)].into_iter().for_each(|node| _ = daemon.peer(node, PeerState::Up(Incarnation(0))));
    let bulk = |len_bytes| Bulk::Modelled { len_bytes, seed: 0 };
    let [kept_chunks, left_fragments, left_chunks, left_bytes] = [1, 2, 3, 4];
    // No stream takes the second one.
    for (event, streams) in [(0, 1), (1, 0)] {
        daemon.built(SFIS[0], event);
        let windowed = Windowed { bulk: bulk(100), kept_chunks, left_fragments, left_chunks, left_bytes };
        let (chains, result, windowed) = (Chains { input: 1, passed: 1 }, bulk(10), Some(Box::new(windowed)));
        let outcome = Outcome::Processed(Processed::Accept { streams, chains, result, windowed });
        let sent = daemon.input(Input::Done { ticket: Ticket(event), outcome });
        let recorded: Vec<usize> = sent.iter().filter_map(|(_, message)| Some(message.bulk()?.len())).collect();
        assert_eq!(recorded, if event == 0 { vec![110] } else { vec![] });
    }
    let c = EfdCounters::from_values(&daemon.efd.report(Time::ZERO).counters);
    assert_eq!((c.accepted, c.rejected, c.windowed), (1, 1, 1));
    assert_eq!([c.kept_chunks, c.left_fragments, c.left_chunks, c.left_bytes], [1, 2, 3, 4]);
}

#[test]
fn what_is_not_told_is_not_drained() {
    let mut daemon = Daemon::new();
    daemon.built(SFIS[0], 0);
    daemon.input(Input::Command(Command::Drain));
    assert!(!daemon.efd.is_drained());
    assert_eq!(daemon.flush().len(), 2);
    assert!(daemon.efd.is_drained());
}

/// A daemon with four slots whose output is not recorded, before a DFM that does not return.
pub(crate) fn parameters(sfis: &[NodeId], dfm: NodeId, decider: Decider) -> EfdParameters {
    let (sfis, sfos) = (sfis.to_vec(), Vec::new());
    EfdParameters {
        sfis,
        sfos,
        dfm,
        dfm_returns: false,
        slots: 4,
        decider,
        streams: one_stream(),
        sampling: None,
        demands: Vec::new(),
    }
}

/// Accepts events with even numbers.
struct Daemon {
    efd: Efd,
    out: Outbox,
}

impl Daemon {
    fn new() -> Self {
        let decider = Decider::Policy(FilterPolicy::Prescale { factor: 2 });
        let mut daemon = Self { efd: Efd::new(parameters(&SFIS, DFM, decider)), out: Outbox::new() };
        [DFM, SFIS[0], SFIS[1]].into_iter().for_each(|node| _ = daemon.peer(node, PeerState::Up(Incarnation(0))));
        daemon
    }

    fn peer(&mut self, node: NodeId, state: PeerState) -> Vec<(NodeId, Message)> {
        self.input(Input::Peer { node, state })
    }

    fn built(&mut self, from: NodeId, event: u64) -> Vec<(NodeId, Message)> {
        self.built_without(from, event, Vec::new())
    }

    fn built_without(&mut self, from: NodeId, event: u64, missing: Vec<u32>) -> Vec<(NodeId, Message)> {
        let event = EventInfo { event: EventId(event), ordinal: event, ..EventInfo::default() };
        let (oldest_unfinished, bulk) = (EventId(0), Bulk::default());
        let message = Message::BuiltEvent(BuiltEvent { event, oldest_unfinished, missing, bulk });
        self.input(Input::Message { from, message })
    }

    fn input(&mut self, input: Input) -> Vec<(NodeId, Message)> {
        self.efd.handle(Time::ZERO, input, &mut self.out);
        self.sent()
    }

    fn flush(&mut self) -> Vec<(NodeId, Message)> {
        self.efd.flush(Time::ZERO, &mut self.out);
        self.sent()
    }

    fn sent(&mut self) -> Vec<(NodeId, Message)> {
        self.efd.check();
        let send = |action| match action {
            Action::Send { to, message } => Some((to, message)),
            Action::Start { work: Work::Process(_), .. } => None,
            other => panic!("a daemon asks for no {other:?}"),
        };
        self.out.drain().filter_map(send).collect()
    }
}
