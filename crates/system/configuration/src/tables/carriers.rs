//! What carries each type of message between processes `[EB2007 §II-B.4]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::system::{Connections, Transport};

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
}

impl MessageType {
    /// All types.
    pub const ALL: [Self; 14] = [
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
        }
    }
}

impl Transport {
    /// What carries a type of message.
    pub fn way(&self, of: MessageType) -> Way {
        let one = |carrier: Carrier| match carrier {
            Carrier::Connection => self.connections.way(),
            Carrier::Tcp => Way::Tcp,
            Carrier::Shm => Way::Shm,
            Carrier::Udp => Way::Udp,
        };
        let group = |carrier: GroupCarrier| match carrier {
            GroupCarrier::Connection => self.connections.way(),
            GroupCarrier::Tcp => Way::Tcp,
            GroupCarrier::Shm => Way::Shm,
            GroupCarrier::Udp => Way::Udp,
            GroupCarrier::Multicast => Way::Multicast,
        };
        let ordered = |carrier: OrderedCarrier| match carrier {
            OrderedCarrier::Connection => self.connections.way(),
            OrderedCarrier::Tcp => Way::Tcp,
            OrderedCarrier::Shm => Way::Shm,
        };
        match of {
            MessageType::EventRequest => one(self.event_request),
            MessageType::EventReply => one(self.event_reply),
            MessageType::Pushed => one(self.pushed.unwrap_or(self.event_reply)),
            MessageType::Credit => one(self.credit),
            MessageType::Push => group(self.push.unwrap_or(self.clear)),
            MessageType::RoiRequest => one(self.roi_request),
            MessageType::RoiReply => one(self.roi_reply),
            MessageType::Collected => one(self.collected),
            MessageType::Clear => group(self.clear),
            MessageType::Level1 => ordered(self.level1),
            MessageType::Level2 => ordered(self.level2),
            MessageType::Building => ordered(self.building),
            MessageType::Filter => ordered(self.filter),
            MessageType::Recording => ordered(self.recording),
        }
    }

    /// Whether some type of message travels in datagrams.
    pub fn has_datagrams(&self) -> bool {
        self.any_goes_by(|way| matches!(way, Way::Udp | Way::Multicast))
    }

    /// Whether some type of message travels to all read-out systems at once.
    pub fn has_multicasts(&self) -> bool {
        self.any_goes_by(|way| way == Way::Multicast)
    }

    /// Whether some message travels through shared memory.
    pub fn has_shared_memory(&self) -> bool {
        self.connections == Connections::Shm || self.any_goes_by(|way| way == Way::Shm)
    }

    /// Whether data of read-out systems travel through shared memory, where they can be read in the pages of the links.
    pub fn shares_fragments(&self) -> bool {
        [MessageType::EventReply, MessageType::Pushed, MessageType::RoiReply]
            .into_iter()
            .any(|of| self.way(of) == Way::Shm)
    }

    fn any_goes_by(&self, is_one: impl Fn(Way) -> bool) -> bool {
        MessageType::ALL.into_iter().any(|of| is_one(self.way(of)))
    }
}

impl Connections {
    /// What a message goes by that nothing else is said of.
    pub const fn way(self) -> Way {
        match self {
            Self::Tcp => Way::Tcp,
            Self::Shm => Way::Shm,
        }
    }
}
