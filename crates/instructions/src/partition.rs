//! Components of a partition in one thread: messages go through a queue, time stands still until nothing else happens.

use std::collections::VecDeque;

use dataflow::bulk::{Bulk, PageSlice};
use dataflow::component::{Action, Component, Input, Outbox, Outcome, PeerState, Ticket, Work};
use dataflow::ids::{Incarnation, NodeId, RunNumber};
use dataflow::level2::steering::Skeleton;
use dataflow::message::{Command, Envelope, EventInfo, Message};
use dataflow::node::{Node, RUN_CONTROL};
use dataflow::readout::fragment::FragmentHead;
use dataflow::report::Report;
use dataflow::time::Time;
use eformat::{RobParams, RodHeader, SourceId, check_rob, write_rob_fragment};
use transport::page_pool::{Pool, PoolOptions};

/// The components, and what is on its way between them.
pub(crate) struct Partition {
    nodes: Vec<Option<Node>>,
    readout: Vec<NodeId>,
    steering: Skeleton,
    /// Bytes of data in a fragment.
    data_bytes: usize,
    pages: Pool,
    queue: VecDeque<(Envelope, Message)>,
    work: VecDeque<(NodeId, Ticket, Work)>,
    touched: Vec<NodeId>,
    out: Outbox,
    now: Time,
}

impl Partition {
    /// Components by rising node; those of `readout` have one ROB, with the number of the node for its identifier.
    pub(crate) fn new(
        components: Vec<(NodeId, Box<dyn Component + Send>)>,
        readout: Vec<NodeId>,
        steering: Skeleton,
        data_bytes: usize,
    ) -> Self {
        let count = components.iter().map(|(id, _)| usize::from(id.0) + 1).max().unwrap_or(1);
        let mut nodes: Vec<Option<Node>> = (0..count).map(|_| None).collect();
        for (id, component) in components {
            nodes[usize::from(id.0)] = Some(Node::new(id, RunNumber(1), Incarnation(0), count, component));
        }
        let (name, page_len) = ("fragments".to_owned(), (data_bytes + 128).next_multiple_of(64));
        let options = PoolOptions { name, page_len, pages: PAGES_PER_ROB * readout.len(), prefault: true };
        let pages = Pool::new(&options).expect("a pool of this size is possible");
        Self {
            nodes,
            readout,
            steering,
            data_bytes,
            pages,
            queue: VecDeque::new(),
            work: VecDeque::new(),
            touched: Vec::new(),
            out: Outbox::new(),
            now: Time::ZERO,
        }
    }

    /// Makes all known to one another and starts them, those that take before those that give.
    pub(crate) fn start(&mut self) {
        let ids: Vec<NodeId> = self.nodes.iter().flatten().map(Node::id).collect();
        for &to in &ids {
            for &node in ids.iter().chain([&RUN_CONTROL]).filter(|node| **node != to) {
                self.input(to, Input::Peer { node, state: PeerState::Up(Incarnation(0)) });
            }
        }
        for to in ids {
            self.input(to, Input::Command(Command::Start));
        }
    }

    /// Goes on until nothing is left to do now and `done` says so of the report of a node; between, until deadlines.
    pub(crate) fn run_until(&mut self, node: NodeId, done: impl Fn(&Report) -> bool) {
        loop {
            self.run_now();
            if done(&self.node(node).report(self.now)) {
                return;
            }
            let deadlines = self.nodes.iter().flatten().filter_map(|node| Some((node.next_deadline()?, node.id())));
            let (next, id) = deadlines.min_by_key(|(next, _)| *next).expect("what waits has a deadline");
            self.now = self.now.max(next);
            self.input(id, Input::Deadline);
        }
    }

    fn run_now(&mut self) {
        loop {
            while let Some((envelope, message)) = self.queue.pop_front() {
                self.deliver(&envelope, message);
            }
            while let Some((node, ticket, work)) = self.work.pop_front() {
                self.work_on(node, ticket, work);
            }
            let mut touched = core::mem::take(&mut self.touched);
            touched.sort_unstable();
            touched.dedup();
            for id in touched.drain(..) {
                let node = self.nodes[usize::from(id.0)].as_mut().expect("a node of this partition");
                node.flush(self.now, &mut self.out);
                self.carry_out(id);
            }
            if self.touched.is_empty() {
                self.touched = touched;
            }
            if self.queue.is_empty() && self.work.is_empty() && self.touched.is_empty() {
                return;
            }
        }
    }

    fn deliver(&mut self, envelope: &Envelope, message: Message) {
        if let Message::EventReply { bulk, .. } = &message {
            for slice in bulk.slices() {
                check_rob(slice.as_bytes()).expect("a fragment is as it was written");
            }
        }
        let Some(node) = self.nodes[usize::from(envelope.to.0)].as_mut() else { return };
        node.receive(self.now, envelope, message, &mut self.out);
        self.touched.push(envelope.to);
        self.carry_out(envelope.to);
    }

    fn input(&mut self, to: NodeId, input: Input) {
        let node = self.nodes[usize::from(to.0)].as_mut().expect("a node of this partition");
        node.handle(self.now, input, &mut self.out);
        self.touched.push(to);
        self.carry_out(to);
    }

    fn carry_out(&mut self, from: NodeId) {
        let mut out = core::mem::take(&mut self.out);
        for action in out.drain() {
            match action {
                Action::Send { to, message } => self.send(from, to, message),
                Action::MulticastToReadout(message) => {
                    for index in 0..self.readout.len() {
                        self.send(from, self.readout[index], message.clone());
                    }
                }
                Action::Start { ticket, work } => self.work.push_back((from, ticket, work)),
                Action::Note(note) => panic!("nothing rare happens here: {note:?}"),
            }
        }
        self.out = out;
    }

    fn send(&mut self, from: NodeId, to: NodeId, message: Message) {
        if let Some(envelope) = self.node(from).envelope_to(to).filter(|_| to != RUN_CONTROL) {
            self.queue.push_back((envelope, message));
        }
    }

    fn work_on(&mut self, node: NodeId, ticket: Ticket, work: Work) {
        let outcome = match work {
            Work::ReadOut(events) => {
                for event in &events {
                    let (head, bulk) = self.fragment(node, event);
                    self.input(node, Input::Fragment { rob: 0, head, bulk });
                }
                Outcome::ReadOut(events.len())
            }
            Work::Steer(steer) => Outcome::Steered(self.steering.step(&steer)),
            other => panic!("no component here asks for {other:?}"),
        };
        self.input(node, Input::Done { ticket, outcome });
    }

    /// As emulated links make them: headers and trailer are written, the data lie there.
    fn fragment(&self, node: NodeId, event: &EventInfo) -> (FragmentHead, Bulk) {
        let rod = RodHeader {
            source_id: SourceId(u32::from(node.0)),
            lvl1_id: event.event.lvl1_id().0,
            ..RodHeader::default()
        };
        let params = RobParams { rod, ..RobParams::default() };
        let len = params.rob_bytes(self.data_bytes);
        let mut page = self.pages.take().expect("there are pages for all events in hand");
        write_rob_fragment(&mut page.bytes_mut()[..len], &params, self.data_bytes);
        let slice: PageSlice = page.freeze(len);
        (FragmentHead { event: event.event, status: 0, len_bytes: len as u32 }, Bulk::Pages(slice))
    }

    fn node(&self, id: NodeId) -> &Node {
        self.nodes[usize::from(id.0)].as_ref().expect("a node of this partition")
    }
}

/// More than there are events in hand.
const PAGES_PER_ROB: usize = 1024;
