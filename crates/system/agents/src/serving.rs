//! The service of an agent to run control: orders come, applications start and end, words and beats go.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use base::time::Time;
use membership::agents::words::{Beat, Order, Word};
use membership::agents::{Household, HouseholdDriver, Leases, control};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transport::clock;
use transport::random::random;

use crate::introduction::OfAgent;
use crate::open_door::OpenDoor;
use crate::peer::{Gone, Heard, Peer};

/// The applications of a host, whatever they are.
pub trait Home: HouseholdDriver {
    /// What is to be said since the last call.
    fn take_words(&mut self) -> Vec<Word>;
    /// The errands of those that have ended since the last call, with how.
    fn reap(&mut self) -> Vec<(u32, String)>;
    /// Processor time of each that lives, by its errand, in µs.
    fn cpu_us(&self) -> Vec<(u32, u64)>;
}

/// An agent that is connected to run control.
pub struct Serving<H> {
    household: Household,
    home: H,
    /// None once its connection has ended.
    peer: Option<Peer>,
    /// Where run control finds the agent when it comes back.
    door: OpenDoor,
    leases: Leases,
    /// None until run control has proved who it is.
    next_beat: Option<Time>,
    left_out: u32,
    /// Where what is measured is shown.
    shows: Option<SocketAddr>,
}

impl<H: Home> Serving<H> {
    pub(crate) fn new(now: Time, (peer, door): (Peer, OpenDoor), introduction: &OfAgent, home: H) -> Self {
        let leases = Leases::new(introduction.lease);
        let household = Household::new(now, leases, introduction.control);
        Self { household, home, peer: Some(peer), door, leases, next_beat: None, left_out: 0, shows: None }
    }

    /// The agent that is introduced so, with the applications of this home, over a connection that it has begun to make to run control.
    ///
    /// # Errors
    /// The system refuses what a proof needs, or a port.
    pub fn over(stream: TcpStream, introduction: &OfAgent, home: H) -> Result<Self, Gone> {
        let nonce = random().map_err(io::Error::other)?;
        let pair = (introduction.agent, control(introduction.control));
        let at = stream.local_addr().map_err(Gone::Broken)?.ip();
        let door = OpenDoor::open(at, &introduction.secret, introduction.agent).map_err(Gone::Broken)?;
        let peer = Peer::connected(stream, &introduction.secret, pair, nonce)?;
        Ok(Self::new(clock::now(), (peer, door), introduction, home))
    }

    /// Run control is told that what is measured is shown there.
    pub(crate) fn showing_at(self, shows: Option<SocketAddr>) -> Self {
        Self { shows, ..self }
    }

    /// Does what is to be done now; why the connection has ended, if it has by that.
    pub fn pass(&mut self, now: Time) -> Option<Gone> {
        self.let_in(now);
        let (mut heard, mut gone) = (Vec::new(), None);
        if let Some(peer) = &mut self.peer {
            let (frames, result) = peer.hear();
            (heard, gone) = (frames, result.err());
        }
        for heard in heard {
            match heard {
                Heard::Met(_) => self.on_met(now),
                Heard::Frame(bytes) => match Order::from_bytes(&bytes) {
                    Ok(order) => self.household.on_order(now, &mut self.home, order),
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
            if !self.has_met() {
                // Nobody comes back who was never there.
                self.household.on_order(now, &mut self.home, Order::Release);
            }
            self.household.on_left(now);
        }
        gone
    }

    fn on_met(&mut self, now: Time) {
        self.next_beat = Some(now);
        self.home.say(Word::Listens(self.door.address().to_string()));
        self.shows.iter().for_each(|address| self.home.say(Word::Shows(address.to_string())));
    }

    /// Run control may be back. The connection of its former life ends.
    fn let_in(&mut self, now: Time) {
        for (peer, life) in self.door.let_in(now) {
            if self.household.on_return(now, &mut self.home, life) {
                self.peer = Some(peer);
                self.on_met(now);
            }
        }
    }

    /// Waits until something comes, or for a tick.
    pub(crate) fn wait(&self) {
        let now = clock::now();
        let wait = self.household.next_deadline().map_or(TICK, |at| at.since(now).min(TICK));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let peers = self.peer.iter().map(|peer| (peer.as_fd(), peer.awaits()));
        let awaited = peers.chain(self.door.awaits());
        let awaited = awaited.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags));
        let mut awaited: Vec<PollFd<'_>> = awaited.collect();
        // A signal that comes is none that is waited for.
        let _ = poll(&mut awaited, Some(&timeout));
    }

    /// The connection and for what it waits, while there is one.
    pub fn awaits(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.peer.as_ref().map(|peer| (peer.as_fd(), peer.awaits()))
    }

    /// Whether run control has proved who it is.
    pub fn has_met(&self) -> bool {
        self.next_beat.is_some()
    }

    /// Whether nothing is left to do: run control is gone, and all applications have ended.
    pub fn is_over(&self) -> bool {
        self.household.is_over()
    }

    /// What the agent knows of its applications, and these.
    pub(crate) fn household(&mut self) -> (&mut Household, &mut H) {
        (&mut self.household, &mut self.home)
    }

    /// The applications.
    pub fn home_mut(&mut self) -> &mut H {
        &mut self.home
    }

    fn say(&mut self, now: Time) -> Result<(), Gone> {
        let words = self.home.take_words();
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

/// Between two looks at processes, which nothing announces.
const TICK: Duration = Duration::from_millis(20);
