//! A source that leads: each fragment from its program into a page of the read-out system, to its trigger and its clear. Both ends of
//! the link and the read-out system are in one thread; only the opening needs another one.

use assembly::Assembly;
use base::bulk::Bulk;
use base::ids::{EventId, NodeId, Role};
use base::time::Time;
use configuration::Partition;
use core::time::Duration;
use dataflow::component::{Action, Component, Input, LinkNews, LinkOrder as ReadOutOrder, Outbox};
use dataflow::message::{Command, EventInfo, LinkTrigger, Message};
use eformat::StatusWord;
use link::{Address, Arrival, Head, Intake, IntakeParameters, LinkOrder, Order, Secret, Sender, Settings};
use rol::{Pushed, PushedFragments};
use transport::idle::IdleStrategy;
use transport::page_pool::Page;
use transport::poller::Poller;
use transport::scheduler::Scheduler;

/// Over shared memory.
pub(crate) fn shared(fragments: u64) {
    push("shm:source", fragments);
}

/// Over TCP, on the loopback interface.
pub(crate) fn tcp(fragments: u64) {
    push("tcp://127.0.0.1:0", fragments);
}

/// Fragments of 1 kB, in groups of 32.
fn push(at: &str, fragments: u64) {
    let mut readout = ReadOut::new();
    let mut line = Line::new(at);
    let mut sender = line.connect(&mut readout);
    for first in (0..fragments).step_by(GROUP as usize) {
        let group = first..(first + GROUP).min(fragments);
        group.clone().for_each(|number| send(&mut sender, number));
        sender.flush().expect("the read-out system is there");
        while readout.fragments < group.end {
            line.poll(Duration::ZERO, &mut readout);
        }
        readout.flush();
    }
    assert_eq!(readout.issued, fragments);
}

fn send(sender: &mut Sender, number: u64) {
    let place = sender.reserve(DATA_BYTES).expect("the link is open").expect("pages of the groups before are back");
    place.fill(number as u8);
    let head = Head { number: Some(number), ..Head::default() };
    sender.commit(&head, DATA_BYTES).expect("it was reserved");
}

/// The read-out system's end of the link.
struct Line {
    intake: Intake,
    poller: Poller,
}

impl Line {
    fn new(at: &str) -> Self {
        let partition = format!("instructions-{}", std::process::id());
        let parameters = IntakeParameters {
            at: Address::of_intake(at, &partition).expect("an address"),
            name: NAME.to_owned(),
            id: SOURCE_ID,
            key: Some(Secret::new(KEY)),
            size_max: DATA_BYTES,
            headroom: PushedFragments::HEADROOM,
            tailroom: PushedFragments::TAILROOM,
            pages: 2 * PAGES as usize,
            run: RUN,
            shared: false,
            frames: None,
            from: None,
        };
        let waker = Scheduler::<()>::new(IdleStrategy::default()).expect("a scheduler").waker();
        let mut intake = Intake::open(parameters, waker).expect("a place to listen at");
        let mut poller = Poller::new().expect("a poller");
        intake.register(&mut poller).expect("it can be watched");
        Self { intake, poller }
    }

    /// A sender in its run.
    fn connect(&mut self, readout: &mut ReadOut) -> Sender {
        let at = self.intake.address();
        let settings = Settings {
            name: NAME.to_owned(),
            id: None,
            key: Some(Secret::new(KEY)),
            patience: Duration::from_secs(60),
        };
        let mut sender = std::thread::scope(|scope| {
            let opening = scope.spawn(|| Sender::open(&at, &settings).expect("a link"));
            while !opening.is_finished() {
                self.poll(OPENING, readout);
            }
            opening.join().expect("it has opened")
        });
        while sender.wait(Duration::ZERO).expect("a link") != (Order::Start { run: RUN }) {
            self.poll(OPENING, readout);
        }
        sender
    }

    fn poll(&mut self, wait: Duration, readout: &mut ReadOut) {
        self.poller.wait(Some(wait)).expect("what is watched is open");
        self.intake.poll(Time::ZERO, &mut self.poller, GROUP as usize, &mut |arrival| match arrival {
            Arrival::Fragment { head, page, len, .. } => readout.on_fragment(&head, page, len),
            Arrival::Up { .. } => readout.on_news(LinkNews::Up),
            other => panic!("a source in its run says no {other:?}"),
        });
        readout.orders.drain(..).for_each(|order| self.intake.order(order));
    }
}

/// The read-out system, and what level 1 and DFM would say to it.
struct ReadOut {
    ros: Box<dyn Component + Send>,
    level1: NodeId,
    dfm: NodeId,
    framing: PushedFragments,
    out: Outbox,
    orders: Vec<LinkOrder>,
    fragments: u64,
    issued: u64,
}

impl ReadOut {
    fn new() -> Self {
        let configuration = Partition::parse("links", &configuration(), &[]).expect("a configuration");
        let assembly = Assembly::new(configuration, vec![vec![SOURCE_ID]]);
        let one = |role| assembly.of(role)[0];
        let mut readout = Self {
            ros: assembly.component(one(Role::Ros), None),
            level1: one(Role::Level1),
            dfm: one(Role::Dfm),
            framing: PushedFragments { source_id: SOURCE_ID, run_number: RUN, adler32: false },
            out: Outbox::new(),
            orders: Vec::new(),
            fragments: 0,
            issued: 0,
        };
        readout.input(Input::Command(Command::Start));
        readout.say(readout.level1, Message::Lead(true));
        readout
    }

    fn on_fragment(&mut self, head: &Head, page: Page, len: usize) {
        let event = EventId(head.number.expect("the source counts"));
        let pushed = Pushed { event, trigger_type: head.trigger_type, status: StatusWord::GOOD };
        let (fragment, slice) = self.framing.frame(page, len, &pushed);
        let (time, bulk) = (timing::Interval::default(), Bulk::Pages(slice));
        self.fragments += 1;
        self.on_news(LinkNews::Fragment { head: fragment, trigger_type: head.trigger_type, time, bulk });
    }

    fn on_news(&mut self, news: LinkNews) {
        self.input(Input::Link { rob: 0, news });
    }

    fn flush(&mut self) {
        self.ros.flush(Time::ZERO, &mut self.out);
        self.carry_out();
    }

    fn say(&mut self, from: NodeId, message: Message) {
        self.input(Input::Message { from, message });
    }

    fn input(&mut self, input: Input) {
        self.ros.handle(Time::ZERO, input, &mut self.out);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while !self.out.is_empty() {
            let mut out = core::mem::take(&mut self.out);
            for action in out.drain() {
                match action {
                    Action::Send { message: Message::LinkTriggers { triggers, .. }, .. } => self.issue(&triggers),
                    Action::Link { order: ReadOutOrder::Start, .. } => {
                        self.orders.push(LinkOrder::Start { run: RUN });
                    }
                    Action::Link { order, .. } => panic!("a link with room is told no {order:?}"),
                    _ => {}
                }
            }
            if self.out.is_empty() {
                self.out = out;
            }
        }
    }

    /// As level 1 does, and the DFM soon after.
    fn issue(&mut self, triggers: &[LinkTrigger]) {
        let event = |(ordinal, trigger): (u64, &LinkTrigger)| EventInfo {
            event: trigger.event,
            ordinal,
            trigger_type: trigger.trigger_type,
            ..EventInfo::default()
        };
        let events: Vec<EventInfo> = (self.issued..).zip(triggers).map(event).collect();
        self.issued += events.len() as u64;
        self.say(self.level1, Message::L1Accept { events, times: Vec::new() });
        if self.issued.is_multiple_of(CLEAR_GROUP) {
            let (sequence, oldest_valid) = (self.issued / CLEAR_GROUP, EventId(self.issued));
            let events = (self.issued - CLEAR_GROUP..self.issued).map(EventId).collect::<Vec<_>>().into();
            self.say(self.dfm, Message::Clear { sequence, oldest_valid, last: false, events });
        }
    }
}

fn configuration() -> String {
    format!(
        r#"
        partition = {{ name = "links", key = "{KEY}" }}
        level1 = {{ source = "link", leader = "{NAME}", in_flight = 1024 }}
        ros = {{ count = 1, pages = {PAGES} }}
        source = [{{ name = "{NAME}", size_max = "{DATA_BYTES} B" }}]
        dfm = {{}}
        sfi = {{ count = 1 }}
        "#
    )
}

const NAME: &str = "source";
const KEY: &str = "of a measurement, proved to nobody else";
const SOURCE_ID: u32 = 0x51_0000;
const RUN: u32 = 1;
const DATA_BYTES: usize = 1000;
const PAGES: u64 = 1024;
const GROUP: u64 = 32;
/// Between two looks for the one that opens the link. Idle looks would count.
const OPENING: Duration = Duration::from_millis(20);
/// About as in [EB2007 §II-B.1]: whole groups.
const CLEAR_GROUP: u64 = 3 * GROUP;
