//! What a run did, message by message.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

use base::time::Time;
use dataflow::message::{Envelope, Message};
use dataflow::wire::encode;

/// What is kept of every message as it arrives.
#[derive(Default)]
pub enum Trace {
    /// Nothing.
    #[default]
    None,
    /// A hash over all: equal for equal runs.
    Hash(DefaultHasher),
    /// A line of text for each, and for each fault.
    Text(Box<dyn Write>),
}

impl Trace {
    pub(super) fn note(&mut self, now: Time, envelope: &Envelope, message: &Message, encoded: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Hash(hasher) => {
                encoded.clear();
                encode(envelope, message, encoded);
                (now.as_ns(), encoded).hash(hasher);
            }
            Self::Text(text) => line(text, now, envelope, message),
        }
    }

    pub(super) fn note_for_control(&mut self, now: Time, envelope: &Envelope, message: &Message) {
        if let Self::Text(text) = self {
            line(text, now, envelope, message);
        }
    }

    /// What happens to an application, between the messages.
    pub(super) fn tell(&mut self, now: Time, what: &str) {
        if let Self::Text(text) = self {
            // What nobody can read is dropped.
            let _ = writeln!(text, "{now} {what}");
        }
    }

    pub(super) fn finish(mut self) -> u64 {
        match &mut self {
            Self::None => 0,
            Self::Hash(hasher) => hasher.finish(),
            Self::Text(text) => {
                // Whoever reads it sees that it is cut.
                let _ = text.flush();
                0
            }
        }
    }
}

/// What nobody can read is dropped.
fn line(text: &mut dyn Write, now: Time, envelope: &Envelope, message: &Message) {
    let _ = writeln!(text, "{now} {} -> {} {message:?}", envelope.from.0, envelope.to.0);
}
