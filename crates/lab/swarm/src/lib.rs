//! Partitions and faults drawn from seeds, and the checks of every run.
//!
//! A [`Plan`] is drawn from a seed and a level of faults; [`Plan::run`] runs it in `simulator::world` and checks it.
#![forbid(unsafe_code)]

mod books;
mod check;
mod crash;
mod crates;
mod drawn;
mod draws;
mod editions;
mod expected;
mod lawful;
mod link_books;
mod match_books;
mod matched;
mod matches;
mod outside;
mod parts;
mod plan;
mod processors;
mod shaping;
mod shrink;
mod slice_books;
mod sliced;
mod slices;
mod sources;
mod tables;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use base::ids::RunNumber;
use simulator::world::{Costs, Hosts, Outcomes, Processes, Setup, Trace, Wire, World};

use check::Check;
use outside::{Seen, Surroundings};

/// What did not hold, in words.
type Failures = Vec<String>;

pub use plan::{
    Building, Counts, Crates, EDITION, EDITION_OF_CRATE_LINKS, EDITION_OF_CRATES, EDITION_OF_JOINS, EDITION_OF_LINKS,
    EDITION_OF_MATCHES, EDITION_OF_MODULES, EDITION_OF_PROCESSORS, EDITION_OF_RUNS, EDITION_OF_SLICES,
    EDITION_OF_WATCHERS, EDITION_OF_WITHHELD, Filter, Fine, InputKind, LEVELS, Level2, Network, Plan, Push, Readout,
    Recording, Triggers,
};

pub use drawn::{ByCount, ByTime, Cut, Drawn, Matched, Matching, OwnClock, Sending, Slicing};

/// A run that has ended, and what did not hold of it.
pub struct Run {
    /// What is left of it.
    pub outcomes: Outcomes,
    /// What did not hold, in words; empty for a good run.
    pub failures: Vec<String>,
}

impl Plan {
    /// Runs the plan to its end.
    ///
    /// # Panics
    /// If a component finds its state inconsistent, or the run does not end.
    pub fn run(&self) -> Run {
        self.run_traced(Trace::None)
    }

    /// The same, with every message noted.
    ///
    /// # Panics
    /// If a component finds its state inconsistent, or the run does not end.
    pub fn run_traced(&self, trace: Trace) -> Run {
        self.run_within(trace, self.steps_max())
    }

    fn run_within(&self, trace: Trace, steps_max: u64) -> Run {
        let (world, seen) = self.world(self.seed, trace, steps_max);
        let (outcomes, processes) = world.run_and_keep(self.again == Some(true));
        let seen = seen.take();
        let twin = self.twin().map(|twin| {
            let (world, seen) = twin.world(self.seed, Trace::None, steps_max);
            (world.run(), seen.take())
        });
        let doubtful = |run: &Outcomes| run.account.level2_forced + run.account.level2_incomplete;
        let is_whole = |run: &Outcomes| run.account.level1 == self.triggers.events && doubtful(run) == 0;
        let twin = twin.filter(|(twin, _)| is_whole(twin) && is_whole(&outcomes)).map(|(_, seen)| seen);
        let mut failures =
            Check { plan: self, outcomes: &outcomes, seen: &seen, twin: twin.as_ref(), follows: false }.failures();
        if let Some(processes) = processes.filter(|_| self.again.is_some()) {
            failures.extend(self.next().failures_in(processes, steps_max));
        }
        Run { outcomes, failures }
    }

    /// The run that follows in the same processes.
    fn next(&self) -> Self {
        self.clone().with(|plan| {
            plan.run += 1;
            plan.again = None;
        })
    }

    fn failures_in(&self, processes: Processes, steps_max: u64) -> Failures {
        let (world, seen) = self.world(!self.seed, Trace::None, steps_max);
        let outcomes = world.in_processes_of(processes).run();
        let failures =
            Check { plan: self, outcomes: &outcomes, seen: &seen.take(), twin: None, follows: true }.failures();
        failures.into_iter().map(|failure| format!("in the next run: {failure}")).collect()
    }

    /// With draws of its own from a seed.
    fn world(&self, seed: u64, trace: Trace, steps_max: u64) -> (World, Rc<RefCell<Seen>>) {
        let seen = Rc::new(RefCell::new(Seen::default()));
        let setup = Setup { seed, steps_max, ..self.setup(Rc::clone(&seen)) };
        (World::new(setup).bounded(self.assembly().bounds()).traced(trace), seen)
    }

    /// The same without any fault, where the files have to be the same.
    fn twin(&self) -> Option<Self> {
        let twin = || {
            self.clone().with(|plan| {
                plan.course.faults.clear();
                plan.course.late.clear();
                (plan.course.joins, plan.again) = (None, None);
            })
        };
        // Which slices are left out is a matter of moments.
        (self.keeps_all() && self.keeps_data() && self.slicing().is_none()).then(twin)
    }

    /// Runs the plan to its end and checks it.
    ///
    /// # Panics
    /// If anything does not hold.
    pub fn run_checked(&self) -> Outcomes {
        let Run { outcomes, failures } = self.run();
        assert!(failures.is_empty(), "{}\n{self:#?}", failures.join("\n"));
        outcomes
    }

    /// What is wrong with a run of the plan, in words; a component that panics is wrong, too.
    pub fn verdict(&self) -> Option<String> {
        self.verdict_traced(Trace::None)
    }

    /// The same, with every message noted.
    pub fn verdict_traced(&self, trace: Trace) -> Option<String> {
        self.verdict_within(trace, self.steps_max())
    }

    /// The same; a run that takes more than so many steps is wrong.
    fn verdict_within(&self, trace: Trace, steps_max: u64) -> Option<String> {
        match catch_unwind(AssertUnwindSafe(|| self.run_within(trace, steps_max).failures)) {
            Ok(failures) => (!failures.is_empty()).then(|| failures.join("\n")),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                Some(text.unwrap_or_else(|| "a panic without words".to_owned()))
            }
        }
    }

    fn setup(&self, seen: Rc<RefCell<Seen>>) -> Setup {
        let (plan, assembly) = (self.clone(), self.assembly());
        let (applications, readout) = (assembly.applications.clone(), assembly.readout());
        Setup {
            seed: self.seed,
            run: RunNumber(self.run),
            components: Box::new(move |node, incarnation| {
                plan.parameters(&assembly, node, incarnation.0 > 0).component(plan.triggers())
            }),
            outside: Box::new(Surroundings::new(self, seen)),
            detectors: self.detectors(),
            hosts: Hosts::separate(applications.len()),
            costs: Costs::uniform(self.network.service),
            wire: Wire::Links {
                links: self.network.links,
                slow: self.network.slow_channels,
                port: self.building.port,
                connected: self.network.connected,
            },
            handover: self.network.links.latency,
            driver: None,
            one_by_one: true,
            fragment_faults: self.readout.fragment_faults,
            course: self.course.clone(),
            time_to_connect: self.time_to_connect(),
            planted: self.planted,
            checks: true,
            withheld: self.demanded_robs(),
            steps_max: self.steps_max(),
            applications,
            readout,
        }
    }
}
