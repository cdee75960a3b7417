//! How a UDP endpoint is set up.

use super::header::{HEADER_LEN, REMOVED_BITS};
use super::system::DATAGRAMS_PER_CALL;
use super::unasked::first_part_len;
use crate::error::OsError;
use crate::frame::FrameLimits;
use crate::page_pool::Pool;
use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddr};

/// The longest datagram that Ethernet carries in one piece over IPv4, in bytes.
pub const DATAGRAM_LEN_ETHERNET: usize = 1472;

/// The longest datagram of IPv4, in bytes; the loopback interface carries it in one piece.
pub const DATAGRAM_LEN_LOOPBACK: usize = 65_507;

/// Settings of an endpoint. All endpoints of a partition need the same limits, key and datagram length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpOptions {
    /// Legal lengths of frames.
    pub limits: FrameLimits,
    /// The partition's key: datagrams made without it are refused.
    pub key: PartitionKey,
    /// Which life of this process it is, at most 65,535: peers drop what an earlier one sent.
    pub incarnation: u32,
    /// Length of a full datagram in bytes, header included; one that the network has to fragment costs more than it saves.
    pub datagram_len: usize,
    /// What the tag of a datagram covers. All endpoints agree.
    pub authenticate: Authenticate,
    /// Whether a checksum covers the payload where the tag does not. Required of peers as well.
    pub checksum_payload: bool,
    /// Whether the kernel cuts what is sent into datagrams (GSO), where it can.
    pub segmentation_offload: bool,
    /// Whether the kernel joins datagrams that it receives (GRO), where it can.
    pub receive_offload: bool,
    /// Parts of frames below this length in bytes are copied on sending (at least 1024 is used); received frames below it
    /// are counted.
    pub copy_below: usize,
    /// Bound of the send queue, of all peers together, in bytes; at least the longest frame.
    pub queue_bytes_max: usize,
    /// Bound of the send queue in frames.
    pub queue_frames_max: usize,
    /// The most datagrams that one fill takes in, 1 to 64.
    pub datagrams_per_fill: usize,
    /// Size to ask for the kernel's send buffer, in bytes; see [`SocketBuffers`].
    pub send_buffer_bytes: usize,
    /// Size to ask for the kernel's receive buffer, in bytes: what comes while it is full is lost.
    pub receive_buffer_bytes: usize,
    /// Bound of the messages of one peer of which only a part has come.
    pub incomplete_messages_max: usize,
    /// Bound of their lengths together, in bytes; at least the longest frame.
    pub incomplete_bytes_max: usize,
    /// How long after its last segment an incomplete message is given up.
    pub incomplete_timeout: Duration,
    /// A receiver asks for the missing parts of a message when nothing of it has come for this time. It asks again, ever
    /// more patiently, until they come or it gives up. Of messages of more than 1 MiB it asks for all beyond that. Zero: it
    /// never asks.
    pub ask_after: Duration,
    /// Bound of the messages to one peer that are kept to be sent again. It counts parts, which are slices of pages or a
    /// head without bulk; the newest stay. What a peer cannot miss any more need not be kept.
    pub keep_parts_max: usize,
    /// Bound of their lengths together, in bytes. Of a message of more than 1 MiB that has to make room the rest is sent unasked. To
    /// go in parts, all that are under way to a peer have to find room.
    pub keep_bytes_max: usize,
    /// Of messages that are longer, in bytes, only so much is sent unasked. All endpoints agree; other than usual only in tests.
    #[doc(hidden)]
    pub unasked_len: usize,
    /// Whether a network of a test changes addresses on the way: tags then do not cover them.
    #[doc(hidden)]
    pub relayed: bool,
    /// Whether what is sent to one peer is acknowledged, and sent again until it is. All endpoints that talk to each other agree.
    pub acknowledged: Option<Acknowledged>,
    /// How datagrams to multicast groups are sent.
    pub multicast: MulticastOptions,
}

/// What the keyed tag of a datagram covers, besides who sends to whom in which lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authenticate {
    /// The header and the payload.
    Everything,
    /// The header. Who can read datagrams of a peer and send in its name can put anything behind a header of it.
    Header,
}

/// A transport with a window and acknowledgements over datagrams `[ATM1997 §III]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The most bytes that may be under way to a peer without its acknowledgement. One message may be, whatever its length, and no more
    /// than [`MESSAGES_MAX`](Self::MESSAGES_MAX). What is sent beyond that waits. All peers share one bound of what waits,
    /// [`queue_bytes_max`](UdpOptions::queue_bytes_max) and [`queue_frames_max`](UdpOptions::queue_frames_max) beside the queue itself:
    /// what does not fit is refused.
    pub window_bytes: usize,
    /// Messages under way are sent again when nothing of them was acknowledged for this time. They go again after twice as
    /// long, up to sixteen times as long.
    pub retransmit_after: Duration,
    /// So often; then it is given up, and counted.
    pub retransmits_max: u32,
}

impl Acknowledged {
    /// The most messages under way to one peer.
    pub const MESSAGES_MAX: usize = 512;
}

/// What the members of a partition know and nobody else. It does not print itself.
#[derive(Clone, PartialEq, Eq)]
pub struct PartitionKey(pub [u8; 16]);

impl PartitionKey {
    /// Of the first bytes of a key that was derived for datagrams alone.
    pub const fn from_derived([key @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _]: [u8; 32]) -> Self {
        Self(key)
    }
}

impl core::fmt::Debug for PartitionKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("PartitionKey(..)")
    }
}

/// How datagrams to multicast groups are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MulticastOptions {
    /// Address of the interface that sends them; `None`: the system's choice.
    pub interface: Option<Ipv4Addr>,
    /// How many networks they may cross: 0 stays on this host, 1 on the network.
    pub time_to_live: u8,
    /// Whether members on this host get them, too.
    pub loops: bool,
}

/// The kernel's buffers of a socket, in bytes: what was asked for and what was granted. The kernel counts a datagram
/// with its overhead (a full Ethernet datagram some 2.3 kB).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketBuffers {
    /// Asked for sending.
    pub send_asked: usize,
    /// Granted for sending.
    pub send_granted: usize,
    /// Asked for receiving.
    pub receive_asked: usize,
    /// Granted for receiving. Less than asked: raise `net.core.rmem_max`.
    pub receive_granted: usize,
}

/// Settings that make no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOptions {
    /// A frame has to fit in a page, where it is put together.
    #[error(
        "frames of up to {frame_len_max} bytes do not fit in the pages of pool {pool}: expected pages of at least that, found {page_len} bytes"
    )]
    PageTooSmall {
        /// The longest frame in bytes.
        frame_len_max: usize,
        /// The pool's name.
        pool: String,
        /// Its page length in bytes.
        page_len: usize,
    },
    /// Each legal frame has to fit in the empty queue.
    #[error(
        "a send queue of {bytes_max} bytes and {frames_max} frames: expected at least one frame of {frame_len_max} bytes"
    )]
    QueueTooSmall {
        /// The bound in bytes.
        bytes_max: usize,
        /// The bound in frames.
        frames_max: usize,
        /// The longest frame in bytes.
        frame_len_max: usize,
    },
    /// The address cannot be received at: in use, not of this host, or not permitted.
    #[error("no datagrams can be received at {address}: {cause}")]
    Address {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        cause: OsError,
    },
    /// A datagram has to hold its header and some payload, and to exist.
    #[error("datagrams of {0} bytes: expected {DATAGRAM_LEN_MIN} to {DATAGRAM_LEN_LOOPBACK}")]
    DatagramLen(usize),
    /// The longest frame has to be receivable.
    #[error(
        "{messages_max} incomplete messages of {bytes_max} bytes per peer: expected at least one of {frame_len_max} bytes"
    )]
    IncompleteTooSmall {
        /// The bound of the messages.
        messages_max: usize,
        /// The bound in bytes.
        bytes_max: usize,
        /// The longest frame in bytes.
        frame_len_max: usize,
    },
    /// Nothing could be received, or more than one call takes.
    #[error("{0} datagrams per fill: expected 1 to {DATAGRAMS_PER_CALL}")]
    DatagramsPerFill(usize),
    /// What is not acknowledged would be sent again at once.
    #[error("datagrams are sent again after no time: expected more than 0 s")]
    RetransmitAtOnce,
    /// Datagrams have no room for more.
    #[error("life {0} of a process that was started again: expected at most 65535; end the run and begin another")]
    Incarnation(u32),
    /// Only addresses 224.0.0.0 to 239.255.255.255 are groups.
    #[error("{0} is no multicast group: expected an address from 224.0.0.0 to 239.255.255.255")]
    NoGroup(Ipv4Addr),
    /// The kernel refuses a setting or the address.
    #[error(transparent)]
    Socket(#[from] OsError),
}

impl UdpOptions {
    /// Defaults for frames of these lengths, in datagrams that fit an Ethernet.
    pub fn new(limits: FrameLimits, key: [u8; 16]) -> Self {
        Self {
            limits,
            key: PartitionKey(key),
            incarnation: 0,
            datagram_len: DATAGRAM_LEN_ETHERNET,
            authenticate: Authenticate::Everything,
            checksum_payload: true,
            segmentation_offload: true,
            receive_offload: true,
            copy_below: 2048,
            queue_bytes_max: (4 << 20).max(limits.len_max()),
            queue_frames_max: 4096,
            datagrams_per_fill: DATAGRAMS_PER_CALL,
            send_buffer_bytes: 4 << 20,
            receive_buffer_bytes: 8 << 20,
            incomplete_messages_max: 64,
            incomplete_bytes_max: (4 << 20).max(limits.len_max()),
            incomplete_timeout: Duration::from_millis(100),
            ask_after: Duration::ZERO,
            keep_parts_max: 0,
            keep_bytes_max: 0,
            unasked_len: UNASKED_LEN,
            relayed: false,
            acknowledged: None,
            multicast: MulticastOptions { interface: None, time_to_live: 1, loops: true },
        }
    }

    pub(super) fn check(&self, pool: &Pool) -> Result<(), InvalidOptions> {
        let frame_len_max = self.limits.len_max();
        if frame_len_max > pool.page_len() {
            let (pool, page_len) = (pool.name().to_owned(), pool.page_len());
            return Err(InvalidOptions::PageTooSmall { frame_len_max, pool, page_len });
        }
        if self.queue_bytes_max < frame_len_max || self.queue_frames_max == 0 {
            let (bytes_max, frames_max) = (self.queue_bytes_max, self.queue_frames_max);
            return Err(InvalidOptions::QueueTooSmall { bytes_max, frames_max, frame_len_max });
        }
        if !(DATAGRAM_LEN_MIN..=DATAGRAM_LEN_LOOPBACK).contains(&self.datagram_len) {
            return Err(InvalidOptions::DatagramLen(self.datagram_len));
        }
        if self.incomplete_bytes_max < frame_len_max || self.incomplete_messages_max == 0 {
            let (messages_max, bytes_max) = (self.incomplete_messages_max, self.incomplete_bytes_max);
            return Err(InvalidOptions::IncompleteTooSmall { messages_max, bytes_max, frame_len_max });
        }
        if self.acknowledged.is_some_and(|acknowledged| acknowledged.retransmit_after.is_zero()) {
            return Err(InvalidOptions::RetransmitAtOnce);
        }
        if self.incarnation >> (u32::BITS - REMOVED_BITS) != 0 {
            return Err(InvalidOptions::Incarnation(self.incarnation));
        }
        if !(1..=DATAGRAMS_PER_CALL).contains(&self.datagrams_per_fill) {
            return Err(InvalidOptions::DatagramsPerFill(self.datagrams_per_fill));
        }
        Ok(())
    }

    /// How much of a message goes before its receiver asks for the rest; all of it unless it is kept for that.
    pub(super) fn first_part_len(&self, len: usize, is_kept: bool) -> usize {
        if is_kept && !self.ask_after.is_zero() {
            first_part_len(len, self.segment_len(), self.unasked_len)
        } else {
            len
        }
    }

    /// Payload of a full datagram in bytes.
    pub(super) fn segment_len(&self) -> usize {
        self.datagram_len - HEADER_LEN
    }

    /// How many full datagrams the kernel takes as one to cut.
    pub(super) fn segments_per_send(&self) -> usize {
        (DATAGRAM_LEN_LOOPBACK / self.datagram_len).min(SEGMENTS_PER_SEND)
    }
}

/// Room for the header and enough payload that the bookkeeping per segment is small beside it.
const DATAGRAM_LEN_MIN: usize = 256;

/// Longer than fragments mostly are, and short beside buffers. Sent unasked as a whole, a third of fragments of 64 MB was dropped by
/// full buffers.
const UNASKED_LEN: usize = 1 << 20;

/// The kernel's limit since it can cut datagrams (4.18); later ones allow more.
const SEGMENTS_PER_SEND: usize = 64;
