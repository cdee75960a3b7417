//! What a read-out system pushes, to whom, and when `[ATM1997 §II–IV]`.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::building::byte_credits::{PushWindow, cost};
use base::ids::{EventId, NodeId};
use base::random::Random;
use base::time::Time;
use timing::lateness::Lateness;
use timing::rate_division::RateDivision;

/// How a read-out system pushes.
#[derive(Clone, Debug, PartialEq)]
pub struct PushParameters {
    /// Who tells where an event goes.
    pub destination: Destination,
    /// The builders.
    pub sfis: Vec<NodeId>,
    /// Most bytes on the way to each builder, overrun by one event at most.
    pub window_bytes: u64,
    /// Rate towards each builder in bytes per second; without it, as fast as credits allow.
    pub bytes_per_s: Option<u64>,
    /// Bytes that may go at once after a pause, where there is a rate. Bytes owed to a source that was called late come on top.
    pub burst_bytes: u64,
    /// Events that go together; 1 for each as soon as its data are there.
    pub group: usize,
    /// How long an event may wait for its group to fill.
    pub group_age: Duration,
    /// For the phase in which shaped sources begin.
    pub seed: u64,
}

/// Who tells where an event goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The DFM, for each event.
    Assigned,
    /// A table of event numbers.
    Table,
}

/// Events on their way to their builders: one lane for each, in the order in which they were offered.
///
/// A lane holds events by number only: whose data are not there, or are cleared meanwhile, is found when their turn comes. Until
/// then they count in the group and in what may wait.
pub(crate) struct Pusher {
    group: usize,
    group_age: Duration,
    waiting_max: usize,
    /// By rising node.
    lanes: Vec<Lane>,
    /// Lanes that may have something to send now.
    touched: VecDeque<usize>,
    /// When others may.
    wakes: BTreeSet<(Time, usize)>,
    lateness: Lateness,
}

struct Lane {
    sfi: NodeId,
    reachable: bool,
    window: PushWindow,
    rate: Option<RateDivision>,
    waiting: VecDeque<EventId>,
    /// When the group goes, full or not.
    due: Time,
    touched: bool,
    wake: Option<Time>,
}

impl Pusher {
    /// Holds at most `waiting_max` events for each builder; any beyond will be asked for.
    pub(crate) fn new(parameters: &PushParameters, waiting_max: usize) -> Self {
        let mut random = Random::new(parameters.seed);
        let mut sfis = parameters.sfis.clone();
        sfis.sort_unstable();
        let mut lane = |sfi| Lane {
            sfi,
            reachable: false,
            window: PushWindow::new(parameters.window_bytes),
            rate: parameters.bytes_per_s.map(|rate| RateDivision::new(rate, parameters.burst_bytes, random.unit())),
            waiting: VecDeque::new(),
            due: Time::ZERO,
            touched: false,
            wake: None,
        };
        let lanes = sfis.into_iter().map(&mut lane).collect();
        Self {
            group: parameters.group.max(1),
            group_age: parameters.group_age,
            waiting_max,
            lanes,
            touched: VecDeque::new(),
            wakes: BTreeSet::new(),
            lateness: Lateness::default(),
        }
    }

    /// The event is to be pushed; its data are mostly there. Whether it is: its builder may be away, or too many wait for it.
    // Each of its two callers, read-out system and EBIF, is a hot path: 1 % of the instructions of a pushed event.
    #[inline(always)]
    pub(crate) fn offer(&mut self, now: Time, sfi: NodeId, event: EventId) -> bool {
        let Some(index) = self.place(sfi) else { return false };
        let group_age = self.age();
        let lane = &mut self.lanes[index];
        if !lane.reachable || lane.waiting.len() >= self.waiting_max {
            return false;
        }
        if lane.waiting.is_empty() {
            lane.due = now + group_age;
        }
        lane.waiting.push_back(event);
        self.touch(index);
        true
    }

    /// The builder asks for the event: it is not pushed any more.
    pub(crate) fn withdraw(&mut self, sfi: NodeId, event: EventId) {
        if let Some(index) = self.place(sfi) {
            self.lanes[index].waiting.retain(|waiting| *waiting != event);
        }
    }

    /// A lane that may send a group now, and how many events that is.
    #[inline(always)]
    pub(crate) fn next(&mut self, now: Time) -> Option<(usize, usize)> {
        self.on_deadline(now);
        while let Some(&index) = self.touched.front() {
            match self.ready_at(now, index) {
                Some(at) if at <= now => {
                    let group_age = self.age();
                    let lane = &mut self.lanes[index];
                    lane.due = now + group_age;
                    return Some((index, lane.waiting.len().min(self.group)));
                }
                later => {
                    self.touched.pop_front();
                    self.lanes[index].touched = false;
                    self.wake(index, later);
                }
            }
        }
        None
    }

    /// The next event of a group. Where the window closes, the rest of the group goes with the next credit.
    pub(crate) fn take(&mut self, lane: usize) -> Option<EventId> {
        let lane = &mut self.lanes[lane];
        if !lane.window.is_open() {
            lane.due = Time::ZERO;
            return None;
        }
        lane.waiting.pop_front()
    }

    /// The builder of a lane.
    pub(crate) fn builder(&self, lane: usize) -> NodeId {
        self.lanes[lane].sfi
    }

    /// An event of this length goes. Returns its builder and all that was pushed there so far, with this event.
    pub(crate) fn sent(&mut self, now: Time, lane: usize, len_bytes: usize) -> (NodeId, u64) {
        let lane = &mut self.lanes[lane];
        lane.window.push(len_bytes);
        if let Some(rate) = &mut lane.rate {
            rate.take(now, self.lateness.recent(now), cost(len_bytes));
        }
        (lane.sfi, lane.window.pushed())
    }

    /// All that was pushed to a builder so far.
    pub(crate) fn pushed(&self, sfi: NodeId) -> u64 {
        self.place(sfi).map_or(0, |index| self.lanes[index].window.pushed())
    }

    pub(crate) fn on_credit(&mut self, sfi: NodeId, taken: u64) {
        if let Some(index) = self.place(sfi) {
            self.lanes[index].window.on_credit(taken);
            if !self.lanes[index].waiting.is_empty() {
                self.touch(index);
            }
        }
    }

    /// A builder came or went. Events for one that went are built elsewhere.
    pub(crate) fn on_peer(&mut self, node: NodeId, reachable: bool) {
        if let Some(index) = self.place(node) {
            let lane = &mut self.lanes[index];
            lane.reachable = reachable;
            lane.waiting.clear();
            lane.window.forgive();
        }
    }

    /// Lanes whose time has come.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        while let Some(&(at, index)) = self.wakes.first().filter(|(at, _)| *at <= now) {
            self.lateness.note(now, at);
            self.wake(index, None);
            self.touch(index);
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Asserts that no lane is forgotten.
    pub(crate) fn check(&self) {
        assert_eq!(self.wakes.len(), self.lanes.iter().filter(|lane| lane.wake.is_some()).count(), "every wake once");
        assert!(
            self.lanes.iter().all(|lane| lane.waiting.len() <= self.waiting_max),
            "waiting events within their bound"
        );
    }

    fn age(&self) -> Duration {
        if self.group > 1 { self.group_age } else { Duration::ZERO }
    }

    /// When a lane may send; never, if it has nothing or no credit.
    fn ready_at(&mut self, now: Time, index: usize) -> Option<Time> {
        let group = self.group;
        let lane = &mut self.lanes[index];
        if lane.waiting.is_empty() || !lane.window.is_open() {
            return None;
        }
        let grouped = if lane.waiting.len() >= group { now } else { lane.due };
        Some(lane.rate.as_mut().map_or(grouped, |rate| rate.ready_at(now).max(grouped)))
    }

    fn touch(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        if !lane.touched {
            lane.touched = true;
            self.touched.push_back(index);
        }
    }

    fn wake(&mut self, index: usize, at: Option<Time>) {
        let lane = &mut self.lanes[index];
        if lane.wake == at {
            return;
        }
        if let Some(earlier) = lane.wake {
            self.wakes.remove(&(earlier, index));
        }
        self.wakes.extend(at.map(|at| (at, index)));
        lane.wake = at;
    }

    fn place(&self, sfi: NodeId) -> Option<usize> {
        self.lanes.binary_search_by_key(&sfi, |lane| lane.sfi).ok()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn pusher(change: impl FnOnce(&mut PushParameters)) -> Pusher {
        let mut parameters = PushParameters {
            destination: Destination::Assigned,
            sfis: vec![NodeId(9), NodeId(8)],
            window_bytes: 10_000,
            bytes_per_s: None,
            burst_bytes: 0,
            group: 1,
            group_age: Duration::from_millis(1),
            seed: 1,
        };
        change(&mut parameters);
        let mut pusher = Pusher::new(&parameters, 5);
        pusher.on_peer(NodeId(8), true);
        pusher.on_peer(NodeId(9), true);
        pusher
    }

    /// What goes now, if every event is this long: builders with their groups.
    fn goes(pusher: &mut Pusher, now: Time, len_bytes: usize) -> Vec<(u16, Vec<u64>)> {
        let mut groups = Vec::new();
        while let Some((lane, count)) = pusher.next(now) {
            let mut events = Vec::new();
            while events.len() < count
                && let Some(event) = pusher.take(lane)
            {
                events.push(event.0);
                pusher.sent(now, lane, len_bytes);
            }
            groups.push((pusher.builder(lane).0, events));
        }
        pusher.check();
        groups
    }

    fn offer(pusher: &mut Pusher, now: Time, sfi: u16, events: core::ops::Range<u64>) {
        for event in events {
            pusher.offer(now, NodeId(sfi), EventId(event));
        }
    }

    fn at_us(us: u64) -> Time {
        Time::from_ns(us * 1000)
    }

    #[test]
    fn events_go_as_they_come_while_credits_last() {
        let mut pusher = pusher(|_| {});
        offer(&mut pusher, at_us(0), 8, 1..3);
        offer(&mut pusher, at_us(0), 9, 3..4);
        offer(&mut pusher, at_us(0), 7, 4..5);
        assert_eq!(goes(&mut pusher, at_us(0), 6_000), [(8, vec![1]), (8, vec![2]), (9, vec![3])]);
        offer(&mut pusher, at_us(1), 8, 5..7);
        assert_eq!((goes(&mut pusher, at_us(1), 6_000), pusher.next_deadline()), (vec![], None), "no credit");
        pusher.withdraw(NodeId(8), EventId(5));
        pusher.on_credit(NodeId(8), pusher.pushed(NodeId(8)));
        assert_eq!(goes(&mut pusher, at_us(2), 6_000), [(8, vec![6])]);
    }

    #[test]
    fn a_group_goes_when_it_is_full_or_old() {
        let mut pusher = pusher(|p| p.group = 3);
        offer(&mut pusher, at_us(0), 8, 1..3);
        assert!(goes(&mut pusher, at_us(10), 1).is_empty());
        assert_eq!(pusher.next_deadline(), Some(at_us(1000)));
        offer(&mut pusher, at_us(20), 8, 3..4);
        assert_eq!(goes(&mut pusher, at_us(20), 1), [(8, vec![1, 2, 3])]);
        offer(&mut pusher, at_us(30), 8, 4..5);
        assert!(goes(&mut pusher, at_us(30), 1).is_empty());
        assert_eq!(goes(&mut pusher, at_us(1030), 1), [(8, vec![4])]);
        assert_eq!(pusher.next_deadline(), None);
    }

    #[test]
    fn a_group_overruns_the_window_by_one_event_and_goes_on_with_the_next_credit() {
        let mut pusher = pusher(|p| p.group = 3);
        offer(&mut pusher, at_us(0), 8, 1..4);
        assert_eq!(goes(&mut pusher, at_us(0), 6_000), [(8, vec![1, 2])]);
        pusher.on_credit(NodeId(8), pusher.pushed(NodeId(8)) - 1);
        assert_eq!(goes(&mut pusher, at_us(1), 6_000), [(8, vec![3])]);
    }

    #[test]
    fn a_group_of_no_age_takes_what_is_there() {
        let mut pusher = pusher(|p| (p.group, p.group_age) = (3, Duration::ZERO));
        offer(&mut pusher, at_us(0), 8, 1..6);
        offer(&mut pusher, at_us(0), 9, 6..7);
        assert_eq!(goes(&mut pusher, at_us(0), 1), [(8, vec![1, 2, 3]), (8, vec![4, 5]), (9, vec![6])]);
        assert_eq!(pusher.next_deadline(), None);
    }

    #[test]
    fn a_shaped_lane_waits_its_turn() {
        let mut pusher = pusher(|p| p.bytes_per_s = Some(1_000_000));
        let mut sent = 0;
        for us in (0..1_000_000).step_by(500) {
            offer(&mut pusher, at_us(us), 8, us..us + 1);
            sent += goes(&mut pusher, at_us(us), 936).iter().map(|(_, events)| events.len() * 1000).sum::<usize>();
            pusher.on_credit(NodeId(8), u64::MAX);
        }
        assert!((980_000..1_020_000).contains(&sent), "half of what was offered: {sent}");
    }

    /// Passes come every 3 ms, a message is due every millisecond.
    #[test]
    fn a_source_that_is_called_late_keeps_its_rate() {
        let mut pusher = pusher(|p| (p.bytes_per_s, p.window_bytes) = (Some(1_000_000), 1 << 20));
        let mut sent = 0;
        for us in (0..1_000_000).step_by(3_000) {
            offer(&mut pusher, at_us(us), 8, us..us + 5);
            sent += goes(&mut pusher, at_us(us), 936).iter().map(|(_, events)| events.len() * 1000).sum::<usize>();
            pusher.on_credit(NodeId(8), u64::MAX);
        }
        assert!((980_000..1_005_000).contains(&sent), "{sent} bytes in a second");
    }

    #[test]
    fn a_lost_builder_is_forgotten_and_what_waits_is_bounded() {
        let mut pusher = pusher(|p| p.window_bytes = 1);
        offer(&mut pusher, at_us(0), 8, 0..1);
        assert_eq!(goes(&mut pusher, at_us(0), 100).len(), 1);
        offer(&mut pusher, at_us(0), 8, 1..100);
        assert!(goes(&mut pusher, at_us(0), 100).is_empty());
        pusher.on_peer(NodeId(8), false);
        offer(&mut pusher, at_us(0), 8, 100..101);
        pusher.on_peer(NodeId(8), true);
        offer(&mut pusher, at_us(0), 8, 101..102);
        assert_eq!(goes(&mut pusher, at_us(1), 100), [(8, vec![101])]);
    }
}
