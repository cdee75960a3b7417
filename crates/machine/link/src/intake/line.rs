//! The connection with a source, whatever carries it.

use transport::page_pool::Pool;

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
}

impl Line {
    pub(super) fn poll(
        &mut self,
        room: usize,
        pool: &Pool,
        counters: &mut IntakeCounters,
        deliver: &mut dyn FnMut(Arrival),
    ) -> Result<bool, Lost> {
        match self {
            Self::Stream(line) => line.poll(room, pool, counters, deliver),
            Self::Shared(line) => line.poll(room, pool, counters, deliver),
        }
    }

    pub(super) fn is_ready(&self, room: usize, pool: &Pool) -> bool {
        match self {
            Self::Stream(line) => line.is_ready(room, pool),
            Self::Shared(line) => line.is_ready(room, pool),
        }
    }

    /// Whether the source is gone and some of what it has sent is not delivered.
    pub(super) fn is_ending(&self) -> bool {
        match self {
            Self::Stream(_) => false,
            Self::Shared(line) => line.is_ending(),
        }
    }

    /// Whether what the source has sent waits for room here: it need not be able to say more.
    pub(super) fn is_held(&self) -> bool {
        match self {
            Self::Stream(line) => line.is_held(),
            Self::Shared(line) => line.is_held(),
        }
    }

    /// Asks the source whether it lives.
    pub(super) fn ask(&mut self) {
        self.say(&RecordHead::plain(Kind::Ask, 0).encode());
    }

    pub(super) fn order(&mut self, order: LinkOrder) {
        if let LinkOrder::Start { run } = order {
            match self {
                Self::Stream(line) => line.book.start(run),
                Self::Shared(line) => line.book.start(run),
            }
        }
        self.say(&order.to_record());
    }

    /// Tells the source why, if it hears.
    pub(super) fn dismiss(&mut self, reason: Lost) {
        if let Lost::Violated(_) = reason {
            self.say(&refusal(&reason.to_string(), false));
        }
    }

    /// What does not fit into the socket goes with the next poll.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        match self {
            Self::Stream(line) => drop(line.channel.say(bytes)),
            Self::Shared(line) => line.say(bytes),
        }
    }
}
