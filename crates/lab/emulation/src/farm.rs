//! The process that emulates hosts: agents and applications of all of them, in one thread.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use base::time::Time;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use serde::{Deserialize, Serialize};
use transport::clock;

use crate::application::Assemblies;
use crate::host::Host;
use crate::launcher::Launched;

/// What a farm has seen when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Seen {
    /// Agents that have come.
    pub agents: u32,
    /// Most applications that lived at a time.
    pub applications: u32,
    /// Those that still live.
    pub left: u32,
}

/// Emulates hosts until the standard input ends; launchers find it at this socket. It writes an empty line when they can, and what it
/// has seen when it ends, as JSON.
///
/// # Errors
/// The system refuses sockets, or what a launcher says is none of run control.
pub fn main(socket: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut farm = Farm { epoll, hosts: BTreeMap::new(), assemblies: Assemblies::default(), seen: Seen::default() };
    farm.watch(&listener, LISTENER, EventFlags::IN)?;
    farm.watch(io::stdin(), STDIN, EventFlags::IN)?;
    println!();
    let seen = farm.run(&listener)?;
    let text = serde_json::to_string(&seen).map_err(io::Error::other)?;
    writeln!(io::stdout(), "{text}")
}

struct Farm {
    epoll: OwnedFd,
    hosts: BTreeMap<u32, Host>,
    assemblies: Assemblies,
    seen: Seen,
}

impl Farm {
    fn run(&mut self, listener: &UnixListener) -> io::Result<Seen> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        let mut next_look = clock::now();
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&TICK)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let now = clock::now();
            for event in &events {
                match event.data.u64() {
                    STDIN => return Ok(self.seen()),
                    LISTENER => self.take_in(listener)?,
                    token => self.pass(now, token)?,
                }
            }
            if next_look <= now {
                next_look = now + core::time::Duration::from_nanos(TICK.tv_nsec.unsigned_abs());
                self.look(now)?;
            }
        }
    }

    fn seen(&mut self) -> Seen {
        let left = self.hosts.values_mut().map(|host| host.applications().count() as u32).sum();
        Seen { left, ..self.seen }
    }

    /// Launchers that have connected.
    fn take_in(&mut self, listener: &UnixListener) -> io::Result<()> {
        while let Ok((launcher, _)) = listener.accept() {
            let host = Launched::hear(launcher).map_err(|error| error.to_string());
            let host = host.and_then(|launched| Host::new(launched, &self.assemblies)).map_err(io::Error::other)?;
            self.seen.agents += 1;
            let number = self.seen.agents;
            if let Some((fd, _)) = host.serving().awaits() {
                self.watch(fd, token(number, AGENT), ALL)?;
            }
            self.hosts.insert(number, host);
        }
        Ok(())
    }

    fn pass(&mut self, now: Time, token: u64) -> io::Result<()> {
        let (number, errand) = ((token >> 32) as u32, token as u32);
        let Some(host) = self.hosts.get_mut(&number) else { return Ok(()) };
        if errand != AGENT {
            host.applications().pass(now, errand);
            return Ok(());
        }
        host.pass(now);
        self.watch_fresh(number)
    }

    /// What nothing announces: beats, leases and deadlines.
    fn look(&mut self, now: Time) -> io::Result<()> {
        let numbers: Vec<u32> = self.hosts.keys().copied().collect();
        for number in numbers {
            if let Some(host) = self.hosts.get_mut(&number) {
                host.applications().pass_in_time(now);
                host.pass(now);
            }
            self.watch_fresh(number)?;
        }
        self.hosts.retain(|_, host| !host.serving().is_over());
        let living: usize = self.hosts.values_mut().map(|host| host.applications().count()).sum();
        self.seen.applications = self.seen.applications.max(living as u32);
        Ok(())
    }

    /// Applications that have just started.
    fn watch_fresh(&mut self, number: u32) -> io::Result<()> {
        let Self { epoll, hosts, .. } = self;
        let Some(host) = hosts.get_mut(&number) else { return Ok(()) };
        for errand in host.applications().take_fresh() {
            if let Some(application) = host.applications().get(errand) {
                epoll::add(&*epoll, application, EventData::new_u64(token(number, errand)), ALL)?;
            }
        }
        Ok(())
    }

    fn watch(&self, source: impl AsFd, token: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token), flags)?)
    }
}

fn token(host: u32, errand: u32) -> u64 {
    u64::from(host) << 32 | u64::from(errand)
}

/// Each change is told once: a pass takes all that is there.
const ALL: EventFlags = EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);
/// Hosts are numbered from 1 on, and errands too.
const AGENT: u32 = 0;
const LISTENER: u64 = 0;
const STDIN: u64 = 1;
const EVENTS_MAX: usize = 256;
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
