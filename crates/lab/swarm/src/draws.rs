//! A plan drawn from a seed: what its first edition has. [`editions`](super::editions) adds what later ones have.

use std::time::Duration;

use base::ids::Role;
use base::random::Random;
use control::controller::Application;
use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::ClearAfter;
use dataflow::building::request_credits::CreditPolicy;
use dataflow::building::sfi::RequestOrder;
use dataflow::filter::policy::FilterPolicy;
use dataflow::level1::dead_time::{DeadTimeParameters, LeakyBucket};
use dataflow::level1::pace::Spacing;
use dataflow::level2::l2sv::L2puAssignment;
use dataflow::level2::overrides::{Override, Overrides};
use dataflow::level2::steering::Strategy;
use dataflow::readout::pusher::Destination;
use dataflow::recording::sfo::Durable;

use super::plan::{Counts, EDITION, EDITION_OF_LINKS, InputKind, LEVELS, Plan, Push};
use simulator::world::{Fault, Links};

impl Plan {
    /// Everything drawn from the seed, the level of faults included.
    pub fn of_seed(seed: u64) -> Self {
        Self::draw(seed, Random::new(seed ^ 0x6c65_7665).below(u64::from(LEVELS)) as u32)
    }

    /// Everything drawn from the seed. `level` of faults: 0 none, 1 the network's, 2 restarts, 3 deaths and forced
    /// ends, 4 one crash that loses nothing, 5 several related crashes.
    pub fn draw(seed: u64, level: u32) -> Self {
        Self::draw_in(EDITION, seed, level)
    }

    /// The same in an edition of the draws, up to [`EDITION`]. Each draws more than the one before, and a test that
    /// names a seed keeps its plan by naming the edition, too.
    pub fn draw_in(edition: u32, seed: u64, level: u32) -> Self {
        let mut plan = Self::draw_first(edition, seed, level);
        plan.draw_more(edition, level);
        plan
    }

    fn draw_first(edition: u32, seed: u64, level: u32) -> Self {
        let mut random = Random::new(seed);
        let r = &mut random;
        let pick = |r: &mut Random, low: u64, high: u64| low + r.below(high - low + 1);
        let input = match r.below(6) {
            0 => InputKind::Level1,
            1 if edition >= EDITION_OF_LINKS => InputKind::Level1,
            1 => InputKind::SelfTrigger,
            _ => InputKind::Level2,
        };
        let counts = Counts {
            l2sv: pick(r, 1, 2) as u16,
            l2pu: pick(r, 1, 3) as u16,
            ros: pick(r, 1, 3) as u16,
            sfi: pick(r, 1, 3) as u16,
            efd: pick(r, 0, 2) as u16,
            sfo: pick(r, 1, 2) as u16,
        };
        let accept = [0.2, 0.5, 1.0][r.below(3) as usize];
        let strategy = match r.below(3) {
            0 => Strategy::None { accept },
            1 => Strategy::Generate { robs_per_step: 2, accept },
            _ => Strategy::TwoStep { robs_per_step: 2, step_accept: accept },
        };
        let policy = match r.below(3) {
            0 => FilterPolicy::AcceptAll,
            1 => FilterPolicy::Prescale { factor: 3 },
            _ => FilterPolicy::Random { accept: 0.5, seed },
        };
        let spacing = match r.below(3) {
            0 => Spacing::Unlimited,
            1 => Spacing::Fixed(Duration::from_micros(200)),
            _ => Spacing::Poisson(Duration::from_micros(300)),
        };
        let at_once = pick(r, 1, 4) as usize;
        let recorded = counts.efd > 0 && r.chance(0.5);
        let in_order = counts.sfi == 1 && counts.efd == 1 && counts.sfo == 1 && r.chance(0.5);
        let has_tasks = !in_order && r.chance(0.5);
        let lossy = level >= 1;
        let mut plan = Self { seed, input, counts, ..Self::plain(0) };
        // The order of these lines is that of the draws: another one gives each seed another plan.
        plan.run = 1 + r.below(100) as u32;
        plan.readout.robs_per_ros = pick(r, 1, 3) as u16;
        // Without level 1 nobody holds back what the pages cannot take.
        plan.readout.pages = if input == InputKind::SelfTrigger { 200 } else { pick(r, 6, 200) as usize };
        plan.triggers.events = pick(r, 5, 40);
        plan.triggers.first = [0, 1 << 24, 0xffff_ffff - 10, 0x0100_0000 - 5][r.below(4) as usize];
        plan.triggers.spacing = spacing;
        plan.triggers.in_flight = pick(r, 2, 16);
        plan.level2.events_in_system = pick(r, 4, 40) as usize;
        plan.level2.forced_limit = [0.0, 0.01, 0.1, 1.0][r.below(4) as usize];
        plan.level2.strategy = strategy;
        plan.level2.workers = pick(r, 1, 4) as usize;
        plan.level2.assignment =
            [L2puAssignment::RoundRobin, L2puAssignment::Random, L2puAssignment::LeastLoaded][r.below(3) as usize];
        plan.building.assignment = [SfiAssignment::RoundRobin, SfiAssignment::LeastLoaded][r.below(2) as usize];
        plan.building.at_once = at_once;
        plan.building.events = at_once + r.below(5) as usize;
        plan.building.requests = pick(r, 1, 10) as usize;
        plan.building.request_timeout = Duration::from_millis(pick(r, 5, 30));
        plan.level2.timeout = Duration::from_millis(pick(r, 50, 500));
        plan.building.clear_after = if recorded { ClearAfter::Recorded } else { ClearAfter::Built };
        plan.building.clear_group = pick(r, 1, 12) as usize;
        plan.building.queue = pick(r, 1, 20) as usize;
        plan.filter.policy = if in_order { FilterPolicy::AcceptAll } else { policy };
        plan.filter.has_tasks = has_tasks;
        plan.filter.slots = pick(r, 1, 6) as usize;
        plan.recording.durable =
            if r.chance(0.5) { Durable::Write } else { Durable::Sync { age: Duration::from_millis(5), events: 4 } };
        plan.recording.in_order = in_order;
        plan.recording.disks_heal = false;
        plan.network.links = if lossy { faulty(r) } else { Links::perfect() };
        plan.readout.fragment_faults = if lossy && r.chance(0.5) { faulty(r) } else { Links::perfect() };
        plan.recording.failures = if lossy && !in_order && r.chance(0.3) { 0.1 } else { 0.0 };
        plan.level2.slow_steering = if lossy && r.chance(0.3) { 0.1 } else { 0.0 };
        plan.network.slow_channels = if r.chance(0.3) { 0.2 } else { 0.0 };
        plan.course.duration = r.chance(0.2).then(|| Duration::from_millis(20));
        plan.draw_trigger(&mut Random::new(seed ^ 0x7216_6e72));
        plan.draw_transfer(&mut Random::new(seed ^ 0x0070_7573_6821));
        if plan.has_level2() {
            // The order of decisions is not that of events.
            plan.recording.in_order = false;
        }
        plan.draw_lives(r, level);
        if level >= 1 {
            plan.draw_trouble(&mut Random::new(seed ^ 0x0074_726f_7562));
        }
        if level == 4 {
            plan.draw_crash(&mut Random::new(seed ^ 0x6372_6173_6821));
        }
        if level == 5 {
            plan.draw_crashes(&mut Random::new(seed ^ 0x7365_7665_7261));
        }
        plan
    }

    /// Of what level 1 and level 2 can do besides the plain.
    fn draw_trigger(&mut self, r: &mut Random) {
        if self.input == InputKind::SelfTrigger {
            return;
        }
        if self.input == InputKind::Level2 && r.chance(0.2) {
            self.input = InputKind::Level2Only;
            self.counts.l2sv = 1;
        }
        if r.chance(0.2) {
            self.triggers.credit = Some(1 + r.below(5) as usize);
            self.triggers.spacing = Spacing::Unlimited;
            self.triggers.limited = r.chance(0.5);
        } else if self.triggers.spacing != Spacing::Unlimited && r.chance(0.2) {
            self.triggers.profile = vec![(Duration::from_millis(1), Spacing::Poisson(Duration::from_micros(100)))];
        }
        if r.chance(0.3) {
            let bucket = |r: &mut Random| LeakyBucket { size: 1 + r.below(4), drain: 1 + r.below(20_000) };
            let complex = (0..r.below(3)).map(|_| bucket(r)).collect();
            self.triggers.crossings = Some(DeadTimeParameters { simple: r.below(10_000), complex });
        }
        if r.chance(0.1) {
            self.level2.sink = Some(r.unit());
        }
        if r.chance(0.3) {
            let all =
                [Override::None, Override::None, Override::ForceAccept, Override::ForceReject][r.below(4) as usize];
            self.level2.overrides =
                Overrides { all, force_accept_items: r.below(32) as u32, veto_items: r.below(32) as u32 };
        }
        if self.input == InputKind::Level2 && r.chance(0.4) {
            self.level2.phased = Some(r.below(6) as usize);
        }
        if r.chance(0.2) {
            self.level2.steering_cost = Duration::from_micros(r.below(500));
        }
    }

    /// Of how the data come to the builders.
    fn draw_transfer(&mut self, r: &mut Random) {
        self.building.credits = [CreditPolicy::Fixed, CreditPolicy::Adaptive][r.below(2) as usize];
        self.building.request_order = [RequestOrder::Random, RequestOrder::Rotating][r.below(2) as usize];
        if self.level2.phased.is_some() || r.chance(0.4) {
            return;
        }
        let by_table = self.input == InputKind::Level1 && r.chance(0.7);
        self.building.push = Some(Push {
            destination: if by_table { Destination::Table } else { Destination::Assigned },
            window_bytes: [1, 500, 2_000, 1 << 20][r.below(4) as usize],
            bytes_per_s: r.chance(0.3).then(|| [50_000, 1_000_000][r.below(2) as usize]),
            burst_bytes: r.below(2) * 1_000,
            group: [1, 1, 2, 5][r.below(4) as usize],
            ahead: [0, 1, 4, 20][r.below(4) as usize],
        });
    }

    fn draw_lives(&mut self, r: &mut Random, level: u32) {
        let apps = self.applications();
        if level >= 1 && r.chance(0.3) {
            let app = &apps[r.below(apps.len() as u64) as usize];
            self.course.late.push((app.node, Duration::from_millis(1 + r.below(20))));
        }
        if level == 2 {
            let may_restart = |app: &&Application| app.role != Role::Level1;
            let candidates: Vec<&Application> = apps.iter().filter(may_restart).collect();
            for _ in 0..1 + r.below(2) {
                let node = candidates[r.below(candidates.len() as u64) as usize].node;
                if self.course.late.iter().any(|(late, _)| *late == node) || self.is_struck(node) {
                    continue;
                }
                let after = Duration::from_millis(1 + r.below(10));
                self.course.faults.push((Duration::from_micros(r.below(10_000)), Fault::Restart(node, after)));
            }
        }
        if level == 2 {
            self.draw_second_lives(&mut Random::new(self.seed ^ 0x7365_636f_6e64));
        }
        if level == 3 {
            let node = apps[r.below(apps.len() as u64) as usize].node;
            let at = Duration::from_micros(r.below(15_000));
            self.course.faults.push((at, if r.chance(0.8) { Fault::Kill(node) } else { Fault::Force }));
            self.course.late.retain(|(late, _)| *late != node);
        }
    }

    /// Of what hosts and networks do besides losing messages.
    fn draw_trouble(&mut self, r: &mut Random) {
        let apps = self.applications();
        let any = |r: &mut Random| apps[r.below(apps.len() as u64) as usize].node;
        let millis = |r: &mut Random, most: u64| Duration::from_millis(1 + r.below(most));
        if r.chance(0.3) {
            self.network.links.corruption = 0.1 * r.unit();
            self.network.links.stray = 0.1 * r.unit();
        }
        if r.chance(0.2) {
            self.network.service = Duration::from_nanos(r.below(20_000));
        }
        let mut strike = |r: &mut Random, chance: f64, fault: &dyn Fn(&mut Random) -> Fault| {
            if r.chance(chance) {
                let at = Duration::from_micros(r.below(15_000));
                self.course.faults.push((at, fault(r)));
            }
        };
        strike(r, 0.15, &|r| {
            let side = apps.iter().map(|app| app.node).filter(|_| r.chance(0.4)).collect();
            Fault::Split(side, millis(r, 40))
        });
        strike(r, 0.15, &|r| Fault::Slow {
            node: any(r),
            each: Duration::from_micros(r.below(2_000)),
            lasts: millis(r, 50),
        });
        strike(r, 0.15, &|r| Fault::ClockStep(any(r), millis(r, 2_000)));
        if self.counts.efd > 0 && !self.recording.in_order {
            strike(r, 0.15, &|r| Fault::FullDisk(any(r), millis(r, 100)));
        }
        if r.chance(0.3) {
            self.course.healed_after = Some(millis(r, 100));
        }
    }

    /// Supervisors that return may die again, while they learn what they had in hand or later.
    fn draw_second_lives(&mut self, r: &mut Random) {
        let supervisors = self.of(Role::L2sv);
        for (at, fault) in self.course.faults.clone() {
            if let Fault::Restart(node, after) = fault
                && supervisors.contains(&node)
                && r.chance(0.5)
            {
                let latest_us = if r.chance(0.5) { 500 } else { 5_000 };
                let again = at + after + Duration::from_micros(10 + r.below(latest_us));
                self.course.faults.push((again, Fault::Restart(node, Duration::from_micros(200 + r.below(5_000)))));
            }
        }
    }
}

fn faulty(r: &mut Random) -> Links {
    let mut some = |most: f64| if r.chance(0.6) { r.unit() * most } else { 0.0 };
    Links { loss: some(0.3), duplication: some(0.2), delay: some(0.2), ..Links::perfect() }
}
