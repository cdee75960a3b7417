//! Whom the partition waits for now.

use std::time::Duration;

use agents::Child;
use base::ids::{NodeId, Role};

use super::stamping::STAMPS_END_WITHIN;
use super::{Conductor, EXIT_TIMEOUT, Phase};
use crate::human::time;
use crate::waiting::Waiting;

impl Conductor {
    /// Tells those who look, as long as it waits for somebody.
    pub(super) fn tell_whom_it_waits_for(&mut self) {
        let waiting = self.waiting();
        if let (Some(waiting), Some(probe)) = (&waiting, &mut self.probe.0) {
            probe.waits(waiting);
        }
        self.control.waits(waiting);
    }

    fn waiting(&self) -> Option<Waiting> {
        let processes = &self.assembly.partition.processes;
        let at_most = |limit: Duration, key: &str| format!("at most {}{key}", time(limit.as_secs_f64()));
        let starting = || at_most(processes.start_timeout.duration(), " (processes.start_timeout)");
        match &self.phase {
            Phase::Booting { .. } => self.wait("the applications start", self.missing(), starting()),
            Phase::Starting { .. } => self.wait("a run begins", self.missing(), starting()),
            Phase::TakingOver { .. } => {
                let leases = at_most(
                    processes.start_timeout.duration(),
                    ", and leases (processes.start_timeout, processes.lease)",
                );
                self.wait("the run is taken over", self.missing(), leases)
            }
            Phase::Running => self.draining(),
            Phase::Stamping { .. } => {
                let nodes = self.stamping_nodes();
                self.wait("files of time stamps end", self.in_words(nodes), at_most(STAMPS_END_WITHIN, ""))
            }
            Phase::Ending { goes_on: true, .. } => {
                let is_awaited = |child: &&Child| !child.has_ended() && !self.registrar.has_joined(child.node());
                let nodes = self.children.iter().filter(is_awaited).map(Child::node).collect();
                self.wait("the applications leave the run", self.in_words(nodes), at_most(EXIT_TIMEOUT, ""))
            }
            Phase::Ending { goes_on: false, .. } => {
                let living = self.children.iter().filter(|child| !child.has_ended());
                let nodes = living.map(Child::node).collect();
                self.wait("the applications end", self.in_words(nodes), at_most(EXIT_TIMEOUT, ""))
            }
            Phase::Idle | Phase::Over | Phase::Failed(_) => None,
        }
    }

    fn wait(&self, what: &'static str, all: Vec<String>, limit: String) -> Option<Waiting> {
        Waiting::new(what, all, self.assembly.applications.len(), limit)
    }

    fn draining(&self) -> Option<Waiting> {
        let (nodes, of) = self.controller.awaited();
        let stop_timeout = time(self.assembly.partition.run.stop_timeout.duration().as_secs_f64());
        let what = self.controller.draining().map_or("the last counts are collected", drains);
        let progress = if self.controller.is_forced() { "" } else { " without progress" };
        let limit = format!("at most {stop_timeout}{progress} (run.stop_timeout)");
        Waiting::new(what, self.in_words(nodes), of, limit)
    }

    /// Applications that are not there yet, and agents that nobody could call again.
    pub(super) fn missing(&self) -> Vec<String> {
        let hidden = self.children.unfindable();
        let agent = |host: usize| format!("the agent of host {} (its address is missing)", self.host(host));
        let mut missing = self.in_words(self.registrar.missing().collect());
        missing.extend(hidden.into_iter().map(agent));
        missing
    }

    fn in_words(&self, nodes: Vec<NodeId>) -> Vec<String> {
        let words = |node: NodeId| match self.assembly.host_of(node) {
            Some(host) => format!("{} (host {})", self.name(node), self.host(host)),
            None => self.name(node),
        };
        nodes.into_iter().map(words).collect()
    }

    pub(super) fn host(&self, host: usize) -> &str {
        &self.assembly.partition.host[host].name
    }
}

/// What goes on while a stage drains.
const fn drains(role: Role) -> &'static str {
    match role {
        Role::Level1 => "the run stops, level 1 drains",
        Role::L2sv => "the run stops, L2SVs drain",
        Role::L2pu => "the run stops, L2PUs drain",
        Role::Pros => "the run stops, the pROS drains",
        Role::Ros => "the run stops, ROSs drain",
        Role::Trg => "the run stops, TRGs drain",
        Role::Ebif => "the run stops, EBIFs drain",
        Role::Dfm => "the run stops, the DFM drains",
        Role::Sfi => "the run stops, SFIs drain",
        Role::Efd => "the run stops, EFDs drain",
        Role::Sfo => "the run stops, SFOs drain",
        Role::RunControl => "the run stops",
    }
}
