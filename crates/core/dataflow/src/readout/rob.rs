//! The read-out buffer of one link.

use crate::readout::fragment::{FragmentHead, status};
use crate::readout::replies::Parts;
use crate::report::RosCounters;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use base::bulk::Bulk;
use base::event_manager::{EventManager, InsertError};
use base::ids::EventId;
use timing::Interval;
use timing::chunks::{Arrival, Chunks, Freed};

/// The fragments of one read-out link, from the link until they are cleared.
///
/// Every fragment that came in is cleared, dropped with a cause, collected as garbage, or still there:
/// [`Rob::check`] holds the buffer to that.
pub struct Rob {
    source_id: u32,
    /// Whole ROB fragments.
    fragments: EventManager<Bulk>,
    newest: Option<EventId>,
    /// Whether fragments come in the order of their events, so that one passed over will not come.
    ordered: bool,
    /// Nothing below comes any more, in whatever order.
    over_below: EventId,
    /// Nothing comes any more, for now.
    closed: bool,
    /// Where data belong to events by their time: fragments are made of these.
    chunks: Option<Box<Chunks<Chunk>>>,
    /// Events whose builder was answered without the fragment, which may still come.
    without: BTreeSet<EventId>,
    counters: RosCounters,
}

/// Data of an interval of time.
pub(super) struct Chunk {
    bulk: Bulk,
    status: u32,
}

/// Why a fragment is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is older than the oldest valid event.
    Old,
    /// Its event was cleared.
    Cleared,
    /// Its number is too far from all others to be one.
    Unplaced,
    /// It came when the last trigger had been issued, and belongs to none.
    NeverTriggered,
}

impl Rob {
    /// An empty buffer of `pages` fragments.
    pub fn new(source_id: u32, pages: usize, ordered: bool) -> Self {
        Self {
            source_id,
            fragments: EventManager::new(pages),
            newest: None,
            ordered,
            over_below: EventId(0),
            closed: false,
            chunks: None,
            without: BTreeSet::new(),
            counters: RosCounters::default(),
        }
    }

    /// The same for chunks, of which there is one to a page.
    pub(super) fn timed(self, exclusive: bool) -> Self {
        Self { chunks: Some(Box::new(Chunks::new(exclusive))), ..self }
    }

    /// The source identifier of its link.
    pub fn source_id(&self) -> u32 {
        self.source_id
    }

    /// Pages with a fragment.
    pub fn used(&self) -> usize {
        self.fragments.len().max(self.chunks.as_ref().map_or(0, |chunks| chunks.len()))
    }

    /// Pages without a fragment.
    pub fn free(&self) -> usize {
        self.fragments.free()
    }

    /// The newest event whose fragment has come, or would have.
    pub fn newest(&self) -> Option<EventId> {
        self.newest
    }

    /// Whether any fragment has come in this life of the application.
    pub(super) fn has_received(&self) -> bool {
        self.counters.fragments_in > 0
    }

    /// Whether the link has gone past this event: a fragment that is not here will not come.
    pub fn has_passed(&self, event: EventId) -> bool {
        (self.ordered && self.newest >= Some(event)) || self.closed || event < self.over_below
    }

    /// Level 1 has gone past this event in a former life of the application.
    pub fn pass(&mut self, event: EventId) {
        self.newest = self.newest.max(Some(event));
    }

    /// Nothing older than this event comes any more.
    pub fn pass_below(&mut self, event: EventId) {
        self.over_below = self.over_below.max(event);
    }

    /// Whether nothing comes any more, for now: its source has ended, or is away for long.
    pub fn close(&mut self, closed: bool) {
        self.closed = closed;
    }

    /// Counters that others keep.
    pub(crate) fn counters_mut(&mut self) -> &mut RosCounters {
        &mut self.counters
    }

    /// Takes a fragment from the link. It is kept, unless it is refused or there already: then it is dropped and counted.
    // Inlined: a call would move every fragment.
    #[inline(always)]
    pub fn insert(&mut self, head: FragmentHead, bulk: Bulk, refusal: Option<Refusal>) {
        self.counters.fragments_in += 1;
        self.counters.bytes_in += u64::from(head.len_bytes);
        if head.status != 0 {
            self.count_damage(head.status);
        }
        if let Some(refusal) = refusal {
            return self.refuse(head.event, refusal);
        }
        self.newest = self.newest.max(Some(head.event));
        if let Err(dropped) = self.fragments.insert(head.event, bulk) {
            self.count_dropped(dropped);
        }
    }

    #[cold]
    #[expect(clippy::needless_pass_by_value, reason = "it is let go here, not where every fragment passes")]
    fn count_dropped(&mut self, dropped: InsertError<Bulk>) {
        match dropped {
            InsertError::Duplicate(_) => self.counters.dropped_duplicate += 1,
            InsertError::Full(_) => self.counters.dropped_full += 1,
        }
    }

    /// Once as damaged, and by each cause.
    #[cold]
    fn count_damage(&mut self, status: u32) {
        let c = &mut self.counters;
        c.flagged += 1;
        for (bit, count) in [
            (status::DATA_CORRUPTION, &mut c.damaged_checksum),
            (status::LINK_DATA, &mut c.damaged_data),
            (status::LINK_CONTROL, &mut c.damaged_control),
            (status::NO_BEGIN, &mut c.damaged_begin),
            (status::NO_END, &mut c.damaged_end),
            (status::TRUNCATED, &mut c.damaged_cut),
        ] {
            *count += u64::from(status & bit != 0);
        }
    }

    #[cold]
    fn refuse(&mut self, event: EventId, refusal: Refusal) {
        if refusal != Refusal::Unplaced {
            self.newest = self.newest.max(Some(event));
        }
        *match refusal {
            Refusal::Old => &mut self.counters.dropped_old,
            Refusal::Cleared => &mut self.counters.dropped_cleared,
            Refusal::Unplaced => &mut self.counters.dropped_unplaced,
            Refusal::NeverTriggered => &mut self.counters.never_triggered,
        } += 1;
    }

    /// Takes a chunk. It is kept, unless all its events were made. That makes it late if it lies below `late_below`; else it has none.
    pub(super) fn insert_chunk(
        &mut self,
        interval: Interval,
        status: u32,
        bulk: Bulk,
        is_unplaced: bool,
        late_below: u64,
    ) {
        self.counters.fragments_in += 1;
        self.counters.bytes_in += bulk.len() as u64;
        if status != 0 {
            self.count_damage(status);
        }
        let chunks = self.chunks.as_mut().expect("a timed link");
        if is_unplaced {
            self.counters.dropped_unplaced += 1;
            return;
        }
        match chunks.insert(interval, Chunk { bulk, status }) {
            Arrival::Late if interval.begin >= late_below => self.counters.never_triggered += 1,
            Arrival::Late => self.counters.dropped_old += 1,
            Arrival::PartlyLate if interval.begin < late_below => self.counters.late_in_part += 1,
            Arrival::InTime | Arrival::PartlyLate => {}
        }
    }

    /// The chunks of a timed link.
    pub(super) fn chunks(&self) -> Option<&Chunks<Chunk>> {
        self.chunks.as_deref()
    }

    /// The source has come to this time.
    pub(super) fn pass_time(&mut self, time: u64) {
        self.chunks.iter_mut().for_each(|chunks| chunks.pass(time));
    }

    /// The source is gone, for now at least.
    pub(super) fn lose_source(&mut self) {
        self.chunks.iter_mut().for_each(|chunks| chunks.lose());
    }

    /// Gathers the chunks of an event: how many there are, and what is known to be wrong with them.
    pub(super) fn gather(&mut self, event: EventId, interval: Interval, most: usize, parts: &mut Parts) -> (u32, u32) {
        let (mut count, mut problems) = (0, 0);
        let is_cut = self.chunks.as_mut().expect("a timed link").make(event, interval, most, |_, chunk| {
            parts.add(chunk.bulk.clone());
            problems |= chunk.status;
            count += 1;
        });
        (count, if is_cut { problems | status::TRUNCATED } else { problems })
    }

    /// Keeps what was made of chunks, if there is room.
    pub(super) fn keep(&mut self, event: EventId, fragment: Bulk) {
        if self.fragments.insert(event, fragment).is_err() {
            self.remove(event);
        }
    }

    /// No event reaches back beyond this time any more.
    pub(super) fn advance(&mut self, horizon: u64) {
        let freed = self.chunks.as_mut().map(|chunks| chunks.advance(horizon));
        self.count_freed(freed.unwrap_or_default());
    }

    fn count_freed(&mut self, Freed { used, unused }: Freed) {
        self.counters.cleared += used;
        self.counters.never_triggered += unused;
    }

    /// The whole ROB fragment of an event.
    #[inline]
    pub fn find(&self, event: EventId) -> Option<&Bulk> {
        self.fragments.find(event)
    }

    /// Whether the fragment of an event is here.
    pub fn contains(&self, event: EventId) -> bool {
        self.fragments.contains(event)
    }

    /// Whether the fragment of an event may still come. An ordered link needs no look-up: it has nothing of what it has not gone past.
    pub fn awaits(&self, event: EventId) -> bool {
        !self.has_passed(event) && ((self.ordered && self.chunks.is_none()) || !self.contains(event))
    }

    /// Whether fragments come in the order of their events.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// A builder is answered: with the fragment, if it is here. Data that belong to events by their time are late by themselves.
    pub(super) fn note_answered(&mut self, event: EventId) {
        if self.contains(event) || self.chunks.is_some() {
            self.without.remove(&event);
        } else {
            self.without.insert(event);
        }
    }

    /// Forgets an event.
    pub fn clear(&mut self, event: EventId) {
        self.remove(event);
    }

    /// Whether it was there in time.
    fn remove(&mut self, event: EventId) -> bool {
        let (found, is_late) = (self.fragments.remove(event).is_some(), self.without.remove(&event));
        if self.chunks.is_some() {
            self.clear_chunks(event);
        } else if is_late {
            self.counters.dropped_cleared += u64::from(found);
        } else {
            self.counters.cleared += u64::from(found);
        }
        found && !is_late
    }

    #[cold]
    fn clear_chunks(&mut self, event: EventId) {
        let freed = self.chunks.as_mut().map(|chunks| chunks.clear(event));
        self.count_freed(freed.unwrap_or_default());
    }

    /// Forgets an event that was triggered, and counts it if its fragment has not come, or too late.
    pub fn clear_triggered(&mut self, event: EventId) {
        let found = self.remove(event);
        self.counters.absent += u64::from(!found);
    }

    /// Removes every fragment below `oldest_valid`, the last resort for room; how many there were of events that were issued.
    pub fn collect_garbage(&mut self, oldest_valid: EventId, was_issued: impl Fn(EventId) -> bool) -> u64 {
        let (mut collected, mut late, without) = (0, 0, &self.without);
        let all = self.fragments.remove_older_than(oldest_valid, |event, _| {
            let is_late = without.contains(&event);
            late += u64::from(is_late);
            collected += u64::from(!is_late && was_issued(event));
        });
        self.without = self.without.split_off(&oldest_valid);
        if let Some(chunks) = &mut self.chunks {
            let Freed { used, unused } = chunks.clear_below(oldest_valid);
            self.counters.garbage_collected += used;
            self.counters.never_triggered += unused;
            return used;
        }
        self.counters.garbage_collected += collected;
        self.counters.dropped_cleared += late;
        self.counters.never_triggered += all as u64 - collected - late;
        collected
    }

    /// The counters of this buffer; those of requests are the ROS's.
    pub fn counters(&self) -> RosCounters {
        let resident = self.chunks.as_ref().map_or(self.fragments.len(), |chunks| chunks.len());
        RosCounters { resident: resident as u64, ..self.counters }
    }

    /// Asserts that every fragment is accounted for.
    ///
    /// # Panics
    /// If one is not.
    pub fn check(&self) {
        let c = self.counters();
        let dropped = c.dropped_duplicate + c.dropped_old + c.dropped_cleared + c.dropped_full + c.dropped_unplaced;
        assert_eq!(
            c.fragments_in,
            c.cleared + dropped + c.garbage_collected + c.never_triggered + c.resident,
            "every fragment accounted for"
        );
        self.fragments.check();
        if let Some(chunks) = &self.chunks {
            chunks.check();
            assert_eq!(chunks.events(), self.fragments.len(), "each fragment is made of chunks");
        }
    }
}
