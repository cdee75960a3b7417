//! What two ends say to each other, whatever lies between them.

use std::time::Duration;

use base::histogram::Histogram;
use base::time::Time;
use transport::clock;

use crate::bench::PATIENCE;
use crate::bench::arguments::BenchTalk;

/// One end of a conversation: what it may send, and what came. The near end says with its last frame that it is the last, and
/// both know when all has come and been acknowledged.
pub(super) struct Talk {
    role: Role,
    /// Of the frames under test.
    frame_bytes: usize,
    /// Frames that may be on their way.
    window: u64,
    /// Until when frames are sent; the far end is told.
    end: Option<Time>,
    is_late: bool,
    /// How many frames there are in all, once the last is known.
    frames: Option<u64>,
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
    /// The end that measures: its last frame goes at `end`.
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
            is_late: false,
            frames: None,
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
            Role::Thrower => self.frames.is_none() && self.sent - self.acknowledged < self.window,
            Role::Catcher => {
                let untold = self.received - self.acknowledged;
                untold >= self.window.div_ceil(4) || (untold > 0 && self.frames == Some(self.received))
            }
            Role::Asker => self.frames.is_none() && self.sent == self.received,
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
        let is_last = if self.role == Role::Echo { self.frames == Some(self.sent) } else { self.is_late };
        let mark = if is_last { LAST } else { 0 };
        self.frames = if is_last { Some(self.sent) } else { self.frames };
        Some(Outgoing { len: self.frame_bytes, number: (self.sent - 1) | mark })
    }

    /// A frame has come that says this.
    pub(super) fn take(&mut self, number: u64) {
        if number & LAST != 0 && matches!(self.role, Role::Catcher | Role::Echo) {
            self.frames = Some((number & !LAST) + 1);
        }
        match self.role {
            Role::Thrower => self.acknowledged = self.acknowledged.max(number),
            Role::Catcher | Role::Echo => self.received += 1,
            Role::Asker => {
                self.received += 1;
                self.round_trip_ns.record(clock::now().since(self.asked_at).as_nanos() as u64);
            }
        }
    }

    /// Whether the last frame has come and is acknowledged; at the near end also if nothing comes any more.
    pub(super) fn is_over(&mut self, now: Time) -> bool {
        self.is_late |= self.end.is_some_and(|end| end <= now);
        self.is_done() || self.end.is_some_and(|end| end + SILENCE_MAX <= now)
    }

    /// Whether the last frame has come and is acknowledged.
    pub(super) fn is_done(&self) -> bool {
        let through = match self.role {
            Role::Thrower | Role::Catcher => self.acknowledged,
            Role::Asker => self.received,
            Role::Echo => self.sent,
        };
        self.frames == Some(through)
    }

    /// When [`is_over`](Self::is_over) has to be called next.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.end.map(|end| if self.is_late { end + SILENCE_MAX } else { end })
    }

    /// Frames, or frames there and back, that were seen to have come; the median time there and back.
    pub(super) fn measured(&self) -> (u64, Option<f64>) {
        match self.role {
            Role::Thrower | Role::Catcher => (self.acknowledged, None),
            Role::Asker | Role::Echo => (self.received, Some(self.round_trip_ns.quantile(0.5) as f64)),
        }
    }
}

const SILENCE_MAX: Duration = PATIENCE;

/// In the number of a frame: it is the last one.
const LAST: u64 = 1 << 63;

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
    fn a_window_is_filled_and_opened_again_until_the_last_is_acknowledged() {
        let end = Time::from_ns(10);
        let (mut thrower, mut catcher) =
            (Talk::near(BenchTalk::OneWay, 64, 8, end), Talk::far(BenchTalk::OneWay, 64, 8));
        assert!(!thrower.is_over(Time::ZERO) && !catcher.is_over(Time::ZERO));
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
        assert!(!thrower.is_over(end));
        catcher.take(thrower.due().unwrap().number);
        assert!(thrower.due().is_none() && !catcher.is_over(end), "there is no frame behind the last");
        thrower.take(catcher.due().unwrap().number);
        assert!(thrower.is_over(end) && catcher.is_over(end));
        assert_eq!(thrower.measured().0, 9);
    }

    #[test]
    fn what_is_asked_comes_back() {
        let end = Time::from_ns(10);
        let (mut asker, mut echo) =
            (Talk::near(BenchTalk::PingPong, 64, 1, end), Talk::far(BenchTalk::PingPong, 64, 1));
        assert!(echo.due().is_none());
        for now in [Time::ZERO, end] {
            assert!(!asker.is_over(now) && !echo.is_over(now));
            let asked = asker.due().unwrap();
            assert!(asker.due().is_none());
            echo.take(asked.number);
            assert_eq!(echo.due(), Some(asked));
            asker.take(asked.number);
        }
        assert_eq!(asker.measured().0, 2);
        assert!(asker.due().is_none() && asker.is_over(end) && echo.is_over(end));
    }

    #[test]
    fn an_end_that_hears_nothing_gives_up() {
        let mut thrower = Talk::near(BenchTalk::OneWay, 64, 8, Time::ZERO);
        assert!(thrower.is_over(Time::ZERO + SILENCE_MAX) && !thrower.is_done());
    }
}
