//! What is under way to one peer without an acknowledgement: the window of a sender `[ATM1997 §III]`.
//!
//! All messages that are not acknowledged are [`Kept`], in order. Those below `released_end` are under way, those from it on wait.

use super::header::Acknowledgement;
use super::kept::{Kept, Message};
use super::options::Acknowledged;
use base::time::Time;

/// The most messages under way to one peer. A receiver can tell twice as many apart.
pub(super) const MESSAGES_UNDER_WAY_MAX: u64 = Acknowledged::MESSAGES_MAX as u64;

/// How far one peer is behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendWindow {
    options: Acknowledged,
    released_end: u64,
    under_way_bytes: usize,
    /// When what is under way is sent again; armed by a flush.
    retransmit_at: Option<Time>,
    retransmits: u32,
    /// Whether messages were given up, and nothing was acknowledged since.
    is_silent: bool,
}

/// An acknowledgement that no receiver of ours gives.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotSent;

/// What is to be done about messages that nobody has acknowledged.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// They are sent again, all below this number.
    SendAgain(u64),
    /// So many were given up.
    GivenUp(u64),
}

impl SendWindow {
    pub(super) fn new(options: Acknowledged) -> Self {
        Self { options, released_end: 0, under_way_bytes: 0, retransmit_at: None, retransmits: 0, is_silent: false }
    }

    /// Whether one more message of this length may be under way, if none waits before it.
    pub(super) fn has_room(&self, kept: &Kept, len: usize) -> bool {
        let oldest = kept.oldest().unwrap_or(self.released_end);
        let is_idle = oldest >= self.released_end;
        let fits = self.under_way_bytes.saturating_add(len) <= self.options.window_bytes
            && self.released_end - oldest.min(self.released_end) < MESSAGES_UNDER_WAY_MAX;
        is_idle || fits
    }

    /// The message that may go now, of those that wait.
    pub(super) fn next<'a>(&self, kept: &'a mut Kept) -> Option<&'a mut Message> {
        let len = kept.find(self.released_end)?.len();
        if self.has_room(kept, len) { kept.find(self.released_end) } else { None }
    }

    /// The next message, of this length, is under way.
    pub(super) fn note_released(&mut self, len: usize) {
        self.released_end += 1;
        self.under_way_bytes += len;
    }

    /// All below are under way or done.
    pub(super) fn released_end(&self) -> u64 {
        self.released_end
    }

    /// Messages and bytes that wait for the window.
    pub(super) fn waiting(&self, kept: &Kept) -> (usize, usize) {
        (kept.len() - kept.below(self.released_end).count(), kept.bytes() - self.under_way_bytes)
    }

    /// The peer is waited for from now on, unless it is already.
    pub(super) fn arm(&mut self, now: Time) -> Option<Time> {
        if self.retransmit_at.is_none() && self.under_way_bytes > 0 {
            self.retransmit_at = Some(now + self.options.retransmit_after);
        }
        self.retransmit_at
    }

    /// The peer asks for a part, and is sent it: it is there.
    pub(super) fn note_asked(&mut self, now: Time) {
        if self.retransmit_at.is_some() {
            (self.retransmits, self.retransmit_at) = (0, Some(now + self.options.retransmit_after));
        }
    }

    /// When something is to be done if no acknowledgement comes.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.retransmit_at
    }

    /// Whether messages were given up, and nothing was acknowledged since.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Forgets what has come; whether that is anything new.
    pub(super) fn acknowledge(&mut self, kept: &mut Kept, said: &Acknowledgement, now: Time) -> Result<bool, NotSent> {
        let Acknowledgement { end, beyond, .. } = *said;
        let newest = (beyond != 0).then(|| end.saturating_add(u64::from(u64::BITS - beyond.leading_zeros())));
        if end > self.released_end || newest.is_some_and(|newest| newest >= self.released_end) {
            return Err(NotSent);
        }
        let before = self.under_way_bytes;
        while let Some(oldest) = kept.oldest().filter(|oldest| *oldest < end) {
            self.under_way_bytes -= kept.forget(oldest).expect("it was just seen");
        }
        let mut bits = beyond;
        while bits != 0 {
            let number = end + 1 + u64::from(bits.trailing_zeros());
            self.under_way_bytes -= kept.forget(number).unwrap_or(0);
            bits &= bits - 1;
        }
        let is_news = self.under_way_bytes < before;
        if is_news {
            (self.retransmits, self.is_silent) = (0, false);
            self.retransmit_at = (self.under_way_bytes > 0).then(|| now + self.options.retransmit_after);
        }
        Ok(is_news)
    }

    /// What is to be done now about messages that nobody has acknowledged.
    pub(super) fn expire(&mut self, kept: &mut Kept, now: Time) -> Option<Overdue> {
        if self.retransmit_at.is_none_or(|at| at > now) {
            return None;
        }
        let Acknowledged { retransmit_after, retransmits_max, .. } = self.options;
        if self.retransmits < retransmits_max {
            self.retransmits += 1;
            self.retransmit_at = Some(now + retransmit_after * (1 << self.retransmits.min(BACK_OFF_MAX)));
            return Some(Overdue::SendAgain(self.released_end));
        }
        let count = kept.below(self.released_end).count() as u64;
        kept.forget_below(self.released_end);
        (self.under_way_bytes, self.retransmits, self.retransmit_at) = (0, 0, None);
        self.is_silent = true;
        Some(Overdue::GivenUp(count))
    }
}

/// The longest pause is this power of two times the first.
const BACK_OFF_MAX: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use base::bulk::Bulk;
    use std::time::Duration;

    const AFTER: Duration = Duration::from_nanos(100);

    /// A window of 1000 bytes with so many messages of 300 sent, as far as they may be under way.
    fn sent(messages: u64) -> (SendWindow, Kept) {
        let options = Acknowledged { window_bytes: 1000, retransmit_after: AFTER, retransmits_max: 2 };
        let (mut window, mut kept) = (SendWindow::new(options), Kept::default());
        (0..messages).for_each(|number| kept.push(number, &[0; 300], &Bulk::empty(), usize::MAX, usize::MAX));
        release(&mut window, &mut kept);
        (window, kept)
    }

    fn release(window: &mut SendWindow, kept: &mut Kept) -> u64 {
        while let Some(message) = window.next(kept) {
            let len = message.len();
            window.note_released(len);
        }
        window.released_end
    }

    fn said(end: u64, beyond: u64) -> Acknowledgement {
        Acknowledgement { incarnation: 1, end, beyond, sender: 1, segment_len: 1 }
    }

    fn time(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn acknowledgements_move_the_window() {
        let (mut window, mut kept) = sent(8);
        assert_eq!((window.released_end, window.waiting(&kept)), (3, (5, 1500)));
        assert_eq!(window.acknowledge(&mut kept, &said(1, 0), time(0)), Ok(true));
        assert_eq!(release(&mut window, &mut kept), 4);
        // Message 1 is missing, 2 and 3 have come.
        assert_eq!(window.acknowledge(&mut kept, &said(1, 0b11), time(0)), Ok(true));
        assert_eq!((window.under_way_bytes, kept.oldest()), (300, Some(1)));
        assert_eq!(window.acknowledge(&mut kept, &said(1, 0b11), time(0)), Ok(false));
        assert_eq!(release(&mut window, &mut kept), 6);
        assert_eq!(window.acknowledge(&mut kept, &said(6, 0), time(0)), Ok(true));
        assert_eq!((window.under_way_bytes, window.deadline(), kept.len()), (0, None, 2));
    }

    #[test]
    fn what_was_not_sent_cannot_be_acknowledged() {
        let (mut window, mut kept) = sent(8);
        for lie in
            [said(4, 0), said(u64::MAX, 0), said(u64::MAX, u64::MAX), said(2, 1), said(0, 1 << 63), said(0, 0b100)]
        {
            assert_eq!(window.acknowledge(&mut kept, &lie, time(0)), Err(NotSent), "{lie:?}");
        }
        assert_eq!((window.under_way_bytes, kept.len()), (900, 8));
        assert_eq!(window.acknowledge(&mut kept, &said(3, 0), time(0)), Ok(true));
    }

    #[test]
    fn a_message_longer_than_the_window_goes_alone() {
        let (mut window, mut kept) = sent(1);
        kept.push(1, &[0; 5000], &Bulk::empty(), usize::MAX, usize::MAX);
        assert_eq!(release(&mut window, &mut kept), 1);
        window.acknowledge(&mut kept, &said(1, 0), time(0)).unwrap();
        assert_eq!(release(&mut window, &mut kept), 2);
    }

    #[test]
    fn tries_are_bounded_and_ever_more_patient() {
        let (mut window, mut kept) = sent(4);
        assert_eq!(window.expire(&mut kept, time(1000)), None);
        assert_eq!(window.arm(time(0)), Some(time(100)));
        assert_eq!(window.expire(&mut kept, time(99)), None);
        assert_eq!(window.expire(&mut kept, time(100)), Some(Overdue::SendAgain(3)));
        assert_eq!(window.deadline(), Some(time(300)));
        assert_eq!(window.expire(&mut kept, time(300)), Some(Overdue::SendAgain(3)));
        assert_eq!(window.deadline(), Some(time(700)));
        assert_eq!(window.expire(&mut kept, time(700)), Some(Overdue::GivenUp(3)));
        assert!(window.is_silent() && window.deadline().is_none());
        // What waited goes on its way, and an answer ends the silence.
        assert_eq!(release(&mut window, &mut kept), 4);
        window.acknowledge(&mut kept, &said(4, 0), time(800)).unwrap();
        assert!(!window.is_silent() && kept.len() == 0);
    }

    #[test]
    fn many_small_messages_are_bounded_by_their_number() {
        let options = Acknowledged { window_bytes: usize::MAX, retransmit_after: AFTER, retransmits_max: 2 };
        let (mut window, mut kept) = (SendWindow::new(options), Kept::default());
        (0..1000).for_each(|number| kept.push(number, &[0; 8], &Bulk::empty(), usize::MAX, usize::MAX));
        assert_eq!(release(&mut window, &mut kept), MESSAGES_UNDER_WAY_MAX);
        // Those beyond the first have come: it holds the window up all the same.
        window.acknowledge(&mut kept, &said(0, u64::MAX), time(0)).unwrap();
        assert_eq!(release(&mut window, &mut kept), MESSAGES_UNDER_WAY_MAX);
        window.acknowledge(&mut kept, &said(65, 0), time(0)).unwrap();
        assert_eq!(release(&mut window, &mut kept), MESSAGES_UNDER_WAY_MAX + 65);
    }
}
