//! Replies for building on their way into groups.

use alloc::vec::Vec;

use crate::component::Outbox;
use crate::groups::WEIGHT_MAX;
use crate::message::{DataReply, Message};
use base::bulk::Bulk;
use base::ids::NodeId;

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
    /// Entries in lists.
    weight: usize,
    /// Replies in the group before: most often there are about as many in the next.
    expected: usize,
    /// Slices in the group before.
    expected_parts: usize,
}

/// Fragments on their way into one bulk.
#[derive(Default)]
pub(crate) struct Parts {
    bulk: Bulk,
    len_bytes: usize,
}

impl Replies {
    /// Groups of at most so many bytes, unless a single reply has more.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, groups: Vec::new(), open: Vec::new() }
    }

    /// Adds a reply with its data, of which nothing is left; what it does not fit to goes at once. `pushed` is all that was pushed
    /// to the builder so far, with this.
    pub(crate) fn add(&mut self, to: NodeId, pushed: u64, reply: DataReply, data: &mut Parts, out: &mut Outbox) {
        let place = self.place(to).unwrap_or_else(|place| {
            self.groups.insert(place, (to, Group::default()));
            place
        });
        let group = &mut self.groups[place].1;
        let weight = 1 + reply.missing.len();
        if group.replies.is_empty() {
            self.open.push(to);
        } else if group.parts.len_bytes + data.len_bytes > self.bytes_max || group.weight + weight > WEIGHT_MAX {
            group.send(to, out);
        }
        if group.replies.is_empty() {
            group.replies.reserve(group.expected);
            group.parts.reserve(group.expected_parts);
        }
        group.pushed = pushed;
        group.weight += weight;
        group.parts.append(data);
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
        let (expected, expected_parts) = (self.replies.len(), self.parts.count());
        let next = Self { expected, expected_parts, ..Self::default() };
        let Self { pushed, replies, mut parts, .. } = core::mem::replace(self, next);
        out.send(to, Message::EventReply { pushed, replies, bulk: parts.take_bulk() });
    }
}

impl Parts {
    /// Room for so many more.
    pub(crate) fn reserve(&mut self, count: usize) {
        match &mut self.bulk {
            Bulk::PageList(slices) => slices.reserve(count),
            bulk if count > 1 && bulk.is_empty() => *bulk = Bulk::PageList(Vec::with_capacity(count)),
            _ => {}
        }
    }

    /// All of them; the handles are shared.
    pub(crate) fn bulk(&self) -> Bulk {
        self.bulk.clone()
    }

    pub(crate) fn add(&mut self, part: Bulk) {
        self.len_bytes += part.len();
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

    /// Adds all of another, whose memory stays where it is.
    fn append(&mut self, other: &mut Self) {
        match (&mut self.bulk, &mut other.bulk) {
            (Bulk::PageList(slices), Bulk::PageList(more)) => {
                slices.append(more);
                self.len_bytes += core::mem::take(&mut other.len_bytes);
            }
            (Bulk::PageList(slices), Bulk::Pages(one)) if !one.is_empty() => {
                slices.push(core::mem::take(one));
                self.len_bytes += core::mem::take(&mut other.len_bytes);
            }
            (_, more) => {
                other.len_bytes = 0;
                self.add(core::mem::take(more));
            }
        }
    }

    /// All of it as one bulk.
    pub(crate) fn take_bulk(&mut self) -> Bulk {
        if core::mem::take(&mut self.len_bytes) == 0 { Bulk::empty() } else { core::mem::take(&mut self.bulk) }
    }

    /// Lets go of all of it; its memory stays.
    pub(crate) fn clear(&mut self) {
        self.len_bytes = 0;
        match &mut self.bulk {
            Bulk::PageList(slices) => slices.clear(),
            bulk => *bulk = Bulk::empty(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    /// # Panics
    /// If it is more than a reply can have.
    pub(crate) fn len_bytes(&self) -> u32 {
        u32::try_from(self.len_bytes).expect("a reply fits a message")
    }

    fn count(&self) -> usize {
        self.bulk.slices().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::Action;
    use base::ids::EventId;

    #[test]
    fn replies_of_a_pass_travel_together_as_far_as_they_fit() {
        let mut replies = Replies::new(100);
        let mut out = Outbox::new();
        for (to, event, len_bytes) in [(2, 1, 40), (1, 1, 300), (2, 2, 60), (2, 3, 1), (2, 4, 1)] {
            let reply = DataReply { event: EventId(event), attempt: 1, request: 1, missing: Vec::new(), len_bytes };
            let mut data = Parts::default();
            data.add(Bulk::Modelled { len_bytes, seed: 0 });
            replies.add(NodeId(to), 0, reply, &mut data, &mut out);
            assert!(data.is_empty());
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
