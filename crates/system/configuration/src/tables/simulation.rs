//! `[simulation]`: what `weir sim` needs to know of hosts and networks besides the partition itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Fraction, Interval, Size};

/// `[simulation]`: the machines and networks that `weir sim` puts the partition on. `weir run` does not look at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Simulation {
    /// Where applications live.
    pub layout: Layout,
    /// Processor cores of each host.
    pub cores: u32,
    /// What connects hosts.
    pub topology: Topology,
    /// Roles whose hosts are on edge switches, in a two-level network; the others are on the central switch.
    pub edge_roles: Vec<String>,
    /// Hosts on each edge switch.
    pub edge_hosts: u32,
    /// On a farm, roles whose hosts have a second port, at the central switch. Messages between two such hosts take it,
    /// as with a network of its own between event builders and the event filter.
    pub second_port_roles: Vec<String>,
    /// Rate of the link of each host, in Mbit/s: 1 to 1000000.
    pub link_mbit_per_s: u32,
    /// Rate of each cable between switches, in Mbit/s: 1 to 1000000.
    pub trunk_mbit_per_s: u32,
    /// Cables between an edge switch and the central one.
    pub trunk_cables: u32,
    /// From the last bit of a frame into a switch to its first bit out, with nothing in the way.
    pub switch_latency: Interval,
    /// Memory of a switch for the frames of all its outputs.
    pub switch_buffer: Size,
    /// Most of it that the frames of one output may take.
    pub port_buffer: Size,
    /// Length of the largest IP packet in bytes: 256 to 65535.
    pub mtu: u32,
    /// Headers of a datagram besides that of IP, in bytes: 8 are those of UDP, 40 more those of Weir.
    pub datagram_header: u32,
    /// Window of each TCP connection: what may be on its way.
    pub tcp_window: Size,
    /// Fraction of frames that are lost, or so damaged that their check sequence tells, which is the same.
    pub frame_loss: Fraction,
    /// Fraction of frames that are damaged where their check sequence does not tell, as in the memory of a switch. TCP
    /// sends them again; a message in datagrams is refused, and counts as malformed.
    pub frame_corruption: Fraction,
    /// Fraction of frames that come twice; multicast ones excepted. A message in one datagram is then heard twice.
    pub frame_duplication: Fraction,
    /// Each frame is late by a random time below this, and may be overtaken.
    pub frame_jitter: Interval,
    /// Fraction of frames that are held up for a random time below `frame_delay_max`.
    pub frame_delay: Fraction,
    /// The longest time for which a frame is held up.
    pub frame_delay_max: Interval,
    /// Fraction of messages in datagrams that come once more as of a former life of their sender. They are refused, and count as
    /// stale.
    pub message_stale: Fraction,
    /// Fraction of messages in datagrams that come once more as of another run. They are refused, and count as stale.
    pub message_wrong_run: Fraction,
    /// What a message takes between applications of one host, and a piece of work to another thread and back.
    pub handover: Interval,
    /// What the event filter takes to decide on an event.
    pub processing: Interval,
    /// Bytes that each recorder's disk takes in a second; without it writing takes no time.
    pub disk_per_s: Option<Size>,
    /// What the driver of a process costs, see `weir calibrate`: processes then take their inputs in passes over all that is
    /// there, as live. Without it each input is taken by itself.
    pub driver: Option<Driver>,
    /// Processor time of inputs: for a role and a kind of input, the last that fits counts.
    pub cost: Vec<InputCost>,
    /// What goes wrong.
    pub fault: Vec<SimulatedFault>,
}

impl Default for Simulation {
    fn default() -> Self {
        Self {
            layout: Layout::Process,
            cores: 2,
            topology: Topology::Star,
            edge_roles: vec!["ros".to_owned()],
            edge_hosts: 20,
            second_port_roles: Vec::new(),
            link_mbit_per_s: 1_000,
            trunk_mbit_per_s: 10_000,
            trunk_cables: 1,
            switch_latency: Interval::from_ns(5_000),
            switch_buffer: Size::from_bytes(1 << 20),
            port_buffer: Size::from_bytes(1 << 20),
            mtu: 1_500,
            datagram_header: 48,
            tcp_window: Size::from_bytes(4 << 20),
            frame_loss: Fraction::default(),
            frame_duplication: Fraction::default(),
            frame_jitter: Interval::default(),
            frame_corruption: Fraction::default(),
            frame_delay: Fraction::default(),
            frame_delay_max: Interval::from_ms(10),
            message_stale: Fraction::default(),
            message_wrong_run: Fraction::default(),
            handover: Interval::from_ns(500),
            processing: Interval::default(),
            disk_per_s: None,
            driver: None,
            cost: Vec::new(),
            fault: Vec::new(),
        }
    }
}

/// Where applications live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// All in one process on one host, as with `weir run`.
    #[default]
    Process,
    /// Each in a process of its own on one host, as with `weir run --processes`.
    Processes,
    /// Each in a process of its own on the host that `[[host]]` gives it. This is the default where there are hosts.
    Hosts,
    /// Each on a host of its own; level 1 has links of its own to all that hear of triggers.
    Farm,
}

/// What connects hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// One switch.
    #[default]
    Star,
    /// Edge switches around a central one `[EB2007 Fig. 1]`.
    TwoLevel,
}

/// `[simulation.driver]`: processor time that the driver of a process takes besides the inputs of its components, and how
/// processes share cores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Driver {
    /// A pass over all that is there.
    pub pass: Interval,
    /// Of a pass, each component of the process.
    pub pass_component: Interval,
    /// Of a pass, each connection of the process.
    pub pass_connection: Interval,
    /// A message to a component of the same process.
    pub local: Interval,
    /// A message that is put into the queue of a connection.
    pub encode: Interval,
    /// A message that is taken out of what a connection has brought.
    pub decode: Interval,
    /// Taking in what a connection has brought.
    pub read: Interval,
    /// Each kibibyte of it.
    pub read_kib: Interval,
    /// Writing to a connection.
    pub write: Interval,
    /// Each kibibyte that is written.
    pub write_kib: Interval,
    /// What all that is written at once costs more, sender and receiver together, where these are on different cores.
    pub far: Interval,
    /// Each kibibyte of it.
    pub far_kib: Interval,
    /// From the end of a pass until what it wrote can be read elsewhere on the host.
    pub latency: Interval,
    /// From then until a process that sleeps runs.
    pub wake: Interval,
    /// Processor time of falling asleep and waking up.
    pub sleep: Interval,
    /// Processor time of another process on a core.
    pub switch: Interval,
    /// How long a process keeps a core that others wait for; at least 1 us.
    pub slice: Interval,
    /// With `transport.connections = "shm"`, what is otherwise; without it all costs what it does over TCP.
    pub shm: Option<Carrying>,
    /// What is otherwise for messages that travel in datagrams; without it they cost what they do over TCP. Reading and
    /// writing cost once in a pass.
    pub udp: Option<Carrying>,
    /// Where the numbers come from.
    pub source: String,
}

impl Driver {
    /// What it costs to carry messages over TCP.
    pub fn over_tcp(&self) -> Carrying {
        let Self { encode, decode, read, read_kib, write, write_kib, far, far_kib, .. } = *self;
        Carrying { encode, decode, read, read_kib, write, write_kib, far, far_kib }
    }
}

impl Default for Driver {
    fn default() -> Self {
        let none = Interval::default();
        Self {
            pass: none,
            pass_component: none,
            pass_connection: none,
            local: none,
            encode: none,
            decode: none,
            read: none,
            read_kib: none,
            write: none,
            write_kib: none,
            far: none,
            far_kib: none,
            latency: none,
            wake: none,
            sleep: none,
            switch: none,
            slice: Interval::from_ns(1_400_000),
            shm: None,
            udp: None,
            source: String::new(),
        }
    }
}

/// `[simulation.driver.shm]` and `[simulation.driver.udp]`: what it costs to carry messages otherwise than over TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Carrying {
    /// A message that is put into a queue.
    pub encode: Interval,
    /// A message that is taken out of what has come.
    pub decode: Interval,
    /// Taking in what has come.
    pub read: Interval,
    /// Each kibibyte of it.
    pub read_kib: Interval,
    /// Handing over what is in the queue.
    pub write: Interval,
    /// Each kibibyte of it.
    pub write_kib: Interval,
    /// What all that is written at once costs more, sender and receiver together, where these are on different cores.
    pub far: Interval,
    /// Each kibibyte of it.
    pub far_kib: Interval,
}

/// `[[simulation.cost]]`: processor time of a kind of input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a table such as { role = \"ros\", input = \"event-request\", each = \"20 us\" }"
)]
pub struct InputCost {
    /// Stem of the names of its applications, such as `ros`; empty for all.
    pub role: String,
    /// The kind of input, such as `event-request`; empty for all.
    pub input: String,
    /// Only where applications live so.
    pub layout: Option<Layout>,
    /// Only in partitions with level 2, or without: what waits for its decisions has left the caches when it is built.
    pub level2: Option<bool>,
    /// Of each.
    pub each: Interval,
    /// Of each message, whatever number of them there is in it; of fragments, of each event.
    pub message: Interval,
    /// Of a kibibyte of data that come with it.
    pub per_kib: Interval,
    /// Where the number comes from: a measurement, a citation, or `inferred` and from what.
    pub source: String,
}

/// `[[simulation.fault]]`: something that goes wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a table such as { at = \"1 s\", kind = \"kill\", application = \"sfi-1\" }"
)]
pub struct SimulatedFault {
    /// Time since the start of the run.
    pub at: Interval,
    /// What happens.
    pub kind: FaultKind,
    /// To whom, such as `sfi-1`; required, here or in `applications`.
    pub application: String,
    /// To whom besides, all at once, such as `["ros-1", "ros-2"]`; in a partition of the network, those on one side.
    pub applications: Vec<String>,
    /// For how long; of a clock step, how far.
    pub lasts: Interval,
    /// How much longer each input takes, of one that is slow.
    pub each: Interval,
}

impl SimulatedFault {
    /// All to whom it happens.
    pub fn struck(&self) -> impl Iterator<Item = &str> {
        let one = (!self.application.is_empty()).then_some(&self.application);
        one.into_iter().chain(&self.applications).map(String::as_str)
    }
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The application dies.
    #[default]
    Kill,
    /// It dies, and a new life of it appears after `lasts`; `processes.on_loss` must want that.
    Restart,
    /// It hears and says nothing any more.
    Hang,
    /// Its network is cut off for `lasts`: datagrams are lost, connections wait.
    CutOff,
    /// The network falls into two parts for `lasts`: the applications here, and all others.
    NetworkPartition,
    /// Its host is slow for `lasts`: every input takes `each` longer.
    Slow,
    /// Its clock steps forward by `lasts`.
    ClockStep,
    /// Its disk is full for `lasts`; for recorders.
    FullDisk,
}

impl FaultKind {
    /// Its name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Restart => "restart",
            Self::Hang => "hang",
            Self::CutOff => "cut-off",
            Self::NetworkPartition => "network-partition",
            Self::Slow => "slow",
            Self::ClockStep => "clock-step",
            Self::FullDisk => "full-disk",
        }
    }
}
