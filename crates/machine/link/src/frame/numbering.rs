//! From frames to fragments: numbered, timed, in order.

use base::losses::Losses;
use base::time::Time;
use timing::unwrap::Unwrap;
use transport::page_pool::Page;

use super::format::{BadFrame, FrameFormat};
use super::sorter::Sorter;
use crate::record::{Flags, Head};
use crate::slink::Faults;

/// Makes fragments of the frames of one device.
pub(crate) struct Numbering {
    format: FrameFormat,
    headroom: usize,
    counter: Unwrap,
    clock: Unwrap,
    /// Of a frame without a counter.
    next: u64,
    sorter: Sorter<Ready>,
    /// In order since the start of the run.
    received: u64,
    /// Missing in former runs.
    missed_before: u64,
    repeated: u64,
    malformed: u64,
}

/// A fragment.
pub(crate) struct Ready {
    pub(crate) head: Head,
    pub(crate) page: Page,
    pub(crate) len: usize,
    pub(crate) faults: Faults,
}

/// What whoever has brought a frame has seen of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) flags: Flags,
    pub(crate) faults: Faults,
}

impl Numbering {
    pub(crate) fn new(format: FrameFormat, headroom: usize) -> Self {
        let clock = format.time.first().and_then(|ticks| ticks.field.values());
        let clock = Unwrap::of_period(clock, clock.map_or(0, |period| period / 2));
        let counter = format.counter.map_or(Unwrap::of_period(None, 0), |counter| counter.follow());
        Self {
            format,
            headroom,
            counter,
            clock,
            next: 0,
            sorter: Sorter::new(),
            received: 0,
            missed_before: 0,
            repeated: 0,
            malformed: 0,
        }
    }

    pub(crate) fn format(&self) -> &FrameFormat {
        &self.format
    }

    /// A run begins, or is over. How many fragments were held back.
    pub(crate) fn restart(&mut self) -> u64 {
        self.missed_before += self.sorter.missing();
        self.counter.restart();
        self.clock.restart();
        (self.next, self.received) = (0, 0);
        self.sorter.restart() as u64
    }

    /// Takes a whole frame with a page for it; the payload is no longer than the page holds.
    pub(crate) fn take(&mut self, now: Time, frame: &[u8], marks: Marks, mut page: Page) -> Result<(), BadFrame> {
        let taken = self.head_of(frame).and_then(|head| Ok((head, self.format.payload(frame)?)));
        let (mut head, payload) = taken.inspect_err(|_| self.malformed += 1)?;
        head.flags |= marks.flags;
        page.bytes_mut()[self.headroom..self.headroom + payload.len()].copy_from_slice(payload);
        let number = head.number.unwrap_or_default();
        if !self.sorter.push(now, number, Ready { head, page, len: payload.len(), faults: marks.faults }) {
            self.repeated += 1;
        }
        Ok(())
    }

    /// What cannot be taken apart.
    pub(crate) fn note_malformed(&mut self) {
        self.malformed += 1;
    }

    /// The next fragment in order; with `all`, none is expected before it any more.
    pub(crate) fn pop(&mut self, now: Time, all: bool) -> Option<Ready> {
        let (_, ready) = self.sorter.pop(now, all)?;
        self.received += 1;
        Some(ready)
    }

    /// Whether there is something to [`pop`](Self::pop).
    pub(crate) fn is_ready(&self, now: Time) -> bool {
        self.sorter.is_ready(now)
    }

    /// Whether something waits for what is missing before it.
    pub(crate) fn holds_some(&self) -> bool {
        self.sorter.next_deadline().is_some()
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.sorter.next_deadline()
    }

    /// Fragments of this run that the device has sent, as far as it has counted them, and those that came.
    pub(crate) fn sent_and_received(&self) -> (u64, u64) {
        (self.received + self.sorter.missing(), self.received)
    }

    /// What was lost so far.
    pub(crate) fn losses(&self) -> Losses {
        Losses {
            missing: self.missed_before + self.sorter.missing(),
            repeated: self.repeated,
            malformed: self.malformed,
            ..Losses::default()
        }
    }

    fn head_of(&mut self, frame: &[u8]) -> Result<Head, BadFrame> {
        let short = BadFrame::Short { len: frame.len(), header: self.format.reach() };
        let number = match self.format.counter {
            Some(counter) => {
                let found = counter.field.read(frame).ok_or(short)?;
                self.counter
                    .whole_within(found, FAR)
                    .filter(|number| *number < u64::MAX)
                    .ok_or(BadFrame::Counter { found })?
            }
            None => self.next,
        };
        let mut time = None;
        for (place, ticks) in self.format.time.iter().enumerate() {
            let found = ticks.field.read(frame).ok_or(short)?;
            let count = if place == 0 { self.clock.whole(found) } else { found };
            time = Some(time.unwrap_or(0_u64).saturating_add(ticks.to_ns(count)));
        }
        self.next = number.saturating_add(1);
        let flags = Flags::NUMBER | if time.is_some() { Flags::TIME } else { Flags::empty() };
        Ok(Head { number: Some(number), time: time.map(|time| (time, time)), trigger_type: 0, flags })
    }
}

/// Between two frames no device counts so many; what the buffers place is no further away, either.
const FAR: u64 = 1 << 30;
