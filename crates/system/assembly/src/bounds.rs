//! Bounds: how much there may be of what a run makes, each as a sum of credits, sources and events in flight.
//!
//! | what | bound | who keeps to it |
//! |---|---|---|
//! | messages under a credit on their way | [`Bounds::most`] | the world, for each pair and credit; the live driver of what waits at its end |
//! | the send queue of a connection | [`Bounds::send_queue`] | the live driver; see [`Covered`] |
//! | pages to receive events into | [`receive_pages`] | the pool: without a page nobody reads on |
//! | pages to receive control messages into | [`control_pages`] | the pool |
//! | pages handed to peers through shared memory | [`tickets`] | the link: what has no ticket is copied |
//! | connections without a proof | [`strangers`] | the oldest goes for a new one |
//! | fragments in a ROS, results in the pROS | [`Parameters`](crate::Parameters) | `check` of the component; busy, before |
//! | events in level 2, in the DFM, in SFIs, in EFDs | [`Parameters`](crate::Parameters) | `check` of the component |

use std::fmt;
use std::sync::Arc;

use base::ids::{NodeId, Role};
use configuration::Partition;
use dataflow::building::sfi::FINISHED_GROUP;
use dataflow::level2::outlet::TOLD_TOGETHER_MAX;
use dataflow::message::{Message, ROIS_MAX};
use dataflow::wire;

use crate::{Assembly, REPLY_GROUP_BYTES};

/// What there may be between the applications of a partition.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Of each application, by its node.
    roles: Arc<[Role]>,
    /// How many applications there are of each role, by its number.
    counts: [usize; ROLES],
    /// The window of level 1.
    window: usize,
    /// Events that level 1 has issued and that are not finished: each is with somebody.
    alive: usize,
    /// Events of one supervisor in a processing unit.
    share: usize,
    /// Decisions that a supervisor tells again at a time.
    told_together: usize,
    building: usize,
    sfi_events: usize,
    /// Events in a filter daemon, and those of them that may be of one builder.
    slots: usize,
    slots_of_one: usize,
    /// Lives of an application in the time of restarts.
    lives: usize,
    /// Requests of a builder or unit at a time, each with its tries.
    requests: usize,
    frame_max: usize,
    push_bytes: usize,
}

/// What covers a message. A receiver that takes nothing gets no more of a kind than [`Bounds::most`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Credit {
    /// The window of level 1: triggers that were not taken.
    Window,
    /// Events that level 1 tells again.
    Again,
    /// What receivers of triggers have taken, and whether they are busy.
    Taken,
    /// How far sources have come in slices of time.
    Passed,
    /// Settled events, and that this is known.
    Settled,
    /// A worker of a level-2 processing unit: its event and its decision.
    Worker,
    /// Decisions of a supervisor.
    Decided,
    /// Events that an SFI builds.
    Building,
    /// Answers to ends of events.
    Answered,
    /// What became of events.
    Fate,
    /// Room that a filter daemon has at an SFI.
    Pull,
    /// Events that a filter daemon has room for.
    Slot,
    /// Events that a filter daemon wants to be recorded.
    Recording,
}

impl fmt::Display for Credit {
    /// What it covers, in the plural.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Window => "triggers of level 1",
            Self::Again => "events that level 1 tells again",
            Self::Taken => "messages on taken triggers",
            Self::Passed => "messages on how far sources have come",
            Self::Settled => "settled events",
            Self::Worker => "events and decisions of workers of level 2",
            Self::Decided => "decisions of a supervisor",
            Self::Building => "events to be built",
            Self::Answered => "answers to ends of events",
            Self::Fate => "fates of events",
            Self::Pull => "events for which a filter daemon has asked",
            Self::Slot => "events that a filter daemon has room for",
            Self::Recording => "events to be recorded",
        })
    }
}

/// Messages of one connection that wait to be sent, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendQueue {
    /// Their number.
    pub frames: usize,
    /// Their length.
    pub bytes: usize,
    /// Of the length: beyond that, no message is queued that comes [by repetition](Covered::ByRepetition).
    repeated_bytes: usize,
    /// Of the length: beyond that, no message is queued that comes [by time](Covered::ByTime).
    by_time_bytes: usize,
}

/// What a driver does with a message for which the send queue has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covered {
    /// It has room always: a credit covers it. Else a credit was given twice, which is a bug.
    ByCredit,
    /// The message is dropped, and counted: it is asked for again, or replaced by the next.
    ByRepetition,
    /// The message is dropped, and counted: it shows something to those who watch, who get another one.
    ByNothing,
    /// It comes by time, or once in a life: a peer that has not taken so many does not live any more.
    ByTime,
}

impl Covered {
    /// What covers this message.
    pub fn of(message: &Message) -> Self {
        match message {
            Message::Sample(_) => Self::ByNothing,
            message if message.may_be_lost() => Self::ByRepetition,
            message if Credit::of(message).is_some() => Self::ByCredit,
            _ => Self::ByTime,
        }
    }
}

impl Credit {
    const ALL: [Self; 13] = [
        Self::Window,
        Self::Again,
        Self::Taken,
        Self::Passed,
        Self::Settled,
        Self::Worker,
        Self::Decided,
        Self::Building,
        Self::Answered,
        Self::Fate,
        Self::Pull,
        Self::Slot,
        Self::Recording,
    ];

    /// What covers a message, and how much of it the message takes; `None` if no credit does.
    pub fn of(message: &Message) -> Option<(Self, usize)> {
        Some(match message {
            Message::L1Accept { events, .. } => (Self::Window, events.len()),
            Message::LinkTriggers { triggers, .. } => (Self::Window, triggers.len()),
            Message::L1Result { .. } => (Self::Window, 1),
            Message::L1Again { .. } => (Self::Again, 1),
            Message::Taken(_) | Message::Busy { .. } => (Self::Taken, 1),
            Message::Passed(_) | Message::PassedTaken => (Self::Passed, 1),
            Message::Settled { decided, .. } => (Self::Settled, decided.len().max(1)),
            Message::SettledTaken => (Self::Settled, 1),
            Message::Assign { .. } | Message::L2Decision { .. } => (Self::Worker, 1),
            // A group without decisions comes by time, and so does what answers it.
            Message::Decisions { decisions, .. } if !decisions.is_empty() => (Self::Decided, decisions.len()),
            Message::Build { events, .. } => (Self::Building, events.len()),
            Message::EndOfEvent(ended) => (Self::Building, ended.len()),
            Message::Granted(attempts) | Message::Revoked(attempts) => (Self::Answered, attempts.len()),
            Message::Finished(fates) => (Self::Fate, fates.len()),
            Message::Pull(count) => (Self::Pull, *count as usize),
            Message::BuiltEvent(_) => (Self::Slot, 1),
            Message::Record(_) | Message::Recorded { .. } | Message::Refused(_) => (Self::Recording, 1),
            _ => return None,
        })
    }
}

impl Assembly {
    /// The bounds of this partition.
    pub fn bounds(&self) -> Bounds {
        let partition = &self.partition;
        let mut counts = [0; ROLES];
        self.applications.iter().for_each(|app| counts[app.role as usize] += 1);
        let of = |role: Role| counts[role as usize];
        let l2pu = partition.l2pu.clone().unwrap_or_default();
        let slots = partition.event_filter().map_or(0, |filter| (filter.slots as usize).max(of(Role::Sfi)));
        let window = usize::try_from(self.in_flight()).unwrap_or(usize::MAX);
        let l2sv = partition.l2sv.clone().unwrap_or_default();
        let in_level2 = (l2sv.events_in_system as usize).saturating_add(window);
        let (sfi_events, building) = (partition.sfi.events as usize, partition.sfi.building as usize);
        // One after the other: in the window, in level 2, in the DFM, in event builders, in the event filter. Where one of them takes
        // nothing, those before it go on until no read-out system has a page.
        let alive = (partition.ros.pages as usize)
            .saturating_add(window)
            .saturating_add(of(Role::L2sv).saturating_mul(in_level2))
            .saturating_add((partition.dfm.queue as usize).saturating_add(window))
            .saturating_add(of(Role::Sfi) * (sfi_events + building))
            .saturating_add(of(Role::Efd) * slots);
        let requests = partition.sfi.outstanding_requests.max(l2pu.workers) as usize;
        let tries = 1 + (partition.sfi.retries as usize).max(L2PU_RETRIES);
        Bounds {
            roles: core::iter::once(Role::RunControl).chain(self.applications.iter().map(|app| app.role)).collect(),
            counts,
            window,
            alive,
            share: (l2pu.workers as usize).div_ceil(of(Role::L2sv).max(1)),
            told_together: (l2sv.group as usize).max(TOLD_TOGETHER_MAX),
            building,
            sfi_events,
            slots,
            slots_of_one: slots / of(Role::Sfi).max(1),
            lives: partition.processes.restarts as usize + 1,
            requests: requests.saturating_mul(tries),
            frame_max: frame_max(partition),
            push_bytes: partition.push().map_or(0, |_| push_bytes(partition)),
        }
    }
}

impl Bounds {
    /// How much of a credit may be on its way from one of these applications to the other; none for who is no application.
    pub fn most_between(&self, credit: Credit, from: NodeId, to: NodeId) -> usize {
        let role = |node: NodeId| self.roles.get(usize::from(node.0)).copied().unwrap_or(Role::RunControl);
        self.most(credit, role(from), role(to))
    }

    /// How much of a credit may be on its way from an application to another, each in one life: sent, and not taken.
    pub fn most(&self, credit: Credit, from: Role, to: Role) -> usize {
        use Role::{Dfm, Efd, L2pu, L2sv, Level1, Ros, Sfi, Sfo, Trg};
        let Self { window, alive, share, told_together, building, sfi_events, slots, slots_of_one, lives, .. } = *self;
        match (credit, from, to) {
            (Credit::Window, Level1, Ros | Trg | L2sv) | (Credit::Window, Ros, Level1) => window,
            // A TRG that has returned does not know what its systems have from its former life.
            (Credit::Window, Trg, Ros) => window.saturating_mul(2),
            // Where the DFM takes triggers, a later life of it is told of all that is not finished.
            (Credit::Window, Level1, Dfm) => window.saturating_add(alive),
            (Credit::Again, Level1, L2sv) => alive,
            // With each trigger that is taken the receiver may say so, become busy, and cease to be, for two causes.
            (Credit::Taken, Ros, Level1 | Trg) | (Credit::Taken, Trg, Level1) => {
                window.saturating_add(1).saturating_mul(5)
            }
            (Credit::Taken, L2sv | Dfm, Level1) => alive.saturating_add(1).saturating_mul(5),
            // It says more when level 1 has taken what it said.
            (Credit::Passed, Ros, Level1) | (Credit::Passed, Level1, Ros) => 1,
            // A group has an event at least. A DFM that has returned may say more of former lives than lives now. It
            // names all events behind the oldest that is not finished, cleared ones too.
            (Credit::Settled, L2sv, Level1) | (Credit::Settled, Level1, L2sv) => alive.saturating_add(told_together),
            // A supervisor gives a unit its share, and a decision gives back a part that this very life had assigned. A
            // unit does not answer for a life, or a connection, that is over.
            (Credit::Worker, L2sv, L2pu) | (Credit::Worker, L2pu, L2sv) => share,
            // What the DFM has not taken over is not cleared, and in the read-out systems. A later life is told again of all behind the
            // oldest that is unfinished, but of so many at a time.
            (Credit::Decided, L2sv, Dfm) => alive.saturating_add(told_together),
            // The DFM counts an event from `Build` to the end of it. A later life counts those that the builder says it has not ended
            // before it gives it others. An end is answered once, and until then the builder waits with the event.
            (Credit::Building, Dfm, Sfi) | (Credit::Building, Sfi, Dfm) | (Credit::Answered, Dfm, Sfi) => building,
            // While the DFM takes none of it, it takes no end of an event behind it, and grants none. So it is what the
            // builder held, and the group that waited.
            (Credit::Fate, Sfi, Dfm) => sfi_events + FINISHED_GROUP,
            // Behind each goes the `Pull` for the slot that it frees.
            (Credit::Fate, Efd, Sfi) => slots_of_one,
            // A daemon tells the DFM in the place of a builder that is lost. With each life that is no more than it had here of that one.
            (Credit::Fate, Efd, Dfm) => slots.saturating_mul(lives),
            // A slot is asked for, filled on the way, or taken here, by whichever life of the builder.
            (Credit::Pull, Efd, Sfi) | (Credit::Slot, Sfi, Efd) => slots_of_one,
            // A life of a daemon asks a life of a recorder for each event in its slots once, and that answers once. The
            // recorder forgets a daemon's questions with its connection.
            (Credit::Recording, Efd, Sfo) | (Credit::Recording, Sfo, Efd) => slots,
            _ => 0,
        }
    }

    /// What the send queue of a connection between two processes may hold. That is all that one application and all
    /// others of the partition say to each other, since a process may hold many.
    pub fn send_queue(&self) -> SendQueue {
        let most = |one: Role| {
            let with = |other: Role| self.between(one, other).saturating_mul(self.counts[other as usize]);
            Role::IN_DRAIN_ORDER.into_iter().map(with).fold(0, usize::saturating_add)
        };
        let credited = Role::IN_DRAIN_ORDER.into_iter().map(most).max().unwrap_or(0);
        let repeated_bytes = self.repeated();
        let by_time_bytes = repeated_bytes.saturating_add(credited).saturating_add(BY_TIME_BYTES);
        // Behind the last one that comes by time there is room for all that credits cover.
        let bytes = by_time_bytes.saturating_add(self.frame_max).saturating_add(credited);
        SendQueue { frames: bytes / wire::HEADER_LEN, bytes, repeated_bytes, by_time_bytes }
    }

    /// Bytes of requests and their replies, one frame at the most, of an application with each source or with each
    /// builder, and of pushed data.
    fn repeated(&self) -> usize {
        let of = |role: Role| self.counts[role as usize];
        let replies = self.requests.saturating_mul((of(Role::Ros) + 1).max(of(Role::Sfi) + of(Role::L2pu)));
        replies.saturating_mul(self.frame_max).saturating_add(self.push_bytes)
    }

    /// Bytes under credits between two applications, both ways: a process may hold either.
    fn between(&self, one: Role, other: Role) -> usize {
        let bytes = |credit: Credit| {
            let most = self.most(credit, one, other).saturating_add(self.most(credit, other, one));
            most.saturating_mul(self.len_max(credit))
        };
        Credit::ALL.into_iter().map(bytes).fold(0, usize::saturating_add)
    }

    /// The longest message that takes one of this credit; one that takes more has as much less for each.
    fn len_max(&self, credit: Credit) -> usize {
        match credit {
            Credit::Slot | Credit::Recording => self.frame_max,
            Credit::Window | Credit::Again | Credit::Worker => SHORT_BYTES + ROIS_MAX * ROI_BYTES,
            _ => SHORT_BYTES,
        }
    }
}

impl SendQueue {
    /// Of so many frames and bytes, whatever covers them.
    pub const fn of(frames: usize, bytes: usize) -> Self {
        Self { frames, bytes, repeated_bytes: bytes, by_time_bytes: bytes }
    }

    /// Whether a message finds no room where so many bytes wait; then, what covers it. One that a credit covers always does.
    pub fn has_no_room(&self, queued_bytes: usize, message: &Message) -> Option<Covered> {
        if matches!(message, Message::Sample(_)) {
            return (queued_bytes > SHOWN_BEHIND_BYTES).then_some(Covered::ByNothing);
        }
        let room = self.repeated_bytes.min(self.by_time_bytes);
        let covered = (queued_bytes > room).then(|| Covered::of(message))?;
        match covered {
            Covered::ByRepetition => queued_bytes > self.repeated_bytes,
            Covered::ByTime => queued_bytes > self.by_time_bytes,
            Covered::ByCredit | Covered::ByNothing => false,
        }
        .then_some(covered)
    }
}

/// What shows something to people goes where no more than that waits, so that reports need not wait for it.
const SHOWN_BEHIND_BYTES: usize = 64 << 10;

/// The longest message in bytes: an event, or a group of replies, with what stands before it.
pub fn frame_max(partition: &Partition) -> usize {
    event_max(partition).max(REPLY_GROUP_BYTES).saturating_add(FRAME_OVERHEAD_BYTES)
}

/// The length of a page to receive into: the longest message fits.
pub fn page_len(partition: &Partition) -> usize {
    usize::try_from(partition.transport.page_size.bytes()).unwrap_or(usize::MAX / 4).max(frame_max(partition))
}

/// Pages for messages with the data of events, of a process with so many connections to each of its peers.
pub fn receive_pages(partition: &Partition, to_peers: &[usize]) -> usize {
    // An event that is held may pin a page that it shares with others: twice the events' own pages, and some on the way.
    let held = (partition.sfi.events as usize).saturating_mul(event_max(partition)).div_ceil(page_len(partition));
    // Data that are pushed wait for their event.
    let ahead = partition.push().map_or(0, |_| push_bytes(partition).div_ceil(page_len(partition)));
    (2 * (held + ahead) + in_use(to_peers)).max(partition.transport.pages as usize)
}

/// Pages for all other messages.
pub fn control_pages(to_peers: &[usize]) -> usize {
    in_use(to_peers) + CONTROL_PAGES_SPARE
}

/// Pages of a run control without components: each of so many applications keeps one, and what people are shown some more. The rest waits in
/// the kernel. Few of them are touched, and these at their beginning.
pub fn pages_of_run_control(applications: usize) -> usize {
    applications + SHOWN_PAGES
}

/// Handles on pages that a process lends to one peer.
pub fn tickets(partition: &Partition) -> usize {
    let Partition { ros, sfi, l2pu, .. } = partition;
    // A builder may hold a slice of each link of a ROS for each of its events, a level-2 unit for each of its workers.
    // Both may hold as many that they asked for in vain.
    let links = if ros.robs == 0 { LINKS_UNKNOWN } else { ros.robs };
    let workers = l2pu.as_ref().map_or(0, |l2pu| l2pu.workers);
    // So may an EBIF, for all builders.
    let builders = if partition.roc.is_some() { sfi.count.max(1) } else { 1 };
    let held = 4 * u64::from((sfi.events * builders).max(workers).max(1)) * u64::from(links);
    held.next_power_of_two().clamp(TICKETS_MIN, TICKETS_MAX) as usize
}

/// Samples that wait to be shown, and some that are on their way.
const SHOWN_PAGES: usize = 256;

/// Connections that may be open without a proof, where so many have one.
pub fn strangers(connections: usize) -> usize {
    STRANGERS_MIN.max(2 * connections)
}

/// Each connection keeps a page once it has read, and each peer may have some on the way.
fn in_use(to_peers: &[usize]) -> usize {
    3 * to_peers.len() + to_peers.iter().sum::<usize>()
}

fn event_max(partition: &Partition) -> usize {
    usize::try_from(partition.sfi.max_event_size.bytes()).unwrap_or(usize::MAX / 4)
}

/// As much as the credits of a builder allow by each port, and a message more of each source.
fn push_bytes(partition: &Partition) -> usize {
    let window = usize::try_from(partition.push_window().bytes()).unwrap_or(usize::MAX / 4);
    let by_ports = window.saturating_mul(partition.ros.ports.len().max(1));
    by_ports.saturating_add(frame_max(partition)).saturating_mul(partition.sources() as usize)
}

/// The roles and run control.
const ROLES: usize = Role::IN_DRAIN_ORDER.len() + 1;

/// Room in a frame for headers, lists of missing ROBs, and the configuration.
const FRAME_OVERHEAD_BYTES: usize = 256 << 10;

/// A message without lists, or an entry of a list.
const SHORT_BYTES: usize = wire::HEADER_LEN + 96;
/// A region of interest in a message.
const ROI_BYTES: usize = 40;

/// As often a unit of level 2 asks again.
pub(crate) const L2PU_RETRIES: usize = 2;

/// What comes by time to a peer that takes nothing: 30 messages in a second for an hour.
const BY_TIME_BYTES: usize = 30 * 3600 * 2 * SHORT_BYTES;

/// For what comes while run control starts and ends a run.
const CONTROL_PAGES_SPARE: usize = 16;

/// Links of a read-out system where the input says how many.
const LINKS_UNKNOWN: u32 = 64;
const TICKETS_MIN: u64 = 1024;
const TICKETS_MAX: u64 = 1 << 20;

/// As many as a machine may start at once.
const STRANGERS_MIN: usize = 512;

#[cfg(test)]
mod tests {
    use base::bulk::Bulk;
    use base::ids::EventId;
    use dataflow::message::{BuiltEvent, EventInfo, Recording};

    use super::*;

    fn assembly(text: &str) -> Assembly {
        let text = format!("partition.name = \"p\"\nros = {{ count = 2, robs = 12 }}\n{text}");
        Assembly::new(Partition::parse("p", &text, &[]).unwrap(), vec![(0..12).collect(), (12..24).collect()])
    }

    #[test]
    fn behind_all_that_no_credit_covers_there_is_room_for_what_credits_cover() {
        let bounds = assembly("sfi.count = 3\nl2sv = {}\nl2pu.count = 2\nlevel1 = {}\nef.count = 2\n").bounds();
        let queue = bounds.send_queue();
        let credited = [Role::Level1, Role::L2sv, Role::Dfm, Role::Sfi, Role::Efd].map(|one| {
            let with = |other: &Role| bounds.between(one, *other) * bounds.counts[*other as usize];
            Role::IN_DRAIN_ORDER.iter().map(with).sum::<usize>()
        });
        assert!(credited.iter().all(|&bytes| bytes > 0 && queue.by_time_bytes + bytes <= queue.bytes), "{queue:?}");
        assert!(queue.repeated_bytes < queue.by_time_bytes && queue.bytes < 8 << 30, "{queue:?}");
        let (accept, credit) =
            (Message::L1Accept { events: vec![EventInfo::default(); 3], times: Vec::new() }, Message::Credit(1));
        let is_left_out = |queued, message: &Message| queue.has_no_room(queued, message).is_some();
        assert_eq!(Credit::of(&accept), Some((Credit::Window, 3)));
        assert!(!is_left_out(queue.bytes, &accept));
        assert!(!is_left_out(queue.repeated_bytes, &credit) && is_left_out(queue.repeated_bytes + 1, &credit));
        let bulk = Bulk::empty();
        let built =
            BuiltEvent { event: EventInfo::default(), oldest_unfinished: EventId(0), missing: Vec::new(), bulk };
        let sample = Message::Sample(Box::new(Recording { built, streams: 0, debug: None }));
        assert!(!is_left_out(SHOWN_BEHIND_BYTES, &sample) && is_left_out(SHOWN_BEHIND_BYTES + 1, &sample));
        let issued = Message::IssuedUpTo(EventId(1));
        assert!(!is_left_out(queue.by_time_bytes, &issued) && is_left_out(queue.by_time_bytes + 1, &issued));
    }

    #[test]
    fn what_credits_cover_goes_where_it_may() {
        let bounds =
            assembly("sfi.count = 1\nl2sv = {}\nl2pu.count = 2\nlevel1 = {}\nef.count = 1\nsfo.count = 1\n").bounds();
        let goes = [
            (Message::L1Accept { events: Vec::new(), times: Vec::new() }, Role::Level1, Role::Ros),
            (Message::Pull(1), Role::Efd, Role::Sfi),
            (Message::Granted(Vec::new()), Role::Dfm, Role::Sfi),
            (Message::Refused(EventId(1)), Role::Sfo, Role::Efd),
        ];
        for (message, from, to) in goes {
            let (credit, _) = Credit::of(&message).unwrap();
            assert!(message.may_go(from, to) && bounds.most(credit, from, to) > 0, "{message:?}");
            assert_eq!(bounds.most(credit, Role::Sfo, Role::Level1), 0);
        }
    }

    #[test]
    fn tickets_last_for_all_that_a_peer_may_hold() {
        let tickets = |events: u32, workers: u32| {
            let text = format!(
                "partition.name = \"p\"\ntransport.connections = \"shm\"\nros.count = 1\nros.robs = 12\n\
                 sfi = {{ count = 1, events = {events}, building = 4 }}\nl2pu = {{ count = 1, workers = {workers} }}\n\
                 l2sv = {{}}\nlevel1 = {{}}\n"
            );
            tickets(&Partition::parse("p", &text, &[]).unwrap())
        };
        assert_eq!(tickets(8, 1), TICKETS_MIN as usize);
        assert!(tickets(8, 200) >= 12 * 200);
        assert!(tickets(200, 1) >= 12 * 200);
    }
}
