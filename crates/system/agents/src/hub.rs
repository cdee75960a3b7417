//! Run control's side of agents: a thread that launches, hears and tells them. Whatever run control does meanwhile, agents hear of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base::causes::sentences;
use base::ids::{Incarnation, NodeId};
use base::time::Time;
use control::states::State;
use membership::agents::words::{Errand, Order, Word, fingerprint};
use membership::agents::{Inheritance, Leases, Roster, RosterDriver, agent, control, secret_of_agents};
use membership::challenge::Member;
use membership::run_secret::RunSecret;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use transport::clock;
use transport::random::random;

use crate::calls::{Calls, Wake};
use crate::farm::{Farm, Start};
use crate::introduction::{Introduction, OfAgent};
use crate::launcher;
use crate::peer::{Gone, Heard, Peer};
use crate::process::{describe, kill_group};

/// The agents of a partition. Dropping it lets them go, and waits until they have gone.
pub(crate) struct Hub {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What has become of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has ended, or was not started, in this way.
    Ended(String),
    /// Somebody at its host has stopped it, as these words say.
    Stopped(String),
    /// Somebody at its host wants it back.
    Wanted,
    /// What is told next is of this life of it.
    Was(Incarnation),
}

struct Shared {
    state: Mutex<Exchange>,
    /// There is news.
    changed: Condvar,
    /// Wakes the thread.
    wake: OwnedFd,
}

struct Exchange {
    wishes: VecDeque<Wish>,
    /// Nobody wants anything any more.
    is_left: bool,
    news: Vec<(NodeId, Fate)>,
    state: State,
    cpu: BTreeMap<NodeId, Duration>,
    has_unknown: bool,
    /// Hosts whose agents are there and have not said yet where they listen.
    unfindable: Vec<usize>,
    /// Applications of a former life of run control that live, and for how long their agents were without it.
    found: Vec<(Member, Duration)>,
    /// Of each host, the newest life of its agent and where that listens.
    agents: Vec<Agent>,
    /// Words for people, with what has led to them.
    said: Vec<(String, Vec<String>)>,
}

impl Exchange {
    fn new() -> Self {
        let (wishes, cpu, said) = (VecDeque::new(), BTreeMap::new(), Vec::new());
        let (news, found, agents) = (Vec::new(), Vec::new(), Vec::new());
        let (has_unknown, unfindable) = (false, Vec::new());
        Self { wishes, is_left: false, news, state: State::Absent, cpu, has_unknown, unfindable, found, agents, said }
    }
}

/// The newest life of an agent, and where it listens for run control that comes back, if it has said so.
pub(crate) type Agent = (Incarnation, Option<SocketAddr>);

enum Wish {
    /// On a host, with this secret.
    Start(usize, RunSecret, Errand),
    Kill(NodeId),
    Refuse(NodeId, String),
}

impl Hub {
    /// Listens for agents. The secrets of later introductions follow from that of this one.
    pub(crate) fn open(farm: Farm, program: &Path, introduction: &Introduction) -> io::Result<Self> {
        let agents = vec![Agent::default(); farm.hosts.len()];
        Self::taking_over(farm, program, introduction, (agents, BTreeMap::new()))
    }

    /// The same, and calls the agents of hosts that have `applications` of a former life of run control, or all where there are none.
    pub(crate) fn taking_over(
        farm: Farm,
        program: &Path,
        introduction: &Introduction,
        (agents, applications): (Vec<Agent>, BTreeMap<NodeId, usize>),
    ) -> io::Result<Self> {
        let listen = farm.listen.ok_or_else(|| io::Error::other("a partition without hosts has no agents"))?;
        let listener = TcpListener::bind((listen, 0))?;
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let shared = Shared::new()?;
        let leases = Leases::new(farm.lease);
        let mut roster = Roster::new(farm.hosts.iter().map(|host| host.name.clone()), leases, farm.start_timeout);
        let listening = (0..agents.len()).filter(|host| applications.is_empty() && agents[*host].1.is_some());
        let called: BTreeSet<usize> = applications.values().copied().chain(listening).collect();
        let calls = Calls::begin(called.iter().map(|host| (*host, agents[*host].1)), farm.lease, waking(&shared));
        let lives = agents.iter().map(|(life, _)| *life).collect();
        roster
            .inherit(clock::now(), Inheritance { control: introduction.control, agents: lives, applications, called });
        let hands = Hands {
            join: listener.local_addr()?,
            directory: std::env::current_dir()?,
            program: program.to_owned(),
            secret: secret_of_agents(&introduction.secret),
            of_applications: introduction.secret.clone(),
            links: introduction.links.clone(),
            launchers: farm.hosts.iter().map(|_| None).collect(),
            farm,
            links_to: BTreeMap::new(),
            broken: Vec::new(),
            news: Vec::new(),
            cpu: Vec::new(),
            found: Vec::new(),
            said: Vec::new(),
            agents,
            control: introduction.control,
        };
        epoll::add(&epoll, &shared.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let now = clock::now();
        let news = News { epoll, ready: Vec::new(), has_wishes: false, reaps_at: now, looks_at: now };
        let serving = Serving { shared: shared.clone(), listener, news, roster, hands, leases, next_link: 0, calls };
        let thread = thread::Builder::new().name("agents".into()).spawn(move || serving.serve())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Starts an application on a host.
    pub(crate) fn start(&self, host: usize, wanted: Start<'_>, options: Vec<String>) {
        let Start { name, join, introduction, .. } = wanted;
        let Introduction { secret, node, life, .. } = introduction;
        let errand = Errand { number: 0, node: *node, life: *life, secret: fingerprint(secret), name, join, options };
        self.wish(Wish::Start(host, secret.clone(), errand));
    }

    /// Ends an application at once.
    pub(crate) fn kill(&self, node: NodeId) {
        self.wish(Wish::Kill(node));
    }

    /// One that somebody at its host wants back does not start, for this reason.
    pub(crate) fn refuse(&self, node: NodeId, why: &str) {
        self.wish(Wish::Refuse(node, why.to_owned()));
    }

    /// Agents are told the state of the partition.
    pub(crate) fn set_state(&self, state: State) {
        let before = core::mem::replace(&mut self.shared.state().state, state);
        if before != state {
            self.shared.wake();
        }
    }

    /// What has become of applications since the last call; waits so long for something.
    pub(crate) fn news(&self, wait: Duration) -> Vec<(NodeId, Fate)> {
        let state = self.shared.state();
        let waited = self.shared.changed.wait_timeout_while(state, wait, |state| state.news.is_empty());
        core::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).0.news)
    }

    /// Whether something may live on a host that was lost.
    pub(crate) fn has_unknown(&self) -> bool {
        self.shared.state().has_unknown
    }

    /// The hosts whose agents are there, but the next life of run control could not call them.
    pub(crate) fn unfindable(&self) -> Vec<usize> {
        self.shared.state().unfindable.clone()
    }

    /// Applications of a former life of run control that were found since the last call, and for how long their agents were without it.
    pub(crate) fn found(&self) -> Vec<(Member, Duration)> {
        core::mem::take(&mut self.shared.state().found)
    }

    /// What there is to say to people since the last call, and what has led to that.
    pub(crate) fn said(&self) -> Vec<(String, Vec<String>)> {
        core::mem::take(&mut self.shared.state().said)
    }

    /// Of each host, the newest life of its agent and where that listens.
    pub(crate) fn agents(&self) -> Vec<Agent> {
        self.shared.state().agents.clone()
    }

    /// Processor time of applications, as their agents told last.
    pub(crate) fn cpu(&self) -> BTreeMap<NodeId, Duration> {
        self.shared.state().cpu.clone()
    }

    fn wish(&self, wish: Wish) {
        self.shared.state().wishes.push_back(wish);
        self.shared.wake();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.shared.state().is_left = true;
        self.shared.wake();
        // One that has panicked has said so.
        self.thread.take().into_iter().for_each(|thread| _ = thread.join());
    }
}

impl Shared {
    fn new() -> io::Result<Arc<Self>> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self { state: Mutex::new(Exchange::new()), changed: Condvar::new(), wake }))
    }

    fn state(&self) -> MutexGuard<'_, Exchange> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // It can only be full, and then wakes as well.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

fn waking(shared: &Arc<Shared>) -> Wake {
    let shared = Arc::clone(shared);
    Arc::new(move || shared.wake())
}

struct Serving {
    shared: Arc<Shared>,
    listener: TcpListener,
    news: News,
    roster: Roster,
    hands: Hands,
    leases: Leases,
    next_link: usize,
    calls: Calls,
}

/// What tells the thread where there is something to do: of hundreds of agents few have something to say in each pass.
struct News {
    epoll: OwnedFd,
    /// Of the last wait: numbers of connections, [`WAKE`] or [`LISTENER`].
    ready: Vec<u64>,
    /// More is wanted than was done in the last pass.
    has_wishes: bool,
    /// When it looks at launchers again.
    reaps_at: Time,
    /// When it looks again whether another run control has taken over.
    looks_at: Time,
}

/// A connection of an agent, or of somebody who has not proved to be one.
struct Linked {
    peer: Peer,
    since: Time,
    /// Whether the thread wakes when the connection takes more.
    awaits_room: bool,
}

/// What the roster asks for.
struct Hands {
    farm: Farm,
    join: SocketAddr,
    directory: PathBuf,
    program: PathBuf,
    /// What agents prove with.
    secret: RunSecret,
    /// What the applications have that start now.
    of_applications: RunSecret,
    links: Option<link::Secret>,
    /// By host.
    launchers: Vec<Option<Child>>,
    links_to: BTreeMap<usize, Linked>,
    /// Connections that are of no use any more, with why.
    broken: Vec<(usize, Gone)>,
    news: Vec<(NodeId, Fate)>,
    /// Told since it was published.
    cpu: Vec<(NodeId, Duration)>,
    found: Vec<(Member, Duration)>,
    said: Vec<(String, Vec<String>)>,
    agents: Vec<Agent>,
    /// The life of run control.
    control: Incarnation,
}

impl Serving {
    fn serve(mut self) {
        loop {
            self.wait(self.roster.next_deadline());
            let now = clock::now();
            let (wishes, is_left, state) = {
                let mut state = self.shared.state();
                // Who is to end waits for nobody to start.
                let ends = state.wishes.iter().any(|wish| matches!(wish, Wish::Kill(_)));
                let few = if ends { state.wishes.len() } else { state.wishes.len().min(WISHES_PER_PASS) };
                let wishes: Vec<Wish> = state.wishes.drain(..few).collect();
                self.news.has_wishes = !state.wishes.is_empty();
                (wishes, state.is_left, state.state)
            };
            self.roster.set_state(now, &mut self.hands, state);
            wishes.into_iter().for_each(|wish| self.fulfil(now, wish));
            self.accept(now);
            self.call(now);
            self.hear(now);
            if self.is_passed(now) {
                // What was launched belongs to somebody else by now.
                return;
            }
            self.reap(now);
            self.roster.on_deadline(now, &mut self.hands);
            self.lose_broken(now);
            // Run control knows what has come before agents act on what is said.
            self.publish();
            self.hands.flush();
            self.await_room();
            if is_left {
                return self.leave();
            }
        }
    }

    fn wait(&mut self, deadline: Option<Time>) {
        let now = clock::now();
        let wait = deadline.map_or(TICK, |at| at.since(now).min(TICK));
        let wait = if self.news.has_wishes { Duration::ZERO } else { wait };
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut events = Vec::with_capacity(READY_MAX);
        // A signal that comes is none that is waited for.
        let _ = epoll::wait(&self.news.epoll, spare_capacity(&mut events), Some(&timeout));
        self.news.ready = events.iter().map(|event: &Event| event.data.u64()).collect();
        if self.news.ready.contains(&WAKE) {
            let _ = rustix::io::read(&self.shared.wake, &mut [0; 8]);
        }
    }

    fn fulfil(&mut self, now: Time, wish: Wish) {
        match wish {
            Wish::Start(host, secret, errand) => {
                self.hands.of_applications = secret;
                self.roster.start(now, &mut self.hands, host, errand);
            }
            Wish::Kill(node) => self.roster.kill(&mut self.hands, node),
            Wish::Refuse(node, why) => self.roster.refuse(&mut self.hands, node, why),
        }
    }

    /// Takes in who has connected. Strangers have few places, and little time.
    fn accept(&mut self, now: Time) {
        let is_late = |linked: &Linked| linked.peer.is_stranger() && now.since(linked.since) > STRANGER_TIMEOUT;
        self.hands.links_to.retain(|_, linked| !is_late(linked));
        if !self.news.ready.contains(&LISTENER) {
            return;
        }
        for _ in 0..ACCEPTED_MAX {
            // One that is gone again, or finds no descriptor, comes again.
            let Ok((stream, _)) = self.listener.accept() else { break };
            let strangers = self.hands.links_to.iter().filter(|(_, linked)| linked.peer.is_stranger());
            let strangers: Vec<usize> = strangers.map(|(link, _)| *link).collect();
            if strangers.len() >= STRANGERS_MAX + self.hands.farm.hosts.len() {
                self.hands.links_to.remove(&strangers[0]);
            }
            let Ok(nonce) = random() else { break };
            let here = control(self.hands.control);
            if let Ok(peer) = Peer::accepted(stream, (&self.hands.secret, here), nonce) {
                // One for which there is no room comes again.
                let _ = self.add(peer, now);
            }
        }
    }

    /// Goes on with connections to agents that were made.
    fn call(&mut self, now: Time) {
        self.calls.redial(now);
        while let Some((host, made)) = self.calls.next() {
            let pair = (control(self.hands.control), (agent(host), self.hands.agents[host].0));
            let peer = made.and_then(|stream| {
                let nonce = random().map_err(io::Error::other)?;
                Peer::connected(stream, &self.hands.secret, pair, nonce).map_err(io::Error::other)
            });
            match peer.and_then(|peer| self.add(peer, now)) {
                Ok(link) => self.calls.await_proof(link, host),
                Err(error) => self.not_called(now, host, &error),
            }
        }
    }

    /// The agent of a host was called in vain. It is called again within the lease, unless nothing listens there any more.
    fn not_called(&mut self, now: Time, host: usize, why: &io::Error) {
        if why.kind() == ErrorKind::ConnectionRefused || !self.calls.call_again(now, host) {
            let reason = format!("its agent cannot be called: {why}");
            return self.roster.on_not_found(now, &mut self.hands, host, &reason);
        }
        if self.calls.note_in_vain(host) {
            let (name, lease) = (&self.hands.farm.hosts[host].name, self.hands.farm.lease);
            let text = format!(
                "run control waits for the agent of host {name}; it is called again for {lease:?} at most (processes.lease)"
            );
            self.hands.said.push((text, sentences(why)));
        }
    }

    fn add(&mut self, peer: Peer, now: Time) -> io::Result<usize> {
        let link = self.next_link;
        let data = EventData::new_u64(link as u64);
        epoll::add(&self.news.epoll, &peer, data, READABLE)?;
        self.hands.links_to.insert(link, Linked { peer, since: now, awaits_room: false });
        self.next_link += 1;
        Ok(link)
    }

    /// Whether another run control has taken over: agents have left this one for it, or it did not look for long.
    fn is_passed(&mut self, now: Time) -> bool {
        if self.hands.broken.is_empty() && now < self.news.looks_at {
            return false;
        }
        self.news.looks_at = now + self.leases.beat();
        self.hands.farm.fence.is_passed()
    }

    fn hear(&mut self, now: Time) {
        for link in core::mem::take(&mut self.news.ready) {
            let link = link as usize;
            let Some(linked) = self.hands.links_to.get_mut(&link) else { continue };
            let (heard, result) = linked.peer.hear();
            for heard in heard {
                match heard {
                    Heard::Met(member) => {
                        self.calls.end_proof(link);
                        self.roster.on_met(now, &mut self.hands, link, member);
                    }
                    Heard::Frame(bytes) => match Word::from_bytes(&bytes) {
                        Ok(word) => self.roster.on_word(&mut self.hands, link, word),
                        Err(other) => self.hands.broken.push((link, Gone::Broken(io::Error::other(other)))),
                    },
                }
            }
            self.hands.broken.extend(result.err().map(|gone| (link, gone)));
        }
    }

    /// Who takes no more wakes the thread when there is room again.
    fn await_room(&mut self) {
        for (link, linked) in &mut self.hands.links_to {
            linked.await_room(&self.news.epoll, *link);
        }
    }

    fn reap(&mut self, now: Time) {
        if now < self.news.reaps_at {
            return;
        }
        self.news.reaps_at = now + TICK;
        for (host, how) in self.hands.reap() {
            self.roster.on_launcher_ended(now, &mut self.hands, host, &how);
        }
    }

    fn lose_broken(&mut self, now: Time) {
        for (link, gone) in core::mem::take(&mut self.hands.broken) {
            self.hands.links_to.remove(&link);
            match self.calls.end_proof(link) {
                Some(host) => self.not_called(now, host, &io::Error::other(gone)),
                None => self.roster.on_lost(now, &mut self.hands, link, &format!("its agent is gone: {gone}")),
            }
        }
    }

    fn publish(&mut self) {
        let mut state = self.shared.state();
        state.has_unknown = self.roster.has_unknown();
        let is_hidden = |host: &usize| self.hands.agents[*host].1.is_none() && self.roster.is_here(*host);
        state.unfindable.clear();
        state.unfindable.extend((0..self.hands.agents.len()).filter(is_hidden));
        state.cpu.extend(self.hands.cpu.drain(..));
        state.found.append(&mut self.hands.found);
        state.said.append(&mut self.hands.said);
        if state.agents != self.hands.agents {
            state.agents.clone_from(&self.hands.agents);
        }
        if !self.hands.news.is_empty() {
            state.news.append(&mut self.hands.news);
            self.shared.changed.notify_all();
        }
    }

    /// Agents end with their connections, and launchers with them.
    fn leave(mut self) {
        self.hands.farm.roll.clear();
        self.roster.release(&mut self.hands);
        self.hands.flush();
        self.hands.links_to.clear();
        let until = clock::now() + self.leases.of_control() + LEAVE_TIMEOUT;
        while self.hands.launchers.iter().any(Option::is_some) && clock::now() < until {
            self.wait(None);
            self.hands.reap();
        }
        for launcher in self.hands.launchers.iter_mut().flatten() {
            kill_group(launcher);
            let _ = launcher.wait();
        }
    }
}

impl Linked {
    fn await_room(&mut self, epoll: &OwnedFd, link: usize) {
        let has_more = !self.peer.has_sent_all();
        let flags = if has_more { READABLE | EventFlags::OUT } else { READABLE };
        // Who cannot be watched is tried again with the next pass.
        if has_more != self.awaits_room
            && epoll::modify(epoll, &self.peer, EventData::new_u64(link as u64), flags).is_ok()
        {
            self.awaits_room = has_more;
        }
    }
}

impl Hands {
    /// Launchers that have ended, by host, with how.
    fn reap(&mut self) -> Vec<(usize, String)> {
        let mut ended = Vec::new();
        for (host, launcher) in self.launchers.iter_mut().enumerate() {
            if let Some(child) = launcher
                && let Ok(Some(status)) = child.try_wait()
            {
                *launcher = None;
                ended.push((host, describe(status)));
            }
        }
        ended
    }

    fn flush(&mut self) {
        for (link, linked) in &mut self.links_to {
            self.broken.extend(linked.peer.flush().err().map(|gone| (*link, gone)));
        }
    }
}

impl RosterDriver for Hands {
    fn launch(&mut self, place: usize, agent: Member) -> Result<(), String> {
        self.end_launcher(place);
        let host = &self.farm.hosts[place];
        let at = host.data(self.join.ip()).ok_or("its address in the network that carries data is not known")?;
        let directory = host.directory.as_ref().map_or(self.directory.as_path(), Path::new);
        let arguments = [
            "agent".into(),
            "--host".into(),
            host.name.clone().into(),
            "--join".into(),
            self.join.to_string().into(),
            "--at".into(),
            at.to_string().into(),
            "--directory".into(),
            directory.into(),
            "--metrics".into(),
            host.metrics(at).to_string().into(),
        ];
        let mut command = launcher::command(host, &self.program, &arguments);
        let started = command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).spawn();
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = started.map_err(|cause| format!("{program}: {cause}"))?;
        let introduction = OfAgent {
            secret: self.secret.clone(),
            of_applications: self.of_applications.clone(),
            links: self.links.clone(),
            agent,
            lease: self.farm.lease,
            control: self.control,
        };
        let input = child.stdin.take().expect("its input is a pipe");
        // A launcher that is gone already is found when it is reaped.
        let _ = introduction.tell(input);
        self.launchers[place] = Some(child);
        self.agents[place] = (agent.1, None);
        Ok(())
    }

    fn end_launcher(&mut self, place: usize) {
        // Whoever was there is gone by now.
        self.farm.roll.strike(place);
        if let Some(mut launcher) = self.launchers[place].take() {
            kill_group(&mut launcher);
            let _ = launcher.wait();
        }
    }

    fn say(&mut self, link: usize, order: &Order) {
        if let Some(linked) = self.links_to.get_mut(&link) {
            self.broken.extend(linked.peer.say(&order.to_bytes()).err().map(|gone| (link, gone)));
        }
    }

    fn close(&mut self, link: usize) {
        self.links_to.remove(&link);
    }

    fn ended(&mut self, node: NodeId, how: String) {
        self.news.push((node, Fate::Ended(how)));
    }

    fn stopped(&mut self, node: NodeId, how: String) {
        self.news.push((node, Fate::Stopped(how)));
    }

    fn wanted(&mut self, node: NodeId) {
        self.news.push((node, Fate::Wanted));
    }

    fn was(&mut self, (node, life): Member) {
        self.news.push((node, Fate::Was(life)));
    }

    fn used(&mut self, node: NodeId, cpu_us: u64) {
        self.cpu.push((node, Duration::from_micros(cpu_us)));
    }

    fn listens(&mut self, host: usize, (_, life): Member, address: &str) {
        self.agents[host] = (life, address.parse().ok());
    }

    fn shows(&mut self, host: usize, address: &str) {
        let metrics = address.parse().ok();
        self.farm.roll.note(host, &self.farm.hosts[host].name, |present| present.metrics = metrics);
    }

    fn left_out(&mut self, host: usize, beats: u32) {
        self.farm.roll.note(host, &self.farm.hosts[host].name, |present| present.left_out = beats);
    }

    fn found(&mut self, member: Member, silent: Duration) {
        self.found.push((member, silent));
    }
}

/// Between two looks at launchers, whose end nothing announces.
const TICK: Duration = Duration::from_millis(50);
/// Something has come, or nothing will.
const READABLE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);
/// In place of the number of a connection.
const WAKE: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;
/// To launch an agent takes a while, and those that have come would give run control up if nobody heard them before all are launched.
const WISHES_PER_PASS: usize = 4;
/// Others come with the next wait.
const READY_MAX: usize = 128;
/// Connections without a proof, beside one of each host.
const STRANGERS_MAX: usize = 64;
const STRANGER_TIMEOUT: Duration = Duration::from_secs(5);
const ACCEPTED_MAX: usize = 16;
/// What a launcher takes to end behind its agent.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::tests::proven;

    #[test]
    fn a_full_connection_wakes_the_thread_when_it_takes_more() {
        let (mut agent, control) = proven();
        let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        epoll::add(&epoll, &control, EventData::new_u64(7), READABLE).unwrap();
        let mut linked = Linked { peer: control, since: clock::now(), awaits_room: false };
        let wakes = || {
            let mut events = Vec::with_capacity(READY_MAX);
            epoll::wait(&epoll, spare_capacity(&mut events), Some(&Timespec::default())).unwrap();
            events.iter().map(|event: &Event| event.data.u64()).collect::<Vec<_>>()
        };
        while linked.peer.has_sent_all() {
            linked.peer.say(&[0; 100_000]).unwrap();
            linked.peer.flush().unwrap();
        }
        linked.await_room(&epoll, 7);
        assert!(linked.awaits_room && wakes().is_empty(), "nobody has taken anything");
        let since = clock::now();
        while wakes() != [7] {
            agent.hear().1.unwrap();
            assert!(clock::now().since(since) < PATIENCE, "nothing wakes it");
        }
        while !linked.peer.has_sent_all() {
            agent.hear().1.unwrap();
            linked.peer.flush().unwrap();
        }
        linked.await_room(&epoll, 7);
        assert!(!linked.awaits_room && wakes().is_empty(), "all is said");
    }

    /// Only what hangs meets it.
    const PATIENCE: Duration = Duration::from_secs(600);
}
