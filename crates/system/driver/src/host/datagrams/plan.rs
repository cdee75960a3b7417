//! How large queues, tables and buffers of datagrams are: what credits allow to be on the way at once.

use std::net::IpAddr;

use base::ids::{Incarnation, NodeId, Role};
use configuration::{FRAGMENT_OVERHEAD_BYTES, Partition, RosInput, Transport};
use dataflow::wire;
use membership::run_secret::RunSecret;
use transport::frame::FrameLimits;
use transport::udp::{Acknowledged, Authenticate, MulticastOptions, PartitionKey, SocketBuffers, UdpOptions};

use crate::assembly::Assembly;
use crate::replies::replies_kept;

/// Settings of the datagrams of a process.
#[derive(Clone, Debug)]
pub struct DatagramOptions {
    pub(super) transport: Transport,
    /// Addresses of further network ports.
    pub(super) ports: Vec<IpAddr>,
    pub(super) control: UdpOptions,
    pub(super) bulk: UdpOptions,
    /// Whether a read-out system of this process takes multicasts of other processes.
    pub(super) takes_clears: bool,
}

/// What may be on the way at once through an endpoint.
struct LaneLoad {
    receive: Load,
    send: Load,
    /// What one peer may have sent here that has not come.
    by_one: Load,
    /// What one peer may wait for: what was sent to it before, it does not miss.
    to_one: Load,
    parts_to_one: usize,
}

/// What may be on the way at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    messages: usize,
    bytes: usize,
}

impl DatagramOptions {
    /// The settings that a partition asks for, for a process with these nodes; `None` if nothing travels so. `frame_max` is
    /// the longest message.
    ///
    /// # Panics
    /// `frame_max` has no room for a header.
    pub fn new(assembly: &Assembly, here: &[NodeId], run: &RunSecret, frame_max: usize) -> Option<Self> {
        let partition = &assembly.partition;
        let transport = &partition.transport;
        if !transport.has_datagrams() {
            return None;
        }
        let roles: Vec<Role> = here.iter().filter_map(|node| assembly.application(*node)).map(|app| app.role).collect();
        let credits = Credits::new(partition);
        let sum = |load: fn(&Credits, Role) -> Load| {
            roles.iter().fold(Load::default(), |sum, role| sum.plus(load(&credits, *role)))
        };
        let make = |frame_max: usize, lane: LaneLoad| {
            let LaneLoad { receive, send, by_one, to_one, parts_to_one } = lane;
            let limits = FrameLimits::new(wire::HEADER_LEN, frame_max).expect("a header is shorter than a frame");
            let key = PartitionKey::from_derived(run.key_for("weir 2026 datagrams"));
            let datagram_len = usize::try_from(transport.datagram_len()).expect("at most 65,507");
            let asked = |load: Load| match transport.socket_buffer {
                Some(size) => usize::try_from(size.bytes()).unwrap_or(usize::MAX),
                None => load.kernel_bytes(datagram_len).clamp(BUFFER_MIN, BUFFER_MAX),
            };
            UdpOptions {
                incarnation: Incarnation::FIRST.0,
                datagram_len,
                authenticate: match transport.udp.authenticate {
                    configuration::Authenticate::Everything => Authenticate::Everything,
                    configuration::Authenticate::Header => Authenticate::Header,
                },
                checksum_payload: transport.has_checksums(),
                segmentation_offload: transport.udp.offload,
                receive_offload: transport.udp.offload,
                copy_below: usize::try_from(transport.copy_below.bytes()).unwrap_or(usize::MAX),
                queue_bytes_max: send.bytes.max(frame_max),
                queue_frames_max: send.messages.max(1),
                send_buffer_bytes: asked(send),
                receive_buffer_bytes: asked(receive),
                incomplete_messages_max: by_one.messages.max(1),
                incomplete_bytes_max: by_one.bytes.max(frame_max),
                incomplete_timeout: credits.timeout,
                ask_after: transport.udp.ask_after.duration(),
                keep_parts_max: if transport.udp.ask_after.duration().is_zero() { 0 } else { parts_to_one },
                keep_bytes_max: to_one.bytes.max(frame_max),
                acknowledged: acknowledged(transport),
                multicast: MulticastOptions {
                    interface: transport.multicast_interface().filter(|_| transport.has_multicasts()),
                    time_to_live: transport.udp.ttl,
                    loops: true,
                },
                ..UdpOptions::new(limits, key.0)
            }
        };
        Some(Self {
            transport: transport.clone(),
            ports: Vec::new(),
            control: make(
                frame_max.min(CONTROL_FRAME_MAX),
                LaneLoad {
                    receive: sum(Credits::requests_to),
                    send: sum(Credits::requests_from),
                    by_one: credits.requests_by_one(),
                    to_one: credits.requests_by_one(),
                    parts_to_one: credits.requests_by_one().messages,
                },
            ),
            bulk: make(
                frame_max,
                LaneLoad {
                    receive: sum(Credits::replies_to),
                    send: sum(Credits::replies_from),
                    by_one: sum(Credits::replies_to),
                    to_one: credits.replies_to_one(),
                    parts_to_one: credits.replies_to_one().messages * count(partition.ros.robs),
                },
            ),
            takes_clears: here.iter().any(|node| assembly.readout().contains(node)),
        })
    }

    /// The same, for a process with further network ports.
    pub fn at_ports(self, ports: &[IpAddr]) -> Self {
        Self { ports: ports.to_vec(), ..self }
    }

    /// The same, for a process in this life.
    pub fn of_life(mut self, life: Incarnation) -> Self {
        self.control.incarnation = life.0;
        self.bulk.incarnation = life.0;
        self
    }
}

/// How messages are acknowledged, if they are.
fn acknowledged(transport: &Transport) -> Option<Acknowledged> {
    let window = transport.udp.window?;
    Some(Acknowledged {
        window_bytes: usize::try_from(window.bytes()).unwrap_or(usize::MAX),
        retransmit_after: transport.udp.retransmit_after.duration(),
        retransmits_max: transport.udp.retransmits,
    })
}

/// What a complaint says of the buffers of a socket, if they are smaller than asked for.
pub(super) fn complaint(what: &str, buffers: SocketBuffers) -> Option<String> {
    let SocketBuffers { send_asked, send_granted, receive_asked, receive_granted } = buffers;
    let lacks = [
        ("receive", receive_asked, receive_granted, "net.core.rmem_max"),
        ("send", send_asked, send_granted, "net.core.wmem_max"),
    ];
    let lacks = lacks.into_iter().filter(|(_, asked, granted, _)| granted < asked);
    let texts: Vec<String> = lacks
        .map(|(buffer, asked, granted, key)| {
            format!("the {buffer} buffer for {what} has {granted} of {asked} bytes: `sysctl -w {key}={asked}`")
        })
        .collect();
    (!texts.is_empty()).then(|| {
        format!(
            "{}; what does not fit is lost and asked for again, or lower the credits for requests",
            texts.join(", ")
        )
    })
}

/// The credits of a partition, as far as messages that may travel in datagrams have them.
struct Credits {
    sources: usize,
    /// Requests for building that are not answered, of each builder.
    building: usize,
    builders: usize,
    /// What each source may have pushed to each builder, if it pushes.
    pushed: Load,
    /// Events that it may have been told to push to each of them; 0 if it is not told.
    orders: usize,
    /// Byte credits that each of them may have sent it.
    credits: usize,
    /// Events that each unit of level 2 works on; each may ask every source.
    workers: usize,
    units: usize,
    /// Replies to one of them that a source keeps.
    kept: usize,
    request_len: usize,
    reply_len: usize,
    event_len: usize,
    clear_len: usize,
    /// After the longest of these a request is repeated, and what has come of the reply is of no use soon.
    timeout: core::time::Duration,
}

impl Credits {
    fn new(partition: &Partition) -> Self {
        let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX / 4);
        let (ros, sfi, l2pu) = (&partition.ros, &partition.sfi, partition.l2pu.as_ref());
        let event_max = bytes(sfi.max_event_size.bytes());
        let emulated = ros.fragment.distribution().filter(|_| ros.input == RosInput::Emulator);
        let together = partition.roc.as_ref().map_or(1, |roc| count(roc.ros));
        let reply_len = emulated.map_or(event_max, |sizes| {
            bytes(sizes.size_max().bytes().saturating_add(FRAGMENT_OVERHEAD_BYTES))
                .saturating_mul(count(ros.robs))
                .saturating_mul(together)
                .min(event_max)
        });
        let sources = count(partition.sources()).max(1);
        let pushed = partition.push().map_or(Load::default(), |_| Load {
            messages: count(sfi.building),
            // One message is pushed whatever its length. Those of one port may overtake a window of another's.
            bytes: bytes(partition.push_window().bytes())
                .saturating_mul(ros.ports.len().max(1))
                .saturating_add(reply_len),
        });
        let (orders, credits) = partition.push().map_or((0, 0), |_| (count(sfi.building), CREDITS));
        let timeouts = [Some(sfi.request_timeout), l2pu.map(|l2pu| l2pu.request_timeout)];
        Self {
            sources,
            building: count(sfi.outstanding_requests),
            builders: count(sfi.count),
            pushed,
            orders,
            credits,
            workers: l2pu.map_or(0, |l2pu| count(l2pu.workers)),
            units: l2pu.map_or(0, |l2pu| count(l2pu.count)),
            kept: replies_kept(partition),
            request_len: MESSAGE_BYTES + 4 * count(ros.robs).saturating_mul(together),
            reply_len,
            event_len: reply_len.saturating_mul(sources).min(event_max),
            clear_len: MESSAGE_BYTES + 8 * count(partition.dfm.clear_group),
            timeout: timeouts.into_iter().flatten().map(configuration::Interval::duration).max().unwrap_or_default(),
        }
    }

    fn requests_to(&self, role: Role) -> Load {
        match role {
            Role::Ros | Role::Trg | Role::Ebif | Role::Pros => {
                let requests = self.builders * self.building + self.units * self.workers;
                let pushing = self.builders * (self.orders + self.credits);
                Load::of(REPEATED * requests + pushing, self.request_len).plus(Load::of(CLEARS, self.clear_len))
            }
            _ => Load::default(),
        }
    }

    fn requests_from(&self, role: Role) -> Load {
        match role {
            Role::Sfi => Load::of(REPEATED * self.building + self.credits * self.sources, self.request_len),
            Role::L2pu => Load::of(REPEATED * self.workers * self.sources, self.request_len),
            Role::Dfm | Role::L2sv => Load::of(CLEARS * self.sources, self.clear_len)
                .plus(Load::of(self.builders * self.orders * self.sources, self.request_len)),
            _ => Load::default(),
        }
    }

    fn requests_by_one(&self) -> Load {
        Load::of(self.building.max(self.workers), self.request_len).plus(Load::of(CLEARS, self.clear_len))
    }

    fn replies_to_one(&self) -> Load {
        Load::of(self.kept, self.reply_len)
    }

    fn replies_to(&self, role: Role) -> Load {
        match role {
            // As many replies as credits, of as many events as those can be about.
            Role::Sfi => Load {
                messages: REPEATED * self.building,
                bytes: (self.building.div_ceil(self.sources) + 1)
                    .saturating_mul(self.event_len)
                    .min(self.building.saturating_mul(self.reply_len)),
            }
            .plus(self.pushed.times(self.sources)),
            Role::L2pu => Load {
                messages: REPEATED * self.workers * self.sources,
                bytes: self.workers.saturating_mul(self.event_len),
            },
            _ => Load::default(),
        }
    }

    fn replies_from(&self, role: Role) -> Load {
        match role {
            Role::Ros | Role::Trg | Role::Ebif | Role::Pros => {
                let replies = self.builders * self.building + self.units * self.workers;
                Load::of(REPEATED * replies, self.reply_len).plus(self.pushed.times(self.builders))
            }
            _ => Load::default(),
        }
    }
}

impl Load {
    fn of(messages: usize, each: usize) -> Self {
        Self { messages, bytes: messages.saturating_mul(each) }
    }

    fn times(self, number: usize) -> Self {
        Self { messages: self.messages.saturating_mul(number), bytes: self.bytes.saturating_mul(number) }
    }

    fn plus(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// As the kernel counts: each datagram with its management, in memory of rounded size.
    fn kernel_bytes(self, datagram_len: usize) -> usize {
        let datagrams = self.messages + self.bytes / datagram_len;
        self.bytes.saturating_mul(2).saturating_add(datagrams * DATAGRAM_OVERHEAD_BYTES)
    }
}

fn count(number: u32) -> usize {
    number as usize
}

/// A longer message of this kind goes over the connection.
const CONTROL_FRAME_MAX: usize = 256 << 10;

/// A header and the fields of a request or of a clear.
const MESSAGE_BYTES: usize = 128;

/// A request and its repetition may be on the way together.
const REPEATED: usize = 2;

/// Clear groups that may come in a row.
const CLEARS: usize = 64;

/// Twice those of a window.
const CREDITS: usize = 8;

const DATAGRAM_OVERHEAD_BYTES: usize = 1024;
const BUFFER_MIN: usize = 256 << 10;
const BUFFER_MAX: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn assembly(overrides: &[&str]) -> Assembly {
        let text = "partition.name = \"p\"\nros.count = 4\nsfi.count = 2\n";
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        let partition = Partition::parse("p", text, &overrides).unwrap();
        Assembly::new(partition, (0..4).map(|rob| vec![rob]).collect()).unwrap()
    }

    fn options(assembly: &Assembly, role: Role) -> Option<DatagramOptions> {
        DatagramOptions::new(assembly, &assembly.of(role)[..1], &RunSecret::new("key", &[1; 16]), 5 << 20)
    }

    #[test]
    fn buffers_hold_what_credits_allow() {
        let assembly = assembly(&["transport.event_reply=udp", "sfi.outstanding_requests=100"]);
        let sfi = options(&assembly, Role::Sfi).unwrap();
        // 100 replies of 1 kB and headers.
        assert!((100_000..1_000_000).contains(&sfi.bulk.receive_buffer_bytes), "{:?}", sfi.bulk);
        assert_eq!((sfi.bulk.incomplete_messages_max, sfi.bulk.datagram_len), (200, 65_507));
        let ros = options(&assembly, Role::Ros).unwrap();
        // Those of both builders at once, each maybe twice.
        assert_eq!(ros.bulk.queue_frames_max, 400);
        assert!(ros.takes_clears && !sfi.takes_clears && ros.bulk.key == sfi.bulk.key);
        let asked = |sfi: DatagramOptions| (sfi.bulk.receive_buffer_bytes, sfi.bulk.ask_after.as_millis());
        assert_eq!(asked(sfi).1, 2);
        let other = self::assembly(&["transport.event_reply=udp", "transport.socket_buffer=1 MB"]);
        assert_eq!(asked(options(&other, Role::Sfi).unwrap()).0, 1_000_000);
    }

    #[test]
    fn buffers_hold_what_may_be_pushed() {
        let pushing = ["transport.event_reply=udp", "dfm.building=push", "ros.push={window=\"500 kB\"}"];
        let assembly = assembly(&pushing);
        let (sfi, ros) = (options(&assembly, Role::Sfi).unwrap().bulk, options(&assembly, Role::Ros).unwrap().bulk);
        // From four sources; to two builders.
        assert!(sfi.receive_buffer_bytes >= 4 * 500_000, "{sfi:?}");
        assert!(sfi.incomplete_bytes_max >= 4 * 500_000 && ros.queue_bytes_max >= 2 * 500_000, "{sfi:?} {ros:?}");
        let by_ports = [&pushing[..], &["ros.ports=[\"127.0.0.2\", \"127.0.0.3\", \"127.0.0.4\"]"]].concat();
        let sfi = options(&self::assembly(&by_ports), Role::Sfi).unwrap().bulk;
        assert!(sfi.receive_buffer_bytes >= 3 * 4 * 500_000, "{sfi:?}");
    }

    #[test]
    fn messages_are_acknowledged_where_there_is_a_window() {
        let udp = "transport.udp={window=\"256 kB\", retransmit_after=\"5 ms\", retransmits=3}";
        let options = options(&assembly(&["transport.event_reply=udp", udp]), Role::Sfi).unwrap();
        let retransmit_after = core::time::Duration::from_millis(5);
        let expected = Acknowledged { window_bytes: 256_000, retransmit_after, retransmits_max: 3 };
        assert_eq!((options.bulk.acknowledged, options.control.acknowledged), (Some(expected), Some(expected)));
        let plain = self::options(&assembly(&["transport.event_reply=udp"]), Role::Sfi).unwrap();
        assert_eq!(plain.bulk.acknowledged, None);
    }

    #[test]
    fn nothing_is_opened_for_nothing() {
        assert!(options(&assembly(&[]), Role::Sfi).is_none());
        let silent = assembly(&["transport.clear=udp", "transport.udp.ask_after=0 s"]);
        assert_eq!(options(&silent, Role::Ros).unwrap().bulk.keep_parts_max, 0);
    }

    #[test]
    fn a_complaint_says_what_to_set() {
        let granted =
            SocketBuffers { send_asked: 100, send_granted: 200, receive_asked: 900_000, receive_granted: 425_984 };
        let text = complaint("replies", granted).unwrap();
        assert!(text.contains("425984 of 900000") && text.contains("sysctl -w net.core.rmem_max=900000"), "{text}");
        assert!(!text.contains("wmem"), "{text}");
        assert_eq!(complaint("replies", SocketBuffers { receive_granted: 900_000, ..granted }), None);
    }
}
