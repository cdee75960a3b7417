//! One socket, many peers.

mod acknowledging;
mod missing;

use super::counters::UdpCounters;
use super::header::{HEADER_LEN, Header, Said, Seal, Tagger};
use super::intake::{Batch, Intake, NoBatch, Segments};
use super::options::{InvalidOptions, SocketBuffers, UdpOptions};
use super::outbox::Outbox;
use super::peer::{PeerId, Peers, Taken, TooManyRemoved};
use super::reassembly::{AT_ONCE, Bounds, Run};
use super::segment::check;
use super::socket;
use crate::error::OsError;
use crate::frame::Frame;
use crate::link::{Filled, Flushed, LinkCounters};
use crate::page_pool::Pool;
use crate::poller::{Poller, Readiness};
use acknowledging::Waiting;
use base::bulk::{Bulk, PageSlice};
use base::time::Time;
use core::ops::Range;
use core::time::Duration;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// A message of which a part has come.
#[derive(Clone, Debug)]
pub struct IncompleteMessage<'a> {
    /// Its number among all that the peer has sent here.
    pub number: u64,
    /// Its length in bytes.
    pub len: usize,
    /// What has come of its beginning; empty if the first segment is missing.
    pub beginning: &'a [u8],
    /// The bytes that are missing, in order.
    pub missing: Vec<Range<usize>>,
}

/// A UDP socket that exchanges frames with any number of known peers. See the module for what it promises.
pub struct Endpoint {
    socket: OwnedFd,
    address: SocketAddr,
    readiness: Readiness,
    buffers: SocketBuffers,
    options: UdpOptions,
    tagger: Tagger,
    outbox: Outbox,
    intake: Intake,
    peers: Peers,
    frames: VecDeque<(PeerId, PageSlice)>,
    /// Not later than any message is overdue.
    deadline: Option<Time>,
    /// The kernel's count of drops when it was last told.
    drops_told: u32,
    send_refused: Option<OsError>,
    /// Whether datagrams longer than their way carries are refused: until the first of them.
    refuses_fragments: bool,
    /// Peers with messages since the last flush that are told, in a while, how many there were.
    to_notify: Vec<PeerId>,
    /// Whether some peer is to be told now.
    notices_due: bool,
    /// Peers whose messages have come since they were told.
    to_acknowledge: Vec<u32>,
    /// What waits until earlier messages are acknowledged, of all peers.
    waiting: Waiting,
    /// Empty between calls: kept for its memory.
    ready: Vec<PageSlice>,
    counters: LinkCounters,
    udp_counters: UdpCounters,
}

impl Endpoint {
    /// An endpoint at `address`; port 0 for one of the system's choice.
    ///
    /// # Errors
    /// Settings that do not fit or that the kernel refuses; an address that is taken.
    pub fn bind(address: SocketAddr, options: &UdpOptions, pool: &Pool) -> Result<Self, InvalidOptions> {
        options.check(pool)?;
        Self::new(socket::bind(address, options)?, options, pool)
    }

    /// An endpoint that receives what peers send to a multicast group, through the interface that has this address. Other
    /// processes of the host may do the same. Port 0 for one of the system's choice.
    ///
    /// # Errors
    /// As [`bind`](Self::bind); an address that is no group.
    pub fn join(
        group: SocketAddrV4,
        interface: Ipv4Addr,
        options: &UdpOptions,
        pool: &Pool,
    ) -> Result<Self, InvalidOptions> {
        options.check(pool)?;
        if !group.ip().is_multicast() {
            return Err(InvalidOptions::NoGroup(*group.ip()));
        }
        Self::new(socket::join(group, interface, options)?, options, pool)
    }

    fn new(socket: OwnedFd, options: &UdpOptions, pool: &Pool) -> Result<Self, InvalidOptions> {
        let (address, buffers) = (socket::address(&socket)?, socket::buffers(&socket, options)?);
        let segments_per_send = socket::set_segmentation(socket.as_fd(), options);
        let joins = socket::set_joining(socket.as_fd(), options);
        let refuses_fragments = socket::refuse_fragments(socket.as_fd(), &address);
        let tagger = Tagger::new(&options.key.0);
        let bounds = Bounds {
            messages_max: options.incomplete_messages_max,
            bytes_max: options.incomplete_bytes_max,
            timeout: options.incomplete_timeout,
            segment_len: options.segment_len(),
            unasked_len: options.unasked_len,
            ask_after: options.ask_after,
        };
        Ok(Self {
            socket,
            address,
            readiness: Readiness::default(),
            buffers,
            outbox: Outbox::new(options, tagger.clone(), segments_per_send),
            tagger,
            intake: Intake::new(options, pool.clone(), joins),
            options: options.clone(),
            peers: Peers::new(bounds, address, options),
            frames: VecDeque::new(),
            deadline: None,
            drops_told: 0,
            send_refused: None,
            refuses_fragments,
            to_notify: Vec::new(),
            notices_due: false,
            to_acknowledge: Vec::new(),
            waiting: Waiting::default(),
            ready: Vec::new(),
            counters: LinkCounters::default(),
            udp_counters: UdpCounters::default(),
        })
    }

    /// Lets a scheduler sleep until something happens here. Without it, each call tries the socket.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn register(&mut self, poller: &mut Poller) -> Result<(), OsError> {
        self.readiness = poller.register(&self.socket)?;
        Ok(())
    }

    /// Its own address.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// The kernel's buffers: compare what was granted with what was asked for.
    pub fn buffers(&self) -> SocketBuffers {
        self.buffers
    }

    /// Accepts datagrams from this address and sends there, to a peer in its first life; a multicast group is only sent to.
    ///
    /// # Errors
    /// If 65,536 peers were removed: a peer that was here before could take what is sent to it now for what was sent then.
    ///
    /// # Panics
    /// If it is a peer already.
    pub fn add_peer(&mut self, address: SocketAddr) -> Result<PeerId, TooManyRemoved> {
        self.add_peer_in_life(address, 0)
    }

    /// The same for a peer in this life, at most 65,535, as its connection says: nothing that comes in datagrams tells of another.
    /// What other lives of it say is refused, and what is said to it no other life of it takes.
    ///
    /// # Errors
    /// As [`add_peer`](Self::add_peer).
    ///
    /// # Panics
    /// If it is a peer already.
    pub fn add_peer_in_life(&mut self, address: SocketAddr, life: u32) -> Result<PeerId, TooManyRemoved> {
        self.peers.add(address, life)
    }

    /// Forgets a peer, what is incomplete of it, and what it has not acknowledged, which counts as given up. What is queued
    /// for it is sent still.
    ///
    /// If it is added again, we begin anew with it. It refuses what we sent before, as that of a former life, and we refuse
    /// its acknowledgements of that. It does not begin anew with us, unless it has removed us, too. We forget what it has
    /// sent, since by then another may live at its address. So a message that it sends again is delivered again.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn remove_peer(&mut self, peer: PeerId) {
        let slot = self.peers.get(peer);
        if let Some(window) = &slot.send_window {
            let (frames, bytes) = window.waiting(&slot.kept);
            self.waiting.frames -= frames;
            self.waiting.bytes -= bytes;
            self.udp_counters.unacknowledged += slot.kept.len() as u64;
        }
        self.udp_counters.abandoned += self.peers.remove(peer);
    }

    /// Queues a frame made of `head`, which starts with the frame's total length, and `bulk`; returns the number of the
    /// message, counted per peer.
    ///
    /// # Errors
    /// A full queue, which holds the frame back: try again after a [`flush`](Self::flush).
    ///
    /// # Panics
    /// If the two are not a legal frame. If there is no such peer.
    pub fn send(&mut self, peer: PeerId, head: &[u8], bulk: &Bulk) -> Result<u64, QueueFull> {
        if self.peers.get(peer).send_window.is_some() {
            return self.send_acknowledged(peer, head, bulk);
        }
        let (id, peer) = (peer, self.peers.get(peer));
        let number = peer.next_number;
        let keeps = peer.is_one() && self.options.keep_parts_max > 0;
        let UdpOptions { keep_parts_max, keep_bytes_max, .. } = self.options;
        let len = head.len() + bulk.len();
        let is_kept = keeps && len <= keep_bytes_max && bulk.slices().len() <= keep_parts_max;
        while peer.kept.has_in_parts()
            && let Some(displaced) = peer.kept.displaced_unsent(head, bulk, (keep_parts_max, keep_bytes_max))
        {
            // Nobody can ask for its rest any more.
            let rest = displaced.sent_len()..displaced.len();
            let Ok(ticket) = self.outbox.push_again(&peer.to, displaced, rest.clone()) else {
                self.counters.sends_refused += 1;
                return Err(QueueFull);
            };
            displaced.note_queued_again(ticket, rest.end);
            displaced.note_sent(rest.end);
        }
        let first_len = self.options.first_part_len(len, is_kept);
        let Ok(ticket) = self.outbox.push(&peer.to, number, (head, bulk), first_len) else {
            self.counters.sends_refused += 1;
            return Err(QueueFull);
        };
        peer.next_number += 1;
        if keeps {
            if self.to_notify.last() != Some(&id) {
                self.to_notify.push(id);
            }
            peer.kept.push(number, head, bulk, keep_parts_max, keep_bytes_max);
            peer.kept.note_queued(ticket, first_len);
            if first_len < len {
                peer.kept.note_in_parts();
            }
        }
        Ok(number)
    }

    /// Hands over queued frames. What the kernel refuses to send is lost, counted, and told by
    /// [`send_refused`](Self::send_refused).
    pub fn flush(&mut self, now: Time) -> Flushed {
        self.schedule_notices(now);
        self.send_notices(now);
        loop {
            self.release(now);
            if self.outbox.is_empty() {
                break;
            }
            if !self.readiness.is_writable() {
                return Flushed::WouldBlock;
            }
            self.readiness.clear_writable();
            self.counters.send_calls += 1;
            match self.outbox.send(self.socket.as_fd()) {
                // What was not taken is tried again: that call has the reason.
                Ok(sent) => {
                    self.counters.frames_sent += sent.messages;
                    self.counters.bytes_sent += sent.bytes;
                    self.udp_counters.datagrams_sent += sent.datagrams;
                    self.readiness.set_writable();
                }
                Err(Errno::AGAIN) => {
                    self.counters.send_would_blocks += 1;
                    return Flushed::WouldBlock;
                }
                Err(errno) => {
                    self.readiness.set_writable();
                    self.refuse(errno);
                }
            }
        }
        if self.waiting.frames > 0 { Flushed::WouldBlock } else { Flushed::All }
    }

    /// Takes in one batch of datagrams, unless frames still wait to be delivered, and gives up what is overdue.
    ///
    /// # Errors
    /// If the kernel refuses: a broken environment, as nothing here depends on a peer.
    pub fn fill(&mut self, now: Time) -> Result<Filled, OsError> {
        if !self.frames.is_empty() {
            return Ok(Filled::FramesWaiting);
        }
        let mut filled = self.receive(now);
        let waits = matches!(filled, Ok(Filled::Some | Filled::PoolEmpty)) && self.readiness.is_readable();
        // What waits in the socket is not missing, unless it never ends.
        let patience = if waits { self.patience() } else { Duration::ZERO };
        if self.deadline.is_some_and(|deadline| deadline == AT_ONCE || deadline + patience <= now) {
            self.expire(now, patience);
            if matches!(filled, Ok(Filled::PoolEmpty)) {
                filled = self.receive(now);
            }
        }
        filled
    }

    fn receive(&mut self, now: Time) -> Result<Filled, OsError> {
        if !self.readiness.is_readable() {
            return Ok(Filled::WouldBlock);
        }
        self.readiness.clear_readable();
        match self.intake.receive(self.socket.as_fd(), &mut self.counters) {
            Ok(batch) => {
                if batch.is_full {
                    self.readiness.set_readable();
                }
                self.take(&batch, now);
                self.acknowledge();
                Ok(Filled::Some)
            }
            Err(NoBatch::PoolEmpty) => {
                self.readiness.set_readable();
                Ok(Filled::PoolEmpty)
            }
            Err(NoBatch::Os(Errno::AGAIN)) => {
                self.counters.receive_would_blocks += 1;
                Ok(Filled::WouldBlock)
            }
            Err(NoBatch::Os(errno)) => {
                self.readiness.set_readable();
                Err(OsError::new("recvmmsg", errno))
            }
        }
    }

    /// The next frame of the batch, in one piece.
    pub fn next_frame(&mut self) -> Option<(PeerId, Frame)> {
        self.frames.pop_front().map(|(peer, slice)| (peer, Frame::whole(slice)))
    }

    /// Whether [`fill`](Self::fill) or [`next_frame`](Self::next_frame) has something to do now. No system call.
    pub fn is_receivable(&self, now: Time) -> bool {
        !self.frames.is_empty()
            || (self.readiness.is_readable() && self.intake.has_room())
            || self.next_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Whether [`flush`](Self::flush) has something to do now. No system call.
    pub fn is_flushable(&self) -> bool {
        (self.notices_due || !self.outbox.is_empty()) && self.readiness.is_writable()
    }

    /// When [`fill`](Self::fill) has to be called even if nothing comes. It may be too early by a time-out.
    pub fn next_deadline(&self) -> Option<Time> {
        let waits = |deadline| deadline != AT_ONCE && self.readiness.is_readable() && !self.intake.has_room();
        self.deadline.map(|deadline| if waits(deadline) { deadline + self.patience() } else { deadline })
    }

    /// How long what waits in the socket puts off what is due.
    fn patience(&self) -> Duration {
        ASKS_WAIT * self.options.ask_after
    }

    /// Bytes in the send queue, those that wait for acknowledgements of earlier ones included.
    pub fn queued_bytes(&self) -> usize {
        self.outbox.bytes() + self.waiting.bytes
    }

    /// Bytes in the send queue that only the kernel's room holds back. What waits for acknowledgements does not count: a peer that
    /// is gone or hangs gives none, so that who ends does not wait for it.
    pub fn unsent_bytes(&self) -> usize {
        self.outbox.bytes()
    }

    /// How many asks, answers and the like wait to be sent.
    pub(super) fn single_datagrams(&self) -> usize {
        self.outbox.single_datagrams()
    }

    /// Whether messages to a peer were given up because it acknowledged none of them, and it has acknowledged nothing since.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn is_silent(&self, peer: PeerId) -> bool {
        self.peers.look(peer).send_window.is_some_and(|window| window.is_silent())
    }

    /// Why the kernel refused to send what it refused last.
    pub fn send_refused(&self) -> Option<OsError> {
        self.send_refused
    }

    /// The messages of a peer of which a part has come, for requests that name what is missing. In no order.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn incomplete(&self, peer: PeerId) -> impl Iterator<Item = IncompleteMessage<'_>> {
        let segment_len = self.options.segment_len();
        self.peers.look(peer).reassembly.messages().map(move |message| IncompleteMessage {
            number: message.number(),
            len: message.len(),
            beginning: message.beginning(),
            missing: message.missing(segment_len).collect(),
        })
    }

    /// What every link counts.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// What went wrong, by cause.
    pub fn udp_counters(&self) -> &UdpCounters {
        &self.udp_counters
    }

    /// The kernel does not send what is first in the queue.
    fn refuse(&mut self, errno: Errno) {
        let is_long = errno == Errno::MSGSIZE;
        if is_long && core::mem::take(&mut self.refuses_fragments) && socket::allow_fragments(self.socket.as_fd()) {
            return;
        }
        // Some devices and old kernels cannot cut: the same bytes go out one by one then.
        let cannot_cut = matches!(errno, Errno::INVAL | Errno::IO | Errno::MSGSIZE);
        if cannot_cut && self.outbox.cuts_in_kernel() && socket::unset_segmentation(self.socket.as_fd()) {
            self.outbox.stop_cutting_in_kernel();
            return;
        }
        self.send_refused = Some(OsError::new("sendmmsg", errno));
        self.udp_counters.datagrams_not_sent += self.outbox.skip();
    }

    fn take(&mut self, batch: &Batch, now: Time) {
        let mut open = None;
        for index in 0..batch.count {
            let datagram = self.intake.datagram(index);
            self.note_drops(datagram.dropped);
            let Some(peer) = datagram.source.and_then(|source| self.peers.find(&source)) else {
                self.udp_counters.datagrams_received += 1;
                self.udp_counters.foreign += 1;
                continue;
            };
            let is_alone = datagram.joined_len.is_none();
            if datagram.is_truncated || (is_alone && datagram.len > self.options.datagram_len) {
                self.udp_counters.datagrams_received += 1;
                self.udp_counters.oversized += 1;
                continue;
            }
            match self.intake.segments(batch, index) {
                Segments::InPlace { count, payload_len } => {
                    for segment in 0..count {
                        let place = self.intake.place(index, segment, payload_len);
                        self.take_in_place(peer, (index, segment), place, batch, &mut open, now);
                    }
                }
                Segments::Flat { datagram_len } => {
                    self.close_run(&mut open, batch, now);
                    self.take_flat(peer, datagram_len, now);
                }
            }
        }
        self.close_run(&mut open, batch, now);
    }

    fn note_drops(&mut self, told: Option<u32>) {
        if let Some(told) = told {
            self.udp_counters.dropped_by_kernel += u64::from(told.wrapping_sub(self.drops_told));
            self.drops_told = told;
        }
    }

    /// Adds a segment to the open run, or opens another.
    fn take_in_place(
        &mut self,
        peer: u32,
        (index, segment): (usize, usize),
        place: Range<usize>,
        batch: &Batch,
        open: &mut Option<OpenRun>,
        now: Time,
    ) {
        self.udp_counters.datagrams_received += 1;
        let header = self.intake.header(index, segment);
        let payload = &batch.bytes.as_bytes()[place.clone()];
        let seal = Seal { tagger: &self.tagger, parties: &self.peers.found(peer).from };
        let header = match check(header, payload, &self.options, seal, &mut self.udp_counters) {
            None => return,
            Some(Said::Segment(header)) => header,
            Some(said) => {
                if matches!(said, Said::GivenUp(_)) {
                    // What has come before is not given up.
                    self.close_run(open, batch, now);
                }
                return self.take_said(peer, said, payload, now);
            }
        };
        if let Some(open) = open
            && open.is_continued_by(peer, &header, &place)
        {
            open.place.end = place.end;
            return;
        }
        self.close_run(open, batch, now);
        if self.is_current(peer, header.incarnation) {
            *open = Some(OpenRun { peer, first: header, place });
        }
    }

    fn take_flat(&mut self, peer: u32, datagram_len: usize, now: Time) {
        let len = self.intake.flat().len();
        for start in (0..len.max(1)).step_by(datagram_len) {
            self.udp_counters.datagrams_received += 1;
            let end = len.min(start + datagram_len);
            let Some((header, payload)) = self.intake.flat()[start..end].split_first_chunk() else {
                self.udp_counters.not_ours += 1;
                continue;
            };
            let seal = Seal { tagger: &self.tagger, parties: &self.peers.found(peer).from };
            let header = match check(header, payload, &self.options, seal, &mut self.udp_counters) {
                None => continue,
                Some(Said::Segment(header)) => header,
                Some(said) => {
                    let more = if matches!(said, Said::Ask(_)) { payload.to_vec() } else { Vec::new() };
                    self.take_said(peer, said, &more, now);
                    continue;
                }
            };
            if !self.is_current(peer, header.incarnation) {
                continue;
            }
            match self.intake.store_flat(start + HEADER_LEN..end) {
                Some(bytes) => {
                    self.udp_counters.delivered_by_copy += u64::from(bytes.len() == header.message_len as usize);
                    self.counters.bytes_moved += bytes.len() as u64;
                    self.take_run(peer, &run(&header, bytes), false, now);
                }
                None => self.udp_counters.without_page += 1,
            }
        }
    }

    /// Does what a peer says that is no segment, `more` behind an ask.
    fn take_said(&mut self, peer: u32, said: Said, more: &[u8], now: Time) {
        match said {
            Said::Segment(_) => {}
            Said::Ask(ask) => self.answer_all(peer, ask, more, now),
            Said::Sent(notice) => self.take_sent(peer, notice, now),
            Said::Received(notice) => self.take_received(peer, notice),
            Said::GivenUp(notice) => self.take_given_up(peer, notice),
            Said::Acknowledgement(said) => self.take_acknowledgement(peer, &said, now),
        }
    }

    /// Whether the peer lives the life that the header states; a new life ends the old.
    fn is_current(&mut self, peer: u32, incarnation: u32) -> bool {
        let peer = self.peers.found(peer);
        match peer.meet(incarnation) {
            Some(abandoned) => self.udp_counters.abandoned += abandoned,
            None => self.udp_counters.stale += 1,
        }
        peer.incarnation == Some(incarnation)
    }

    fn close_run(&mut self, open: &mut Option<OpenRun>, batch: &Batch, now: Time) {
        if let Some(OpenRun { peer, first, place }) = open.take() {
            let bytes = batch.bytes.slice(place);
            self.take_run(peer, &run(&first, bytes), true, now);
        }
    }

    fn take_run(&mut self, id: u32, run: &Run, in_place: bool, now: Time) {
        let peer = self.peers.found(id);
        match peer.take(run, now, &mut self.udp_counters) {
            Taken::Whole => {
                self.udp_counters.delivered_in_place += u64::from(in_place);
                self.deliver(id, run.number, run.bytes.clone());
            }
            Taken::Complete(message) => {
                let (number, len) = (message.number(), message.len());
                let stored = self.intake.store(len, |place| message.copy_to(place));
                peer.reassembly.recycle(message);
                match stored {
                    Some(bytes) => {
                        self.udp_counters.delivered_by_copy += 1;
                        self.counters.bytes_moved += len as u64;
                        self.deliver(id, number, bytes);
                    }
                    None => self.udp_counters.without_page += 1,
                }
            }
            Taken::Part => {}
            Taken::Nothing => {
                if peer.in_order.is_some() {
                    self.owe(id);
                }
            }
        }
        let reassembly = &mut self.peers.found(id).reassembly;
        let due = if reassembly.take_due() { Some(AT_ONCE) } else { reassembly.wait().map(|wait| now + wait) };
        self.deadline = earlier(self.deadline, due);
    }

    fn deliver(&mut self, peer: u32, number: u64, bytes: PageSlice) {
        let slot = self.peers.found(peer);
        if let Some(in_order) = &mut slot.in_order {
            let mut ready = core::mem::take(&mut self.ready);
            in_order.take(number, bytes, &mut |bytes| ready.push(bytes));
            ready.drain(..).for_each(|bytes| self.push_frame(peer, bytes));
            self.ready = ready;
            return self.owe(peer);
        }
        let lost = &mut self.udp_counters.messages_lost;
        *lost = lost.saturating_add(slot.window.deliver(number));
        if slot.note_delivered(bytes.len()) {
            self.tell_received(peer);
        }
        self.push_frame(peer, bytes);
    }

    fn push_frame(&mut self, peer: u32, bytes: PageSlice) {
        if self.options.limits.read_len(bytes.as_bytes(), 0) != Ok(Some(bytes.len())) {
            self.udp_counters.contradictory += 1;
            return;
        }
        self.counters.frames_received += 1;
        self.counters.small_frames_received += u64::from(bytes.len() < self.options.copy_below);
        self.frames.push_back((PeerId::new(peer), bytes));
    }
}

/// Segments of a batch that lie side by side, the next beginning where the one before ends.
struct OpenRun {
    peer: u32,
    first: Header,
    /// Of all of them, in the batch.
    place: Range<usize>,
}

impl OpenRun {
    fn is_continued_by(&self, peer: u32, header: &Header, place: &Range<usize>) -> bool {
        let expected = Header {
            offset: self.first.offset + u32::try_from(self.place.len()).expect("a run lies within its message"),
            cover: header.cover,
            ..self.first
        };
        self.peer == peer && *header == expected && self.place.end == place.start
    }
}

/// The queue of an endpoint is at its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("send queue full: flush, then send again")]
pub struct QueueFull;

/// As long as datagrams come without a pause, or find no page, asks wait so many times the usual.
const ASKS_WAIT: u32 = 16;

impl core::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.address)
            .field("peers", &self.peers.len())
            .field("queued_bytes", &self.queued_bytes())
            .field("counters", &self.counters)
            .field("udp_counters", &self.udp_counters)
            .finish_non_exhaustive()
    }
}

fn run(first: &Header, bytes: PageSlice) -> Run {
    let (message_len, offset) = (first.message_len as usize, first.offset as usize);
    Run { number: first.number, message_len, offset, bytes }
}

fn earlier(first: Option<Time>, second: Option<Time>) -> Option<Time> {
    first.into_iter().chain(second).min()
}
