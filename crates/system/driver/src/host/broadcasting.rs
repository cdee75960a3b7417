//! Messages to several components: each is made once, and written once as bytes.

use base::bulk::Bulk;
use base::ids::NodeId;
use configuration::Way;
use dataflow::message::{Envelope, Message};
use dataflow::wire;
use membership::passage::LinkId;

use super::carriers::InSeveralWays;
use super::datagrams::Sent;
use super::routes::Route;
use super::{Host, Section, stamp_sending};

impl Host {
    /// Sends a message to several components. What differs between the receivers is written over in the bytes of the first.
    pub(super) fn broadcast(&mut self, from: NodeId, to: &[NodeId], message: Message) {
        self.metering.sends(&message);
        let Some((last, others)) = to.split_last() else { return };
        let mut is_encoded = false;
        for &to in others {
            if let Some(envelope) = self.tell(from, to, &message, &mut is_encoded) {
                self.send(envelope, message.clone());
            }
        }
        if let Some(envelope) = self.tell(from, *last, &message, &mut is_encoded) {
            self.send(envelope, message);
        }
    }

    /// Sends a message to a component elsewhere; else where it is to go, if it can.
    fn tell(&mut self, from: NodeId, to: NodeId, message: &Message, is_encoded: &mut bool) -> Option<Envelope> {
        let hosted = self.nodes[usize::from(from.0)].as_ref().expect("a component here sends");
        let envelope = hosted.node.envelope_to(to)?;
        let Route::Link(link) = self.routes.data[usize::from(to.0)] else { return Some(envelope) };
        stamp_sending(&envelope, message);
        self.enter(|| (Section::Encode, 1, message.bulk().map_or(0, Bulk::len)));
        *is_encoded = self.send_copy(link, &envelope, message, *is_encoded);
        self.leave();
        None
    }

    /// Puts a message on a connection, written before or now; whether its bytes are there for the next receiver.
    fn send_copy(&mut self, link: LinkId, envelope: &Envelope, message: &Message, is_encoded: bool) -> bool {
        let choice = match self.carriers.are_plain() {
            true => None,
            false => match self.carriers.choose(envelope, message) {
                Ok(choice) => Some(choice),
                Err(InSeveralWays) => {
                    self.send_by_choice(link, envelope, message.clone());
                    return false;
                }
            },
        };
        if is_encoded {
            wire::readdress(&mut self.encoded, envelope);
        } else {
            self.encode(envelope, message);
        }
        match choice {
            Some(choice) => self.send_encoded(choice, link, envelope, message),
            None => self.queue(link, envelope, message, message.bulk().unwrap_or(&Bulk::empty())),
        }
        true
    }

    /// Sends a message to all read-out systems, once to those of other processes if it can be multicast.
    pub(super) fn multicast(&mut self, from: NodeId, message: Message) {
        let readout = core::mem::take(&mut self.readout);
        if self.multicast_at_once(from, &message) {
            for &to in &readout {
                match self.routes.data[usize::from(to.0)] {
                    Route::Link(_) => stamp_sending(&self.envelope(from, to), &message),
                    _ => self.send_from(from, to, message.clone()),
                }
            }
        } else {
            self.broadcast(from, &readout, message);
        }
        self.readout = readout;
    }

    fn multicast_at_once(&mut self, from: NodeId, message: &Message) -> bool {
        let envelope = self.envelope(from, NodeId::READOUT);
        let choice = self.carriers.choose(&envelope, message);
        let Some(datagrams) =
            self.links.datagrams.as_mut().filter(|_| choice.is_ok_and(|choice| choice.way == Way::Multicast))
        else {
            return false;
        };
        self.encoded.clear();
        wire::encode(&envelope, message, &mut self.encoded);
        datagrams.send_to_readout(&self.encoded) == Sent::Done
    }
}
