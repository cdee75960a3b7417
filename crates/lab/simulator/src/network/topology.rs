//! What a network is made of: plain data, from a configuration or from one of the constructors.

use thiserror::Error;

use super::HostId;

/// Ports, switches and what connects them.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The port with number `i` is `ports[i]`.
    pub ports: Vec<Port>,
    /// The switch with number `i` is `switches[i]`.
    pub switches: Vec<Switch>,
    /// Connections between switches.
    pub trunks: Vec<Trunk>,
    /// Largest length of an IP packet on all links.
    pub mtu_bytes: u32,
    /// Headers of each datagram besides that of IP. 8 are those of UDP; Weir's own datagrams have 40 more.
    pub udp_header_bytes: u32,
    /// Behaviour of TCP, the same in all hosts.
    pub tcp: Tcp,
}

/// A switch, by its place in [`Topology::switches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SwitchId(pub u16);

/// A port of a host, and where its cable goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Port {
    /// The switch it is connected to.
    pub switch: SwitchId,
    /// The cable.
    pub link: Link,
}

/// A full-duplex cable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Rate in each direction.
    pub bits_per_s: u64,
    /// Time that a bit takes from end to end: 5 ns per metre.
    pub delay_ns: u64,
}

/// A store-and-forward switch with a queue at each output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switch {
    /// Time from the last bit of a frame in to the first bit out, with nothing in the way.
    pub latency_ns: u64,
    /// Where frames wait.
    pub buffer: Buffer,
}

/// Memory of a switch. A frame that finds no room is dropped: tail drop. A frame has its room from when its last bit is in
/// until its last bit has reached the next switch or host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buffer {
    /// Room for the frames of all outputs together.
    pub shared_bytes: u64,
    /// Room for the frames of one output.
    pub port_bytes: u64,
    /// Memory is given out in cells of this size; 1 if it is not.
    pub cell_bytes: u32,
}

/// One or more parallel cables between two switches. All frames from one port to another take the same cable. A hash of
/// the two chooses it, as link aggregation does to keep their order [IEEE 802.1AX].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trunk {
    /// One end.
    pub one: SwitchId,
    /// The other end.
    pub other: SwitchId,
    /// Each cable.
    pub link: Link,
    /// Number of cables.
    pub cables: u16,
}

/// Ports that are connected alike, for [`Topology::two_level`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// How many.
    pub ports: u16,
    /// Cables from their edge switch to the central one; none if they are connected to that one.
    pub cables: Option<u16>,
}

/// Constants of TCP. The defaults are those of Linux today.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tcp {
    /// Headers of each segment besides that of IP: 20, and 12 for time stamps.
    pub header_bytes: u32,
    /// Window of a new or idle connection, in segments [RFC 6928].
    pub initial_window_segments: u32,
    /// What a receiver is ready to take beyond what it has acknowledged.
    pub receive_window_bytes: u64,
    /// Least time without an acknowledgement after which the first segment is sent again.
    pub retransmission_timeout_ms_min: u64,
    /// How long a receiver keeps back the acknowledgement of a single segment.
    pub delayed_ack_ms: u64,
}

/// Why a topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// A switch that does not exist.
    #[error("{what} names switch {switch}, but there are {switches}, counted from 0")]
    NoSuchSwitch {
        /// Who names it.
        what: String,
        /// Its number.
        switch: u16,
        /// How many there are.
        switches: usize,
    },
    /// No way between two ports.
    #[error("port {to} cannot be reached from switch {from}: connect the switches by trunks")]
    Unconnected {
        /// A switch.
        from: usize,
        /// The port.
        to: usize,
    },
    /// A rate that no frame takes a whole number of picoseconds per byte at.
    #[error("{what} has a rate of {bits_per_s} bit/s: expected 1 kb/s to 8 Tb/s")]
    Rate {
        /// Whose.
        what: String,
        /// The rate.
        bits_per_s: u64,
    },
    /// Too many of something.
    #[error("{count} {what}: at most {max} can be numbered")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// Headers leave no room for data.
    #[error("an MTU of {mtu_bytes} bytes leaves no room beside headers: expected {min} to 65535")]
    Mtu {
        /// The length.
        mtu_bytes: u32,
        /// The least that works.
        min: u32,
    },
    /// Without any cable.
    #[error("trunk {trunk} has no cables: at least 1")]
    NoCable {
        /// Its place.
        trunk: usize,
    },
}

impl Topology {
    /// Ports on one switch, with Gigabit Ethernet and room for 1 MB in the switch.
    pub fn star(ports: u16) -> Self {
        Self::new(vec![Port::gigabit(SwitchId(0)); usize::from(ports)], vec![Switch::default()], Vec::new())
    }

    /// Edge switches around a central one, as in [EB2007 Fig. 1]: ports have Gigabit Ethernet, cables between switches
    /// 10 Gigabit Ethernet. Ports are numbered group after group.
    pub fn two_level(groups: &[Group], edge: Switch, centre: Switch) -> Self {
        let (mut ports, mut switches, mut trunks) = (Vec::new(), vec![centre], Vec::new());
        let at_centre = SwitchId(0);
        for group in groups {
            let mut at = at_centre;
            if let Some(cables) = group.cables {
                at = SwitchId(u16::try_from(switches.len()).unwrap_or(u16::MAX));
                switches.push(edge);
                trunks.push(Trunk { one: at, other: at_centre, link: Link::TEN_GIGABIT, cables });
            }
            ports.extend(std::iter::repeat_n(Port::gigabit(at), usize::from(group.ports)));
        }
        Self::new(ports, switches, trunks)
    }

    /// Parts with what is usual on Ethernet for the rest.
    pub fn new(ports: Vec<Port>, switches: Vec<Switch>, trunks: Vec<Trunk>) -> Self {
        Self { ports, switches, trunks, mtu_bytes: 1500, udp_header_bytes: 48, tcp: Tcp::default() }
    }

    /// All ports, in order.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..u16::try_from(self.ports.len()).unwrap_or(u16::MAX)).map(HostId)
    }

    /// Whether it can be built.
    ///
    /// # Errors
    /// Switches that do not exist, rates that make no sense, too many parts. That all ports can reach each other is found
    /// when the network is made.
    pub fn check(&self) -> Result<(), TopologyError> {
        let most = usize::from(u16::MAX);
        for (what, count) in [("ports", self.ports.len()), ("switches", self.switches.len())] {
            if count > most {
                return Err(TopologyError::TooMany { what, count, max: most });
            }
        }
        for (index, port) in self.ports.iter().enumerate() {
            self.check_switch(port.switch, || format!("port {index}"))?;
            port.link.check(|| format!("the link of port {index}"))?;
        }
        for (index, trunk) in self.trunks.iter().enumerate() {
            self.check_switch(trunk.one, || format!("trunk {index}"))?;
            self.check_switch(trunk.other, || format!("trunk {index}"))?;
            trunk.link.check(|| format!("trunk {index}"))?;
            if trunk.cables == 0 {
                return Err(TopologyError::NoCable { trunk: index });
            }
        }
        let min = 21 + self.udp_header_bytes.max(self.tcp.header_bytes);
        if !(min..=65535).contains(&self.mtu_bytes) {
            return Err(TopologyError::Mtu { mtu_bytes: self.mtu_bytes, min });
        }
        Ok(())
    }

    fn check_switch(&self, switch: SwitchId, what: impl Fn() -> String) -> Result<(), TopologyError> {
        if usize::from(switch.0) < self.switches.len() {
            return Ok(());
        }
        Err(TopologyError::NoSuchSwitch { what: what(), switch: switch.0, switches: self.switches.len() })
    }
}

impl Port {
    /// A port of Gigabit Ethernet on 20 m of cable.
    pub const fn gigabit(switch: SwitchId) -> Self {
        Self { switch, link: Link::GIGABIT }
    }
}

impl Link {
    /// Gigabit Ethernet on 20 m of cable.
    pub const GIGABIT: Self = Self { bits_per_s: 1_000_000_000, delay_ns: 100 };

    /// 10 Gigabit Ethernet on 100 m of fibre.
    pub const TEN_GIGABIT: Self = Self { bits_per_s: 10_000_000_000, delay_ns: 500 };

    fn check(&self, what: impl Fn() -> String) -> Result<(), TopologyError> {
        if (1_000..=8_000_000_000_000).contains(&self.bits_per_s) {
            return Ok(());
        }
        Err(TopologyError::Rate { what: what(), bits_per_s: self.bits_per_s })
    }
}

impl Default for Switch {
    /// 5 µs and 1 MB for all outputs.
    fn default() -> Self {
        Self { latency_ns: 5_000, buffer: Buffer { shared_bytes: 1 << 20, port_bytes: u64::MAX, cell_bytes: 1 } }
    }
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            header_bytes: 32,
            initial_window_segments: 10,
            receive_window_bytes: 4 << 20,
            retransmission_timeout_ms_min: 200,
            delayed_ack_ms: 40,
        }
    }
}
