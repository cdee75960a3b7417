//! Components of a partition in one thread: messages go through a queue, time stands still until nothing else happens.

use std::collections::VecDeque;
use std::sync::Arc;

use assembly::{Assembly, ByLot};
use base::bulk::{Bulk, PageSlice};
use base::ids::{EventId, Incarnation, NodeId, Role};
use base::time::Time;
use dataflow::component::{Action, Input, Outbox, Outcome, PeerState, Ticket, Work};
use dataflow::level1::trigger::{Trigger, TriggerSource};
use dataflow::message::{Command, Envelope, EventInfo, Message, Roi};
use dataflow::node::{Node, RUN_CONTROL};
use dataflow::readout::fragment::FragmentHead;
use dataflow::report::Report;
use eformat::{RobParams, RodHeader, SourceId, check_rob, write_rob_fragment};
use transport::page_pool::{Pool, PoolOptions};

use crate::files::Files;

/// The components, and what is on its way between them.
pub(crate) struct Partition {
    nodes: Vec<Option<Node>>,
    readout: Vec<NodeId>,
    steering: ByLot,
    /// Bytes of data in a fragment.
    data_bytes: usize,
    pages: Pool,
    files: Option<Files>,
    queue: VecDeque<(Envelope, Message)>,
    work: VecDeque<(NodeId, Ticket, Work)>,
    touched: Vec<NodeId>,
    out: Outbox,
    now: Time,
}

impl Partition {
    /// The applications of a configuration; read-out systems have one ROB each. Triggers have so many regions of interest.
    pub(crate) fn new(configuration: configuration::Partition, rois: usize, data_bytes: usize) -> Self {
        let robs = (0..configuration.ros.count).map(|rob| vec![rob]).collect();
        let pages_per_rob = configuration.ros.pages as usize;
        let assembly = Assembly::new(configuration, robs);
        let roles: Arc<[Role]> = assembly.roles().into();
        let node = |id| {
            let component = assembly.component(id, Some(Box::new(Triggers { rois })));
            Node::new(id, assembly.run(), Incarnation(0), Arc::clone(&roles), component)
        };
        let applications = assembly.applications.iter().map(|app| Some(node(app.node)));
        let nodes = core::iter::once(None).chain(applications).collect();
        let readout = assembly.of(Role::Ros);
        let pages = fragment_pages(data_bytes, pages_per_rob * readout.len());
        Self {
            nodes,
            readout,
            steering: assembly.skeleton(),
            data_bytes,
            pages,
            files: None,
            queue: VecDeque::new(),
            work: VecDeque::new(),
            touched: Vec::new(),
            out: Outbox::new(),
            now: Time::ZERO,
        }
    }

    /// Recorders write here.
    pub(crate) fn with_files(self, files: Files) -> Self {
        Self { files: Some(files), ..self }
    }

    /// Makes all known to one another and starts them, those that take before those that give. Read-out systems have nothing
    /// to do with one another.
    pub(crate) fn start(&mut self) {
        let ids: Vec<NodeId> = self.nodes.iter().flatten().map(Node::id).collect();
        let is_readout: Vec<bool> = ids.iter().map(|id| self.readout.contains(id)).collect();
        for (&to, &to_readout) in ids.iter().zip(&is_readout) {
            let others = ids.iter().zip(&is_readout).filter(|(node, of)| **node != to && !(to_readout && **of));
            for &node in others.map(|(node, _)| node).chain([&RUN_CONTROL]) {
                self.input(to, Input::Peer { node, state: PeerState::Up(Incarnation(0)) });
            }
        }
        for to in ids {
            self.input(to, Input::Command(Command::Start));
        }
    }

    /// Goes on until nothing is left to do now and `done` says so of the report of the one with a role; between, until deadlines.
    pub(crate) fn run_until(&mut self, role: Role, done: impl Fn(&Report) -> bool) {
        let of_role = |node: &&Node| node.report(Time::ZERO).role == role;
        let node = self.nodes.iter().flatten().find(of_role).expect("there is one with the role").id();
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
                Action::Broadcast { to, message } => {
                    let (last, others) = to.split_last().expect("a message to several");
                    others.iter().for_each(|to| self.send(from, *to, message.clone()));
                    self.send(from, *last, message);
                }
                Action::MulticastToReadout(message) => {
                    for index in 0..self.readout.len() {
                        self.send(from, self.readout[index], message.clone());
                    }
                }
                Action::Start { ticket, work } => self.work.push_back((from, ticket, work)),
                Action::Show(_) => panic!("nobody watches here"),
                Action::Link { .. } => panic!("no source pushes here"),
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
            Work::Record(recording) => self.files.as_mut().expect("a recorder has files").record(&recording),
            other => panic!("no component here asks for {other:?}"),
        };
        self.input(node, Input::Done { ticket, outcome });
    }

    fn fragment(&self, node: NodeId, event: &EventInfo) -> (FragmentHead, Bulk) {
        fragment(&self.pages, self.rob(node), event.event, self.data_bytes)
    }

    /// Those of the read-out systems count from 0, as these do.
    fn rob(&self, node: NodeId) -> u32 {
        u32::from(node.0 - self.readout[0].0)
    }

    fn node(&self, id: NodeId) -> &Node {
        self.nodes[usize::from(id.0)].as_ref().expect("a node of this partition")
    }
}

struct Triggers {
    rois: usize,
}

impl TriggerSource for Triggers {
    fn trigger(&mut self, _: u64) -> Option<Trigger> {
        Some(Trigger { rois: vec![Roi::default(); self.rois], ..Trigger::default() })
    }
}

/// Pages for fragments with so many bytes of data.
pub(crate) fn fragment_pages(data_bytes: usize, pages: usize) -> Pool {
    let (name, page_len) = ("fragments".to_owned(), (data_bytes + 128).next_multiple_of(64));
    Pool::new(&PoolOptions { name, page_len, pages, prefault: true }).expect("a pool of this size is possible")
}

/// As emulated links make them: headers and trailer are written, the data lie there.
// Apart, so that no caller whose lengths the compiler knows makes fragments for less.
#[inline(never)]
pub(crate) fn fragment(pages: &Pool, source_id: u32, event: EventId, data_bytes: usize) -> (FragmentHead, Bulk) {
    let rod = RodHeader { source_id: SourceId(source_id), lvl1_id: event.lvl1_id().0, ..RodHeader::default() };
    let params = RobParams { rod, ..RobParams::default() };
    let len = params.rob_bytes(data_bytes);
    let mut page = pages.take().expect("there are pages for all events in hand");
    write_rob_fragment(&mut page.bytes_mut()[..len], &params, data_bytes);
    let slice: PageSlice = page.freeze(len);
    (FragmentHead { event, status: 0, len_bytes: len as u32 }, Bulk::Pages(slice))
}
