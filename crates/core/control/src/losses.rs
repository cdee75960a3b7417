//! Accepted events that were lost, or handled with less than all data, by cause. They make the end of a run
//! `degraded` (DESIGN §7).

use crate::accounting::Accounting;

/// Why an event is lost, incomplete, or decided without all its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Died before level 2 had decided.
    Level2Lost,
    /// Accepted by a level-2 time-out, not by a decision.
    Level2Forced,
    /// Accepted by level 2 without all the data that it had asked for.
    Level2Incomplete,
    /// Not built, though accepted.
    NotBuilt,
    /// Built with data missing, whatever the event filter made of it: an event that it rejects counts here like one that it accepts.
    /// Level 2 passes on events that it would reject on a part of its data. The event filter decides behind it, on data that are asked
    /// for again. Behind the event filter nobody decides: its algorithm is told which ROBs are missing, and may accept for that.
    BuiltIncomplete,
    /// Died before the event filter had decided.
    LostAfterBuild,
    /// In the debug stream, because the event filter failed on it.
    FilterDebug,
    /// Accepted by the event filter and not recorded.
    LostInRecording,
}

/// Events that one cause has struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Why.
    pub cause: Cause,
    /// How many.
    pub events: u64,
    /// Of how many that came so far.
    pub of: u64,
}

impl Cause {
    /// All of them, in the order in which events move.
    pub const ALL: [Self; 8] = [
        Self::Level2Lost,
        Self::Level2Forced,
        Self::Level2Incomplete,
        Self::NotBuilt,
        Self::BuiltIncomplete,
        Self::LostAfterBuild,
        Self::FilterDebug,
        Self::LostInRecording,
    ];

    /// Its key in summaries and configurations: that of the account.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Level2Lost => "level2_lost",
            Self::Level2Forced => "level2_forced",
            Self::Level2Incomplete => "level2_incomplete",
            Self::NotBuilt => "not_built",
            Self::BuiltIncomplete => "built_incomplete",
            Self::LostAfterBuild => "lost_after_build",
            Self::FilterDebug => "filter_debug",
            Self::LostInRecording => "lost_in_recording",
        }
    }

    /// In words, behind a number of events.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Level2Lost => "lost before level 2 decided",
            Self::Level2Forced => "accepted by a level-2 time-out",
            Self::Level2Incomplete => "accepted by level 2 without all its data",
            Self::NotBuilt => "accepted and not built",
            Self::BuiltIncomplete => "built incomplete",
            Self::LostAfterBuild => "lost between building and event filter",
            Self::FilterDebug => "in the debug stream, as the event filter failed on them",
            Self::LostInRecording => "accepted and not recorded",
        }
    }
}

impl Accounting {
    /// What every cause has struck, in the order in which events move; causes that struck nothing are left out.
    pub fn losses(&self) -> impl Iterator<Item = Loss> + '_ {
        Cause::ALL.into_iter().map(|cause| self.loss(cause)).filter(|loss| loss.events > 0)
    }

    fn loss(&self, cause: Cause) -> Loss {
        let built = self.built_complete.saturating_add(self.built_incomplete);
        let (events, of) = match cause {
            Cause::Level2Lost => (self.level2_lost, self.level1),
            Cause::Level2Forced => (self.level2_forced, self.level1),
            Cause::Level2Incomplete => (self.level2_incomplete, self.level1),
            Cause::NotBuilt => (self.not_built, self.level2_accepted),
            Cause::BuiltIncomplete => (self.built_incomplete, built),
            Cause::LostAfterBuild => (self.lost_after_build, built),
            Cause::FilterDebug => (self.filter_debug, built),
            Cause::LostInRecording => (self.lost_in_recording, self.filter_accepted.saturating_add(self.filter_debug)),
        };
        Loss { cause, events, of }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn each_loss_is_a_part_of_what_came_so_far() {
        let account = Accounting {
            level1: 100,
            level2_rejected: 40,
            level2_accepted: 58,
            level2_forced: 3,
            level2_incomplete: 9,
            level2_lost: 2,
            built_complete: 45,
            built_incomplete: 5,
            not_built: 8,
            lost_after_build: 6,
            filter_rejected: 20,
            filter_accepted: 20,
            filter_debug: 4,
            lost_in_recording: 1,
            recorded: 23,
            recorded_copies: 23,
            duplicates: 7,
            ..Accounting::default()
        };
        let losses: Vec<(&str, u64, u64)> =
            account.losses().map(|loss| (loss.cause.key(), loss.events, loss.of)).collect();
        let expected = [
            ("level2_lost", 2, 100),
            ("level2_forced", 3, 100),
            ("level2_incomplete", 9, 100),
            ("not_built", 8, 58),
            ("built_incomplete", 5, 50),
            ("lost_after_build", 6, 50),
            ("filter_debug", 4, 50),
            ("lost_in_recording", 1, 24),
        ];
        assert_eq!(losses, expected);
    }

    #[test]
    fn what_was_seen_twice_and_taken_once_is_no_loss() {
        let account = Accounting { level1: 10, recorded: 10, duplicates: 3, residual: 2, ..Accounting::default() };
        assert_eq!(account.losses().count(), 0);
    }
}
