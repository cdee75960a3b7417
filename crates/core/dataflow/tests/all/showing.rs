//! Events that a read-out system shows to those who watch: what it gives to event builders.

use std::sync::Arc;
use std::time::Duration;

use base::bulk::{Bulk, PageSlice};
use base::ids::{EventId, Incarnation, NodeId};
use base::sampling::SamplingRule;
use base::time::Time;
use dataflow::component::{Action, Input, LinkNews, Outcome, PeerState, Ticket};
use dataflow::message::{Command, DataRequest, EventInfo, Message};
use dataflow::readout::fragment::FragmentHead;
use dataflow::readout::ros::{LinkParameters, LinksParameters, ReadOut, Ros, RosParameters};
use dataflow::report::{Counters, RosCounters};

use dataflow::component::Component;

use crate::pass::{accept, pass};

#[test]
fn what_is_asked_for_is_shown_when_its_data_are_there() {
    let mut ros = ros(ReadOut::OnTrigger);
    does(&mut ros, [Input::Command(Command::Sample), says(LEVEL1, accept((1..=4).map(info).collect()))]);
    assert_eq!(does(&mut ros, [asks(1), asks(2), asks_one(3)]), [], "nothing has come");
    assert_eq!(does(&mut ros, [comes(0, 1), comes(1, 1)]), [(1, 8, vec![])]);
    assert_eq!(does(&mut ros, [comes(0, 3), comes(1, 3)]), [(2, 0, vec![])][..0], "a ROB alone was asked for");
    // The links have passed event 2: its data will not come.
    assert_eq!(counts(&ros), (1, 1));
    does(&mut ros, [comes(0, 4), asks(4)]);
    assert_eq!(does(&mut ros, [Input::Command(Command::Sample), comes(1, 4)]), [(4, 8, vec![])]);
}

#[test]
fn what_is_read_for_a_request_is_shown_when_it_was_read() {
    let mut ros = ros(ReadOut::OnRequest);
    does(&mut ros, [Input::Command(Command::Sample), asks(7)]);
    let read = Input::Done { ticket: Ticket(0), outcome: Outcome::ReadOut(1) };
    assert_eq!(does(&mut ros, [comes(0, 7), comes(1, 7), read]), [(7, 8, vec![])]);
}

#[test]
fn an_event_without_data_is_lost_even_where_its_sources_are_tolerated() {
    let tolerated = LinkParameters { tolerated: true, ..LinkParameters::default() };
    let mut ros = pushed(tolerated);
    let news = |news| [0, 1].map(|rob| Input::Link { rob, news: LinkNews::clone(&news) });
    does(&mut ros, news(LinkNews::Up).into_iter().chain([Input::Command(Command::Start)]));
    does(&mut ros, [Input::Command(Command::Sample), says(LEVEL1, accept(vec![info(1), info(2)])), asks(1), asks(2)]);
    let shown = does(&mut ros, [comes(0, 2)].into_iter().chain(news(LinkNews::Idle(EventId(3)))));
    assert_eq!(shown, [(2, 4, vec![])], "what there is of an event is shown");
    assert_eq!(counts(&ros), (1, 1));
}

#[test]
fn without_room_for_a_sample_nothing_waits() {
    let mut ros = ros(ReadOut::OnTrigger);
    does(&mut ros, [Input::Command(Command::Sample), says(LEVEL1, accept((1..=4).map(info).collect()))]);
    let come = |event| [comes(0, event), comes(1, event)];
    does(&mut ros, [1, 2].map(come).into_iter().flatten());
    assert_eq!(does(&mut ros, [asks(1), asks(2)]), [(1, 8, vec![]), (2, 8, vec![])]);
    does(&mut ros, [asks(3)]);
    assert_eq!(counts(&ros), (2, 1), "lost at once");
    assert_eq!(does(&mut ros, come(3).into_iter().chain([Input::Command(Command::Sample)])), []);
}

/// Samples, and those that were lost.
fn counts(ros: &Ros) -> (u64, u64) {
    let counters = RosCounters::from_values(&ros.report(Time::ZERO).counters);
    (counters.samples, counters.samples_lost)
}

/// Events that are shown in a pass, with their bytes and the ROBs that are missing.
fn does(ros: &mut Ros, inputs: impl IntoIterator<Item = Input>) -> Vec<(u64, usize, Vec<u32>)> {
    let shown = |action| match action {
        Action::Send { message: Message::Sample(recording), .. } => {
            let built = recording.built;
            Some((built.event.event.0, built.bulk.len(), built.missing))
        }
        _ => None,
    };
    let shown = pass(ros, Time::ZERO, inputs).into_iter().filter_map(shown).collect();
    ros.check();
    shown
}

fn ros(read_out: ReadOut) -> Ros {
    with(read_out, LinksParameters::default())
}

/// Two links of this kind.
fn pushed(link: LinkParameters) -> Ros {
    with(ReadOut::Pushed, LinksParameters { each: vec![link; 2], ..LinksParameters::default() })
}

fn with(read_out: ReadOut, links: LinksParameters) -> Ros {
    let rule = SamplingRule { trigger_types: [0; 4], items: 0, prescale: 1, samples: 2, bytes: 100 };
    let mut ros = Ros::new(RosParameters {
        robs: vec![10, 11],
        pages_per_rob: 16,
        busy_above: 15,
        busy_below: 10,
        request_timeout: Duration::from_secs(1),
        group_bytes_max: 1000,
        read_out,
        links,
        push: None,
        level1: (read_out != ReadOut::OnRequest).then_some(LEVEL1),
        in_flight: 16,
        dfm: DFM,
        sampling: Some(rule),
        late: false,
    });
    let up = |node| Input::Peer { node, state: PeerState::Up(Incarnation::FIRST) };
    does(&mut ros, [up(LEVEL1), up(DFM), up(SFI)]);
    ros
}

fn says(from: NodeId, message: Message) -> Input {
    Input::Message { from, message }
}

fn asks(event: u64) -> Input {
    request(event, Vec::new())
}

fn asks_one(event: u64) -> Input {
    request(event, vec![10])
}

fn request(event: u64, robs: Vec<u32>) -> Input {
    let request = DataRequest { event: info(event), attempt: 1, request: 5, robs };
    says(SFI, Message::EventRequest { requests: Arc::new(vec![request]) })
}

fn comes(rob: u16, event: u64) -> Input {
    let head = FragmentHead { event: EventId(event), status: 0, len_bytes: 4 };
    Input::Fragment { rob, head, bulk: Bulk::Pages(PageSlice::from(vec![0; 4])) }
}

fn info(event: u64) -> EventInfo {
    EventInfo { event: EventId(event), ..EventInfo::default() }
}

const LEVEL1: NodeId = NodeId(1);
const DFM: NodeId = NodeId(2);
const SFI: NodeId = NodeId(3);
