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
    turn: usize,
}

impl SfiChooser {
    /// A chooser that begins with the first SFI.
    pub fn new(policy: SfiAssignment) -> Self {
        Self { policy, turn: 0 }
    }

    /// One of the SFIs, given how many more events each may get; `None` if none has room.
    pub fn choose(&mut self, room: impl ExactSizeIterator<Item = usize> + Clone) -> Option<usize> {
        let count = room.len();
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
    fn the_least_loaded_is_chosen_and_equals_in_turn() {
        let mut chooser = SfiChooser::new(SfiAssignment::LeastLoaded);
        let mut choose = |room: [usize; 3]| chooser.choose(room.into_iter());
        assert_eq!([choose([3, 5, 4]), choose([3, 4, 4]), choose([4, 4, 4])], [Some(1), Some(2), Some(0)]);
    }
}
