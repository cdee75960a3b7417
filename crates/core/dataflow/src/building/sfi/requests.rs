//! Requests that are ready to go.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::component::Outbox;
use crate::groups::WEIGHT_MAX;
use crate::message::{DataRequest, Message};
use base::ids::NodeId;

/// Requests by source: those of one pass travel together.
///
/// Sources that are asked for the same share one list. Of thousands of sources each would have its own to be written and read, more
/// than fits in the caches.
#[derive(Default)]
pub(super) struct Requests {
    /// By node.
    groups: Vec<Group>,
    /// Sources with a group, in the order in which these began.
    open: Vec<NodeId>,
}

#[derive(Default)]
struct Group {
    requests: Option<Arc<Vec<DataRequest>>>,
    /// Entries in lists.
    weight: usize,
    /// Requests in the last group of its own: most often there are about as many in the next.
    expected: usize,
}

impl Requests {
    /// Adds a request; a full group goes at once.
    pub(super) fn add(&mut self, to: NodeId, request: DataRequest, out: &mut Outbox) {
        let group = self.group(to);
        group.weight += 1 + request.robs.len();
        let expected = group.expected;
        let requests = group.requests.get_or_insert_with(|| Arc::new(Vec::with_capacity(expected)));
        let requests = Arc::make_mut(requests);
        requests.push(request);
        group.expected = requests.len();
        if group.weight >= WEIGHT_MAX {
            self.open.retain(|open| *open != to);
            self.send(to, out);
        }
    }

    /// Adds requests for all ROBs, which others may get, too.
    pub(super) fn add_shared(&mut self, to: NodeId, requests: &Arc<Vec<DataRequest>>, out: &mut Outbox) {
        if requests.len() >= WEIGHT_MAX || self.groups.get(usize::from(to.0)).is_some_and(|group| group.weight > 0) {
            return requests.iter().for_each(|request| self.add(to, request.clone(), out));
        }
        let group = self.group(to);
        group.requests = Some(Arc::clone(requests));
        group.weight = requests.len();
    }

    /// Sends all groups, the one first that was begun first.
    pub(super) fn flush(&mut self, out: &mut Outbox) {
        let mut open = core::mem::take(&mut self.open);
        open.drain(..).for_each(|to| self.send(to, out));
        self.open = open;
    }

    /// Drops what was for this source.
    pub(super) fn forget(&mut self, to: NodeId) {
        if let Some(place) = self.open.iter().position(|open| *open == to) {
            self.open.remove(place);
            self.take(to);
        }
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        while let Some(to) = self.open.pop() {
            self.take(to);
        }
    }

    /// The group of a source, which is open from now on.
    fn group(&mut self, to: NodeId) -> &mut Group {
        let index = usize::from(to.0);
        if index >= self.groups.len() {
            self.groups.resize_with(index + 1, Group::default);
        }
        let group = &mut self.groups[index];
        if group.weight == 0 {
            self.open.push(to);
        }
        group
    }

    fn send(&mut self, to: NodeId, out: &mut Outbox) {
        let requests = self.take(to).expect("an open group has requests");
        out.send(to, Message::EventRequest { requests });
    }

    fn take(&mut self, to: NodeId) -> Option<Arc<Vec<DataRequest>>> {
        let group = &mut self.groups[usize::from(to.0)];
        group.weight = 0;
        group.requests.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::Action;
    use crate::message::EventInfo;
    use base::ids::EventId;

    fn request(event: u64) -> DataRequest {
        let event = EventInfo { event: EventId(event), ..EventInfo::default() };
        DataRequest { event, attempt: 1, request: 1, robs: Vec::new() }
    }

    fn sent(out: &mut Outbox) -> Vec<(u16, Vec<u64>)> {
        let events = |requests: &[DataRequest]| requests.iter().map(|asked| asked.event.event.0).collect();
        let sent = out.drain().map(|action| match action {
            Action::Send { to, message: Message::EventRequest { requests } } => (to.0, events(&requests)),
            other => panic!("{other:?} is no request"),
        });
        sent.collect()
    }

    #[test]
    fn what_is_asked_of_several_is_one_list_until_one_is_asked_for_more() {
        let (mut requests, mut out) = (Requests::default(), Outbox::new());
        let both = Arc::new(alloc::vec![request(1), request(2)]);
        requests.add(NodeId(7), request(0), &mut out);
        for to in [3, 4, 5, 7, 9] {
            requests.add_shared(NodeId(to), &both, &mut out);
        }
        assert_eq!(Arc::strong_count(&both), 5);
        requests.add(NodeId(4), request(3), &mut out);
        requests.forget(NodeId(5));
        requests.forget(NodeId(6));
        requests.flush(&mut out);
        let expected = [(7, &[0, 1, 2][..]), (3, &[1, 2]), (4, &[1, 2, 3]), (9, &[1, 2])];
        assert_eq!(sent(&mut out), expected.map(|(to, events)| (to, events.to_vec())));
        assert_eq!(Arc::strong_count(&both), 1);
        requests.add_shared(NodeId(3), &both, &mut out);
        requests.clear();
        requests.flush(&mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn a_full_group_goes_at_once() {
        let (mut requests, mut out) = (Requests::default(), Outbox::new());
        requests.add(NodeId(1), DataRequest { robs: alloc::vec![0; WEIGHT_MAX], ..request(1) }, &mut out);
        let many = Arc::new((0..WEIGHT_MAX as u64).map(request).collect::<Vec<_>>());
        requests.add_shared(NodeId(2), &many, &mut out);
        let lens = sent(&mut out).into_iter().map(|(to, events)| (to, events.len())).collect::<Vec<_>>();
        assert_eq!(lens, [(1, 1), (2, WEIGHT_MAX)]);
        requests.flush(&mut out);
        assert!(out.is_empty());
    }
}
