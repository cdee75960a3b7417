//! The agents that are there, for whoever observes a partition.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The agents of a partition that run control has met and not lost. Clones are the same roll.
#[derive(Clone, Debug, Default)]
pub struct Roll(Arc<Mutex<BTreeMap<usize, Present>>>);

/// An agent that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    /// The name of its host.
    pub host: String,
    /// Where it shows metrics, if it does.
    pub metrics: Option<SocketAddr>,
    /// So many beats it has left out since it began, as others still waited to go out.
    pub left_out: u32,
}

impl Roll {
    /// Those that are there, in the order of the configuration.
    pub fn present(&self) -> Vec<Present> {
        self.entries().values().cloned().collect()
    }

    /// Changes the entry of the agent of a host, which is there.
    pub(crate) fn note(&self, host: usize, name: &str, change: impl FnOnce(&mut Present)) {
        let entry = || Present { host: name.to_owned(), metrics: None, left_out: 0 };
        change(self.entries().entry(host).or_insert_with(entry));
    }

    /// The agent of a host is not there any more.
    pub(crate) fn strike(&self, host: usize) {
        self.entries().remove(&host);
    }

    /// None is there any more.
    pub(crate) fn clear(&self) {
        self.entries().clear();
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<usize, Present>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
