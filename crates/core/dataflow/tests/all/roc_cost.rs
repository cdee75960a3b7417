//! What an EBIF spends on an event of 1 to 16 read-out systems, without network and driver.
//!
//! `ROBS=16 valgrind --tool=callgrind --toggle-collect='all::roc_cost::locate' …` counts instructions of the test program.

use std::hint::black_box;
use std::time::Duration;

use base::bulk::{Bulk, PageSlice};
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::component::{Action, Component, Input, Outbox, PeerState};
use dataflow::message::{DataReply, EventInfo, Message, PushOrder};
use dataflow::readout::pusher::{Destination, PushParameters};
use dataflow::report::{Counters, EbifCounters};
use dataflow::roc::CrateRos;
use dataflow::roc::ebif::{Ebif, EbifParameters};

const TRG: NodeId = NodeId(1);
const SFI: NodeId = NodeId(2);
const FIRST_ROS: u16 = 10;
const BATCH: u64 = 32;
const BATCHES: u64 = 200;

#[test]
#[ignore = "a measurement"]
fn cost_of_locating() {
    let robs = std::env::var("ROBS").ok().and_then(|robs| robs.parse().ok()).unwrap_or(4);
    let mut ebif = ebif(robs);
    for batch in 0..BATCHES {
        let orders = (0..BATCH).map(|place| order(batch * BATCH + place)).collect();
        let asked = locate(&mut ebif, vec![says(TRG, Message::Push(orders))]);
        let Some(
            Action::Broadcast { message: Message::EventRequest { requests }, .. }
            | Action::Send { message: Message::EventRequest { requests }, .. },
        ) = asked.first()
        else {
            panic!("{asked:?}")
        };
        let reply = |request: u32, event| DataReply { event, attempt: 1, request, missing: Vec::new(), len_bytes: 64 };
        let answers = (0..robs).map(|ros| {
            let replies = requests.iter().map(|request| reply(request.request, request.event.event)).collect();
            let bulk = Bulk::PageList(requests.iter().map(|_| PageSlice::from(vec![0; 64])).collect());
            says(NodeId(FIRST_ROS + ros), Message::EventReply { pushed: 0, replies, bulk })
        });
        let sent = locate(&mut ebif, answers.collect());
        assert!(!sent.is_empty());
    }
    let pushed = EbifCounters::from_values(&ebif.report(Time::ZERO).counters).pushed;
    assert_eq!(pushed, BATCH * BATCHES);
}

/// What is counted.
#[inline(never)]
fn locate(ebif: &mut Ebif, inputs: Vec<Input>) -> Vec<Action> {
    let mut out = Outbox::new();
    inputs.into_iter().for_each(|input| ebif.handle(Time::ZERO, input, &mut out));
    ebif.flush(Time::ZERO, &mut out);
    black_box(out.drain().collect())
}

fn ebif(robs: u16) -> Ebif {
    let push = PushParameters {
        destination: Destination::Assigned,
        sfis: vec![SFI],
        window_bytes: 1 << 40,
        bytes_per_s: None,
        burst_bytes: 0,
        group: 1,
        group_age: Duration::from_millis(1),
        seed: 1,
    };
    let system = |ros: u16| CrateRos { node: NodeId(FIRST_ROS + ros), robs: vec![ros.into()] };
    let mut ebif = Ebif::new(EbifParameters {
        systems: (0..robs).map(system).collect(),
        push: Some(push),
        waiting_max: 64,
        request_timeout: Duration::from_secs(60),
        group_bytes_max: 1 << 20,
        sampling: None,
    });
    let nodes = [TRG, SFI].into_iter().chain((0..robs).map(|ros| NodeId(FIRST_ROS + ros)));
    let up = |node| Input::Peer { node, state: PeerState::Up(Incarnation(0)) };
    nodes.for_each(|node| ebif.handle(Time::ZERO, up(node), &mut Outbox::new()));
    ebif
}

fn order(number: u64) -> PushOrder {
    PushOrder { event: EventInfo { event: EventId(number), ..EventInfo::default() }, sfi: SFI }
}

fn says(from: NodeId, message: Message) -> Input {
    Input::Message { from, message }
}
