//! The hosts of a partition, and what starts on them.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use configuration::{Host, Partition};

use crate::introduction::Introduction;

/// The hosts of a partition.
#[derive(Clone, Debug, Default)]
pub struct Farm {
    pub(crate) hosts: Vec<Host>,
    /// Where run control listens for agents.
    pub(crate) listen: Option<IpAddr>,
    /// An agent that is silent for so long is lost.
    pub(crate) lease: Duration,
    /// How long an agent may take to come.
    pub(crate) start_timeout: Duration,
}

/// The process of an application that is to start.
pub struct Start<'a> {
    /// This `weir`.
    pub program: PathBuf,
    /// `sfi-1`.
    pub name: String,
    /// Where run control listens.
    pub join: String,
    /// What it alone is told.
    pub introduction: &'a Introduction,
    /// Addresses at which it listens as well.
    pub ports: Vec<IpAddr>,
    /// Its host, by its place in the list; none if it is a child of this process.
    pub host: Option<usize>,
}

impl Farm {
    /// That of a partition.
    pub fn of(partition: &Partition) -> Self {
        Self {
            hosts: partition.host.clone(),
            listen: Some(partition.transport.host),
            lease: partition.processes.lease.duration(),
            start_timeout: partition.processes.start_timeout.duration(),
        }
    }
}
