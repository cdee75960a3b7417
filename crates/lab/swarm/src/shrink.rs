//! Less of a plan that fails, as long as it still fails.

use std::collections::BTreeSet;
use std::time::Duration;

use base::ids::NodeId;
use configuration::OnMissing;
use dataflow::level2::overrides::Overrides;

use super::drawn::{ByCount, Cut, Drawn, Matched, OwnClock};
use super::plan::{Counts, Fine, Plan};
use simulator::world::{Fault, Habits, Links, Telling, Trace, TypeSet};

impl Plan {
    /// The smallest plan found that fails in the way in which this one does, with what is wrong with it; none if nothing is wrong.
    ///
    /// It may be less than minimal: the search is bounded in plans and in the steps of each.
    pub fn least(&self) -> Option<(Self, String)> {
        let verdict = self.verdict()?;
        let kinds = kinds_of(&verdict);
        let is_alike = |verdict: &String| !kinds.is_disjoint(&kinds_of(verdict));
        // A run that does not end shows that soon.
        let soon = self.verdict_within(Trace::None, STEPS_OF_SMALLER).filter(is_alike).is_some();
        let steps_max = if soon { STEPS_OF_SMALLER } else { self.steps_max() };
        let least = shrink(self, |plan| plan.verdict_within(Trace::None, steps_max).as_ref().is_some_and(is_alike));
        let verdict = least.verdict().unwrap_or(verdict);
        Some((least, verdict))
    }
}

/// The smallest plan found that `fails` like the given one. Faults and features are dropped, and applications and
/// events made fewer, one after the other. That ends when nothing can be dropped any more or enough has been tried.
fn shrink(plan: &Plan, mut fails: impl FnMut(&Plan) -> bool) -> Plan {
    let mut smallest = plan.clone();
    let (mut tries, mut place) = (0, 0);
    loop {
        let all = smaller(&smallest);
        // What failed to fail before is tried again last.
        let mut places = (place..all.len()).chain(0..place.min(all.len()));
        let found = places.find(|&place| {
            tries += 1;
            tries <= TRIES_MAX && fails(&all[place])
        });
        let Some(found) = found else { return smallest };
        place = found;
        smallest.clone_from(&all[found]);
    }
}

/// In what ways a run failed: what was said, without numbers.
fn kinds_of(verdict: &str) -> BTreeSet<String> {
    let words =
        |line: &str| line.split(['{', '[']).next().unwrap_or_default().replace(|c: char| c.is_ascii_digit(), "");
    verdict.lines().map(words).collect()
}

/// Plans with one thing less, those with the most removed first.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        if format!("{changed:?}") != format!("{plan:?}") {
            all.push(changed);
        }
    };
    with(&|plan| plan.course.faults.clear());
    with(&|plan| plan.network.links = Links::perfect());
    with(&|plan| plan.readout.fragment_faults = Links::perfect());
    for index in 0..plan.course.faults.len() {
        with(&|plan| _ = plan.course.faults.remove(index));
    }
    with(&|plan| plan.course.late.clear());
    with(&|plan| sources(plan).for_each(|drawn| drawn.habits = Habits::default()));
    for index in 0..plan.sources().len() {
        with(&|plan| source(plan, index).habits = Habits::default());
        for habit in HABITS {
            with(&|plan| *habit(&mut source(plan, index).habits) = 0.0);
        }
        for switch in SWITCHES {
            with(&|plan| *switch(&mut source(plan, index).habits) = false);
        }
        with(&|plan| source(plan, index).habits.deaths.clear());
        with(&|plan| _ = source(plan, index).habits.deaths.pop());
        with(&|plan| source(plan, index).habits.late = Duration::ZERO);
        with(&|plan| source(plan, index).is_unordered = false);
        with(&|plan| source(plan, index).on_missing = OnMissing::Flag);
        with(&|plan| source(plan, index).latency = Duration::from_micros(1));
        with(&|plan| source(plan, index).cut.iter_mut().for_each(simplify));
        with(&|plan| source(plan, index).matched = None);
        with(&|plan| source(plan, index).matched.iter_mut().for_each(simplify_match));
    }
    with(&|plan| plan.readout.sending.iter_mut().for_each(|sending| sending.gaps = 0.0));
    with(&|plan| plan.readout.sending.iter_mut().for_each(|sending| sending.more = 0));
    with(&|plan| plan.again = None);
    with(&|plan| plan.course.joins = None);
    with(&|plan| plan.course.joins.iter_mut().for_each(|joins| joins.notice_max = Duration::ZERO));
    for index in 0..plan.course.joins.as_ref().map_or(0, |joins| joins.faults.len()) {
        with(&|plan| plan.course.joins.iter_mut().for_each(|joins| _ = joins.faults.remove(index)));
    }
    with(&|plan| plan.network.links.loss = 0.0);
    with(&|plan| plan.network.links.duplication = 0.0);
    with(&|plan| plan.network.links.delay = 0.0);
    with(&|plan| plan.network.links.corruption = 0.0);
    with(&|plan| plan.network.links.stray = 0.0);
    with(&|plan| plan.triggers.events = plan.triggers.events.div_ceil(2));
    with(&|plan| plan.triggers.events -= u64::from(plan.triggers.events > 1));
    with(&|plan| plan.building.port = None);
    with(&|plan| plan.level2.heavy_until = None);
    with(&|plan| plan.filter.stuck_after = None);
    with(&|plan| plan.recording.failures = 0.0);
    with(&|plan| plan.level2.slow_steering = 0.0);
    with(&|plan| plan.network.slow_channels = 0.0);
    with(&|plan| plan.network.connected = TypeSet::default());
    with(&|plan| plan.network.service = Duration::ZERO);
    with(&|plan| plan.level2.steering_cost = Duration::ZERO);
    with(&|plan| plan.building.timeout = Duration::from_millis(200));
    with(&|plan| plan.course.healed_after = None);
    with(&|plan| plan.triggers.profile.clear());
    with(&|plan| plan.triggers.crossings = None);
    // The outside alone does not end a run that has no outside. In a crate no source leads.
    if !plan.has_links_in_crates() {
        with(&|plan| (plan.triggers.credit, plan.triggers.outside, plan.triggers.limited) = (None, None, true));
    }
    with(&|plan| plan.triggers.outside = None);
    with(&|plan| plan.triggers.limited = true);
    with(&|plan| plan.level2.sink = None);
    with(&|plan| plan.level2.phased = None);
    with(&|plan| plan.building.push = None);
    with(&|plan| plan.level2.overrides = Overrides::default());
    with(&|plan| plan.fine = Fine::default());
    with(&|plan| plan.recording.streams.truncate(1));
    with(&|plan| plan.filter.has_tasks = false);
    with(&|plan| plan.course.duration = None);
    with(&|plan| plan.readout.robs_per_ros = 1);
    with(&|plan| with_others(plan, |plan| plan.readout.crates = None));
    for count in COUNTS {
        with(&|plan| fewer(plan, count));
    }
    all
}

fn sources(plan: &mut Plan) -> impl Iterator<Item = &mut Drawn> {
    plan.readout.sending.iter_mut().flat_map(|sending| &mut sending.each)
}

/// Chunks that follow one another without a gap, and slices that do not reach into one another.
fn simplify(cut: &mut Cut) {
    (cut.before, cut.after, cut.is_exclusive) = (Duration::ZERO, Duration::ZERO, false);
    (cut.chunking.lasts, cut.chunking.step) = (cut.chunking.every, None);
}

/// Instants at the times of triggers, by the clock of these.
fn simplify_match(matched: &mut Matched) {
    match matched {
        Matched::Count(count) => *count = ByCount { first: 0, telling: Telling::default(), has_clock: false },
        Matched::Time(time) => (time.telling, time.clock, time.most) = (Telling::default(), OwnClock::Common, 100),
    }
}

/// The source of this place among those of the links that there are.
fn source(plan: &mut Plan, index: usize) -> &mut Drawn {
    let Drawn { ros, rob, .. } = plan.sources()[index];
    sources(plan).find(|drawn| (drawn.ros, drawn.rob) == (ros, rob)).expect("it is one of all")
}

/// One application less of a role; what happens to the others happens to them still.
fn fewer(plan: &mut Plan, count: Count) {
    let within = plan.readout.crates.map_or(0, |crates| crates.count * crates.ros);
    let mut counts = plan.counts;
    let number = count(&mut counts);
    *number = number.saturating_sub(1).max(1);
    if counts.ros >= within {
        with_others(plan, |plan| plan.counts = counts);
    }
}

/// A change of the applications.
fn with_others(plan: &mut Plan, change: impl FnOnce(&mut Plan)) {
    let before = plan.applications();
    change(plan);
    let after = plan.applications();
    let moved = |node: NodeId| {
        let name = &before[usize::from(node.0) - 1].name;
        after.iter().find(|app| app.name == *name).map(|app| app.node)
    };
    plan.course.late = plan.course.late.iter().filter_map(|(node, time)| Some((moved(*node)?, *time))).collect();
    plan.course.faults =
        plan.course.faults.iter().filter_map(|(at, fault)| Some((*at, moved_fault(fault, &moved)?))).collect();
}

fn moved_fault(fault: &Fault, moved: &dyn Fn(NodeId) -> Option<NodeId>) -> Option<Fault> {
    Some(match fault {
        Fault::Kill(node) => Fault::Kill(moved(*node)?),
        Fault::Restart(node, after) => Fault::Restart(moved(*node)?, *after),
        Fault::Hang(node) => Fault::Hang(moved(*node)?),
        Fault::Force => Fault::Force,
        Fault::Pause(lasts) => Fault::Pause(*lasts),
        Fault::Watch(watched) => Fault::Watch(*watched),
        Fault::Split(nodes, lasts) => Fault::Split(nodes.iter().filter_map(|node| moved(*node)).collect(), *lasts),
        Fault::Slow { node, each, lasts } => Fault::Slow { node: moved(*node)?, each: *each, lasts: *lasts },
        Fault::ClockStep(node, step) => Fault::ClockStep(moved(*node)?, *step),
        Fault::ClockBack(node, step) => Fault::ClockBack(moved(*node)?, *step),
        Fault::FullDisk(node, lasts) => Fault::FullDisk(moved(*node)?, *lasts),
        Fault::Forged { from, lives_ahead, to, message } => {
            Fault::Forged { from: moved(*from)?, lives_ahead: *lives_ahead, to: moved(*to)?, message: message.clone() }
        }
    })
}

/// Far more than what the smallest plan takes that fails in a way that is to be understood.
const TRIES_MAX: u32 = 1_000;
/// More than any drawn run needs.
const STEPS_OF_SMALLER: u64 = 250_000;

type Habit = fn(&mut Habits) -> &mut f64;

const HABITS: [Habit; 9] = [
    |habits| &mut habits.swaps,
    |habits| &mut habits.doubles,
    |habits| &mut habits.damages,
    |habits| &mut habits.runs_wild,
    |habits| &mut habits.goes_back,
    |habits| &mut habits.leaves_out,
    |habits| &mut habits.invents,
    |habits| &mut habits.idles,
    |habits| &mut habits.hesitates,
];

type Switch = fn(&mut Habits) -> &mut bool;

const SWITCHES: [Switch; 5] = [
    |habits| &mut habits.is_silent,
    |habits| &mut habits.is_deaf,
    |habits| &mut habits.never_ends,
    |habits| &mut habits.begins_anew,
    |habits| &mut habits.misses,
];

type Count = fn(&mut Counts) -> &mut u16;

const COUNTS: [Count; 6] = [
    |counts| &mut counts.l2sv,
    |counts| &mut counts.l2pu,
    |counts| &mut counts.ros,
    |counts| &mut counts.sfi,
    |counts| &mut counts.efd,
    |counts| &mut counts.sfo,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_ends_whatever_fails() {
        let mut tries = 0;
        let shrunk = shrink(&Plan::draw(1, 3), |_| {
            tries += 1;
            true
        });
        assert!(shrunk.course.faults.is_empty() && shrunk.triggers.events == 1 && tries < 100, "{tries}");
        let mut flips = 0_u32;
        shrink(&Plan::plain(u64::MAX), |_| {
            flips += 1;
            flips.is_multiple_of(30)
        });
        assert!(flips <= TRIES_MAX, "{flips}");
    }

    #[test]
    fn without_an_outside_a_smaller_plan_has_a_limit_of_its_own() {
        let plan = Plan::plain(10).with(|plan| {
            plan.triggers.credit = Some(2);
            plan.triggers.limited = false;
        });
        assert!(smaller(&plan).iter().all(|plan| plan.triggers.limited || plan.triggers.credit.is_some()));
    }

    /// Where one bug hides behind another the smallest plan still shows the one that was found.
    #[test]
    fn a_smaller_plan_fails_in_the_same_way() {
        let one = kinds_of("residual: 3 against 0\nEventId(7) is recorded twice");
        assert!(!one.is_disjoint(&kinds_of("EventId(12) is recorded twice")));
        assert!(one.is_disjoint(&kinds_of("the run ends within 1000000 steps")));
        assert_eq!(kinds_of("lost: Accounting { level1: 3 }"), kinds_of("lost: Accounting { level1: 4, b: 1 }"));
        assert!(Plan::plain(5).least().is_none());
    }
}
