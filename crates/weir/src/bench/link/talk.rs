//! What two ends say to each other, whatever lies between them.

use std::time::Duration;

use dataflow::histogram::Histogram;
use dataflow::time::Time;
use transport::clock;

use crate::cli::BenchTalk;

/// One end of a conversation: what it may send, and what came.
pub(super) struct Talk {
    role: Role,
    /// Of the frames under test.
    frame_bytes: usize,
    /// Frames that may be on their way.
    window: u64,
    /// Until when frames are sent; never over at the far end.
    end: Option<Time>,
    sent: u64,
    received: u64,
    /// Frames sent that are known to have come, or that the peer was told of.
    acknowledged: u64,
    asked_at: Time,
    round_trip_ns: Histogram,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Sends frames as long as the window allows.
    Thrower,
    /// Takes them, and says so every quarter of a window.
    Catcher,
    /// Sends a frame, and the next when it is back.
    Asker,
    /// Sends back what came.
    Echo,
}

/// A frame to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    /// Its length in bytes.
    pub(super) len: usize,
    /// What it says: its number, or how many have come.
    pub(super) number: u64,
}

impl Talk {
    /// The end that measures, until `end`.
    pub(super) fn near(talk: BenchTalk, frame_bytes: usize, window: u64, end: Time) -> Self {
        let role = if talk == BenchTalk::OneWay { Role::Thrower } else { Role::Asker };
        Self { end: Some(end), ..Self::new(role, frame_bytes, window) }
    }

    /// The other end.
    pub(super) fn far(talk: BenchTalk, frame_bytes: usize, window: u64) -> Self {
        let role = if talk == BenchTalk::OneWay { Role::Catcher } else { Role::Echo };
        Self::new(role, frame_bytes, window)
    }

    fn new(role: Role, frame_bytes: usize, window: u64) -> Self {
        Self {
            role,
            frame_bytes,
            window,
            end: None,
            sent: 0,
            received: 0,
            acknowledged: 0,
            asked_at: Time::ZERO,
            round_trip_ns: Histogram::default(),
        }
    }

    /// Whether there is something to send.
    pub(super) fn is_due(&self) -> bool {
        match self.role {
            Role::Thrower => self.sent - self.acknowledged < self.window,
            Role::Catcher => self.received - self.acknowledged >= self.window.div_ceil(4),
            Role::Asker => self.sent == self.received,
            Role::Echo => self.sent < self.received,
        }
    }

    /// What to send next, if anything.
    pub(super) fn due(&mut self) -> Option<Outgoing> {
        if !self.is_due() {
            return None;
        }
        if self.role == Role::Catcher {
            self.acknowledged = self.received;
            return Some(Outgoing { len: HEAD_BYTES, number: self.received });
        }
        if self.role == Role::Asker {
            self.asked_at = clock::now();
        }
        self.sent += 1;
        Some(Outgoing { len: self.frame_bytes, number: self.sent - 1 })
    }

    /// A frame has come that says this.
    pub(super) fn take(&mut self, number: u64) {
        match self.role {
            Role::Thrower => self.acknowledged = self.acknowledged.max(number),
            Role::Catcher | Role::Echo => self.received += 1,
            Role::Asker => {
                self.received += 1;
                self.round_trip_ns.record(clock::now().since(self.asked_at).as_nanos() as u64);
            }
        }
    }

    /// Whether it has lasted as long as it should, and something has come; or nothing will.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.end.is_some_and(|end| end <= now && (self.measured().0 > 0 || end + SILENCE_MAX <= now))
    }

    /// When it is to end.
    pub(super) fn end(&self) -> Option<Time> {
        self.end
    }

    /// Frames, or frames there and back, that were seen to have come; the median time there and back.
    pub(super) fn measured(&self) -> (u64, Option<f64>) {
        match self.role {
            Role::Thrower | Role::Catcher => (self.acknowledged, None),
            Role::Asker | Role::Echo => (self.received, Some(self.round_trip_ns.quantile(0.5) as f64)),
        }
    }
}

const SILENCE_MAX: Duration = Duration::from_secs(5);

/// What a frame begins with: its length in four bytes, then its number in eight. The shortest frame.
pub(super) const HEAD_BYTES: usize = 16;

/// The beginning of a frame.
pub(super) fn head(outgoing: Outgoing) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&u32::try_from(outgoing.len).expect("frames are short").to_le_bytes());
    head[4..12].copy_from_slice(&outgoing.number.to_le_bytes());
    head
}

/// Length and number of the frame that begins so, if the beginning is there.
pub(super) fn read_head(bytes: &[u8]) -> Option<Outgoing> {
    let (len, number) = bytes.split_at_checked(4)?;
    let len = u32::from_le_bytes(*len.first_chunk()?) as usize;
    Some(Outgoing { len, number: u64::from_le_bytes(*number.first_chunk()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_filled_and_opened_again() {
        let (mut thrower, mut catcher) =
            (Talk::near(BenchTalk::OneWay, 64, 8, Time::ZERO), Talk::far(BenchTalk::OneWay, 64, 8));
        let mut passed = 0;
        while let Some(frame) = thrower.due() {
            assert_eq!(read_head(&head(frame)), Some(frame));
            catcher.take(frame.number);
            passed += 1;
        }
        assert_eq!(passed, 8);
        let told = catcher.due().unwrap();
        assert_eq!((told, catcher.due()), (Outgoing { len: HEAD_BYTES, number: 8 }, None));
        thrower.take(told.number);
        assert_eq!((thrower.measured().0, thrower.is_due()), (8, true));
    }

    #[test]
    fn what_is_asked_comes_back() {
        let (mut asker, mut echo) =
            (Talk::near(BenchTalk::PingPong, 64, 1, Time::ZERO), Talk::far(BenchTalk::PingPong, 64, 1));
        assert!(echo.due().is_none());
        let asked = asker.due().unwrap();
        assert!(asker.due().is_none());
        echo.take(asked.number);
        assert_eq!(echo.due(), Some(asked));
        asker.take(asked.number);
        assert_eq!(asker.measured().0, 1);
        assert!(asker.is_due());
    }
}
