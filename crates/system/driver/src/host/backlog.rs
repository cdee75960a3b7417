//! What waits for a peer that does not take it, held against the bounds of credits.
//!
//! A process knows one end of a connection: what itself has not sent, which is a part of what is on its way. Behind a queue that has
//! grown it counts what each credit covers. Until all has gone that stood before the first of these messages, every one of them waits.
//! Then it begins anew.

use std::collections::BTreeMap;

use assembly::bounds::{Bounds, Credit};
use base::ids::NodeId;
use dataflow::message::{Envelope, Message};

/// Of one connection.
#[derive(Default)]
pub(super) struct Backlog {
    /// Bytes that waited behind the last message that was counted; 0 if the queue was short since.
    queued: usize,
    /// Of these, at most so many stood before the first that is counted.
    ahead: usize,
    counted: BTreeMap<(NodeId, NodeId, Credit), usize>,
}

/// More waits than credits allow: a peer gave more of them than it has, or an application here took more than it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} {credit} wait to be sent from node {} to node {}: expected at most {most}", from.0, to.0)]
pub(super) struct Overdrawn {
    pub(super) credit: Credit,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) waiting: usize,
    pub(super) most: usize,
}

impl Backlog {
    /// A message of so many bytes is about to wait behind others.
    pub(super) fn note(
        &mut self,
        queued_bytes: usize,
        len: usize,
        envelope: &Envelope,
        message: &Message,
        bounds: &Bounds,
    ) -> Result<(), Overdrawn> {
        if queued_bytes <= SHORT_BYTES {
            self.queued = 0;
            return Ok(());
        }
        self.count(queued_bytes, len, envelope, message, bounds)
    }

    #[cold]
    fn count(
        &mut self,
        queued_bytes: usize,
        len: usize,
        envelope: &Envelope,
        message: &Message,
        bounds: &Bounds,
    ) -> Result<(), Overdrawn> {
        let sent = self.queued.saturating_sub(queued_bytes);
        self.ahead = self.ahead.saturating_sub(sent);
        if self.queued == 0 || self.ahead == 0 {
            self.counted.clear();
            self.ahead = queued_bytes;
        }
        self.queued = queued_bytes + len;
        let Some((credit, count)) = Credit::of(message) else { return Ok(()) };
        let (from, to) = (envelope.from, envelope.to);
        let waiting = self.counted.entry((from, to, credit)).or_default();
        *waiting += count;
        let (waiting, most) = (*waiting, bounds.most_between(credit, from, to));
        if waiting > most { Err(Overdrawn { credit, from, to, waiting, most }) } else { Ok(()) }
    }
}

/// A queue that is no longer is that of a peer that takes what it is sent: its messages are not counted.
const SHORT_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use assembly::Assembly;
    use base::ids::{EventId, Incarnation, Role, RunNumber};
    use configuration::Partition;
    use dataflow::message::Attempt;

    use super::*;

    const LEN: usize = 100;

    struct Pair {
        bounds: Bounds,
        backlog: Backlog,
        envelope: Envelope,
        queued: usize,
        most: usize,
    }

    impl Pair {
        /// A DFM that tells an event builder which ends of events it has taken.
        fn new() -> Self {
            let text = "partition.name = \"p\"\nros.count = 1\nsfi = { count = 1, building = 3 }\nsfo = {}\ndfm.rate = \"1 kHz\"";
            let assembly = Assembly::new(Partition::parse("p", text, &[]).unwrap(), vec![vec![0]]);
            let node = |role| assembly.applications.iter().find(|app| app.role == role).unwrap().node;
            let (from, to, life) = (node(Role::Dfm), node(Role::Sfi), Incarnation(0));
            let envelope = Envelope { from, to, run: RunNumber(1), from_incarnation: life, to_incarnation: life };
            let bounds = assembly.bounds();
            let most = bounds.most_between(Credit::Answered, from, to);
            assert_eq!(most, 3);
            Self { bounds, backlog: Backlog::default(), envelope, queued: 0, most }
        }

        fn sends(&mut self) -> Result<(), Overdrawn> {
            let granted = Message::Granted(vec![Attempt { event: EventId(1), attempt: 1 }]);
            self.backlog.note(self.queued, LEN, &self.envelope, &granted, &self.bounds)?;
            self.queued += LEN;
            Ok(())
        }
    }

    #[test]
    fn more_than_credits_allow_does_not_wait() {
        let mut pair = Pair::new();
        pair.queued = SHORT_BYTES + 1;
        (0..pair.most).for_each(|_| pair.sends().unwrap());
        let overdrawn = pair.sends().unwrap_err();
        assert_eq!((overdrawn.credit, overdrawn.waiting, overdrawn.most), (Credit::Answered, 4, 3));
        let text = overdrawn.to_string();
        assert!(text.starts_with("4 answers to ends of events wait to be sent from node "), "{text}");
    }

    #[test]
    fn what_has_gone_is_not_counted() {
        let mut pair = Pair::new();
        pair.queued = SHORT_BYTES + 1;
        for _ in 0..100 {
            pair.sends().unwrap();
            let before = pair.queued;
            // Something long comes that no credit covers, and all goes that stood before it.
            let issued = Message::IssuedUpTo(EventId(1));
            pair.backlog.note(before, before, &pair.envelope, &issued, &pair.bounds).unwrap();
        }
        pair.queued = 0;
        (0..10).for_each(|_| pair.sends().unwrap());
    }
}
