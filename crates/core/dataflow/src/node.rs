//! The gate in front of a component: nothing stale gets in, and run control is answered.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::component::{Action, Component, Input, Outbox, PeerState};
use crate::message::{Command, Envelope, Message};
use crate::report::{Report, Unexpected};
use base::ids::{Incarnation, NodeId, Role, RunNumber};
use base::time::Time;

/// The node id of run control.
pub const RUN_CONTROL: NodeId = NodeId(0);

/// A component with its identity in the partition.
pub struct Node {
    id: NodeId,
    run: RunNumber,
    incarnation: Incarnation,
    component: Box<dyn Component + Send>,
    /// Of all applications by node id, run control included.
    roles: Arc<[Role]>,
    role: Role,
    /// The peers that can be reached, by node id, with their lives: a read-out system has few, of thousands of nodes.
    peers: Vec<(NodeId, Incarnation)>,
    stale: u64,
    unexpected: Vec<Unexpected>,
    draining: bool,
    drained: bool,
    /// Run control waits for a report.
    report_due: bool,
}

impl Node {
    /// A node of a partition with applications of these `roles`, run control included.
    ///
    /// # Panics
    /// If it is none of them.
    pub fn new(
        id: NodeId,
        run: RunNumber,
        incarnation: Incarnation,
        roles: Arc<[Role]>,
        component: Box<dyn Component + Send>,
    ) -> Self {
        let (peers, role) = (Vec::new(), roles[usize::from(id.0)]);
        Self {
            id,
            run,
            incarnation,
            component,
            roles,
            role,
            peers,
            stale: 0,
            unexpected: Vec::new(),
            draining: false,
            drained: false,
            report_due: false,
        }
    }

    /// Who it is.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// What it is the gate of.
    pub fn component(&self) -> &dyn Component {
        &*self.component
    }

    /// Takes a message from the network, if it is current and the sender's to say; else counts it as stale, or as unexpected.
    pub fn receive(&mut self, now: Time, envelope: &Envelope, message: Message, out: &mut Outbox) {
        if !self.is_current(envelope) {
            self.stale += 1;
            return;
        }
        match message {
            Message::Command(Command::Progress) if envelope.from == RUN_CONTROL => {
                out.send(RUN_CONTROL, Message::Progress(self.report(now).mark()));
            }
            Message::Command(command) if envelope.from == RUN_CONTROL => self.command(now, command, out),
            message if self.is_expected(envelope.from, &message) => {
                self.component.handle(now, Input::Message { from: envelope.from, message }, out);
            }
            message => Unexpected::count(&mut self.unexpected, envelope.from, message.name()),
        }
        self.tell_run_control(now, out);
    }

    /// Takes any other input.
    ///
    /// # Panics
    /// If a peer is not of this partition.
    // In its callers, which know what input it is: no fragment is moved once more.
    #[inline]
    pub fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        if let Input::Peer { node, state } = input {
            self.note(node, state);
        }
        match input {
            Input::Command(command) => self.command(now, command, out),
            input => self.component.handle(now, input, out),
        }
        self.tell_run_control(now, out);
    }

    /// All inputs that were there have been handed in, see [`Component::flush`].
    pub fn flush(&mut self, now: Time, out: &mut Outbox) {
        self.component.flush(now, out);
        self.tell_run_control(now, out);
    }

    /// The envelope of a message to a peer. `None` if the peer cannot be reached: the message is then dropped, as it
    /// would be on the wire.
    pub fn envelope_to(&self, to: NodeId) -> Option<Envelope> {
        let to_incarnation = self.life_of(to)?;
        Some(Envelope { from: self.id, to, run: self.run, from_incarnation: self.incarnation, to_incarnation })
    }

    /// When the component wants to be called.
    pub fn next_deadline(&self) -> Option<Time> {
        self.component.next_deadline()
    }

    /// The component's report.
    pub fn report(&self, now: Time) -> Report {
        let unexpected = self.unexpected.clone();
        Report { stale: self.stale, unexpected, node: self.id, ..self.component.report(now) }
    }

    /// See [`Component::check`].
    pub fn check(&self) {
        self.component.check();
    }

    /// Whether a message is of this run, for the present life of this node, and from the life of the sender that it knows.
    pub fn is_current(&self, envelope: &Envelope) -> bool {
        envelope.to == self.id
            && envelope.run == self.run
            && envelope.to_incarnation == self.incarnation
            && self.life_of(envelope.from) == Some(envelope.from_incarnation)
    }

    /// Whether it is for a component of this role to hear, from one of that role, and can be.
    fn is_expected(&self, from: NodeId, message: &Message) -> bool {
        let may_go = message.may_go(self.roles[usize::from(from.0)], self.role);
        !message.is_about_connections() && may_go && message.adds_up()
    }

    /// The life of a peer that can be reached.
    fn life_of(&self, peer: NodeId) -> Option<Incarnation> {
        let place = self.peers.binary_search_by_key(&peer, |(node, _)| *node).ok()?;
        Some(self.peers[place].1)
    }

    fn note(&mut self, peer: NodeId, state: PeerState) {
        assert!(usize::from(peer.0) < self.roles.len(), "a peer of this partition");
        match (self.peers.binary_search_by_key(&peer, |(node, _)| *node), state) {
            (Ok(place), PeerState::Up(life)) => self.peers[place].1 = life,
            (Err(place), PeerState::Up(life)) => self.peers.insert(place, (peer, life)),
            (Ok(place), _) => drop(self.peers.remove(place)),
            (Err(_), _) => {}
        }
    }

    fn command(&mut self, now: Time, command: Command, out: &mut Outbox) {
        match command {
            Command::Report => self.report_due = true,
            Command::Exit | Command::Disconnect | Command::Progress => {}
            command => {
                self.draining |= matches!(command, Command::Drain | Command::Abandon);
                self.component.handle(now, Input::Command(command), out);
            }
        }
    }

    #[inline]
    fn tell_run_control(&mut self, now: Time, out: &mut Outbox) {
        if self.draining || self.report_due {
            self.tell_what_is_due(now, out);
        }
    }

    fn tell_what_is_due(&mut self, now: Time, out: &mut Outbox) {
        if self.draining && !self.drained && self.component.is_drained() {
            self.drained = true;
            out.send(RUN_CONTROL, Message::Drained);
        }
        if self.report_due && self.component.is_settled() {
            self.report_due = false;
            out.send(RUN_CONTROL, Message::Report(Box::new(self.report(now))));
        }
    }
}

/// Calls `send` for each message among the actions, with multicasts spread over `readout`, and `other` for the rest.
pub fn route(
    out: &mut Outbox,
    readout: &[NodeId],
    mut send: impl FnMut(NodeId, Message),
    mut other: impl FnMut(Action),
) {
    for action in out.drain() {
        match action {
            Action::Send { to, message } => send(to, message),
            Action::Broadcast { to, message } => to.iter().for_each(|&to| send(to, message.clone())),
            Action::MulticastToReadout(message) => readout.iter().for_each(|&to| send(to, message.clone())),
            action => other(action),
        }
    }
}
