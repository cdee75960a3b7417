//! `weir agent`: starts, watches and ends the applications of a host.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use base::ids::Incarnation;
use base::time::Time;
use membership::agents::words::{Errand, Word};
use membership::agents::{HouseholdDriver, NotDone, control};
use metering::cpu::cpu_seconds_of;
use transport::clock;
use transport::error::OsError;
use transport::random::random;

use crate::desk::{Asked, Desk, Local, Status};
use crate::inquiry::{HostNow, Inquiries};
use crate::introduction::OfAgent;
use crate::open_door::OpenDoor;
use crate::peer::{Gone, Peer};
use crate::process::{Line, describe, kill_group, start};
use crate::serving::{Home, Serving};

/// The agent of a host, as run control has launched it.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The name of its host.
    pub host: String,
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
    #[error("it cannot listen at {at}: {cause}: expected an address of this host (host.data)")]
    Door { at: IpAddr, cause: io::Error },
    #[error("this program does not know where it is: {0}")]
    Program(io::Error),
    #[error(transparent)]
    Os(#[from] OsError),
}

impl Agent {
    /// Serves run control until that needs it no more, or is gone. Then no application is left. The standard input holds what run control
    /// tells nobody else. What the agent sees is `shown` at an address, which run control is told, by whoever asks for it.
    ///
    /// # Errors
    /// It cannot serve.
    pub fn run(&self, shown: Option<(SocketAddr, Inquiries)>) -> Result<(), AgentError> {
        let introduction = OfAgent::hear().map_err(AgentError::NotIntroduced)?;
        if let Some(directory) = &self.directory {
            let entered = std::env::set_current_dir(directory);
            entered.map_err(|cause| AgentError::Directory { directory: directory.clone(), cause })?;
        }
        let program = std::env::current_exe().map_err(AgentError::Program)?;
        let not_reached = |cause| AgentError::NotReached { join: self.join, cause };
        let stream = TcpStream::connect_timeout(&self.join, CONNECT_TIMEOUT).map_err(not_reached)?;
        let pair = (introduction.agent, control(introduction.control));
        let peer =
            Peer::connected(stream, &introduction.secret, pair, random()?).map_err(|gone| self.not_met(&gone))?;
        let door = OpenDoor::open(self.at, &introduction.secret, introduction.agent);
        let door = door.map_err(|cause| AgentError::Door { at: self.at, cause })?;
        let told = introduction.clone();
        let home = Processes {
            introduction,
            program,
            at: self.at,
            children: BTreeMap::new(),
            starts: BTreeMap::new(),
            words: Vec::new(),
        };
        let (shows, inquiries) = shown.unzip();
        let mut serving = Serving::new(clock::now(), (peer, door), &told, home).showing_at(shows);
        let mut desk = Desk::open(&self.host);
        if let Err(cause) = &desk {
            eprintln!("weir agent {}: `weir ldaq` does not reach it: {cause}", self.host);
        }
        let mut gone = None;
        while !serving.is_over() {
            serving.wait();
            let now = clock::now();
            gone = serving.pass(now).or(gone);
            if let Ok(desk) = &mut desk {
                desk.serve(now, |asked| self.answer(&mut serving, asked));
            }
            inquiries.iter().for_each(|inquiries| inquiries.answer(|| self.host_now(now, &mut serving)));
        }
        match gone {
            Some(gone) if !serving.has_met() => Err(self.not_met(&gone)),
            _ => Ok(()),
        }
    }

    /// Does what somebody at this host wants.
    fn answer(&self, serving: &mut Serving<Processes>, asked: &Asked) -> Result<Status, NotDone> {
        let (household, home) = serving.household();
        match asked {
            Asked::Status => {}
            Asked::Stop(names) => _ = household.stop(home, &as_strs(names))?,
            Asked::Start(names) => _ = household.start(home, &as_strs(names))?,
        }
        Ok(self.status(serving))
    }

    fn host_now(&self, now: Time, serving: &mut Serving<Processes>) -> HostNow {
        let status = self.status(serving);
        let (household, home) = serving.household();
        HostNow { status, silence: household.silence(now), starts: home.starts.clone() }
    }

    fn status(&self, serving: &mut Serving<Processes>) -> Status {
        let (household, home) = serving.household();
        let applications = household.residents().map(|resident| {
            let child = resident.number.and_then(|number| home.children.get(&number));
            let process = child.map(Child::id);
            let cpu = process.and_then(cpu_seconds_of).map_or(Duration::ZERO, Duration::from_secs_f64);
            Local { name: resident.name, process, cpu, is_refused: resident.is_refused, words: resident.words }
        });
        let applications = applications.collect();
        Status { host: self.host.clone(), state: household.state(), applications }
    }

    fn not_met(&self, gone: &Gone) -> AgentError {
        AgentError::NotMet { join: self.join, cause: gone.to_string() }
    }
}

fn as_strs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// The applications of this host. Dropping it ends them.
struct Processes {
    introduction: OfAgent,
    program: PathBuf,
    at: IpAddr,
    children: BTreeMap<u32, Child>,
    /// How often each was started.
    starts: BTreeMap<String, u64>,
    /// What is to be said.
    words: Vec<Word>,
}

impl HouseholdDriver for Processes {
    fn start(&mut self, errand: &Errand) -> Result<(), String> {
        let Errand { number, name, join, options, .. } = errand;
        let introduction = self.introduction.of(errand)?;
        let line = Line { name, join, at: Some(self.at), ports: &[], options, neighbours: self.children.len() };
        let child = start(&self.program, &line, &introduction);
        let child = child.map_err(|cause| format!("{}: {cause}", self.program.display()))?;
        self.children.insert(*number, child);
        *self.starts.entry(name.clone()).or_default() += 1;
        Ok(())
    }

    fn kill(&mut self, number: u32) {
        self.children.get_mut(&number).into_iter().for_each(kill_group);
    }

    fn say(&mut self, word: Word) {
        self.words.push(word);
    }

    fn obey(&mut self, control: Incarnation) {
        self.introduction.control = control;
    }
}

impl Home for Processes {
    fn take_words(&mut self) -> Vec<Word> {
        core::mem::take(&mut self.words)
    }

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

impl Drop for Processes {
    fn drop(&mut self) {
        self.children.values_mut().for_each(kill_group);
        self.children.values_mut().for_each(|child| _ = child.wait());
    }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
