//! What is left when a run has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::ids::{EventId, NodeId, Role};
use base::time::Time;
use control::accounting::{Accounting, Books};
use control::controller::{Application, Ending};
use dataflow::message::{BusyCause, FileRecord};
use dataflow::report::{Counters as _, DfmCounters, Network};

use super::World;
use super::detectors::Doings;
use super::driver::Drivers;
use super::monitor::{Decided, Life, Pushed};
use super::setup::{Fault, Planted, Setup};
use super::wire::Wire;
use crate::network::Counters;

/// What became of messages between applications besides that they came, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Lost because a port of a switch had no room.
    pub overflows: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Refused as damaged.
    pub damaged: u64,
    /// Lost because the network was split.
    pub cut_off: u64,
    /// Lost with the connections of one that died.
    pub reset: u64,
    /// Held back on their connections while the network was split.
    pub held_back: u64,
    /// That came again as of another life of their sender.
    pub stale: u64,
    /// That came again as of another run.
    pub wrong_run: u64,
}

/// A fault that has struck.
#[derive(Clone, Debug, PartialEq)]
pub struct Struck {
    /// When.
    pub at: Time,
    /// The fault.
    pub fault: Fault,
    /// When what had died was back.
    pub back: Option<Time>,
}

/// What is left when a run has ended.
pub struct Outcomes {
    /// When triggers were first allowed.
    pub began: Time,
    /// When the last report was in.
    pub ended: Time,
    /// Level-2 decisions; kept with checks only.
    pub level2: Vec<Decided>,
    /// What was pushed; kept with checks only.
    pub pushed: Vec<Pushed>,
    /// Who became busy, or ceased to be; kept with checks only.
    pub busy_changes: Vec<(Time, BusyCause, bool)>,
    /// Applications that have drained and are busy, in words; kept with checks only.
    pub busy: Vec<String>,
    /// Credits that are not back where they began, in words; kept with checks only.
    pub lost_credits: Vec<String>,
    /// What must never be, in words; kept with checks only.
    pub violations: Vec<String>,
    /// Every event.
    pub account: Accounting,
    /// What run control knows.
    pub ending: Ending,
    /// Applications that died, restarted or hung.
    pub touched: Vec<NodeId>,
    /// Whether the run was forced to end.
    pub forced: bool,
    /// Hash of the trace, if one was asked for.
    pub trace: u64,
    /// Inputs that components took.
    pub inputs: u64,
    /// What became of messages.
    pub troubles: Troubles,
    /// The faults that have struck, in order.
    pub struck: Vec<Struck>,
    /// What sources did that send by themselves, in the order of the setup.
    pub sources: Vec<Doings>,
    /// The event of each trigger that level 1 has told anybody, by its place in the run; kept with checks only.
    pub issued: BTreeMap<u64, EventId>,
    /// The newest event that level 1 has said to be issued, or left out; kept with checks only.
    pub issued_up_to: EventId,
    /// What became of frames, where there are some.
    pub frames: Option<Counters>,
    /// Traffic of all applications.
    pub network: Network,
    /// Processor time of all processes.
    pub cpu: Duration,
    /// What the run was made of, with whatever its outside has kept.
    pub setup: Setup,
}

impl World {
    pub(super) fn conclude(mut self) -> Outcomes {
        let mut ending = self.direction.controller.ending().expect("the run has ended");
        for slot in self.slots.iter().filter(|slot| self.harm.touched.contains(&slot.app.node)) {
            let left = self.open_files(slot.app.node);
            let is_unknown = |file: &&FileRecord| ending.files.iter().all(|known| known.path != file.path);
            let closed: Vec<FileRecord> = slot.closed.iter().filter(is_unknown).cloned().collect();
            ending.files.extend(closed.into_iter().chain(left));
        }
        if self.setup.planted == Some(Planted::Miscount)
            && let Some(dfm) = ending.reports.values_mut().find(|report| report.role == Role::Dfm)
        {
            let mut counters = DfmCounters::from_values(&dfm.counters);
            counters.built_complete += 1;
            dfm.counters = counters.to_values();
        }
        let applications: Vec<Application> = self.slots.iter().map(|slot| slot.app.clone()).collect();
        let mut touched = core::mem::take(&mut self.harm.touched);
        let forced = self.harm.forced || ending.forced;
        // What a filter daemon knew that has died is known to nobody.
        let has_lost_efd = self.slots.iter().any(|slot| slot.app.role == Role::Efd && touched.contains(&slot.app.node));
        let in_files: BTreeSet<EventId> =
            self.slots.iter().flat_map(|slot| slot.recorded.iter().map(|written| written.event)).collect();
        let mut violations = self.monitor.rejected_and_recorded(&in_files);
        if !forced {
            let known = if has_lost_efd { BTreeSet::new() } else { in_files };
            violations.extend(self.monitor.falsely_lost(&known));
        }
        self.monitor.violations.extend(violations);
        let lives = |(node, life): Life| {
            let slot = &self.slots[usize::from(node.0) - 1];
            slot.node.is_some() && !slot.hangs && slot.incarnation == life
        };
        let lost_credits = self.monitor.lost_credits(lives);
        let all_touched = [touched.as_slice(), &ending.dead].concat();
        let account = Books {
            applications: &applications,
            reports: &ending.reports,
            files: &ending.files,
            touched: &all_touched,
            forced,
        }
        .account();
        touched.dedup();
        Outcomes {
            began: self.direction.began,
            ended: self.now,
            busy: self.monitor.still_busy(),
            lost_credits,
            level2: self.monitor.level2,
            pushed: self.monitor.pushed,
            busy_changes: self.monitor.busy_changes,
            violations: self.monitor.violations,
            account,
            ending,
            touched,
            forced: self.harm.forced,
            trace: self.trace.finish(),
            inputs: self.tally.inputs,
            troubles: self.tally.troubles,
            struck: self.tally.struck,
            sources: self.sources.doings(),
            issued: self.monitor.ordinals,
            issued_up_to: self.monitor.issued_up_to,
            frames: match &self.setup.wire {
                Wire::Ethernet(ethernet) => Some(ethernet.network.counters()),
                Wire::Links { .. } => None,
            },
            network: self.tally.network,
            cpu: self.processors.busy() + self.drivers.as_ref().map_or(Duration::ZERO, Drivers::busy),
            setup: self.setup,
        }
    }
}
