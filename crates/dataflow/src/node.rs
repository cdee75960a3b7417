//! The gate in front of a component: nothing stale gets in, and run control is answered.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::component::{Action, Component, Input, Outbox, PeerState};
use crate::ids::{Incarnation, NodeId, RunNumber};
use crate::message::{Command, Envelope, Message};
use crate::report::Report;
use crate::time::Time;

/// The node id of run control.
pub const RUN_CONTROL: NodeId = NodeId(0);

/// A component with its identity in the partition.
pub struct Node {
    id: NodeId,
    run: RunNumber,
    incarnation: Incarnation,
    component: Box<dyn Component + Send>,
    /// By node id: the life of each peer that can be reached.
    peers: Vec<Option<Incarnation>>,
    stale: u64,
    draining: bool,
    drained: bool,
    /// Run control waits for a report.
    report_due: bool,
}

impl Node {
    /// A node of a partition with `nodes` applications, run control included.
    pub fn new(
        id: NodeId,
        run: RunNumber,
        incarnation: Incarnation,
        nodes: usize,
        component: Box<dyn Component + Send>,
    ) -> Self {
        let peers = vec![None; nodes];
        Self { id, run, incarnation, component, peers, stale: 0, draining: false, drained: false, report_due: false }
    }

    /// Who it is.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Takes a message from the network, if it is current; else counts it as stale.
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
            message => self.component.handle(now, Input::Message { from: envelope.from, message }, out),
        }
        self.tell_run_control(now, out);
    }

    /// Takes any other input.
    ///
    /// # Panics
    /// If a peer is not of this partition.
    pub fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Command(command) => self.command(now, command, out),
            Input::Peer { node, state } => {
                let slot = self.peers.get_mut(usize::from(node.0)).expect("a peer of this partition");
                *slot = if let PeerState::Up(incarnation) = state { Some(incarnation) } else { None };
                self.component.handle(now, input, out);
            }
            input => self.component.handle(now, input, out),
        }
        self.tell_run_control(now, out);
    }

    /// All inputs that were there have been handed in, see [`Component::flush`].
    pub fn flush(&mut self, now: Time, out: &mut Outbox) {
        self.component.flush(now, out);
        self.tell_run_control(now, out);
    }

    /// The envelope of a message to a peer; `None` if the peer cannot be reached: the message is then dropped, as it
    /// would be on the wire.
    pub fn envelope_to(&self, to: NodeId) -> Option<Envelope> {
        let to_incarnation = (*self.peers.get(usize::from(to.0))?)?;
        Some(Envelope { from: self.id, to, run: self.run, from_incarnation: self.incarnation, to_incarnation })
    }

    /// When the component wants to be called.
    pub fn next_deadline(&self) -> Option<Time> {
        self.component.next_deadline()
    }

    /// The component's report.
    pub fn report(&self, now: Time) -> Report {
        Report { stale: self.stale, node: self.id, ..self.component.report(now) }
    }

    /// See [`Component::check`].
    pub fn check(&self) {
        self.component.check();
    }

    fn is_current(&self, envelope: &Envelope) -> bool {
        let sender = self.peers.get(usize::from(envelope.from.0)).copied().flatten();
        envelope.to == self.id
            && envelope.run == self.run
            && envelope.to_incarnation == self.incarnation
            && sender == Some(envelope.from_incarnation)
    }

    fn command(&mut self, now: Time, command: Command, out: &mut Outbox) {
        match command {
            Command::Report => self.report_due = true,
            Command::Exit | Command::Progress => {}
            command => {
                self.draining |= matches!(command, Command::Drain | Command::Abandon);
                self.component.handle(now, Input::Command(command), out);
            }
        }
    }

    fn tell_run_control(&mut self, now: Time, out: &mut Outbox) {
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
            Action::MulticastToReadout(message) => readout.iter().for_each(|&to| send(to, message.clone())),
            action => other(action),
        }
    }
}
