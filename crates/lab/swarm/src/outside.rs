//! The outside of a drawn partition: triggers, steering, tasks and disks, in what they do and how they fail.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use base::bulk::{Bulk, PageSlice};
use base::ids::{EventId, NodeId, Role};
use base::random::Random;
use configuration::OnMissing;
use dataflow::component::{Processed, Selection, Steer, Steered, Windowed};
use dataflow::level1::roib::TriggerRecord;
use dataflow::level1::trigger::Trigger;
use dataflow::level2::steering::Skeleton;
use dataflow::message::{BuiltEvent, Chains, DebugReason, EventInfo, Grounds, Recording};
use dataflow::recording::sfo::Durable;
use timing::Interval;
use trigger::LEVEL2_RESULT;

use super::drawn::Drawn;
use super::expected::mixed;
use super::matched::{BuiltMatch, MatchedFragment};
use super::parts::trigger;
use super::plan::Plan;
use super::sliced::{self, BuiltSlice, RESULT_BYTES};
use simulator::world::{Effort, Outside, Place};

/// What the outside has seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Events in the files of each SFO, in the order of writing.
    pub(super) files: BTreeMap<NodeId, Vec<Recorded>>,
    /// Slices that were built, each time that one was recorded or filtered.
    pub(super) slices: Vec<BuiltSlice>,
    /// The same of events that have data by time or count.
    pub(super) matched: Vec<BuiltMatch>,
}

/// An event in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) event: EventId,
    /// Its streams, none for the debug stream.
    pub(super) streams: u32,
    /// Whether it has the data of all ROBs.
    pub(super) complete: bool,
    /// On what level 2 had accepted it.
    pub(super) grounds: Grounds,
    /// What is to become of it because of the sources that it lacks.
    pub(super) withheld: Option<Withheld>,
}

/// What is to become of an event that lacks a source, whoever decides on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Withheld {
    Dropped,
    /// It is in the debug stream alone.
    Debug,
}

impl Seen {
    /// All events in files, once for each time that one was recorded.
    pub(super) fn recorded(&self) -> impl Iterator<Item = &Recorded> {
        self.files.values().flatten()
    }

    /// Their numbers.
    pub(super) fn events(&self) -> impl Iterator<Item = EventId> {
        self.recorded().map(|recorded| recorded.event)
    }
}

/// The outside of a plan.
pub(super) struct Surroundings {
    plan: Plan,
    skeleton: Skeleton,
    random: Random,
    ros: Vec<NodeId>,
    /// Events that the filter was given.
    processed: u64,
    seen: Rc<RefCell<Seen>>,
}

impl Surroundings {
    pub(super) fn new(plan: &Plan, seen: Rc<RefCell<Seen>>) -> Self {
        Self {
            skeleton: plan.skeleton(),
            random: Random::new(plan.seed ^ 0x0007_5ede),
            ros: plan.of(Role::Ros),
            processed: 0,
            seen,
            plan: plan.clone(),
        }
    }

    /// What is left of the event, if its task asks for windows; the counts are those of [`WINDOWED`].
    fn windowed(&self, built: &BuiltEvent) -> Option<Box<Windowed>> {
        if !self.plan.has_windows(built.event.event) {
            return None;
        }
        self.check_content(built);
        let [kept_chunks, left_fragments, left_chunks, left_bytes] = WINDOWED;
        let is_real = self.plan.readout.sending.is_some();
        let bytes = || Bulk::Pages(PageSlice::from(vec![1; WINDOWS_BYTES as usize]));
        let bulk = if is_real { bytes() } else { Bulk::Modelled { len_bytes: WINDOWS_BYTES, seed: 2 } };
        Some(Box::new(Windowed { bulk, kept_chunks, left_fragments, left_chunks, left_bytes }))
    }

    /// Every ROB is in the event once, with its fragment or as missing.
    fn check_content(&self, built: &BuiltEvent) {
        if self.plan.slicing().is_some() {
            let slice = BuiltSlice::of(built);
            self.check_result(built, slice.result);
            return self.seen.borrow_mut().slices.push(slice);
        }
        if self.plan.readout.sending.is_some() {
            return self.check_pushed(built);
        }
        let missing = built.missing.iter().filter(|rob| **rob != RESULT_ROB).count();
        let fragments = built.bulk.len() / FRAGMENT_BYTES as usize + missing;
        let result = built.bulk.len() % FRAGMENT_BYTES as usize;
        let robs = self.plan.counts.ros * self.plan.readout.robs_per_ros;
        assert_eq!(fragments, usize::from(robs), "fragments and missing ones of {built:?}");
        assert!(result == 0 || result == RESULT_BYTES as usize, "result of level 2 in {built:?}");
        self.check_result(built, result);
    }

    /// The same where sources push. The data under a number are those that its source sent under it. Missing ones are
    /// flagged, unless an event is complete without them.
    fn check_pushed(&self, built: &BuiltEvent) {
        let (mut here, mut result, mut matched) = (BTreeSet::new(), 0, Vec::new());
        let slices = built.bulk.slices();
        let mut slices = slices.iter();
        while let Some(slice) = slices.next() {
            if MatchedFragment::begins(slice) {
                let next = || slices.next().expect("whole fragments").clone();
                let fragment = MatchedFragment::of(built.event.event, slice, next);
                assert!(here.insert(fragment.rob), "rob {:#x} twice in {built:?}", fragment.rob);
                matched.push(fragment);
                continue;
            }
            let bytes = slice.as_bytes();
            if bytes == [0; RESULT_BYTES as usize] {
                result += bytes.len();
                continue;
            }
            assert_eq!(bytes.len(), FRAGMENT_BYTES as usize, "a fragment of {built:?}");
            let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("within a fragment"));
            let (rob, number) = (word(0), word(8));
            assert_eq!(number, built.event.event.0, "a fragment of rob {rob:#x} in {built:?}");
            assert!(here.insert(rob as u32), "rob {rob:#x} twice in {built:?}");
        }
        let is_flagged = |drawn: &Drawn| built.missing.contains(&self.rob_of(drawn));
        let sources = self.plan.sources();
        for drawn in &sources {
            // Who does not answer at all does not say what is tolerated; but level 2 may have had some of it.
            let is_silent = || {
                self.plan.level2.phased.is_some()
                    || sources.iter().filter(|other| other.ros == drawn.ros).all(is_flagged)
            };
            let (is_here, rob) = (here.remove(&self.rob_of(drawn)), self.rob_of(drawn));
            let may = if is_flagged(drawn) {
                !is_here && (!drawn.is_tolerated() || is_silent())
            } else {
                is_here || drawn.is_tolerated()
            };
            assert!(may, "rob {rob:#x} is there, or flagged, or tolerated, in {built:?}");
        }
        assert!(here.is_empty(), "fragments of no source: {here:x?} in {built:?}");
        assert!(result == 0 || result == RESULT_BYTES as usize, "result of level 2 in {built:?}");
        self.check_result(built, result);
        if self.plan.matching().is_some() {
            let (event, missing) = (built.event.event, built.missing.to_vec());
            self.seen.borrow_mut().matched.push(BuiltMatch { event, fragments: matched, missing });
        }
    }

    fn rob_of(&self, drawn: &Drawn) -> u32 {
        self.plan.robs(drawn.ros)[usize::from(drawn.rob)]
    }

    fn check_result(&self, built: &BuiltEvent, result: usize) {
        if self.plan.has_result(&built.event) {
            let is_flagged = built.missing.contains(&RESULT_ROB);
            assert!((result > 0) != is_flagged, "the result of level 2 is there or flagged as missing in {built:?}");
        }
    }
}

impl Outside for Surroundings {
    fn links(&self, node: NodeId) -> u16 {
        if self.ros.contains(&node) { self.plan.readout.robs_per_ros } else { 0 }
    }

    fn fragment(&mut self, _: NodeId, _: u16, event: &EventInfo) -> Bulk {
        Bulk::Modelled { len_bytes: FRAGMENT_BYTES, seed: event.ordinal as u32 }
    }

    fn pushed(&mut self, node: NodeId, rob: u16, event: EventId) -> Bulk {
        let ros = self.ros.iter().position(|ros| *ros == node).expect("a read-out system");
        let mut bytes = vec![0x5a; FRAGMENT_BYTES as usize];
        bytes[..8].copy_from_slice(&u64::from(self.plan.robs(ros)[usize::from(rob)]).to_le_bytes());
        bytes[8..16].copy_from_slice(&event.0.to_le_bytes());
        Bulk::Pages(PageSlice::from(bytes))
    }

    fn matched(&mut self, node: NodeId, rob: u16, _: EventId, time: Interval, place: u64) -> Bulk {
        self.chunk(node, rob, time, place)
    }

    fn chunk(&mut self, node: NodeId, rob: u16, time: Interval, place: u64) -> Bulk {
        let ros = self.ros.iter().position(|ros| *ros == node).expect("a read-out system");
        sliced::chunk(self.plan.robs(ros)[usize::from(rob)], time, place)
    }

    fn trigger(&mut self, _: u16, event: EventId) -> TriggerRecord {
        if self.plan.has_numbers_of_its_own() {
            return TriggerRecord { event, ..TriggerRecord::default() };
        }
        let Trigger { bcid, trigger_type, items, rois } = trigger(event.0.wrapping_sub(self.plan.triggers.first));
        TriggerRecord { event, bcid: Some(bcid), trigger_type: Some(trigger_type), items, vetoed: 0, rois }
    }

    fn steer(&mut self, _: NodeId, steer: &Steer) -> Steered {
        match self.skeleton.step(steer) {
            Steered::Decide(selection) if selection.accept => {
                let bytes = || Bulk::Pages(PageSlice::from(vec![0; RESULT_BYTES as usize]));
                let modelled = || Bulk::Modelled { len_bytes: RESULT_BYTES, seed: 1 };
                let result = if self.plan.readout.sending.is_some() { bytes() } else { modelled() };
                Steered::Decide(Selection { result, ..selection })
            }
            other => other,
        }
    }

    /// A processing task that decides by the plan's policy, and now and then fails.
    fn process(&mut self, built: &BuiltEvent) -> Option<Processed> {
        self.processed += 1;
        if self.plan.filter.stuck_after.is_some_and(|after| self.processed > after) {
            return None;
        }
        let (event, result) = (built.event, Bulk::empty());
        let (asked, chains) = self.plan.answer(event.event);
        Some(if self.plan.fails(event.event) {
            Processed::Fail { reason: DebugReason::Crash, result }
        } else if self.plan.filter.policy.accepts(event.event, event.ordinal) {
            Processed::Accept { streams: asked, chains, result, windowed: self.windowed(built) }
        } else {
            Processed::Reject { chains }
        })
    }

    fn disk_fails(&mut self, is_healed: bool) -> bool {
        !(is_healed && self.plan.recording.disks_heal) && self.random.chance(self.plan.recording.failures)
    }

    fn record(&mut self, node: NodeId, recording: &Recording) -> bool {
        if recording.debug.is_none() && self.plan.has_windows(recording.built.event.event) {
            assert_eq!(recording.built.bulk.len(), WINDOWS_BYTES as usize, "what windows leave");
        } else {
            self.check_content(&recording.built);
        }
        let Recording { ref built, streams, .. } = *recording;
        let recorded = Recorded {
            event: built.event.event,
            streams,
            complete: built.missing.is_empty(),
            grounds: built.event.grounds,
            withheld: self.plan.withheld(&built.missing),
        };
        self.seen.borrow_mut().files.entry(node).or_default().push(recorded);
        true
    }

    /// Where events are acknowledged when they are written, the host lives on; else it dies, too.
    fn lost(&mut self, node: NodeId, unsynced: usize) -> usize {
        if self.plan.recording.durable == Durable::Write {
            return 0;
        }
        let lost = self.random.below(unsynced as u64 + 1) as usize;
        if let Some(events) = self.seen.borrow_mut().files.get_mut(&node) {
            events.truncate(events.len() - lost);
        }
        lost
    }

    fn effort(&mut self, in_run: Duration, work: Effort<'_>) -> (Duration, Place) {
        let mut slow = |plan: &Plan| {
            if self.random.chance(plan.level2.slow_steering) { plan.network.links.delay_max } else { Duration::ZERO }
        };
        match work {
            Effort::Steer(_) => {
                let heavy = self.plan.level2.heavy_until.filter(|(until, _)| in_run < *until);
                let cost = heavy.map_or(self.plan.level2.steering_cost, |(_, cost)| cost);
                (cost + slow(&self.plan), Place::Anywhere)
            }
            Effort::Process(_) => (self.plan.filter.cost + slow(&self.plan), Place::Anywhere),
            Effort::Record(_) | Effort::Sync => (Duration::ZERO, Place::Aside),
        }
    }
}

impl Plan {
    /// Whether a processing task fails on this event.
    pub(super) fn fails(&self, event: EventId) -> bool {
        self.filter.has_tasks && mixed(event.0).is_multiple_of(17)
    }

    /// What is to become of an event without the fragments of these ROBs.
    fn withheld(&self, missing: &[u32]) -> Option<Withheld> {
        let withheld = |drawn: Drawn| match drawn.on_missing {
            _ if !missing.contains(&self.robs(drawn.ros)[usize::from(drawn.rob)]) => None,
            OnMissing::Drop => Some(Withheld::Dropped),
            OnMissing::DebugStream => Some(Withheld::Debug),
            OnMissing::Flag | OnMissing::Wait | OnMissing::Tolerate => None,
        };
        self.sources().into_iter().filter_map(withheld).max()
    }

    /// Whether a processing task that accepts this event asks for windows of it.
    fn has_windows(&self, event: EventId) -> bool {
        self.filter.has_tasks && mixed(event.0).is_multiple_of(3)
    }

    /// Whether level 2 had a result for an accepted event.
    fn has_result(&self, info: &EventInfo) -> bool {
        let is_decided = self.has_level2() && self.level2.sink.is_none() && info.grounds != Grounds::Timeout;
        is_decided && self.is_recommended(info.event)
    }

    /// The streams that a processing task asks for by name, and what its chains say.
    fn answer(&self, event: EventId) -> (u32, Chains) {
        let (named, passed) = self.said_of(event);
        (named, Chains { input: passed, passed })
    }
}

/// Chunks that stay in an event with windows, and fragments, chunks and bytes that do not.
pub(super) const WINDOWED: [u64; 4] = [1, 2, 3, 4];
/// Source identifier of the ROB of the pROS.
pub(super) const RESULT_ROB: u32 = LEVEL2_RESULT.0;
const FRAGMENT_BYTES: u32 = 100;
const WINDOWS_BYTES: u32 = 24;
