//! The data of one event on their way together from the read-out systems of a crate.

use alloc::vec::Vec;

use super::CrateRos;
use crate::message::Missing;
use crate::readout::replies::Parts;
use base::bulk::Bulk;
use base::ids::NodeId;

/// What several read-out systems were asked for together. It knows of each whether it has answered.
#[derive(Debug)]
pub(super) struct Gathering {
    /// In the order of the crate.
    shares: Vec<Share>,
    missing: Vec<Missing>,
    /// Shares that have not come.
    left: usize,
    is_of_all: bool,
}

/// What one of them was asked for.
#[derive(Debug)]
struct Share {
    of: NodeId,
    /// Source identifiers; all of it, if none is named.
    robs: Vec<u32>,
    /// What it has sent.
    come: Option<Bulk>,
}

impl Gathering {
    /// Asks for the named ROBs of a crate, or for all if none is named. ROBs of none of its systems are missing for good.
    pub(super) fn new(systems: &[CrateRos], named: &[u32]) -> Self {
        // Made at once: there is one for each fragment of every event.
        let mut shares = Vec::with_capacity(systems.len());
        for system in systems {
            let robs: Vec<u32> = named.iter().copied().filter(|rob| system.robs.contains(rob)).collect();
            if named.is_empty() || !robs.is_empty() {
                shares.push(Share { of: system.node, robs, come: None });
            }
        }
        let is_foreign = |rob: &&u32| systems.iter().all(|system| !system.robs.contains(rob));
        let missing = named.iter().filter(is_foreign).map(|&rob| Missing { rob, lost: true }).collect();
        Self { left: shares.len(), is_of_all: named.is_empty(), shares, missing }
    }

    /// Whether all ROBs were asked for.
    pub(super) fn is_of_all(&self) -> bool {
        self.is_of_all && !self.shares.is_empty()
    }

    /// Those that have not answered, each with the names of its ROBs; no names stand for all.
    pub(super) fn asked(&self) -> impl Iterator<Item = (NodeId, &[u32])> {
        self.shares.iter().filter(|share| share.come.is_none()).map(|share| (share.of, &share.robs[..]))
    }

    /// Takes what one of them has sent; whether it was waited for.
    pub(super) fn take(&mut self, from: NodeId, missing: Vec<Missing>, bulk: Bulk) -> bool {
        let Some(share) = self.share_of(from).filter(|share| share.come.is_none()) else { return false };
        share.come = Some(bulk);
        self.missing.extend(missing);
        self.left -= 1;
        true
    }

    /// Most often all systems of a crate were asked, and have numbers one behind the other.
    fn share_of(&mut self, from: NodeId) -> Option<&mut Share> {
        let first = self.shares.first()?.of.0;
        let place = usize::from(from.0.wrapping_sub(first));
        if self.shares.get(place).is_some_and(|share| share.of == from) {
            return self.shares.get_mut(place);
        }
        self.shares.iter_mut().find(|share| share.of == from)
    }

    /// One of them sends nothing; `lost` if it never will.
    pub(super) fn do_without(&mut self, system: &CrateRos, lost: bool) -> bool {
        let asked = self.asked().find(|(of, _)| *of == system.node).map(|(_, robs)| robs);
        let Some(robs) = asked.map(|robs| if robs.is_empty() { &system.robs } else { robs }) else { return false };
        let missing = robs.iter().map(|&rob| Missing { rob, lost }).collect();
        self.take(system.node, missing, Bulk::empty())
    }

    /// The same of all that have not answered.
    pub(super) fn do_without_rest(&mut self, systems: &[CrateRos]) {
        systems.iter().for_each(|system| {
            self.do_without(system, false);
        });
    }

    /// Whether all have answered.
    pub(super) fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// What has come, in the order of the crate, and what has not. The data stay where they are.
    pub(super) fn finish(self) -> (Vec<Missing>, Parts) {
        let mut parts = Parts::default();
        parts.reserve(self.shares.len());
        self.shares.into_iter().filter_map(|share| share.come).for_each(|bulk| parts.add(bulk));
        (self.missing, parts)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn systems() -> Vec<CrateRos> {
        (1..=3).map(|n| CrateRos { node: NodeId(n), robs: vec![u32::from(n) * 10, u32::from(n) * 10 + 1] }).collect()
    }

    fn bulk(len_bytes: u32) -> Bulk {
        Bulk::Modelled { len_bytes, seed: 1 }
    }

    fn asked(gathering: &Gathering) -> Vec<(u16, &[u32])> {
        gathering.asked().map(|(of, robs)| (of.0, robs)).collect()
    }

    #[test]
    fn all_are_asked_where_none_is_named_and_each_answers_once() {
        let mut gathering = Gathering::new(&systems(), &[]);
        assert_eq!(asked(&gathering), [(1, &[][..]), (2, &[]), (3, &[])]);
        assert!(gathering.is_of_all() && !Gathering::new(&systems(), &[99]).is_of_all());
        assert!(gathering.take(NodeId(2), Vec::new(), bulk(20)));
        assert!(!gathering.take(NodeId(2), Vec::new(), bulk(20)) && !gathering.take(NodeId(9), Vec::new(), bulk(1)));
        assert!(gathering.take(NodeId(3), vec![Missing { rob: 31, lost: false }], bulk(30)));
        assert!(!gathering.is_complete());
        assert!(gathering.do_without(&systems()[0], true) && gathering.is_complete());
        let (missing, parts) = gathering.finish();
        let named: Vec<(u32, bool)> = missing.iter().map(|missing| (missing.rob, missing.lost)).collect();
        assert_eq!((named, parts.len_bytes()), (vec![(31, false), (10, true), (11, true)], 50));
    }

    #[test]
    fn only_those_with_what_is_named_are_asked() {
        let mut gathering = Gathering::new(&systems(), &[31, 20, 99]);
        assert_eq!(asked(&gathering), [(2, &[20][..]), (3, &[31])]);
        assert!(gathering.take(NodeId(3), Vec::new(), bulk(4)));
        gathering.do_without_rest(&systems());
        assert!(gathering.is_complete());
        let (missing, parts) = gathering.finish();
        let expected = [Missing { rob: 99, lost: true }, Missing { rob: 20, lost: false }];
        assert_eq!((&missing[..], parts.len_bytes()), (&expected[..], 4));
    }
}
