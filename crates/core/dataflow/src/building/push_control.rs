//! The DFM's side of push building: who is told where events go.

use alloc::vec::Vec;

use crate::building::destinations::{DestinationTable, Destinations};
use crate::component::Outbox;
use crate::message::{EventInfo, Message, PushOrder};
use base::ids::{EventId, NodeId};

/// How the data of an event come to its builder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BuildingMode {
    /// The builder asks for them `[EB2007 §II-B.3]`.
    #[default]
    Pull,
    /// The DFM tells the read-out systems for each event which builder it has chosen `[ATM1997 §II]`.
    PushAssigned,
    /// The number of an event says who builds it, by a table that read-out systems and DFM share `[ATM1997 §II]`.
    PushByTable {
        /// The read-out systems.
        readout: Vec<NodeId>,
        /// Events in a row that go to the same builder.
        run: u32,
    },
}

/// Where an event may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// To whichever builder has room.
    Any,
    /// To this one alone, when it has room.
    Only(NodeId),
}

/// What the DFM does beside assigning.
pub(crate) struct PushControl {
    mode: BuildingMode,
    /// Assignments of this pass, to be told to all read-out systems.
    orders: Vec<PushOrder>,
    table: DestinationTable,
    /// After the newest event that was seen, level 1 may have issued so many more.
    ahead: u64,
    newest: Option<EventId>,
    /// All builders have come, or the run has begun without some.
    has_started: bool,
}

impl PushControl {
    /// Tables hold from `ahead` events behind the newest: before that, read-out systems may go by the older one.
    pub(crate) fn new(mode: BuildingMode, ahead: u64, has_started: bool) -> Self {
        Self { mode, orders: Vec::new(), table: DestinationTable::default(), ahead, newest: None, has_started }
    }

    /// There is an event.
    pub(crate) fn on_event(&mut self, event: EventId) {
        self.newest = self.newest.max(Some(event));
    }

    /// Where an event may go for its first attempt.
    pub(crate) fn choice(&self, event: EventId) -> Choice {
        match self.mode {
            BuildingMode::PushByTable { .. } => self.table.of(event).map_or(Choice::Any, Choice::Only),
            _ => Choice::Any,
        }
    }

    /// An event was never assigned before: whether its data will be pushed to this builder.
    pub(crate) fn is_pushed(&self, event: EventId, sfi: NodeId) -> bool {
        match self.mode {
            BuildingMode::Pull => false,
            BuildingMode::PushAssigned => true,
            BuildingMode::PushByTable { .. } => self.table.of(event) == Some(sfi),
        }
    }

    /// Whether the data of assigned events are pushed at all.
    pub(crate) fn is_on(&self) -> bool {
        self.mode != BuildingMode::Pull
    }

    /// An event is assigned for the first time.
    pub(crate) fn order(&mut self, event: EventInfo, sfi: NodeId, out: &mut Outbox) {
        if self.mode == BuildingMode::PushAssigned {
            self.orders.push(PushOrder { event, sfi });
            if self.orders.len() >= ORDERS_MAX {
                self.flush(out);
            }
        }
    }

    /// Tells the assignments of this pass.
    pub(crate) fn flush(&mut self, out: &mut Outbox) {
        if !self.orders.is_empty() {
            out.multicast_to_readout(Message::Push(core::mem::take(&mut self.orders)));
        }
    }

    /// Forgets the assignments of this pass.
    pub(crate) fn clear(&mut self) {
        self.orders.clear();
    }

    /// All builders have come, or the run begins without some.
    pub(crate) fn start(&mut self) {
        self.has_started = true;
    }

    /// Builders came or went: events go to these from a number on. Whether that is new.
    pub(crate) fn publish(&mut self, sfis: Vec<NodeId>, oldest: EventId, out: &mut Outbox) -> bool {
        let BuildingMode::PushByTable { readout, run } = &self.mode else { return false };
        if !self.has_started || sfis.is_empty() || self.table.newest().is_some_and(|newest| newest.sfis == sfis) {
            return false;
        }
        self.table.forget_below(oldest);
        let version = self.table.newest().map_or(1, |newest| newest.version + 1);
        // Before the first event that comes here, read-out systems may have pushed by an older version.
        let newest = self.newest.or((version > 1).then_some(EventId(0)));
        let first = newest.map_or(EventId(0), |newest| EventId(newest.0.saturating_add(self.ahead + 1)));
        let table = Destinations { version, first, run: *run, sfis };
        readout.iter().for_each(|&ros| out.send(ros, Message::Destinations(table.clone())));
        self.table.take(table);
        true
    }

    /// A read-out system came, or came back.
    pub(crate) fn on_readout(&mut self, node: NodeId, oldest: EventId, out: &mut Outbox) {
        self.table.forget_below(oldest);
        if let BuildingMode::PushByTable { readout, .. } = &self.mode
            && readout.contains(&node)
        {
            self.table.versions().for_each(|table| out.send(node, Message::Destinations(table.clone())));
        }
    }
}

/// Far below the room that a frame has for lists.
pub(crate) const ORDERS_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::Action;

    fn sent(out: &mut Outbox) -> Vec<Action> {
        out.drain().collect()
    }

    #[test]
    fn orders_of_a_pass_go_together() {
        let mut control = PushControl::new(BuildingMode::PushAssigned, 10, false);
        let mut out = Outbox::new();
        let event = |event| EventInfo { event: EventId(event), ..EventInfo::default() };
        control.order(event(1), NodeId(7), &mut out);
        control.order(event(2), NodeId(8), &mut out);
        assert!(out.is_empty());
        control.flush(&mut out);
        let orders = [(1, 7), (2, 8)].map(|(e, sfi)| PushOrder { event: event(e), sfi: NodeId(sfi) });
        assert_eq!(sent(&mut out), [Action::MulticastToReadout(Message::Push(orders.to_vec()))]);
        control.flush(&mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn a_table_holds_from_behind_what_level_1_may_have_issued() {
        let readout = alloc::vec![NodeId(3), NodeId(4)];
        let mut control = PushControl::new(BuildingMode::PushByTable { readout, run: 1 }, 10, false);
        let mut out = Outbox::new();
        assert!(!control.publish(alloc::vec![NodeId(7)], EventId(0), &mut out), "8 may not have come yet");
        assert_eq!(control.choice(EventId(0)), Choice::Any);
        control.start();
        assert!(control.publish(alloc::vec![NodeId(7), NodeId(8)], EventId(0), &mut out));
        assert_eq!((sent(&mut out).len(), control.choice(EventId(1))), (2, Choice::Only(NodeId(8))));
        assert!(control.publish(alloc::vec![NodeId(8)], EventId(0), &mut out));
        let of = |event| control.choice(EventId(event));
        assert_eq!(
            [of(10), of(12)],
            [Choice::Only(NodeId(7)), Choice::Only(NodeId(8))],
            "the others may be on their way"
        );
        assert!(control.publish(alloc::vec![NodeId(7), NodeId(8)], EventId(0), &mut out));
        sent(&mut out);
        control.on_event(EventId(5));
        assert!(!control.publish(alloc::vec![NodeId(7), NodeId(8)], EventId(0), &mut out), "no change");
        assert!(!control.publish(Vec::new(), EventId(0), &mut out), "nobody is left");
        assert!(control.publish(alloc::vec![NodeId(7)], EventId(0), &mut out));
        let of = |event| control.choice(EventId(event));
        assert_eq!([of(15), of(16)], [Choice::Only(NodeId(8)), Choice::Only(NodeId(7))]);
        sent(&mut out);
        control.on_readout(NodeId(4), EventId(15), &mut out);
        assert_eq!(sent(&mut out).len(), 2, "both versions");
        control.on_readout(NodeId(4), EventId(16), &mut out);
        assert_eq!(sent(&mut out).len(), 1, "nobody goes by the other any more");
        control.on_readout(NodeId(5), EventId(16), &mut out);
        assert!(out.is_empty());
    }
}
