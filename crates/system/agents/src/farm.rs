//! The hosts of a partition, and what starts on them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use base::ids::Incarnation;
use configuration::{Host, Partition};

use crate::fence::Fence;
use crate::introduction::Introduction;
use crate::roll::Roll;

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
    /// Whether run control may still act.
    pub(crate) fence: Fence,
    /// Who is told which agents are there.
    pub(crate) roll: Roll,
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

/// What run control has to know of its agents to find them again in its next life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estate {
    /// Which secret they prove with: what a fingerprint says of the one that it follows from.
    pub secret: [u8; 16],
    /// Of each host, the newest life of its agent and where that listens, if it is known.
    pub agents: Vec<(Incarnation, Option<SocketAddr>)>,
}

impl Farm {
    /// That of a partition. The roll has the agents that are there.
    pub fn of(partition: &Partition, roll: Roll) -> Self {
        Self {
            hosts: partition.host.clone(),
            listen: Some(partition.transport.host),
            lease: partition.processes.lease.duration(),
            start_timeout: partition.processes.start_timeout.duration(),
            fence: Fence::default(),
            roll,
        }
    }

    /// What says whether run control may still act.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }
}
