//! The declarations of all counters. Each has a name, which is its key in the summary, and words, which people are shown.
//! Its nature says how counts of several lives and applications add up. Counters travel in the order in which they stand here.

use alloc::vec::Vec;

use super::Report;
use base::ids::Role;

/// One counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name: where a summary tells it, the key.
    pub name: &'static str,
    /// What a change of it means.
    pub nature: Nature,
    /// What it counts, for people; empty where a table says it otherwise, or not at all.
    pub words: &'static str,
}

/// What a change of a counter means, and how the counts of several lives make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Something gets on. Lives add up.
    Progress,
    /// Something is tried again, refused, or too late, which may go on for ever. Lives add up.
    Idle,
    /// Something is in hand: the last life says how much.
    Held,
    /// As [`Self::Progress`], but a later life has the counts of former ones in this counter, since it is told. Level 1 tells a
    /// supervisor, the others a DFM that triggers itself, and its files a recorder.
    Told(&'static str),
    /// The largest of all.
    Most,
}

/// A declared set of counters.
pub trait Counters: Copy {
    /// The counters, in their order.
    const COUNTERS: &'static [Counter];

    /// The values, in the same order.
    fn to_values(self) -> Vec<u64>;

    /// From values in the same order; what is not given is 0.
    fn from_values(values: &[u64]) -> Self;
}

impl Counter {
    /// The counters of a role.
    pub const fn of_role(role: Role) -> &'static [Self] {
        match role {
            Role::RunControl => &[],
            Role::Level1 => Level1Counters::COUNTERS,
            Role::L2sv => L2svCounters::COUNTERS,
            Role::L2pu => L2puCounters::COUNTERS,
            Role::Pros | Role::Ros => RosCounters::COUNTERS,
            Role::Dfm => DfmCounters::COUNTERS,
            Role::Sfi => SfiCounters::COUNTERS,
            Role::Efd => EfdCounters::COUNTERS,
            Role::Sfo => SfoCounters::COUNTERS,
            Role::Trg => TrgCounters::COUNTERS,
            Role::Ebif => EbifCounters::COUNTERS,
        }
    }
}

impl Nature {
    /// Two counts together.
    pub fn join(self, one: u64, other: u64) -> u64 {
        if self == Self::Most { one.max(other) } else { one.saturating_add(other) }
    }
}

/// Declares a struct of plain `u64` counters: each with its nature, if that is not `Progress`, and its words, if it has any.
macro_rules! counters {
    (@nature) => { Nature::Progress };
    (@nature $nature:ident) => { Nature::$nature };
    (@nature $nature:ident $told:ident) => { Nature::$nature(stringify!($told)) };
    ($(#[$meta:meta])* $name:ident {
        $($(#[doc = $doc:literal])+ $field:ident $(: $nature:ident $(($told:ident))?)? $(= $words:literal)?,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: u64,)+ }

        impl $name {
            /// Both together.
            #[must_use]
            pub fn plus(self, other: Self) -> Self {
                let mut counters = Self::COUNTERS.iter();
                let mut join = |one, other| counters.next().expect("a counter for each field").nature.join(one, other);
                Self { $($field: join(self.$field, other.$field)),+ }
            }

            /// The sum over several reports.
            pub fn total<'a>(reports: impl Iterator<Item = &'a Report>) -> Self {
                reports.map(|report| Self::from_values(&report.counters)).fold(Self::default(), Self::plus)
            }
        }

        impl Counters for $name {
            const COUNTERS: &'static [Counter] = &[$(Counter {
                name: stringify!($field),
                nature: counters!(@nature $($nature $($told)?)?),
                words: concat!($($words)?),
            }),+];

            fn to_values(self) -> Vec<u64> {
                alloc::vec![$(self.$field),+]
            }

            fn from_values(values: &[u64]) -> Self {
                let mut values = values.iter().copied();
                Self { $($field: values.next().unwrap_or(0)),+ }
            }
        }
    };
}

counters! {
    /// Datagrams of a process, and what became of those that were of no use, by cause.
    DatagramCounts {
        /// Sent.
        sent = "sent",
        /// Taken in, whatever became of them.
        received = "received",
        /// Dropped by the kernel because the receiver did not keep up.
        dropped: Idle = "dropped by full buffers",
        /// Messages and datagrams that could not be sent: the queue was full, or the kernel refused.
        not_sent: Idle = "not sent",
        /// From addresses that are no peer's.
        foreign: Idle = "from strangers",
        /// Not ours, not made with the key, damaged, or impossible.
        malformed: Idle = "malformed",
        /// From a former life of a peer.
        stale: Idle = "stale",
        /// Parts that had come already, or came too late to be of use.
        duplicates: Idle = "duplicates",
        /// Messages of which a part has come, given up.
        given_up: Idle = "messages given up",
        /// Messages whose missing part was asked for; one that is asked for again counts again.
        asked = "times parts asked for",
        /// Datagrams sent once more because they were asked for.
        repeated = "repeated",
        /// How often one message was asked for, at most.
        asked_most: Most,
    }
}

counters! {
    /// Accepted events by what became of them.
    Tally {
        /// Built with the data of all ROBs.
        complete,
        /// Built with data missing.
        incomplete,
        /// Given up before they were built.
        not_built,
        /// Of those built, rejected by the event filter.
        rejected,
        /// Accepted, and recorded where anything records.
        accepted,
        /// In the debug stream.
        debug,
        /// Accepted and not recorded.
        unrecorded,
        /// Given up before the event filter took them.
        abandoned,
        /// Built, and lost.
        lost,
        /// Of all, those accepted by a level-2 time-out.
        forced,
        /// Of all, those accepted by level 2 on a part of the data that it had asked for.
        on_part,
    }
}

counters! {
    /// Level 1. Per peer: events sent to it for a decision.
    Level1Counters {
        /// Triggers issued: the level-1 events of the run.
        issued,
        /// Trigger opportunities: issued and vetoed.
        offered: Idle,
        /// Opportunities that fell into dead time, whatever its cause.
        vetoed: Idle,
        /// Of these, vetoed because a receiver was busy or behind.
        vetoed_busy: Idle,
        /// Of these, vetoed too soon after a trigger: simple dead time.
        vetoed_simple: Idle,
        /// Of these, vetoed because a leaky bucket was full: complex dead time.
        vetoed_complex: Idle,
        /// Triggers fetched from outside and not issued, because the run ended.
        unused,
    }
}

counters! {
    /// L2SV.
    L2svCounters {
        /// Events received from level 1.
        received: Told(received),
        /// Decided: rejected.
        rejected: Told(rejected),
        /// Decided: accepted, forced ones included.
        accepted: Told(accepted),
        /// Accepted by time-out.
        forced: Told(forced),
        /// Accepted without all the data that level 2 had asked for.
        incomplete: Told(incomplete),
        /// Decisions that came after the time-out.
        late_decisions: Idle,
        /// Events given to another L2PU because theirs was lost.
        reassigned: Idle,
        /// Undecided events of former lives that level 1 told again.
        told_again,
        /// Events given up undecided.
        abandoned,
        /// Decisions of L2PUs that an override turned round.
        overridden,
        /// Clear groups sent, where there is no DFM.
        clear_groups: Idle,
        /// Clear groups sent again on request.
        clears_repeated: Idle,
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
        roi_requests: Idle,
        /// ROBs asked for their data.
        robs,
        /// Bytes of detector data, without headers, that steering looked at.
        payload_bytes,
        /// Bytes of RoI data received.
        roi_bytes,
        /// Requests repeated.
        reasks: Idle,
        /// Requests that were given up: the step ran with data missing.
        incomplete,
        /// Replies that nobody waited for any more.
        late_replies: Idle,
    }
}

counters! {
    /// TRG: `rejected = dispatched + pending` and `rois = rois_answered + rois_dropped + rois_open`.
    TrgCounters {
        /// Triggers that it has passed on to the read-out systems of its crate.
        triggers,
        /// Events that it has passed on to the EBIF for their builder.
        accepted,
        /// Events that it was told to clear.
        rejected,
        /// Of these, events that it has told its crate to clear.
        dispatched,
        /// In the next group for its crate.
        pending: Held,
        /// Groups of clears for its crate, empty ones with them.
        groups: Idle,
        /// Requests for RoI data.
        rois: Idle,
        /// Of these, answered.
        rois_answered: Idle,
        /// Dropped: the application that asked is gone.
        rois_dropped: Idle,
        /// Its read-out systems have still to answer.
        rois_open: Held,
        /// Requests that were answered with what had come, at the time-out.
        timeouts: Idle,
        /// Replies of its read-out systems that nothing waited for any more.
        replies_late: Idle,
        /// Clear groups that were missing and asked for.
        clears_asked: Idle,
        /// Clear groups whose number or oldest valid event went beyond what was known, and that no other group confirmed.
        clears_refused: Idle,
    }
}

counters! {
    /// EBIF: `requests + orders = answered + pushed + dropped + in_hand`.
    EbifCounters {
        /// Events that builders asked for, each time.
        requests: Idle,
        /// Events that it was told to push.
        orders: Idle,
        /// Requests that were answered.
        answered: Idle,
        /// Events that were pushed.
        pushed: Idle,
        /// Dropped: a fragment of an event to be pushed may still come. Its builder was told, and asks.
        dropped_incomplete: Idle,
        /// Dropped: too many events to be pushed waited for this builder.
        dropped_full: Idle,
        /// Dropped: the builder has asked for what was to be pushed.
        dropped_withdrawn: Idle,
        /// Dropped: the builder is gone.
        dropped_peer: Idle,
        /// Dropped at the end of the run, when all builders had ended.
        dropped_end: Idle,
        /// Being collected, or waiting for the credit of its builder.
        in_hand: Held,
        /// Orders for what was in hand.
        repeated: Idle,
        /// Bytes of fragments that were sent.
        bytes_out: Idle,
        /// ROBs answered as lost.
        lost_robs: Idle,
        /// Events that were answered with what had come, at the time-out.
        timeouts: Idle,
        /// Replies of its read-out systems that nothing waited for any more.
        replies_late: Idle,
        /// Events that were shown to those who watch the run.
        samples: Idle,
        /// Events that were to be shown and were not: nobody had asked for more, they were too large, or cleared before.
        samples_lost: Idle,
    }
}

counters! {
    /// ROS and pROS, summed over their ROBs: `in = cleared + dropped + garbage_collected + never_triggered + resident`.
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
        /// Dropped: the event was cleared before its fragment came, or, of a link that pushes, answered without it.
        dropped_cleared,
        /// Dropped: no page was free.
        dropped_full,
        /// Removed below the oldest valid event to make room.
        garbage_collected,
        /// In the buffers now.
        resident: Held,
        /// Requests for RoI data.
        roi_requests: Idle,
        /// Requests for whole events.
        event_requests: Idle,
        /// Events pushed.
        pushed: Idle,
        /// Bytes sent in replies, asked for or not.
        bytes_out: Idle,
        /// Requests that waited for their data until the time-out.
        timeouts: Idle,
        /// ROBs answered as lost.
        lost_robs: Idle,
        /// Clear groups that were missing and asked for.
        clears_asked: Idle,
        /// Clear groups whose number or oldest valid event went beyond what was known, and that no other group confirmed.
        clears_refused: Idle,
        /// Fragments with an error bit in their status.
        flagged,
        /// Triggers that level 1 had issued with the last one that came: each says how many there were before it.
        triggers: Most,
        /// Dropped: the number was too far from all others to be one.
        dropped_unplaced,
        /// Fragments that a source has sent of events that were never issued, and that were removed.
        never_triggered,
        /// Chunks that came when an event that they meet had been made without them; they are in later ones.
        late_in_part,
        /// Events that were made before a source had passed them, whose data belong to events by time or count.
        unpassed,
        /// Events times links without a fragment when they were answered or cleared. It may have come later, and is then dropped.
        absent,
        /// Fragments that sources say to have sent.
        announced,
        /// How often a source was lost.
        sources_lost: Idle,
        /// Frames that the counter of a device has counted, and that did not come in time.
        frames_missing: Idle,
        /// Frames of devices that came twice, or too late.
        frames_repeated: Idle,
        /// Frames that are not as described.
        frames_malformed: Idle,
        /// Datagrams of others than the device.
        frames_foreign: Idle,
        /// Events that were shown to those who watch the run.
        samples: Idle,
        /// Events that were to be shown and were not: nobody had asked for more, they were too large, or cleared before.
        samples_lost: Idle,
        /// Datagrams or bytes of devices that came when there was no run.
        frames_outside: Idle,
        /// Datagrams of devices that the kernel dropped, since nobody had room for them.
        frames_unread: Idle,
        /// Fragments with a wrong checksum.
        damaged_checksum: Idle,
        /// Fragments with a transmission error in their data.
        damaged_data: Idle,
        /// Fragments of an S-LINK with an error in a control word.
        damaged_control: Idle,
        /// Fragments of an S-LINK without a begin.
        damaged_begin: Idle,
        /// Fragments of an S-LINK without an end.
        damaged_end: Idle,
        /// Fragments that were cut.
        damaged_cut: Idle,
    }
}

counters! {
    /// DFM. Per L2SV: rejected, accepted, forced. Per SFI: events granted complete, incomplete, and finished.
    DfmCounters {
        /// Events that the DFM triggered itself.
        self_triggered: Told(self_triggered),
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
        reassigned: Idle,
        /// Ends of event of a void attempt.
        revoked: Idle,
        /// Finished reports for events that were finished already.
        finished_twice,
        /// Tables of destinations published.
        destinations: Idle,
        /// Clear groups sent.
        clear_groups: Idle,
        /// Clear groups sent again on request.
        clears_repeated: Idle,
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
        assigned: Idle,
        /// Built with all data and granted.
        built_complete,
        /// Built with data missing and granted.
        built_incomplete,
        /// Events dropped because another SFI has them.
        revoked: Idle,
        /// Of these, events for which there was no room: the DFM has assigned more than it may, and does so elsewhere in time.
        beyond_room: Idle,
        /// Requests sent.
        requests: Idle,
        /// Of these, requests repeated after a time-out.
        reasks: Idle,
        /// Replies that nobody waited for any more.
        late_replies: Idle,
        /// Events times sources whose data came unasked and were used.
        pushed: Idle,
        /// Of these, data that came before their event was assigned.
        pushed_ahead: Idle,
        /// Data that came unasked and were not used: too late, too much, or for another builder.
        pushed_dropped: Idle,
        /// Events times sources that were asked because their data had not come in time, or not whole.
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
        /// Events that were shown to those who watch the run.
        samples: Idle,
        /// Events that were to be shown and were not: nobody had asked for more, or they were too large.
        samples_lost: Idle,
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
        /// Of these, events without the data of a source, which were not decided on for that.
        dropped_incomplete,
        /// Accepted.
        accepted,
        /// Of these, events of which only windows are kept.
        windowed,
        /// Chunks of these events that are kept, when they are accepted.
        kept_chunks,
        /// Chunks of these events that are left out.
        left_chunks,
        /// Fragments of these events that are left out as a whole.
        left_fragments,
        /// Bytes of these events that are left out.
        left_bytes,
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
        /// Of these, events without the data of a source that were not decided on for that.
        debug_incomplete,
        /// Given up undecided.
        abandoned,
        /// Accepted or debug events that an SFO has acknowledged.
        recorded,
        /// Of these, events that had been recorded before.
        recorded_before,
        /// Accepted or debug events given up unrecorded.
        unrecorded,
        /// Events that were shown to those who watch the run.
        samples: Idle,
        /// Events that were to be shown and were not: nobody had asked for more, or they were too large.
        samples_lost: Idle,
    }
}

counters! {
    /// SFO.
    SfoCounters {
        /// Requests to record.
        received,
        /// Distinct events written.
        recorded: Told(taken_over),
        /// Copies of them.
        copies: Told(taken_over_copies),
        /// Requests for events recorded before.
        duplicates,
        /// Requests for events that cannot be put into a file.
        refused,
        /// Requests given up.
        abandoned,
        /// Bytes of these copies.
        bytes: Told(taken_over_bytes),
        /// Attempts to write that failed.
        failures: Idle,
        /// Events found in the files of former lives.
        taken_over: Told(taken_over),
        /// Copies of these.
        taken_over_copies: Told(taken_over_copies),
        /// Bytes of these copies.
        taken_over_bytes: Told(taken_over_bytes),
        /// Events written that are in no good file: it could not be closed, others have changed it, or a sync has failed for good. Former lives count.
        unfinished: Held,
        /// Copies of these.
        unfinished_copies: Held,
        /// Bytes of these copies.
        unfinished_bytes: Held,
    }
}

impl SfoCounters {
    /// Without what is in no good file: events, copies and bytes recorded.
    #[must_use]
    pub fn in_files(self) -> Self {
        Self {
            recorded: self.recorded.saturating_sub(self.unfinished),
            copies: self.copies.saturating_sub(self.unfinished_copies),
            bytes: self.bytes.saturating_sub(self.unfinished_bytes),
            ..self
        }
    }
}
