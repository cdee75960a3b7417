//! How far the read-out systems of a crate have come with the triggers that they were sent.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::message::BusyCause;
use base::ids::{Incarnation, NodeId};

/// The read-out systems of a crate as its front sees them.
#[derive(Debug)]
pub(super) struct Windows {
    systems: Vec<Window>,
    /// Those of them that are there.
    there: Arc<[NodeId]>,
    /// Whether each says when its sources have come.
    has_sources: bool,
}

#[derive(Debug)]
struct Window {
    node: NodeId,
    sent: u64,
    taken: u64,
    /// Sent before its present life, which counts from 0.
    before: u64,
    life: Option<Incarnation>,
    /// One bit per cause.
    busy: u8,
    is_there: bool,
    is_gone: bool,
}

impl Windows {
    /// Of systems that have not come.
    pub(super) fn new(nodes: impl Iterator<Item = NodeId>, has_sources: bool) -> Self {
        let window =
            |node| Window { node, sent: 0, taken: 0, before: 0, life: None, busy: 0, is_there: false, is_gone: false };
        Self { systems: nodes.map(window).collect(), there: Arc::default(), has_sources }
    }

    /// Those that are there.
    pub(super) fn there(&self) -> Arc<[NodeId]> {
        Arc::clone(&self.there)
    }

    /// Whether it is there.
    pub(super) fn is_there(&self, node: NodeId) -> bool {
        self.there.contains(&node)
    }

    /// Whether it will not return.
    pub(super) fn is_gone(&self, node: NodeId) -> bool {
        self.systems.iter().any(|system| system.node == node && system.is_gone)
    }

    /// A system has come; whether in another life than before.
    pub(super) fn come(&mut self, node: NodeId, life: Incarnation) -> bool {
        let is_busy = if self.has_sources { bit(BusyCause::Source) } else { 0 };
        let Some(system) = self.of(node) else { return false };
        (system.is_there, system.busy) = (true, is_busy);
        let is_new = system.life.replace(life) != Some(life);
        if is_new {
            (system.before, system.taken) = (system.sent, system.sent);
        }
        self.note_there();
        is_new
    }

    /// A system cannot be reached; `for_good` if it will not return.
    pub(super) fn leave(&mut self, node: NodeId, for_good: bool) {
        if let Some(system) = self.of(node) {
            (system.is_there, system.busy) = (false, 0);
            system.is_gone |= for_good;
        }
        self.note_there();
    }

    /// All that are there are sent so many triggers.
    pub(super) fn send(&mut self, count: usize) {
        self.systems.iter_mut().filter(|system| system.is_there).for_each(|system| system.sent += count as u64);
    }

    /// A system says how many it has taken in this life.
    pub(super) fn on_taken(&mut self, node: NodeId, count: u64) {
        if let Some(system) = self.of(node) {
            let count = system.before.saturating_add(count).min(system.sent);
            system.taken = system.taken.max(count);
        }
    }

    /// By how many triggers the last of those that are there is behind.
    pub(super) fn behind(&self) -> u64 {
        let there = self.systems.iter().filter(|system| system.is_there);
        there.map(|system| system.sent - system.taken).max().unwrap_or(0)
    }

    /// A system says whether it is busy.
    pub(super) fn on_busy(&mut self, node: NodeId, cause: BusyCause, on: bool) {
        if let Some(system) = self.of(node) {
            system.busy = if on { system.busy | bit(cause) } else { system.busy & !bit(cause) };
        }
    }

    /// What some of those that are there are busy for: one bit per cause.
    pub(super) fn busy(&self) -> u8 {
        self.systems.iter().fold(0, |all, system| all | system.busy)
    }

    fn note_there(&mut self) {
        self.there = self.systems.iter().filter(|system| system.is_there).map(|system| system.node).collect();
    }

    fn of(&mut self, node: NodeId) -> Option<&mut Window> {
        self.systems.iter_mut().find(|system| system.node == node)
    }
}

/// The bit of a cause.
pub(super) fn bit(cause: BusyCause) -> u8 {
    1 << cause as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: NodeId = NodeId(1);
    const SECOND: NodeId = NodeId(2);

    fn both(has_sources: bool) -> Windows {
        let mut windows = Windows::new([FIRST, SECOND].into_iter(), has_sources);
        assert!(windows.come(FIRST, Incarnation(0)) && windows.come(SECOND, Incarnation(0)));
        windows
    }

    #[test]
    fn the_slowest_that_is_there_counts() {
        let mut windows = both(false);
        windows.send(5);
        windows.on_taken(FIRST, 5);
        windows.on_taken(SECOND, 2);
        assert_eq!(windows.behind(), 3);
        windows.leave(SECOND, false);
        windows.send(2);
        assert_eq!(windows.behind(), 2);
        windows.on_taken(FIRST, 99);
        assert_eq!(windows.behind(), 0, "no more than it was sent");
        assert!(!windows.come(SECOND, Incarnation(0)));
        assert_eq!(windows.behind(), 3, "what it was sent before it was cut off");
        windows.leave(SECOND, false);
        assert!(windows.come(SECOND, Incarnation(1)));
        windows.send(1);
        windows.on_taken(FIRST, 8);
        assert_eq!(windows.behind(), 1, "a new life counts from 0");
        windows.on_taken(SECOND, 1);
        assert_eq!(windows.behind(), 0);
    }

    #[test]
    fn each_that_is_there_may_be_busy() {
        let mut windows = both(true);
        assert_eq!(windows.busy(), bit(BusyCause::Source));
        windows.on_busy(FIRST, BusyCause::Source, false);
        windows.on_busy(FIRST, BusyCause::Pages, true);
        assert_eq!(windows.busy(), bit(BusyCause::Source) | bit(BusyCause::Pages));
        windows.leave(FIRST, true);
        windows.on_busy(SECOND, BusyCause::Source, false);
        assert_eq!(windows.busy(), 0);
        assert!(windows.is_gone(FIRST) && !windows.is_gone(SECOND) && windows.is_there(SECOND));
    }
}
