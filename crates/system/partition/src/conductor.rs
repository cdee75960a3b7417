//! The parent of a partition: starts the applications, conducts its runs, and says how each ended.

mod awaited;
mod left_files;
mod lives;
mod measures;
mod names;
mod outcome;
mod runs;
mod silence;
mod site;
mod stamping;
mod succession;
mod view;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use agents::{Children, Farm, Fate};
use base::causes;
use base::ids::{NodeId, Role};
use base::time::Time;
use control::controller::{Controller, Ending};
use control::states::State;
use dataflow::component::Outbox;
use dataflow::message::{Command, Message, Recording};
use dataflow::node::route;
use membership::registrar::Registrar;
use membership::run_secret::RunSecret;
use nix::sys::resource::UsageWho;
use transport::clock;
use transport::idle::IdleStrategy;
use transport::scheduler::{Context, Scheduler, Task};

use crate::control::{Control, Wish};
use crate::cpu::cpu_seconds;
use crate::human;
use crate::probe::{Figures, Watched};
use crate::run::Run;
use crate::run_number::RunNumber;
use crate::said::Said;
use crate::samples::{Sampled, Shown};
use driver::{Assembly, RECORDING_RESUMED};
use driver::{Host, Meter, Samples, Section};
use left_files::LeftFiles;
use lives::registrar;
use measures::Measures;
use silence::Silence;
use site::{Site, draw_secret};
use stamping::Stamped;
use succession::Succession;
use view::figures;
use words::Words;

pub use membership::registrar::Restart;
pub use outcome::{Outcome, StartError};
use runs::Asks;
pub(crate) use runs::{Request, Wanted};
pub use site::idle;
pub(crate) use site::{link_key, new_host};

/// Conducts a run from start to account, in this thread.
///
/// # Errors
/// It did not begin; no process or port of it is left.
///
/// # Panics
/// Never: a run is over when nothing is left to conduct.
pub fn conduct(run: Run) -> Result<Outcome, StartError> {
    let (request, requests) = sync_channel(1);
    let (over, outcome) = sync_channel(1);
    let settings = run.configuration.run.clone();
    let asked = request.send(Request::Start(Box::new(Wanted { settings, news: None, begin: None, over })));
    asked.expect("its receiver is here");
    // Nothing else will be asked for.
    drop(request);
    let metered = conduct_all(run, requests)?;
    let outcome = outcome.recv().expect("a partition that was asked for a run says how it went");
    outcome.map(|outcome| Outcome { metered, ..outcome })
}

/// What was seen of the driver in this process.
#[derive(Clone, Debug, Default)]
pub struct Metered {
    /// Where the time of its thread went.
    pub sections: BTreeMap<Section, Samples>,
    /// Processor time of threads beside it.
    pub beside: Duration,
}

/// Conducts a partition, in this thread, as it is asked to, until it is asked to shut down or nobody can ask it any more. With a
/// meter it has one run alone.
///
/// # Errors
/// It has not begun, or cannot go on.
pub(crate) fn conduct_all(run: Run, requests: Receiver<Request>) -> Result<Metered, StartError> {
    let _control = Ended(run.control());
    let mut scheduler = Scheduler::<Host>::new(idle(&run.configuration))?;
    let (mut host, mut conductor) = Conductor::open(run, requests, &mut scheduler)?;
    let before = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_seconds(UsageWho::RUSAGE_THREAD);
    host.run(scheduler, &mut conductor)?;
    let beside = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_seconds(UsageWho::RUSAGE_THREAD) - before;
    let sections = host.take_meter().map(Meter::into_sections).unwrap_or_default();
    Ok(Metered { sections, beside: Duration::from_secs_f64(beside.max(0.0)) })
}

/// Says to others that nothing can be wanted of a partition any more, however it ends.
struct Ended(Control);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.over(State::Absent);
    }
}

/// Conducts a partition from the scheduler's thread.
struct Conductor {
    site: Site,
    /// For the present run, or the last one.
    assembly: Assembly,
    controller: Controller,
    asks: Asks,
    phase: Phase,
    /// Nobody else takes its number.
    number: Option<RunNumber>,
    /// All applications have run together.
    has_booted: bool,
    /// Why the partition is at fault.
    lost: Option<(NodeId, String)>,
    /// What this process was told to do when there is nothing to do, if not what the configuration says.
    rests: Option<IdleStrategy>,
    children: Children,
    registrar: Registrar,
    /// What members know until the next run.
    secret: RunSecret,
    control: Control,
    probe: Watched,
    meter: Option<Meter>,
    tick: Time,
    left_files: Option<LeftFiles>,
    measures: Measures,
    words: Words,
    /// What is said of deaths that are seen together.
    gathered: Option<Vec<Said>>,
    silence: Silence,
    showing: Showing,
    succession: Succession,
    stamped: Stamped,
}

/// What this run shows to those who watch it.
struct Showing {
    samples: Arc<Shown>,
    /// Who is asked for samples next, among those who show some.
    next_sample: usize,
    next_progress: Time,
    figures: Figures,
}

enum Phase {
    /// No run is wanted.
    Idle,
    /// The applications start.
    Booting {
        deadline: Time,
    },
    /// They get a configuration and connect.
    Starting {
        deadline: Time,
    },
    /// Applications of a run that goes on are called.
    TakingOver {
        deadline: Time,
    },
    Running,
    /// The run is over; its applications end their files of time stamps.
    Stamping {
        ending: Box<Ending>,
        deadline: Time,
    },
    /// The run is over, or did not begin; the applications disconnect, or end.
    Ending {
        ending: Option<Box<Ending>>,
        deadline: Time,
        /// Another run may follow.
        goes_on: bool,
    },
    Over,
    Failed(StartError),
}

impl Task<Host> for &mut Conductor {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        let news = context.shared.has_for_control() || !context.shared.link_events.is_empty();
        news || self.next_deadline().is_some_and(|deadline| deadline <= context.now)
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        if self.tick <= context.now || !context.shared.link_events.is_empty() {
            self.succession.give_way();
        }
        if matches!(self.phase, Phase::TakingOver { .. }) {
            self.find(context.now, context.shared, context.poller);
        }
        self.act(context.now, context.shared);
        self.do_what_is_asked(context);
        self.rest(context);
        if matches!(self.phase, Phase::Over) {
            context.stop();
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let is_running = matches!(self.phase, Phase::Running);
        let controller = self.controller.next_deadline().filter(|_| is_running);
        [Some(self.tick), controller].into_iter().flatten().min()
    }
}

impl Conductor {
    fn open(
        mut run: Run,
        requests: Receiver<Request>,
        scheduler: &mut Scheduler<'_, Host>,
    ) -> Result<(Host, Self), StartError> {
        let (options, farm) =
            (core::mem::take(&mut run.options_of_children), Farm::of(&run.configuration, run.roll.clone()));
        let fence = farm.fence();
        let (now, children) = (clock::now(), Children::new(options, farm));
        let measures = Measures::launch(now, &children);
        let (secret, origin) = match &run.left {
            None => draw_secret(&run.configuration)?,
            Some(left) => {
                let (of_members, _) = left.secrets().expect("it was looked at when it was read");
                // Between two runs members start anew: nobody takes one that was left for them.
                let secret = if left.goes_on() { of_members } else { of_members.next() };
                (secret, left.content.origin.clone())
            }
        };
        let succession = Succession::new(&mut run, now, origin, fence);
        let (control, probe, meter) = (run.control.clone(), core::mem::take(&mut run.probe), run.meter.take());
        let (site, assembly, links) = Site::open(run, (&secret, succession.life), scheduler)?;
        let registrar = registrar(&assembly, site.outside(&assembly));
        let host = site::bare_host(&assembly, links, &registrar);
        let controller = Controller::new(assembly.applications.clone());
        let samples = Shown::of(&assembly);
        let silence = Silence::new(assembly.partition.processes.hang_timeout.duration());
        let conductor = Self {
            site,
            assembly,
            controller,
            asks: Asks::new(requests),
            phase: Phase::Idle,
            number: None,
            has_booted: false,
            lost: None,
            rests: None,
            children,
            registrar,
            secret,
            control,
            probe,
            meter,
            tick: now,
            left_files: None,
            measures,
            words: Words::default(),
            gathered: None,
            silence,
            showing: Showing { samples, next_sample: 0, next_progress: now, figures: Figures::default() },
            succession,
            stamped: Stamped::default(),
        };
        Ok((host, conductor))
    }

    fn act(&mut self, now: Time, host: &mut Host) {
        while let Some(event) = host.link_events.pop_front() {
            self.on_link_event(now, host, event);
        }
        // What comes of those that are back waits for the others.
        while !matches!(self.phase, Phase::TakingOver { .. })
            && let Some((from, message)) = host.next_for_control()
        {
            self.on_message(now, host, from, message);
        }
        if self.tick <= now {
            self.tick = now + TICK;
            self.on_tick(now, host);
        }
        self.with_controller(host, |controller, out| {
            if controller.next_deadline().is_some_and(|deadline| deadline <= now) {
                controller.on_deadline(now, out);
            }
        });
        self.advance(now, host);
    }

    /// Calls the controller, if the run goes on, and sends what it says.
    fn with_controller(&mut self, host: &mut Host, call: impl FnOnce(&mut Controller, &mut Outbox)) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        let mut out = Outbox::new();
        call(&mut self.controller, &mut out);
        let mut sends = Vec::new();
        route(&mut out, &[], |to, message| sends.push((to, message)), |_| {});
        sends.iter().for_each(|(to, message)| self.registrar.remember(*to, message));
        if sends.iter().any(|(_, message)| Registrar::remembers(message)) {
            // The next life has to know what was said.
            self.keep();
        }
        sends.into_iter().for_each(|(to, message)| host.send_from_control(to, message));
    }

    fn on_message(&mut self, now: Time, host: &mut Host, from: NodeId, message: Message) {
        let may_say = |role| !message.is_about_connections() && message.may_go(role, Role::RunControl);
        if !self.assembly.application(from).is_some_and(|app| may_say(app.role)) {
            self.controller.refuse(from, &message);
            return self.warn(&format!(
                "{} says {} to run control, which has to hear none",
                self.name(from),
                message.name()
            ));
        }
        if let Some(silent) = self.silence.hear(now, from) {
            let silent = human::time(silent.as_secs_f64());
            self.say(Said::notice(format!("{} answers again, after {silent}", self.name(from))));
        }
        if let Message::Notice(text) | Message::News(text) = &message {
            if matches!(message, Message::News(_)) {
                if text == RECORDING_RESUMED {
                    self.words.forget(from);
                }
                return self.say(Said::notice(format!("{}: {text}", self.name(from))));
            }
            let said = causes::apart(text);
            let line = format!("{}: {}", self.name(from), said[0]);
            let said_why = self.words.hear(from, said);
            return self.say(Said::warning(line).because(said_why));
        }
        let message = match message {
            Message::Sample(recording) => return self.show(now, from, *recording),
            Message::Stamped(file) => return self.on_stamped(from, file),
            message => message,
        };
        self.with_controller(host, |controller, out| controller.on_message(now, from, message, out));
    }

    /// Hands an event to whoever watches, if anybody does.
    fn show(&self, now: Time, from: NodeId, recording: Recording) {
        let Some(news) = self.asks.wanted.as_ref().and_then(|wanted| wanted.news.as_ref()) else { return };
        let Some(application) = self.assembly.application(from) else { return };
        let of = (application.name.clone(), application.role);
        news.sample(Sampled::new(&self.showing.samples, of, now, recording));
    }

    fn on_tick(&mut self, now: Time, host: &mut Host) {
        self.kill_whom_somebody_wants_gone();
        self.reap(now, host);
        if self.registrar.is_about_to_start(now) {
            self.keep();
        }
        self.with_registrar(now, host, |registrar, hands| registrar.on_deadline(hands));
        if let Phase::Starting { .. } | Phase::Booting { .. } = self.phase
            && let Some((node, reason)) = self.registrar.blamed(now)
        {
            self.fail(StartError::Child { name: self.name(node), reason });
        }
        self.children.said().into_iter().for_each(|(text, causes)| self.say(Said::warning(text).because(causes)));
        if matches!(self.phase, Phase::TakingOver { .. }) {
            self.confirm_now_and_then(now);
            if self.is_time_to_tell(now) {
                self.tell_whom_it_waits_for();
            }
            return self.note_wishes(now, host);
        }
        if matches!(self.phase, Phase::Running) {
            self.end_late();
        }
        self.keep_now_and_then(now);
        for wish in self.control.take() {
            self.fulfil(now, host, wish);
        }
        self.control.is(self.controller.state());
        self.children.set_state(self.controller.state());
        if self.is_time_to_tell(now) {
            self.look_after(now, host);
            self.show_progress(now, host);
            self.tell_whom_it_waits_for();
        }
    }

    fn is_time_to_tell(&mut self, now: Time) -> bool {
        let is_due = self.showing.next_progress <= now;
        if is_due {
            self.showing.next_progress = now + if self.has_many() { PROGRESS_EVERY_OF_MANY } else { PROGRESS_EVERY };
        }
        is_due
    }

    fn reap(&mut self, now: Time, host: &mut Host) {
        let fates = self.children.reap();
        let names: Vec<String> = fates.iter().map(|(node, _)| self.name(*node)).collect();
        self.gathered = Some(Vec::new());
        for (node, mut fate) in fates {
            if let Fate::Ended(_) | Fate::Stopped(_) = fate {
                self.await_no_stamps_of(node);
            }
            if self.silence.end(node) && matches!(fate, Fate::Ended(_)) {
                let after = human::time(self.assembly.partition.processes.hang_timeout.duration().as_secs_f64());
                fate = Fate::Ended(format!("it hung, and was ended after {after} of silence (processes.hang_timeout)"));
            }
            let done = self.with_registrar(now, host, |registrar, hands| {
                match &fate {
                    Fate::Ended(how) => registrar.on_ended(hands, node, how),
                    Fate::Stopped(how) => registrar.on_stopped(hands, node, how),
                    Fate::Wanted => return registrar.on_wanted(hands, node),
                    Fate::Was(life) => registrar.on_known_life((node, *life)),
                }
                Ok(())
            });
            done.err().into_iter().for_each(|why| self.children.refuse(node, why));
        }
        let said = self.gathered.take().unwrap_or_default();
        names::folded(said, &names).into_iter().for_each(|said| self.say(said));
        if self.controller.draining().is_some() {
            self.with_registrar(now, host, |registrar, hands| registrar.give_up_held(hands));
        }
    }

    /// Does what somebody wants of the run.
    fn fulfil(&mut self, now: Time, host: &mut Host, wish: Wish) {
        if let Wish::Stamp(stamps) = wish {
            return self.want_stamps(host, stamps);
        }
        let ends = !matches!(wish, Wish::Pause | Wish::Resume);
        match (&self.phase, wish) {
            (Phase::Starting { .. } | Phase::Booting { .. }, _) if ends => self.fail(StartError::Interrupted),
            (Phase::Running, Wish::Interrupt) => {
                self.say(Said::notice("stopping: what is in hand is finished (interrupt again to give it up)"));
                self.with_controller(host, |controller, out| controller.stop(now, out));
            }
            (Phase::Running, Wish::Stop) => {
                self.say(Said::notice("stopping: what is in hand is finished"));
                self.with_controller(host, |controller, out| controller.stop(now, out));
            }
            (Phase::Running, Wish::Force(reason)) if !self.controller.is_forced() => {
                self.warn("forced to stop: what is in hand is given up");
                self.with_controller(host, |controller, out| controller.force(now, reason, out));
            }
            (Phase::Running, Wish::Pause) => self.with_controller(host, Controller::pause),
            (Phase::Running, Wish::Resume) => self.with_controller(host, Controller::resume),
            _ => {}
        }
    }

    /// Goes on to the next phase when this one is finished.
    fn advance(&mut self, now: Time, host: &mut Host) {
        match &self.phase {
            Phase::Starting { deadline } => {
                let deadline = *deadline;
                if self.registrar.all_joined() {
                    self.configured();
                }
                if self.registrar.all_ready() && self.children.unfindable().is_empty() {
                    self.begin(now, host);
                } else if deadline <= now {
                    self.fail_to_start();
                }
            }
            Phase::Booting { deadline } => {
                let deadline = *deadline;
                if self.registrar.all_joined() && self.children.unfindable().is_empty() {
                    self.booted(now, host);
                } else if deadline <= now {
                    self.fail_to_start();
                }
            }
            Phase::TakingOver { deadline } => {
                if *deadline <= now {
                    self.with_registrar(now, host, |registrar, hands| registrar.give_up_missing(hands, false));
                }
                if self.registrar.knows_all() {
                    self.go_on(now, host);
                }
            }
            Phase::Running => {
                if let Some(ending) = self.controller.ending() {
                    self.end(now, host, ending);
                }
            }
            Phase::Stamping { deadline, .. } => {
                if self.have_stamps_ended() || *deadline <= now {
                    self.leave(now, host);
                }
            }
            Phase::Ending { deadline, goes_on, .. } => {
                let are_done = match goes_on {
                    true => self.registrar.all_living_joined() && self.children.are_known(),
                    false => self.children.all_ended(),
                };
                if are_done || *deadline <= now {
                    self.finish(now, host);
                }
            }
            Phase::Idle | Phase::Over | Phase::Failed(_) => {}
        }
        if matches!(self.phase, Phase::Failed(_)) {
            self.give_up(now, host);
        }
    }

    fn begin(&mut self, now: Time, host: &mut Host) {
        self.controller.connect().expect("they were configured");
        self.phase = Phase::Running;
        self.registrar.begin();
        self.measures.begin(now, &self.children);
        self.succession.begin();
        self.stamp_from_start(host);
        self.with_controller(host, |controller, out| controller.start(now, out).expect("they are connected"));
        self.has_begun();
    }

    /// Whoever wanted the run is told that it goes on.
    fn has_begun(&mut self) {
        self.control.is(self.controller.state());
        self.control.waits(None);
        if let Some(begin) = self.asks.wanted.as_mut().and_then(|wanted| wanted.begin.take()) {
            // Whoever wanted the run may have lost patience.
            let _ = begin.send(self.control.of_this_run());
        }
        if let Some(probe) = &mut self.probe.0 {
            probe.begun();
        }
    }

    fn fail_to_start(&mut self) {
        let missing = names::few(&self.missing());
        let cause = self.registrar.take_not_accepted();
        let cause = cause.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let timeout = self.assembly.partition.processes.start_timeout.duration();
        self.fail(StartError::StartTimeout { timeout, missing, cause });
    }

    fn fail(&mut self, error: StartError) {
        self.phase = Phase::Failed(error);
    }

    /// Asks all applications how far they are. Who lives and does not answer is told to people, and lost in the end.
    fn look_after(&mut self, now: Time, host: &mut Host) {
        let question = match (&self.phase, self.controller.draining()) {
            (Phase::Running, None) if self.controller.is_running() => Command::Report,
            // A report could come when the last ones are collected.
            (Phase::Running, Some(_)) => Command::Progress,
            _ => return self.silence.forget(),
        };
        // Who was started again is not there yet, and has a deadline of its own.
        let there = self.registrar.members().filter_map(|((node, _), link)| link.is_some().then_some(node));
        let there: BTreeSet<NodeId> = there.collect();
        for child in self.children.iter().filter(|child| !child.has_ended() && there.contains(&child.node())) {
            host.send_from_control(child.node(), Message::Command(question));
            self.silence.ask(now, child.node());
        }
        let newly = self.silence.newly_silent(now);
        let silent = self.silence.silent(now).filter(|(node, _)| newly.contains(node));
        self.silent_in_words(silent).iter().for_each(|text| self.warn(text));
        for node in self.silence.newly_lost(now) {
            self.children.kill(node);
        }
    }

    /// One sentence for each host.
    fn silent_in_words(&self, silent: impl Iterator<Item = (NodeId, Duration)>) -> Vec<String> {
        let mut by_host: BTreeMap<Option<usize>, Vec<(NodeId, Duration)>> = BTreeMap::new();
        silent.for_each(|silent| by_host.entry(self.assembly.host_of(silent.0)).or_default().push(silent));
        let lost_after = self.assembly.partition.processes.hang_timeout.duration();
        let words = by_host.into_iter().map(|(host, silent)| {
            let host = host.map(|host| self.host(host));
            let names: Vec<String> = silent.iter().map(|(node, _)| self.name(*node)).collect();
            let longest = silent.iter().map(|(_, silent)| *silent).max().unwrap_or_default();
            names::silent(&names, host, longest, lost_after)
        });
        words.collect()
    }

    fn show_progress(&mut self, now: Time, host: &mut Host) {
        let size = self.assembly.partition.run.size;
        if !matches!(self.phase, Phase::Running) || !(self.probe.0.is_some() || self.has_reader() || size.is_some()) {
            return;
        }
        let controller = &self.controller;
        let elapsed = now.since(self.measures.began.unwrap_or(now));
        let reports = self
            .assembly
            .applications
            .iter()
            .filter_map(|app| host.report(now, app.node).or_else(|| controller.lives().of(app.node)));
        let mut figures = figures(elapsed, &self.assembly, reports);
        figures.stopping = controller.draining();
        // Who hangs holds up others, and what these say is about that.
        figures.troubles = self.silent_in_words(self.silence.silent(now));
        figures.troubles.extend(self.words.troubles(|node| self.assembly.name(node)));
        figures.silent = self.silence.silent(now).map(|(node, silent)| (self.name(node), silent)).collect();
        // What a life had counted since its last report died with it, until the next one finds it in files or is told.
        figures.is_at_least(&self.showing.figures);
        self.showing.figures.clone_from(&figures);
        if let Some(probe) = &mut self.probe.0 {
            probe.figures(&figures);
        }
        if let Some(news) = self.asks.wanted.as_ref().and_then(|wanted| wanted.news.as_ref()) {
            news.figures(&figures);
        }
        if size.is_some_and(|size| figures.bytes_recorded >= size.bytes()) {
            self.with_controller(host, |controller, out| controller.stop(now, out));
        }
        if self.controller.is_running() {
            self.ask_for_samples(host);
        }
    }

    /// Each may show some events until it is asked again: who is not asked shows none. All are asked in turn, so many at once that what
    /// they may show together is not too much for run control.
    fn ask_for_samples(&mut self, host: &mut Host) {
        let sampling = &self.assembly.partition.sampling;
        let shows = |role| sampling.stages.iter().any(|stage| stage.role() == role);
        let showing = self.assembly.applications.iter().filter(|app| shows(app.role)).map(|app| app.node);
        let showing: Vec<NodeId> = showing.collect();
        if showing.is_empty() || !self.has_reader() {
            return;
        }
        let at_once = (SAMPLED_BYTES / sampling.size.bytes().max(1)).clamp(1, showing.len() as u64) as usize;
        for place in self.showing.next_sample..self.showing.next_sample + at_once {
            host.send_from_control(showing[place % showing.len()], Message::Command(Command::Sample));
        }
        self.showing.next_sample = (self.showing.next_sample + at_once) % showing.len();
    }

    /// Whether there are so many applications that they are not asked more often than people look.
    fn has_many(&self) -> bool {
        self.assembly.applications.len() > FEW_MAX
    }

    fn has_reader(&self) -> bool {
        self.asks.wanted.as_ref().is_some_and(|wanted| wanted.news.is_some())
    }

    fn warn(&mut self, text: &str) {
        self.say(Said::warning(text));
    }

    fn say(&mut self, said: Said) {
        if let Some(gathered) = &mut self.gathered {
            return gathered.push(said);
        }
        if let Some(probe) = &mut self.probe.0 {
            if self.asks.wanted.is_some() { probe.said(&said) } else { probe.said_between_runs(&said) }
        }
        if let Some(news) = self.asks.wanted.as_ref().and_then(|wanted| wanted.news.as_ref()) {
            news.said(&said);
        }
    }

    fn name(&self, node: NodeId) -> String {
        self.assembly.name(node)
    }
}

const TICK: Duration = Duration::from_millis(20);
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
const PROGRESS_EVERY_OF_MANY: Duration = Duration::from_secs(1);
const FEW_MAX: usize = 500;
/// In that time, applications may show so many bytes of events, or one of them what it may.
const SAMPLED_BYTES: u64 = 16 << 20;

const EXIT_TIMEOUT: Duration = Duration::from_secs(20);
const NOT_ENDED: &str = "was told to end, did not";
