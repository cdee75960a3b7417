//! The interface of every component: inputs and a time go in, actions come out.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::level1::roib::TriggerRecord;
use crate::message::{BuiltEvent, Chains, Command, DebugReason, EventInfo, FileRecord, Message, Recording, Roi};
use crate::readout::fragment::FragmentHead;
use crate::report::Report;
use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::losses::Losses;
use base::sampling::SamplingRule;
use base::time::Time;
use timing::Interval;
use timing::watch::Finding;

/// A role of the dataflow as a pure state machine: no I/O, clock, thread or randomness of its own.
///
/// A driver hands in one input at a time, with a time that never goes back. It carries out the actions that the outbox
/// holds afterwards, in their order. There is no other order to remember: any method may follow any other.
pub trait Component {
    /// Takes one input. Messages were checked by [`Node`](crate::node::Node): run, sender and epoch are current.
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox);

    /// Sends what the inputs since the last call have made ready and what travels in groups. A driver calls it when it has
    /// handed in all inputs that were there. So they go together, and nothing waits for later ones.
    fn flush(&mut self, _now: Time, _out: &mut Outbox) {}

    /// The earliest time at which the component wants [`Input::Deadline`]; the driver may come later.
    fn next_deadline(&self) -> Option<Time>;

    /// Whether the component holds nothing that has still to go somewhere. Asked after [`Command::Drain`].
    fn is_drained(&self) -> bool;

    /// Whether nothing is on its way that would still change the counts of a run that has ended. A report that ends a run
    /// waits for it.
    fn is_settled(&self) -> bool {
        true
    }

    /// Counts and gauges, for the accounting, the metrics and the final table.
    fn report(&self, now: Time) -> Report;

    /// Asserts that the state is consistent.
    ///
    /// # Panics
    /// On an inconsistent state. The simulator and the tests call it after every step.
    fn check(&self);
}

/// What can happen to a component.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A message of a peer.
    Message {
        /// The sender.
        from: NodeId,
        /// What it says.
        message: Message,
    },
    /// A peer came or went.
    Peer {
        /// The peer.
        node: NodeId,
        /// What is known of it now.
        state: PeerState,
    },
    /// An order of run control.
    Command(Command),
    /// A fragment arrived on a read-out link, checked by [`FragmentCheck`](crate::readout::fragment::FragmentCheck).
    Fragment {
        /// Index of the link in its ROS.
        rob: u16,
        /// The checked head.
        head: FragmentHead,
        /// The whole ROB fragment.
        bulk: Bulk,
    },
    /// Something came from the link of a source that sends by itself, or of a level-1 processor.
    Link {
        /// Index of the link in its ROS, or of the processor.
        rob: u16,
        /// What.
        news: LinkNews,
    },
    /// Somebody at this host asks for samples by this rule, or for none any more.
    Watch(Option<SamplingRule>),
    /// Work that the component started has ended.
    Done {
        /// As given in [`Action::Start`].
        ticket: Ticket,
        /// Its result.
        outcome: Outcome,
    },
    /// The time that [`Component::next_deadline`] named has come.
    Deadline,
}

/// Inputs and actions are moved several times, and what is larger is moved by a call.
const _: () = assert!(size_of::<Input>() <= 112 && size_of::<Action>() <= 112);

/// What comes from the link of a source that sends by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkNews {
    /// The source is there.
    Up,
    /// It is not; it may return.
    Down,
    /// A fragment, checked, whole, and with its number unwrapped.
    Fragment {
        /// The checked head.
        head: FragmentHead,
        /// As the source says.
        trigger_type: u8,
        /// When it was, in ns of the source; [none](Interval::is_none) if that says no time.
        time: Interval,
        /// The whole ROB fragment.
        bulk: Bulk,
    },
    /// What a level-1 processor says of an event.
    Trigger(Box<TriggerRecord>),
    /// Nothing older than this event follows.
    Idle(EventId),
    /// Data that belong to events by their time, or their count.
    Chunk {
        /// Their time, in ns of the source; [none](Interval::is_none) if it says none.
        time: Interval,
        /// How many the source has counted before, as it says.
        count: u64,
        /// First status word of the ROB headers of its events, as far as it is known.
        status: u32,
        /// A head with its times and length, and the payload: whole words.
        bulk: Bulk,
    },
    /// Nothing begins before this time of the source, or this count, that follows.
    Passed(u64),
    /// Nothing follows in this run.
    Ended {
        /// Fragments that the source says to have sent.
        sent: u64,
    },
    /// So much did not become fragments.
    Lost(Losses),
}

/// What the source of a link is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOrder {
    /// The run begins.
    Start,
    /// It ends: the source is to send what it has, and then that it has ended.
    Stop,
    /// Nothing more fits: nothing is to be handed in from this link, until [`LinkOrder::On`]. What is handed in within one pass must
    /// fit the pages above `busy_above`.
    Off,
    /// Go on.
    On,
}

/// What is known of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// It can be reached, in this incarnation.
    Up(Incarnation),
    /// It cannot be reached; it may return, as its former self or with a higher incarnation.
    Down,
    /// It will not return in this run: whoever waits for it gives up at once.
    Gone,
}

/// What a component asks of its driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send a message to a peer.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        message: Message,
    },
    /// Send the same message to several peers, to each as by [`Action::Send`]: it is made once, and written once as bytes
    /// `[DAQ1999 §6]`.
    Broadcast {
        /// The receivers, none twice.
        to: Arc<[NodeId]>,
        /// The message, without bulk.
        message: Message,
    },
    /// Send a message to every read-out system and pseudo-ROS, by multicast where the transport has it; it may be lost.
    MulticastToReadout(Message),
    /// Show an event to whoever watches at this host.
    Show(Box<Recording>),
    /// Begin work that takes long, outside the component.
    Start {
        /// Comes back in [`Input::Done`].
        ticket: Ticket,
        /// The work.
        work: Work,
    },
    /// Say something to the source of a link.
    Link {
        /// Index of the link in its ROS.
        rob: u16,
        /// What.
        order: LinkOrder,
    },
    /// Something rare that people and tests want to know.
    Note(Note),
}

/// Names a piece of work in progress; unique within a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Work that a driver does for a component.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// ROS: read the fragments of these events, of each from all links. Each comes as [`Input::Fragment`]; behind those of
    /// one or several events comes `Done`.
    ReadOut(Vec<EventInfo>),
    /// L2PU: run one step of steering on the data collected so far.
    Steer(Steer),
    /// EFD: decide on a built event. The driver gives it to a processing task.
    Process(BuiltEvent),
    /// SFO in a later life: take the files in hand that the former one has left. Cut them behind the last event that is in
    /// all its streams, and make them durable. An event that is in them is acknowledged without a sync.
    TakeOver,
    /// SFO: append an event to the files of its streams.
    Record(Recording),
    /// SFO: make everything recorded so far durable.
    Sync,
    /// SFO: close all files. Where the last sync has failed they end behind what is durable.
    Close,
}

/// One step of steering.
#[derive(Clone, Debug, PartialEq)]
pub struct Steer {
    /// The event.
    pub event: EventInfo,
    /// Which of the unit's workers has it: each has a context of its own, in which an event is worked on from step 0.
    pub worker: u32,
    /// 0 for the first step.
    pub step: u32,
    /// The regions of interest from level 1.
    pub rois: Vec<Roi>,
    /// The data that the step before asked for.
    pub data: Vec<Bulk>,
    /// How many of the ROBs it asked for have sent nothing.
    pub missing: u32,
}

/// How work ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All links were read for so many more of the events, in their order.
    ReadOut(usize),
    /// A step of steering ended.
    Steered(Steered),
    /// The event filter decided, or failed to.
    Processed(Processed),
    /// The files of a former life are in the hands of this one, and the disk has them.
    TakenOver {
        /// The events that are in them and that may be asked for again.
        events: Vec<EventId>,
        /// All files that the former life has closed: it may have died before it told of the last ones.
        closed: Vec<FileRecord>,
        /// All that former lives have recorded: events, copies of them, bytes of these.
        recorded: [u64; 3],
    },
    /// They could not be read or cut. It may be tried again.
    TakeOverFailed,
    /// The event is in its files. `closed` are files that reached their limit.
    Recorded {
        /// How many files the event went to.
        copies: u32,
        /// Bytes of the event as it is in the files.
        bytes: u64,
        /// Files that this event closed.
        closed: Vec<FileRecord>,
    },
    /// The event could not be written; nothing of it is in a file. It may be tried again.
    RecordFailed,
    /// The event cannot be put into a file, now or later; nothing of it is in one.
    RecordRefused,
    /// Everything recorded before is durable.
    Synced,
    /// What was recorded is not known to be durable.
    SyncFailed,
    /// Nothing is written any more.
    Closed {
        /// All files that are closed now.
        files: Vec<FileRecord>,
        /// What is in none that is closed.
        unfinished: Unfinished,
    },
}

/// Events in files that a recorder could not close, or that somebody else has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Events whose first copy is there.
    pub events: u64,
    /// Copies of events.
    pub copies: u64,
    /// Bytes of these copies.
    pub bytes: u64,
}

/// What a step of steering came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Steered {
    /// Another step needs these ROBs (source identifiers, none twice).
    Ask(Vec<u32>),
    /// The event is decided.
    Decide(Selection),
}

/// A level-2 decision, with what it was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Accepted or rejected.
    pub accept: bool,
    /// The ROB fragment for the pROS; empty if there is none to keep. Of a rejected event it is not looked at.
    pub result: Bulk,
    /// What the chains said.
    pub chains: Chains,
    /// Bytes of detector data, without headers, that the steps looked at.
    pub payload_bytes: u32,
    /// Whether data were damaged, as if they had not come.
    pub lacks_data: bool,
}

/// What the event filter made of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Processed {
    /// Recorded, unless prescales of its streams leave none.
    Accept {
        /// Streams that the algorithm asked for by name, one bit each; the chains ask for theirs.
        streams: u32,
        /// What the chains said.
        chains: Chains,
        /// A ROB fragment that is recorded with the event; may be empty.
        result: Bulk,
        /// The part of the event to record, if the algorithm asked for windows.
        windowed: Option<Box<Windowed>>,
    },
    /// Not recorded.
    Reject {
        /// What the chains said.
        chains: Chains,
    },
    /// To the debug stream.
    Fail {
        /// Why.
        reason: DebugReason,
        /// A ROB fragment that is recorded with the event; may be empty.
        result: Bulk,
    },
}

/// What windows take of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Windowed {
    /// The ROB fragments, some of them with fewer chunks, and what says so.
    pub bulk: Bulk,
    /// Chunks in them.
    pub kept_chunks: u64,
    /// Fragments that are left out as a whole.
    pub left_fragments: u64,
    /// Chunks that are left out, also with their fragment.
    pub left_chunks: u64,
    /// Bytes that are left out.
    pub left_bytes: u64,
}

/// Something rare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Recording failed and will be tried again: most often a full disk.
    RecordingStalled,
    /// Recording goes on after a stall.
    RecordingResumed,
    /// Fragments were removed below the oldest valid event to make room.
    GarbageCollected {
        /// How many.
        fragments: u64,
    },
    /// More level-2 time-outs than the limit allows: triggers are held back instead of forced through.
    ForcedLimitReached,
    /// The clock of a source has stepped, or its numbers belong to other triggers.
    Source {
        /// The source identifier of its ROB.
        rob: u32,
        /// What has been found.
        finding: Finding,
    },
    /// An event was given up before it was built.
    NotBuilt(EventId),
    /// An event builder was assigned this event although it has no room. It leaves this one, and others that it only counts,
    /// to the DFM, which has them built elsewhere in time.
    AssignedBeyondRoom(EventId),
    /// An event that was built and cleared is lost with its builder.
    LostBuilt(EventId),
    /// A DFM that has returned goes on without knowing what this event builder or read-out system holds.
    RecoveredWithout(NodeId),
}

/// The actions of one or several inputs, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    actions: Vec<Action>,
}

impl Outbox {
    /// An empty outbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message to a peer.
    pub fn send(&mut self, to: NodeId, message: Message) {
        self.actions.push(Action::Send { to, message });
    }

    /// Adds a message to several peers, none of them twice.
    pub fn broadcast(&mut self, to: Arc<[NodeId]>, message: Message) {
        match *to {
            [] => {}
            [one] => self.send(one, message),
            _ => self.actions.push(Action::Broadcast { to, message }),
        }
    }

    /// Adds a message to all read-out systems.
    pub fn multicast_to_readout(&mut self, message: Message) {
        self.actions.push(Action::MulticastToReadout(message));
    }

    /// Adds an event to be shown at this host.
    pub fn show(&mut self, recording: Recording) {
        self.actions.push(Action::Show(Box::new(recording)));
    }

    /// Adds work.
    pub fn start(&mut self, ticket: Ticket, work: Work) {
        self.actions.push(Action::Start { ticket, work });
    }

    /// Adds an order to the source of a link.
    ///
    /// # Panics
    /// For a link beyond the 65,536 that a read-out system can number.
    pub fn link(&mut self, rob: usize, order: LinkOrder) {
        let rob = u16::try_from(rob).expect("a ROS has few links");
        self.actions.push(Action::Link { rob, order });
    }

    /// Adds a note.
    pub fn note(&mut self, note: Note) {
        self.actions.push(Action::Note(note));
    }

    /// Takes all actions out, in order; the memory is kept.
    pub fn drain(&mut self) -> alloc::vec::Drain<'_, Action> {
        self.actions.drain(..)
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }
}
