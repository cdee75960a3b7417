//! The read-out buffer of one link.

use crate::readout::fragment::FragmentHead;
use crate::report::RosCounters;
use base::bulk::Bulk;
use base::event_manager::{EventManager, InsertError};
use base::ids::EventId;

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
    counters: RosCounters,
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
            counters: RosCounters::default(),
        }
    }

    /// The source identifier of its link.
    pub fn source_id(&self) -> u32 {
        self.source_id
    }

    /// Pages with a fragment.
    pub fn used(&self) -> usize {
        self.fragments.len()
    }

    /// Pages without a fragment.
    pub fn free(&self) -> usize {
        self.fragments.free()
    }

    /// The newest event whose fragment has come, or would have.
    pub fn newest(&self) -> Option<EventId> {
        self.newest
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
    pub fn insert(&mut self, head: FragmentHead, bulk: Bulk, refusal: Option<Refusal>) {
        self.counters.fragments_in += 1;
        self.counters.bytes_in += u64::from(head.len_bytes);
        self.counters.flagged += u64::from(head.status != 0);
        if let Some(refusal) = refusal {
            return self.refuse(head.event, refusal);
        }
        self.newest = self.newest.max(Some(head.event));
        match self.fragments.insert(head.event, bulk) {
            Ok(()) => {}
            Err(InsertError::Duplicate(_)) => self.counters.dropped_duplicate += 1,
            Err(InsertError::Full(_)) => self.counters.dropped_full += 1,
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

    /// The whole ROB fragment of an event.
    pub fn find(&self, event: EventId) -> Option<&Bulk> {
        self.fragments.find(event)
    }

    /// Whether the fragment of an event is here.
    pub fn contains(&self, event: EventId) -> bool {
        self.fragments.contains(event)
    }

    /// Whether fragments come in the order of their events.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Forgets an event.
    pub fn clear(&mut self, event: EventId) {
        self.counters.cleared += u64::from(self.fragments.remove(event).is_some());
    }

    /// Forgets an event that was triggered, and counts it if its fragment has not come.
    pub fn clear_triggered(&mut self, event: EventId) {
        let found = self.fragments.remove(event).is_some();
        self.counters.cleared += u64::from(found);
        self.counters.absent += u64::from(!found);
    }

    /// Removes every fragment below `oldest_valid`, the last resort for room; how many there were of events that were issued.
    pub fn collect_garbage(&mut self, oldest_valid: EventId, was_issued: impl Fn(EventId) -> bool) -> u64 {
        let mut collected = 0;
        let all = self.fragments.remove_older_than(oldest_valid, |event, _| collected += u64::from(was_issued(event)));
        self.counters.garbage_collected += collected;
        self.counters.never_triggered += all as u64 - collected;
        collected
    }

    /// The counters of this buffer; those of requests are the ROS's.
    pub fn counters(&self) -> RosCounters {
        RosCounters { resident: self.fragments.len() as u64, ..self.counters }
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
    }
}
