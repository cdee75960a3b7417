//! From a configuration to components: numbers, roles, credits, tables, policies, time-outs.
//!
//! An [`Assembly`] numbers the applications of a [`Partition`] and knows the [`Parameters`] of each. Nothing here does any
//! input or output: live runs, simulated ones and measurements make their components of the same parameters.
#![forbid(unsafe_code)]

pub mod bounds;
mod by_lot;
mod modelled;
mod parameters;
mod returns;
mod roc;
mod scale;

use std::sync::Arc;

use base::ids::{NodeId, Role, RunNumber};
use configuration::Partition;
use control::controller::Application;
use dataflow::level2::overrides::{Override, Overrides};
use dataflow::node::RUN_CONTROL;
use dataflow::readout::ros::Framing;
use dataflow::roc::CrateRos;

use modelled::Modelled;

pub use by_lot::ByLot;
pub use parameters::{Parameters, TriggersFrom};
pub use returns::{recovers, returns};
pub use scale::{REPLY_GROUP_BYTES, Scale};

/// A partition with its applications numbered: everything needed to make any of its components.
#[derive(Clone, Debug)]
pub struct Assembly {
    /// The configuration.
    pub partition: Partition,
    /// All applications; the node of the first is 1.
    pub applications: Vec<Application>,
    /// Source identifiers of the ROBs of each ROS.
    pub robs: Vec<Vec<u32>>,
    /// What is made of the decisions of level 2.
    overrides: Overrides,
    /// What no configuration says.
    scale: Scale,
    /// What stands around data that belong to events by their time.
    framing: Arc<dyn Framing>,
    /// The host of each application, if there are any.
    hosts: Vec<usize>,
}

impl Assembly {
    /// Numbers the applications of a partition, whose read-out systems have these ROBs.
    pub fn new(partition: Partition, robs: Vec<Vec<u32>>) -> Self {
        let numbered = (1..).zip(partition.applications());
        let applications =
            numbered.map(|(node, app)| Application { name: app.name, role: app.role, node: NodeId(node) }).collect();
        let overrides = Overrides { all: decisions(&partition), ..Overrides::default() };
        // What a configuration that was checked cannot be.
        let hosts = partition.placement().unwrap_or_default();
        let (scale, framing) = (Scale::default(), Arc::new(Modelled));
        Self { partition, applications, robs, overrides, scale, framing, hosts }
    }

    /// The same, with the bits of the level-1 items that are accepted by force and of those that are vetoed: the configuration has
    /// their names.
    #[must_use]
    pub fn with_items(self, force_accept_items: u32, veto_items: u32) -> Self {
        Self { overrides: Overrides { force_accept_items, veto_items, ..self.overrides }, ..self }
    }

    /// The same, where data that belong to events by their time have bytes.
    #[must_use]
    pub fn framed_by(self, framing: Arc<dyn Framing>) -> Self {
        Self { framing, ..self }
    }

    /// The same, where they are lengths alone, as at the beginning.
    #[must_use]
    pub fn without_data(self) -> Self {
        self.framed_by(Arc::new(Modelled))
    }

    /// The same on another scale.
    #[must_use]
    pub fn on_scale(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }

    /// The run.
    pub fn run(&self) -> RunNumber {
        RunNumber(self.partition.run.number())
    }

    /// The application at a node; `None` for run control and beyond.
    pub fn application(&self, node: NodeId) -> Option<&Application> {
        self.applications.get(usize::from(node.0).checked_sub(1)?)
    }

    /// What people call the application at a node.
    pub fn name(&self, node: NodeId) -> String {
        match self.application(node) {
            Some(app) => app.name.clone(),
            None if node == RUN_CONTROL => "run control".into(),
            None => format!("{node:?}"),
        }
    }

    /// The host of the application at a node, by its place in the list; `None` if that is the machine of run control.
    pub fn host_of(&self, node: NodeId) -> Option<usize> {
        self.hosts.get(usize::from(node.0).checked_sub(1)?).copied()
    }

    /// Index of a node among those of its role.
    pub fn index_in_role(&self, node: NodeId) -> usize {
        let role = self.application(node).map(|app| app.role);
        self.applications.iter().filter(|app| Some(app.role) == role).take_while(|app| app.node != node).count()
    }

    /// The processor core to which the process of an application is bound.
    pub fn core_of(&self, node: NodeId) -> Option<u32> {
        self.partition.bound().get(usize::from(node.0).checked_sub(1)?).copied().flatten()
    }

    /// All nodes of a role.
    pub fn of(&self, role: Role) -> Vec<NodeId> {
        self.applications.iter().filter(|app| app.role == role).map(|app| app.node).collect()
    }

    /// The roles of all nodes, run control first.
    pub fn roles(&self) -> Vec<Role> {
        core::iter::once(Role::RunControl).chain(self.applications.iter().map(|app| app.role)).collect()
    }

    /// Who takes triggers, requests of level 2 and clears: read-out systems that stand alone, and the fronts of crates.
    pub fn fronts(&self) -> Vec<NodeId> {
        let alone = |(place, node): (usize, NodeId)| self.partition.crate_of(place).is_none().then_some(node);
        let alone = self.of(Role::Ros).into_iter().enumerate().filter_map(alone);
        alone.chain(self.of(Role::Trg)).collect()
    }

    /// Fronts and the pseudo-ROS: the receivers of clears.
    pub fn readout(&self) -> Vec<NodeId> {
        [self.fronts(), self.of(Role::Pros)].concat()
    }

    /// The read-out systems of a crate.
    pub fn systems_of(&self, place: usize) -> Vec<CrateRos> {
        let all = self.of(Role::Ros).into_iter().zip(&self.robs).enumerate();
        let within = all.filter(|(ros, _)| self.partition.crate_of(*ros) == Some(place));
        within.map(|(_, (node, robs))| CrateRos { node, robs: robs.clone() }).collect()
    }

    /// The crate that an application is part of, and whether it is a read-out system in it.
    fn place_in_crate(&self, app: &Application) -> Option<(usize, bool)> {
        let index = || self.index_in_role(app.node);
        match app.role {
            Role::Ros => Some((self.partition.crate_of(index())?, true)),
            Role::Trg | Role::Ebif => Some((index(), false)),
            _ => None,
        }
    }

    /// Whether two applications exchange messages.
    pub fn talk(&self, one: NodeId, other: NodeId) -> bool {
        let (Some(one), Some(other)) = (self.application(one), self.application(other)) else { return true };
        let has_level2 = self.partition.l2sv.is_some();
        if self.partition.roc.is_some() {
            match (self.place_in_crate(one), self.place_in_crate(other)) {
                // The read-out systems of a crate know its TRG and its EBIF only.
                (Some((first, first_reads)), Some((second, second_reads))) => {
                    return first == second && !(first_reads && second_reads);
                }
                (Some((_, true)), None) | (None, Some((_, true))) => return false,
                _ => {}
            }
        }
        let pairs = [(one.role, other.role), (other.role, one.role)];
        pairs.into_iter().any(|pair| match pair {
            (Role::Level1, Role::Ros | Role::Trg | Role::L2sv | Role::Dfm)
            | (Role::L2sv, Role::L2pu | Role::Dfm)
            | (Role::Dfm, Role::Ros | Role::Trg | Role::Pros | Role::Sfi | Role::Efd)
            | (Role::Sfi, Role::Ros | Role::Ebif | Role::Pros | Role::Efd)
            | (Role::Efd, Role::Sfo) => true,
            (Role::L2pu, Role::Ros | Role::Trg | Role::Pros) => has_level2,
            (Role::L2pu, Role::Sfi) => self.is_phased(),
            (Role::L2sv, Role::Ros | Role::Trg) => !self.partition.builds(),
            _ => false,
        })
    }

    /// Fragments of each ROB that can be behind the ROS, inside one process, or kept to be sent again, after the ROS
    /// has cleared them.
    pub fn events_behind_ros(&self) -> usize {
        let slots = |count: u32, each: u32| (count * each) as usize;
        let filter =
            self.partition.event_filter().map_or(0, |ef| slots(ef.count, ef.slots.max(self.partition.sfi.count)));
        let is_ahead = self.is_phased() || self.partition.push().is_some();
        let ahead = if is_ahead { slots(self.partition.sfi.count, self.partition.sfi.events) } else { 0 };
        let units = self.partition.l2pu.as_ref().map_or(0, |l2pu| l2pu.count);
        let kept = (self.partition.sfi.count + units) as usize * self.scale.replies_kept;
        slots(self.partition.sfi.count, self.partition.sfi.events) + ahead + 2 * filter + kept
    }
}

fn decisions(partition: &Partition) -> Override {
    match partition.l2sv.as_ref().map(|l2sv| l2sv.decisions).unwrap_or_default() {
        configuration::Decisions::AsFound => Override::None,
        configuration::Decisions::ForceAccept => Override::ForceAccept,
        configuration::Decisions::ForceReject => Override::ForceReject,
    }
}
