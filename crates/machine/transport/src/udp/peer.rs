//! What an endpoint knows of its peers.

use super::acknowledged::SendWindow;
use super::counters::UdpCounters;
use super::header::{Parties, REMOVED_BITS};
use super::in_order::InOrder;
use super::kept::Kept;
use super::options::{Acknowledged, UdpOptions};
use super::outbox::Destination;
use super::reassembly::{Added, Bounds, Incomplete, Reassembly, Refusals, Run};
use super::window::{Known, Window};
use base::time::Time;
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A peer, or a multicast group, of one [`Endpoint`](super::Endpoint). The number of a removed peer is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerId(u32);

impl PeerId {
    pub(super) fn new(slot: u32) -> Self {
        Self(slot)
    }
}

/// An endpoint has removed more peers than datagrams can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{address} is not added as a peer: this process has removed 65,536, and one of them would take what is sent to it \
     now for old; start the process again"
)]
pub struct TooManyRemoved {
    /// The address that was to be added.
    pub address: SocketAddr,
}

/// The peers of an endpoint.
pub(super) struct Peers {
    bounds: Bounds,
    acknowledged: Option<Acknowledged>,
    address: SocketAddr,
    relayed: bool,
    /// Which life of this process it is.
    life: u32,
    /// How many peers were removed.
    removed: u32,
    slots: Vec<Option<Peer>>,
    by_address: BTreeMap<SocketAddr, u32>,
}

/// A peer, or a multicast group.
pub(super) struct Peer {
    pub(super) to: Destination,
    /// From it to us.
    pub(super) from: Parties,
    /// Which life of it we know, from its connection.
    life: u32,
    is_group: bool,
    /// Number of the next message to it.
    pub(super) next_number: u64,
    /// What was sent to it of late.
    pub(super) kept: Kept,
    /// When it is told how many messages were sent, unless others are sent before.
    pub(super) notice_at: Option<Time>,
    /// How long it had to answer the last time; each time it has twice as long.
    pub(super) notice_pause: Duration,
    /// Everything below was sent by it, as far as is known.
    sent_end: u64,
    /// Messages that have come, and their bytes, since it was told.
    untold: (u32, usize),
    /// As what it has spoken to us; `None` before its first datagram.
    pub(super) incarnation: Option<u32>,
    pub(super) window: Window,
    /// What it has not acknowledged, if it has to.
    pub(super) send_window: Option<SendWindow>,
    /// What of its messages came, if they are acknowledged.
    pub(super) in_order: Option<InOrder>,
    /// Whether it is to be told what has come.
    owes: bool,
    pub(super) reassembly: Reassembly,
}

/// What a run brought.
pub(super) enum Taken {
    /// It is a message itself.
    Whole,
    /// It completed a message.
    Complete(Incomplete),
    /// A part of a message.
    Part,
    /// Nothing new.
    Nothing,
}

impl Peers {
    pub(super) fn new(bounds: Bounds, address: SocketAddr, options: &UdpOptions) -> Self {
        let UdpOptions { acknowledged, relayed, incarnation: life, .. } = *options;
        Self {
            bounds,
            acknowledged,
            address,
            relayed,
            life,
            removed: 0,
            slots: Vec::new(),
            by_address: BTreeMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.slots.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.slots.iter_mut().flatten()
    }

    /// The peer that [`find`](Self::find) has found.
    pub(super) fn found(&mut self, slot: u32) -> &mut Peer {
        self.slots[slot as usize].as_mut().expect("found by its address")
    }

    pub(super) fn add(&mut self, address: SocketAddr, life: u32) -> Result<PeerId, TooManyRemoved> {
        // A peer that is added again begins anew with us as with another life of ours, whatever it remembers and is on the
        // way.
        let removed = u16::try_from(self.removed).map_err(|_| TooManyRemoved { address })?;
        let incarnation = self.life << REMOVED_BITS | u32::from(removed);
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let id = u32::try_from(free).expect("fewer peers than addresses");
        assert!(self.by_address.insert(address, id).is_none(), "{address} is a peer already");
        // Members of a group hear the same.
        let own_life = if self.address.ip().is_multicast() { 0 } else { self.life };
        let ends = if self.relayed { [UNKNOWN, UNKNOWN] } else { [self.address, address] };
        let (parties, from) = (Parties::new(ends[0], ends[1], life), Parties::new(ends[1], ends[0], own_life));
        let to = Destination { address: address.into(), slot: id, incarnation, parties };
        let peer = Peer::new((to, from, life), address.ip().is_multicast(), self.bounds, self.acknowledged);
        let peer = Some(peer);
        if free == self.slots.len() {
            self.slots.push(peer);
        } else {
            self.slots[free] = peer;
        }
        Ok(PeerId(id))
    }

    /// Returns how many messages of it were incomplete.
    pub(super) fn remove(&mut self, peer: PeerId) -> u64 {
        let removed = self.slots.get_mut(peer.0 as usize).and_then(Option::take);
        let abandoned = removed.expect(NO_SUCH_PEER).reassembly.clear();
        self.by_address.retain(|_, known| *known != peer.0);
        self.removed = self.removed.saturating_add(1);
        abandoned
    }

    pub(super) fn find(&self, address: &SocketAddr) -> Option<u32> {
        self.by_address.get(address).copied()
    }

    pub(super) fn get(&mut self, peer: PeerId) -> &mut Peer {
        self.slots.get_mut(peer.0 as usize).and_then(Option::as_mut).expect(NO_SUCH_PEER)
    }

    /// The peer, if it was not removed.
    pub(super) fn find_by_id(&mut self, peer: PeerId) -> Option<&mut Peer> {
        self.slots.get_mut(peer.0 as usize)?.as_mut()
    }

    pub(super) fn look(&self, peer: PeerId) -> &Peer {
        self.slots.get(peer.0 as usize).and_then(Option::as_ref).expect(NO_SUCH_PEER)
    }
}

impl Peer {
    /// Whether it is one peer, not a group: nobody asks for what is sent to a group.
    pub(super) fn is_one(&self) -> bool {
        !self.is_group
    }

    fn new(
        (to, from, life): (Destination, Parties, u32),
        is_group: bool,
        bounds: Bounds,
        acknowledged: Option<Acknowledged>,
    ) -> Self {
        let acknowledged = acknowledged.filter(|_| !is_group);
        Self {
            to,
            from,
            life,
            is_group,
            next_number: 0,
            kept: Kept::default(),
            notice_at: None,
            notice_pause: Duration::ZERO,
            sent_end: 0,
            untold: (0, 0),
            incarnation: None,
            window: Window::default(),
            send_window: acknowledged.map(SendWindow::new),
            in_order: acknowledged.map(|_| InOrder::new(bounds.bytes_max)),
            owes: false,
            reassembly: Reassembly::new(bounds),
        }
    }

    /// Notes as what the peer speaks; returns how many messages are given up since it begins anew with us. `None` if this is
    /// from before, or of a life that its connection did not tell.
    pub(super) fn meet(&mut self, incarnation: u32) -> Option<u64> {
        match self.incarnation {
            _ if incarnation >> REMOVED_BITS != self.life => None,
            Some(known) if known == incarnation => Some(0),
            Some(known) if known > incarnation => None,
            _ => {
                self.incarnation = Some(incarnation);
                self.window = Window::default();
                self.sent_end = 0;
                if let Some(in_order) = &mut self.in_order {
                    in_order.restart();
                }
                Some(self.reassembly.clear())
            }
        }
    }

    /// All messages to it below this number were sent; others wait.
    pub(super) fn sent_below(&self) -> u64 {
        self.send_window.map_or(self.next_number, |window| window.released_end())
    }

    /// It has to be told what has come; whether that is news.
    pub(super) fn owe(&mut self) -> bool {
        !core::mem::replace(&mut self.owes, true)
    }

    /// What it is told of what has come: who it was when it sent that, all below a number, and some beyond.
    pub(super) fn pay(&mut self) -> Option<(u32, (u64, u64))> {
        self.owes = false;
        self.incarnation.zip(self.in_order.as_ref().map(InOrder::acknowledgement))
    }

    /// Notes what has come; whether the peer should be told, so that it need not keep much.
    pub(super) fn note_delivered(&mut self, len: usize) -> bool {
        let (messages, bytes) = &mut self.untold;
        *messages += 1;
        *bytes += len;
        *messages >= UNTOLD_MESSAGES_MAX || *bytes >= UNTOLD_BYTES_MAX
    }

    /// The end of what has come or is given up; the peer is told now.
    pub(super) fn received_end(&mut self) -> u64 {
        self.untold = (0, 0);
        self.reassembly.first_missing().unwrap_or(self.sent_end)
    }

    /// The peer has received all messages below this one.
    pub(super) fn note_received(&mut self, end: u64) {
        self.kept.forget_below(end);
        if end >= self.next_number {
            self.notice_at = None;
        }
    }

    /// The peer has sent all messages below this one; whether some of them are missing that were not known to be.
    pub(super) fn note_sent(&mut self, end: u64, now: Time) -> bool {
        let is_news = end > self.sent_end;
        if is_news {
            self.reassembly.miss(self.sent_end..end, now, now);
            self.sent_end = end;
        }
        is_news
    }

    /// The peer does not send messages below this one any more: they are not missing.
    pub(super) fn note_given_up(&mut self, end: u64) {
        self.sent_end = self.sent_end.max(end);
        self.reassembly.forget_below(end);
    }

    pub(super) fn take(&mut self, run: &Run, now: Time, counters: &mut UdpCounters) -> Taken {
        let segments = run.bytes.len().div_ceil(self.reassembly.segment_len()) as u64;
        let known = self.in_order.as_ref().map(|in_order| in_order.knows(run.number));
        match known.unwrap_or_else(|| self.window.knows(run.number)) {
            Known::No => {}
            Known::Delivered => {
                counters.duplicates += segments;
                return Taken::Nothing;
            }
            Known::TooOld => {
                counters.late += segments;
                if known.is_none() {
                    // It can come no more, and is not asked for again.
                    self.reassembly.forget(run.number);
                }
                return Taken::Nothing;
            }
        }
        if run.number >= self.sent_end {
            let ask_at = now + self.reassembly.ask_after();
            self.reassembly.miss(self.sent_end..run.number, now, ask_at);
            self.sent_end = run.number.saturating_add(1);
        }
        self.reassembly.overtake(run.number, segments as usize, now);
        if run.bytes.len() == run.message_len {
            self.reassembly.forget(run.number);
            return Taken::Whole;
        }
        let mut refusals = Refusals::default();
        let added = self.reassembly.add(run, now, &mut refusals);
        counters.duplicates += refusals.duplicates;
        counters.evicted += refusals.evicted;
        match added {
            Added::Complete(message) => Taken::Complete(message),
            Added::Kept => Taken::Part,
            Added::Contradictory => {
                counters.contradictory += segments;
                Taken::Nothing
            }
        }
    }
}

const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// What is kept should stay in a cache of the processor; each telling may wake a process.
const UNTOLD_BYTES_MAX: usize = 2 << 20;
const UNTOLD_MESSAGES_MAX: u32 = 128;
const NO_SUCH_PEER: &str = "a peer that was added and not removed";
