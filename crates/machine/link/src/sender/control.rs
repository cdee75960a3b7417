//! What the read-out system says.

use rustix::fd::OwnedFd;

use super::{Order, Orders};
use crate::error::Violation;
use crate::greeting::text;
use crate::inbox::Inbox;
use crate::kind::Kind;
use crate::record::TEXT_BYTES_MAX;
use crate::socket::{Lost, read};

/// What was said and not obeyed yet.
pub(super) struct Told {
    inbox: Inbox,
    orders: Orders,
    is_off: bool,
    /// Whether each fragment waits for an XON of its own.
    is_single: bool,
    is_asked: bool,
    /// Why the link ended, if the other end said so.
    refusal: Option<String>,
}

impl Told {
    pub(super) fn new(inbox: Inbox) -> Self {
        Self { inbox, orders: Orders::new(), is_off: false, is_single: false, is_asked: false, refusal: None }
    }

    pub(super) fn is_off(&self) -> bool {
        self.is_off
    }

    /// A fragment goes out. Where they go one by one, that turns the link off.
    pub(super) fn sends(&mut self) {
        self.is_off |= self.is_single;
    }

    pub(super) fn has_order(&self) -> bool {
        !self.orders.is_empty() || !self.inbox.unread().is_empty()
    }

    /// Whether the other end has asked since the last time whether we live.
    pub(super) fn was_asked(&mut self) -> bool {
        std::mem::take(&mut self.is_asked)
    }

    /// A start stays where it is while the source is stopping.
    pub(super) fn next_order(&mut self, is_stopping: bool) -> Option<Order> {
        self.orders.pop_front_if(|order| !(is_stopping && matches!(order, Order::Start { .. })))
    }

    /// Why the link ended, if the other end said so.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Reads all that has come.
    pub(super) fn read(&mut self, socket: &OwnedFd) -> Result<(), Lost> {
        loop {
            self.understand()?;
            let Some(len) = read(socket, self.inbox.room())? else { return Ok(()) };
            self.inbox.filled(len);
        }
    }

    fn understand(&mut self) -> Result<(), Violation> {
        while let Some((head, body)) = self.inbox.record(TEXT_BYTES_MAX)? {
            match head.kind {
                Kind::Start => self.orders.push_back(Order::Start { run: head.run }),
                Kind::Stop => self.orders.push_back(Order::Stop),
                Kind::Xoff => self.is_off = true,
                Kind::Xon => self.is_off = false,
                Kind::Ask => self.is_asked = true,
                Kind::Single => self.is_single = true,
                Kind::Refused => self.refusal = Some(text(Kind::Refused, body)?),
                kind => return Err(Violation::OutOfTurn { kind }),
            }
            if self.orders.len() > ORDERS_MAX {
                return Err(Violation::OutOfTurn { kind: head.kind });
            }
        }
        Ok(())
    }
}

/// More than a source can have missed of runs that it took part in.
const ORDERS_MAX: usize = 1024;
