//! What a component counts, and how it tells.

mod counters;

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::message::terms::{BusyCause, Chains};
use base::histogram::Histogram;
use base::ids::{NodeId, Role};
use base::random::Random;
use base::sources::SourceNow;
use base::time::Time;

pub use timing::watch::LinkClock;

pub use counters::{
    Counter, Counters, DatagramCounts, DfmCounters, EbifCounters, EfdCounters, L2puCounters, L2svCounters,
    Level1Counters, Nature, RosCounters, SfiCounters, SfoCounters, Tally, TrgCounters,
};

/// The counts of one application, taken at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Who reports.
    pub node: NodeId,
    /// In what role.
    pub role: Role,
    /// The values of the role's counters, in the order of [`Counter::of_role`].
    pub counters: Vec<u64>,
    /// Counts per peer, for the accounting across a dead peer.
    pub peers: Vec<PeerCount>,
    /// For how long it was held up, by whom.
    pub blocked: Vec<Blocked>,
    /// Latency of what the role does, in ns: level-2 decisions (L2SV), building (DFM).
    pub latency_ns: Histogram,
    /// What the chains of the menu said (L2PU, EFD): by number of the chain.
    pub chains: Vec<ChainCount>,
    /// Messages refused as stale: another run or incarnation.
    pub stale: u64,
    /// Messages refused because their sender has not to say them, or not to this role.
    pub unexpected: Vec<Unexpected>,
    /// The links of a read-out system whose sources send by themselves, each with its counts.
    pub links: Vec<LinkReport>,
    /// The sources of these links now, in their order; filled in by the driver.
    pub sources: Vec<SourceNow>,
    /// What its process moved over the network; filled in by the driver.
    pub network: Network,
}

/// One link whose source sends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// The source identifier of its ROB.
    pub rob: u32,
    /// How it is with its source.
    pub state: LinkState,
    /// What the ROB counts.
    pub counters: RosCounters,
    /// Its clock beside that of the reference, if it is known.
    pub clock: Option<LinkClock>,
}

/// How it is with a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkState {
    /// It has not come yet.
    Awaited = 0,
    /// It is there.
    Up = 1,
    /// It is away for a short while.
    Down = 2,
    /// It is away for so long that events do without it.
    Lost = 3,
    /// It has said that nothing follows.
    Ended = 4,
}

impl LinkState {
    /// From the wire value.
    pub const fn from_u8(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Awaited),
            1 => Some(Self::Up),
            2 => Some(Self::Down),
            3 => Some(Self::Lost),
            4 => Some(Self::Ended),
            _ => None,
        }
    }
}

/// Messages of one kind that one peer should not have sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The peer.
    pub from: NodeId,
    /// The kind of message.
    pub message: String,
    /// How many there were.
    pub count: u64,
}

impl Unexpected {
    /// Counts a message by kind and sender, as far as there are few.
    #[cold]
    pub fn count(all: &mut Vec<Self>, from: NodeId, message: String) {
        let known = all.iter().position(|known| known.from == from && known.message == message);
        if known.is_none() && all.len() < UNEXPECTED_KINDS {
            all.push(Self { from, message, count: 0 });
        }
        let last = all.len() - 1;
        all[known.unwrap_or(last)].count += 1;
    }
}

/// So many kinds and senders are told apart; all others count with the last.
const UNEXPECTED_KINDS: usize = 32;

/// Messages over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Messages received.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages and connections refused because they could not be understood.
    pub malformed: u64,
    /// Messages received, by what carried them, in the order of [`CarrierKind`].
    pub carried: [Carried; CarrierKind::COUNT],
    /// Bytes of messages received by each network port of read-out systems, where these have several.
    pub ports: [u64; PORTS_MAX],
    /// Datagrams, where messages travel in them.
    pub datagrams: DatagramCounts,
    /// Sum of all bytes of fragments that arrived for building, from wherever, if these are looked at; modulo 2^64.
    pub data_sum: u64,
}

/// Most network ports of a read-out system: more than any host has.
pub const PORTS_MAX: usize = 16;

/// What carries messages between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierKind {
    /// TCP connections.
    Tcp,
    /// Shared memory.
    Shm,
    /// Datagrams.
    Udp,
}

impl CarrierKind {
    /// How many there are.
    pub const COUNT: usize = 3;
}

/// What came over one kind of carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Network {
    /// What a carrier has brought in the meantime.
    pub fn count_since(&mut self, (messages, bytes): (u64, u64), by: CarrierKind) {
        let carried = &mut self.carried[by as usize];
        carried.messages += self.messages - messages;
        carried.bytes += self.bytes - bytes;
    }

    /// Of two processes together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let carried = |index: usize| Carried {
            messages: self.carried[index].messages.saturating_add(other.carried[index].messages),
            bytes: self.carried[index].bytes.saturating_add(other.carried[index].bytes),
        };
        Self {
            messages: self.messages.saturating_add(other.messages),
            bytes: self.bytes.saturating_add(other.bytes),
            malformed: self.malformed.saturating_add(other.malformed),
            carried: core::array::from_fn(carried),
            ports: core::array::from_fn(|port| self.ports[port].saturating_add(other.ports[port])),
            datagrams: self.datagrams.plus(other.datagrams),
            data_sum: self.data_sum.wrapping_add(other.data_sum),
        }
    }
}

impl Report {
    /// A report with counters only.
    pub fn of(role: Role, counters: Vec<u64>) -> Self {
        Self {
            node: NodeId(0),
            role,
            counters,
            peers: Vec::new(),
            blocked: Vec::new(),
            latency_ns: Histogram::default(),
            chains: Vec::new(),
            stale: 0,
            unexpected: Vec::new(),
            links: Vec::new(),
            sources: Vec::new(),
            network: Network::default(),
        }
    }

    /// Together with the report of former lives of the same application. Each life counts from 0, but for what it is told of them
    /// and what is in its hands: see [`Nature`].
    #[must_use]
    pub fn after(mut self, former: &Self) -> Self {
        let (counters, own) = (Counter::of_role(self.role), self.counters.clone());
        let place = |name| counters.iter().position(|counter| counter.name == name);
        for (index, (count, counter)) in self.counters.iter_mut().zip(counters).enumerate() {
            let former = former.counters.get(index).copied().unwrap_or(0);
            *count = match counter.nature {
                Nature::Held => *count,
                Nature::Told(by) if place(by) == Some(index) => former.max(*count),
                Nature::Told(by) => {
                    let told = place(by).and_then(|place| own.get(place)).copied().unwrap_or(0);
                    count.saturating_add(told.max(former))
                }
                nature => nature.join(*count, former),
            };
        }
        for blocked in &former.blocked {
            match self.blocked.iter_mut().find(|own| (own.by, own.cause) == (blocked.by, blocked.cause)) {
                Some(own) => own.time_ns = own.time_ns.saturating_add(blocked.time_ns),
                None => self.blocked.push(*blocked),
            }
        }
        self.latency_ns.merge(&former.latency_ns);
        self.chains.resize(self.chains.len().max(former.chains.len()), ChainCount::default());
        for (own, former) in self.chains.iter_mut().zip(&former.chains) {
            own.input = own.input.saturating_add(former.input);
            own.passed = own.passed.saturating_add(former.passed);
        }
        self.stale = self.stale.saturating_add(former.stale);
        for other in &former.unexpected {
            match self.unexpected.iter_mut().find(|own| (own.from, &own.message) == (other.from, &other.message)) {
                Some(own) => own.count = own.count.saturating_add(other.count),
                None => self.unexpected.push(other.clone()),
            }
        }
        for link in &former.links {
            match self.links.iter_mut().find(|own| own.rob == link.rob) {
                Some(own) => {
                    let resident = own.counters.resident;
                    own.counters = RosCounters { resident, ..own.counters.plus(link.counters) };
                    own.clock = own.clock.or(link.clock);
                }
                None => self.links.push(*link),
            }
        }
        self.network = self.network.plus(former.network);
        self
    }

    /// A number that changes whenever an event gets on: a digest of the counters, but for those that are [idle](Nature::Idle).
    pub fn mark(&self) -> u64 {
        let counts = Counter::of_role(self.role).iter().zip(&self.counters);
        let counts = counts.filter(|(counter, _)| counter.nature != Nature::Idle).map(|(_, count)| *count);
        counts.fold(0, |mark, count| Random::new(mark ^ count).next_u64())
    }
}

/// What one chain of the menu said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainCount {
    /// Events that it looked at.
    pub input: u64,
    /// Of these, events that it accepted.
    pub passed: u64,
}

/// Counts per chain, as many as have said anything.
#[derive(Clone, Debug, Default)]
pub struct ChainCounts(Vec<ChainCount>);

impl ChainCounts {
    /// Counts one event.
    pub fn note(&mut self, chains: Chains) {
        let Chains { input, passed } = chains;
        let highest = (u64::BITS - (input | passed).leading_zeros()) as usize;
        if self.0.len() < highest {
            self.0.resize(highest, ChainCount::default());
        }
        let mut left = input | passed;
        while left != 0 {
            let chain = left.trailing_zeros();
            left &= left - 1;
            self.0[chain as usize].input += input >> chain & 1;
            self.0[chain as usize].passed += passed >> chain & 1;
        }
    }

    /// The counts, by number of the chain.
    pub fn to_vec(&self) -> Vec<ChainCount> {
        self.0.clone()
    }
}

/// Up to three counts that belong to a peer; their meaning is the role's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCount {
    /// The peer.
    pub node: NodeId,
    /// The counts.
    pub counts: [u64; 3],
}

/// Time spent waiting for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Whom it waited for.
    pub by: NodeId,
    /// Why.
    pub cause: BlockCause,
    /// For how long in all.
    pub time_ns: u64,
}

/// What a component waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockCause {
    /// Level 1 is held back by a busy.
    Busy(BusyCause),
    /// The DFM has events and no SFI with room.
    NoSfi,
    /// An SFI has events and no EFD that asks.
    NoPull,
    /// An EFD has accepted events and its SFO has not recorded them.
    Recording,
    /// An L2SV has events and no L2PU with a free worker.
    NoWorker,
}

impl BlockCause {
    /// In words, for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Busy(cause) => cause.describe(),
            Self::NoSfi => "no room in any SFI",
            Self::NoPull => "no request from the event filter",
            Self::Recording => "waiting for recording",
            Self::NoWorker => "no free level-2 worker",
        }
    }

    /// The wire value.
    pub fn to_u8(self) -> u8 {
        match self {
            Self::Busy(cause) => cause as u8,
            Self::NoSfi => 16,
            Self::NoPull => 17,
            Self::Recording => 18,
            Self::NoWorker => 19,
        }
    }

    /// From the wire value.
    pub fn from_u8(value: u8) -> Option<Self> {
        match value {
            16 => Some(Self::NoSfi),
            17 => Some(Self::NoPull),
            18 => Some(Self::Recording),
            19 => Some(Self::NoWorker),
            cause => BusyCause::from_u8(cause).map(Self::Busy),
        }
    }
}

/// Adds up the time that a component waits, by whom it waits for and why.
#[derive(Clone, Debug, Default)]
pub struct BlockedClock {
    open: Vec<(NodeId, BlockCause, Time)>,
    closed: Vec<Blocked>,
}

impl BlockedClock {
    /// Says whether the component is held up by `by` for `cause` from now on. Saying the same again changes nothing.
    pub fn set(&mut self, now: Time, by: NodeId, cause: BlockCause, blocked: bool) {
        let position = self.open.iter().position(|(node, c, _)| (*node, *c) == (by, cause));
        match (position, blocked) {
            (None, true) => self.open.push((by, cause, now)),
            (Some(index), false) => {
                let (_, _, since) = self.open.swap_remove(index);
                self.add(by, cause, now.since(since));
            }
            _ => {}
        }
    }

    /// All times up to now, in the order in which they first came up.
    pub fn read(&self, now: Time) -> Vec<Blocked> {
        let mut sums = self.clone();
        for &(by, cause, since) in &self.open {
            sums.add(by, cause, now.since(since));
        }
        sums.closed
    }

    fn add(&mut self, by: NodeId, cause: BlockCause, time: Duration) {
        let time_ns = u64::try_from(time.as_nanos()).expect("a time within 584 years");
        match self.closed.iter_mut().find(|b| (b.by, b.cause) == (by, cause)) {
            Some(blocked) => blocked.time_ns += time_ns,
            None => self.closed.push(Blocked { by, cause, time_ns }),
        }
    }
}
