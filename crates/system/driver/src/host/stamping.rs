//! Time stamps of this process, as run control orders them.

use dataflow::message::{Command, Envelope, Message};
use dataflow::node::RUN_CONTROL;
use stamps::switch::{self, Owner};

use super::Host;

impl Host {
    /// Does what run control orders about time stamps, and says where they are. Whether it was such an order.
    pub(super) fn stamp(&mut self, envelope: &Envelope, message: &Message) -> bool {
        let Message::Command(command) = message else { return false };
        if envelope.from != RUN_CONTROL || !self.is_current(envelope) {
            return false;
        }
        let done = match command {
            Command::Stamps => switch::begin(Owner::RunControl, false),
            Command::StampPolls => switch::begin(Owner::RunControl, true),
            Command::NoStamps => switch::end(Owner::RunControl),
            _ => return false,
        };
        if let Err(error) = &done {
            self.notice(envelope.to, format!("time stamps: {error}"));
        }
        let file = switch::file().filter(|_| done.is_ok()).map(|file| file.display().to_string());
        let answer = self.envelope(envelope.to, RUN_CONTROL);
        self.send(answer, Message::Stamped(file.unwrap_or_default()));
        true
    }

    fn is_current(&self, envelope: &Envelope) -> bool {
        let hosted = self.nodes.get(usize::from(envelope.to.0)).and_then(Option::as_ref);
        hosted.is_some_and(|hosted| hosted.node.is_current(envelope))
    }
}
