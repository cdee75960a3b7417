//! Run control pauses the run; while it is paused nothing is triggered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::ids::{NodeId, Role};
use control::controller::Controller;
use dataflow::message::Command;
use dataflow::report::{Counters, DfmCounters, Level1Counters};

use super::{What, World};

/// Who is paused, and what had been triggered before.
#[derive(Default)]
pub(super) struct Pausing {
    paused: BTreeSet<NodeId>,
    /// The most that an application had triggered when it was paused or died.
    triggered: BTreeMap<NodeId, u64>,
}

impl World {
    pub(super) fn pause(&mut self, lasts: Duration) {
        self.with_controller(|controller: &mut Controller, _, out| controller.pause(out));
        self.schedule(self.now + lasts, What::Resume);
    }

    pub(super) fn resume(&mut self) {
        self.with_controller(|controller: &mut Controller, _, out| controller.resume(out));
    }

    /// Before an application is told: a pause that ends has had no trigger.
    pub(super) fn before_command(&mut self, of: NodeId, command: Command) {
        if matches!(command, Command::Start | Command::Resume | Command::Drain | Command::Abandon) {
            self.check_pause(of);
            self.pausing.paused.remove(&of);
        }
    }

    /// Behind what it was told.
    pub(super) fn after_command(&mut self, of: NodeId, command: Command) {
        if command == Command::Report {
            self.close_books_of(of);
        }
        if command == Command::Pause {
            self.note_triggers(of);
            self.pausing.paused.insert(of);
        }
    }

    /// It is about to die; its next life may learn of all that this one has triggered.
    pub(super) fn before_death(&mut self, of: NodeId) {
        self.check_pause(of);
        self.note_triggers(of);
    }

    fn check_pause(&mut self, of: NodeId) {
        let Some(before) = self.pausing.triggered.get(&of).filter(|_| self.pausing.paused.contains(&of)) else {
            return;
        };
        let (before, now) = (*before, self.triggered(of).unwrap_or(0));
        if now > before {
            self.monitor
                .violations
                .push(format!("{of:?} had triggered {before} events when it was paused, and then {now}"));
        }
    }

    fn note_triggers(&mut self, of: NodeId) {
        if let Some(now) = self.triggered(of) {
            let most = self.pausing.triggered.entry(of).or_default();
            *most = now.max(*most);
        }
    }

    /// By one that lives and triggers.
    fn triggered(&self, of: NodeId) -> Option<u64> {
        let slot = self.slot(of);
        let counters = || Some(slot.node.as_ref()?.report(self.now).counters);
        match slot.app.role {
            Role::Level1 => counters().map(|counters| Level1Counters::from_values(&counters).issued),
            Role::Dfm => counters().map(|counters| DfmCounters::from_values(&counters).self_triggered),
            _ => None,
        }
    }
}
