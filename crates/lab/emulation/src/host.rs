//! An emulated host: the real service of an agent, with emulated applications.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use agents::{Home, OfAgent, Serving};
use base::ids::Incarnation;
use base::time::Time;
use membership::agents::HouseholdDriver;
use membership::agents::words::{Errand, Word};

use crate::application::{Application, Assemblies, Ended};
use crate::launcher::Launched;
use crate::sockets::begin_to_connect;

/// One host, as long as run control wants it.
pub(crate) struct Host {
    serving: Serving<Applications>,
    /// Its launcher ends when this is closed.
    _launcher: UnixStream,
}

/// Its applications.
pub(crate) struct Applications {
    introduction: OfAgent,
    assemblies: Assemblies,
    /// By their errands.
    living: BTreeMap<u32, Application>,
    /// That nobody watches yet.
    fresh: Vec<u32>,
    ended: Vec<(u32, String)>,
    words: Vec<Word>,
}

impl Host {
    /// Its agent begins to connect to run control.
    pub(crate) fn new(launched: Launched, assemblies: &Assemblies) -> Result<Self, String> {
        let Launched { join, introduction, launcher } = launched;
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        let introduction = OfAgent::read(&introduction).map_err(|error| failed(&error))?;
        let join: SocketAddr = join.parse().map_err(|_| format!("{join}: no address"))?;
        let stream: TcpStream = begin_to_connect(join).map_err(|error| failed(&error))?;
        let home = Applications {
            introduction: introduction.clone(),
            assemblies: assemblies.clone(),
            living: BTreeMap::new(),
            fresh: Vec::new(),
            ended: Vec::new(),
            words: Vec::new(),
        };
        let serving = Serving::over(stream, &introduction, home).map_err(|error| failed(&error))?;
        Ok(Self { serving, _launcher: launcher })
    }

    /// The agent does what is to be done.
    pub(crate) fn pass(&mut self, now: Time) {
        // Why a connection has ended shows on the other side.
        let _ = self.serving.pass(now);
    }

    /// The agent.
    pub(crate) fn serving(&self) -> &Serving<Applications> {
        &self.serving
    }

    /// Its applications.
    pub(crate) fn applications(&mut self) -> &mut Applications {
        self.serving.home_mut()
    }
}

impl Applications {
    /// Those that have started since the last call, with their errands.
    pub(crate) fn take_fresh(&mut self) -> Vec<u32> {
        core::mem::take(&mut self.fresh)
    }

    /// One of them.
    pub(crate) fn get(&self, errand: u32) -> Option<&Application> {
        self.living.get(&errand)
    }

    /// How many live.
    pub(crate) fn count(&self) -> usize {
        self.living.len()
    }

    /// One of them does what is to be done.
    pub(crate) fn pass(&mut self, now: Time, errand: u32) {
        let Some(application) = self.living.get_mut(&errand) else { return };
        if let Err(Ended) = application.pass(now) {
            self.ended.push((errand, format!("exited with status {}", application.exit_status())));
            self.living.remove(&errand);
        }
    }

    /// Those whose components want to be called.
    pub(crate) fn pass_in_time(&mut self, now: Time) {
        let is_due = |application: &Application| application.next_deadline().is_some_and(|deadline| deadline <= now);
        let due: Vec<u32> = self.living.iter().filter(|(_, app)| is_due(app)).map(|(errand, _)| *errand).collect();
        due.into_iter().for_each(|errand| self.pass(now, errand));
    }
}

impl HouseholdDriver for Applications {
    fn start(&mut self, errand: &Errand) -> Result<(), String> {
        let introduction = self.introduction.of(errand)?;
        let application = Application::join(introduction, &errand.name, &errand.join, &self.assemblies)?;
        self.living.insert(errand.number, application);
        self.fresh.push(errand.number);
        Ok(())
    }

    fn kill(&mut self, number: u32) {
        if self.living.remove(&number).is_some() {
            self.ended.push((number, "killed by SIGKILL".to_owned()));
        }
    }

    fn say(&mut self, word: Word) {
        self.words.push(word);
    }

    /// Nobody takes over from run control here.
    fn obey(&mut self, _: Incarnation) {}
}

impl Home for Applications {
    fn take_words(&mut self) -> Vec<Word> {
        core::mem::take(&mut self.words)
    }

    fn reap(&mut self) -> Vec<(u32, String)> {
        core::mem::take(&mut self.ended)
    }

    fn cpu_us(&self) -> Vec<(u32, u64)> {
        self.living.keys().map(|errand| (*errand, CPU_US)).collect()
    }
}

/// Of an application that has no process.
const CPU_US: u64 = 1;
