//! `[transport.udp]`: how datagrams are made.

use core::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use crate::units::{Interval, Size};

/// `[transport.udp]`: how datagrams are made, for the messages that travel in them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Udp {
    /// Length of a full datagram with its header of 40 bytes: 256 B to 65507 B. By default so much as the network carries in one
    /// piece. That is 65507 B where `transport.host` is a loopback address, else 1472 B, or 1452 B over IPv6, as Ethernets do.
    pub datagram: Option<Size>,
    /// What the keyed tag of each datagram covers. It is made with a key of this run alone.
    pub authenticate: Authenticate,
    /// Whether a CRC-32 covers the payload where `authenticate = "header"`: the tag finds damage as well. By default unless
    /// `transport.host` is a loopback address, where nothing is sent over wires.
    pub checksum: Option<bool>,
    /// Whether the kernel cuts what is sent into datagrams and joins what is received, where it can.
    pub offload: bool,
    /// A receiver asks for the missing part of a message, by name, when nothing of it has come for this time. `"0 s"`: it
    /// never asks, and only the time-outs of requests help.
    pub ask_after: Interval,
    /// Most bytes that may be on their way to one endpoint without an acknowledgement. Each message is then delivered
    /// once and in order, and sent again until it is acknowledged [ATM1997 §III]. Messages beyond the window wait in
    /// their process, within one bound for all endpoints together, that of the credits. Those that do not fit are
    /// dropped and counted (`not_sent` in the summary), and time-outs of requests help. Without the key nothing is
    /// acknowledged, and what is lost is asked for. Multicasts never are acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Size>,
    /// With `window`, messages are sent again when nothing of them was acknowledged for this time. They go again after
    /// twice as long, up to sixteen times as long.
    pub retransmit_after: Interval,
    /// What was sent again so often is given up, with `window`; the time-outs of requests help then.
    pub retransmits: u32,
    /// Multicast group of the read-out systems.
    #[serde(deserialize_with = "group")]
    #[schemars(with = "String")]
    pub group: Ipv4Addr,
    /// Port of the group; 0 for one of the system's choice in each run.
    pub port: u16,
    /// How many networks a multicast may cross: 0 stays on this host, 1 on the network.
    pub ttl: u8,
    /// IP address of the interface that multicasts go through; by default `transport.host`.
    #[serde(deserialize_with = "interface", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub interface: Option<Ipv4Addr>,
}

/// `transport.udp.authenticate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Authenticate {
    /// Header and payload: nobody without the key can say anything in the name of an application, nor repeat what it has said. Costs
    /// some 40 ns for each datagram and 0.06 ns for each byte, at both ends.
    #[default]
    Everything,
    /// The header alone, for closed networks. An attacker who can read a datagram and send in the name of its sender
    /// can put other contents behind its header.
    Header,
}

impl Default for Udp {
    fn default() -> Self {
        Self {
            datagram: None,
            authenticate: Authenticate::Everything,
            checksum: None,
            offload: true,
            ask_after: Interval::from_ms(2),
            window: None,
            retransmit_after: Interval::from_ms(20),
            retransmits: 10,
            group: Ipv4Addr::new(239, 192, 0, 1),
            port: 0,
            ttl: 1,
            interface: None,
        }
    }
}

fn group<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ipv4Addr, D::Error> {
    let text = String::deserialize(deserializer)?;
    let address = text.parse().ok().filter(Ipv4Addr::is_multicast);
    address.ok_or_else(|| {
        de::Error::custom(format!("expected a multicast group from 224.0.0.0 to 239.255.255.255, found {text:?}"))
    })
}

fn interface<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Ipv4Addr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|_| {
        de::Error::custom(format!("expected the IPv4 address of an interface such as \"127.0.0.1\", found {text:?}"))
    })
}

/// The shortest datagram: a header, and enough payload that the bookkeeping is small beside it.
pub(crate) const DATAGRAM_MIN: u64 = 256;

/// The longest datagram of IPv4.
pub(crate) const DATAGRAM_LOOPBACK_MAX: u64 = 65_507;
pub(crate) const DATAGRAM_ETHERNET_V4: u64 = 1472;
pub(crate) const DATAGRAM_ETHERNET_V6: u64 = 1452;
