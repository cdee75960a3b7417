//! What each bare link can do.

use std::io;
use std::time::Duration;

use super::talk::{Outgoing, Talk};

/// One end of a bare link.
pub(super) trait Line {
    /// Sends a frame, now or with the next flush; false if there is no room now.
    fn send(&mut self, frame: Outgoing) -> io::Result<bool>;

    /// Hands over what was sent, as far as there is room.
    fn flush(&mut self) -> io::Result<()>;

    /// Whether something of it has found no room.
    fn has_waiting(&self) -> bool {
        false
    }

    /// Takes in what is there, in a bounded piece; whether there was something.
    fn receive(&mut self, talk: &mut Talk) -> io::Result<bool>;

    /// Sleeps until something comes, or until it is time to look again.
    fn sleep(&mut self) -> io::Result<()>;
}

/// Nothing is lost here; if it were, the measurement would end late rather than never.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(50);
