//! One read-out system of twelve ROBs with triggers, requests of level 2, building and clears together `[EB2007 Fig. 6]`.

use assembly::Assembly;
use base::ids::{EventId, NodeId, Role};
use base::time::Time;
use configuration::{Dfm, DfmInput, L2pu, L2sv, Level1, Partition as Configuration};
use dataflow::component::{Action, Component, Input, Outbox, Outcome, Work};
use dataflow::message::{DataRequest, EventInfo, Message};
use transport::page_pool::Pool;

use crate::building;
use crate::partition;

/// Of each event some ROBs are asked for by level 2; one in ten is accepted, and asked for as a whole.
pub(crate) fn requests(events: u64) {
    let mut source = Source::new();
    for number in 0..events {
        let event = EventInfo { event: EventId(number), ordinal: number, ..EventInfo::default() };
        source.take(source.level1, Message::L1Accept { events: vec![event], times: Vec::new() });
        let first = (number % (ROBS - ROBS_PER_REQUEST)) as u32;
        let robs = (first..first + ROBS_PER_REQUEST as u32).collect();
        source.take(source.l2pu, Message::RoiRequest { event: event.event, request: 1, robs });
        if number.is_multiple_of(ACCEPTED_ONE_IN) {
            let request = DataRequest { event, attempt: 1, request: 1, robs: Vec::new() };
            source.take(source.sfi, Message::EventRequest { requests: vec![request].into() });
        }
        if (number + 1).is_multiple_of(CLEAR_GROUP) {
            let cleared = number + 1 - CLEAR_GROUP..number + 1;
            let (sequence, oldest_valid) = ((number + 1) / CLEAR_GROUP, EventId(number + 1));
            let events = cleared.map(EventId).collect::<Vec<_>>().into();
            source.take(source.dfm, Message::Clear { sequence, oldest_valid, last: false, events });
        }
        source.flush();
    }
    let accepted = events.div_ceil(ACCEPTED_ONE_IN);
    assert_eq!(source.fragments_out, events * ROBS_PER_REQUEST + accepted * ROBS);
}

struct Source {
    ros: Box<dyn Component + Send>,
    level1: NodeId,
    l2pu: NodeId,
    dfm: NodeId,
    sfi: NodeId,
    pages: Pool,
    out: Outbox,
    fragments_out: u64,
}

impl Source {
    fn new() -> Self {
        let built = building::configuration(1, DATA_BYTES);
        let configuration = Configuration {
            level1: Some(Level1 { in_flight: 2 * CLEAR_GROUP as u32, ..Level1::default() }),
            l2sv: Some(L2sv::default()),
            l2pu: Some(L2pu::default()),
            dfm: Dfm { input: DfmInput::Level2, ..built.dfm },
            ..built
        };
        let assembly = Assembly::new(configuration, vec![(0..ROBS as u32).collect()]);
        let one = |role| assembly.of(role)[0];
        let pages = partition::fragment_pages(DATA_BYTES, (2 * CLEAR_GROUP * ROBS) as usize);
        Self {
            ros: assembly.component(one(Role::Ros), None),
            level1: one(Role::Level1),
            l2pu: one(Role::L2pu),
            dfm: one(Role::Dfm),
            sfi: one(Role::Sfi),
            pages,
            out: Outbox::new(),
            fragments_out: 0,
        }
    }

    fn take(&mut self, from: NodeId, message: Message) {
        self.ros.handle(Time::ZERO, Input::Message { from, message }, &mut self.out);
        self.carry_out();
    }

    fn flush(&mut self) {
        self.ros.flush(Time::ZERO, &mut self.out);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while !self.out.is_empty() {
            let mut out = core::mem::take(&mut self.out);
            for action in out.drain() {
                match action {
                    Action::Start { ticket, work: Work::ReadOut(events) } => {
                        events.iter().for_each(|event| self.read_out(event.event));
                        let outcome = Outcome::ReadOut(events.len());
                        self.ros.handle(Time::ZERO, Input::Done { ticket, outcome }, &mut self.out);
                    }
                    Action::Send { message, .. } => self.fragments_out += fragments(&message),
                    other => panic!("a read-out system with room asks for no {other:?}"),
                }
            }
            if self.out.is_empty() {
                self.out = out;
            }
        }
    }

    fn read_out(&mut self, event: EventId) {
        for rob in 0..ROBS {
            let (head, bulk) = partition::fragment(&self.pages, rob as u32, event, DATA_BYTES);
            self.ros.handle(Time::ZERO, Input::Fragment { rob: rob as u16, head, bulk }, &mut self.out);
        }
    }
}

fn fragments(message: &Message) -> u64 {
    message.bulk().map_or(0, |bulk| bulk.slices().len() as u64)
}

const ROBS: u64 = 12;
const ROBS_PER_REQUEST: u64 = 2;
const ACCEPTED_ONE_IN: u64 = 10;
const CLEAR_GROUP: u64 = 100;
const DATA_BYTES: usize = 1000;
