//! The driver of one process: hosts components, carries their messages, does their work.
//!
//! Everything runs in one [`Scheduler`](transport::scheduler::Scheduler) thread, except the writing of files. A
//! message to a component of the same process goes through a queue in memory. A message to another process is
//! encoded into the send queue of its connection. A pass ends with one flush per connection: what one pass produces
//! travels together.

mod awaited;
mod backlog;
mod broadcasting;
mod carriers;
mod channel;
mod checks;
mod clocks;
mod datagrams;
mod filtering;
mod frames;
mod links;
mod links_error;
mod players;
mod recorder;
mod routes;
mod sharing;
mod sources;
mod stamping;
mod steering;
mod tasks;
#[cfg(test)]
mod tests;
mod turns;
mod unproven;
mod workshop;

use std::collections::VecDeque;
use std::sync::Arc;

use assembly::bounds::Covered;
use base::bulk::{Bulk, PageSlice};
use base::ids::{Incarnation, NodeId, Role, RunNumber};
use base::sampling::SamplingRule;
use base::time::Time;
use configuration::Way;
use dataflow::component::{Action, Component, Input, LinkNews, Note, Outbox, PeerState};
use dataflow::message::{Command, Envelope, Message, Recording};
use dataflow::node::{Node, RUN_CONTROL};
use dataflow::report::{CarrierKind, Network, Report};
use dataflow::turns::Turns;
use dataflow::wire;
use transport::clock;
use transport::frame::Frame;
use transport::link::{Lost, SendError};
use transport::page_pool::Pool;

pub use carriers::Carriers;
use carriers::{Choice, InSeveralWays, counted, medium_of};
pub use channel::{InvalidPeerAddress, PeerAddress};
pub use channel::{SHM_BATCH, SLICES_BATCH};
pub use checks::FragmentChecks;
pub use checks::byte_sum;
pub use datagrams::DatagramOptions;
use datagrams::{Datagrams, Sent};
pub use filtering::processed;
use links::{Heard, NotSent};
pub use links::{JOINING_PAGE_LEN, LinkEvent, Links, NetworkOptions};
pub use links_error::LinksError;
use membership::passage::Recipient;
use membership::passage::{LinkId, Strand};
pub use metering::{Meter, Sample, Samples, Section};
use metering::{Metering, stamp_sending};
pub use recorder::{EventMaker, RecordedStreams, file_record};
use routes::{Route, RouteTable};
pub use sources::RestingLinks;
use stamping::Stamping;
pub use steering::{Steering, Strategy};
use turns::Schedule;
use unproven::Outcome;
pub use workshop::WorkshopError;
pub use workshop::{Workshop, unpinned};

/// The components of a process and their connections.
pub struct Host {
    run: RunNumber,
    /// Of all applications by node id, run control included.
    roles: Arc<[Role]>,
    nodes: Vec<Option<Hosted>>,
    /// By node id: the present life of each application, as far as it is known.
    lives: Vec<Incarnation>,
    routes: RouteTable,
    carriers: Carriers,
    /// The connections.
    pub links: Links,
    /// Messages between components here.
    local: Turns<(Envelope, Message)>,
    /// Requests for building that came in this pass: those of level 2 are answered first, and then all of these.
    for_building: VecDeque<(Envelope, Message)>,
    /// For run control, if it is in this process.
    control: VecDeque<(NodeId, Message)>,
    /// What happened on connections, for whoever conducts this process.
    pub link_events: VecDeque<LinkEvent>,
    readout: Vec<NodeId>,
    /// Received bulk below this length is copied out of its page, which it would pin.
    copy_below: usize,
    check: FragmentChecks,
    out: Outbox,
    encoded: Vec<u8>,
    network: Network,
    /// Messages of another run to run control, which were refused.
    stale: u64,
    /// Says where the time goes.
    metering: Metering,
    schedule: Schedule,
    /// What sources have sent; empty between passes.
    news: Vec<(u16, LinkNews)>,
    /// What components show to whoever watches at this host; as much as he has asked for, and in memory of its own.
    shown: Vec<Recording>,
    /// What run control elsewhere must not miss, as it was said: its next life has to be told all of it.
    said: Vec<(NodeId, Message)>,
    stamping: Stamping,
}

struct Hosted {
    node: Node,
    role: Role,
    workshop: Workshop,
    /// Whether it was given something since it was flushed.
    touched: bool,
}

impl Host {
    /// A process without components, in a partition of nodes with these `roles`, run control included.
    pub fn new(
        run: RunNumber,
        roles: Arc<[Role]>,
        readout: Vec<NodeId>,
        links: Links,
        copy_below: usize,
        check: FragmentChecks,
        carriers: Carriers,
    ) -> Self {
        let node_count = roles.len();
        Self {
            run,
            roles,
            nodes: (0..node_count).map(|_| None).collect(),
            lives: vec![Incarnation::FIRST; node_count],
            routes: RouteTable::new(node_count),
            carriers,
            links,
            local: Turns::new(),
            for_building: VecDeque::new(),
            control: VecDeque::new(),
            link_events: VecDeque::new(),
            readout,
            copy_below,
            check,
            out: Outbox::new(),
            encoded: Vec::new(),
            network: Network::default(),
            stale: 0,
            metering: Metering::default(),
            schedule: Schedule::new(node_count),
            news: Vec::new(),
            shown: Vec::new(),
            said: Vec::new(),
            stamping: Stamping::default(),
        }
    }

    /// A process that does not know its partition yet.
    pub fn empty(links: Links) -> Self {
        Self::new(
            RunNumber(0),
            [Role::RunControl].into(),
            Vec::new(),
            links,
            0,
            FragmentChecks::default(),
            Carriers::unknown(),
        )
    }

    /// Run control is in this process: its messages come out of [`Host::next_for_control`].
    pub fn host_control(&mut self) {
        self.routes.data[usize::from(RUN_CONTROL.0)] = Route::Here;
    }

    /// An application is in this life from now on.
    pub fn set_life(&mut self, node: NodeId, life: Incarnation) {
        self.lives[usize::from(node.0)] = life;
    }

    /// The present life of an application, as far as it is known.
    pub fn life(&self, node: NodeId) -> Incarnation {
        self.lives.get(usize::from(node.0)).copied().unwrap_or(Incarnation::FIRST)
    }

    /// Says where the time goes from now on.
    pub fn set_meter(&mut self, meter: Meter) {
        self.metering.set_meter(meter);
    }

    /// What a meter has seen.
    pub fn take_meter(&mut self) -> Option<Meter> {
        self.metering.take_meter()
    }

    fn begin_metering(&mut self) {
        self.metering.begin_pass(|| (self.nodes.iter().flatten().count(), self.links.count()));
    }

    /// From here on time goes to this section.
    fn enter(&mut self, section: impl FnOnce() -> (Section, usize, usize)) {
        self.metering.enter(section);
    }

    fn leave(&mut self) {
        self.metering.leave();
    }

    /// Takes a component in, and makes it and the others here known to one another where they `talk`.
    pub fn host(
        &mut self,
        now: Time,
        id: NodeId,
        component: Box<dyn Component + Send>,
        workshop: Workshop,
        talk: impl Fn(NodeId, NodeId) -> bool,
    ) {
        let role = self.roles[usize::from(id.0)];
        let node = Node::new(id, self.run, self.life(id), Arc::clone(&self.roles), component);
        if workshop.has_thread() {
            self.schedule.working.push(id);
        }
        if workshop.sources().is_some() {
            self.schedule.sourced.push(id);
        }
        self.nodes[usize::from(id.0)] = Some(Hosted { node, role, workshop, touched: false });
        self.routes.data[usize::from(id.0)] = Route::Here;
        self.routes.control[usize::from(id.0)] = Route::Here;
        self.tell_peer(now, id, RUN_CONTROL, PeerState::Up(Incarnation::FIRST));
        let here: Vec<NodeId> = self.hosted().filter(|other| *other != id && talk(id, *other)).collect();
        for other in here {
            self.tell_peer(now, other, id, PeerState::Up(self.life(id)));
            self.tell_peer(now, id, other, PeerState::Up(self.life(other)));
        }
    }

    /// The nodes of this process, without run control.
    pub fn hosted(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter().flatten().map(|hosted| hosted.node.id())
    }

    /// Messages to this node travel over this connection from now on.
    pub fn route_over(&mut self, node: NodeId, link: LinkId) {
        self.routes.control[usize::from(node.0)] = Route::Link(link);
        self.route_data_over(node, link);
    }

    /// Messages of components to this node travel over this connection from now on.
    pub fn route_data_over(&mut self, node: NodeId, link: LinkId) {
        self.routes.data[usize::from(node.0)] = Route::Link(link);
    }

    /// What is chosen to travel so to this node travels over this connection from now on, unless there is such a one already.
    pub fn route_strand_over(&mut self, node: NodeId, strand: Strand, link: LinkId) {
        if self.routes.further[usize::from(node.0)].add(strand, link) {
            self.links.set_port(link, strand.port);
        }
    }

    /// Ends a connection. What travels over a further one to a node goes over the first one again.
    pub fn close(&mut self, link: LinkId) {
        self.links.close(link);
        self.routes.further.iter_mut().for_each(|routes| routes.remove(link));
    }

    /// What carries messages to other processes.
    pub fn carriers(&self) -> &Carriers {
        &self.carriers
    }

    /// The pools whose pages other processes may be given to read.
    pub fn lent_pools(&self) -> Vec<Pool> {
        self.nodes.iter().flatten().filter_map(|hosted| hosted.workshop.pool().cloned()).collect()
    }

    /// Tells a component here about a peer.
    pub fn tell_peer(&mut self, now: Time, to: NodeId, node: NodeId, state: PeerState) {
        self.input(now, to, Input::Peer { node, state });
    }

    /// Tells all components here that talk to it about a peer elsewhere.
    pub fn tell_all(&mut self, now: Time, node: NodeId, state: PeerState, talk: impl Fn(NodeId, NodeId) -> bool) {
        if !matches!(state, PeerState::Up(_)) {
            self.routes.lose(node);
            if let Some(datagrams) = &mut self.links.datagrams {
                datagrams.part(node);
            }
        }
        let here: Vec<NodeId> = self.hosted().filter(|here| talk(*here, node)).collect();
        for to in here {
            self.tell_peer(now, to, node, state);
        }
    }

    /// Hands an input to a component here and carries out what it asks for.
    pub fn input(&mut self, now: Time, to: NodeId, input: Input) {
        let now = self.forward(now);
        let Some(hosted) = &mut self.nodes[usize::from(to.0)] else { return };
        hosted.touch(&mut self.schedule.touched);
        let metered = !matches!(input, Input::Fragment { .. });
        if metered {
            self.metering.enter_input(to, hosted.role, &input);
        }
        hosted.node.handle(now, input, &mut self.out);
        self.carry_out(now, to);
        if metered {
            self.leave();
        }
    }

    /// Time as components see it does not go back within a pass.
    fn forward(&mut self, now: Time) -> Time {
        self.schedule.latest = self.schedule.latest.max(now);
        self.schedule.latest
    }

    /// Somebody at this host asks the components here for samples by this rule, or for none any more.
    pub fn watch(&mut self, now: Time, rule: Option<SamplingRule>) {
        let here: Vec<NodeId> = self.hosted().collect();
        here.into_iter().for_each(|node| self.input(now, node, Input::Watch(rule)));
    }

    /// Whether components have shown something.
    pub fn has_shown(&self) -> bool {
        !self.shown.is_empty()
    }

    /// What they have shown since the last call.
    pub fn take_shown(&mut self) -> Vec<Recording> {
        core::mem::take(&mut self.shown)
    }

    /// Sends a message of run control.
    pub fn send_from_control(&mut self, to: NodeId, message: Message) {
        let envelope = self.envelope(RUN_CONTROL, to);
        self.send(envelope, message);
    }

    /// An envelope outside a component's own, for joining and greeting.
    pub fn envelope(&self, from: NodeId, to: NodeId) -> Envelope {
        let (from_incarnation, to_incarnation) = (self.life(from), self.life(to));
        Envelope { from, to, run: self.run, from_incarnation, to_incarnation }
    }

    /// Whether a message to run control waits.
    pub fn has_for_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// The next message to run control.
    pub fn next_for_control(&mut self) -> Option<(NodeId, Message)> {
        self.control.pop_front()
    }

    /// The report of a component here.
    pub fn report(&self, now: Time, node: NodeId) -> Option<Report> {
        let hosted = self.nodes.get(usize::from(node.0))?.as_ref()?;
        let report = hosted.node.report(now);
        Some(self.with_what_is_here(node, report))
    }

    /// With what components do not see.
    fn with_what_is_here(&self, node: NodeId, report: Report) -> Report {
        Report { network: self.network(), sources: self.sources_now(node), ..report }
    }

    /// What this process received over the network.
    pub fn network(&self) -> Network {
        let datagrams = self.links.datagrams.as_ref().map(Datagrams::counts).unwrap_or_default();
        Network { datagrams: self.network.datagrams.plus(datagrams), ..self.network }
    }

    /// Messages of another run to run control, which were refused.
    pub fn stale(&self) -> u64 {
        self.stale
    }

    /// Feeds finished work back.
    fn collect_work(&mut self, now: Time) {
        let working = core::mem::take(&mut self.schedule.working);
        for &id in &working {
            let index = usize::from(id.0);
            while let Some((ticket, outcome, complaint)) = self.next_done(index) {
                if let Some(text) = complaint {
                    self.notice(id, text);
                }
                self.input(now, id, Input::Done { ticket, outcome });
            }
            while let Some(text) = self.nodes[index].as_mut().and_then(|hosted| hosted.workshop.next_notice()) {
                self.notice(id, text);
            }
            self.retry_read_out(now, id);
        }
        // Others have begun to wait meanwhile, and some need not any more.
        self.schedule.working.extend(working);
        let Self { schedule: Schedule { working, .. }, nodes, .. } = self;
        working.sort_unstable();
        working.dedup();
        working.retain(|id| nodes[usize::from(id.0)].as_ref().is_some_and(|hosted| hosted.workshop.is_working()));
    }

    fn next_done(&mut self, index: usize) -> Option<recorder::Done> {
        self.nodes[index].as_mut()?.workshop.next_done()
    }

    /// Reads out events that waited for pages.
    fn retry_read_out(&mut self, now: Time, id: NodeId) {
        let Some(hosted) = &mut self.nodes[usize::from(id.0)] else { return };
        let mut readings = core::mem::take(&mut hosted.workshop.stalled);
        while let Some(reading) = readings.front_mut() {
            if !self.read_out(now, id, reading) {
                break;
            }
            readings.pop_front();
        }
        if let Some(hosted) = &mut self.nodes[usize::from(id.0)] {
            readings.append(&mut hosted.workshop.stalled);
            hosted.workshop.stalled = readings;
        }
    }

    /// Takes in what arrived on a connection: whole frames, decoded and delivered one by one.
    fn receive(&mut self, now: Time, link: LinkId) {
        self.enter(|| (Section::Read, 1, 0));
        let (strand, before) = (self.links.strand(link), (self.network.messages, self.network.bytes));
        self.receive_metered(now, link);
        if let Some(Strand { medium, port }) = strand {
            self.network.count_since(before, counted(medium));
            if let Some(port) = port {
                self.network.ports[port] += self.network.bytes - before.1;
            }
        }
        self.leave();
    }

    fn receive_metered(&mut self, mut now: Time, link: LinkId) {
        for _ in 0..FILLS_PER_PASS {
            while let Some((frame, number)) = self.links.next_frame(link) {
                self.on_frame(now, link, frame, number);
            }
            match self.links.fill(now, link) {
                // After the pass began: latencies are measured to here.
                Ok(true) => now = clock::now(),
                Ok(false) => return,
                Err(lost) => {
                    self.network.malformed += u64::from(is_malformed(&lost));
                    return self.link_events.push_back(LinkEvent::Lost { link, reason: lost.to_string() });
                }
            }
        }
    }

    /// Goes on with those who have not proved who they are.
    fn hear_unproven(&mut self, now: Time) {
        for Heard { link, is_ours, outcome } in self.links.hear_unproven(now) {
            let (is_refused, reason) = match outcome {
                Outcome::Proven(_) => {
                    self.link_events.push_back(LinkEvent::Proven { link });
                    continue;
                }
                Outcome::Refused(reason) => (true, reason),
                Outcome::Lost(lost) => (is_malformed(&lost), lost.to_string()),
            };
            self.network.malformed += u64::from(is_refused);
            if is_ours {
                self.link_events.push_back(LinkEvent::Lost { link, reason });
            }
        }
    }

    fn on_frame(&mut self, now: Time, link: LinkId, frame: Frame, number: u32) {
        // Bulk that came by handle holds a page that its sender keeps for it alone.
        let has_own_page = !frame.rest.is_empty();
        let len = frame.head.len() + frame.rest.len();
        self.metering.add(0, len);
        self.enter(|| (Section::Decode, 1, len));
        self.on_metered_frame(now, link, (frame, number), has_own_page);
        self.leave();
    }

    fn on_metered_frame(&mut self, now: Time, link: LinkId, (frame, number): (Frame, u32), has_own_page: bool) {
        let (envelope, message) = match self.decode(&frame.head, frame.rest, number) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.refuse(link);
                return self.link_events.push_back(LinkEvent::Lost { link, reason: error.to_string() });
            }
        };
        match self.links.recipient(link, &envelope, &message) {
            Recipient::Component => {}
            Recipient::Joining => return self.link_events.push_back(LinkEvent::Message { link, envelope, message }),
            Recipient::Nobody => {
                self.refuse(link);
                let reason = "it says that it is another than it has proved to be".to_owned();
                return self.link_events.push_back(LinkEvent::Lost { link, reason });
            }
        }
        let message = if has_own_page { message } else { self.unpinned(message) };
        self.take(now, envelope, message);
    }

    fn decode(&mut self, head: &PageSlice, rest: Bulk, number: u32) -> Result<(Envelope, Message), wire::WireError> {
        self.network.messages += 1;
        self.network.bytes += (head.len() + rest.len()) as u64;
        wire::decode_numbered(head, rest, number)
    }

    /// Takes in what arrived in datagrams.
    fn receive_datagrams(&mut self, now: Time) {
        self.enter(|| (Section::ReadDatagrams, 1, 0));
        let before = (self.network.messages, self.network.bytes);
        self.receive_datagrams_metered(now);
        self.network.count_since(before, CarrierKind::Udp);
        self.leave();
    }

    fn receive_datagrams_metered(&mut self, mut now: Time) {
        for _ in 0..FILLS_PER_PASS {
            while let Some((frame, port)) = self.links.datagrams.as_mut().and_then(Datagrams::next_frame) {
                if let Some(port) = port {
                    self.network.ports[port] += frame.len() as u64;
                }
                self.metering.add(0, frame.len());
                self.enter(|| (Section::Decode, 1, frame.len()));
                match self.decode(&frame, Bulk::empty(), UNNUMBERED) {
                    Ok((envelope, message)) if message.may_be_lost() => {
                        let message = self.unpinned(message);
                        self.take(now, envelope, message);
                    }
                    // Made with the key of the run, and yet no message that travels so.
                    _ => self.network.malformed += 1,
                }
                self.leave();
            }
            if !self.links.datagrams.as_mut().is_some_and(|datagrams| datagrams.fill(now)) {
                return;
            }
            now = clock::now();
        }
    }

    /// Takes a message of a peer that has proved who it is.
    fn take(&mut self, now: Time, envelope: Envelope, message: Message) {
        if envelope.to == NodeId::READOUT {
            return self.take_multicast(now, envelope, &message);
        }
        if let Message::EventRequest { .. } = message {
            return self.for_building.push_back((envelope, message));
        }
        self.deliver(now, &envelope, message);
    }

    fn take_multicast(&mut self, now: Time, envelope: Envelope, message: &Message) {
        for index in 0..self.readout.len() {
            let to = self.readout[index];
            if self.routes.data[usize::from(to.0)] == Route::Here {
                self.deliver(now, &Envelope { to, to_incarnation: self.life(to), ..envelope }, message.clone());
            }
        }
    }

    /// Answers the requests for building that came in this pass.
    fn serve_building(&mut self, now: Time) {
        while let Some((envelope, message)) = self.for_building.pop_front() {
            self.deliver(now, &envelope, message);
        }
    }

    /// Bulk that would hold on to a page that it hardly fills is copied out of it.
    fn unpinned(&self, mut message: Message) -> Message {
        if let Some(bulk) = message.bulk_mut()
            && bulk.len() < self.copy_below
            && let [slice] = bulk.slices()
            && !slice.is_empty()
        {
            *bulk = Bulk::Pages(PageSlice::copy_of(slice.as_bytes()));
        }
        message
    }

    /// Hands a message to run control or to a component here.
    pub fn deliver(&mut self, now: Time, envelope: &Envelope, message: Message) {
        if envelope.to == RUN_CONTROL {
            match envelope.run == self.run {
                true => self.control.push_back((envelope.from, message)),
                false => self.stale += 1,
            }
            return;
        }
        if self.stamp(envelope, &message) {
            return;
        }
        if let Some(Some(hosted)) = self.nodes.get(usize::from(envelope.to.0)) {
            self.metering.enter_message(hosted.role, envelope, &message);
            self.deliver_to_component(now, envelope, message);
            return self.leave();
        }
        self.deliver_to_component(now, envelope, message);
    }

    fn deliver_to_component(&mut self, now: Time, envelope: &Envelope, message: Message) {
        let message = match message {
            Message::EventReply { pushed, replies, bulk } if !self.check.passes(&replies, &bulk) => {
                let (replies, bulk) = self.check.sound_ones(replies, bulk);
                // The builder asks again for the others, and in the end does without.
                self.network.malformed += 1;
                Message::EventReply { pushed, replies, bulk }
            }
            message => message,
        };
        if self.check.data
            && let Message::EventReply { bulk, .. } = &message
        {
            let sum = bulk.slices().iter().map(|slice| byte_sum(slice.as_bytes())).sum();
            self.network.data_sum = self.network.data_sum.wrapping_add(sum);
        }
        let now = self.forward(now);
        let Some(hosted) = self.nodes.get_mut(usize::from(envelope.to.0)).and_then(Option::as_mut) else {
            self.network.malformed += 1;
            return;
        };
        hosted.touch(&mut self.schedule.touched);
        hosted.node.receive(now, envelope, message, &mut self.out);
        self.carry_out(now, envelope.to);
    }

    /// Carries out the actions that a component left in the outbox.
    fn carry_out(&mut self, now: Time, from: NodeId) {
        if self.out.is_empty() {
            return;
        }
        let mut out = core::mem::take(&mut self.out);
        for action in out.drain() {
            match action {
                Action::Send { to, message } => self.send_from(from, to, message),
                Action::Broadcast { to, message } => self.broadcast(from, &to, message),
                Action::MulticastToReadout(message) => self.multicast(from, message),
                Action::Show(recording) => self.shown.push(unpinned(*recording)),
                Action::Start { ticket, work } => self.start(now, from, ticket, work),
                Action::Link { rob, order } => self.order_source(from, rob, order),
                Action::Note(Note::Source { rob, finding }) => {
                    let text = clocks::in_words(&self.name_of_source(from, rob), finding);
                    self.notice(from, text);
                }
                Action::Note(note) => {
                    let is_well = matches!(note, Note::RecordingResumed);
                    let text = describe(&note);
                    self.say(from, if is_well { Message::News(text) } else { Message::Notice(text) });
                }
            }
        }
        if self.out.is_empty() {
            // Keeps its memory.
            self.out = out;
        }
    }

    fn send_from(&mut self, from: NodeId, to: NodeId, message: Message) {
        self.metering.sends(&message);
        let hosted = self.nodes[usize::from(from.0)].as_ref().expect("a component here sends");
        let Some(envelope) = hosted.node.envelope_to(to) else { return };
        let message = match message {
            Message::Report(report) => Message::Report(Box::new(self.with_what_is_here(from, *report))),
            message => hosted.workshop.prepared(message),
        };
        if to == RUN_CONTROL && must_arrive(&message) && self.routes.data[usize::from(to.0)] != Route::Here {
            self.said.push((from, message.clone()));
        }
        self.send(envelope, message);
    }

    /// Run control is in another life: it is told all that it must not miss.
    pub fn say_again(&mut self) {
        for (from, message) in self.said.clone() {
            let envelope = self.envelope(from, RUN_CONTROL);
            self.send(envelope, message);
        }
    }

    fn send(&mut self, envelope: Envelope, message: Message) {
        stamp_sending(&envelope, &message);
        let routes = if envelope.from == RUN_CONTROL { &self.routes.control } else { &self.routes.data };
        match routes.get(usize::from(envelope.to.0)).copied().unwrap_or(Route::Nowhere) {
            Route::Nowhere => {}
            Route::Here if envelope.to == RUN_CONTROL => self.control.push_back((envelope.from, message)),
            Route::Here => self.local.push(envelope.to, (envelope, message)),
            Route::Link(link) => {
                self.enter(|| (Section::Encode, 1, message.bulk().map_or(0, Bulk::len)));
                // Run control keeps to the connection by which a process joined.
                if self.carriers.are_plain() || envelope.from == RUN_CONTROL {
                    self.send_over(link, &envelope, &message);
                } else {
                    self.send_by_choice(link, &envelope, message);
                }
                self.leave();
            }
        }
    }

    /// Sends a message to another process, or its parts, as is chosen for its type. `link` takes what has no other way.
    fn send_by_choice(&mut self, link: LinkId, envelope: &Envelope, message: Message) {
        match self.carriers.choose(envelope, &message) {
            Ok(choice) => self.send_so(choice, link, envelope, &message),
            Err(InSeveralWays) => {
                let parts = self.carriers.divide(envelope, message);
                parts.iter().for_each(|(choice, part)| self.send_so(*choice, link, envelope, part));
            }
        }
    }

    fn send_so(&mut self, choice: Choice, link: LinkId, envelope: &Envelope, message: &Message) {
        self.encode(envelope, message);
        self.send_encoded(choice, link, envelope, message);
    }

    fn send_encoded(&mut self, choice: Choice, link: LinkId, envelope: &Envelope, message: &Message) {
        let none = Bulk::empty();
        let bulk = message.bulk().unwrap_or(&none);
        if choice.way == Way::Udp
            && let Some(datagrams) = &mut self.links.datagrams
            && datagrams.send((envelope.to, choice.port), message, &self.encoded, bulk) == Sent::Done
        {
            return;
        }
        let routes = &self.routes.further[usize::from(envelope.to.0)];
        let chosen = medium_of(choice.way).and_then(|medium| routes.find(medium, choice.port));
        self.queue(chosen.unwrap_or(link), envelope, message, bulk);
    }

    /// Encodes a message into the send queue of a connection.
    pub fn send_over(&mut self, link: LinkId, envelope: &Envelope, message: &Message) {
        self.encode(envelope, message);
        let none = Bulk::empty();
        self.queue(link, envelope, message, message.bulk().unwrap_or(&none));
    }

    fn encode(&mut self, envelope: &Envelope, message: &Message) {
        self.encoded.clear();
        wire::encode(envelope, message, &mut self.encoded);
    }

    /// Queues what is encoded, and bulk behind it, on a connection.
    fn queue(&mut self, link: LinkId, envelope: &Envelope, message: &Message, bulk: &Bulk) {
        let len = self.encoded.len() + bulk.len();
        let (connection, number) = match self.links.next_sent(link, envelope, message, len) {
            Ok(next) => next,
            Err(NotSent::Gone) => return,
            Err(NotSent::NoRoom { covered: Covered::ByRepetition | Covered::ByNothing, .. }) => {
                return self.network.datagrams.not_sent += 1;
            }
            Err(NotSent::NoRoom { queued_bytes, .. }) => return self.lose_slow(link, queued_bytes),
            Err(NotSent::Overdrawn(overdrawn)) => return self.lose(link, overdrawn.to_string()),
        };
        wire::set_number(&mut self.encoded, number);
        let queued_bytes = connection.queued_bytes();
        match connection.link_mut().send(&self.encoded, bulk) {
            Ok(()) if connection.has_batch() => {
                self.metering.enter(|| (Section::Write, 1, connection.queued_bytes()));
                // A loss is reported when the last frames have been received.
                let _ = connection.link_mut().flush(self.schedule.latest);
                self.leave();
            }
            Ok(()) | Err(SendError::Lost(_)) => {}
            // More than credits allow: a peer gave more of them than it has. No message may be missing between those that arrive.
            Err(SendError::Full) => self.lose_slow(link, queued_bytes),
        }
    }

    /// A peer does not take what is sent to it: it does not live any more, for this process.
    fn lose_slow(&mut self, link: LinkId, queued_bytes: usize) {
        self.lose(link, format!("it has not taken {queued_bytes} bytes"));
    }

    fn lose(&mut self, link: LinkId, reason: String) {
        self.links.close(link);
        self.link_events.push_back(LinkEvent::Lost { link, reason });
    }

    /// Tells run control where sockets have smaller buffers than they need.
    pub fn complain_of_buffers(&mut self, from: NodeId) {
        let complaints = self.links.datagrams.as_ref().map(Datagrams::complaints).unwrap_or_default();
        complaints.into_iter().for_each(|text| self.notice(from, text));
    }

    /// Words for people who should look, to run control.
    fn notice(&mut self, from: NodeId, text: String) {
        self.say(from, Message::Notice(text));
    }

    fn say(&mut self, from: NodeId, words: Message) {
        let envelope = self.envelope(from, RUN_CONTROL);
        self.send(envelope, words);
    }

    /// Ends a connection for what came over it, and counts that.
    pub fn refuse(&mut self, link: LinkId) {
        self.network.malformed += 1;
        self.close(link);
    }

    /// Gives up everything here and says so: run control is gone.
    pub fn abandon_all(&mut self, now: Time) {
        let here: Vec<NodeId> = self.hosted().collect();
        for node in here {
            self.input(now, node, Input::Command(Command::Abandon));
        }
    }

    fn has_datagrams(&self, now: Time) -> bool {
        self.links.datagrams.as_ref().is_some_and(|datagrams| datagrams.is_receivable(now))
    }

    fn has_work(&self) -> bool {
        let working = self.schedule.working.iter().filter_map(|id| self.nodes[usize::from(id.0)].as_ref());
        working.into_iter().any(|hosted| hosted.workshop.has_work())
    }
}

/// Whether a peer was lost for what it sent, or in the middle of it.
fn is_malformed(lost: &Lost) -> bool {
    matches!(lost, Lost::Malformed(_) | Lost::ClosedWithinFrame { .. } | Lost::Violated(_))
}

/// Whether a message to run control says what it cannot ask for.
fn must_arrive(message: &Message) -> bool {
    matches!(message, Message::Exhausted | Message::Drained | Message::FileClosed(_))
}

fn describe(note: &Note) -> String {
    match note {
        Note::RecordingStalled => RECORDING_STALLED.into(),
        Note::RecordingResumed => RECORDING_RESUMED.into(),
        Note::GarbageCollected { fragments } => {
            format!(
                "{fragments} fragments below the oldest valid event removed to make room: no clears had come for them"
            )
        }
        Note::Source { rob, finding } => clocks::in_words(&format!("{rob:#010x}"), *finding),
        Note::ForcedLimitReached => "too many level-2 time-outs: triggers are held back".into(),
        Note::NotBuilt(event) => format!("event {event} cannot be built any more"),
        Note::AssignedBeyondRoom(event) => {
            format!(
                "event {event} was assigned here although there is no room: it is left to be built elsewhere; please report this"
            )
        }
        Note::LostBuilt(event) => format!("event {event} was built, and is lost with its event builder"),
        Note::RecoveredWithout(node) => {
            format!("goes on without knowing what application {} holds: it has not told in time", node.0)
        }
    }
}

/// What an SFO says behind the reason of a stall.
pub const RECORDING_STALLED: &str = "recording has stalled and will be tried again every second";

/// What it says when the stall is over.
pub const RECORDING_RESUMED: &str = "recording goes on";

/// Bound of a pass, so that no source starves the others.
const FILLS_PER_PASS: usize = 4;

/// Of frames that come in datagrams: these have numbers of their own.
const UNNUMBERED: u32 = 0;
