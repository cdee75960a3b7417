//! `processes.cores` and `host.cores`.

use base::ids::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `processes.cores` and `host.cores`: processor cores to which processes are bound, a list per role. The first application of the role on
/// a host has the first core, the next one the next, and so on around. What is not listed runs wherever the kernel puts it.
///
/// The processes of a core decide how large the groups are in which messages travel, and with them the cost of an
/// event. Left to the kernel, that differs from run to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { ros = [0, 1], sfi = [2] }")]
pub struct Cores {
    /// Of the source of level-1 triggers.
    pub level1: Vec<u32>,
    /// Of level-2 supervisors.
    pub l2sv: Vec<u32>,
    /// Of level-2 processing units.
    pub l2pu: Vec<u32>,
    /// Of the pseudo-ROS.
    pub pros: Vec<u32>,
    /// Of read-out systems.
    pub ros: Vec<u32>,
    /// Of the dataflow manager.
    pub dfm: Vec<u32>,
    /// Of event builders.
    pub sfi: Vec<u32>,
    /// Of the dataflow daemons of the event filter; their processing tasks are bound with them.
    pub efd: Vec<u32>,
    /// Of recorders.
    pub sfo: Vec<u32>,
    /// Of the fronts of read-out crates.
    pub trg: Vec<u32>,
    /// Of the interfaces of read-out crates to event building.
    pub ebif: Vec<u32>,
}

impl Cores {
    /// The core of an application by its place among those of its role on its host, from 0.
    pub fn of(&self, role: Role, index: usize) -> Option<u32> {
        let cores = self.of_role(role);
        cores.get(index.checked_rem(cores.len())?).copied()
    }

    /// The same with other numbers.
    #[must_use]
    pub fn map(mut self, number: impl Fn(u32) -> u32) -> Self {
        let lists = [
            &mut self.level1,
            &mut self.l2sv,
            &mut self.l2pu,
            &mut self.pros,
            &mut self.ros,
            &mut self.dfm,
            &mut self.sfi,
            &mut self.efd,
            &mut self.sfo,
            &mut self.trg,
            &mut self.ebif,
        ];
        lists.into_iter().flatten().for_each(|core| *core = number(*core));
        self
    }

    /// Whether none is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// All that are named.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        Role::IN_DRAIN_ORDER.into_iter().flat_map(|role| self.of_role(role)).copied()
    }

    fn of_role(&self, role: Role) -> &[u32] {
        match role {
            Role::RunControl => &[],
            Role::Level1 => &self.level1,
            Role::L2sv => &self.l2sv,
            Role::L2pu => &self.l2pu,
            Role::Pros => &self.pros,
            Role::Ros => &self.ros,
            Role::Dfm => &self.dfm,
            Role::Sfi => &self.sfi,
            Role::Efd => &self.efd,
            Role::Sfo => &self.sfo,
            Role::Trg => &self.trg,
            Role::Ebif => &self.ebif,
        }
    }
}

/// Cores have numbers below this.
pub(crate) const CORES_MAX: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_of_a_role_take_its_cores_in_turn() {
        let cores = Cores { ros: vec![2, 5], ..Cores::default() };
        assert_eq!([0, 1, 2, 3].map(|index| cores.of(Role::Ros, index)), [Some(2), Some(5), Some(2), Some(5)]);
        assert_eq!(cores.of(Role::Sfi, 0), None);
        assert!(!cores.is_empty() && Cores::default().is_empty());
    }
}
