//! Items that travel in groups, by receiver.

use alloc::vec::Vec;

use base::ids::NodeId;

/// What is ready to go and waits for the end of the pass in which it became so.
#[derive(Debug)]
pub(crate) struct Groups<T> {
    /// By node.
    groups: Vec<Group<T>>,
    /// Receivers with a group, in the order in which these began.
    open: Vec<NodeId>,
}

#[derive(Debug)]
struct Group<T> {
    items: Vec<T>,
    weight: usize,
    /// Items in the group before: most often there are about as many in the next.
    expected: usize,
}

impl<T> Default for Groups<T> {
    fn default() -> Self {
        Self { groups: Vec::new(), open: Vec::new() }
    }
}

impl<T> Groups<T> {
    /// Adds an item that takes as much room as `weight` small ones; the group, if it is full now.
    pub(crate) fn add(&mut self, to: NodeId, item: T, weight: usize) -> Option<Vec<T>> {
        let index = usize::from(to.0);
        if index >= self.groups.len() {
            self.groups.resize_with(index + 1, || Group { items: Vec::new(), weight: 0, expected: 0 });
        }
        let group = &mut self.groups[index];
        if group.items.is_empty() {
            self.open.push(to);
            group.items.reserve(group.expected);
        }
        group.items.push(item);
        group.weight += weight;
        (group.weight >= WEIGHT_MAX).then(|| self.take(to))
    }

    /// Hands over all groups, the one first that was begun first.
    pub(crate) fn drain(&mut self, mut send: impl FnMut(NodeId, Vec<T>)) {
        for to in self.open.drain(..) {
            send(to, self.groups[usize::from(to.0)].take());
        }
    }

    /// Drops what was for this receiver.
    pub(crate) fn forget(&mut self, to: NodeId) {
        drop(self.take(to));
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.drain(|_, _| {});
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn take(&mut self, to: NodeId) -> Vec<T> {
        self.open.retain(|open| *open != to);
        self.groups.get_mut(usize::from(to.0)).map_or_else(Vec::new, Group::take)
    }
}

impl<T> Group<T> {
    fn take(&mut self) -> Vec<T> {
        self.weight = 0;
        self.expected = self.items.len();
        core::mem::take(&mut self.items)
    }
}

/// A full group: with the largest items far below the room that a frame has for lists.
pub(crate) const WEIGHT_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_does_not_go_with_what_comes_next() {
        let mut groups = Groups::default();
        groups.add(NodeId(1), 'a', WEIGHT_MAX - 1);
        groups.clear();
        assert!(groups.is_empty());
        assert_eq!(groups.add(NodeId(1), 'b', 1), None, "the weight is gone, too");
        groups.drain(|to, items| assert_eq!((to.0, items), (1, alloc::vec!['b'])));
    }

    #[test]
    fn groups_go_in_the_order_of_their_beginning_and_the_full_at_once() {
        let mut groups = Groups::default();
        for (to, item) in [(4, 'a'), (2, 'b'), (4, 'c'), (3, 'd')] {
            assert_eq!(groups.add(NodeId(to), item, 1), None);
        }
        groups.forget(NodeId(3));
        groups.forget(NodeId(9));
        assert_eq!(groups.add(NodeId(2), 'e', WEIGHT_MAX), Some(alloc::vec!['b', 'e']));
        let mut sent = Vec::new();
        groups.drain(|to, items| sent.push((to.0, items)));
        assert_eq!(sent, [(4, alloc::vec!['a', 'c'])]);
        assert!(groups.is_empty());
    }
}
