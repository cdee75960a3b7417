//! The read-out buffer of one link.

use crate::readout::event_manager::{EventManager, InsertError};
use crate::readout::fragment::FragmentHead;
use crate::report::RosCounters;
use base::bulk::Bulk;
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
    counters: RosCounters,
}

/// Why a fragment is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is older than the oldest valid event.
    Old,
    /// Its event was cleared.
    Cleared,
}

impl Rob {
    /// An empty buffer of `pages` fragments.
    pub fn new(source_id: u32, pages: usize, ordered: bool) -> Self {
        Self { source_id, fragments: EventManager::new(pages), newest: None, ordered, counters: RosCounters::default() }
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
        self.ordered && self.newest >= Some(event)
    }

    /// Level 1 has gone past this event in a former life of the application.
    pub fn pass(&mut self, event: EventId) {
        self.newest = self.newest.max(Some(event));
    }

    /// Takes a fragment from the link. It is kept, unless it is refused or there already: then it is dropped and counted.
    pub fn insert(&mut self, head: FragmentHead, bulk: Bulk, refusal: Option<Refusal>) {
        self.counters.fragments_in += 1;
        self.counters.bytes_in += u64::from(head.len_bytes);
        self.counters.flagged += u64::from(head.status != 0);
        self.newest = self.newest.max(Some(head.event));
        match refusal {
            Some(Refusal::Old) => self.counters.dropped_old += 1,
            Some(Refusal::Cleared) => self.counters.dropped_cleared += 1,
            None => match self.fragments.insert(head.event, bulk) {
                Ok(()) => {}
                Err(InsertError::Duplicate(_)) => self.counters.dropped_duplicate += 1,
                Err(InsertError::Full(_)) => self.counters.dropped_full += 1,
            },
        }
    }

    /// The whole ROB fragment of an event.
    pub fn find(&self, event: EventId) -> Option<&Bulk> {
        self.fragments.find(event)
    }

    /// Forgets an event.
    pub fn clear(&mut self, event: EventId) {
        self.counters.cleared += u64::from(self.fragments.remove(event).is_some());
    }

    /// Removes every fragment below `oldest_valid`, the last resort for room; how many.
    pub fn collect_garbage(&mut self, oldest_valid: EventId) -> u64 {
        let before = self.fragments.len();
        self.fragments.remove_older_than(oldest_valid, |_, _| {});
        let collected = (before - self.fragments.len()) as u64;
        self.counters.garbage_collected += collected;
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
        let dropped = c.dropped_duplicate + c.dropped_old + c.dropped_cleared + c.dropped_full;
        assert_eq!(
            c.fragments_in,
            c.cleared + dropped + c.garbage_collected + c.resident,
            "every fragment accounted for"
        );
        self.fragments.check();
    }
}
