//! What is called how on the bus: `weir.<partition>.<host>.<application>.<what>`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use base::ids::Role;
use configuration::Partition;

use crate::hosts::Hosts;

/// The subjects of a partition.
#[derive(Debug)]
pub(super) struct Subjects {
    partition: String,
    /// Another configuration may move applications.
    hosts: Mutex<Hosts>,
}

impl Subjects {
    /// Those of a partition whose run control is on this machine, `here`.
    pub(super) fn of(partition: &Partition, here: &str) -> Self {
        Self { partition: partition.partition.name.clone(), hosts: Mutex::new(Hosts::of(partition, token(here))) }
    }

    /// Applications are where this configuration has them.
    pub(super) fn follow(&self, partition: &Partition) {
        let mut hosts = self.hosts();
        *hosts = Hosts::of(partition, hosts.here().to_owned());
    }

    /// Of something that run control says.
    pub(super) fn of_run_control(&self, what: &str) -> String {
        format!("weir.{}.{}.{}.{what}", self.partition, self.hosts().here(), Role::RunControl)
    }

    /// Of something that an application says.
    pub(super) fn of_application(&self, application: &str, what: &str) -> String {
        let hosts = self.hosts();
        let host = hosts.of_application(application);
        format!("weir.{}.{host}.{application}.{what}", self.partition)
    }

    fn hosts(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream that keeps messages and run records.
    pub(super) fn stream(&self) -> String {
        format!("weir-{}", self.partition)
    }

    /// What it keeps, also of a run control on another host.
    pub(super) fn kept(&self) -> [String; 2] {
        [MESSAGE, RECORD].map(|what| format!("weir.{}.*.{}.{what}", self.partition, Role::RunControl))
    }
}

/// A part of a subject.
fn token(name: &str) -> String {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fit: String = name.chars().map(|c| if is_fit(c) { c } else { '-' }).collect();
    if fit.is_empty() { "here".to_owned() } else { fit }
}

pub(super) const STATUS: &str = "status";
pub(super) const MESSAGE: &str = "message";
pub(super) const RECORD: &str = "record";
pub(super) const METRICS: &str = "metrics";
pub(super) const SAMPLE: &str = "sample";
pub(super) const EVENT: &str = "event";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_application_has_its_host() {
        let text = "partition.name = \"p\"\nros.count = 2\nsfi.count = 1\n";
        let of = |more: &[String]| Subjects::of(&Partition::parse("p", text, more).unwrap(), "daq-9.lab");
        let alone = of(&[]);
        assert_eq!(alone.of_run_control(STATUS), "weir.p.daq-9-lab.rc.status");
        assert_eq!(alone.of_application("sfi-1", METRICS), "weir.p.daq-9-lab.sfi-1.metrics");
        assert_eq!(alone.kept(), ["weir.p.*.rc.message", "weir.p.*.rc.record"]);
        let spread = of(&["host=[{name=\"a\"},{name=\"b\"}]".to_owned()]);
        assert_eq!(spread.of_application("ros-2", METRICS), "weir.p.b.ros-2.metrics");
        assert_eq!(spread.of_run_control(STATUS), "weir.p.daq-9-lab.rc.status");
        alone.follow(&Partition::parse("p", text, &["host=[{name=\"c\"}]".to_owned()]).unwrap());
        assert_eq!(alone.of_application("sfi-1", METRICS), "weir.p.c.sfi-1.metrics");
        assert_eq!(token(""), "here");
    }
}
