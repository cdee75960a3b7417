//! What level 1 keeps of the events that it has issued, for a decider that dies and returns.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::component::Outbox;
use crate::ledger::Ledger;
use crate::level2::undecided::Undecided;
use crate::message::{EventInfo, Grounds, Holdings, Message, Roi, Settlement};
use base::ids::{EventId, NodeId};

/// Which events level 1 keeps, to tell them again to a decider that returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// None: what a decider that returns had in hand is lost.
    #[default]
    Nothing,
    /// Those that the DFM, which is the one decider, has not said to be finished.
    Unfinished,
    /// Those that the L2SV which was given them has not said to be decided for good.
    Unsettled,
}

/// Events that were issued and may have to be told again.
pub(super) struct Kept {
    keep: Keep,
    unfinished: VecDeque<EventInfo>,
    /// What the DFM has counted, for a later life of it.
    ledger: Ledger,
    supervisors: Vec<Supervised>,
}

/// What level 1 knows of the events of one L2SV.
struct Supervised {
    node: NodeId,
    unsettled: Undecided<(EventInfo, Vec<Roi>)>,
    /// Rejected, accepted, and accepted by force, in all lives.
    counts: [u64; 4],
    /// Groups of settlements in its present life.
    groups: u64,
    /// Groups that it may not have cleared, by their number.
    uncleared: VecDeque<(u64, Vec<EventId>)>,
    /// What its former lives may not have cleared, until the present one has done so.
    uncleared_before: Vec<EventId>,
}

impl Kept {
    pub(super) fn new(keep: Keep, deciders: &[NodeId]) -> Self {
        let supervised = |&node: &NodeId| Supervised {
            node,
            unsettled: Undecided::new(),
            counts: [0; 4],
            groups: 0,
            uncleared: VecDeque::new(),
            uncleared_before: Vec::new(),
        };
        let supervisors = if keep == Keep::Unsettled { deciders.iter().map(supervised).collect() } else { Vec::new() };
        Self { keep, unfinished: VecDeque::new(), ledger: Ledger::default(), supervisors }
    }

    /// An event is given to the decider with this index.
    pub(super) fn give(&mut self, decider: usize, event: EventInfo, rois: &[Roi]) {
        match self.keep {
            Keep::Nothing => {}
            Keep::Unfinished => self.unfinished.push_back(event),
            Keep::Unsettled => {
                self.supervisors[decider].unsettled.insert(event.event, (event, rois.to_vec()));
            }
        }
    }

    /// The DFM has finished everything below this event.
    pub(super) fn on_finished_below(&mut self, oldest: EventId) {
        while self.unfinished.pop_front_if(|kept| kept.event < oldest).is_some() {}
    }

    /// What has become of all events below a bound.
    pub(super) fn on_ledger(&mut self, ledger: &Ledger) {
        if ledger.below > self.ledger.below {
            self.ledger = *ledger;
        }
    }

    /// An L2SV has decided a group of events for good; it has cleared its groups up to `cleared`.
    pub(super) fn on_settled(&mut self, from: NodeId, cleared: u64, decided: &[Settlement], out: &mut Outbox) {
        let Some(supervised) = self.supervisors.iter_mut().find(|supervised| supervised.node == from) else { return };
        supervised.uncleared_before.clear();
        supervised.groups += 1;
        for settlement in decided {
            if supervised.unsettled.remove(settlement.event).is_some() {
                let [rejected, accepted, forced, incomplete] = &mut supervised.counts;
                *rejected += u64::from(!settlement.accept);
                *accepted += u64::from(settlement.accept);
                *forced += u64::from(settlement.grounds == Grounds::Timeout);
                *incomplete += u64::from(settlement.grounds == Grounds::PartOfData);
            }
        }
        while supervised.uncleared.pop_front_if(|(group, _)| *group <= cleared).is_some() {}
        if cleared < supervised.groups {
            let events = decided.iter().map(|settlement| settlement.event).collect();
            supervised.uncleared.push_back((supervised.groups, events));
        }
        out.send(from, Message::SettledTaken);
    }

    /// The oldest event from `first` on that a DFM in a new life has to be told again.
    pub(super) fn unfinished_from(&self, first: EventId) -> Option<EventInfo> {
        let index = self.unfinished.partition_point(|kept| kept.event < first);
        self.unfinished.get(index).copied()
    }

    /// How many there are from `first` on.
    pub(super) fn count_from(&self, first: EventId) -> u64 {
        (self.unfinished.len() - self.unfinished.partition_point(|kept| kept.event < first)) as u64
    }

    /// A decider is in a new life: a DFM learns what the former one had counted, an L2SV what it may not have dealt with.
    pub(super) fn tell_again(&mut self, node: NodeId, out: &mut Outbox) {
        if self.ledger.below > EventId(0) {
            let ledger = Box::new(self.ledger);
            out.send(node, Message::Held(Holdings { ledger, ..Holdings::default() }));
        }
        if let Some(supervised) = self.supervisors.iter_mut().find(|supervised| supervised.node == node) {
            supervised.tell_again(out);
        }
    }

    /// Nobody will ask for the events of this decider.
    pub(super) fn forget(&mut self, node: NodeId) {
        if let Some(supervised) = self.supervisors.iter_mut().find(|supervised| supervised.node == node) {
            supervised.unsettled.clear();
            supervised.uncleared.clear();
            supervised.uncleared_before.clear();
        }
    }

    /// Asserts that what is kept is consistent.
    pub(super) fn check(&self) {
        self.supervisors.iter().for_each(|supervised| supervised.unsettled.check());
    }
}

impl Supervised {
    fn tell_again(&mut self, out: &mut Outbox) {
        self.groups = 0;
        self.uncleared_before.extend(self.uncleared.drain(..).flat_map(|(_, events)| events));
        let [rejected, accepted, forced, incomplete] = self.counts;
        let uncleared = self.uncleared_before.clone();
        out.send(self.node, Message::Resume { rejected, accepted, forced, incomplete, uncleared });
        for (_, (event, rois)) in self.unsettled.iter_mut() {
            out.send(self.node, Message::L1Again { event: *event, rois: rois.clone() });
        }
    }
}
