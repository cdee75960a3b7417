//! What a world is made of: applications and their components, hosts, links, work, faults.

use std::collections::BTreeSet;
use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId, RunNumber};
use base::time::Time;
use control::controller::Application;
use dataflow::component::{Component, Processed, Steer, Steered};
use dataflow::level1::roib::TriggerRecord;
use dataflow::message::{BuiltEvent, EventInfo, Message, Recording};
use timing::Interval;

use super::costs::Costs;
use super::detectors::Detectors;
use super::driver::Driver;
use super::hosts::Hosts;
use super::joins::Joins;
use super::wire::{Links, Wire};

/// A run to be simulated.
pub struct Setup {
    /// Of all random draws of the world itself.
    pub seed: u64,
    /// The run.
    pub run: RunNumber,
    /// All applications; the node of the first is 1.
    pub applications: Vec<Application>,
    /// Who takes what goes to all of the read-out.
    pub readout: Vec<NodeId>,
    /// Makes the component of an application, for each of its lives.
    pub components: Box<dyn Fn(NodeId, Incarnation) -> Box<dyn Component + Send>>,
    /// What drivers do for components.
    pub outside: Box<dyn Outside>,
    /// Sources that send by themselves, where there are such.
    pub detectors: Detectors,
    /// Who shares a processor.
    pub hosts: Hosts,
    /// What inputs cost.
    pub costs: Costs,
    /// How processes take what is there, if in passes; without it each input is taken by itself.
    pub driver: Option<Driver>,
    /// How messages travel.
    pub wire: Wire,
    /// What a piece of work takes to be handed over, there and back; up to twice this.
    pub handover: Duration,
    /// Whether each fragment of an event comes by itself from its link, or all together.
    pub one_by_one: bool,
    /// What happens to fragments on read-out links, if they come by themselves.
    pub fragment_faults: Links,
    /// What happens to the run as a whole, and when.
    pub course: Course,
    /// After this time all that are not late have found one another, and run control starts the run.
    pub time_to_connect: Duration,
    /// A bug to be found.
    pub planted: Option<Planted>,
    /// Read-out buffers without which events are dropped or set apart, for the checks.
    pub withheld: BTreeSet<u32>,
    /// Whether components assert their state after every input.
    pub checks: bool,
    /// More steps than this are a run that does not end.
    pub steps_max: u64,
}

/// What happens to a run as a whole, and when.
#[derive(Clone, Debug)]
pub struct Course {
    /// Run control ends the run after this time.
    pub duration: Option<Duration>,
    /// How long a stage that drains may make no progress.
    pub stop_timeout: Duration,
    /// How applications join; without it they know each other at once.
    pub joins: Option<Joins>,
    /// Applications that appear so long after the others; where they join, the run waits for them.
    pub late: Vec<(NodeId, Duration)>,
    /// What goes wrong, and when, counted from the start of the run.
    pub faults: Vec<(Duration, Fault)>,
    /// From this time of the run on, no link and no disk fails any more.
    pub healed_after: Option<Duration>,
}

impl Course {
    /// Nothing goes wrong, and nobody is late.
    pub fn calm(stop_timeout: Duration) -> Self {
        Self { duration: None, stop_timeout, joins: None, late: Vec::new(), faults: Vec::new(), healed_after: None }
    }

    /// Whether an application is started again when it dies, as far as that goes.
    pub(super) fn returns(&self, node: NodeId) -> bool {
        self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Restart(of, _) if *of == node))
    }

    /// How long after the others the process of an application starts.
    pub(super) fn lateness(&self, node: NodeId) -> Duration {
        self.late.iter().find(|(late, _)| *late == node).map_or(Duration::ZERO, |(_, after)| *after)
    }
}

/// What drivers do for components, and what comes from outside the partition.
pub trait Outside {
    /// The fragment that a link sends of an event; all links of a read-out system are asked one after the other, from 0.
    fn fragment(&mut self, node: NodeId, rob: u16, event: &EventInfo) -> Bulk;

    /// The fragment that a source sends by itself of an event.
    fn pushed(&mut self, _node: NodeId, _rob: u16, _event: EventId) -> Bulk {
        Bulk::empty()
    }

    /// The chunk that a source sends, from when to when it is, and its place among all that the source has sent.
    fn chunk(&mut self, _node: NodeId, _rob: u16, _time: Interval, _place: u64) -> Bulk {
        Bulk::empty()
    }

    /// What a source sends by itself that belongs to events by time, or by count: of the trigger with this number. `place` is as in
    /// [`Handed`](super::Handed).
    fn matched(&mut self, node: NodeId, rob: u16, number: EventId, _time: Interval, _place: u64) -> Bulk {
        self.pushed(node, rob, number)
    }

    /// What a level-1 processor says of an event.
    fn trigger(&mut self, _processor: u16, event: EventId) -> TriggerRecord {
        TriggerRecord { event, ..TriggerRecord::default() }
    }

    /// Runs a step of the steering of an L2PU.
    fn steer(&mut self, node: NodeId, steer: &Steer) -> Steered;

    /// Decides on an event; `None` if the task never answers.
    fn process(&mut self, built: &BuiltEvent) -> Option<Processed>;

    /// Read-out links of a ROS.
    fn links(&self, node: NodeId) -> u16;

    /// Is shown each event that a recorder is to put into its file, and says whether the disk takes it.
    fn record(&mut self, node: NodeId, recording: &Recording) -> bool;

    /// Whether a disk that is not full fails a write; `is_healed` from the time on at which nothing is to go wrong any more.
    fn disk_fails(&mut self, _is_healed: bool) -> bool {
        false
    }

    /// A recorder dies, of whose events the disk may not have the last `unsynced`: how many of them are lost.
    fn lost(&mut self, _node: NodeId, _unsynced: usize) -> usize {
        0
    }

    /// What a piece of work takes, and where. `in_run` is the time since the start of the run.
    fn effort(&mut self, in_run: Duration, work: Effort<'_>) -> (Duration, Place);
}

/// Work whose duration is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Effort<'a> {
    /// A step of steering.
    Steer(&'a Steer),
    /// A decision of the event filter.
    Process(&'a BuiltEvent),
    /// Writing so many bytes.
    Record(usize),
    /// Making durable what was written.
    Sync,
}

/// Where a piece of work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the thread that runs the component, which does nothing else meanwhile.
    Thread,
    /// In another thread, one piece of work after the other.
    Aside,
    /// Anywhere: any number at once.
    Anywhere,
}

/// Who is asked for samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Those who have whole events.
    WholeEvents,
    /// Read-out systems and interfaces of crates as well.
    AllModules,
}

/// What can happen to an application or its host.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// It dies and does not return.
    Kill(NodeId),
    /// It dies, and a new life of it appears after this time.
    Restart(NodeId, Duration),
    /// It hears and says nothing any more, but its connections stand.
    Hang(NodeId),
    /// The run is forced to end.
    Force,
    /// Run control pauses the run for this time.
    Pause(Duration),
    /// Run control asks for samples, which is no fault.
    Watch(Watched),
    /// Nothing gets through between these nodes and the others for this time: what may be lost is, the rest waits.
    Split(Vec<NodeId>, Duration),
    /// For `lasts`, every input takes `each` longer.
    Slow {
        /// Who is slow.
        node: NodeId,
        /// More time for each input.
        each: Duration,
        /// For how long.
        lasts: Duration,
    },
    /// Its clock steps forward.
    ClockStep(NodeId, Duration),
    /// Its clock steps back: as what it reads never does, it stands still for this time.
    ClockBack(NodeId, Duration),
    /// Its disk takes nothing for this time.
    FullDisk(NodeId, Duration),
    /// Somebody who is no part of the partition says this once, in the name of one that is.
    Forged {
        /// As whom.
        from: NodeId,
        /// In a life of it so many after the one that it has.
        lives_ahead: u32,
        /// To whom.
        to: NodeId,
        /// What.
        message: Box<Message>,
    },
}

impl Fault {
    /// The application that it strikes, if it is one.
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Self::Kill(node)
            | Self::Restart(node, _)
            | Self::Hang(node)
            | Self::Slow { node, .. }
            | Self::ClockStep(node, _)
            | Self::ClockBack(node, _)
            | Self::FullDisk(node, _) => Some(*node),
            Self::Force | Self::Pause(_) | Self::Watch(_) | Self::Split(..) | Self::Forged { .. } => None,
        }
    }

    /// Whether nothing is lost by it, so that a run must end as without it.
    pub fn is_survived(&self) -> bool {
        matches!(
            self,
            Self::Split(..)
                | Self::Slow { .. }
                | Self::ClockStep(..)
                | Self::ClockBack(..)
                | Self::FullDisk(..)
                | Self::Pause(_)
                | Self::Watch(_)
                | Self::Forged { .. }
        )
    }
}

/// A bug that the checks of a run must find: the world makes a component misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A recorder acknowledges an event that it does not write.
    LostEvent,
    /// An event is sent to a recorder twice.
    Duplicate,
    /// A DFM counts one event too many.
    Miscount,
    /// An EFD forgets to ask for the next event, once.
    LostCredit,
    /// An EFD asks for two events where it has room for one.
    DoubleCredit,
    /// A DFM clears an event again that it has cleared in another group.
    DoubleClear,
    /// SFIs forget their time-outs some way into the run.
    ForgottenTimeout,
    /// SFIs tell a DFM that returns nothing of what they hold.
    ForgottenHoldings,
    /// The sources take accepted events for finished as soon as the DFM has them.
    ForgottenDecisions,
    /// A recorder that returns does not look into its files.
    ForgottenFiles,
    /// Level 1 tells a supervisor that returns nothing again.
    ForgottenResults,
    /// The DFM does not know what it has taken over from former lives of a supervisor.
    ForgottenTaken,
    /// A DFM grants an event to a second builder.
    TwoGrants,
    /// EFDs never end their answer to what they have of an SFI that was lost.
    UnendedAnswers,
    /// EFDs do not say what they have told an SFI that was lost.
    ForgottenFates,
    /// Nobody is told what a DFM has counted.
    ForgottenCounts,
    /// EFDs do not say to a DFM that returns what they have told SFIs.
    UntoldFates,
    /// L2PUs do not say that an event has a result.
    UnflaggedResults,
    /// A recorder puts an event of several streams into one only.
    ForgottenStream,
    /// Read-out systems push as fast as they can.
    Unshaped,
    /// Read-out systems have no bound on what they push.
    Unbounded,
    /// Whoever triggers does not hear that the run is paused.
    UnheardPause,
    /// Run control takes whoever joins, also as one that has joined.
    JoinedTwice,
    /// Whoever connects is taken at his word.
    UncheckedChallenge,
    /// An application takes a greeting of a former life of its peer.
    FormerGreeting,
    /// Read-out systems take slices for longer than they are, by the least that there is.
    WideSlices,
    /// Level 1 makes slices before all sources have passed them.
    HastySlices,
    /// A chunk comes and is in no book.
    LostChunk,
    /// Level 1 does not tell one read-out system of slices that it leaves out.
    UntoldSlices,
    /// Events take what lies behind their times for longer than they say, by the least that there is.
    WideWindows,
    /// Data that say a count belong to the trigger behind theirs.
    ShiftedCounts,
    /// The front of a crate takes all sources of its read-out systems to have come.
    UnawaitedSources,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 32] = [
        Self::LostEvent,
        Self::Duplicate,
        Self::Miscount,
        Self::LostCredit,
        Self::DoubleCredit,
        Self::DoubleClear,
        Self::ForgottenTimeout,
        Self::ForgottenHoldings,
        Self::ForgottenDecisions,
        Self::ForgottenFiles,
        Self::ForgottenResults,
        Self::ForgottenTaken,
        Self::TwoGrants,
        Self::UnendedAnswers,
        Self::ForgottenFates,
        Self::ForgottenCounts,
        Self::UntoldFates,
        Self::UnflaggedResults,
        Self::ForgottenStream,
        Self::Unshaped,
        Self::Unbounded,
        Self::UnheardPause,
        Self::JoinedTwice,
        Self::UncheckedChallenge,
        Self::FormerGreeting,
        Self::WideSlices,
        Self::HastySlices,
        Self::LostChunk,
        Self::UntoldSlices,
        Self::WideWindows,
        Self::ShiftedCounts,
        Self::UnawaitedSources,
    ];

    /// Whether it shows only where applications join.
    pub const fn is_of_joining(self) -> bool {
        matches!(self, Self::JoinedTwice | Self::UncheckedChallenge | Self::FormerGreeting)
    }

    /// Whether it shows only where events are slices of time.
    pub const fn is_of_slices(self) -> bool {
        matches!(self, Self::WideSlices | Self::HastySlices | Self::LostChunk | Self::UntoldSlices)
    }

    /// Whether it shows only where data belong to the events of a leader by time or count.
    pub const fn is_of_matching(self) -> bool {
        matches!(self, Self::WideWindows | Self::ShiftedCounts)
    }

    /// Whether it shows only where links push within crates.
    pub const fn is_of_crate_links(self) -> bool {
        matches!(self, Self::UnawaitedSources)
    }

    /// The level of faults at which it shows: some only where an application dies.
    pub const fn level(self) -> u32 {
        match self {
            Self::ForgottenHoldings
            | Self::ForgottenDecisions
            | Self::ForgottenFiles
            | Self::ForgottenResults
            | Self::ForgottenTaken
            | Self::TwoGrants
            | Self::JoinedTwice
            | Self::FormerGreeting => 4,
            Self::ForgottenCounts | Self::UntoldFates => 5,
            Self::UnendedAnswers | Self::ForgottenFates => 2,
            Self::HastySlices | Self::UnawaitedSources => 0,
            _ => 1,
        }
    }
}

/// The earliest time of a world; nothing in it happens at time 0.
pub(crate) const BEGINNING: Time = Time::from_ns(1_000);
