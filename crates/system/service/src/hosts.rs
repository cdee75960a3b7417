//! Where the applications of a partition are.

use std::collections::BTreeMap;

use configuration::Partition;

/// The hosts of a partition by the names of its applications.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// The machine of run control, and of every application that no host has.
    here: String,
    by_application: BTreeMap<String, String>,
}

impl Hosts {
    /// Those of a partition whose run control is on the machine `here`.
    pub(crate) fn of(partition: &Partition, here: String) -> Self {
        // A configuration that was checked has one.
        let placed = partition.placement().unwrap_or_default();
        let names = placed.iter().map(|place| partition.host[*place].name.clone());
        let applications = partition.applications().into_iter().map(|application| application.name);
        Self { here, by_application: applications.zip(names).collect() }
    }

    /// The machine of run control.
    pub(crate) fn here(&self) -> &str {
        &self.here
    }

    /// That of an application.
    pub(crate) fn of_application(&self, application: &str) -> &str {
        self.by_application.get(application).unwrap_or(&self.here)
    }
}

/// The name of this machine.
pub(crate) fn this_machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
