//! The virtual-time world: real components, modelled networks, hosts and work, one event queue.
//!
//! A run is a function of its [`Setup`]: the same setup gives the same trace, to the last message. A world hosts the same
//! components as a live run, each behind its [`Node`], conducted by the same [`Controller`].

mod again;
mod clock;
mod costs;
mod detectors;
mod driver;
mod hosts;
mod joining;
mod joins;
mod lives;
mod monitor;
mod outcomes;
mod pausing;
mod processors;
mod sending;
mod setup;
mod sources;
mod trace;
mod wire;
mod work;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use assembly::bounds::Bounds;
use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId, Role};
use base::random::Random;
use base::time::Time;
use control::controller::{Application, Controller, RunLimits};
use dataflow::component::{Action, Input, Outbox};
use dataflow::message::{Command, Envelope, FileRecord, Message};
use dataflow::node::{Node, RUN_CONTROL, route};
use dataflow::readout::fragment::{FragmentCheck, FragmentHead};
use dataflow::report;

use crate::engine::{Instant, Queue};
use crate::network::Step;
use crate::slab::Slab;
use clock::Clock;
use driver::{Drivers, Frame, Turn};
use joining::{JoinEvent, Joining};
use monitor::Monitor;
use pausing::Pausing;
use processors::Processors;
use setup::BEGINNING;
use sources::{Batch, SourceEvent, Sources};

pub use again::Processes;
pub use costs::{Cost, Costs};
pub use detectors::{Beam, Chunking, Detectors, Doings, Habits, Handed, Rhythm, Says, Source, Telling};
pub use driver::{Carrying, Driver};
pub use hosts::Hosts;
pub use joins::{Impostor, JoinFault, Joins, Moment};
pub use monitor::{Decided, Pushed};
pub use outcomes::{Outcomes, Struck, Troubles};
pub use setup::{Course, Effort, Fault, Outside, Place, Planted, Setup, Watched};
pub use trace::Trace;
pub use wire::{Datagrams, Ethernet, Links, Port, Strays, TypeSet, Wire};

/// A partition in virtual time.
pub struct World {
    setup: Setup,
    now: Time,
    random: Random,
    slots: Vec<Slot>,
    /// Of all applications by node id, run control included.
    roles: Arc<[Role]>,
    readout: Vec<NodeId>,
    direction: Direction,
    agenda: Agenda,
    processors: Processors,
    drivers: Option<Drivers>,
    /// Those that join; without it applications know each other at once.
    joining: Option<Joining>,
    arrivals: Arrivals,
    /// What gives the fragments of each link of each application their event number.
    checks: Vec<Vec<FragmentCheck>>,
    harm: Harm,
    trace: Trace,
    monitor: Monitor,
    sources: Sources,
    pausing: Pausing,
    /// What the planted bug has come across.
    planted: u64,
    tally: Tally,
    out: Outbox,
    acting: Acting,
    encoded: Vec<u8>,
}

/// Run control, and what it waits for.
struct Direction {
    controller: Controller,
    /// When it wants to be called.
    wake: Option<Time>,
    /// When triggers were first allowed.
    began: Time,
}

/// What is still to happen.
#[derive(Default)]
struct Agenda {
    queue: Queue<Event>,
    pending: Slab<What>,
}

/// What the plan has done to the run.
#[derive(Default)]
struct Harm {
    /// Applications that died or hang.
    touched: Vec<NodeId>,
    /// The run was ended by force.
    forced: bool,
}

/// The actions of a component are carried out.
#[derive(Default)]
struct Acting {
    /// At this moment.
    acts: bool,
    /// What arrived meanwhile, and costs nothing: in its turn, else what an action leads to would overtake the actions behind it.
    behind: VecDeque<(NodeId, Arriving)>,
}

/// When what is on its way arrives.
struct Arrivals {
    /// When the last reliable message of a pair arrives: they keep their order.
    pairs: Vec<Time>,
    /// By pair and type, for those that have connections of their own.
    types: BTreeMap<(NodeId, NodeId, u16), Time>,
    /// When the last fragment of a link, or the last work of a kind, arrives.
    work: BTreeMap<(NodeId, u16), Time>,
    /// When the ports to event builders have sent what they hold.
    ports: BTreeMap<NodeId, Time>,
    /// Until when which nodes are parted from the others.
    splits: Vec<(Time, Vec<NodeId>)>,
}

/// What has happened so far.
#[derive(Default)]
struct Tally {
    steps: u64,
    inputs: u64,
    network: report::Network,
    troubles: Troubles,
    struck: Vec<Struck>,
}

struct Slot {
    app: Application,
    node: Option<Node>,
    incarnation: Incarnation,
    gone: bool,
    hangs: bool,
    wake: Option<Time>,
    /// Whether the end of its pass is scheduled.
    flushes: bool,
    /// When its pass began.
    pass_began: Time,
    /// The time that the component asked for has come, and waits for the processor.
    woken: bool,
    /// The time that the component asked for last.
    asked: Option<Time>,
    /// How late its life was called at the worst, by its clock.
    late: Duration,
    clock: Clock,
    /// Until when every input takes longer, and by how much.
    slow: Option<(Time, Duration)>,
    /// Until when its disk is full.
    full_until: Time,
    /// All events in its files, in the order of writing.
    recorded: Vec<Written>,
    /// So many of them are in files that it has closed.
    in_closed: usize,
    /// So many of the last of them the disk may not have yet.
    unsynced: usize,
    /// Files that it has closed.
    closed: Vec<FileRecord>,
    /// All that run control said to it; a new life is told again.
    commands: Vec<Command>,
}

/// An event in the files of a recorder.
struct Written {
    event: EventId,
    /// Its streams: one bit each, none for the debug stream.
    streams: u32,
    bytes: u64,
}

enum Event {
    /// What is pending under this number.
    Pending(u32),
    /// A step of the network.
    Network(Step),
}

impl From<Step> for Event {
    fn from(step: Step) -> Self {
        Self::Network(step)
    }
}

enum What {
    /// Held back by a split, and sent when that ends.
    Send(Envelope, Message),
    /// Something arrives at an application.
    Arrives(NodeId, Arriving),
    /// Its processor is through with it.
    Served(NodeId, Arriving),
    ToController(Envelope, Message),
    /// The rest of a long message has still to be written, which takes this long.
    Write(NodeId, Duration),
    Wake(NodeId),
    Flush(NodeId),
    /// A process goes on.
    Turn(Turn),
    /// What a process has written comes to another.
    Frames {
        from: usize,
        to: usize,
        frames: Vec<Frame>,
    },
    Begin,
    WakeController,
    Fault(usize),
    Resume,
    Appear(NodeId),
    Join(JoinEvent),
    Source(SourceEvent),
}

enum Arriving {
    Message(Envelope, Message),
    /// For this life only.
    Input(Incarnation, Input),
    /// The fragments of an event from all links, then the end of reading out.
    Fragments(Incarnation, Box<Fragments>),
    /// What was taken from a link that pushes.
    Pushed(Incarnation, Batch),
}

struct Fragments {
    ticket: dataflow::component::Ticket,
    events: usize,
    fragments: Vec<(u16, FragmentHead, Bulk)>,
}

impl World {
    /// A world before its first moment.
    pub fn new(setup: Setup) -> Self {
        let applications = setup.applications.clone();
        let controller = Controller::new(applications.clone());
        let of = |role: Role| applications.iter().filter(move |app| app.role == role).map(|app| app.node);
        let readout = setup.readout.clone();
        let monitor = Monitor::new(setup.checks, setup.withheld.clone(), of(Role::Sfi));
        let pairs = (applications.len() + 1) * (applications.len() + 1);
        Self {
            now: BEGINNING,
            random: Random::new(setup.seed ^ 0x5eed),
            roles: core::iter::once(Role::RunControl).chain(applications.iter().map(|app| app.role)).collect(),
            slots: applications.into_iter().map(Slot::new).collect(),
            readout,
            direction: Direction { controller, wake: None, began: Time::ZERO },
            agenda: Agenda::default(),
            processors: Processors::new(&setup.hosts),
            joining: setup.course.joins.as_ref().map(|joins| Joining::new(joins, &setup)),
            drivers: setup.driver.map(|driver| Drivers::new(driver, &setup.hosts)),
            arrivals: Arrivals {
                pairs: vec![Time::ZERO; pairs],
                types: BTreeMap::new(),
                work: BTreeMap::new(),
                ports: BTreeMap::new(),
                splits: Vec::new(),
            },
            checks: vec![Vec::new(); setup.applications.len()],
            harm: Harm::default(),
            trace: Trace::None,
            monitor,
            sources: Sources::new(&setup.detectors, setup.seed),
            pausing: Pausing::default(),
            planted: 0,
            tally: Tally::default(),
            out: Outbox::new(),
            acting: Acting::default(),
            encoded: Vec::new(),
            setup,
        }
    }

    /// The same, with every message noted as it arrives.
    #[must_use]
    pub fn traced(self, trace: Trace) -> Self {
        Self { trace, ..self }
    }

    /// The same; more than this on the way is a violation.
    #[must_use]
    pub fn bounded(mut self, bounds: Bounds) -> Self {
        self.monitor.bounded(bounds);
        self
    }

    /// Runs to the end.
    ///
    /// # Panics
    /// If a component finds its state inconsistent, or the run does not end.
    pub fn run(mut self) -> Outcomes {
        self.run_to_end();
        self.settle_joining();
        self.conclude()
    }

    fn run_to_end(&mut self) {
        let goes_on = self.only_joins();
        if goes_on {
            self.lead_on();
        }
        self.start_sources();
        if goes_on {
            self.configure_joined();
        } else if self.joining.is_some() {
            self.start_processes();
        } else {
            self.appear_all();
        }
        while !self.direction.controller.has_ended() {
            self.step();
        }
    }

    /// Applications know each other at once, and run control starts the run a while later; those that are late come into it.
    fn appear_all(&mut self) {
        for index in 0..self.slots.len() {
            let node = self.slots[index].app.node;
            let late = self.setup.course.late.iter().find(|(late, _)| *late == node).map(|(_, after)| *after);
            match late {
                Some(after) => self.schedule(self.now + after, What::Appear(node)),
                None => self.appear(node),
            }
        }
        let begin = self.now + self.setup.time_to_connect;
        // A fault comes later: a run does not begin with an application that is dead.
        self.schedule(begin, What::Begin);
        for index in 0..self.setup.course.faults.len() {
            self.schedule(begin + self.setup.course.faults[index].0, What::Fault(index));
        }
    }

    /// What is pending next until then, of what nothing else is done with.
    fn next_until(&mut self, until: Time) -> Option<What> {
        loop {
            let event = self.agenda.queue.pop()?;
            self.now = self.agenda.queue.now().to_time();
            if self.now > until {
                return None;
            }
            if let Event::Pending(index) = event {
                return Some(self.agenda.pending.remove(index));
            }
        }
    }

    fn step(&mut self) {
        let event = self.agenda.queue.pop().expect("a run that has not ended has something to do");
        self.tally.steps += 1;
        assert!(self.tally.steps < self.setup.steps_max, "the run ends within {} steps", self.setup.steps_max);
        self.now = self.agenda.queue.now().to_time();
        match event {
            Event::Pending(index) => {
                let what = self.agenda.pending.remove(index);
                self.happen(what);
            }
            Event::Network(step) => self.step_network(step),
        }
    }

    /// Most steps are a frame's, to which nothing comes but the next one.
    fn step_network(&mut self, step: Step) {
        let Wire::Ethernet(ethernet) = &mut self.setup.wire else { return };
        ethernet.network.step(&mut self.agenda.queue, step);
        if ethernet.network.has_outcome() {
            self.take_outcomes();
        }
    }

    // Apart from the steps of the network, which need nothing of it.
    #[inline(never)]
    fn happen(&mut self, what: What) {
        match what {
            What::Send(envelope, message) => self.send_late(envelope, message),
            What::Arrives(to, arriving) => self.arrives(to, arriving),
            What::Served(to, arriving) => self.served(to, arriving),
            What::ToController(envelope, message) => self.tell_controller(&envelope, message),
            What::Wake(to) => {
                if self.slot(to).wake == Some(self.now) {
                    let slot = self.slot_mut(to);
                    slot.wake = None;
                    slot.woken = true;
                    let incarnation = slot.incarnation;
                    self.arrives(to, Arriving::Input(incarnation, Input::Deadline));
                }
            }
            What::Write(from, left) => self.write_on(from, left),
            What::Flush(of) => self.flush(of),
            What::Turn(turn) => self.turn(turn),
            What::Frames { from, to, frames } => self.frames_come(from, to, frames),
            What::Begin => {
                self.direction.began = self.now;
                self.doom_sources();
                let limits =
                    RunLimits { duration: self.setup.course.duration, stop_timeout: self.setup.course.stop_timeout };
                self.with_controller(|controller, now, out| {
                    let begun = controller
                        .boot()
                        .and_then(|()| controller.joined())
                        .and_then(|()| controller.configure(limits));
                    let begun = begun.and_then(|()| controller.connect()).and_then(|()| controller.start(now, out));
                    begun.expect("a world has one run");
                });
            }
            What::WakeController => {
                if self.direction.wake == Some(self.now) {
                    self.direction.wake = None;
                    self.with_controller(Controller::on_deadline);
                }
            }
            What::Fault(index) => self.strike(index),
            What::Resume => self.resume(),
            What::Appear(node) => self.appear(node),
            What::Join(event) => self.on_join_event(event),
            What::Source(event) => self.on_source_event(event),
        }
        while let Some((to, arriving)) = self.acting.behind.pop_front() {
            self.served(to, arriving);
        }
    }

    /// Waits for the processor, if it is busy or the input costs anything.
    fn arrives(&mut self, to: NodeId, arriving: Arriving) {
        if self.drivers.is_some() {
            return self.comes_in(to, arriving);
        }
        let slot = &self.slots[usize::from(to.0) - 1];
        let role = slot.app.role;
        let mut cost = match &arriving {
            Arriving::Message(envelope, message) => self.cost_of_message(envelope, message),
            Arriving::Input(_, input) => self.setup.costs.of_input(role, input),
            Arriving::Fragments(_, fragments) => self.cost_of_fragments(to, fragments),
            Arriving::Pushed(_, batch) => self.cost_of_batch(to, batch),
        };
        if let Some((until, each)) = slot.slow
            && self.now < until
        {
            cost += each;
        }
        match self.processors.take(usize::from(to.0) - 1, self.now, cost) {
            None if self.acting.acts => self.acting.behind.push_back((to, arriving)),
            None => self.served(to, arriving),
            Some(at) => self.schedule(at, What::Served(to, arriving)),
        }
    }

    fn cost_of_message(&self, envelope: &Envelope, message: &Message) -> Duration {
        let fragments = usize::from(self.setup.outside.links(envelope.from)).max(1);
        self.setup.costs.of_message(self.slot(envelope.to).app.role, message, fragments)
    }

    fn cost_of_fragments(&self, of: NodeId, all: &Fragments) -> Duration {
        let bytes = all.fragments.iter().map(|(_, head, _)| head.len_bytes as usize).sum();
        self.setup.costs.of_fragments(self.slot(of).app.role, all.events, all.fragments.len(), bytes)
    }

    fn cost_of_batch(&self, of: NodeId, batch: &Batch) -> Duration {
        let (count, bytes) = batch.size();
        self.setup.costs.of_fragments(self.slot(of).app.role, 0, count, bytes)
    }

    fn served(&mut self, to: NodeId, arriving: Arriving) {
        match arriving {
            Arriving::Message(envelope, message) => self.deliver(&envelope, message),
            Arriving::Input(incarnation, input) => {
                if input == Input::Deadline {
                    self.slot_mut(to).woken = false;
                }
                if self.slot(to).incarnation == incarnation {
                    self.input(to, input);
                }
            }
            Arriving::Fragments(incarnation, fragments) => self.input_fragments(to, incarnation, *fragments),
            Arriving::Pushed(incarnation, batch) => self.input_pushed(to, incarnation, batch),
        }
    }

    fn deliver(&mut self, envelope: &Envelope, message: Message) {
        let now = self.now;
        self.trace.note(now, envelope, &message, &mut self.encoded);
        if self.slot(envelope.to).hangs {
            return;
        }
        // What was said to a former life is not heard.
        let is_heard = self.slot(envelope.to).incarnation == envelope.to_incarnation;
        let command = if let Message::Command(command) = message { Some(command).filter(|_| is_heard) } else { None };
        if let Some(command) = command {
            self.before_command(envelope.to, command);
        }
        let slot = &mut self.slots[usize::from(envelope.to.0) - 1];
        let time = slot.reads_clock(now);
        let mut out = core::mem::take(&mut self.out);
        let is_unheard = command == Some(Command::Pause) && self.setup.planted == Some(Planted::UnheardPause);
        self.monitor.comes(envelope, &message);
        self.note_slices(envelope, &message);
        let slot = &mut self.slots[usize::from(envelope.to.0) - 1];
        if let Some(node) = slot.node.as_mut().filter(|_| !is_unheard) {
            self.tally.inputs += 1;
            self.tally.network.messages += 1;
            node.receive(time, envelope, message, &mut out);
        }
        if let Some(command) = command {
            self.after_command(envelope.to, command);
        }
        self.after(envelope.to, &mut out);
        self.out = out;
    }

    fn input(&mut self, to: NodeId, input: Input) {
        let now = self.now;
        let slot = &mut self.slots[usize::from(to.0) - 1];
        if slot.hangs {
            return;
        }
        let time = slot.reads_clock(now);
        let mut out = core::mem::take(&mut self.out);
        if let Some(node) = &mut slot.node {
            self.tally.inputs += 1;
            node.handle(time, input, &mut out);
        }
        self.after(to, &mut out);
        self.out = out;
    }

    /// The end of a pass: what the component gathered in it goes out.
    fn flush(&mut self, of: NodeId) {
        let now = self.now;
        let slot = &mut self.slots[usize::from(of.0) - 1];
        slot.flushes = false;
        if slot.hangs {
            return;
        }
        let time = slot.reads_clock(now);
        let mut out = core::mem::take(&mut self.out);
        if let Some(node) = &mut slot.node {
            node.flush(time, &mut out);
        }
        self.carry_out(of, &mut out);
        self.out = out;
    }

    /// Carries out actions, and sees to it that the pass ends: when the process has nothing more to do, or a little later.
    fn after(&mut self, of: NodeId, out: &mut Outbox) {
        let now = self.now;
        let slot = self.slot_mut(of);
        if !slot.flushes {
            slot.pass_began = slot.clock.at(now);
        }
        self.carry_out(of, out);
        if !core::mem::replace(&mut self.slot_mut(of).flushes, true) {
            if self.drivers.is_some() {
                return self.touch(of);
            }
            let lasts = self.setup.one_by_one && self.random.chance(0.5);
            let pass = if lasts { self.handover() } else { Duration::ZERO };
            let at = self.processors.free_at(usize::from(of.0) - 1).max(self.now) + pass;
            self.schedule(at, What::Flush(of));
        }
    }

    /// Carries out actions, checks the component, and arms its next deadline.
    fn carry_out(&mut self, from: NodeId, out: &mut Outbox) {
        let acted = core::mem::replace(&mut self.acting.acts, true);
        for action in out.drain() {
            match action {
                Action::Send { to, message } => {
                    self.charge_sending(from, &message);
                    self.send(from, to, message);
                }
                Action::Broadcast { to, message } => {
                    self.charge_sending(from, &message);
                    to.iter().for_each(|to| self.send(from, *to, message.clone()));
                }
                Action::MulticastToReadout(message) => {
                    self.charge_sending(from, &message);
                    self.multicast(from, message);
                }
                Action::Start { ticket, work } => self.work(from, ticket, work),
                Action::Link { rob, order } => self.order_source(from, rob, order),
                // Nobody is at a host here.
                Action::Show(_) => {}
                Action::Note(note) => self.monitor.noted(from, &note),
            }
        }
        self.acting.acts = acted;
        let checks = self.setup.checks;
        let forgets = self.forgets_deadlines(from);
        let slot = &mut self.slots[usize::from(from.0) - 1];
        let Some(node) = &slot.node else { return };
        if checks {
            node.check();
        }
        slot.asked = node.next_deadline();
        if slot.woken || forgets {
            return;
        }
        if let Some(deadline) = slot.asked {
            let at = slot.clock.when(deadline).max(self.now);
            if slot.wake.is_none_or(|wake| at < wake) {
                slot.wake = Some(at);
                self.schedule(at, What::Wake(from));
            }
        }
    }

    fn tell_controller(&mut self, envelope: &Envelope, message: Message) {
        self.trace.note_for_control(self.now, envelope, &message);
        if self.slot(envelope.from).incarnation == envelope.from_incarnation {
            let from = envelope.from;
            self.with_controller(|controller, now, out| controller.on_message(now, from, message, out));
        }
    }

    fn ask_for_samples(&mut self, watched: Watched) {
        let is_asked = |role| match role {
            Role::Sfi | Role::Efd => true,
            Role::Ros | Role::Ebif => watched == Watched::AllModules,
            _ => false,
        };
        let shows = self.slots.iter().map(|slot| &slot.app).filter(|app| is_asked(app.role));
        let shows: Vec<NodeId> = shows.map(|app| app.node).collect();
        let (command, run, at) = (Message::Command(Command::Sample), self.setup.run, self.now + self.links().latency);
        for to in shows {
            if self.joining.is_some() {
                self.command_joined(to, &command);
                continue;
            }
            let (from_incarnation, to_incarnation) = (Incarnation(0), self.slot(to).incarnation);
            let envelope = Envelope { from: RUN_CONTROL, to, run, from_incarnation, to_incarnation };
            self.schedule(at, What::Arrives(to, Arriving::Message(envelope, command.clone())));
        }
    }

    fn with_controller(&mut self, call: impl FnOnce(&mut Controller, Time, &mut Outbox)) {
        let mut out = Outbox::new();
        call(&mut self.direction.controller, self.now, &mut out);
        let mut sends = Vec::new();
        route(&mut out, &[], |to, message| sends.push((to, message)), |_| {});
        for (to, message) in sends {
            if self.joining.is_some() {
                self.command_joined(to, &message);
                continue;
            }
            let to_incarnation = self.slot(to).incarnation;
            let run = self.setup.run;
            let from_incarnation = Incarnation(0);
            let envelope = Envelope { from: RUN_CONTROL, to, run, from_incarnation, to_incarnation };
            if let Message::Command(command) = message {
                self.slot_mut(to).commands.push(command);
            }
            let at = self.arrival(RUN_CONTROL, to);
            self.schedule(at, What::Arrives(to, Arriving::Message(envelope, message)));
        }
        if let Some(deadline) = self.direction.controller.next_deadline() {
            let at = deadline.max(self.now);
            if self.direction.wake != Some(at) {
                self.direction.wake = Some(at);
                self.schedule(at, What::WakeController);
            }
        }
    }

    fn schedule(&mut self, at: Time, what: What) {
        let index = self.agenda.pending.insert(what);
        self.agenda.queue.at(Instant::from(at).max(self.agenda.queue.now()), Event::Pending(index));
    }

    fn slot(&self, node: NodeId) -> &Slot {
        &self.slots[usize::from(node.0) - 1]
    }

    fn slot_mut(&mut self, node: NodeId) -> &mut Slot {
        &mut self.slots[usize::from(node.0) - 1]
    }
}

impl Slot {
    fn new(app: Application) -> Self {
        Self {
            app,
            node: None,
            incarnation: Incarnation(0),
            gone: false,
            hangs: false,
            wake: None,
            flushes: false,
            pass_began: Time::ZERO,
            woken: false,
            asked: None,
            late: Duration::ZERO,
            clock: Clock::default(),
            slow: None,
            full_until: Time::ZERO,
            recorded: Vec::new(),
            in_closed: 0,
            unsynced: 0,
            closed: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// What the component takes for the time in this call, with a note of how late that is. A deadline may also pass
    /// before a pass ends.
    fn reads_clock(&mut self, now: Time) -> Time {
        let reading = self.clock.at(now);
        self.late = self.late.max(self.asked.map_or(Duration::ZERO, |asked| reading.since(asked)));
        reading
    }
}
