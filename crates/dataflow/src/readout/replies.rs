//! Replies for building on their way into groups.

use alloc::vec::Vec;

use crate::bulk::Bulk;
use crate::component::Outbox;
use crate::groups::WEIGHT_MAX;
use crate::ids::NodeId;
use crate::message::{DataReply, Message};

/// Replies that are ready, by builder: those of one pass travel together.
pub(crate) struct Replies {
    bytes_max: usize,
    /// By builder, in order: few of the nodes of a partition, which may have thousands.
    groups: Vec<(NodeId, Group)>,
    /// Builders with a group, in the order in which these began.
    open: Vec<NodeId>,
}

/// The next message to a builder.
#[derive(Default)]
struct Group {
    /// All that was pushed to the builder, with this group.
    pushed: u64,
    replies: Vec<DataReply>,
    parts: Parts,
    len_bytes: usize,
    /// Entries in lists.
    weight: usize,
    /// Replies in the group before: most often there are about as many in the next.
    expected: usize,
}

/// Fragments on their way into one bulk.
#[derive(Default)]
pub(crate) struct Parts {
    bulk: Bulk,
}

impl Replies {
    /// Groups of at most so many bytes, unless a single reply has more.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, groups: Vec::new(), open: Vec::new() }
    }

    /// Adds a reply; what it does not fit to goes at once. `pushed` is all that was pushed to the builder so far, with this.
    pub(crate) fn add(&mut self, to: NodeId, pushed: u64, reply: DataReply, bulk: Bulk, out: &mut Outbox) {
        let place = self.place(to).unwrap_or_else(|place| {
            self.groups.insert(place, (to, Group::default()));
            place
        });
        let group = &mut self.groups[place].1;
        let weight = 1 + reply.missing.len();
        if group.replies.is_empty() {
            self.open.push(to);
        } else if group.len_bytes + bulk.len() > self.bytes_max || group.weight + weight > WEIGHT_MAX {
            group.send(to, out);
        }
        if group.replies.is_empty() {
            group.replies.reserve(group.expected);
            group.parts.reserve(group.expected);
        }
        group.pushed = pushed;
        group.len_bytes += bulk.len();
        group.weight += weight;
        group.parts.add(bulk);
        group.replies.push(reply);
    }

    /// Sends what is there.
    pub(crate) fn flush(&mut self, out: &mut Outbox) {
        let mut open = core::mem::take(&mut self.open);
        for to in open.drain(..) {
            let place = self.place(to).expect("an open group is there");
            self.groups[place].1.send(to, out);
        }
        self.open = open;
    }

    /// Drops what was for this builder.
    pub(crate) fn forget(&mut self, to: NodeId) {
        self.open.retain(|open| *open != to);
        if let Ok(place) = self.place(to) {
            self.groups[place].1 = Group::default();
        }
    }

    /// Where the group of a builder is, or would be.
    fn place(&self, of: NodeId) -> Result<usize, usize> {
        self.groups.binary_search_by_key(&of, |(to, _)| *to)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

impl Group {
    fn send(&mut self, to: NodeId, out: &mut Outbox) {
        let expected = self.replies.len();
        let Self { pushed, replies, parts, .. } = core::mem::replace(self, Self { expected, ..Self::default() });
        out.send(to, Message::EventReply { pushed, replies, bulk: parts.into_bulk() });
    }
}

impl Parts {
    /// Room for so many.
    fn reserve(&mut self, count: usize) {
        if self.bulk.is_empty() && count > 1 {
            self.bulk = Bulk::PageList(Vec::with_capacity(count));
        }
    }

    pub(crate) fn add(&mut self, part: Bulk) {
        match (&mut self.bulk, part) {
            (Bulk::PageList(slices), Bulk::Pages(slice)) if !slice.is_empty() => slices.push(slice),
            (Bulk::PageList(slices), Bulk::PageList(mut more)) => slices.append(&mut more),
            (Bulk::Pages(none), part) if none.is_empty() => self.bulk = part,
            (Bulk::Modelled { len_bytes, seed }, Bulk::Modelled { len_bytes: more, seed: other }) => {
                *len_bytes += more;
                *seed = seed.wrapping_add(other);
            }
            (bulk, part) => *bulk = core::mem::take(bulk).followed_by(part),
        }
    }

    pub(crate) fn into_bulk(self) -> Bulk {
        self.bulk
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::Action;
    use crate::ids::EventId;

    #[test]
    fn replies_of_a_pass_travel_together_as_far_as_they_fit() {
        let mut replies = Replies::new(100);
        let mut out = Outbox::new();
        for (to, event, len_bytes) in [(2, 1, 40), (1, 1, 300), (2, 2, 60), (2, 3, 1), (2, 4, 1)] {
            let reply = DataReply { event: EventId(event), attempt: 1, request: 1, missing: Vec::new(), len_bytes };
            replies.add(NodeId(to), 0, reply, Bulk::Modelled { len_bytes, seed: 0 }, &mut out);
        }
        replies.flush(&mut out);
        assert!(replies.is_empty());
        let sent = out.drain().map(|action| match action {
            Action::Send { to, message: Message::EventReply { replies, bulk, .. } } => {
                (to.0, replies.iter().map(|reply| reply.event.0).collect::<Vec<_>>(), bulk.len())
            }
            other => panic!("{other:?} is no reply"),
        });
        let expected = [(2, alloc::vec![1, 2], 100), (2, alloc::vec![3, 4], 2), (1, alloc::vec![1], 300)];
        assert_eq!(sent.collect::<Vec<_>>(), expected);
    }
}
