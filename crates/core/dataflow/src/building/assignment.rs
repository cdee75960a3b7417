//! Which SFI builds the next event.

/// A policy for choosing among SFIs with room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SfiAssignment {
    /// In turn.
    RoundRobin,
    /// The one with the most room.
    LeastLoaded,
}

/// Chooses SFIs.
#[derive(Clone, Debug)]
pub struct SfiChooser {
    policy: SfiAssignment,
    /// Events in a row that one SFI gets while it has room.
    run: usize,
    last: Option<usize>,
    /// How many more of them.
    left: usize,
    turn: usize,
}

impl SfiChooser {
    /// A chooser that begins with the first SFI.
    pub fn new(policy: SfiAssignment) -> Self {
        Self { policy, run: 1, last: None, left: 0, turn: 0 }
    }

    /// The same, but one SFI gets so many events in a row: what travels in groups must have one receiver.
    #[must_use]
    pub fn in_runs_of(self, run: usize) -> Self {
        Self { run: run.max(1), ..self }
    }

    /// One of the SFIs, given how many more events each may get; `None` if none has room.
    pub fn choose(&mut self, room: impl ExactSizeIterator<Item = usize> + Clone) -> Option<usize> {
        let count = room.len();
        if let Some(last) = self.last.filter(|&last| self.left > 0 && room.clone().nth(last) > Some(0)) {
            self.left -= 1;
            return Some(last);
        }
        // The distance from the turn decides among equals, so that equals are served in turn.
        let distance = |index: usize| (index + count - self.turn) % count;
        let with_room = room.enumerate().filter(|(_, room)| *room > 0);
        let chosen = match self.policy {
            SfiAssignment::RoundRobin => with_room.min_by_key(|(index, _)| distance(*index)),
            SfiAssignment::LeastLoaded => {
                with_room.min_by_key(|(index, room)| (core::cmp::Reverse(*room), distance(*index)))
            }
        };
        let (index, _) = chosen?;
        self.turn = (index + 1) % count;
        (self.last, self.left) = (Some(index), self.run - 1);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_passes_over_the_full() {
        let mut chooser = SfiChooser::new(SfiAssignment::RoundRobin);
        let mut choose = |room: [usize; 3]| chooser.choose(room.into_iter());
        assert_eq!([choose([1, 1, 1]), choose([1, 0, 1]), choose([1, 1, 1])], [Some(0), Some(2), Some(0)]);
        assert_eq!(choose([0, 0, 0]), None);
    }

    #[test]
    fn a_run_ends_when_it_is_long_enough_or_there_is_no_room() {
        let mut chooser = SfiChooser::new(SfiAssignment::RoundRobin).in_runs_of(3);
        let mut choose = |room: [usize; 2]| chooser.choose(room.into_iter());
        assert_eq!([(); 4].map(|()| choose([9, 9])), [Some(0), Some(0), Some(0), Some(1)]);
        assert_eq!([choose([9, 0]), choose([9, 9])], [Some(0), Some(0)]);
    }

    #[test]
    fn the_least_loaded_is_chosen_and_equals_in_turn() {
        let mut chooser = SfiChooser::new(SfiAssignment::LeastLoaded);
        let mut choose = |room: [usize; 3]| chooser.choose(room.into_iter());
        assert_eq!([choose([3, 5, 4]), choose([3, 4, 4]), choose([4, 4, 4])], [Some(1), Some(2), Some(0)]);
    }
}
