//! The processing units as a supervisor sees them: who gets the next event.

use alloc::vec::Vec;

use crate::component::PeerState;
use crate::report::{BlockCause, BlockedClock};
use base::ids::NodeId;
use base::random::Random;
use base::time::Time;

/// How L2PUs are chosen among those with a free worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L2puAssignment {
    /// In turn.
    RoundRobin,
    /// At random.
    Random,
    /// The one with the fewest events.
    LeastLoaded,
}

/// The units of one supervisor, each with its share of events.
pub(crate) struct Farm {
    units: Vec<Unit>,
    share: usize,
    assignment: L2puAssignment,
    turn: usize,
    random: Random,
    /// Events that units within reach have room for.
    room: usize,
    /// Whether the blocked clock has to look at all units again.
    changed: bool,
    waits: bool,
}

struct Unit {
    node: NodeId,
    reachable: bool,
    gone: bool,
    in_hand: usize,
    /// When it answered last.
    heard: Time,
}

impl Farm {
    /// Units that are not known to be there.
    pub(crate) fn new(nodes: &[NodeId], share: usize, assignment: L2puAssignment, seed: u64) -> Self {
        let unit = |&node: &NodeId| Unit { node, reachable: false, gone: false, in_hand: 0, heard: Time::ZERO };
        let units = nodes.iter().map(unit).collect();
        Self { units, share, assignment, turn: 0, random: Random::new(seed), room: 0, changed: false, waits: false }
    }

    /// The unit of a node.
    pub(crate) fn find(&self, node: NodeId) -> Option<usize> {
        // Nodes of a role mostly follow one another, from some of them on and around.
        let first = i32::from(self.units.first()?.node.0);
        let guess = (i32::from(node.0) - first).rem_euclid(self.units.len() as i32) as usize;
        let hit = Some(guess).filter(|&guess| self.units[guess].node == node);
        hit.or_else(|| self.units.iter().position(|unit| unit.node == node))
    }

    /// The node of a unit.
    pub(crate) fn node(&self, unit: usize) -> NodeId {
        self.units[unit].node
    }

    /// Gives an event to a unit that has room, if one has.
    pub(crate) fn assign(&mut self) -> Option<usize> {
        if self.room == 0 {
            return None;
        }
        let count = self.units.len();
        let start = match self.assignment {
            L2puAssignment::Random => self.random.below(count as u64) as usize,
            _ => self.turn,
        };
        let has_room = |&unit: &usize| self.units[unit].reachable && self.units[unit].in_hand < self.share;
        let mut in_turn = (start..count).chain(0..start).filter(has_room);
        let chosen = match self.assignment {
            L2puAssignment::LeastLoaded => in_turn.min_by_key(|&unit| self.units[unit].in_hand),
            _ => in_turn.next(),
        }?;
        self.turn = if chosen + 1 == count { 0 } else { chosen + 1 };
        self.units[chosen].in_hand += 1;
        self.room -= 1;
        Some(chosen)
    }

    /// A unit has answered.
    pub(crate) fn release(&mut self, now: Time, unit: usize) {
        let unit = &mut self.units[unit];
        unit.heard = now;
        if unit.in_hand > 0 {
            unit.in_hand -= 1;
            self.room += usize::from(unit.reachable);
        }
    }

    /// Whether a unit has answered at or after this time.
    pub(crate) fn heard_since(&self, unit: usize, since: Time) -> bool {
        self.units[unit].heard >= since
    }

    /// A unit came or went: what it had in hand is gone.
    pub(crate) fn set(&mut self, unit: usize, state: PeerState) {
        let reachable = matches!(state, PeerState::Up(_));
        let unit = &mut self.units[unit];
        *unit = Unit { reachable, gone: state == PeerState::Gone, in_hand: 0, ..*unit };
        self.room = self.count_room();
        self.changed = true;
    }

    /// Whether no unit will ever answer again.
    pub(crate) fn is_gone(&self) -> bool {
        self.units.iter().all(|unit| unit.gone)
    }

    /// Says, after [`Farm::assign`] found no more room, whether events wait.
    pub(crate) fn tell_blocked(&mut self, now: Time, waits: bool, blocked: &mut BlockedClock) {
        // While events wait every unit within reach stays full.
        if waits == self.waits && !self.changed {
            return;
        }
        (self.waits, self.changed) = (waits, false);
        for unit in &self.units {
            blocked.set(now, unit.node, BlockCause::NoWorker, waits && unit.in_hand >= self.share);
        }
    }

    /// Asserts that every share is kept.
    pub(crate) fn check(&self) {
        assert!(self.units.iter().all(|unit| unit.in_hand <= self.share), "no unit has more than its share");
        assert_eq!(self.room, self.count_room(), "the room is that of the units within reach");
    }

    fn count_room(&self) -> usize {
        self.units.iter().filter(|unit| unit.reachable).map(|unit| self.share - unit.in_hand).sum()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use base::ids::Incarnation;

    fn farm(assignment: L2puAssignment) -> Farm {
        let mut farm = Farm::new(&[NodeId(3), NodeId(4), NodeId(9)], 2, assignment, 1);
        (0..3).for_each(|unit| farm.set(unit, PeerState::Up(Incarnation(0))));
        farm
    }

    fn assigned(farm: &mut Farm, count: usize) -> Vec<Option<usize>> {
        (0..count).map(|_| farm.assign()).collect()
    }

    #[test]
    fn units_take_turns_up_to_their_share() {
        let mut farm = farm(L2puAssignment::RoundRobin);
        let turns = [Some(0), Some(1), Some(2), Some(0), Some(1), Some(2), None];
        assert_eq!(assigned(&mut farm, 7), turns);
        farm.release(Time::ZERO, 1);
        assert_eq!(assigned(&mut farm, 2), [Some(1), None]);
        farm.check();
    }

    #[test]
    fn the_least_loaded_unit_is_next() {
        let mut farm = farm(L2puAssignment::LeastLoaded);
        assigned(&mut farm, 5);
        farm.release(Time::ZERO, 1);
        farm.release(Time::ZERO, 1);
        assert_eq!(assigned(&mut farm, 4), [Some(1), Some(2), Some(1), None]);
    }

    #[test]
    fn random_units_keep_their_shares() {
        let mut farm = farm(L2puAssignment::Random);
        let mut counts = vec![0; 3];
        assigned(&mut farm, 7).into_iter().flatten().for_each(|unit| counts[unit] += 1);
        assert_eq!(counts, [2, 2, 2]);
        farm.check();
    }

    #[test]
    fn a_unit_out_of_reach_gets_nothing_and_returns_empty() {
        let mut farm = farm(L2puAssignment::RoundRobin);
        assigned(&mut farm, 6);
        farm.set(2, PeerState::Down);
        farm.release(Time::ZERO, 2);
        assert_eq!((farm.assign(), farm.is_gone()), (None, false));
        farm.set(2, PeerState::Up(Incarnation(1)));
        assert_eq!(assigned(&mut farm, 3), [Some(2), Some(2), None]);
        assert_eq!((farm.find(NodeId(9)), farm.find(NodeId(5)), farm.find(NodeId(2))), (Some(2), None, None));
        farm.check();
    }
}
