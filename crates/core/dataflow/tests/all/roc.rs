//! The front of a read-out crate and its interface to event building, each by itself.

use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::sampling::SamplingRule;
use base::time::Time;
use dataflow::building::destinations::Destinations;
use dataflow::component::{Action, Component, Input, Outbox, PeerState};
use dataflow::message::{BusyCause, Command, DataReply, DataRequest, EventInfo, Message, Missing, PushOrder, UNASKED};
use dataflow::node::RUN_CONTROL;
use dataflow::readout::pusher::{Destination, PushParameters};
use dataflow::report::{Counters, EbifCounters, TrgCounters};
use dataflow::roc::CrateRos;
use dataflow::roc::ebif::{Ebif, EbifParameters};
use dataflow::roc::trg::{Trg, TrgParameters};

use crate::pass::{accept, pass};

const LEVEL1: NodeId = NodeId(1);
const DFM: NodeId = NodeId(2);
const L2PU: NodeId = NodeId(3);
const SFI: NodeId = NodeId(4);
const TRG: NodeId = NodeId(5);
const EBIF: NodeId = NodeId(6);
const ROS: [NodeId; 2] = [NodeId(7), NodeId(8)];
const TIMEOUT: Duration = Duration::from_millis(10);
const ALL: SamplingRule = SamplingRule { trigger_types: [0; 4], items: 0, prescale: 1, samples: 2, bytes: 1000 };

#[test]
fn triggers_go_to_all_and_are_taken_when_all_have_taken_them() {
    let mut trg = trg();
    let sent = at(0, &mut trg, [says(LEVEL1, accept(vec![info(1), info(2)]))]);
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), ROS);
    assert!(at(0, &mut trg, [says(ROS[0], Message::Taken(2))]).is_empty());
    let sent = at(0, &mut trg, [says(ROS[1], Message::Taken(1))]);
    assert_eq!(sent, [(LEVEL1, Message::Taken(1))]);
    let sent = at(0, &mut trg, [peer(ROS[1], PeerState::Down)]);
    assert_eq!(sent, [(LEVEL1, Message::Taken(2))], "nobody waits for one that is away");
}

#[test]
fn what_all_are_told_is_one_message_to_those_that_are_there() {
    let (mut trg, mut ebif) = (trg(), ebif(false));
    let accept = accept(vec![info(1)]);
    let mut told = |input: Input| -> Vec<Action> {
        let mut out = Outbox::new();
        trg.handle(ms(0), input, &mut out);
        out.drain().collect()
    };
    let to_all = |message| Action::Broadcast { to: ROS.into(), message };
    assert_eq!(told(says(LEVEL1, accept.clone())), [to_all(accept.clone())]);
    told(peer(ROS[0], PeerState::Down));
    assert_eq!(told(says(LEVEL1, accept.clone())), [Action::Send { to: ROS[1], message: accept }]);
    told(peer(ROS[1], PeerState::Down));
    assert_eq!(told(says(LEVEL1, Message::IssuedUpTo(EventId(2)))), []);
    let mut out = Outbox::new();
    let requests = vec![DataRequest { event: info(1), attempt: 1, request: 5, robs: Vec::new() }];
    ebif.handle(ms(0), says(SFI, Message::EventRequest { requests: requests.into() }), &mut out);
    ebif.flush(ms(0), &mut out);
    let asked: Vec<Action> = out.drain().collect();
    let is_for_all = |action: &Action| matches!(action, Action::Broadcast { to, .. } if **to == ROS);
    assert!(asked.len() == 1 && is_for_all(&asked[0]), "{asked:?}");
}

#[test]
fn the_crate_is_busy_while_one_of_it_is() {
    let mut trg = trg();
    let busy = |on| Message::Busy { cause: BusyCause::Pages, on };
    assert_eq!(at(0, &mut trg, [says(ROS[0], busy(true))]), [(LEVEL1, busy(true))]);
    assert!(at(0, &mut trg, [says(ROS[1], busy(true)), says(ROS[0], busy(false))]).is_empty());
    assert_eq!(at(0, &mut trg, [peer(ROS[1], PeerState::Down)]), [(LEVEL1, busy(false))]);
}

#[test]
fn clears_go_into_the_crate_by_tens_and_the_bound_behind_them() {
    let mut trg = trg();
    at(0, &mut trg, [says(LEVEL1, accept((0..40).map(info).collect()))]);
    let sent = at(0, &mut trg, [clear(1, 25, 0..25, false)]);
    let of_first = |sent: &[(NodeId, Message)]| -> Vec<(usize, u64, bool)> {
        let group = |(to, message): &(NodeId, Message)| match message {
            Message::Clear { events, oldest_valid, last, .. } if *to == ROS[0] => {
                Some((events.len(), oldest_valid.0, *last))
            }
            _ => None,
        };
        sent.iter().filter_map(group).collect()
    };
    assert_eq!(of_first(&sent), [(10, 0, false), (10, 0, false)], "others below the bound have still to be told");
    let sent = at(5, &mut trg, [Input::Deadline]);
    assert_eq!(of_first(&sent), [(5, 25, false)]);
    let sent = at(6, &mut trg, [clear(2, 40, 25..40, true)]);
    assert_eq!(of_first(&sent), [(10, 25, false)]);
    assert!(!trg.is_drained());
    let sent = at(7, &mut trg, [Input::Command(Command::Drain)]);
    assert_eq!(of_first(&sent), [(5, 40, true)], "the last word on the bound comes with the last group");
    assert!(trg.is_drained());
    let missed = dataflow::message::MissedClears { first: 2, bits: 1 };
    assert_eq!(of_first(&at(8, &mut trg, [says(ROS[0], Message::ClearAsk(missed))])), [(10, 0, false)]);
    let c = TrgCounters::from_values(&trg.report(Time::ZERO).counters);
    assert_eq!((c.rejected, c.dispatched, c.pending, c.groups), (40, 40, 0, 5));
}

#[test]
fn the_bound_rises_with_full_groups_alone() {
    let mut trg = trg();
    at(0, &mut trg, [says(LEVEL1, accept((0..40).map(info).collect()))]);
    let bounds = (0..4).map(|group| {
        let sent = at(group, &mut trg, [clear(group + 1, 10 * (group + 1), 10 * group..10 * (group + 1), false)]);
        sent.into_iter().find_map(|(_, message)| match message {
            Message::Clear { oldest_valid, .. } => Some(oldest_valid.0),
            _ => None,
        })
    });
    assert_eq!(
        bounds.collect::<Vec<_>>(),
        [Some(0), Some(10), Some(20), Some(30)],
        "what goes with a group is cleared behind it"
    );
}

#[test]
fn a_group_that_did_not_come_is_asked_for_and_holds_back_the_bound() {
    let mut trg = trg();
    at(0, &mut trg, [says(LEVEL1, accept((0..40).map(info).collect()))]);
    let sent = at(0, &mut trg, [clear(2, 30, 10..15, false)]);
    let asked = dataflow::message::MissedClears { first: 1, bits: 1 };
    assert_eq!(sent, [(DFM, Message::ClearAsk(asked))]);
    let bounds = |sent: &[(NodeId, Message)]| -> Vec<u64> {
        let bound = |(_, message): &(NodeId, Message)| match message {
            Message::Clear { oldest_valid, .. } => Some(oldest_valid.0),
            _ => None,
        };
        sent.iter().filter_map(bound).collect()
    };
    assert_eq!(bounds(&at(5, &mut trg, [Input::Deadline])), [0, 0]);
    at(6, &mut trg, [clear(1, 10, 0..10, false)]);
    assert_eq!(bounds(&at(200, &mut trg, [Input::Deadline])), [30, 30]);
}

#[test]
fn data_for_level_2_come_from_those_that_have_them_and_go_together() {
    let mut trg = trg();
    let request = |request, robs: &[u32]| Message::RoiRequest { event: EventId(1), request, robs: robs.to_vec() };
    let sent = at(0, &mut trg, [says(L2PU, request(77, &[10, 21, 99]))]);
    assert_eq!(sent, [(ROS[0], request(1, &[10])), (ROS[1], request(1, &[21]))]);
    let reply = |request, len_bytes| Message::RoiReply {
        event: EventId(1),
        request,
        missing: Vec::new(),
        bulk: Bulk::Modelled { len_bytes, seed: 0 },
    };
    assert!(at(0, &mut trg, [says(ROS[1], reply(1, 30)), says(ROS[1], reply(1, 30))]).is_empty());
    let sent = at(0, &mut trg, [says(ROS[0], reply(1, 12))]);
    let [(L2PU, Message::RoiReply { request: 77, missing, bulk, .. })] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((missing, bulk.len()), (&vec![Missing { rob: 99, lost: true }], 42));
    // One that says nothing is done without.
    at(1, &mut trg, [says(L2PU, request(78, &[10]))]);
    let sent = at(100, &mut trg, [Input::Deadline]);
    let answered = sent.iter().find(|(to, _)| *to == L2PU).map(|(_, message)| message);
    let Some(Message::RoiReply { request: 78, missing, .. }) = answered else { panic!("{sent:?}") };
    assert_eq!(missing, &[Missing { rob: 10, lost: false }]);
    at(100, &mut trg, [says(L2PU, request(79, &[10])), peer(L2PU, PeerState::Down)]);
    let c = TrgCounters::from_values(&trg.report(Time::ZERO).counters);
    assert_eq!((c.rois, c.rois_answered, c.rois_dropped, c.timeouts, c.replies_late), (3, 2, 1, 1, 1));
}

#[test]
fn accepted_events_go_to_the_interface_by_order_or_by_number() {
    let mut trg = trg();
    let orders = Message::Push(vec![PushOrder { event: info(3), sfi: SFI }]);
    assert_eq!(at(0, &mut trg, [says(DFM, orders.clone())]), [(EBIF, orders.clone())]);
    at(0, &mut trg, [says(LEVEL1, accept(vec![info(2), info(3)]))]);
    let table = Destinations { version: 1, first: EventId(3), run: 1, sfis: vec![SFI] };
    let sent = at(0, &mut trg, [says(DFM, Message::Destinations(table))]);
    assert_eq!(sent, [(EBIF, orders)], "what came before its table goes with that");
    let sent = at(0, &mut trg, [says(LEVEL1, accept(vec![info(4)]))]);
    assert_eq!(sent.last(), Some(&(EBIF, Message::Push(vec![PushOrder { event: info(4), sfi: SFI }]))));
}

#[test]
fn who_comes_into_the_run_is_told_what_it_has_missed() {
    let mut trg = trg();
    at(0, &mut trg, [says(LEVEL1, accept(vec![info(5)]))]);
    assert!(!at(0, &mut trg, [peer(ROS[0], PeerState::Down), up(ROS[0], 0)]).contains(&issued(ROS[0], 5)));
    assert!(at(0, &mut trg, [peer(ROS[0], PeerState::Down), up(ROS[0], 1)]).contains(&issued(ROS[0], 5)));
    let sent = at(0, &mut trg, [says(LEVEL1, Message::IssuedUpTo(EventId(9)))]);
    assert!(sent.contains(&issued(ROS[0], 9)) && sent.contains(&issued(ROS[1], 9)));
}

#[test]
fn what_a_builder_asks_for_is_collected_with_one_list() {
    let mut ebif = ebif(false);
    let sent = at(0, &mut ebif, [asks(1, 5, &[]), asks(2, 6, &[]), asks(3, 7, &[20])]);
    let to = |node| {
        let of = |(to, message): &(NodeId, Message)| match message {
            Message::EventRequest { requests } if *to == node => {
                Some(requests.iter().map(|r| (r.event.event.0, r.request, r.robs.clone())).collect::<Vec<_>>())
            }
            _ => None,
        };
        sent.iter().filter_map(of).collect::<Vec<_>>()
    };
    let all = vec![(1, 1, vec![]), (2, 2, vec![])];
    assert_eq!((to(ROS[0]), to(ROS[1])), (vec![all.clone()], vec![vec![(3, 3, vec![20])], all]));
    assert!(at(0, &mut ebif, [gives(ROS[0], &[(1, 1, 10), (2, 2, 20)])]).is_empty());
    let sent = at(0, &mut ebif, [gives(ROS[1], &[(2, 2, 1), (1, 1, 5), (3, 3, 7), (3, 9, 7)])]);
    let [(SFI, Message::EventReply { replies, bulk, .. })] = &sent[..] else { panic!("{sent:?}") };
    let answered: Vec<_> = replies.iter().map(|r| (r.event.0, r.request, r.len_bytes)).collect();
    assert_eq!((answered, bulk.len()), (vec![(2, 6, 21), (1, 5, 15), (3, 7, 7)], 43));
    let c = counters(&ebif);
    assert_eq!((c.requests, c.answered, c.bytes_out, c.replies_late, c.in_hand), (3, 3, 43, 1, 0));
}

#[test]
fn an_event_does_without_a_system_that_is_away_or_silent() {
    let mut ebif = ebif(false);
    at(0, &mut ebif, [asks(1, 5, &[]), gives(ROS[1], &[(1, 1, 10)])]);
    let missing = |sent: &[(NodeId, Message)]| match sent {
        [(SFI, Message::EventReply { replies, .. })] => {
            replies[0].missing.iter().map(|missing| (missing.rob, missing.lost)).collect::<Vec<_>>()
        }
        sent => panic!("{sent:?}"),
    };
    assert_eq!(missing(&at(0, &mut ebif, [peer(ROS[0], PeerState::Gone)])), [(10, true), (11, true)]);
    at(1, &mut ebif, [asks(2, 6, &[])]);
    assert_eq!(ebif.next_deadline(), Some(ms(1) + TIMEOUT));
    let sent = at(11, &mut ebif, [Input::Deadline]);
    assert_eq!(missing(&sent), [(10, true), (11, true), (20, false), (21, false)]);
    assert_eq!((counters(&ebif).timeouts, ebif.next_deadline()), (1, None));
}

#[test]
fn a_system_that_comes_later_is_asked_when_it_has_come() {
    let mut ebif = Ebif::new(EbifParameters {
        systems: systems(),
        push: None,
        waiting_max: 8,
        request_timeout: TIMEOUT,
        group_bytes_max: 10_000,
        sampling: Some(ALL),
    });
    at(0, &mut ebif, [up(SFI, 0), up(ROS[0], 0)]);
    let sent = at(0, &mut ebif, [asks(1, 5, &[]), gives(ROS[0], &[(1, 1, 10)])]);
    assert!(sent.iter().all(|(to, _)| *to == ROS[0]), "{sent:?}");
    let sent = at(1, &mut ebif, [up(ROS[1], 0)]);
    let [(to, Message::EventRequest { requests })] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((*to, requests.len(), requests[0].request), (ROS[1], 1, 1));
    let sent = at(1, &mut ebif, [gives(ROS[1], &[(1, 1, 10)])]);
    let [(SFI, Message::EventReply { replies, .. })] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((replies[0].request, replies[0].len_bytes, &replies[0].missing[..]), (5, 20, &[][..]));
}

#[test]
fn what_is_ordered_is_pushed_within_the_credit_and_once() {
    let mut ebif = ebif(true);
    at(0, &mut ebif, [orders(&[1, 2, 3]), orders(&[2])]);
    let sent = at(0, &mut ebif, [gives(ROS[0], &[(1, 1, 900), (2, 2, 900), (3, 3, 900)]), gives(ROS[1], &[(1, 1, 5)])]);
    let pushed = |sent: &[(NodeId, Message)]| -> Vec<(u64, u32)> {
        let of = |(_, message): &(NodeId, Message)| match message {
            Message::EventReply { replies, .. } => replies.iter().map(|r| (r.event.0, r.request)).collect(),
            _ => Vec::new(),
        };
        sent.iter().flat_map(of).collect()
    };
    assert_eq!(pushed(&sent), [(1, UNASKED)]);
    let sent = at(0, &mut ebif, [gives(ROS[1], &[(2, 2, 5), (3, 3, 5)])]);
    assert!(sent.is_empty(), "the window is used up: {sent:?}");
    assert_eq!(counters(&ebif).in_hand, 2);
    // The builder asks for one of them.
    let sent = at(0, &mut ebif, [asks(3, 7, &[]), says(SFI, Message::Credit(u64::MAX))]);
    assert_eq!(pushed(&sent), [(2, UNASKED)]);
    let c = counters(&ebif);
    assert_eq!((c.orders, c.repeated, c.pushed, c.dropped_withdrawn, c.in_hand), (3, 1, 2, 1, 1));
    at(0, &mut ebif, [orders(&[4]), peer(SFI, PeerState::Down)]);
    assert_eq!((counters(&ebif).dropped_peer, counters(&ebif).in_hand), (2, 0));
}

#[test]
fn a_builder_is_told_at_once_of_what_may_come_yet_and_nothing_is_left_at_the_end() {
    let mut ebif = ebif(true);
    at(0, &mut ebif, [orders(&[1, 2]), peer(ROS[0], PeerState::Down)]);
    let sent = at(0, &mut ebif, [gives(ROS[1], &[(1, 1, 5)])]);
    assert_eq!(unasked(&sent), [(1, 0, vec![(10, false), (11, false)])]);
    let c = counters(&ebif);
    assert_eq!((c.pushed, c.dropped_incomplete, c.bytes_out), (0, 1, 0));
    at(0, &mut ebif, [Input::Command(Command::Drain)]);
    assert!(ebif.is_drained());
    assert_eq!((counters(&ebif).dropped_end, counters(&ebif).in_hand), (1, 0));
}

#[test]
fn what_will_never_come_keeps_nothing_from_being_pushed() {
    let mut ebif = ebif(true);
    at(0, &mut ebif, [peer(ROS[0], PeerState::Gone), orders(&[1])]);
    let sent = at(0, &mut ebif, [gives(ROS[1], &[(1, 1, 5)])]);
    assert_eq!(unasked(&sent), [(1, 5, vec![(10, true), (11, true)])]);
    let c = counters(&ebif);
    assert_eq!((c.pushed, c.dropped_incomplete, c.lost_robs, c.in_hand), (1, 0, 2, 0));
}

/// An event, its bytes, and the ROBs that are missing, each with whether it is lost.
type Unasked = (u64, u32, Vec<(u32, bool)>);

/// What the builder is given unasked.
fn unasked(sent: &[(NodeId, Message)]) -> Vec<Unasked> {
    let of = |(to, message): &(NodeId, Message)| match message {
        Message::EventReply { replies, .. } if *to == SFI => replies.clone(),
        _ => Vec::new(),
    };
    let names = |reply: &DataReply| reply.missing.iter().map(|missing| (missing.rob, missing.lost)).collect();
    let all = sent.iter().flat_map(of).filter(|reply| reply.request == UNASKED);
    all.map(|reply| (reply.event.0, reply.len_bytes, names(&reply))).collect()
}

/// Whether builders ask or are given, and whatever is missing.
#[test]
fn a_crate_shows_what_it_gives_to_builders_if_somebody_watches() {
    for pushes in [false, true] {
        let mut ebif = ebif(pushes);
        let wants = |event: u64| if pushes { orders(&[event]) } else { asks(event, 5, &[]) };
        let gives_all = |number: u32| ROS.map(|ros| gives(ros, &[(number.into(), number, 10)]));
        at(0, &mut ebif, [wants(1)]);
        assert_eq!(shown(&at(0, &mut ebif, gives_all(1))), [], "nobody watches");
        at(0, &mut ebif, [Input::Command(Command::Sample), wants(2)]);
        assert_eq!(shown(&at(0, &mut ebif, gives_all(2))), [(2, 20, vec![])]);
        at(0, &mut ebif, [asks(3, 5, &[10])]);
        assert_eq!(shown(&at(0, &mut ebif, [gives(ROS[0], &[(3, 3, 10)])])), [], "a ROB alone");
        at(0, &mut ebif, [wants(4), peer(ROS[1], PeerState::Down)]);
        assert_eq!(shown(&at(0, &mut ebif, [gives(ROS[0], &[(4, 4, 10)])])), [(4, 10, vec![20, 21])]);
        let sent = at(0, &mut ebif, [wants(5), gives(ROS[0], &[(5, 5, 10)])]);
        assert_eq!((shown(&sent), counters(&ebif).samples, counters(&ebif).samples_lost), (vec![], 2, 1));
    }
}

/// Nor is one that asks for ROBs of others counted as lost.
#[test]
fn a_crate_does_not_show_an_event_without_data() {
    for pushes in [false, true] {
        let mut ebif = ebif(pushes);
        let wants = |event: u64| if pushes { orders(&[event]) } else { asks(event, 5, &[]) };
        at(0, &mut ebif, [Input::Command(Command::Sample), asks(1, 5, &[99])]);
        assert_eq!((counters(&ebif).samples, counters(&ebif).samples_lost), (0, 0));
        let sent = at(0, &mut ebif, [wants(2), peer(ROS[0], PeerState::Down), peer(ROS[1], PeerState::Down)]);
        assert_eq!((shown(&sent), counters(&ebif).samples, counters(&ebif).samples_lost), (vec![], 0, 1));
    }
}

/// Events that are shown, with their bytes and the ROBs that are missing.
fn shown(sent: &[(NodeId, Message)]) -> Vec<(u64, usize, Vec<u32>)> {
    let of = |(to, message): &(NodeId, Message)| match message {
        Message::Sample(recording) => {
            assert_eq!(*to, RUN_CONTROL);
            let built = &recording.built;
            Some((built.event.event.0, built.bulk.len(), built.missing.clone()))
        }
        _ => None,
    };
    sent.iter().filter_map(of).collect()
}

fn systems() -> Vec<CrateRos> {
    let robs = |place: u32| vec![10 * place + 10, 10 * place + 11];
    (0..).zip(ROS).map(|(place, node)| CrateRos { node, robs: robs(place) }).collect()
}

fn trg() -> Trg {
    let mut trg = Trg::new(TrgParameters {
        systems: systems(),
        ebif: Some(EBIF),
        level1: LEVEL1,
        in_flight: 4,
        dfm: DFM,
        group: 10,
        group_age: Duration::from_millis(5),
        roi_timeout: TIMEOUT,
        has_sources: false,
        by_table: true,
        late: false,
    });
    let nodes = [LEVEL1, DFM, L2PU, EBIF, ROS[0], ROS[1]];
    at(0, &mut trg, nodes.map(|node| up(node, 0)));
    trg
}

fn ebif(pushes: bool) -> Ebif {
    let push = PushParameters {
        destination: Destination::Assigned,
        sfis: vec![SFI],
        window_bytes: 900,
        bytes_per_s: None,
        burst_bytes: 0,
        group: 1,
        group_age: Duration::from_millis(1),
        seed: 1,
    };
    let mut ebif = Ebif::new(EbifParameters {
        systems: systems(),
        push: pushes.then_some(push),
        waiting_max: 8,
        request_timeout: TIMEOUT,
        group_bytes_max: 10_000,
        sampling: Some(ALL),
    });
    at(0, &mut ebif, [TRG, SFI, ROS[0], ROS[1]].map(|node| up(node, 0)));
    ebif
}

/// What a component sends to whom in a pass at this time in ms.
fn at(time: u64, component: &mut impl Component, inputs: impl IntoIterator<Item = Input>) -> Vec<(NodeId, Message)> {
    let send = |action| match action {
        Action::Send { to, message } => (to, message),
        other => panic!("{other:?} is no message"),
    };
    pass(component, ms(time), inputs).into_iter().map(send).collect()
}

fn ms(time: u64) -> Time {
    Time::ZERO + Duration::from_millis(time)
}

fn counters(ebif: &Ebif) -> EbifCounters {
    EbifCounters::from_values(&ebif.report(Time::ZERO).counters)
}

fn info(event: u64) -> EventInfo {
    EventInfo { event: EventId(event), ..EventInfo::default() }
}

fn issued(to: NodeId, last: u64) -> (NodeId, Message) {
    (to, Message::IssuedUpTo(EventId(last)))
}

fn says(from: NodeId, message: Message) -> Input {
    Input::Message { from, message }
}

fn peer(node: NodeId, state: PeerState) -> Input {
    Input::Peer { node, state }
}

fn up(node: NodeId, life: u32) -> Input {
    peer(node, PeerState::Up(Incarnation(life)))
}

fn clear(sequence: u64, oldest_valid: u64, events: std::ops::Range<u64>, last: bool) -> Input {
    let events = events.map(EventId).collect::<Vec<_>>().into();
    says(DFM, Message::Clear { sequence, oldest_valid: EventId(oldest_valid), last, events })
}

fn asks(event: u64, request: u32, robs: &[u32]) -> Input {
    let requests = vec![DataRequest { event: info(event), attempt: 1, request, robs: robs.to_vec() }];
    says(SFI, Message::EventRequest { requests: requests.into() })
}

fn orders(events: &[u64]) -> Input {
    let order = |&event: &u64| PushOrder { event: info(event), sfi: SFI };
    says(TRG, Message::Push(events.iter().map(order).collect()))
}

/// A read-out system answers requests for events, with so many bytes.
fn gives(from: NodeId, answers: &[(u64, u32, u32)]) -> Input {
    let reply = |&(event, request, len_bytes): &(u64, u32, u32)| DataReply {
        event: EventId(event),
        attempt: 1,
        request,
        missing: Vec::new(),
        len_bytes,
    };
    let len_bytes = answers.iter().map(|(_, _, len_bytes)| len_bytes).sum();
    let replies = answers.iter().map(reply).collect();
    says(from, Message::EventReply { pushed: 0, replies, bulk: Bulk::Modelled { len_bytes, seed: 0 } })
}
