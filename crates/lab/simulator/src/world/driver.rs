//! Processes as they run live: in passes over all that is there, on cores that they share.
//!
//! A pass takes in what has come over connections. Then it takes what the components of the process send each
//! other, until nothing is left. At its end it writes to other processes: what one pass produces travels together.
//! The more is there, the less a message costs, as in a live run.

use std::collections::VecDeque;
use std::time::Duration;

use base::bulk::Bulk;
use base::ids::NodeId;
use base::time::Time;
use dataflow::component::Input;
use dataflow::message::{Envelope, Message};
use dataflow::node::RUN_CONTROL;
use dataflow::turns::{Turns, is_flushed_in_turn};
use dataflow::work_kind::WorkKind;

use super::hosts::Hosts;
use super::wire::Wire;
use super::{Arriving, What, World};

/// What the driver of a process costs besides the inputs of its components, and how it waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// A pass.
    pub pass: Duration,
    /// Of a pass, each component of the process.
    pub pass_component: Duration,
    /// Of a pass, each connection of the process.
    pub pass_connection: Duration,
    /// A message to a component of the same process.
    pub local: Duration,
    /// Messages over connections; reading and writing cost for each connection.
    pub connections: Carrying,
    /// Messages in datagrams; reading and writing cost once in a pass, for all peers.
    pub datagrams: Carrying,
    /// From the end of a pass until what it wrote can be read elsewhere on the host.
    pub latency: Duration,
    /// From then until a process that sleeps runs.
    pub wake: Duration,
    /// Processor time of falling asleep and waking up.
    pub sleep: Duration,
    /// Processor time of another process on a core.
    pub switch: Duration,
    /// Whether a process without work looks for some without letting others run, for ever.
    pub spins: bool,
    /// If not, how long it looks between others before it sleeps.
    pub yields: Duration,
    /// How long a process keeps a core that others wait for.
    pub slice: Duration,
    /// So many bytes for a connection go before the end of a pass; without it all wait for that.
    pub batch_bytes: Option<u64>,
}

/// What it costs to carry messages between processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carrying {
    /// A message that is put into a queue.
    pub encode: Duration,
    /// A message that is taken out of what has come.
    pub decode: Duration,
    /// Taking in what has come.
    pub read: Duration,
    /// Each kibibyte of it.
    pub read_kib: Duration,
    /// Handing over what is in the queue.
    pub write: Duration,
    /// Each kibibyte of it.
    pub write_kib: Duration,
    /// What all that is written at once costs more, sender and receiver together, where these are on different cores.
    pub far: Duration,
    /// Each kibibyte of it.
    pub far_kib: Duration,
}

/// The processes of a world.
pub(super) struct Drivers {
    driver: Driver,
    /// The process of each application.
    of: Vec<usize>,
    processes: Vec<Process>,
    hosts: Vec<Cores>,
    busy: Duration,
    /// Messages that components have sent.
    sent: u64,
}

/// What happens to a process; of those that name a state only the last counts.
#[derive(Clone, Copy)]
pub(super) enum Turn {
    /// It is awake.
    Wakes(usize),
    /// It begins a pass.
    Begins(usize),
    /// A pass is over.
    Ends(usize),
    /// It has let others run for so long.
    Yielded(usize, u64),
}

/// A message between processes of a host, with its length in bytes.
pub(super) type Frame = (Envelope, Message, u32);

struct Process {
    host: usize,
    /// The core that it is bound to.
    bound: Option<u32>,
    /// The core that it has, or had last.
    core: u32,
    components: u32,
    connections: u32,
    state: ThreadState,
    /// Goes up with each change of state.
    changes: u64,
    inbox: VecDeque<Coming>,
    local: Turns<(Envelope, Message)>,
    touched: Vec<NodeId>,
    outgoing: Vec<Outgoing>,
    slept: bool,
    /// Whether it looked for work when some came, on a core where nobody had any.
    looks: bool,
    /// What having its core costs the pass that begins.
    to_pay: Duration,
    on_core_since: Time,
    spins_since: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    Asleep,
    Waking,
    /// Waits for a core.
    Ready,
    Running,
    /// On a core, without work.
    Spinning,
    /// Off it, without work.
    Yielding,
}

/// What waits to be written to another process.
struct Outgoing {
    to: usize,
    in_datagrams: bool,
    bytes: u64,
    frames: Vec<Frame>,
}

/// What waits for the next pass.
enum Coming {
    /// From a process on a core, over its connection.
    Frame((usize, u32), Frame),
    /// From run control, or over another host's network.
    Message(Envelope, Message),
    Input(NodeId, Arriving),
}

struct Cores {
    free: Vec<u32>,
    ready: VecDeque<usize>,
}

impl Driver {
    /// A pass of a process, without what there is to do in it.
    fn look(&self, process: &Process) -> Duration {
        self.pass + self.pass_component * process.components + self.pass_connection * process.connections
    }

    fn carrying(&self, in_datagrams: bool) -> Carrying {
        if in_datagrams { self.datagrams } else { self.connections }
    }
}

impl Drivers {
    pub(super) fn new(driver: Driver, hosts: &Hosts) -> Self {
        let of_process = |process: usize| hosts.applications.iter().filter(move |of| **of == process).count() as u32;
        let processes = hosts.processes.iter().enumerate().map(|(index, &host)| {
            // One of them leads to run control.
            let others = hosts.processes.len() as u32 - 1;
            let connections = if others == 0 { 0 } else { others + 1 };
            Process::new((host, hosts.bound[index]), of_process(index), connections)
        });
        let cores = |&count: &u32| Cores { free: (0..count).rev().collect(), ready: VecDeque::new() };
        Self {
            driver,
            of: hosts.applications.clone(),
            processes: processes.collect(),
            hosts: hosts.cores.iter().map(cores).collect(),
            busy: Duration::ZERO,
            sent: 0,
        }
    }

    /// Processor time that was taken in all.
    pub(super) fn busy(&self) -> Duration {
        self.busy
    }

    fn process_of(&self, node: NodeId) -> usize {
        self.of[usize::from(node.0) - 1]
    }

    /// Takes the one that has waited longest of those for which there is a core, and that core.
    fn next_ready(&mut self, host: usize) -> Option<(usize, u32)> {
        let Self { processes, hosts, .. } = self;
        let Cores { free, ready } = &mut hosts[host];
        let place_for = |process: usize| match processes[process].bound {
            Some(bound) => free.iter().position(|core| *core == bound),
            None => free.len().checked_sub(1),
        };
        let (waits, place) =
            ready.iter().enumerate().find_map(|(waits, process)| Some((waits, place_for(*process)?)))?;
        Some((ready.remove(waits)?, free.swap_remove(place)))
    }

    /// Whether a process waits that may run on a core.
    fn is_wanted(&self, host: usize, core: u32) -> bool {
        let may = |process: &usize| self.processes[*process].bound.is_none_or(|bound| bound == core);
        self.hosts[host].ready.iter().any(may)
    }

    /// Whether nobody has work on the core that a process had last.
    fn has_free_core(&self, process: usize) -> bool {
        let Process { host, core, .. } = self.processes[process];
        self.hosts[host].free.contains(&core)
    }

    /// How long processes of a core look for work in vain before one that has some has its turn, taken out of those
    /// that wait. They let each other run one after the other. In the mean that takes half a round where nobody else
    /// has work, and less where several wait.
    fn looks_in_vain(&self, process: usize, core: u32) -> Duration {
        let this = &self.processes[process];
        let is_here = |other: &&Process| other.host == this.host && other.core == core;
        let looking =
            self.processes.iter().filter(is_here).filter(|other| other.state == ThreadState::Yielding).count() as u32;
        let waiting =
            self.hosts[this.host].ready.iter().filter(|other| is_here(&&self.processes[**other])).count() as u32;
        let own = u32::from(this.looks);
        let switches = if looking > 0 { self.driver.switch * (looking + own) } else { Duration::ZERO };
        (self.driver.look(this) * (looking + own) + switches) / (waiting + 2)
    }

    fn change(&mut self, process: usize, state: ThreadState) -> u64 {
        let process = &mut self.processes[process];
        process.state = state;
        process.changes += 1;
        process.changes
    }
}

impl Process {
    fn new((host, bound): (usize, Option<u32>), components: u32, connections: u32) -> Self {
        Self {
            host,
            bound,
            core: 0,
            components,
            connections,
            state: ThreadState::Asleep,
            changes: 0,
            inbox: VecDeque::new(),
            local: Turns::new(),
            touched: Vec::new(),
            outgoing: Vec::new(),
            slept: false,
            looks: false,
            to_pay: Duration::ZERO,
            on_core_since: Time::ZERO,
            spins_since: Time::ZERO,
        }
    }

    fn has_work(&self) -> bool {
        !(self.inbox.is_empty() && self.local.is_empty() && self.touched.is_empty() && self.outgoing.is_empty())
    }
}

impl World {
    fn drivers(&mut self) -> &mut Drivers {
        self.drivers.as_mut().expect("a world with drivers")
    }

    /// The process that computes now is busy for that much longer.
    pub(super) fn charge(&mut self, cost: Duration) {
        self.now = self.now + cost;
        self.drivers().busy += cost;
    }

    /// Something for a component that does not come from a process of its host.
    pub(super) fn comes_in(&mut self, to: NodeId, arriving: Arriving) {
        let drivers = self.drivers();
        let process = drivers.process_of(to);
        drivers.processes[process].inbox.push_back(match arriving {
            Arriving::Message(envelope, message) => Coming::Message(envelope, message),
            other => Coming::Input(to, other),
        });
        self.notify(process);
    }

    pub(super) fn frames_come(&mut self, from: usize, to: usize, frames: Vec<Frame>) {
        let drivers = self.drivers();
        // It has not moved since, or another core has its caches by now.
        let from = (from, drivers.processes[from].core);
        let inbox = &mut drivers.processes[to].inbox;
        inbox.extend(frames.into_iter().map(|frame| Coming::Frame(from, frame)));
        self.notify(to);
    }

    /// A component has to be flushed in this pass, or in one that begins for it.
    pub(super) fn touch(&mut self, node: NodeId) {
        let drivers = self.drivers();
        let process = drivers.process_of(node);
        drivers.processes[process].touched.push(node);
        self.notify(process);
    }

    /// A message of a component, whose process is at work.
    pub(super) fn hand_out(&mut self, envelope: Envelope, message: Message) {
        let drivers = self.drivers();
        let (from, to) = (drivers.process_of(envelope.from), drivers.process_of(envelope.to));
        drivers.sent += WorkKind::of(&message).1 as u64;
        if from == to {
            return drivers.processes[from].local.push(envelope.to, (envelope, message));
        }
        let driver = drivers.driver;
        let (len_bytes, in_datagrams) = (self.length(&envelope, &message), self.in_datagrams(&message));
        let costs = driver.carrying(in_datagrams);
        self.charge(costs.encode);
        let outgoing = &mut self.drivers().processes[from].outgoing;
        let before = outgoing.iter().position(|other| (other.to, other.in_datagrams) == (to, in_datagrams));
        let place = before.unwrap_or_else(|| {
            outgoing.push(Outgoing { to, in_datagrams, bytes: 0, frames: Vec::new() });
            outgoing.len() - 1
        });
        outgoing[place].bytes += u64::from(len_bytes);
        outgoing[place].frames.push((envelope, message, len_bytes));
        if !in_datagrams && driver.batch_bytes.is_some_and(|batch_bytes| outgoing[place].bytes >= batch_bytes) {
            let batch = outgoing.remove(place);
            self.write_to(from, costs.write, batch);
        }
    }

    fn notify(&mut self, process: usize) {
        let now = self.now;
        let drivers = self.drivers();
        let wake = drivers.driver.wake;
        match drivers.processes[process].state {
            ThreadState::Asleep => {
                drivers.change(process, ThreadState::Waking);
                drivers.processes[process].slept = true;
                self.schedule(now + wake, What::Turn(Turn::Wakes(process)));
            }
            ThreadState::Spinning => {
                drivers.busy += now.since(drivers.processes[process].spins_since);
                drivers.change(process, ThreadState::Running);
                self.schedule(now, What::Turn(Turn::Begins(process)));
            }
            ThreadState::Yielding => {
                drivers.change(process, ThreadState::Waking);
                drivers.processes[process].looks = drivers.has_free_core(process);
                self.schedule(now, What::Turn(Turn::Wakes(process)));
            }
            ThreadState::Waking | ThreadState::Ready | ThreadState::Running => {}
        }
    }

    pub(super) fn turn(&mut self, turn: Turn) {
        match turn {
            Turn::Wakes(process) => {
                let drivers = self.drivers();
                drivers.change(process, ThreadState::Ready);
                let host = drivers.processes[process].host;
                drivers.hosts[host].ready.push_back(process);
                self.give_core(host);
            }
            Turn::Begins(process) => self.pass(process),
            Turn::Ends(process) => self.go_on(process),
            Turn::Yielded(process, change) => {
                let drivers = self.drivers();
                if drivers.processes[process].changes == change {
                    drivers.change(process, ThreadState::Asleep);
                }
            }
        }
    }

    /// The next process that waits for a core of a host has one, if it is free.
    fn give_core(&mut self, host: usize) {
        let now = self.now;
        let drivers = self.drivers();
        let Driver { switch, sleep, .. } = drivers.driver;
        let Some((process, core)) = drivers.next_ready(host) else { return };
        let in_vain = drivers.looks_in_vain(process, core);
        drivers.change(process, ThreadState::Running);
        let next = &mut drivers.processes[process];
        next.core = core;
        next.on_core_since = now + in_vain;
        let slept = core::mem::take(&mut next.slept);
        next.looks = false;
        next.to_pay = if slept { switch + sleep } else { switch };
        self.schedule(now + in_vain, What::Turn(Turn::Begins(process)));
    }

    /// A pass is over: there is another one, or another process has the core.
    fn go_on(&mut self, process: usize) {
        let now = self.now;
        let drivers = self.drivers();
        let Driver { slice, spins, .. } = drivers.driver;
        let this = &mut drivers.processes[process];
        let host = this.host;
        if this.has_work() {
            let core = this.core;
            if now.since(this.on_core_since) < slice || !drivers.is_wanted(host, core) {
                return self.pass(process);
            }
            drivers.change(process, ThreadState::Ready);
            drivers.hosts[host].ready.push_back(process);
            drivers.hosts[host].free.push(core);
            return self.give_core(host);
        }
        if !spins {
            return self.release_core(process);
        }
        this.spins_since = now;
        drivers.change(process, ThreadState::Spinning);
    }

    fn release_core(&mut self, process: usize) {
        let now = self.now;
        let drivers = self.drivers();
        let yields = drivers.driver.yields;
        let host = drivers.processes[process].host;
        let change = drivers.change(process, ThreadState::Yielding);
        let core = drivers.processes[process].core;
        drivers.hosts[host].free.push(core);
        self.schedule(now + yields, What::Turn(Turn::Yielded(process, change)));
        self.give_core(host);
    }

    /// All that is there, in the order of a live driver.
    fn pass(&mut self, process: usize) {
        let drivers = self.drivers();
        let driver = drivers.driver;
        let this = &mut drivers.processes[process];
        let inbox = core::mem::take(&mut this.inbox);
        let pass = driver.look(this) + core::mem::take(&mut this.to_pay);
        self.charge(pass);
        let core = self.drivers().processes[process].core;
        let inputs = self.receive(&driver, core, inbox);
        self.flush_touched(process);
        self.deliver_local(process, driver.local);
        for (to, arriving) in inputs {
            self.give(to, arriving);
        }
        self.flush_touched(process);
        self.write(process);
        self.schedule(self.now, What::Turn(Turn::Ends(process)));
    }

    /// What has come over connections, requests for building last; what else has come is left for later in the pass.
    fn receive(&mut self, driver: &Driver, core: u32, inbox: VecDeque<Coming>) -> Vec<(NodeId, Arriving)> {
        let (mut sources, mut for_building, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        for coming in inbox {
            let (envelope, message) = match coming {
                Coming::Frame((source, from), (envelope, message, len_bytes)) => {
                    let in_datagrams = self.in_datagrams(&message);
                    let costs = driver.carrying(in_datagrams);
                    let source = if in_datagrams { None } else { Some(source) };
                    let is_far = from != core;
                    if !sources.contains(&source) {
                        sources.push(source);
                        self.charge(costs.read + if is_far { costs.far / 2 } else { Duration::ZERO });
                    }
                    let each_kib = costs.read_kib + if is_far { costs.far_kib / 2 } else { Duration::ZERO };
                    self.charge(costs.decode + of_bytes(each_kib, u64::from(len_bytes)));
                    (envelope, message)
                }
                Coming::Message(envelope, message) => {
                    if envelope.from != RUN_CONTROL {
                        let bytes = message.bulk().map_or(0, Bulk::len) as u64;
                        let costs = driver.connections;
                        self.charge(costs.read + costs.decode + of_bytes(costs.read_kib, bytes));
                    }
                    (envelope, message)
                }
                Coming::Input(to, arriving) => {
                    inputs.push((to, arriving));
                    continue;
                }
            };
            if matches!(message, Message::EventRequest { .. }) {
                for_building.push((envelope, message));
            } else {
                self.deliver_at_cost(envelope, message);
            }
        }
        for_building.into_iter().for_each(|(envelope, message)| self.deliver_at_cost(envelope, message));
        inputs
    }

    fn deliver_local(&mut self, process: usize, each: Duration) {
        let end = self.now + LOCAL_TIME_PER_PASS;
        for _ in 0..LOCAL_MESSAGES_PER_PASS {
            let Some((envelope, message)) = self.drivers().processes[process].local.next_item() else {
                if self.flush_touched(process) {
                    continue;
                }
                return;
            };
            self.charge(each);
            self.deliver_at_cost(envelope, message);
            self.end_turn(process);
            if self.now > end {
                return;
            }
        }
    }

    fn deliver_at_cost(&mut self, envelope: Envelope, message: Message) {
        let cost = self.cost_of_message(&envelope, &message) + self.slowness(envelope.to);
        self.charge(cost);
        self.deliver(&envelope, message);
    }

    /// Gives an input that costs what its kind costs.
    pub(super) fn input_at_cost(&mut self, to: NodeId, input: Input) {
        let cost = self.setup.costs.of_input(self.slot(to).app.role, &input) + self.slowness(to);
        self.charge(cost);
        self.input(to, input);
    }

    fn give(&mut self, to: NodeId, arriving: Arriving) {
        match arriving {
            Arriving::Input(incarnation, input) => {
                if input == Input::Deadline {
                    self.slot_mut(to).woken = false;
                }
                if self.slot(to).incarnation == incarnation {
                    self.input_at_cost(to, input);
                }
            }
            Arriving::Fragments(incarnation, all) => {
                self.charge(self.cost_of_fragments(to, &all));
                self.input_fragments(to, incarnation, *all);
            }
            Arriving::Pushed(incarnation, batch) => {
                self.charge(self.cost_of_batch(to, &batch));
                self.input_pushed(to, incarnation, batch);
            }
            Arriving::Message(..) => unreachable!("messages are taken before"),
        }
    }

    fn slowness(&self, of: NodeId) -> Duration {
        self.slot(of).slow.filter(|(until, _)| self.now < *until).map_or(Duration::ZERO, |(_, each)| each)
    }

    /// What components gathered in this pass goes out. Whether there was any.
    fn flush_touched(&mut self, process: usize) -> bool {
        let touched = core::mem::take(&mut self.drivers().processes[process].touched);
        let any = !touched.is_empty();
        touched.into_iter().for_each(|node| self.flush_at_cost(node));
        any
    }

    /// Of those that were flushed in their turn nothing is left to go.
    fn flush_at_cost(&mut self, node: NodeId) {
        if !self.slot(node).flushes {
            return;
        }
        let before = self.drivers().sent;
        self.flush(node);
        let sent = self.drivers().sent - before;
        let cost = self.setup.costs.of_flush(self.slot(node).app.role, sent as usize);
        self.charge(cost);
    }

    /// As live: some components send what they have gathered when they have got all that waited for them.
    fn end_turn(&mut self, process: usize) {
        let Some(node) = self.drivers().processes[process].local.ending() else { return };
        if is_flushed_in_turn(self.slot(node).app.role) {
            self.flush_at_cost(node);
        }
    }

    /// What the pass has produced goes to other processes, to each in one go.
    fn write(&mut self, process: usize) {
        let drivers = self.drivers();
        let driver = drivers.driver;
        let outgoing = core::mem::take(&mut drivers.processes[process].outgoing);
        let mut datagrams_before = false;
        for to_one in outgoing {
            let in_datagrams = to_one.in_datagrams;
            let costs = driver.carrying(in_datagrams);
            let once = if in_datagrams && datagrams_before { Duration::ZERO } else { costs.write };
            datagrams_before |= in_datagrams;
            self.write_to(process, once, to_one);
        }
    }

    /// Hands what waits for another process over, which takes this long whatever it is. It can be read there segment by
    /// segment, while the rest is still being written.
    fn write_to(&mut self, process: usize, once: Duration, Outgoing { to, in_datagrams, frames, .. }: Outgoing) {
        let drivers = self.drivers();
        let costs = drivers.driver.carrying(in_datagrams);
        let is_far = drivers.processes[to].core != drivers.processes[process].core;
        let (far, far_kib) = if is_far { (costs.far / 2, costs.far_kib / 2) } else { Default::default() };
        self.charge(once + far);
        let (mut segment, mut bytes) = (Vec::new(), 0);
        for frame in frames {
            bytes += u64::from(frame.2);
            segment.push(frame);
            if bytes >= SEGMENT_BYTES {
                self.charge(of_bytes(costs.write_kib + far_kib, core::mem::take(&mut bytes)));
                self.depart(process, to, core::mem::take(&mut segment));
            }
        }
        self.charge(of_bytes(costs.write_kib + far_kib, bytes));
        if !segment.is_empty() {
            self.depart(process, to, segment);
        }
    }

    fn in_datagrams(&self, message: &Message) -> bool {
        match &self.setup.wire {
            Wire::Ethernet(ethernet) => ethernet.datagrams.carry(message),
            Wire::Links { .. } => false,
        }
    }

    fn depart(&mut self, from: usize, to: usize, frames: Vec<Frame>) {
        let now = self.now;
        let drivers = self.drivers();
        let (same_host, latency) = (drivers.processes[from].host == drivers.processes[to].host, drivers.driver.latency);
        if same_host && self.arrivals.splits.is_empty() {
            return self.schedule(now + latency, What::Frames { from, to, frames });
        }
        for (envelope, message, len_bytes) in frames {
            if same_host && self.split_until(envelope.from, envelope.to).is_none() {
                let frames = vec![(envelope, message, len_bytes)];
                self.schedule(now + latency, What::Frames { from, to, frames });
            } else {
                self.schedule(now, What::Send(envelope, message));
            }
        }
    }
}

fn of_bytes(each_kib: Duration, bytes: u64) -> Duration {
    Duration::from_nanos((each_kib.as_nanos() as u64).saturating_mul(bytes) / 1024)
}

/// The kernel hands a long write over in segments of up to 64 KiB, which a reply of the longest group nearly fills. The
/// receiver copies one while the sender copies the next.
const SEGMENT_BYTES: u64 = 60 << 10;
/// As live: bounds of a pass within a process.
const LOCAL_MESSAGES_PER_PASS: usize = 4096;
const LOCAL_TIME_PER_PASS: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_without_work_let_others_wait_while_they_look() {
        let (look, switch) = (Duration::from_nanos(100), Duration::from_nanos(300));
        let hosts = Hosts { cores: vec![1], processes: vec![0; 3], applications: vec![0, 1, 2], bound: vec![None; 3] };
        let mut drivers = Drivers::new(Driver { pass: look, switch, ..Driver::default() }, &hosts);
        assert_eq!(drivers.looks_in_vain(0, 0), Duration::ZERO, "the others sleep");
        drivers.processes[0].looks = true;
        assert_eq!(drivers.looks_in_vain(0, 0), look / 2, "it is alone on its core");
        for other in [1, 2] {
            drivers.change(other, ThreadState::Yielding);
        }
        assert_eq!(drivers.looks_in_vain(0, 0), (look + switch) * 3 / 2);
        assert_eq!(drivers.looks_in_vain(0, 1), look / 2, "they have another core");
        drivers.processes[0].looks = false;
        assert_eq!(drivers.looks_in_vain(0, 0), look + switch, "another one had the core");
        drivers.change(2, ThreadState::Ready);
        drivers.hosts[0].ready.push_back(2);
        assert_eq!(drivers.looks_in_vain(0, 0), (look + switch) / 3, "they look between those that have work");
    }
}
