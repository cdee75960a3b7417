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
