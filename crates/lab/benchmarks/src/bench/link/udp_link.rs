//! An endpoint with one peer as a link.

use base::bulk::Bulk;
use base::time::Time;
use std::net::SocketAddr;
use transport::error::OsError;
use transport::frame::Frame;
use transport::link::{Filled, Flushed, Link, LinkCounters, Lost, SendError};
use transport::poller::Poller;
use transport::udp::{Endpoint, PeerId};

/// An [`Endpoint`] with one peer, as a [`Link`] that neither keeps order nor delivers everything, and whose receiver
/// does not hold its sender up. It never loses its peer, as it does not know whether there is one.
///
/// With [acknowledgements](transport::udp::UdpOptions::acknowledged) it keeps order, delivers everything once, and
/// holds its sender up. A peer that is gone is one that acknowledges nothing for long, and nobody tells that it closes.
#[derive(Debug)]
pub(crate) struct UdpLink {
    endpoint: Endpoint,
    peer: PeerId,
    acknowledged: bool,
    /// Whether the peer was silent for too long.
    is_lost: bool,
}

impl UdpLink {
    /// Links an endpoint that has had no peer yet.
    ///
    /// # Panics
    /// If it has removed 65,536.
    pub(crate) fn new(mut endpoint: Endpoint, peer: SocketAddr, acknowledged: bool) -> Self {
        let peer = endpoint.add_peer(peer).expect("an endpoint without a peer before has removed none");
        Self { endpoint, peer, acknowledged, is_lost: false }
    }

    /// Lets a scheduler sleep until something happens here.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn register(&mut self, poller: &mut Poller) -> Result<(), OsError> {
        self.endpoint.register(poller)
    }

    /// Takes acknowledgements in and sends them out at once.
    fn acknowledge(&mut self, now: Time) -> Result<(), Lost> {
        if self.acknowledged {
            self.endpoint.flush(now);
            self.is_lost |= self.endpoint.is_silent(self.peer);
        }
        if self.is_lost { Err(Lost::TimedOut) } else { Ok(()) }
    }
}

impl Link for UdpLink {
    fn send(&mut self, head: &[u8], bulk: &Bulk) -> Result<(), SendError> {
        if self.is_lost {
            return Err(Lost::TimedOut.into());
        }
        self.endpoint.send(self.peer, head, bulk).map_or(Err(SendError::Full), |_| Ok(()))
    }

    fn flush(&mut self, now: Time) -> Result<Flushed, Lost> {
        let flushed = self.endpoint.flush(now);
        if !self.acknowledged {
            return Ok(flushed);
        }
        self.endpoint.fill(now).map_err(Lost::Os)?;
        self.acknowledge(now)?;
        Ok(self.endpoint.flush(now))
    }

    fn fill(&mut self, now: Time) -> Result<Filled, Lost> {
        let filled = self.endpoint.fill(now).map_err(Lost::Os)?;
        self.acknowledge(now)?;
        Ok(filled)
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
