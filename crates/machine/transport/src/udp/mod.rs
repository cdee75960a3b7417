//! UDP and multicast, for messages that may be lost `[EB2007 §II-B.4]`: data requests, replies, clears.
//!
//! An [`Endpoint`] is one socket that exchanges frames with any number of peers. One system call brings datagrams
//! of many peers, and 160 peers cost one descriptor. Its calls are those of a [`Link`](crate::link::Link), with a
//! peer beside each frame. A frame is cut into datagrams of a
//! configured length, and the receiver puts it together again.
//!
//! # What is promised
//! A frame that is delivered is whole, undamaged, and made with the partition's key. It is delivered once within
//! the newest 4096 messages of its sender; an older one that comes late is dropped and counted. Nothing else is
//! promised: frames are lost, and overtake one another.
//!
//! A receiver that does not keep up does not hold its sender up. The kernel drops what does not fit in the receive
//! buffer, and the drop is counted. Credits of the protocol above have to bound what is on the way. The buffers
//! that the kernel granted ([`Endpoint::buffers`]) have to hold it.
//!
//! # What is missing
//! If [`UdpOptions::ask_after`] is set, a receiver asks by name for segments that have not come for that time. It
//! also asks for messages that the numbers of later ones show to be missing. Nothing later tells that the last
//! message is lost. So a sender that has nothing more to send says how many there were, until the receiver answers
//! that all have come. It says so after ever longer pauses, all shorter than [`UdpOptions::incomplete_timeout`].
//!
//! Senders keep what they have sent until the receiver says that it has come, within
//! [`UdpOptions::keep_parts_max`]. What is forgotten is not sent again, and a repeated ask is answered a bounded
//! number of times.
//!
//! Of a message of more than a mebibyte no more is sent unasked. Its receiver asks for the rest in parts that its
//! receive buffer holds, each when the last has come. So long messages of several senders do not push each other
//! out of it. If such a message has to make room for newer ones, its rest is sent before it is forgotten.
//!
//! What is sent to a group is not asked for. Nothing is promised by this: who needs a reply still has a time-out.
//!
//! # With acknowledgements
//! With [`UdpOptions::acknowledged`] each frame to one peer is delivered once and in order `[ATM1997 §III]`. A
//! sender has no more than a window under way; what goes beyond waits. One bound, [`UdpOptions::queue_bytes_max`],
//! holds for what waits for all peers together, so that a receiver that stops can use it up. Then
//! [`Endpoint::send`] refuses what would wait, to any peer, and counts it. What fits its peer's window still goes.
//!
//! A receiver acknowledges what each fill brings: all below some number, and which of those beyond have come. What
//! nobody acknowledges for a time is sent again, ever more patiently. After so many times the sender gives it up,
//! counts it, and tells the receiver not to wait for it. Asking for what is missing goes on beside that, and is the
//! quicker.
//!
//! Acknowledgements of what was not sent, or was sent in another life, are refused and counted. What is sent to a
//! group is not acknowledged.
//!
//! # Bounds
//! Datagrams from addresses that are no peer's and those that do not prove the key are counted and forgotten. Of
//! each peer a bounded number of messages and bytes may be incomplete. The one that waits longest makes room for
//! newer ones, and what stops coming is given up after a time-out. Segments stay where the kernel wrote them until
//! their message is complete. So nothing is allocated by what a peer announces; the pages come out of the pool
//! given.
//!
//! # Authenticity
//! Each header has a keyed tag over the header, the payload, and who sends to whom in which lives. What is damaged,
//! forged, or was said in another run, life or to another receiver is refused and counted; what is repeated is a
//! duplicate. A peer's connection says in which life it is ([`Endpoint::add_peer_in_life`]), no datagram does. With
//! [`Authenticate::Header`] the tag covers the header alone, and a CRC-32 may cover the payload.
//!
//! UDP's own 16-bit sum misses one error of 65,536 that Ethernet's misses too, such as those made inside a switch.
//! Between two processes of a host the kernel neither computes nor checks it, since nothing is sent over wires.
//! There [`UdpOptions::checksum_payload`] may be off.
//!
//! # Copies
//! Sending makes none but of parts below `copy_below`. Receiving makes none if the segments of a message come in a
//! row and in one call, else one. The kernel's joining of datagrams (GRO) makes the former the rule.
//!
//! # Example
//!
//! ```
//! use base::bulk::Bulk;
//! use transport::clock;
//! use transport::frame::FrameLimits;
//! use transport::page_pool::{Pool, PoolOptions};
//! use transport::udp::{Endpoint, UdpOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::new(&PoolOptions { name: "receive".into(), page_len: 64 << 10, pages: 8, prefault: false })?;
//! let options = UdpOptions::new(FrameLimits::new(8, 64 << 10)?, [1; 16]);
//! let mut ros = Endpoint::bind("127.0.0.1:0".parse()?, &options, &pool)?;
//! let mut sfi = Endpoint::bind("127.0.0.1:0".parse()?, &options, &pool)?;
//! let to_sfi = ros.add_peer(sfi.local_address())?;
//! let from_ros = sfi.add_peer(ros.local_address())?;
//!
//! let mut head = [0; 9000];
//! head[..4].copy_from_slice(&u32::to_le_bytes(9000));
//! ros.send(to_sfi, &head, &Bulk::empty())?;
//! ros.flush(clock::now());
//! sfi.fill(clock::now())?;
//! let (peer, frame) = sfi.next_frame().expect("nothing is lost between empty buffers of a host");
//! assert_eq!((peer, frame.len()), (from_ros, 9000));
//! # Ok(()) }
//! ```

mod acknowledged;
mod asking;
mod conversation;
mod counters;
mod endpoint;
mod header;
mod in_order;
mod intake;
mod kept;
mod options;
mod outbox;
mod peer;
mod reassembly;
mod segment;
mod socket;
pub mod system;
mod unasked;
mod window;

#[doc(hidden)]
pub use conversation::check_any_conversation;
pub use counters::UdpCounters;
pub use endpoint::{Endpoint, IncompleteMessage, QueueFull};
pub use options::{
    Acknowledged, Authenticate, DATAGRAM_LEN_ETHERNET, DATAGRAM_LEN_LOOPBACK, InvalidOptions, MulticastOptions,
    PartitionKey, SocketBuffers, UdpOptions,
};
pub use peer::{PeerId, TooManyRemoved};
