//! What inputs cost: the processor time of each kind of input, by role.

use std::time::Duration;

use base::ids::Role;
use dataflow::component::Input;
use dataflow::message::Message;
use dataflow::work_kind::WorkKind;

/// Processor time of inputs and of what is sent because of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    table: Vec<Cost>,
    free: bool,
}

/// What one kind of input costs in one role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Of each, in ns.
    pub each_ns: u32,
    /// Of each message, whatever there is in it, in ns.
    pub message_ns: u32,
    /// Of a kibibyte of bulk that comes with it, in ns.
    pub kibibyte_ns: u32,
}

impl Costs {
    /// Nothing costs anything.
    pub fn none() -> Self {
        Self { table: vec![Cost::default(); ROLES * WorkKind::ALL.len()], free: true }
    }

    /// Every input costs the same.
    pub fn uniform(each: Duration) -> Self {
        let each_ns = u32::try_from(each.as_nanos()).unwrap_or(u32::MAX);
        let cost = Cost { each_ns, ..Cost::default() };
        let mut costs = Self { table: vec![cost; ROLES * WorkKind::ALL.len()], free: each_ns == 0 };
        for kind in [WorkKind::Send, WorkKind::Flush, WorkKind::Write] {
            (0..ROLES).for_each(|role| costs.table[role * WorkKind::ALL.len() + kind as usize] = Cost::default());
        }
        costs
    }

    /// Sets one cost.
    #[must_use]
    pub fn with(mut self, role: Role, kind: WorkKind, cost: Cost) -> Self {
        self.set(role, kind, cost);
        self
    }

    /// Sets one cost.
    pub fn set(&mut self, role: Role, kind: WorkKind, cost: Cost) {
        self.table[place(role, kind)] = cost;
        self.free = self.table.iter().all(|cost| *cost == Cost::default());
    }

    /// What an input costs.
    pub fn of_input(&self, role: Role, input: &Input) -> Duration {
        if self.free {
            return Duration::ZERO;
        }
        match input {
            Input::Message { message, .. } => self.of_message(role, message, 1),
            Input::Fragment { head, .. } => self.cost(role, WorkKind::Fragment, 1, head.len_bytes as usize),
            other => {
                let (kind, count) = WorkKind::of_input(other);
                self.cost(role, kind, count, 0)
            }
        }
    }

    /// What a message costs its receiver, if a reply has so many fragments of each event.
    pub fn of_message(&self, role: Role, message: &Message, fragments: usize) -> Duration {
        if self.free {
            return Duration::ZERO;
        }
        let (kind, count) = WorkKind::of(message);
        let count = if kind == WorkKind::EventReply { count * fragments } else { count };
        let bulk = message.bulk().map_or(0, base::bulk::Bulk::len);
        self.cost(role, kind, count, bulk)
    }

    /// What sending a message costs.
    pub fn of_sending(&self, role: Role, message: &Message) -> Duration {
        if self.free {
            return Duration::ZERO;
        }
        self.cost(role, WorkKind::Send, 1, message.bulk().map_or(0, base::bulk::Bulk::len))
    }

    /// What the fragments of events and the end of reading them out cost.
    pub fn of_fragments(&self, role: Role, events: usize, count: usize, bytes: usize) -> Duration {
        if self.free {
            return Duration::ZERO;
        }
        let each_event = self.table[place(role, WorkKind::Fragment)].message_ns;
        let further = u64::from(each_event) * events.saturating_sub(1) as u64;
        let fragments = self.cost(role, WorkKind::Fragment, count, bytes);
        fragments + Duration::from_nanos(further) + self.cost(role, WorkKind::Done, events, 0)
    }

    /// What the end of a pass costs, that sends so many.
    pub fn of_flush(&self, role: Role, count: usize) -> Duration {
        if self.free { Duration::ZERO } else { self.cost(role, WorkKind::Flush, count, 0) }
    }

    /// What an event of so many bytes costs the thread that writes it.
    pub fn of_writing(&self, role: Role, bytes: usize) -> Duration {
        if self.free { Duration::ZERO } else { self.cost(role, WorkKind::Write, 1, bytes) }
    }

    fn cost(&self, role: Role, kind: WorkKind, count: usize, bytes: usize) -> Duration {
        let Cost { each_ns, message_ns, kibibyte_ns } = self.table[place(role, kind)];
        let of_all = u64::from(message_ns) + u64::from(each_ns) * count as u64;
        Duration::from_nanos(of_all + u64::from(kibibyte_ns) * bytes as u64 / 1024)
    }
}

fn place(role: Role, kind: WorkKind) -> usize {
    role as usize * WorkKind::ALL.len() + kind as usize
}

/// Roles have numbers below this.
const ROLES: usize = 16;
