//! `weir agent`: starts, watches and ends the applications of a host.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use base::time::Time;
use membership::NO_RUN;
use membership::agents::words::{Beat, Errand, Order, Word, fingerprint};
use membership::agents::{CONTROL, Household, HouseholdDriver, Leases};
use membership::run_secret::RunSecret;
use rustix::event::{PollFd, Timespec, poll};
use transport::clock;
use transport::error::OsError;
use transport::random::random;

use crate::introduction::{Introduction, OfAgent};
use crate::peer::{Gone, Heard, Peer};
use crate::process::{Line, cpu_seconds_of, describe, kill_group, start};

/// The agent of a host, as run control has launched it.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Where run control listens for agents.
    pub join: SocketAddr,
    /// The address of its host in the network that carries data.
    pub at: IpAddr,
    /// Where applications work; without it where the agent was started.
    pub directory: Option<PathBuf>,
}

/// Why an agent does not serve.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum AgentError {
    #[error(
        "standard input: {0}: `weir agent` is started by a launcher of `weir run`, which tells it the secret of the run there"
    )]
    NotIntroduced(io::Error),
    #[error("{directory}: {cause}: expected the folder where applications work (host.directory)", directory = directory.display())]
    Directory { directory: PathBuf, cause: io::Error },
    #[error("run control at {join} cannot be reached: {cause}: transport.host names its address")]
    NotReached { join: SocketAddr, cause: io::Error },
    #[error("run control at {join} does not let it in: {cause}")]
    NotMet { join: SocketAddr, cause: String },
    #[error("this program does not know where it is: {0}")]
    Program(io::Error),
    #[error(transparent)]
    Os(#[from] OsError),
}

impl Agent {
    /// Serves run control until that needs it no more, or is gone. Then no application is left. The standard input holds what run control
    /// tells nobody else.
    ///
    /// # Errors
    /// It cannot serve.
    pub fn run(&self) -> Result<(), AgentError> {
        let introduction = OfAgent::hear().map_err(AgentError::NotIntroduced)?;
        if let Some(directory) = &self.directory {
            let entered = std::env::set_current_dir(directory);
            entered.map_err(|cause| AgentError::Directory { directory: directory.clone(), cause })?;
        }
        let program = std::env::current_exe().map_err(AgentError::Program)?;
        let not_reached = |cause| AgentError::NotReached { join: self.join, cause };
        let stream = TcpStream::connect_timeout(&self.join, CONNECT_TIMEOUT).map_err(not_reached)?;
        let pair = (introduction.agent, CONTROL);
        let peer =
            Peer::connected(stream, &introduction.secret, pair, random()?).map_err(|gone| self.not_met(&gone))?;
        let leases = Leases::new(introduction.lease);
        let household = Household::new(clock::now(), leases);
        let home = Home { introduction, program, at: self.at, children: BTreeMap::new(), words: Vec::new() };
        let mut serving = Serving { household, home, peer: Some(peer), leases, next_beat: None, left_out: 0 };
        let mut gone = None;
        while !serving.household.is_over() {
            gone = serving.pass().or(gone);
        }
        match gone {
            Some(gone) if serving.next_beat.is_none() => Err(self.not_met(&gone)),
            _ => Ok(()),
        }
    }

    fn not_met(&self, gone: &Gone) -> AgentError {
        AgentError::NotMet { join: self.join, cause: gone.to_string() }
    }
}

struct Serving {
    household: Household,
    home: Home,
    /// None once its connection has ended.
    peer: Option<Peer>,
    leases: Leases,
    /// None until run control has proved who it is.
    next_beat: Option<Time>,
    left_out: u32,
}

impl Serving {
    /// Waits for something, and does it; why the connection has ended, if it has now.
    fn pass(&mut self) -> Option<Gone> {
        self.wait();
        let (mut heard, mut gone) = (Vec::new(), None);
        if let Some(peer) = &mut self.peer {
            let (frames, result) = peer.hear();
            (heard, gone) = (frames, result.err());
        }
        let now = clock::now();
        for heard in heard {
            match heard {
                Heard::Met(_) => self.next_beat = Some(now),
                Heard::Frame(bytes) => match Order::from_bytes(&bytes) {
                    Ok(order) => self.household.on_order(&mut self.home, order),
                    Err(other) => gone = Some(Gone::Broken(io::Error::other(other))),
                },
            }
        }
        for (number, how) in self.home.reap() {
            self.household.on_ended(&mut self.home, number, how);
        }
        self.household.on_deadline(now, &mut self.home);
        let gone = gone.or_else(|| self.say(now).err());
        if gone.is_some() || !self.household.is_serving() {
            self.peer = None;
            self.household.on_left(now);
        }
        gone
    }

    fn wait(&self) {
        let now = clock::now();
        let wait = self.household.next_deadline().map_or(TICK, |at| at.since(now).min(TICK));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let awaited = self.peer.iter().map(|peer| PollFd::from_borrowed_fd(peer.as_fd(), peer.awaits()));
        let mut awaited: Vec<PollFd<'_>> = awaited.collect();
        // A signal that comes is none that is waited for.
        let _ = poll(&mut awaited, Some(&timeout));
    }

    fn say(&mut self, now: Time) -> Result<(), Gone> {
        let words = core::mem::take(&mut self.home.words);
        let Some(peer) = &mut self.peer else { return Ok(()) };
        words.iter().try_for_each(|word| peer.say(&word.to_bytes()))?;
        if let Some(next) = self.next_beat.filter(|next| *next <= now) {
            self.next_beat = Some(next.max(now) + self.leases.beat());
            let beat = Beat { left_out: self.left_out, cpu_us: self.home.cpu_us() };
            if !peer.show(&Word::Beat(beat).to_bytes())? {
                self.left_out = self.left_out.saturating_add(1);
            }
        }
        peer.flush()
    }
}

/// The applications of this host. Dropping it ends them.
struct Home {
    introduction: OfAgent,
    program: PathBuf,
    at: IpAddr,
    children: BTreeMap<u32, Child>,
    /// What is to be said.
    words: Vec<Word>,
}

impl HouseholdDriver for Home {
    fn start(&mut self, errand: &Errand) -> Result<(), String> {
        let Errand { number, node, life, secret, name, join, options } = errand;
        let secret = self.secret(*secret).ok_or("its secret does not follow from the one that its agent knows")?;
        let introduction =
            Introduction { secret, run: NO_RUN, node: *node, life: *life, links: self.introduction.links.clone() };
        let line = Line { name, join, at: Some(self.at), ports: &[], options, neighbours: self.children.len() };
        let child = start(&self.program, &line, &introduction);
        let child = child.map_err(|cause| format!("{}: {cause}", self.program.display()))?;
        self.children.insert(*number, child);
        Ok(())
    }

    fn kill(&mut self, number: u32) {
        self.children.get_mut(&number).into_iter().for_each(kill_group);
    }

    fn say(&mut self, word: Word) {
        self.words.push(word);
    }
}

impl Home {
    /// Which of the secrets is meant. Those before it are of no use any more.
    fn secret(&mut self, meant: [u8; 16]) -> Option<RunSecret> {
        let of_runs =
            core::iter::successors(Some(self.introduction.of_applications.clone()), |secret| Some(secret.next()));
        let found = of_runs.take(RUNS_MAX).find(|secret| fingerprint(secret) == meant)?;
        self.introduction.of_applications = found.clone();
        Some(found)
    }

    /// Those that have ended since the last call, with how.
    fn reap(&mut self) -> Vec<(u32, String)> {
        let ended = |(number, child): (&u32, &mut Child)| Some((*number, describe(child.try_wait().ok()??)));
        let ended: Vec<(u32, String)> = self.children.iter_mut().filter_map(ended).collect();
        ended.iter().for_each(|(number, _)| _ = self.children.remove(number));
        ended
    }

    fn cpu_us(&self) -> Vec<(u32, u64)> {
        let of = |(number, child): (&u32, &Child)| Some((*number, (cpu_seconds_of(child.id())? * 1e6) as u64));
        self.children.iter().filter_map(of).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.children.values_mut().for_each(kill_group);
        self.children.values_mut().for_each(|child| _ = child.wait());
    }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two looks at processes, which nothing announces.
const TICK: Duration = Duration::from_millis(20);
/// Far more runs than the same processes have.
const RUNS_MAX: usize = 1 << 20;
