//! The connection with a source, whatever carries it.

use base::time::Time;
use transport::page_pool::Pool;
use transport::poller::Poller;

use super::device::{Delivery, DeviceLine};
use super::shared::SharedLine;
use super::stream::StreamLine;
use super::{Arrival, IntakeCounters, LinkOrder};
use crate::greeting::refusal;
use crate::kind::Kind;
use crate::record::RecordHead;
use crate::socket::Lost;

pub(super) enum Line {
    Stream(Box<StreamLine>),
    Shared(Box<SharedLine>),
    Device(Box<DeviceLine>),
}

impl Line {
    pub(super) fn poll(
        &mut self,
        now: Time,
        poller: &mut Poller,
        room: usize,
        pool: &Pool,
        counters: &mut IntakeCounters,
        deliver: &mut dyn FnMut(Arrival),
    ) -> Result<bool, Lost> {
        match self {
            Self::Stream(line) => line.poll(room, pool, counters, deliver),
            Self::Shared(line) => line.poll(room, pool, counters, deliver),
            Self::Device(line) => line.poll(now, poller, room, pool, &mut Delivery { counters, to: deliver }),
        }
    }

    pub(super) fn is_ready(&self, now: Time, room: usize, pool: &Pool) -> bool {
        match self {
            Self::Stream(line) => line.is_ready(room, pool),
            Self::Shared(line) => line.is_ready(room, pool),
            Self::Device(line) => line.is_ready(now, room, pool),
        }
    }

    pub(super) fn next_deadline(&self, room: usize) -> Option<Time> {
        match self {
            Self::Stream(_) | Self::Shared(_) => None,
            Self::Device(line) => line.next_deadline(room),
        }
    }

    /// Whether the source is gone and some of what it has sent is not delivered.
    pub(super) fn is_ending(&self) -> bool {
        match self {
            Self::Stream(_) | Self::Device(_) => false,
            Self::Shared(line) => line.is_ending(),
        }
    }

    /// Whether what the source has sent waits for room here: it need not be able to say more.
    pub(super) fn is_held(&self) -> bool {
        match self {
            Self::Stream(line) => line.is_held(),
            Self::Shared(line) => line.is_held(),
            Self::Device(_) => false,
        }
    }

    /// Whether the source has said that it waits for a run. A device that knows nothing of Weir always does.
    pub(super) fn is_configured(&self) -> bool {
        match self {
            Self::Stream(line) => line.book.is_configured,
            Self::Shared(line) => line.book.is_configured,
            Self::Device(_) => true,
        }
    }

    /// Asks the source whether it lives.
    pub(super) fn ask(&mut self) {
        self.say(&RecordHead::plain(Kind::Ask, 0).encode());
    }

    pub(super) fn order(&mut self, order: LinkOrder) {
        match (&mut *self, order) {
            (Self::Stream(line), LinkOrder::Start { run }) => line.book.start(run),
            (Self::Shared(line), LinkOrder::Start { run }) => line.book.start(run),
            (Self::Stream(_) | Self::Shared(_), _) => {}
            (Self::Device(line), _) => line.order(order),
        }
        self.say(&order.to_record());
    }

    /// What the source still sends of the run before is dropped.
    pub(super) fn await_run(&mut self, run: u32) {
        match self {
            Self::Stream(line) => line.await_run(run),
            Self::Shared(line) => line.book.await_run(run),
            Self::Device(_) => {}
        }
    }

    /// Tells the source why, if it hears.
    pub(super) fn dismiss(&mut self, reason: Lost) {
        if let Lost::Violated(_) = reason {
            self.say(&refusal(&reason.to_string(), false));
        }
    }

    /// What does not fit into the socket goes with the next poll. A device that knows nothing of Weir is told nothing.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        match self {
            Self::Stream(line) => drop(line.channel.say(bytes)),
            Self::Shared(line) => line.say(bytes),
            Self::Device(_) => {}
        }
    }
}
