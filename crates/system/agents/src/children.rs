//! The processes of a partition, one for each application that is not in run control's own.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use base::ids::NodeId;
use control::states::State;
use membership::agents::words::fingerprint;
use membership::challenge::Member;
use metering::cpu::cpu_seconds_of;
use transport::clock;

use crate::farm::{Estate, Farm, Start};
use crate::hub::{Fate, Hub};
use crate::introduction::Introduction;
use crate::process::{Line, describe, kill_group, start};

/// The processes of a partition, here or on other hosts. Dropping them ends those that still live.
pub struct Children {
    entries: Vec<Child>,
    /// Further options of their command line.
    options: Vec<String>,
    farm: Farm,
    /// None before the first of them starts on another host.
    hub: Option<Hub>,
    /// Deaths that were seen while others were waited for.
    seen: Vec<(NodeId, Fate)>,
    /// What tells the secret that agents were launched with.
    knows: [u8; 16],
}

/// What a former life of run control has left.
pub struct Left {
    /// Its agents.
    pub estate: Estate,
    /// Applications that may live, with their hosts.
    pub applications: BTreeMap<NodeId, usize>,
}

/// One of them.
pub struct Child {
    node: NodeId,
    place: Place,
}

enum Place {
    Here { process: std::process::Child, ended: Option<ExitStatus> },
    There { has_ended: bool },
}

impl Children {
    /// None yet; all will have these `options`.
    pub fn new(options: Vec<String>, farm: Farm) -> Self {
        Self { entries: Vec::new(), options, farm, hub: None, seen: Vec::new(), knows: [0; 16] }
    }

    /// Ends all of them, and has none any more.
    pub fn renew(&mut self) {
        *self = Self::new(core::mem::take(&mut self.options), core::mem::take(&mut self.farm));
    }

    /// Starts the process of an application that has none, or whose process has ended.
    ///
    /// # Errors
    /// It cannot be started. On another host that shows later: then it [has ended](Children::reap).
    pub fn start(&mut self, wanted: Start<'_>) -> io::Result<()> {
        let node = wanted.introduction.node;
        let place = match wanted.host {
            None => {
                let Start { program, name, join, introduction, ports, .. } = &wanted;
                let neighbours = self.entries.len();
                let line = Line { name, join, at: None, ports, options: &self.options, neighbours };
                Place::Here { process: start(program, &line, introduction)?, ended: None }
            }
            Some(host) => {
                let options = self.options.clone();
                self.hub(&wanted.program, wanted.introduction)?.start(host, wanted, options);
                Place::There { has_ended: false }
            }
        };
        self.entries.retain(|child| child.node != node);
        self.entries.push(Child { node, place });
        Ok(())
    }

    /// Takes over those that a former life of run control has started on other hosts, or its agents alone where nothing is to live. The introduction is the one that their agents had.
    /// Each is [found](Children::found) to live, or [has ended](Children::reap).
    ///
    /// # Errors
    /// There is no port or thread for it.
    pub fn take_over(&mut self, program: &Path, introduction: &Introduction, left: Left) -> io::Result<()> {
        let Left { estate: Estate { agents, .. }, applications } = left;
        let nodes: Vec<NodeId> = applications.keys().copied().collect();
        let hub = Hub::taking_over(self.farm.clone(), program, introduction, (agents, applications))?;
        (self.hub, self.knows) = (Some(hub), fingerprint(&introduction.secret));
        let there = |node| Child { node, place: Place::There { has_ended: false } };
        self.entries.extend(nodes.into_iter().map(there));
        Ok(())
    }

    /// Those of a former life of run control that live, since the last call, and for how long their agents were without it.
    pub fn found(&mut self) -> Vec<(Member, Duration)> {
        self.hub.as_ref().map(Hub::found).unwrap_or_default()
    }

    /// What there is to say to people of agents since the last call, and what has led to that, the nearest cause first.
    pub fn said(&self) -> Vec<(String, Vec<String>)> {
        self.hub.as_ref().map(Hub::said).unwrap_or_default()
    }

    /// What the next life of run control has to know of agents.
    pub fn estate(&self) -> Estate {
        Estate { secret: self.knows, agents: self.hub.as_ref().map(Hub::agents).unwrap_or_default() }
    }

    fn hub(&mut self, program: &Path, introduction: &Introduction) -> io::Result<&Hub> {
        if self.hub.is_none() {
            self.knows = fingerprint(&introduction.secret);
            self.hub = Some(Hub::open(self.farm.clone(), program, introduction)?);
        }
        Ok(self.hub.as_ref().expect("it was just opened"))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Child> {
        self.entries.iter()
    }

    /// What has become of them since the last call.
    pub fn reap(&mut self) -> Vec<(NodeId, Fate)> {
        let mut all = core::mem::take(&mut self.seen);
        for child in &mut self.entries {
            if let Place::Here { process, ended: ended @ None } = &mut child.place
                && let Ok(Some(status)) = process.try_wait()
            {
                *ended = Some(status);
                all.push((child.node, Fate::Ended(describe(status))));
            }
        }
        all.extend(self.reap_elsewhere(Duration::ZERO));
        all
    }

    /// Whether all have ended, as far as can be known: see [`Children::are_known`].
    pub fn all_ended(&self) -> bool {
        self.entries.iter().all(Child::has_ended) && self.are_known()
    }

    /// Whether it is known of each whether it lives. It is not of those on a host that was lost, until they have ended by themselves
    /// at the latest.
    pub fn are_known(&self) -> bool {
        self.hub.as_ref().is_none_or(|hub| !hub.has_unknown())
    }

    /// The hosts whose agents are there and have not said yet where the next life of run control could call them.
    pub fn unfindable(&self) -> Vec<usize> {
        self.hub.as_ref().map(Hub::unfindable).unwrap_or_default()
    }

    /// Ends some at once, and waits until they have ended; says how each did.
    pub fn end(&mut self, nodes: &[NodeId]) -> Vec<(NodeId, String)> {
        // All of them before any is waited for: none sees another end, and complains.
        nodes.iter().for_each(|node| self.kill(*node));
        let mut ended = Vec::new();
        for child in self.entries.iter_mut().filter(|child| nodes.contains(&child.node)) {
            if let Place::Here { process, ended: status @ None } = &mut child.place {
                *status = process.wait().ok();
                ended.extend(status.map(|status| (child.node, describe(status))));
            }
        }
        let is_awaited = |child: &Child| nodes.contains(&child.node) && !child.has_ended();
        let deadline = clock::now() + PATIENCE;
        while self.entries.iter().any(is_awaited) && clock::now() < deadline {
            for (node, fate) in self.reap_elsewhere(WAIT) {
                match fate {
                    Fate::Ended(how) | Fate::Stopped(how) if nodes.contains(&node) => ended.push((node, how)),
                    fate => self.seen.push((node, fate)),
                }
            }
        }
        ended
    }

    /// Ends one at once, if it lives.
    pub fn kill(&mut self, node: NodeId) {
        let Some(child) = self.entries.iter_mut().find(|child| child.node == node && !child.has_ended()) else {
            return;
        };
        match (&mut child.place, &self.hub) {
            (Place::Here { process, .. }, _) => kill_group(process),
            (Place::There { .. }, Some(hub)) => hub.kill(node),
            (Place::There { .. }, None) => {}
        }
    }

    /// One that somebody at its host wants back does not start, for this reason.
    pub fn refuse(&self, node: NodeId, why: &str) {
        self.hub.iter().for_each(|hub| hub.refuse(node, why));
    }

    /// Those on other hosts are of a partition in this state; their agents say so there.
    pub fn set_state(&self, state: State) {
        self.hub.iter().for_each(|hub| hub.set_state(state));
    }

    /// Processor time of each, as far as it is known: of those here while they live, of others as their agents told last.
    pub fn cpu(&self) -> BTreeMap<NodeId, Duration> {
        let mut cpu = self.hub.as_ref().map(Hub::cpu).unwrap_or_default();
        for child in self.entries.iter().filter(|child| !child.has_ended()) {
            let s = child.process().and_then(cpu_seconds_of);
            s.into_iter().for_each(|s| _ = cpu.insert(child.node, Duration::from_secs_f64(s)));
        }
        cpu
    }

    /// The same of those on other hosts.
    fn reap_elsewhere(&mut self, wait: Duration) -> Vec<(NodeId, Fate)> {
        let Some(hub) = &self.hub else { return Vec::new() };
        let news = hub.news(wait);
        for (node, _) in news.iter().filter(|(_, fate)| !matches!(fate, Fate::Wanted | Fate::Was(_))) {
            for child in self.entries.iter_mut().filter(|child| child.node == *node) {
                if let Place::There { has_ended } = &mut child.place {
                    *has_ended = true;
                }
            }
        }
        news
    }
}

impl Child {
    /// The application.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Whether its process has ended.
    pub fn has_ended(&self) -> bool {
        match &self.place {
            Place::Here { ended, .. } => ended.is_some(),
            Place::There { has_ended } => *has_ended,
        }
    }

    /// The id of its process, if that is here.
    pub fn process(&self) -> Option<u32> {
        match &self.place {
            Place::Here { process, .. } => Some(process.id()),
            Place::There { .. } => None,
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let all: Vec<NodeId> = self.entries.iter().map(|child| child.node).collect();
        self.end(&all);
    }
}

/// Between two looks at the clock.
const WAIT: Duration = Duration::from_millis(100);
/// Agents answer at once, or are lost soon. An agent that lives and cannot end a process is given up.
const PATIENCE: Duration = Duration::from_secs(20);
