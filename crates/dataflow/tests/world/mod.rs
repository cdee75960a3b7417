//! The virtual-time world: real components, modelled links and work, one event queue.
//!
//! A run is a function of its plan: the same plan gives the same trace, to the last message.

mod overload;
mod phased;
pub(crate) mod plan;
mod slow_stop;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use dataflow::bulk::Bulk;
use dataflow::component::{
    Action, Input, Outbox, Outcome, PeerState, Processed, Selection, Steer, Steered, Ticket, Work,
};
use dataflow::control::accounting::{Accounting, Books};
use dataflow::control::controller::{Application, Controller, ControllerParameters, Ending};
use dataflow::ids::{EventId, Incarnation, NodeId, Role, RunNumber};
use dataflow::level1::trigger::Trigger;
use dataflow::level2::l2pu::sink_accepts;
use dataflow::level2::steering::Skeleton;
use dataflow::message::{
    BuiltEvent, BusyCause, Chains, Command, DebugReason, Envelope, EventInfo, FileRecord, Message,
};
use dataflow::node::{Node, RUN_CONTROL, route};
use dataflow::random::{Random, hash_of_event};
use dataflow::readout::fragment::FragmentCheck;
use dataflow::report::{EfdCounters, Level1Counters, RosCounters, SfiCounters};
use dataflow::time::Time;
use plan::{Fault, InputKind, Plan, Planted, trigger};

/// A partition in virtual time.
pub(crate) struct World {
    plan: Plan,
    now: Time,
    random: Random,
    slots: Vec<Slot>,
    controller: Controller,
    controller_wake: Option<Time>,
    queue: BinaryHeap<Reverse<Scheduled>>,
    serial: u64,
    /// When the last reliable message of a pair, or fragment of a link, arrives: they keep their order.
    in_order: BTreeMap<(NodeId, NodeId, u16), Time>,
    /// What gives the fragments of each link their event number.
    checks: BTreeMap<(NodeId, u16), FragmentCheck>,
    skeleton: Skeleton,
    /// Events in the files of each SFO, in the order of writing.
    pub(crate) files: BTreeMap<NodeId, Vec<EventId>>,
    busy: BTreeSet<(NodeId, BusyCause)>,
    touched: Vec<NodeId>,
    forced: bool,
    trace: DefaultHasher,
    planted: bool,
    /// Triggers that the outside has given.
    given: u64,
    /// Events that the filter was given.
    processed: u64,
    /// When triggers were first allowed.
    began: Time,
    /// When level 1 issued the events that level 2 has not decided.
    issued: BTreeMap<EventId, Time>,
    level2: Vec<Decided>,
    busy_changes: Vec<(Time, BusyCause, bool)>,
    /// Whether every message is printed.
    pub(crate) prints: bool,
    steps: u64,
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
    /// All that run control said to it; a new life is told again.
    commands: Vec<Command>,
}

struct Scheduled {
    at: Time,
    serial: u64,
    what: What,
}

enum What {
    Message(Envelope, Message),
    ToController(Envelope, Message),
    Input(NodeId, Incarnation, Input),
    Wake(NodeId),
    Flush(NodeId),
    Begin,
    WakeController,
    Fault(Fault),
    Restart(NodeId),
    Appear(NodeId),
}

/// A decision of level 2 as the DFM hears of it.
pub(crate) struct Decided {
    pub(crate) at: Time,
    pub(crate) latency: Duration,
}

/// What is left when a run has ended.
pub(crate) struct Outcomes {
    pub(crate) began: Time,
    pub(crate) ended: Time,
    pub(crate) level2: Vec<Decided>,
    pub(crate) busy_changes: Vec<(Time, BusyCause, bool)>,
    pub(crate) account: Accounting,
    pub(crate) ending: Ending,
    pub(crate) trace: u64,
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let random = Random::new(plan.seed ^ 0x5eed);
        let applications = plan.applications();
        let controller = Controller::new(ControllerParameters {
            applications: applications.clone(),
            duration: plan.duration,
            stop_timeout: plan.stop_timeout,
        });
        let slots = applications
            .into_iter()
            .map(|app| Slot {
                app,
                node: None,
                incarnation: Incarnation(0),
                gone: false,
                hangs: false,
                wake: None,
                flushes: false,
                commands: Vec::new(),
            })
            .collect();
        let skeleton = plan.skeleton();
        Self {
            now: Time::from_ns(1_000),
            random,
            slots,
            controller,
            controller_wake: None,
            queue: BinaryHeap::new(),
            serial: 0,
            in_order: BTreeMap::new(),
            checks: BTreeMap::new(),
            skeleton,
            files: BTreeMap::new(),
            busy: BTreeSet::new(),
            touched: Vec::new(),
            forced: false,
            trace: DefaultHasher::new(),
            planted: false,
            given: 0,
            processed: 0,
            began: Time::ZERO,
            issued: BTreeMap::new(),
            level2: Vec::new(),
            busy_changes: Vec::new(),
            prints: false,
            steps: 0,
            plan,
        }
    }

    /// Runs to the end.
    ///
    /// # Panics
    /// If a component finds its state inconsistent, or the run does not end.
    pub(crate) fn run(mut self) -> Outcomes {
        for index in 0..self.slots.len() {
            let node = self.slots[index].app.node;
            let late = self.plan.late.iter().find(|(late, _)| *late == node).map(|(_, after)| *after);
            match late {
                Some(after) => self.schedule(self.now + after, What::Appear(node)),
                None => self.appear(node),
            }
        }
        for (at, fault) in self.plan.faults.clone() {
            self.schedule(self.now + self.plan.time_to_connect() + at, What::Fault(fault));
        }
        // Run control starts a run when the applications have found one another; those that are late come into it.
        self.schedule(self.now + self.plan.time_to_connect(), What::Begin);
        while self.controller.ending().is_none() {
            self.step();
        }
        self.conclude()
    }

    fn step(&mut self) {
        let Reverse(Scheduled { at, what, .. }) =
            self.queue.pop().expect("a run that has not ended has something to do");
        assert!(at < Time::from_ns(600_000_000_000), "the run ends within ten minutes: {:?}", self.plan);
        self.steps += 1;
        assert!(self.steps < 3_000_000, "the run ends within reason: {:?}", self.plan);
        self.now = at;
        match what {
            What::Message(envelope, message) => self.deliver(&envelope, message),
            What::ToController(envelope, message) => {
                if self.prints {
                    eprintln!("{at} {:?} -> run control {message:?}", envelope.from.0);
                }
                if self.slot(envelope.from).incarnation == envelope.from_incarnation {
                    let mut out = Outbox::new();
                    self.controller.on_message(self.now, envelope.from, message, &mut out);
                    self.route_controller(&mut out);
                }
            }
            What::Input(to, incarnation, input) => {
                if self.slot(to).incarnation == incarnation {
                    self.input(to, input);
                }
            }
            What::Wake(to) => {
                if self.slot(to).wake == Some(at) {
                    self.slot_mut(to).wake = None;
                    self.input(to, Input::Deadline);
                }
            }
            What::Flush(to) => self.flush(to),
            What::Begin => {
                self.began = self.now;
                let mut out = Outbox::new();
                self.controller.start(self.now, &mut out);
                self.route_controller(&mut out);
            }
            What::WakeController => {
                if self.controller_wake == Some(at) {
                    self.controller_wake = None;
                    let mut out = Outbox::new();
                    self.controller.on_deadline(self.now, &mut out);
                    self.route_controller(&mut out);
                }
            }
            What::Fault(fault) => self.strike(fault),
            What::Restart(node) => self.restart(node),
            What::Appear(node) => self.appear(node),
        }
    }

    fn deliver(&mut self, envelope: &Envelope, message: Message) {
        let now = self.now;
        let text = format!("{message:?}");
        if self.prints {
            eprintln!("{now} {:?} -> {:?} {text}", envelope.from.0, envelope.to.0);
        }
        (envelope.from.0, envelope.to.0, now.as_ns(), text).hash(&mut self.trace);
        let mut out = Outbox::new();
        if self.slot(envelope.to).hangs {
            return;
        }
        if let Some(node) = &mut self.slot_mut(envelope.to).node {
            node.receive(now, envelope, message, &mut out);
        }
        self.after(envelope.to, &mut out);
    }

    fn input(&mut self, to: NodeId, input: Input) {
        let now = self.now;
        let mut out = Outbox::new();
        if self.slot(to).hangs {
            return;
        }
        if let Some(node) = &mut self.slot_mut(to).node {
            node.handle(now, input, &mut out);
        }
        self.after(to, &mut out);
    }

    /// The end of a pass.
    fn flush(&mut self, of: NodeId) {
        self.slot_mut(of).flushes = false;
        let now = self.now;
        let mut out = Outbox::new();
        if self.slot(of).hangs {
            return;
        }
        if let Some(node) = &mut self.slot_mut(of).node {
            node.flush(now, &mut out);
        }
        self.carry_out(of, &mut out);
    }

    /// Carries out actions, and sees to it that the pass ends: now and then after further inputs.
    fn after(&mut self, from: NodeId, out: &mut Outbox) {
        self.carry_out(from, out);
        if !core::mem::replace(&mut self.slot_mut(from).flushes, true) {
            let pass = if self.random.chance(0.5) { self.latency() } else { Duration::ZERO };
            self.schedule(self.now + pass, What::Flush(from));
        }
    }

    /// Carries out actions, checks the component, and arms its next deadline.
    fn carry_out(&mut self, from: NodeId, out: &mut Outbox) {
        let mut sends = Vec::new();
        let mut others = Vec::new();
        route(out, &self.plan.readout(), |to, message| sends.push((to, message)), |action| others.push(action));
        for (to, message) in sends {
            self.send(from, to, message);
        }
        for action in others {
            match action {
                Action::Start { ticket, work } => self.work(from, ticket, work),
                Action::Note(_) => {}
                Action::Send { .. } | Action::MulticastToReadout(_) => unreachable!("routed before"),
            }
        }
        let Some(node) = &self.slot(from).node else { return };
        node.check();
        if let Some(deadline) = node.next_deadline() {
            let at = deadline.max(self.now);
            if self.slot(from).wake.is_none_or(|wake| at < wake) {
                self.slot_mut(from).wake = Some(at);
                self.schedule(at, What::Wake(from));
            }
        }
    }

    fn send(&mut self, from: NodeId, to: NodeId, message: Message) {
        let Some(envelope) = self.slot(from).node.as_ref().and_then(|node| node.envelope_to(to)) else {
            return;
        };
        if to == RUN_CONTROL {
            let at = self.arrival(from, to, 0);
            return self.schedule(at, What::ToController(envelope, message));
        }
        self.observe(&message);
        if let Message::Busy { cause, on } = message {
            if on {
                self.busy.insert((from, cause))
            } else {
                self.busy.remove(&(from, cause))
            };
        }
        if message.may_be_lost() {
            return self.send_unreliably(envelope, &message);
        }
        let copies = self.plant(&message);
        for _ in 0..copies {
            let at = self.arrival(from, to, 0);
            self.schedule(at, What::Message(envelope, message.clone()));
        }
    }

    fn observe(&mut self, message: &Message) {
        match message {
            Message::L1Result { event, .. } => _ = self.issued.insert(event.event, self.now),
            Message::Decisions { decisions, .. } => {
                for decision in decisions {
                    if let Some(issued) = self.issued.remove(&decision.event.event) {
                        self.level2.push(Decided { at: self.now, latency: self.now.since(issued) });
                    }
                }
            }
            Message::Busy { cause, on } => self.busy_changes.push((self.now, *cause, *on)),
            _ => {}
        }
    }

    fn send_unreliably(&mut self, envelope: Envelope, message: &Message) {
        let links = self.plan.links;
        let copies =
            if self.random.chance(links.loss) { 0 } else { 1 + usize::from(self.random.chance(links.duplication)) };
        for _ in 0..copies {
            let mut delay = self.latency();
            if self.random.chance(links.delay) {
                delay += links.delay_max.mul_f64(self.random.unit());
            }
            self.schedule(self.now + delay, What::Message(envelope, message.clone()));
        }
    }

    /// How often a reliable message arrives: once, unless a bug is planted on it.
    fn plant(&mut self, message: &Message) -> usize {
        match (self.plan.planted, message) {
            (Some(Planted::Duplicate), Message::Record(_)) if !self.planted => {
                self.planted = true;
                2
            }
            _ => 1,
        }
    }

    fn latency(&mut self) -> Duration {
        self.plan.links.latency.mul_f64(1.0 + self.random.unit())
    }

    /// When something sent now arrives, behind everything sent before on the same channel.
    fn arrival(&mut self, from: NodeId, to: NodeId, channel: u16) -> Time {
        let slow = if self.plan.is_slow(from, to) {
            self.plan.links.delay_max.mul_f64(self.random.unit())
        } else {
            Duration::ZERO
        };
        let at = self.now + self.latency() + slow;
        let last = self.in_order.entry((from, to, channel)).or_default();
        *last = at.max(*last);
        *last
    }

    fn work(&mut self, node: NodeId, ticket: Ticket, work: Work) {
        let incarnation = self.slot(node).incarnation;
        let outcome = match work {
            Work::ReadOut(events) => return self.read_out(node, ticket, &events),
            Work::NextTrigger => Outcome::Trigger(self.next_trigger()),
            Work::Steer(steer) => Outcome::Steered(match self.skeleton.step(&steer) {
                Steered::Decide(selection) if selection.accept => Steered::Decide(Selection {
                    result: Bulk::Modelled { len_bytes: RESULT_BYTES, seed: 1 },
                    ..selection
                }),
                other => other,
            }),
            Work::Record(recording) => {
                if self.random.chance(self.plan.record_failures) {
                    Outcome::RecordFailed
                } else {
                    self.check_content(&recording.built);
                    let lost =
                        self.plan.planted == Some(Planted::LostEvent) && !core::mem::replace(&mut self.planted, true);
                    if !lost {
                        self.files.entry(node).or_default().push(recording.built.event.event);
                    }
                    Outcome::Recorded { copies: 1, bytes: recording.built.bulk.len() as u64, closed: Vec::new() }
                }
            }
            Work::Process(built) => {
                self.processed += 1;
                if self.plan.filter_stuck_after.is_some_and(|after| self.processed > after) {
                    return;
                }
                Outcome::Processed(self.process(&built))
            }
            Work::Sync => Outcome::Synced,
            Work::Close => Outcome::Closed(vec![self.file_of(node)]),
        };
        let steering = matches!(outcome, Outcome::Steered(_) | Outcome::Processed(_));
        let slow = if steering && self.random.chance(self.plan.slow_steering) {
            self.plan.links.delay_max
        } else {
            Duration::ZERO
        };
        let channel = match outcome {
            Outcome::Steered(_) | Outcome::Processed(_) => ticket.0 as u16,
            _ => 0,
        };
        let mut at = self.arrival(node, node, channel) + slow;
        if matches!(outcome, Outcome::Steered(_)) {
            at = at + self.steering_cost();
        }
        if matches!(outcome, Outcome::Processed(_)) {
            at = at + self.plan.processing_cost;
        }
        self.schedule(at, What::Input(node, incarnation, Input::Done { ticket, outcome }));
    }

    fn steering_cost(&self) -> Duration {
        let heavy = self.plan.heavy_until.filter(|(until, _)| self.now < self.began + *until);
        heavy.map_or(self.plan.steering_cost, |(_, cost)| cost)
    }

    /// The outside gives as many triggers as the run is to have, and no more.
    fn next_trigger(&mut self) -> Option<Trigger> {
        let ordinal = self.given;
        (ordinal < self.plan.events).then(|| {
            self.given += 1;
            trigger(ordinal)
        })
    }

    /// A processing task that decides by the plan's policy, and now and then fails.
    fn process(&self, built: &BuiltEvent) -> Processed {
        let (event, chains, result) = (built.event, Chains::default(), Bulk::empty());
        if self.fails(event.event) {
            Processed::Fail { reason: DebugReason::Crash, result }
        } else if self.plan.policy.accepts(event.event, event.ordinal) {
            Processed::Accept { streams: 0, chains, result }
        } else {
            Processed::Reject { chains }
        }
    }

    /// Whether a processing task fails on this event.
    fn fails(&self, event: EventId) -> bool {
        self.plan.filter_tasks && hash_of_event(event).is_multiple_of(17)
    }

    /// Every ROB is in the event once, with its fragment or as missing.
    fn check_content(&self, built: &BuiltEvent) {
        let fragments =
            (built.bulk.len() / 100) as u16 + built.missing.iter().filter(|rob| **rob != 0x7c_0000).count() as u16;
        let result = built.bulk.len() % 100;
        assert_eq!(fragments, self.plan.counts.ros * self.plan.robs_per_ros, "{built:?} {:?}", self.plan);
        assert!(result == 0 || result == RESULT_BYTES as usize, "{built:?} {:?}", self.plan);
    }

    /// Fragments come in order on each link, unless the link loses, repeats or delays one.
    fn read_out(&mut self, node: NodeId, ticket: Ticket, events: &[EventInfo]) {
        let incarnation = self.slot(node).incarnation;
        let last = events.iter().map(|event| self.read_out_event(node, event)).max().expect("something to read");
        self.schedule(last, What::Input(node, incarnation, Input::Done { ticket, outcome: Outcome::ReadOut }));
    }

    /// When the last fragment comes.
    fn read_out_event(&mut self, node: NodeId, event: &EventInfo) -> Time {
        let incarnation = self.slot(node).incarnation;
        let links = self.plan.fragment_faults;
        let mut last = self.now;
        for rob in 0..self.plan.robs_per_ros {
            let check = self.checks.entry((node, rob)).or_insert_with(|| FragmentCheck::new(event.event));
            let head = check.examine(event.event.lvl1_id(), 0, 100).expect("an id near the others");
            assert_eq!(head.event, event.event, "the id of 32 bits is unwrapped");
            let bulk = Bulk::Modelled { len_bytes: 100, seed: event.ordinal as u32 };
            let copies =
                if self.random.chance(links.loss) { 0 } else { 1 + u32::from(self.random.chance(links.duplication)) };
            let mut at = self.arrival(node, node, 1 + rob);
            if self.random.chance(links.delay) {
                at = at + links.delay_max.mul_f64(self.random.unit());
            }
            for _ in 0..copies {
                self.schedule(at, What::Input(node, incarnation, Input::Fragment { rob, head, bulk: bulk.clone() }));
            }
            last = last.max(at);
        }
        last
    }

    fn file_of(&self, sfo: NodeId) -> FileRecord {
        let events = self.files.get(&sfo).map_or(0, Vec::len) as u64;
        let (path, stream) = (format!("{sfo:?}"), "physics_Main".into());
        FileRecord { path, stream, events, first_copies: events, bytes: 0, adler32: 1 }
    }

    fn appear(&mut self, node: NodeId) {
        let incarnation = self.slot(node).incarnation;
        let new = self.plan.node(node, incarnation);
        self.slot_mut(node).node = Some(new);
        self.input(node, Input::Peer { node: RUN_CONTROL, state: PeerState::Up(Incarnation(0)) });
        for index in 0..self.slots.len() {
            let other = self.slots[index].app.node;
            if self.slots[index].gone {
                self.tell_peer(node, other, PeerState::Gone);
            }
            if other == node || self.slots[index].node.is_none() {
                continue;
            }
            let other_incarnation = self.slots[index].incarnation;
            self.tell_peer(other, node, PeerState::Up(incarnation));
            self.tell_peer(node, other, PeerState::Up(other_incarnation));
        }
        for command in self.slot(node).commands.clone() {
            self.input(node, Input::Command(command));
        }
    }

    /// The news travels in order with the messages of the peer.
    fn tell_peer(&mut self, to: NodeId, about: NodeId, state: PeerState) {
        let incarnation = self.slot(to).incarnation;
        let at = self.arrival(about, to, 0);
        self.schedule(at, What::Input(to, incarnation, Input::Peer { node: about, state }));
    }

    fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Kill(node) => self.crash(node, PeerState::Gone),
            Fault::Restart(node, after) => {
                self.crash(node, PeerState::Down);
                self.schedule(self.now + after, What::Restart(node));
            }
            Fault::Hang(node) => {
                self.slot_mut(node).hangs = true;
                self.touched.push(node);
            }
            Fault::Force => {
                self.forced = true;
                let mut out = Outbox::new();
                self.controller.force(self.now, "forced by the plan", &mut out);
                self.route_controller(&mut out);
            }
        }
    }

    fn crash(&mut self, node: NodeId, state: PeerState) {
        self.slot_mut(node).node = None;
        self.slot_mut(node).wake = None;
        self.slot_mut(node).gone = state == PeerState::Gone;
        self.slot_mut(node).incarnation.0 += 1;
        self.touched.push(node);
        self.busy.retain(|(from, _)| *from != node);
        for index in 0..self.slots.len() {
            let other = self.slots[index].app.node;
            if other != node {
                self.tell_peer(other, node, state);
            }
        }
        if state == PeerState::Gone {
            let mut out = Outbox::new();
            self.controller.on_death(self.now, node, "killed by the plan", &mut out);
            self.route_controller(&mut out);
        }
    }

    fn restart(&mut self, node: NodeId) {
        self.appear(node);
    }

    fn route_controller(&mut self, out: &mut Outbox) {
        let mut sends = Vec::new();
        route(out, &[], |to, message| sends.push((to, message)), |_| {});
        for (to, message) in sends {
            let to_incarnation = self.slot(to).incarnation;
            let run = RunNumber(self.plan.run);
            let from_incarnation = Incarnation(0);
            let envelope = Envelope { from: RUN_CONTROL, to, run, from_incarnation, to_incarnation };
            if let Message::Command(command) = message {
                self.slot_mut(to).commands.push(command);
            }
            let at = self.arrival(RUN_CONTROL, to, 0);
            self.schedule(at, What::Message(envelope, message));
        }
        if let Some(deadline) = self.controller.next_deadline() {
            let at = deadline.max(self.now);
            if self.controller_wake != Some(at) {
                self.controller_wake = Some(at);
                self.schedule(at, What::WakeController);
            }
        }
    }

    fn schedule(&mut self, at: Time, what: What) {
        self.serial += 1;
        self.queue.push(Reverse(Scheduled { at, serial: self.serial, what }));
    }

    fn slot(&self, node: NodeId) -> &Slot {
        &self.slots[usize::from(node.0) - 1]
    }

    fn slot_mut(&mut self, node: NodeId) -> &mut Slot {
        &mut self.slots[usize::from(node.0) - 1]
    }

    fn conclude(mut self) -> Outcomes {
        let mut ending = self.controller.ending().expect("the run has ended");
        for &node in &self.touched {
            let file = self.file_of(node);
            if self.slot(node).app.role == Role::Sfo && !ending.files.contains(&file) {
                ending.files.push(file);
            }
        }
        if self.plan.planted == Some(Planted::Miscount) {
            let dfm = ending.reports.values_mut().find(|report| report.role == Role::Dfm).expect("a DFM reports");
            let built = dataflow::report::DfmCounters::NAMES.iter().position(|name| *name == "built_complete");
            dfm.counters[built.expect("the counter has that name")] += 1;
        }
        let applications: Vec<Application> = self.slots.iter().map(|slot| slot.app.clone()).collect();
        let mut touched = self.touched.clone();
        touched.extend(&ending.dead);
        let forced = self.forced || ending.forced;
        let account = Books {
            applications: &applications,
            reports: &ending.reports,
            files: &ending.files,
            touched: &touched,
            forced,
        }
        .account();
        if self.plan.planted.is_none() {
            self.check_ending(&ending, &account);
        }
        Outcomes {
            began: self.began,
            ended: self.now,
            level2: self.level2,
            busy_changes: self.busy_changes,
            account,
            ending,
            trace: self.trace.finish(),
        }
    }

    /// What level 2 decides on an event, without any of the machinery.
    fn accepts(&self, ordinal: u64) -> bool {
        let event = EventInfo { event: EventId(self.plan.first + ordinal), ordinal, ..EventInfo::default() };
        let steer = |step| Steer { event, worker: 0, step, rois: Vec::new(), data: Vec::new(), missing: 0 };
        let steered = || (0..).map(|step| self.skeleton.step(&steer(step)));
        let decided = || {
            steered().find_map(|outcome| match outcome {
                Steered::Ask(_) => None,
                Steered::Decide(selection) => Some(selection.accept),
            })
        };
        let recommended = match self.plan.sink {
            Some(fraction) => sink_accepts(event.event, fraction),
            None => decided() == Some(true),
        };
        !self.plan.has_level2() || self.plan.overrides.decide(trigger(ordinal).items, recommended)
    }

    /// What level 2 and the filter decide on an event.
    fn selects(&self, ordinal: u64) -> bool {
        let event = EventId(self.plan.first + ordinal);
        self.accepts(ordinal) && (self.plan.policy.accepts(event, ordinal) || self.fails(event))
    }

    /// The invariants of every run, whatever happened in it.
    fn check_ending(&mut self, ending: &Ending, account: &Accounting) {
        let plan = &self.plan;
        assert_eq!(account.residual, 0, "{:?}\n{account:#?}\n{plan:?}\n{:#?}", account.differences, ending.reasons);
        let a = account;
        assert_eq!(a.level1, a.level2_rejected + a.level2_accepted + a.level2_lost, "level 2\n{a:#?}\n{plan:?}");
        assert_eq!(
            a.level2_accepted,
            a.built_complete + a.built_incomplete + a.not_built,
            "building\n{a:#?}\n{plan:?}"
        );
        let filtered = a.filter_rejected + a.filter_accepted + a.filter_debug + a.lost_after_build;
        assert_eq!(a.built_complete + a.built_incomplete, filtered, "filter\n{a:#?}\n{plan:?}");
        assert_eq!(a.recorded + a.lost_in_recording, a.filter_accepted + a.filter_debug, "recording\n{a:#?}\n{plan:?}");
        let mut seen = BTreeSet::new();
        for event in self.files.values().flatten() {
            assert!(seen.insert(*event), "{event} recorded twice: {plan:?}");
        }
        if plan.in_order && self.touched.is_empty() {
            assert!(self.files.values().all(|events| events.is_sorted()), "events in order: {plan:?}");
        }
        let hindered = |reason: &String| reason.contains("did not");
        if plan.is_hindered() {
            return;
        }
        assert!(!ending.reasons.iter().any(hindered), "everything drains: {:?}\n{plan:?}", ending.reasons);
        if !self.touched.is_empty() || self.forced {
            return;
        }
        assert!(ending.reasons.is_empty(), "{:?}: {plan:?}", ending.reasons);
        assert!(self.busy.is_empty(), "busy released: {:?} {plan:?}", self.busy);
        for report in ending.reports.values() {
            match report.role {
                Role::Ros | Role::Pros => {
                    let c = RosCounters::from_values(&report.counters);
                    assert_eq!(c.resident, 0, "pages home at {:?}: {c:?} {plan:?}", report.node);
                    assert!(!plan.is_healthy() || c.garbage_collected == 0, "every event is cleared: {c:?} {plan:?}");
                }
                Role::Sfi => {
                    let c = SfiCounters::from_values(&report.counters);
                    assert_eq!(c.assigned, c.built_complete + c.built_incomplete + c.revoked, "{plan:?}");
                }
                Role::Level1 => {
                    let c = Level1Counters::from_values(&report.counters);
                    let given = if plan.credit.is_some() { self.given } else { c.issued };
                    assert_eq!(c.issued + c.unused, given, "every trigger from outside issued or counted: {plan:?}");
                    let waits = plan.spacing == dataflow::level1::pace::Spacing::Unlimited;
                    assert!(!waits || c.vetoed == 0, "nothing vetoed that can wait: {c:?} {plan:?}");
                    let has_dead_time = plan.crossings.is_some();
                    assert!(has_dead_time || c.vetoed == c.vetoed_busy, "no dead time by itself: {c:?} {plan:?}");
                }
                Role::Efd => {
                    let c = EfdCounters::from_values(&report.counters);
                    assert_eq!(c.unrecorded, 0, "{plan:?}");
                }
                _ => {}
            }
            // What may be lost may also overtake the greeting of one that comes late.
            assert!(report.stale == 0 || !plan.late.is_empty(), "nothing stale without a restart: {plan:?}");
        }
        assert!(account.lost_nothing(), "{account:#?}\n{plan:?}");
        assert!(
            plan.duration.is_some() || account.level1 == plan.events,
            "every event is triggered: {account:#?}\n{plan:?}"
        );
        if account.level2_forced == 0 && plan.has_level2() {
            let accepted = (0..account.level1).filter(|&ordinal| self.accepts(ordinal)).count() as u64;
            assert_eq!(account.level2_accepted, accepted, "just the events that level 2 accepts pass: {plan:?}");
        }
        if account.level2_forced == 0 && plan.counts.efd > 0 && plan.input != InputKind::Level2Only {
            let selected = (0..account.level1).filter(|&ordinal| self.selects(ordinal));
            let expected: BTreeSet<EventId> = selected.map(|ordinal| EventId(plan.first + ordinal)).collect();
            assert_eq!(seen, expected, "just the selected events are recorded: {plan:?}");
        }
        if plan.is_healthy() {
            assert_eq!(account.built_incomplete, 0, "no data missing without a fault: {account:#?}\n{plan:?}");
        }
    }
}

const RESULT_BYTES: u32 = 64;

/// What a run without deaths must not have.
trait LostNothing {
    fn lost_nothing(&self) -> bool;
}

impl LostNothing for Accounting {
    fn lost_nothing(&self) -> bool {
        self.level2_lost + self.not_built + self.lost_after_build + self.lost_in_recording + self.duplicates == 0
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}
