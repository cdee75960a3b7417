//! What a component counts, and how it tells.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::message::{BusyCause, Chains};
use base::histogram::Histogram;
use base::ids::{NodeId, Role};
use base::random::Random;
use base::time::Time;

/// The counts of one application, taken at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Who reports.
    pub node: NodeId,
    /// In what role.
    pub role: Role,
    /// The values of the role's counters, in the order of its `NAMES`.
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
    /// What its process moved over the network; filled in by the driver.
    pub network: Network,
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

/// Datagrams of a process, and what became of those that were of no use, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    /// Sent.
    pub sent: u64,
    /// Taken in, whatever became of them.
    pub received: u64,
    /// Dropped by the kernel because the receiver did not keep up.
    pub dropped: u64,
    /// Messages and datagrams that could not be sent: the queue was full, or the kernel refused.
    pub not_sent: u64,
    /// From addresses that are no peer's.
    pub foreign: u64,
    /// Not ours, not made with the key, damaged, or impossible.
    pub malformed: u64,
    /// From a former life of a peer.
    pub stale: u64,
    /// Parts that had come already, or came too late to be of use.
    pub duplicates: u64,
    /// Messages of which a part has come, given up.
    pub given_up: u64,
    /// Messages whose missing part was asked for; one that is asked for again counts again.
    pub asked: u64,
    /// Datagrams sent once more because they were asked for.
    pub repeated: u64,
    /// How often one message was asked for, at most.
    pub asked_most: u64,
}

impl DatagramCounts {
    /// The values, in the order of the fields.
    pub const fn to_values(self) -> [u64; Self::COUNT] {
        let Self {
            sent,
            received,
            dropped,
            not_sent,
            foreign,
            malformed,
            stale,
            duplicates,
            given_up,
            asked,
            repeated,
            asked_most,
        } = self;
        [
            sent, received, dropped, not_sent, foreign, malformed, stale, duplicates, given_up, asked, repeated,
            asked_most,
        ]
    }

    /// From values in the order of the fields.
    pub const fn from_values(values: [u64; Self::COUNT]) -> Self {
        let [
            sent,
            received,
            dropped,
            not_sent,
            foreign,
            malformed,
            stale,
            duplicates,
            given_up,
            asked,
            repeated,
            asked_most,
        ] = values;
        Self {
            sent,
            received,
            dropped,
            not_sent,
            foreign,
            malformed,
            stale,
            duplicates,
            given_up,
            asked,
            repeated,
            asked_most,
        }
    }

    /// How many counts there are.
    pub const COUNT: usize = 12;
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
            messages: self.carried[index].messages + other.carried[index].messages,
            bytes: self.carried[index].bytes + other.carried[index].bytes,
        };
        let (ours, theirs) = (self.datagrams.to_values(), other.datagrams.to_values());
        let sums = DatagramCounts::from_values(core::array::from_fn(|index| ours[index] + theirs[index]));
        let asked_most = self.datagrams.asked_most.max(other.datagrams.asked_most);
        Self {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            malformed: self.malformed + other.malformed,
            carried: core::array::from_fn(carried),
            ports: core::array::from_fn(|port| self.ports[port] + other.ports[port]),
            datagrams: DatagramCounts { asked_most, ..sums },
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
            network: Network::default(),
        }
    }

    /// Together with the report of former lives of the same application. Each life counts from 0, but for what it is told of them
    /// (`told_of_former`) and what is in its hands.
    #[must_use]
    pub fn after(mut self, former: &Self) -> Self {
        let (names, own) = (counter_names(self.role), self.counters.clone());
        for (index, name) in names.iter().enumerate() {
            let Some(count) = self.counters.get_mut(index) else { break };
            let former = former.counters.get(index).copied().unwrap_or(0);
            let told = told_of_former(self.role, name).and_then(|told| names.iter().position(|name| *name == told));
            let of_former = told.and_then(|told| own.get(told).copied()).unwrap_or(0).max(former);
            *count = match told {
                Some(told) if told == index => of_former,
                _ if *name == "resident" => *count,
                _ => count.saturating_add(of_former),
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
        self.network = self.network.plus(former.network);
        self
    }

    /// A number that changes whenever an event gets on: a digest of the counters, but for those that may also grow while
    /// nothing does (`RETRIES`).
    pub fn mark(&self) -> u64 {
        let counts = counter_names(self.role).iter().zip(&self.counters);
        let counts = counts.filter(|(name, _)| !RETRIES.contains(name)).map(|(_, count)| *count);
        counts.fold(0, |mark, count| Random::new(mark ^ count).next_u64())
    }
}

/// Counters of what is tried again, or comes too late: they say nothing about progress.
const RETRIES: [&str; 27] = [
    "offered",
    "vetoed",
    "vetoed_busy",
    "vetoed_simple",
    "vetoed_complex",
    "requests",
    "roi_requests",
    "event_requests",
    "reasks",
    "timeouts",
    "bytes_out",
    "clears_asked",
    "clears_refused",
    "clears_repeated",
    "clear_groups",
    "failures",
    "late_replies",
    "pushed",
    "pushed_ahead",
    "pushed_dropped",
    "destinations",
    "late_decisions",
    "lost_robs",
    "assigned",
    "reassigned",
    "revoked",
    "beyond_room",
];

/// The counter in which a later life has what former ones have counted, since it is told: a supervisor by level 1, a DFM that triggers
/// itself by the others, and a recorder by its files.
fn told_of_former(role: Role, name: &'static str) -> Option<&'static str> {
    match (role, name) {
        (Role::L2sv, "received" | "rejected" | "accepted" | "forced" | "incomplete") => Some(name),
        (Role::Dfm, "self_triggered") => Some(name),
        (Role::Sfo, "recorded") => Some("taken_over"),
        (Role::Sfo, "copies") => Some("taken_over_copies"),
        (Role::Sfo, "bytes") => Some("taken_over_bytes"),
        (Role::Sfo, "taken_over" | "taken_over_copies" | "taken_over_bytes") => Some(name),
        _ => None,
    }
}

const fn counter_names(role: Role) -> &'static [&'static str] {
    match role {
        Role::RunControl => &[],
        Role::Level1 => Level1Counters::NAMES,
        Role::L2sv => L2svCounters::NAMES,
        Role::L2pu => L2puCounters::NAMES,
        Role::Pros | Role::Ros => RosCounters::NAMES,
        Role::Dfm => DfmCounters::NAMES,
        Role::Sfi => SfiCounters::NAMES,
        Role::Efd => EfdCounters::NAMES,
        Role::Sfo => SfoCounters::NAMES,
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

/// Declares a struct of plain `u64` counters with their names, so that reports, metrics and documents share one list.
macro_rules! counters {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])+ $field:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: u64,)+ }

        impl $name {
            /// The names, in the order of the fields.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];

            /// The values, in the order of the fields.
            pub fn to_values(self) -> Vec<u64> {
                alloc::vec![$(self.$field),+]
            }

            /// From values in the order of the fields; what is not given is 0.
            pub fn from_values(values: &[u64]) -> Self {
                let mut values = values.iter().copied();
                Self { $($field: values.next().unwrap_or(0)),+ }
            }

            /// The sum over several reports.
            pub fn total<'a>(reports: impl Iterator<Item = &'a Report>) -> Self {
                reports.map(|report| Self::from_values(&report.counters)).fold(Self::default(), |sum, next| Self {
                    $($field: sum.$field.saturating_add(next.$field)),+
                })
            }
        }
    };
}

counters! {
    /// Level 1. Per peer: events sent to it for a decision.
    Level1Counters {
        /// Triggers issued: the level-1 events of the run.
        issued,
        /// Trigger opportunities: issued and vetoed.
        offered,
        /// Opportunities that fell into dead time, whatever its cause.
        vetoed,
        /// Of these, vetoed because a receiver was busy or behind.
        vetoed_busy,
        /// Of these, vetoed too soon after a trigger: simple dead time.
        vetoed_simple,
        /// Of these, vetoed because a leaky bucket was full: complex dead time.
        vetoed_complex,
        /// Triggers fetched from outside and not issued, because the run ended.
        unused,
    }
}

counters! {
    /// L2SV.
    L2svCounters {
        /// Events received from level 1.
        received,
        /// Decided: rejected.
        rejected,
        /// Decided: accepted, forced ones included.
        accepted,
        /// Accepted by time-out.
        forced,
        /// Accepted without all the data that level 2 had asked for.
        incomplete,
        /// Decisions that came after the time-out.
        late_decisions,
        /// Events given to another L2PU because theirs was lost.
        reassigned,
        /// Undecided events of former lives that level 1 told again.
        told_again,
        /// Events given up undecided.
        abandoned,
        /// Decisions of L2PUs that an override turned round.
        overridden,
        /// Clear groups sent, where there is no DFM.
        clear_groups,
        /// Clear groups sent again on request.
        clears_repeated,
    }
}

counters! {
    /// L2PU.
    L2puCounters {
        /// Events received.
        received,
        /// Rejected.
        rejected,
        /// Accepted.
        accepted,
        /// Steps of steering run.
        steps,
        /// Requests for RoI data.
        roi_requests,
        /// ROBs asked for their data.
        robs,
        /// Bytes of detector data, without headers, that steering looked at.
        payload_bytes,
        /// Bytes of RoI data received.
        roi_bytes,
        /// Requests repeated.
        reasks,
        /// Requests that were given up: the step ran with data missing.
        incomplete,
        /// Replies that nobody waited for any more.
        late_replies,
    }
}

counters! {
    /// ROS and pROS, summed over their ROBs: `in = cleared + dropped + garbage_collected + resident`.
    RosCounters {
        /// Fragments that came in.
        fragments_in,
        /// Their bytes.
        bytes_in,
        /// Fragments cleared by the DFM.
        cleared,
        /// Dropped: the event's fragment was there already.
        dropped_duplicate,
        /// Dropped: older than the oldest valid event.
        dropped_old,
        /// Dropped: the event was cleared before its fragment came.
        dropped_cleared,
        /// Dropped: no page was free.
        dropped_full,
        /// Removed below the oldest valid event to make room.
        garbage_collected,
        /// In the buffers now.
        resident,
        /// Requests for RoI data.
        roi_requests,
        /// Requests for whole events.
        event_requests,
        /// Events pushed.
        pushed,
        /// Bytes sent in replies, asked for or not.
        bytes_out,
        /// Requests that waited for their data until the time-out.
        timeouts,
        /// ROBs answered as lost.
        lost_robs,
        /// Clear groups that were missing and asked for.
        clears_asked,
        /// Clear groups whose number or oldest valid event went beyond what was known, and that no other group confirmed.
        clears_refused,
        /// Fragments with an error bit in their status.
        flagged,
    }
}

counters! {
    /// DFM. Per L2SV: rejected, accepted, forced. Per SFI: events granted complete, incomplete, and finished.
    DfmCounters {
        /// Events that the DFM triggered itself.
        self_triggered,
        /// Taken from level 2: rejected.
        taken_rejected,
        /// Taken from level 2 or level 1: accepted.
        taken_accepted,
        /// Of these, accepted by time-out.
        taken_forced,
        /// Of these, accepted without all the data that level 2 had asked for.
        taken_incomplete,
        /// Decisions for events that were decided already.
        duplicates,
        /// Built with the data of all ROBs.
        built_complete,
        /// Built with data missing.
        built_incomplete,
        /// Accepted and given up before they were built.
        not_built,
        /// Finished: rejected by the event filter.
        rejected,
        /// Finished: accepted and recorded.
        accepted,
        /// Finished: in the debug stream.
        debug,
        /// Finished: accepted and not recorded.
        unrecorded,
        /// Finished: given up before the event filter took them.
        abandoned,
        /// Built and cleared; their SFI was lost and no filter daemon has them. All but those whose fate was known to the SFI
        /// or on its way to it are lost.
        lost_built,
        /// Events given to another SFI because theirs was slow or lost.
        reassigned,
        /// Ends of event of a void attempt.
        revoked,
        /// Finished reports for events that were finished already.
        finished_twice,
        /// Tables of destinations published.
        destinations,
        /// Clear groups sent.
        clear_groups,
        /// Clear groups sent again on request.
        clears_repeated,
        /// Decisions and triggers told again to a DFM that has returned, which had learned of the event from others.
        told_again,
        /// SFIs and ROSs that had not told what they held when the DFM, which had returned, went on.
        recovered_without,
        /// Finished reports of events that a DFM which has returned had not heard of.
        finished_unseen,
    }
}

counters! {
    /// SFI.
    SfiCounters {
        /// Events assigned.
        assigned,
        /// Built with all data and granted.
        built_complete,
        /// Built with data missing and granted.
        built_incomplete,
        /// Events dropped because another SFI has them.
        revoked,
        /// Of these, events for which there was no room: the DFM has assigned more than it may, and does so elsewhere in time.
        beyond_room,
        /// Requests sent.
        requests,
        /// Of these, requests repeated after a time-out.
        reasks,
        /// Replies that nobody waited for any more.
        late_replies,
        /// Events times sources whose data came unasked and were used.
        pushed,
        /// Of these, data that came before their event was assigned.
        pushed_ahead,
        /// Data that came unasked and were not used: too late, too much, or for another builder.
        pushed_dropped,
        /// Events times sources that were asked because their data had not come in time.
        pushed_late,
        /// Replies that would have made an event larger than it may be.
        oversized,
        /// ROBs that sent nothing.
        missing_robs,
        /// Bytes of built events.
        bytes_built,
        /// Events given to an EFD.
        served,
        /// Events given to an EFD again because theirs was lost.
        served_again,
        /// Finished: rejected.
        rejected,
        /// Finished: accepted and recorded, or passed where nothing records.
        accepted,
        /// Finished: in the debug stream.
        debug,
        /// Finished: accepted and not recorded.
        unrecorded,
        /// Given up.
        abandoned,
        /// Events that were built on the data that level 2 had collected.
        collected_used,
        /// Of level 2's data, events that came too late, were too many, or were built elsewhere.
        collected_dropped,
    }
}

counters! {
    /// EFD.
    EfdCounters {
        /// Events received.
        received,
        /// Rejected.
        rejected,
        /// Of these, accepted events that no stream took: for their chains, or by its prescale.
        prescaled,
        /// Accepted.
        accepted,
        /// Sent to the debug stream.
        debug,
        /// Of these, events that killed their processing task.
        debug_crash,
        /// Of these, events whose algorithm raised an exception.
        debug_exception,
        /// Of these, events without a decision in time.
        debug_timeout,
        /// Of these, events that needed too much memory.
        debug_memory,
        /// Given up undecided.
        abandoned,
        /// Accepted or debug events that an SFO has acknowledged.
        recorded,
        /// Of these, events that had been recorded before.
        recorded_before,
        /// Accepted or debug events given up unrecorded.
        unrecorded,
    }
}

counters! {
    /// SFO.
    SfoCounters {
        /// Requests to record.
        received,
        /// Distinct events recorded.
        recorded,
        /// Copies of events in files.
        copies,
        /// Requests for events recorded before.
        duplicates,
        /// Requests for events that cannot be put into a file.
        refused,
        /// Requests given up.
        abandoned,
        /// Bytes of events recorded.
        bytes,
        /// Attempts to write that failed.
        failures,
        /// Events found in the files of former lives.
        taken_over,
        /// Copies of these.
        taken_over_copies,
        /// Bytes of these copies.
        taken_over_bytes,
        /// Events written to files that could not be closed, or that others have changed: not among those recorded.
        unfinished,
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec;

    use super::*;

    #[test]
    fn each_count_of_progress_changes_the_mark() {
        let none = Report::of(Role::Dfm, vec![0; counter_names(Role::Dfm).len()]);
        let mark = |at: usize, count| {
            let mut report = none.clone();
            report.counters[at] = count;
            report.mark()
        };
        let names = counter_names(Role::Dfm).iter().enumerate();
        for (at, name) in names {
            let marks: BTreeSet<u64> = (0..100).map(|count| mark(at, count)).collect();
            assert_eq!(marks.len(), if RETRIES.contains(name) { 1 } else { 100 }, "{name}");
        }
    }

    #[test]
    fn chains_are_counted_each_by_its_number() {
        let mut counts = ChainCounts::default();
        counts.note(Chains { input: 0b1011, passed: 0b0010 });
        counts.note(Chains { input: 0b0010, passed: 0b0010 });
        counts.note(Chains { input: 0b1000, passed: 0b1000 });
        let expected = [(1, 0), (2, 2), (0, 0), (2, 1)];
        assert_eq!(counts.to_vec(), expected.map(|(input, passed)| ChainCount { input, passed }));
    }

    #[test]
    fn what_a_connection_carried_goes_to_its_carrier() {
        let mut network = Network { messages: 10, bytes: 100, ..Network::default() };
        network.count_since((4, 40), CarrierKind::Shm);
        network.count_since((9, 70), CarrierKind::Shm);
        let carried = |messages, bytes| Carried { messages, bytes };
        assert_eq!(network.carried, [carried(0, 0), carried(7, 90), carried(0, 0)]);
    }

    #[test]
    fn processes_together_have_the_sum_of_all_but_the_most() {
        let of = |messages, asked, asked_most| Network {
            messages,
            carried: [Carried { messages, bytes: 10 * messages }; CarrierKind::COUNT],
            datagrams: DatagramCounts { asked, asked_most, ..DatagramCounts::default() },
            data_sum: u64::MAX,
            ..Network::default()
        };
        let both = Network { data_sum: u64::MAX - 1, ..of(7, 5, 3) };
        assert_eq!(of(3, 4, 3).plus(of(4, 1, 2)), both);
        assert_eq!(of(4, 1, 2).plus(of(3, 4, 3)), both);
    }
}
