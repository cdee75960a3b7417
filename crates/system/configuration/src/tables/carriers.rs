//! What carries each type of message between processes `[EB2007 §II-B.4]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What carries a type of message that may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// A connection of the kind of `connections`.
    #[default]
    Connection,
    /// A TCP connection.
    Tcp,
    /// Memory that the processes of this host share.
    Shm,
    /// Datagrams.
    Udp,
}

/// What carries a type of message that goes to all read-out systems and may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupCarrier {
    /// A connection to each read-out system, of the kind of `connections`.
    #[default]
    Connection,
    /// A TCP connection to each read-out system.
    Tcp,
    /// Memory that is shared with each read-out system of this host.
    Shm,
    /// Datagrams to each read-out system.
    Udp,
    /// One datagram to all read-out systems.
    Multicast,
}

/// What carries messages that must neither be lost nor overtake one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrderedCarrier {
    /// A connection of the kind of `connections`.
    #[default]
    Connection,
    /// A TCP connection.
    Tcp,
    /// Memory that the processes of this host share.
    Shm,
}

/// What a type of message goes by, once the defaults are put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// A TCP connection.
    Tcp,
    /// Shared memory.
    Shm,
    /// Datagrams to one receiver.
    Udp,
    /// A datagram to all read-out systems.
    Multicast,
}

/// What has a key of its own in `[transport]`: a type of message that may be lost, or all ordered messages between some roles.
/// The latter share a key because what their sender says in one order must come in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageType {
    /// Requests for building.
    EventRequest,
    /// Replies to them.
    EventReply,
    /// Data for building that nobody asked for.
    Pushed,
    /// Byte credits for them.
    Credit,
    /// Orders to push.
    Push,
    /// Requests of level 2.
    RoiRequest,
    /// Replies to them.
    RoiReply,
    /// What level 2 collected.
    Collected,
    /// Clears.
    Clear,
    /// Between level 1 and those that take its triggers.
    Level1,
    /// Among supervisors, units of level 2, pROS and DFM.
    Level2,
    /// Between the DFM and event builders or read-out systems.
    Building,
    /// Between event builders, or the DFM, and the event filter.
    Filter,
    /// Between event filter and recorders.
    Recording,
    /// Inside a read-out crate, its data with them.
    Roc,
}

impl MessageType {
    /// All types.
    pub const ALL: [Self; 15] = [
        Self::EventRequest,
        Self::EventReply,
        Self::Pushed,
        Self::Credit,
        Self::Push,
        Self::RoiRequest,
        Self::RoiReply,
        Self::Collected,
        Self::Clear,
        Self::Level1,
        Self::Level2,
        Self::Building,
        Self::Filter,
        Self::Recording,
        Self::Roc,
    ];

    /// The key that chooses its carrier.
    pub const fn key(self) -> &'static str {
        match self {
            Self::EventRequest => "transport.event_request",
            Self::EventReply => "transport.event_reply",
            Self::Pushed => "transport.pushed",
            Self::Credit => "transport.credit",
            Self::Push => "transport.push",
            Self::RoiRequest => "transport.roi_request",
            Self::RoiReply => "transport.roi_reply",
            Self::Collected => "transport.collected",
            Self::Clear => "transport.clear",
            Self::Level1 => "transport.level1",
            Self::Level2 => "transport.level2",
            Self::Building => "transport.building",
            Self::Filter => "transport.filter",
            Self::Recording => "transport.recording",
            Self::Roc => "transport.roc",
        }
    }
}
