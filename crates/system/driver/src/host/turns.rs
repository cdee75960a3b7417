//! What the components of a process send each other, and when they are called for the time.

use std::time::Duration;

use base::ids::NodeId;
use base::time::Time;
use dataflow::component::Input;
use dataflow::turns::is_flushed_in_turn;
use transport::clock;

use super::{Host, Hosted, Section};

/// Which components have something to do, and when.
#[derive(Default)]
pub(super) struct Schedule {
    /// Components that were given something since they were flushed.
    pub(super) touched: Vec<NodeId>,
    /// The newest time that a component here was given.
    pub(super) latest: Time,
    /// By node: when its component wants to be called, as of its last flush.
    deadlines: Vec<Option<Time>>,
    /// None of these is earlier. A pass looks at no other.
    earliest: Option<Time>,
    /// Nodes whose work may have something for them: those whose work goes on in threads of its own, and read-out systems that
    /// wait for pages.
    pub(super) working: Vec<NodeId>,
    /// Read-out systems whose sources send by themselves, and level 1 with processors outside.
    pub(super) sourced: Vec<NodeId>,
}

impl Schedule {
    pub(super) fn new(node_count: usize) -> Self {
        Self { deadlines: vec![None; node_count], ..Self::default() }
    }
}

impl Host {
    /// What the components here have ready goes out: they were given all that was there. Whether there was any such component.
    pub(super) fn flush_components(&mut self, now: Time) -> bool {
        let now = self.forward(now);
        let mut touched = core::mem::take(&mut self.schedule.touched);
        let any = !touched.is_empty();
        touched.drain(..).for_each(|node| self.flush_component(now, node));
        if self.schedule.touched.is_empty() {
            // Keeps its memory.
            self.schedule.touched = touched;
        }
        any
    }

    /// Of those that were flushed in their turn nothing is left to go.
    fn flush_component(&mut self, now: Time, node: NodeId) {
        let Some(hosted) = self.nodes[usize::from(node.0)].as_mut().filter(|hosted| hosted.touched) else { return };
        hosted.touched = false;
        let role = hosted.role;
        self.metering.enter(|| (Section::Flush(role), 0, 0));
        hosted.node.flush(now, &mut self.out);
        let deadline = hosted.node.next_deadline();
        self.schedule.deadlines[usize::from(node.0)] = deadline;
        self.schedule.earliest = [self.schedule.earliest, deadline].into_iter().flatten().min();
        self.carry_out(now, node);
        self.leave();
    }

    pub(super) fn has_touched(&self) -> bool {
        !self.schedule.touched.is_empty()
    }

    /// When a component may want to be called, but for those that were given something since their flush. These are
    /// flushed before this process sleeps.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.schedule.earliest
    }

    /// Calls every component whose deadline has come.
    pub(super) fn run_deadlines(&mut self, now: Time) {
        if self.schedule.earliest.is_none_or(|earliest| earliest > now) {
            return;
        }
        for index in 0..self.schedule.deadlines.len() {
            // It names its next one when it is flushed.
            if self.schedule.deadlines[index].take_if(|deadline| *deadline <= now).is_some() {
                self.input(now, NodeId(index as u16), Input::Deadline);
            }
        }
        self.schedule.earliest = self.schedule.deadlines.iter().flatten().min().copied();
    }

    /// Delivers messages between components of this process, as long as there are any, up to a bound.
    pub(super) fn deliver_local(&mut self) {
        let mut now = clock::now();
        let end = now + LOCAL_TIME_PER_PASS;
        for _ in 0..LOCAL_MESSAGES_PER_PASS {
            let Some((envelope, message)) = self.local.next_item() else {
                if self.flush_components(now) {
                    continue;
                }
                return;
            };
            // A pass through a whole chain in one process takes long: latencies are measured in it.
            self.enter(|| (Section::Local, 1, 0));
            now = clock::now();
            self.deliver(now, &envelope, message);
            self.leave();
            self.end_turn(now);
            if now > end {
                return;
            }
        }
    }

    /// A component that has got all that waited for it sends what it has gathered, while its state is in the caches.
    fn end_turn(&mut self, now: Time) {
        let Some(node) = self.local.ending() else { return };
        let hosted = self.nodes[usize::from(node.0)].as_ref();
        if hosted.is_some_and(|hosted| is_flushed_in_turn(hosted.role)) {
            self.flush_component(now, node);
        }
    }

    pub(super) fn has_local_work(&self) -> bool {
        !self.local.is_empty()
    }
}

impl Hosted {
    pub(super) fn touch(&mut self, touched: &mut Vec<NodeId>) {
        if !core::mem::replace(&mut self.touched, true) {
            touched.push(self.node.id());
        }
    }
}

/// Bounds of a pass, so that no source starves the others.
const LOCAL_MESSAGES_PER_PASS: usize = 4096;
/// Work may take long: time-outs, signals and the network are looked at in between.
const LOCAL_TIME_PER_PASS: Duration = Duration::from_millis(1);
