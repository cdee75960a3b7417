//! `[transport]`: how applications talk to each other.

use core::net::{IpAddr, Ipv4Addr};

use schemars::JsonSchema;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use super::carriers::{Carrier, GroupCarrier, MessageType, OrderedCarrier, Way};
use super::datagrams::{Authenticate, DATAGRAM_ETHERNET_V4, DATAGRAM_ETHERNET_V6, DATAGRAM_LOOPBACK_MAX, Udp};
use crate::units::Size;

/// `[transport]`: how applications talk to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Transport {
    /// Size of a receive page; the largest reply must fit into one.
    pub page_size: Size,
    /// Receive pages of each process.
    pub pages: u32,
    /// What a scheduler does while there is no work.
    pub idle: Idle,
    /// IP address that sockets bind to and connect to.
    #[serde(deserialize_with = "ip_address")]
    #[schemars(with = "String")]
    pub host: IpAddr,
    /// Send and receive buffer of each socket, at most 1 GiB; without it the kernel decides.
    pub socket_buffer: Option<Size>,
    /// TCP congestion control by its kernel name, such as `cubic`. Without it the kernel decides, but connections between
    /// loopback addresses have `reno`, which spaces no packets.
    pub congestion: Option<String>,
    /// Messages below this size are copied together rather than sent as a list of parts.
    pub copy_below: Size,
    /// How applications in processes of their own are connected: what carries all messages for which no key below says otherwise.
    pub connections: Connections,
    /// What carries triggers, and what answers them: all ordered messages between level 1 and read-out systems, level 2 or
    /// the DFM.
    pub level1: OrderedCarrier,
    /// What carries assignments, decisions and results of level 2: all ordered messages among its supervisors and units, the pROS
    /// and the DFM.
    pub level2: OrderedCarrier,
    /// What carries assignments of events to builders, their ends and grants: all ordered messages between the DFM and event
    /// builders or read-out systems.
    pub building: OrderedCarrier,
    /// What carries built events to the event filter, and their fates back.
    pub filter: OrderedCarrier,
    /// What carries events to recorders, and word of them back.
    pub recording: OrderedCarrier,
    /// What carries all messages inside a read-out crate, and how its data are collected. `shm` leaves fragments in the
    /// pages of the read-out systems until they have left the crate; `tcp` moves them to the EBIF.
    pub roc: OrderedCarrier,
    /// What carries requests for building between processes.
    pub event_request: Carrier,
    /// What carries the replies to them.
    pub event_reply: Carrier,
    /// What carries data that read-out systems push; by default what `event_reply` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed: Option<Carrier>,
    /// What carries the byte credits for what is pushed.
    pub credit: Carrier,
    /// What carries orders to push to the read-out systems; by default what `clear` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<GroupCarrier>,
    /// What carries requests of level 2 for regions of interest.
    pub roi_request: Carrier,
    /// What carries the replies to them.
    pub roi_reply: Carrier,
    /// What carries the data that level 2 collected on to event builders.
    pub collected: Carrier,
    /// What carries clears to the read-out systems.
    pub clear: GroupCarrier,
    /// How datagrams are made.
    pub udp: Udp,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            page_size: Size::from_bytes(1_000_000),
            pages: 64,
            idle: Idle::Park,
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            socket_buffer: None,
            congestion: None,
            copy_below: Size::from_bytes(2000),
            connections: Connections::Tcp,
            level1: OrderedCarrier::Connection,
            level2: OrderedCarrier::Connection,
            building: OrderedCarrier::Connection,
            filter: OrderedCarrier::Connection,
            recording: OrderedCarrier::Connection,
            roc: OrderedCarrier::Connection,
            event_request: Carrier::Connection,
            event_reply: Carrier::Connection,
            pushed: None,
            credit: Carrier::Connection,
            push: None,
            roi_request: Carrier::Connection,
            roi_reply: Carrier::Connection,
            collected: Carrier::Connection,
            clear: GroupCarrier::Connection,
            udp: Udp::default(),
        }
    }
}

/// What a scheduler does while there is no work [L2SCI2000 §3.1].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// Polls on: shortest reaction, a whole processor core. Where processes outnumber cores it lets others run every 50 µs.
    Spin,
    /// Lets other threads run, then polls on.
    Yield,
    /// Lets other threads run for a while, then sleeps until something arrives.
    #[default]
    Park,
}

/// The kind of the ordered, lossless connections between applications. Run control and a process that hosts nothing else
/// always use TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// TCP.
    #[default]
    Tcp,
    /// Memory that the processes of this host share; bulk is read where it was written.
    Shm,
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
            MessageType::Roc => ordered(self.roc),
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
        [MessageType::EventReply, MessageType::Pushed, MessageType::RoiReply, MessageType::Roc]
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
impl Transport {
    /// Length of a full datagram in bytes.
    pub fn datagram_len(&self) -> u64 {
        let by_default = match self.host {
            host if host.is_loopback() => DATAGRAM_LOOPBACK_MAX,
            IpAddr::V4(_) => DATAGRAM_ETHERNET_V4,
            IpAddr::V6(_) => DATAGRAM_ETHERNET_V6,
        };
        self.udp.datagram.map_or(by_default, Size::bytes)
    }

    /// Whether a CRC covers the payload of datagrams.
    pub fn has_checksums(&self) -> bool {
        self.udp.authenticate == Authenticate::Header && self.udp.checksum.unwrap_or(!self.host.is_loopback())
    }

    /// The interface that multicasts go through; `None` where there can be none, over IPv6.
    pub fn multicast_interface(&self) -> Option<Ipv4Addr> {
        match self.host {
            IpAddr::V4(host) => Some(self.udp.interface.unwrap_or(host)),
            IpAddr::V6(_) => None,
        }
    }
}

fn ip_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IpAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_address(&text).map_err(de::Error::custom)
}

/// A list of IP addresses.
pub(super) fn ip_addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpAddr>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| parse_address(text)).collect::<Result<_, _>>().map_err(de::Error::custom)
}

fn parse_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("expected an IP address such as \"127.0.0.1\", found {text:?}"))
}
