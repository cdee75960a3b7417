//! What leads from one run to the next in the same processes: applications start, begin a run, give it up, wait for another.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::time::Duration;

use agents::Child;
use base::ids::{NodeId, Role};
use base::time::Time;
use control::accounting::Books;
use control::controller::{Ending, RunLimits};
use control::states::State;
use dataflow::message::{Command, Message};
use membership::agents::Leases;
use membership::registrar::RunToJoin;
use transport::idle::IdleStrategy;
use transport::scheduler::Context;

use super::site::{Planned, bare_host, idle, welcome};
use super::stamping::STAMPS_END_WITHIN;
use super::{
    Conductor, EXIT_TIMEOUT, Figures, Host, Measures, Metered, NOT_ENDED, Outcome, Phase, StartError, Words,
    outcome::network,
};
use crate::RunSettings;
use crate::control::Control;
use crate::news::Mailbox;
use crate::samples::Shown;

/// What somebody asks of a partition, and where the answer goes.
pub(crate) enum Request {
    /// All applications start that do not run, which ends a fault.
    Boot(SyncSender<Result<(), StartError>>),
    /// A run.
    Start(Box<Wanted>),
    /// All applications end.
    ShutDown,
}

/// A run that somebody wants.
pub(crate) struct Wanted {
    pub(crate) settings: RunSettings,
    pub(crate) news: Option<Mailbox>,
    /// Is told when the run begins, and what controls it alone.
    pub(crate) begin: Option<SyncSender<Control>>,
    /// How it went, or why it did not begin.
    pub(crate) over: SyncSender<Result<Outcome, StartError>>,
}

/// What is asked, and who waits for an answer.
pub(super) struct Asks {
    requests: Receiver<Request>,
    /// A request that came while something else went on.
    early: Option<Request>,
    /// Who wants the run that goes on, or begins.
    pub(super) wanted: Option<Box<Wanted>>,
    /// Who waits for the applications to start.
    boots: Option<SyncSender<Result<(), StartError>>>,
    /// Why the run that was wanted did not begin, until that is told.
    failure: Option<StartError>,
}

impl Asks {
    pub(super) fn new(requests: Receiver<Request>) -> Self {
        Self { requests, early: None, wanted: None, boots: None, failure: None }
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.news.iter().for_each(Mailbox::close);
    }
}

impl Conductor {
    /// Looks whether somebody asks for something, when nothing else goes on.
    pub(super) fn do_what_is_asked(&mut self, context: &mut Context<'_, Host>) {
        if !matches!(self.phase, Phase::Idle) {
            return;
        }
        let Some(request) = self.next_request() else { return };
        match request {
            Request::Boot(done) => self.boot(context.now, context.shared, done),
            Request::Start(wanted) => {
                self.asks.wanted = Some(wanted);
                // Who is dead already is started again for the run.
                self.reap(context.now, context.shared);
                if let Some(left) = self.succession.take_left() {
                    if let Err(error) = self.take_over(context, &left) {
                        self.fail(error);
                    }
                    return self.advance(context.now, context.shared);
                }
                match self.plan() {
                    Ok(planned) => self.start(context, planned),
                    Err(error) if self.controller.state() == State::Absent => self.fail(error),
                    Err(error) => {
                        self.asks.failure = Some(error);
                        self.control.over(self.controller.state());
                        self.answer(None);
                    }
                }
            }
            Request::ShutDown => self.let_go(context.now, context.shared, None, false),
        }
        self.advance(context.now, context.shared);
    }

    /// What is asked for next, if anything is.
    fn next_request(&mut self) -> Option<Request> {
        self.asks.early.take().or_else(|| match self.asks.requests.try_recv() {
            Ok(request) => Some(request),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Request::ShutDown),
        })
    }

    /// Whether somebody may ask for another run.
    fn goes_on(&mut self) -> bool {
        self.asks.early = self.next_request();
        !matches!(self.asks.early, Some(Request::ShutDown))
    }

    fn boot(&mut self, now: Time, host: &mut Host, done: SyncSender<Result<(), StartError>>) {
        self.asks.boots = Some(done);
        // If they run already, only those start that have died.
        let _ = self.controller.boot();
        self.control.is(self.controller.state());
        let left = self.succession.take_left();
        // Where an agent does not answer, another one is launched when nothing of it can live any more.
        let leases = Leases::new(self.assembly.partition.processes.lease.duration());
        let longer = if left.is_some() { leases.until_empty() } else { Duration::ZERO };
        let taken = left.map_or(Ok(()), |left| self.take_agents_over(&left));
        match taken.and_then(|()| self.start_missing(now, host)) {
            Ok(()) => self.phase = Phase::Booting { deadline: now + self.start_timeout() + longer },
            Err(error) => self.fail(error),
        }
    }

    /// All applications have joined.
    pub(super) fn booted(&mut self, now: Time, host: &mut Host) {
        if self.controller.state() != State::Booted {
            self.controller.joined().expect("between runs nothing else can be");
        }
        (self.has_booted, self.lost) = (true, None);
        self.with_registrar(now, host, |registrar, hands| registrar.wait(hands));
        self.phase = Phase::Idle;
        // Whoever sees the state may rely on what is kept.
        self.keep();
        self.control.is(self.controller.state());
        self.control.waits(None);
        self.answer_boot(Ok(()));
    }

    fn answer_boot(&mut self, answer: Result<(), StartError>) {
        if let Some(boots) = self.asks.boots.take() {
            // Whoever asked may be gone.
            let _ = boots.send(answer);
        }
    }

    /// The run that is wanted, if it can be.
    fn plan(&mut self) -> Result<Planned, StartError> {
        if self.control.ends() {
            return Err(StartError::Interrupted);
        }
        if let Some((node, how)) = &self.lost {
            return Err(StartError::Lost { name: self.name(*node), how: how.clone() });
        }
        self.site.plan(self.asks.wanted.as_ref().expect("somebody wants it").settings.clone())
    }

    /// Begins to start a run.
    fn start(&mut self, context: &mut Context<'_, Host>, Planned { assembly, number, left_files }: Planned) {
        match self.controller.state() {
            State::Absent => self.controller.boot().expect("nothing else can be done yet"),
            _ => self.measures = Measures::launch(context.now, &self.children),
        }
        (self.assembly, self.number, self.left_files) = (assembly, Some(number), Some(left_files));
        self.show_from(context.now);
        self.phase = Phase::Starting { deadline: context.now + self.start_timeout() };
        if let Err(error) = self.make_ready(context) {
            self.fail(error);
        }
    }

    /// Nothing is shown of the run before.
    pub(super) fn show_from(&mut self, now: Time) {
        self.showing.samples = Shown::of(&self.assembly);
        (self.words, self.showing.figures, self.showing.next_progress) = (Words::default(), Figures::default(), now);
    }

    /// Makes the components of this process, and has those children configured that have joined.
    fn make_ready(&mut self, context: &mut Context<'_, Host>) -> Result<(), StartError> {
        let (now, host) = (context.now, &mut *context.shared);
        self.renew(host);
        self.meter.take().into_iter().for_each(|meter| host.set_meter(meter));
        self.site.populate(&self.assembly, &self.secret, host, context.poller)?;
        self.start_missing(now, host)?;
        let (number, welcome) = (self.assembly.run(), welcome(&self.assembly, host));
        let run = RunToJoin { number, welcome, shares: host.links.are_shared() };
        self.with_registrar(now, host, |registrar, hands| registrar.configure(hands, run));
        context.set_idle(idle(&self.assembly.partition));
        self.rests = None;
        Ok(())
    }

    /// A host without components, in the place of the one that was.
    pub(super) fn renew(&self, host: &mut Host) {
        let (links, events) = (core::mem::take(&mut host.links), core::mem::take(&mut host.link_events));
        *host = bare_host(&self.assembly, links, &self.registrar);
        host.link_events = events;
    }

    /// Starts the processes of applications that have none.
    fn start_missing(&mut self, now: Time, host: &mut Host) -> Result<(), StartError> {
        if host.links.address().is_some() {
            self.assembly.program().map_err(StartError::Program)?;
        }
        Ok(self.with_registrar(now, host, |registrar, hands| registrar.start_missing(hands))?)
    }

    /// All applications have their configuration.
    pub(super) fn configured(&mut self) {
        if !matches!(self.controller.state(), State::Booting | State::Booted) {
            return;
        }
        let run = &self.assembly.partition.run;
        let duration = run.duration.map(configuration::Interval::duration);
        let limits = RunLimits { duration, stop_timeout: run.stop_timeout.duration() };
        if self.controller.state() == State::Booting {
            self.controller.joined().expect("they were to start");
            self.has_booted = true;
        }
        self.controller.configure(limits).expect("a run starts between runs");
    }

    /// The run is over: nothing more is measured.
    pub(super) fn end(&mut self, now: Time, host: &mut Host, mut ending: Ending) {
        let returned = self.registrar.returned().iter().map(|restart| restart.node);
        self.measures.end(now, &self.children, returned);
        if ending.forced {
            let said = core::mem::take(&mut self.words).into_last();
            ending.reasons.extend(said.map(|(node, text)| format!("{} said last: {text}", self.name(node))));
        }
        self.end_stamps_of_run(host, &ending.dead);
        self.phase = Phase::Stamping { ending: Box::new(ending), deadline: now + STAMPS_END_WITHIN };
        if self.have_stamps_ended() {
            self.leave(now, host);
        }
    }

    /// The applications leave a run that is over.
    pub(super) fn leave(&mut self, now: Time, host: &mut Host) {
        let Phase::Stamping { ending, .. } = core::mem::replace(&mut self.phase, Phase::Over) else {
            unreachable!("only a run that is over is left")
        };
        // Those that did not even report are stuck.
        ending.dead.iter().for_each(|&node| self.children.kill(node));
        let goes_on = self.goes_on();
        self.let_go(now, host, Some(ending), goes_on);
    }

    /// The run did not begin, or the applications have not started.
    pub(super) fn give_up(&mut self, now: Time, host: &mut Host) {
        let Phase::Failed(error) = core::mem::replace(&mut self.phase, Phase::Over) else { return };
        self.asks.failure = Some(error);
        // One that is at fault stays so.
        let _ = self.controller.fail();
        if self.has_booted && self.goes_on() {
            self.let_go(now, host, None, true);
        } else {
            // Those that have not joined cannot be told to end: all are killed.
            self.succession.end();
            self.children.renew();
            self.registrar.end();
            self.phase = Phase::Ending { ending: None, deadline: now, goes_on: false };
        }
        self.advance(now, host);
    }

    /// The applications give up what they have of the run, and end unless it goes on.
    fn let_go(&mut self, now: Time, host: &mut Host, ending: Option<Box<Ending>>, goes_on: bool) {
        self.phase = Phase::Ending { ending, deadline: now + EXIT_TIMEOUT, goes_on };
        if goes_on {
            self.disconnect(now, host);
            return self.keep();
        }
        self.succession.end();
        self.registrar.end();
        for app in &self.assembly.applications {
            host.send_from_control(app.node, Message::Command(Command::Exit));
        }
    }

    /// What was said and proved so far is of no use from here on.
    fn disconnect(&mut self, now: Time, host: &mut Host) {
        self.secret = self.secret.next();
        host.links.prove_with(&self.site.prover(&self.secret));
        self.with_registrar(now, host, |registrar, hands| registrar.disconnect(hands));
    }

    /// Ends children that have not done what they were told, makes valid files of what a dead recorder left, and says how it went.
    pub(super) fn finish(&mut self, now: Time, host: &mut Host) {
        let Phase::Ending { ending, goes_on, .. } = core::mem::replace(&mut self.phase, Phase::Over) else {
            unreachable!("only what ends is finished")
        };
        let is_left = |child: &&Child| !(child.has_ended() || goes_on && self.registrar.has_joined(child.node()));
        let left: Vec<NodeId> = self.children.iter().filter(is_left).map(Child::node).collect();
        for &node in &left {
            let what = if goes_on { NOT_DISCONNECTED } else { NOT_ENDED };
            self.warn(&format!("{} {what} within {EXIT_TIMEOUT:?} and is killed", self.name(node)));
        }
        // What they have left in files is read when they write no more.
        for (node, how) in self.children.end(&left) {
            self.with_registrar(now, host, |registrar, hands| registrar.on_ended(hands, node, &how));
        }
        if !goes_on {
            self.children.renew();
        }
        self.say_where_stamps_are();
        let outcome = ending.and_then(|ending| self.conclude(host, *ending));
        self.renew_between_runs(host);
        if !goes_on {
            self.site.resting.end();
        }
        if self.controller.state() != State::Absent {
            let led = if goes_on { self.controller.disconnect() } else { self.controller.shut_down() };
            led.expect("nothing else goes on");
        }
        if goes_on {
            self.with_registrar(now, host, |registrar, hands| registrar.wait(hands));
        }
        let interrupted = self.control.over(self.controller.state());
        if goes_on {
            self.phase = Phase::Idle;
        }
        self.answer(outcome.map(|outcome| Outcome { interrupted, ..outcome }));
    }

    /// Nothing of the run is left here: files are closed and pages are free.
    fn renew_between_runs(&mut self, host: &mut Host) {
        let meter = host.take_meter();
        host.links.forget_run();
        self.renew(host);
        meter.into_iter().for_each(|meter| host.set_meter(meter));
        (self.number, self.left_files) = (None, None);
        self.rests = None;
    }

    /// Says how it went to whoever wanted it.
    fn answer(&mut self, outcome: Option<Outcome>) {
        let failure = self.asks.failure.take();
        if let Some(probe) = self.probe.0.as_mut().filter(|_| self.asks.wanted.is_some()) {
            probe.over();
        }
        match (self.asks.wanted.take(), failure) {
            (Some(mut wanted), failure) => {
                wanted.begin = None;
                let answer = outcome.ok_or_else(|| failure.unwrap_or(StartError::ShutDown));
                // Whoever wanted the run may be gone.
                let _ = wanted.over.send(answer);
            }
            (None, Some(failure)) => self.answer_boot(Err(failure)),
            (None, None) => {}
        }
    }

    /// The account of a run that is over.
    fn conclude(&mut self, host: &Host, mut ending: Ending) -> Option<Outcome> {
        let returned = self.registrar.returned().iter().map(|restart| restart.node);
        let touched: BTreeSet<NodeId> = returned.chain(ending.dead.iter().copied()).collect();
        for &node in &touched {
            let is_recorder = self.assembly.application(node).is_some_and(|app| app.role == Role::Sfo);
            if let Some(left_files) = self.left_files.as_ref().filter(|_| is_recorder) {
                let (files, remarks) = left_files.of(&self.name(node), &ending.files);
                ending.files.extend(files);
                remarks.into_iter().for_each(|remark| self.say(remark));
            }
        }
        let touched: Vec<NodeId> = touched.into_iter().collect();
        let account = Books {
            applications: &self.assembly.applications,
            reports: &ending.reports,
            files: &ending.files,
            touched: &touched,
            forced: ending.forced,
        }
        .account();
        let measures = core::mem::replace(&mut self.measures, Measures::launch(self.tick, &self.children));
        let measured = measures.measured(&self.children)?;
        let (network, stale) = network(host, &ending);
        Some(Outcome {
            assembly: self.assembly.clone(),
            account,
            metered: Metered::default(),
            restarts: self.registrar.returned().to_vec(),
            began: measured.began,
            duration: measured.duration,
            starting: measured.starting,
            cpu_starting: measured.cpu_starting,
            cpu: measured.cpu,
            cpu_of_children: measured.cpu_of_children,
            processes: measured.processes,
            cpu_while_running: measured.cpu_while_running,
            left_to_us: measured.left_to_us,
            cores_used: measured.cores_used,
            network,
            stale,
            interrupted: false,
            away: self.succession.away.clone(),
            ending,
        })
    }

    /// While nothing goes on no processor is kept busy; where run control alone is here, with many applications, it has no hurry.
    pub(super) fn rest(&mut self, context: &mut Context<'_, Host>) {
        let wanted = match self.phase {
            Phase::Idle => IdleStrategy::default(),
            Phase::Running
                if self.controller.is_running() && self.has_many() && context.shared.hosted().next().is_none() =>
            {
                PACED
            }
            _ if self.rests == Some(PACED) => idle(&self.assembly.partition),
            _ => return,
        };
        if self.rests.replace(wanted) != Some(wanted) {
            context.set_idle(wanted);
        }
    }

    fn start_timeout(&self) -> Duration {
        self.assembly.partition.processes.start_timeout.duration()
    }
}

/// Nobody notices, and hundreds of messages are there by then.
const PACED: IdleStrategy = IdleStrategy::Paced { between: Duration::from_millis(10) };
const NOT_DISCONNECTED: &str = "was told to disconnect, did not";
