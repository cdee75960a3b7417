//! Devices that know nothing of Weir: what they send is taken, or left.

use base::losses::Losses;
use base::time::Time;
use transport::error::OsError;
use transport::page_pool::{Page, Pool};
use transport::poller::Poller;

use super::phase::Phase;
use super::{Arrival, IntakeCounters, IntakeParameters, LinkOrder};
use crate::error::LinkError;
use crate::frame::{Marks, Numbering};
use crate::socket::Lost;

/// What brings the bytes of a device.
pub(super) trait Carrier {
    /// Whether what comes between runs waits for the next one. Otherwise it belongs to none.
    fn waits(&self) -> bool;

    /// Where the device is, with the real port.
    fn address(&self) -> &str;

    fn register(&mut self, poller: &mut Poller) -> Result<(), OsError>;

    /// Another run begins.
    fn start(&mut self) -> Result<(), Lost>;

    /// Whether a frame, or what is none, is there.
    fn has_some(&self, desk: &Desk) -> bool;

    /// Whether [`fill`](Self::fill) is worth a try.
    fn is_readable(&self) -> bool;

    /// Gets more; false if nothing has come.
    fn fill(&mut self, desk: &mut Desk, poller: &mut Poller) -> Result<bool, Lost>;

    /// Takes the frame that is there, or counts why it is none.
    fn take(&mut self, now: Time, desk: &mut Desk);

    /// Takes away what is there. How much that was.
    fn leave(&mut self) -> u64;

    /// Whether nothing ever follows.
    fn is_at_end(&self) -> bool;

    /// What was lost on the way since the run began, as far as only the end tells.
    fn lost_in_run(&self) -> Losses;

    /// Whether what is missing when a frame comes will not come any more.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Whether the device is there, or why it is not. One of which nobody can say counts as there.
    fn presence(&self) -> Result<(), Lost> {
        Ok(())
    }

    /// Whether [`visit`](Self::visit) has something to do.
    fn has_visitor(&self) -> bool {
        false
    }

    /// Sees who comes and who has gone.
    fn visit(&mut self, _: &mut Desk, _: &mut Poller) {}

    /// Tells a device that hears it whether it may send.
    fn permit(&mut self, _may_send: bool) {}
}

/// The line of a device.
pub(super) struct DeviceLine {
    carrier: Box<dyn Carrier + Send>,
    desk: Desk,
    name: String,
    told: Losses,
    is_up: bool,
    phase: Phase,
    is_off: bool,
    may_send: bool,
}

/// Where frames become fragments.
pub(super) struct Desk {
    pub(super) numbering: Numbering,
    /// Of the longest frame, in bytes.
    pub(super) len_max: usize,
    pub(super) losses: Losses,
    /// What is to be said, for people.
    pub(super) notices: Vec<Arrival>,
    pages: Vec<Page>,
    has_complained: bool,
}

impl DeviceLine {
    pub(super) fn new(parameters: &IntakeParameters, carrier: Box<dyn Carrier + Send>) -> Result<Self, LinkError> {
        let at = || parameters.at.to_string();
        let format = parameters.frames.clone().ok_or_else(|| LinkError::FramesUndescribed { at: at() })?;
        let len_max = format.len_max(parameters.size_max);
        let desk = Desk {
            numbering: Numbering::new(format, parameters.headroom),
            len_max,
            losses: Losses::default(),
            notices: Vec::new(),
            pages: Vec::with_capacity(PAGES_AT_ONCE),
            has_complained: false,
        };
        let (name, told) = (parameters.name.clone(), Losses::default());
        Ok(Self { carrier, desk, name, told, is_up: false, phase: Phase::Outside, is_off: false, may_send: false })
    }

    pub(super) fn register(&mut self, poller: &mut Poller) -> Result<(), LinkError> {
        Ok(self.carrier.register(poller)?)
    }

    pub(super) fn address(&self) -> &str {
        self.carrier.address()
    }

    pub(super) fn order(&mut self, order: LinkOrder) {
        match order {
            LinkOrder::Off => self.is_off = true,
            LinkOrder::On => self.is_off = false,
            LinkOrder::Start { .. } | LinkOrder::Stop => {}
        }
        if self.phase.order(order) {
            self.desk.restart();
            if let Err(lost) = self.carrier.start() {
                self.desk.notices.push(Arrival::Status(lost.to_string()));
            }
        }
        self.permit();
    }

    fn permit(&mut self) {
        let may_send = !self.phase.is_outside() && !self.is_off;
        if core::mem::replace(&mut self.may_send, may_send) != may_send {
            self.carrier.permit(may_send);
        }
    }

    pub(super) fn is_ready(&self, now: Time, room: usize, pool: &Pool) -> bool {
        let desk = &self.desk;
        if self.carrier.presence().is_ok() != self.is_up
            || self.carrier.has_visitor()
            || !desk.notices.is_empty()
            || self.phase.next_deadline().is_some_and(|due| due <= now)
        {
            return true;
        }
        let has_some = self.carrier.is_readable() || self.carrier.has_some(desk);
        if self.phase.is_outside() {
            return has_some && !self.carrier.waits();
        }
        let has_pages = !desk.pages.is_empty() || pool.has_free();
        room > 0 && (desk.numbering.is_ready(now) || self.carrier.is_at_end() || (has_some && has_pages))
    }

    pub(super) fn next_deadline(&self, room: usize) -> Option<Time> {
        let held = self.desk.numbering.next_deadline().filter(|_| room > 0);
        [held, self.phase.next_deadline()].into_iter().flatten().min()
    }

    pub(super) fn poll(
        &mut self,
        now: Time,
        poller: &mut Poller,
        room: usize,
        pool: &Pool,
        deliver: &mut Delivery<'_>,
    ) -> Result<bool, Lost> {
        self.carrier.visit(&mut self.desk, poller);
        self.tell_presence(deliver);
        let came = match self.phase.is_outside() {
            true if self.carrier.waits() => false,
            true => self.leave(poller)?,
            false => self.take(now, poller, room, pool, deliver)?,
        };
        let is_at_end = !self.phase.is_outside() && self.carrier.is_at_end() && !self.desk.numbering.holds_some();
        let is_over = self.phase.is_over(now, came) || is_at_end;
        let ended = is_over.then(|| self.end(now, room, deliver));
        self.desk.notices.drain(..).for_each(&mut *deliver.to);
        let mut losses = self.desk.losses;
        losses += self.desk.numbering.losses();
        if losses != self.told {
            (deliver.to)(Arrival::Lost(losses - self.told));
            self.told = losses;
        }
        ended.into_iter().for_each(&mut *deliver.to);
        self.tell_presence(deliver);
        Ok(came)
    }

    fn tell_presence(&mut self, deliver: &mut Delivery<'_>) {
        let presence = self.carrier.presence();
        match presence {
            Ok(()) if !self.is_up => {
                deliver.counters.connections += 1;
                (deliver.to)(Arrival::Up { name: self.name.clone() });
            }
            Err(reason) if self.is_up => (deliver.to)(Arrival::Down { reason }),
            _ => {}
        }
        self.is_up = presence.is_ok();
    }

    /// Without a run, what comes belongs to nothing.
    fn leave(&mut self, poller: &mut Poller) -> Result<bool, Lost> {
        let mut came = false;
        while self.carrier.has_some(&self.desk) || self.carrier.fill(&mut self.desk, poller)? {
            self.desk.losses.outside += self.carrier.leave();
            came = true;
        }
        Ok(came)
    }

    fn take(
        &mut self,
        now: Time,
        poller: &mut Poller,
        room: usize,
        pool: &Pool,
        deliver: &mut Delivery<'_>,
    ) -> Result<bool, Lost> {
        let (mut left, mut came) = (room, false);
        // What makes no fragments must not hold up everything else, either.
        for _ in 0..room.saturating_mul(STEPS_PER_FRAGMENT) {
            if left == 0 {
                break;
            }
            if let Some(ready) = self.desk.numbering.pop(now, self.carrier.is_at_end() || self.carrier.keeps_order()) {
                left -= 1;
                deliver.numbered(ready);
            } else if self.carrier.has_some(&self.desk) {
                if !self.desk.has_page(pool) {
                    break;
                }
                self.carrier.take(now, &mut self.desk);
                came = true;
            } else if self.carrier.fill(&mut self.desk, poller)? {
                came = true;
            } else {
                break;
            }
        }
        Ok(came)
    }

    /// Nothing is waited for any more. What still does not fit belongs to no run.
    fn end(&mut self, now: Time, room: usize, deliver: &mut Delivery<'_>) -> Arrival {
        let numbering = &mut self.desk.numbering;
        core::iter::from_fn(|| numbering.pop(now, true)).take(room).for_each(|ready| deliver.numbered(ready));
        let (sent, received) = numbering.sent_and_received();
        self.desk.losses.outside += self.desk.numbering.restart();
        self.desk.losses += self.carrier.lost_in_run();
        self.phase = Phase::Outside;
        self.permit();
        Arrival::Ended { sent, received }
    }
}

impl Desk {
    /// Takes a whole frame; why it is none.
    pub(super) fn take(&mut self, now: Time, frame: &[u8]) -> Option<String> {
        self.take_marked(now, frame, Marks::default())
    }

    /// The same of one of which more is known.
    pub(super) fn take_marked(&mut self, now: Time, frame: &[u8], marks: Marks) -> Option<String> {
        let page = self.pages.pop().expect("a page for each frame");
        self.numbering.take(now, frame, marks, page).err().map(|bad| bad.to_string())
    }

    /// Says what is wrong with the first frame of a run that is none.
    pub(super) fn complain(&mut self, text: impl FnOnce() -> String) {
        if !core::mem::replace(&mut self.has_complained, true) {
            self.notices.push(Arrival::Status(text()));
        }
    }

    fn has_page(&mut self, pool: &Pool) -> bool {
        !self.pages.is_empty() || pool.take_some(PAGES_AT_ONCE, &mut self.pages) > 0
    }

    fn restart(&mut self) {
        self.losses.outside += self.numbering.restart();
        self.has_complained = false;
    }
}

/// Whoever is handed what comes.
pub(super) struct Delivery<'a> {
    pub(super) counters: &'a mut IntakeCounters,
    pub(super) to: &'a mut dyn FnMut(Arrival),
}

impl Delivery<'_> {
    fn numbered(&mut self, ready: crate::frame::Ready) {
        (self.to)(self.counters.numbered(ready));
    }
}

const PAGES_AT_ONCE: usize = 16;
/// Reading, taking, delivering.
const STEPS_PER_FRAGMENT: usize = 3;
