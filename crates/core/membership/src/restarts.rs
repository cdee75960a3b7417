//! How often applications are started again when they are lost.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use base::ids::NodeId;
use base::time::Time;

/// Counts restarts, so that what dies again and again ends the run.
pub(crate) struct Restarts {
    most: usize,
    window: Duration,
    recent: BTreeMap<NodeId, VecDeque<Time>>,
}

/// An application that was started again as often as allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was started again {restarts} times within {window:?} (processes.restarts, processes.restart_window)")]
pub(crate) struct TooManyRestarts {
    restarts: usize,
    window: Duration,
}

impl Restarts {
    /// At most so many of an application within a time.
    pub(crate) fn new(most: usize, window: Duration) -> Self {
        Self { most, window, recent: BTreeMap::new() }
    }

    /// An application has died: how long to wait before it is started again. The first restart comes at once, each further
    /// one within the window waits twice as long as the one before.
    pub(crate) fn after_death(&mut self, now: Time, node: NodeId) -> Result<Duration, TooManyRestarts> {
        let recent = self.recent.entry(node).or_default();
        while recent.front().is_some_and(|at| now.since(*at) > self.window) {
            recent.pop_front();
        }
        if recent.len() >= self.most {
            return Err(TooManyRestarts { restarts: self.most, window: self.window });
        }
        let pause = match recent.len() {
            0 => Duration::ZERO,
            before => PAUSE.saturating_mul(1 << (before - 1).min(DOUBLINGS_MAX)),
        };
        recent.push_back(now);
        Ok(pause)
    }
}

/// Before the second restart.
const PAUSE: Duration = Duration::from_millis(100);
const DOUBLINGS_MAX: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn restarts_are_bounded_within_the_window() {
        let mut restarts = Restarts::new(3, Duration::from_secs(60));
        let at = |s| Time::ZERO + Duration::from_secs(s);
        let pauses: Vec<_> = (0..3).map(|s| restarts.after_death(at(s), NodeId(1)).unwrap().as_millis()).collect();
        assert_eq!(pauses, [0, 100, 200]);
        let error = restarts.after_death(at(4), NodeId(1)).unwrap_err();
        let expected = "it was started again 3 times within 60s (processes.restarts, processes.restart_window)";
        assert_eq!(error.to_string(), expected);
        assert_eq!(restarts.after_death(at(4), NodeId(2)), Ok(Duration::ZERO), "each application has its own count");
        assert_eq!(restarts.after_death(at(63), NodeId(1)), Ok(Duration::ZERO), "what is long past does not count");
    }
}
