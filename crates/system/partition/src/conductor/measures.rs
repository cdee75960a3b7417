//! What a run takes of the machine.

use std::collections::BTreeMap;
use std::time::Duration;

use agents::Children;
use base::ids::NodeId;
use base::time::Time;
use nix::sys::resource::UsageWho;

use crate::cpu::{Processors, cpu_seconds};

/// Times, and processor times in seconds.
pub(super) struct Measures {
    launched: Time,
    /// Of this process and its children, those included that have ended.
    before: f64,
    /// Of this process and the children that live; none where the kernel does not say.
    living_before: Option<f64>,
    pub(super) began: Option<Time>,
    living_until_began: Option<f64>,
    pub(super) ended: Option<Time>,
    /// Of this process: when the run began negative, since it ended that of the run.
    while_running: f64,
    /// Until the run began; since it ended, while it lasted.
    of_children: BTreeMap<NodeId, Duration>,
    processes: BTreeMap<NodeId, u32>,
    processors: Processors,
    left_to_us: Option<f64>,
    cores_used: f64,
}

/// What is known of them at the end.
pub(super) struct Measured {
    pub(super) began: Time,
    pub(super) duration: Duration,
    pub(super) starting: Duration,
    pub(super) cpu_starting: Option<Duration>,
    pub(super) cpu: Duration,
    pub(super) cpu_of_children: BTreeMap<NodeId, Duration>,
    pub(super) processes: BTreeMap<NodeId, u32>,
    pub(super) cpu_while_running: Duration,
    pub(super) left_to_us: Option<f64>,
    pub(super) cores_used: f64,
}

impl Measures {
    /// Somebody wants the run now.
    pub(super) fn launch(now: Time, children: &Children) -> Self {
        Self {
            launched: now,
            before: of_all(children),
            living_before: of_living(children, &children.cpu()),
            began: None,
            living_until_began: None,
            ended: None,
            while_running: 0.0,
            of_children: BTreeMap::new(),
            processes: BTreeMap::new(),
            processors: Processors::watch(None),
            left_to_us: None,
            cores_used: 0.0,
        }
    }

    /// The run begins.
    pub(super) fn begin(&mut self, now: Time, children: &Children) {
        self.began = Some(now);
        self.while_running = -cpu_seconds(UsageWho::RUSAGE_SELF);
        self.of_children = children.cpu();
        self.living_until_began = of_living(children, &self.of_children);
        self.processors = Processors::watch(self.living_until_began);
    }

    /// It is over; these were started again in it.
    pub(super) fn end(&mut self, now: Time, children: &Children, returned: impl Iterator<Item = NodeId>) {
        self.ended = Some(now);
        let living = children.iter().filter(|child| !child.has_ended());
        self.processes = living.filter_map(|child| Some((child.node(), child.process()?))).collect();
        self.while_running += cpu_seconds(UsageWho::RUSAGE_SELF);
        let cpu = children.cpu();
        let ours_s = of_living(children, &cpu);
        (self.left_to_us, self.cores_used) = (self.processors.left_to_us(ours_s), self.processors.used(ours_s));
        returned.for_each(|node| _ = self.of_children.remove(&node));
        let before = core::mem::take(&mut self.of_children).into_iter();
        self.of_children =
            before.filter_map(|(node, before)| Some((node, cpu.get(&node)?.saturating_sub(before)))).collect();
    }

    /// All of it, up to now; `None` if the run did not begin and end.
    pub(super) fn measured(self, children: &Children) -> Option<Measured> {
        let (began, ended) = self.began.zip(self.ended)?;
        let seconds = |s: f64| Duration::from_secs_f64(s.max(0.0));
        let starting = self.living_until_began.zip(self.living_before);
        Some(Measured {
            began,
            duration: ended.since(began),
            starting: began.since(self.launched),
            cpu_starting: starting.map(|(until_began, before)| seconds(until_began - before)),
            cpu: seconds(of_all(children) - self.before),
            cpu_of_children: self.of_children,
            processes: self.processes,
            cpu_while_running: seconds(self.while_running),
            left_to_us: self.left_to_us,
            cores_used: self.cores_used,
        })
    }
}

fn of_all(children: &Children) -> f64 {
    let living: Duration = children.cpu().values().sum();
    cpu_seconds(UsageWho::RUSAGE_SELF) + cpu_seconds(UsageWho::RUSAGE_CHILDREN) + living.as_secs_f64()
}

/// Of this process and its children, if the kernel says it of all.
fn of_living(children: &Children, each_child: &BTreeMap<NodeId, Duration>) -> Option<f64> {
    let of_children: Duration = each_child.values().sum();
    let is_said = each_child.len() == children.iter().count();
    is_said.then(|| of_children.as_secs_f64() + cpu_seconds(UsageWho::RUSAGE_SELF))
}
