//! An endpoint with one peer as a link.

use super::{Endpoint, PeerId};
use crate::error::OsError;
use crate::frame::Frame;
use crate::link::{Filled, Flushed, Link, LinkCounters, Lost, SendError};
use crate::poller::Poller;
use dataflow::bulk::Bulk;
use dataflow::time::Time;
use std::net::SocketAddr;

/// An [`Endpoint`] with one peer, as a [`Link`] that neither keeps order nor delivers everything, whose receiver does not
/// hold its sender up, and which never loses its peer: it does not know whether there is one.
#[derive(Debug)]
pub struct UdpLink {
    endpoint: Endpoint,
    peer: PeerId,
}

impl UdpLink {
    /// Links an endpoint that has no peer yet.
    pub fn new(mut endpoint: Endpoint, peer: SocketAddr) -> Self {
        let peer = endpoint.add_peer(peer);
        Self { endpoint, peer }
    }

    /// Lets a scheduler sleep until something happens here.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn register(&mut self, poller: &mut Poller) -> Result<(), OsError> {
        self.endpoint.register(poller)
    }

    /// The endpoint, for what only it knows.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Link for UdpLink {
    fn send(&mut self, head: &[u8], bulk: &Bulk) -> Result<(), SendError> {
        self.endpoint.send(self.peer, head, bulk).map_or(Err(SendError::Full), |_| Ok(()))
    }

    fn flush(&mut self, now: Time) -> Result<Flushed, Lost> {
        Ok(self.endpoint.flush(now))
    }

    fn fill(&mut self, now: Time) -> Result<Filled, Lost> {
        self.endpoint.fill(now).map_err(Lost::Os)
    }

    fn next_frame(&mut self) -> Option<Frame> {
        self.endpoint.next_frame().map(|(_, frame)| frame)
    }

    fn is_receivable(&self, now: Time) -> bool {
        self.endpoint.is_receivable(now)
    }

    fn is_flushable(&self) -> bool {
        self.endpoint.is_flushable()
    }

    fn next_deadline(&self) -> Option<Time> {
        self.endpoint.next_deadline()
    }

    fn counters(&self) -> &LinkCounters {
        self.endpoint.counters()
    }
}
