//! Every message of the dataflow: from whom to whom, when, and what answers it.
//!
//! Each message names the credit or the count of its receiver that covers it. So no queue of a driver grows. The
//! layout on the wire is in [`crate::wire`].

pub(crate) mod terms;
mod ways;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::building::destinations::Destinations;
use crate::ledger::{Finish, Ledger};
use crate::report::Report;
use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId, RunNumber};
use timing::Interval;
use timing::slices::Passed;

pub use terms::{BusyCause, Chains, DebugReason, Fate, Grounds};

/// What travels with every message: addresses, run and epochs.
///
/// A message is taken only if the run and both incarnations are current. So nothing of an earlier run, of a peer's
/// former life, or meant for the receiver's former life gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The run.
    pub run: RunNumber,
    /// The sender's life.
    pub from_incarnation: Incarnation,
    /// The receiver's life, as the sender knows it.
    pub to_incarnation: Incarnation,
}

/// Clear groups that a read-out system misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedClears {
    /// The first sequence number.
    pub first: u64,
    /// Bit n stands for the group n behind the first.
    pub bits: u64,
}

impl MissedClears {
    /// The sequence numbers, rising.
    pub fn sequences(self) -> impl Iterator<Item = u64> {
        let is_missed = move |n: &u32| self.bits >> n & 1 == 1;
        (0..u64::BITS).filter(is_missed).filter_map(move |n| self.first.checked_add(u64::from(n)))
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Level 1 → ROS, or TRG, which tells its crate: read out these events, issued or told again together. → DFM where
    /// there is no level 2: build them. At most `in_flight` beyond what [`Message::Taken`] covers.
    L1Accept {
        /// They.
        events: Vec<EventInfo>,
        /// To a ROS, when each of them was, as the leading source says; [none](Interval::is_none) of one without a time. Empty if no
        /// event has a time.
        times: Vec<Interval>,
    },
    /// Level 1 → L2SV: an event with its regions of interest. Bound as for `L1Accept`.
    L1Result {
        /// The event.
        event: EventInfo,
        /// Its regions of interest.
        rois: Vec<Roi>,
    },
    /// ROS → level 1: triggers that the leading source has sent, in order. At most `in_flight` that were not issued.
    LinkTriggers {
        /// They.
        triggers: Vec<LinkTrigger>,
        /// Whether none follows.
        last: bool,
    },
    /// ROS → level 1: how far its sources have come in slices of time. It says so when that changes, and when a full link has room
    /// again. At most 2¹⁶ slices beyond those that it knows to be issued or left out. Answered by `PassedTaken`, and one at a time.
    Passed(Passed),
    /// Level 1 → ROS: it has taken the last `Passed`; the ROS may say another.
    PassedTaken,
    /// Level 1 → ROS of the leading source: this is to start, or to stop. Where events are slices of time, to every ROS: all sources are
    /// to stop.
    Lead(bool),
    /// Level 1 → every L2SV, or the DFM: all events up to this one were sent, to whomever. At most one per period. → ROS in a
    /// new life, or where events are slices of time: it will not be told of any of them any more.
    IssuedUpTo(EventId),
    /// Level 1 → L2SV or DFM, L2SV → DFM, and SFI → DFM: nothing follows in this run. A stop by command would overtake
    /// what is on its way on other connections. Said again to a peer that comes back.
    NoMore,
    /// ROS, TRG, L2SV or DFM → level 1, ROS → TRG: how many triggers it has taken in all. Cumulative; opens the window of level 1.
    Taken(u64),
    /// ROS, TRG, L2SV or DFM → level 1, ROS → TRG: stop or go on triggering. Changes only.
    Busy {
        /// Why.
        cause: BusyCause,
        /// Begin or end.
        on: bool,
    },

    /// L2SV → L2PU: decide on this event. At most the L2PU's workers. Answered by `L2Decision`.
    Assign {
        /// The event.
        event: EventInfo,
        /// Echoed in the decision.
        attempt: u16,
        /// Its regions of interest.
        rois: Vec<Roi>,
    },
    /// L2PU → ROS or TRG, TRG → ROS: data of some ROBs. At most one per worker and ROS. Answered by `RoiReply`.
    RoiRequest {
        /// The event.
        event: EventId,
        /// Echoed in the reply.
        request: u32,
        /// Source identifiers.
        robs: Vec<u32>,
    },
    /// ROS or TRG → L2PU, ROS → TRG.
    RoiReply {
        /// The event.
        event: EventId,
        /// From the request.
        request: u32,
        /// ROBs that are not in `bulk`.
        missing: Vec<Missing>,
        /// ROB fragments, one behind the other.
        bulk: Bulk,
    },
    /// L2PU → pROS: the result of an accepted event. At most one per worker. Answered by `L2ResultTaken`.
    L2Result {
        /// The event.
        event: EventId,
        /// A ROB fragment.
        bulk: Bulk,
    },
    /// pROS → L2PU: the result is kept (or was not wanted any more).
    L2ResultTaken(EventId),
    /// L2PU → L2SV.
    L2Decision {
        /// The event.
        event: EventId,
        /// From the assignment.
        attempt: u16,
        /// Accepted or rejected.
        accept: bool,
        /// Whether some of the data that it asked for were missing or damaged: then it accepts.
        lacks_data: bool,
        /// Whether the pROS holds a result.
        has_result: bool,
        /// The SFI that has been given the data that level 2 looked at.
        builder: Option<NodeId>,
    },
    /// L2PU → SFI: the data of an accepted event that level 2 has looked at. Building need not move them from the read-out
    /// systems again `[ATM1997 §II-B]`. One per accepted event, before its decision. The SFI keeps a bounded number; what it
    /// drops, or what is lost, it asks the read-out systems for.
    Collected {
        /// The event.
        event: EventId,
        /// Source identifiers of the ROBs in `bulk`, none twice.
        robs: Vec<u32>,
        /// ROB fragments, one behind the other.
        bulk: Bulk,
    },
    /// Level 1 → L2SV, before anything else, where supervisors may return: what is settled of the events that its former lives
    /// were given. Once in a life.
    Resume {
        /// Rejected.
        rejected: u64,
        /// Accepted, those by force included.
        accepted: u64,
        /// Accepted by force.
        forced: u64,
        /// Accepted without all data.
        incomplete: u64,
        /// Settled events that may not have been cleared, where the L2SV clears.
        uncleared: Vec<EventId>,
    },
    /// Level 1 → L2SV that returns: an event that its former lives were given and did not settle, in order. At most those in
    /// hand of a former life.
    L1Again {
        /// The event.
        event: EventInfo,
        /// Its regions of interest.
        rois: Vec<Roi>,
    },
    /// L2SV → level 1: these events are decided for good, and need not be told again to an L2SV that returns. One per group of
    /// decisions that has any. Answered by `SettledTaken`.
    Settled {
        /// Groups of settlements of this life that are cleared; all, where the DFM clears.
        cleared: u64,
        /// How they were decided.
        decided: Vec<Settlement>,
    },
    /// Level 1 → L2SV: the oldest `Settled` that was not answered is taken.
    SettledTaken,
    /// L2SV → DFM: level 1 will not tell again events in decisions up to this group, nor, if so said, those that former
    /// lives had decided.
    Forget {
        /// The group.
        up_to: u64,
        /// What former lives had decided, as well.
        former: bool,
    },
    /// DFM → L2SV in a new life: the decisions of former lives that it has taken over and was not told to forget. A DFM that has
    /// returned itself tells as well of all events that it knows to have been accepted, of whichever L2SV.
    TakenBefore {
        /// Some of them.
        decided: Vec<Settlement>,
        /// Whether that is all.
        last: bool,
    },
    /// DFM → L2SV in a new life, ahead of `TakenBefore`: events that former lives have accepted and that are still open. The L2SV
    /// keeps them as if it had accepted them itself, for a DFM that dies as well. At most the events in the DFM.
    AcceptedBefore(Vec<Decision>),
    /// L2SV → DFM: a group of decisions. At most the events in the L2SV. Answered by `DecisionsTaken`.
    Decisions {
        /// From 1, without gaps.
        sequence: u64,
        /// Everything below was decided, in this group or before.
        oldest_undecided: EventId,
        /// The decisions.
        decisions: Vec<Decision>,
    },
    /// DFM → L2SV: groups of decisions are taken over. The L2SV keeps accepted events that may be unfinished: a DFM that
    /// returns is told of them again.
    DecisionsTaken {
        /// All groups up to this one.
        up_to: u64,
        /// Everything below this event is finished for good.
        oldest_unfinished: EventId,
    },
    /// DFM → level 1, where there is no level 2: everything below this event is finished for good. A DFM that returns need
    /// not hear of it. One per group of clears.
    FinishedBelow(EventId),

    /// DFM → SFI: build these events. At most the SFI's `building` over all such messages. Answered by `EndOfEvent`.
    Build {
        /// The events.
        events: Vec<Assignment>,
        /// Everything below this event is finished for good.
        oldest_unfinished: EventId,
    },
    /// SFI → ROS, EBIF or pROS, EBIF → ROS: data for building. At most `outstanding_requests` over all events and ROSs. Answered by `EventReply`.
    EventRequest {
        /// For one event each; other sources may be sent the same list.
        requests: Arc<Vec<DataRequest>>,
    },
    /// DFM → all ROSs and TRGs, multicast, may be lost, TRG → EBIF: send the data of these events to their builders `[ATM1997 §II]`. At most the
    /// `building` of all SFIs. Answered by `EventReply` to the SFI, which asks for what it does not get.
    Push(Vec<PushOrder>),
    /// DFM → ROS or TRG: where events go from a number on. One for each change.
    Destinations(Destinations),
    /// ROS, EBIF or pROS → SFI, ROS → EBIF: data that were there together, pushed, or for requests that may have come in several messages.
    /// Data that have still to arrive follow in others. At most one entry per request, and as many bytes as
    /// [`group_bytes_max`](crate::readout::ros::RosParameters) or one event has; what is pushed, within the byte credits. Where replies go
    /// several ways, one that overtakes others takes their bytes as arrived, and credits return early.
    EventReply {
        /// All that this source has pushed to this SFI so far, as its byte credits count it, with this message.
        pushed: u64,
        /// For one event each.
        replies: Vec<DataReply>,
        /// The bytes of the replies, one behind the other.
        bulk: Bulk,
    },
    /// SFI → ROS or EBIF: how much of what it has pushed is taken or dropped. Cumulative, may be lost; four in a window.
    Credit(u64),
    /// SFI → DFM: these events are built. At most `building` that the DFM has not answered. Answered by `Granted` and `Revoked`.
    EndOfEvent(Vec<Ended>),
    /// DFM → SFI: the events are yours; serve them. One entry per entry of `EndOfEvent` at most.
    Granted(Vec<Attempt>),
    /// DFM → SFI: another SFI has or had them; drop them. One entry per entry of `EndOfEvent` at most.
    Revoked(Vec<Attempt>),
    /// SFI → DFM that returns: what it has of the events that the former life gave it. Once in a life of the DFM, in several
    /// messages if there is much; ends of events that were not answered come again behind it. EFD → DFM that returns: what it has told
    /// SFIs, and the last `Ledger`. L2SV or level 1 → DFM that returns, ahead of what it tells again: the last `Ledger`. ROS → DFM that returns and
    /// triggers itself: the newest event that it was asked for.
    Held(Holdings),
    /// DFM → SFI, L2SV, or level 1 where there is no level 2: the fate of all events below a bound, for the DFM's later life. Ahead of
    /// any message with a higher bound, where the DFM may return. DFM → EFD, to one with each group of clears: the same.
    Ledger(Box<Ledger>),
    /// SFI → DFM: flow control `[EB2007 §II-B.2]`. Changes only.
    SfiBusy(bool),
    /// DFM → all ROSs, TRGs and the pROS, multicast, may be lost, TRG → ROS: forget these events. At least one per 100 ms.
    Clear {
        /// From 1, without gaps.
        sequence: u64,
        /// No event below this will be asked for.
        oldest_valid: EventId,
        /// No other group follows: the run is over.
        last: bool,
        /// About 100 events. All read-out systems are sent the same list.
        events: Arc<Vec<EventId>>,
    },
    /// ROS or TRG → DFM, ROS → TRG: these clear groups did not arrive. The next follows when all of them have come, or after 100 ms.
    /// Answered by `Clear` sent to this ROS alone.
    ClearAsk(MissedClears),

    /// EFD → SFI: room for this many more events. Bounded by the EFD's slots.
    Pull(u32),
    /// SFI → EFD: a built event. One per pull. Answered by `Finished`.
    BuiltEvent(BuiltEvent),
    /// EFD → SFO: record this event. At most the EFD's slots. Answered by `Recorded`.
    Record(Recording),
    /// SFO → EFD: the event cannot be recorded, now or later. Answers `Record`.
    Refused(EventId),
    /// SFO → EFD: recorded, as durably as configured; `fresh` is false if it had been recorded before.
    Recorded {
        /// The event.
        event: EventId,
        /// Whether this request put it in the file.
        fresh: bool,
        /// Whether what is in the file has the data of all ROBs. Of what a former life has recorded the SFO does not know: it says what
        /// holds of the event in the request.
        complete: bool,
    },
    /// DFM → EFD: this life of an SFI is over; which of its events are there, and what has it been told of others? Once for each loss
    /// of an SFI that had cleared events, or of the last one with built events, and when the EFD comes up. Answered by `Orphans`.
    Orphaned {
        /// The SFI.
        sfi: NodeId,
        /// Its last life.
        life: Incarnation,
    },
    /// EFD → DFM: it has seen that that life of the SFI is over, and knows this of its events. Answers `Orphaned`. At most the EFD's
    /// slots, and those events accepted since the oldest unfinished one that it has finished, some of them in each message.
    Orphans {
        /// The SFI.
        sfi: NodeId,
        /// As asked.
        life: Incarnation,
        /// Events that are being filtered or recorded.
        events: Vec<EventId>,
        /// Events of which the SFI was told what became of them, and may have told nobody.
        finished: Vec<Finish>,
        /// Nothing follows.
        last: bool,
    },
    /// EFD → SFI → DFM: what became of events. EFD → DFM where the SFI is gone. At most the events in the sender.
    Finished(Vec<Finish>),

    /// Who accepted a connection → who made it, the first frame: it shall prove that it belongs to this run. Answered by
    /// `Response`, or by closing the connection.
    Challenge {
        /// Drawn for this connection.
        nonce: [u8; 32],
    },
    /// Who made a connection → who accepted it: the proof, which speaks of both and of the nonces. Answered by `Confirm`, or
    /// by closing the connection.
    Response {
        /// Drawn for this connection.
        nonce: [u8; 32],
        /// A keyed hash.
        proof: [u8; 32],
    },
    /// Who accepted a connection → who made it: a proof in its turn.
    Confirm {
        /// A keyed hash.
        proof: [u8; 32],
    },
    /// Application → RC, behind the proofs: who it is, and where its peers can reach it. Answered by `Welcome`, or by closing
    /// the connection.
    Join {
        /// `sfi-1`.
        name: String,
        /// Where it listens: `127.0.0.1:40001`.
        address: String,
    },
    /// RC → application: its place in the partition; the addresses are in the envelope.
    Welcome {
        /// The whole configuration, as TOML.
        configuration: String,
        /// Applications in the process of run control.
        hosted: Vec<NodeId>,
        /// Source identifiers of the ROBs of each ROS.
        robs: Vec<Vec<u32>>,
        /// Where the process of run control takes datagrams.
        datagrams: Box<DatagramAddresses>,
    },
    /// RC → application, once all have joined: where the others listen. Answered by `Ready`. Later again, about peers that
    /// have returned.
    Peers(Vec<PeerPlace>),
    /// Application → application, the first frame in both directions behind the proofs.
    Greet {
        /// Which of the connections between the two this is, from 0: both know which there are.
        part: u16,
        /// Where it takes datagrams.
        datagrams: Box<DatagramAddresses>,
    },
    /// Application → RC: all its peers are connected, its inputs are open.
    Ready {
        /// Where it takes datagrams.
        datagrams: Box<DatagramAddresses>,
    },
    /// Application → RC: it cannot take part.
    Failed(String),
    /// Application → RC: its connection to a peer in this life is gone.
    Lost {
        /// The peer.
        node: NodeId,
        /// In which life it was connected.
        life: Incarnation,
        /// Why, in words.
        reason: String,
    },
    /// RC → application: this peer will not return.
    Gone(NodeId),

    /// RC → any application.
    Command(Command),
    /// Any application → RC: it holds nothing any more. Once per `Drain`.
    Drained,
    /// Level 1 or self-triggering DFM → RC: the last event of the run was issued. Once.
    Exhausted,
    /// Any application → RC: answers `Command::Report`.
    Report(Box<Report>),
    /// Any application → RC: answers `Command::Progress`, with the [mark](Report::mark) of its report.
    Progress(u64),
    /// SFO → RC: a file is closed.
    FileClosed(FileRecord),
    /// SFI or EFD → RC: a copy of an event, for those who watch. At most as many and as long ones as its rule allows, for each
    /// `Command::Sample`. May be lost.
    Sample(Box<Recording>),
    /// Any application → RC: something rare that somebody should look at, in words for people.
    Notice(String),
    /// The same of what is as it should be.
    News(String),
    /// Any application → RC: the file of its time stamps, or nothing. Answers `Stamps`, `StampPolls` and `NoStamps`.
    Stamped(String),
}

/// Where an application listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerPlace {
    /// The application.
    pub node: NodeId,
    /// Its life.
    pub life: Incarnation,
    /// As it has told run control.
    pub address: String,
}

/// Where a process takes datagrams, as `127.0.0.1:40001`; empty where it takes none. A flood of one kind shall not drop
/// the other, so each has a socket of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatagramAddresses {
    /// For requests and clears.
    pub control: String,
    /// For messages with bulk.
    pub bulk: String,
    /// The same pair for each further network port.
    pub ports: Vec<(String, String)>,
}

/// Orders of run control to an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Begin the run.
    Start,
    /// Hold back triggers.
    Pause,
    /// Go on.
    Resume,
    /// Take nothing new, finish what is in hand, then say `Drained`.
    Drain,
    /// Give up what is in hand, counting it, then say `Drained`.
    Abandon,
    /// Send a report.
    Report,
    /// Give up configuration and connections, and join again: another run may follow.
    Disconnect,
    /// End the process.
    Exit,
    /// Say at once how far it is.
    Progress,
    /// Show some of the next events, by the [rule](base::sampling::SamplingRule) of the partition.
    Sample,
    /// Write time stamps to a file.
    Stamps,
    /// The same, with stamps of Poll functions.
    StampPolls,
    /// End that file.
    NoStamps,
}

/// What every message about an event repeats of its level-1 information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventInfo {
    /// The event.
    pub event: EventId,
    /// How many triggers came before it in this run: the index of a replayed or sampled event.
    pub ordinal: u64,
    /// Bunch crossing, 0–3563.
    pub bcid: u16,
    /// Level-1 trigger type.
    pub trigger_type: u8,
    /// Level-1 items that fired, after their prescale: one bit each.
    pub items: u32,
    /// On what level 2 has accepted it.
    pub grounds: Grounds,
}

/// A trigger that is the fragment of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTrigger {
    /// The event: the number of the fragment.
    pub event: EventId,
    /// As the source says.
    pub trigger_type: u8,
    /// When it was, in ns of the source; [none](Interval::is_none) if that says no time.
    pub time: Interval,
}

/// A region of interest found by level 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Roi {
    /// 0 electromagnetic, 1 jet, 2 muon, 3 missing energy, 4 total energy.
    pub kind: u8,
    /// Trigger tower of its lower corner along pseudorapidity; for a muon the tower itself.
    pub ieta: u8,
    /// Likewise in azimuth.
    pub iphi: u8,
    /// Pseudorapidity.
    pub eta: f32,
    /// Azimuth in [0, 2π).
    pub phi: f32,
    /// Transverse energy or momentum in MeV.
    pub et_mev: i32,
    /// Electromagnetic: energy of the isolation ring and of the hadronic core. Missing energy: its x and y parts.
    pub aux_mev: [i32; 2],
    /// One bit per threshold passed.
    pub thresholds: u32,
}

/// Most regions of interest of an event: what a message about it holds.
pub const ROIS_MAX: usize = 255;

/// A ROB that sent nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its source identifier.
    pub rob: u32,
    /// Whether it never will: asking again is of no use.
    pub lost: bool,
}

/// One level-2 decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The event; `grounds` says on what it was accepted.
    pub event: EventInfo,
    /// Accepted or rejected.
    pub accept: bool,
    /// Whether the pROS holds a result.
    pub has_result: bool,
    /// The SFI that should build it, because it has some of its data.
    pub builder: Option<NodeId>,
}

/// An event that an SFI is to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The event.
    pub event: EventInfo,
    /// Echoed in [`Ended`].
    pub attempt: u16,
    /// Whether the pROS holds a level-2 result of it.
    pub has_result: bool,
}

/// An event whose data read-out systems are to push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushOrder {
    /// The event.
    pub event: EventInfo,
    /// Who builds it.
    pub sfi: NodeId,
}

/// A request for the data of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataRequest {
    /// The event.
    pub event: EventInfo,
    /// Echoed in the reply.
    pub attempt: u16,
    /// Which try this is, from 1; echoed in the reply.
    pub request: u32,
    /// Source identifiers; empty for all.
    pub robs: Vec<u32>,
}

/// The number of the request that nobody made: of data that are pushed.
pub const UNASKED: u32 = 0;

/// The data of one event from one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataReply {
    /// The event.
    pub event: EventId,
    /// From the request.
    pub attempt: u16,
    /// From the request; 0 for data that nobody asked for.
    pub request: u32,
    /// ROBs that are not in the bulk.
    pub missing: Vec<Missing>,
    /// How much of the bulk of the message is of this event, in bytes: ROB fragments, one behind the other.
    pub len_bytes: u32,
}

/// An event that an SFI has built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The event.
    pub event: EventId,
    /// From [`Assignment`].
    pub attempt: u16,
    /// How many ROBs are without data.
    pub missing: u32,
}

/// How an event was decided for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The event.
    pub event: EventId,
    /// Accepted or rejected.
    pub accept: bool,
    /// On what it was accepted.
    pub grounds: Grounds,
}

impl From<&Decision> for Settlement {
    fn from(decision: &Decision) -> Self {
        Self { event: decision.event.event, accept: decision.accept, grounds: decision.event.grounds }
    }
}

/// What a DFM that returns is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// What has become of events below a bound, as far as the sender was told.
    pub ledger: Box<Ledger>,
    /// The newest event that the sender has heard of.
    pub newest: Option<EventId>,
    /// Events that it has.
    pub events: Vec<HeldEvent>,
    /// Events that it has finished, or was told of, and that may not be below that bound.
    pub finished: Vec<Finish>,
    /// Whether this is all.
    pub last: bool,
}

/// An event that an SFI has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldEvent {
    /// As it was given.
    pub assigned: Assignment,
    /// Whether its end was granted: the event is this SFI's.
    pub granted: bool,
    /// How many ROBs are without data, if it is built.
    pub missing: u32,
}

/// An attempt to build an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The event.
    pub event: EventId,
    /// Which attempt, from 1.
    pub attempt: u16,
}

/// A built event on its way to the event filter.
#[derive(Clone, Debug, PartialEq)]
pub struct BuiltEvent {
    /// The event.
    pub event: EventInfo,
    /// Everything below this event is finished for good.
    pub oldest_unfinished: EventId,
    /// Source identifiers of ROBs without data, rising.
    pub missing: Vec<u32>,
    /// All ROB fragments, one behind the other.
    pub bulk: Bulk,
}

impl BuiltEvent {
    /// The bound that it brings, as far as that can be: the event itself is not finished.
    pub fn finished_below(&self) -> EventId {
        self.oldest_unfinished.min(self.event.event)
    }
}

/// An accepted event on its way to a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The event.
    pub built: BuiltEvent,
    /// Its streams: one bit each, in the order of the configuration. None if it goes to the debug stream.
    pub streams: u32,
    /// Why it goes to the debug stream, if it does.
    pub debug: Option<DebugReason>,
}

/// A file that was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// Where it is.
    pub path: String,
    /// `type_name` of its stream.
    pub stream: String,
    /// Events in it.
    pub events: u64,
    /// Of these, events whose first copy is here: summed over all files, distinct events.
    pub first_copies: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Adler-32 over all its bytes.
    pub adler32: u32,
}

impl Message {
    /// The bulk that travels behind the message, if any.
    pub fn bulk(&self) -> Option<&Bulk> {
        match self {
            Self::RoiReply { bulk, .. }
            | Self::L2Result { bulk, .. }
            | Self::Collected { bulk, .. }
            | Self::EventReply { bulk, .. } => Some(bulk),
            Self::BuiltEvent(built) => Some(&built.bulk),
            Self::Record(recording) => Some(&recording.built.bulk),
            Self::Sample(recording) => Some(&recording.built.bulk),
            _ => None,
        }
    }

    /// The bulk, to be replaced by an equal one elsewhere in memory.
    pub fn bulk_mut(&mut self) -> Option<&mut Bulk> {
        match self {
            Self::RoiReply { bulk, .. }
            | Self::L2Result { bulk, .. }
            | Self::Collected { bulk, .. }
            | Self::EventReply { bulk, .. } => Some(bulk),
            Self::BuiltEvent(built) => Some(&mut built.bulk),
            Self::Record(recording) => Some(&mut recording.built.bulk),
            Self::Sample(recording) => Some(&mut recording.built.bulk),
            _ => None,
        }
    }

    /// Whether the protocol survives the loss of this message: such messages may travel over UDP and multicast
    /// `[EB2007 §II-B.4]`. All others need a transport that keeps order and loses nothing while both ends live.
    pub fn may_be_lost(&self) -> bool {
        matches!(
            self,
            Self::EventRequest { .. }
                | Self::EventReply { .. }
                | Self::Push(_)
                | Self::Credit(_)
                | Self::RoiRequest { .. }
                | Self::RoiReply { .. }
                | Self::Collected { .. }
                | Self::Clear { .. }
                | Self::ClearAsk(_)
                | Self::Sample(_)
        )
    }
}
