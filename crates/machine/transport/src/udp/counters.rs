//! What a UDP endpoint counts besides what every link counts.

/// Datagrams and messages that went wrong, by cause, and how messages were put together; from the endpoint's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpCounters {
    /// Datagrams handed to the kernel, those that it cuts (GSO) counted singly.
    pub datagrams_sent: u64,
    /// Datagrams that the kernel refused to send, for want of a route, by a filter, or for want of memory: lost.
    pub datagrams_not_sent: u64,
    /// Datagrams taken in, those that the kernel has joined (GRO) counted singly.
    pub datagrams_received: u64,
    /// Datagrams that the kernel dropped because the socket's receive buffer was full (`SO_RXQ_OVFL`). It tells with the
    /// next datagram that it delivers.
    pub dropped_by_kernel: u64,
    /// Datagrams from an address that is no peer's.
    pub foreign: u64,
    /// Datagrams longer than the configured length.
    pub oversized: u64,
    /// Datagrams shorter than their header, of another protocol, or of another version.
    pub not_ours: u64,
    /// Datagrams whose header is damaged or was made without the partition's key.
    pub not_proved: u64,
    /// Datagrams whose payload does not have its checksum, or has none where one is required.
    pub corrupt: u64,
    /// Datagrams whose header contradicts itself, their length, the limits of frames, or other segments of the message.
    pub contradictory: u64,
    /// Datagrams of a sender with another datagram length.
    pub other_segment_len: u64,
    /// Datagrams from an earlier life of the peer.
    pub stale: u64,
    /// Segments that had come already, or belong to a message that was delivered.
    pub duplicates: u64,
    /// Segments of messages that are too old to know whether they were delivered, or have a number that no sender gets to.
    pub late: u64,
    /// Messages whose segments stopped coming, given up after the time-out.
    pub timed_out: u64,
    /// Messages given up to make room for newer ones of the same peer.
    pub evicted: u64,
    /// Messages given up because their peer began anew or was removed.
    pub abandoned: u64,
    /// Segments and messages dropped because no page was free to put them together in.
    pub without_page: u64,
    /// Messages of peers that were not delivered, by the gaps in their numbers. They are noticed when some four thousand
    /// newer ones have come, and include those given up.
    pub messages_lost: u64,
    /// Messages of which a part or all was asked for; one that is asked for again counts again.
    pub asked: u64,
    /// How often one message was asked for at most.
    pub asked_most: u64,
    /// Asks of peers that were answered, in part or fully.
    pub asks_answered: u64,
    /// Asks of peers for messages that are forgotten, or never were, or were sent again too often; for what waits to be sent.
    pub asks_refused: u64,
    /// Datagrams sent again because they were asked for.
    pub repeated: u64,
    /// Datagrams sent again because nothing was acknowledged for a time.
    pub retransmitted: u64,
    /// Messages given up: they were sent again as often as allowed without an acknowledgement, or their peer was
    /// removed before it acknowledged them.
    pub unacknowledged: u64,
    /// Acknowledgements of what was not sent, or in another life.
    pub acknowledgements_refused: u64,
    /// Messages delivered where the kernel has put them.
    pub delivered_in_place: u64,
    /// Messages delivered after one copy, because their segments did not come side by side.
    pub delivered_by_copy: u64,
}

impl UdpCounters {
    /// All datagrams that came and were of no use.
    pub fn refused(&self) -> u64 {
        self.foreign
            + self.oversized
            + self.not_ours
            + self.not_proved
            + self.corrupt
            + self.contradictory
            + self.other_segment_len
            + self.stale
            + self.duplicates
            + self.late
    }
}
