//! The receiver's side of the window of level 1.

use core::time::Duration;

use crate::component::Outbox;
use crate::message::Message;
use base::ids::NodeId;
use base::time::Time;

/// Counts the triggers that a component has taken and tells level 1 often enough that its window does not run dry.
#[derive(Clone, Debug)]
pub struct TakenCount {
    level1: Option<NodeId>,
    every: u64,
    taken: u64,
    told: u64,
    due: Option<Time>,
}

impl TakenCount {
    /// For a window of `in_flight` triggers; without level 1 nothing is told.
    pub fn new(level1: Option<NodeId>, in_flight: u64) -> Self {
        Self { level1, every: (in_flight / 4).max(1), taken: 0, told: 0, due: None }
    }

    /// Counts triggers that came together.
    pub fn take(&mut self, now: Time, count: usize, out: &mut Outbox) {
        self.taken += count as u64;
        if self.taken - self.told >= self.every {
            self.tell(out);
        } else if self.due.is_none() && self.level1.is_some() {
            self.due = Some(now + TELL_AFTER);
        }
    }

    /// When [`TakenCount::on_deadline`] has something to tell.
    pub fn next_deadline(&self) -> Option<Time> {
        self.due
    }

    /// Tells level 1 what it has not been told, if it is time.
    pub fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        if self.due.is_some_and(|due| due <= now) {
            self.tell(out);
        }
    }

    /// Tells level 1 at once: it may be a new one.
    pub fn tell(&mut self, out: &mut Outbox) {
        self.due = None;
        self.told = self.taken;
        if let Some(level1) = self.level1 {
            out.send(level1, Message::Taken(self.taken));
        }
    }
}

const TELL_AFTER: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::Action;

    const LEVEL1: NodeId = NodeId(1);

    fn told(out: &mut Outbox) -> alloc::vec::Vec<Action> {
        out.drain().collect()
    }

    fn taken(count: u64) -> [Action; 1] {
        [Action::Send { to: LEVEL1, message: Message::Taken(count) }]
    }

    #[test]
    fn a_quarter_of_the_window_is_told_at_once() {
        let (mut count, mut out) = (TakenCount::new(Some(LEVEL1), 16), Outbox::new());
        count.take(Time::ZERO, 3, &mut out);
        assert_eq!(told(&mut out), []);
        count.take(Time::ZERO, 1, &mut out);
        assert_eq!((told(&mut out).as_slice(), count.next_deadline()), (&taken(4)[..], None));
        count.take(Time::ZERO, 3, &mut out);
        assert_eq!(told(&mut out), []);
        count.take(Time::ZERO, 9, &mut out);
        assert_eq!(told(&mut out), taken(16));
    }

    #[test]
    fn what_is_less_than_a_quarter_is_told_in_time_after_the_first() {
        let (mut count, mut out) = (TakenCount::new(Some(LEVEL1), 16), Outbox::new());
        let (first, later) = (Time::from_ns(1_000), Time::from_ns(500_000));
        count.take(first, 1, &mut out);
        count.take(later, 1, &mut out);
        let due = first + TELL_AFTER;
        assert_eq!(count.next_deadline(), Some(due));
        count.on_deadline(later, &mut out);
        assert_eq!(told(&mut out), []);
        count.on_deadline(due, &mut out);
        assert_eq!((told(&mut out).as_slice(), count.next_deadline()), (&taken(2)[..], None));
    }

    #[test]
    fn without_level_1_nothing_is_told_or_due() {
        let (mut count, mut out) = (TakenCount::new(None, 16), Outbox::new());
        (0..20).for_each(|_| count.take(Time::ZERO, 1, &mut out));
        assert_eq!((told(&mut out).as_slice(), count.next_deadline()), (&[][..], None));
    }
}
