//! `[partition]`, `[run]`, `[transport]`, `[processes]`.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use std::borrow::Cow;

use base::ids::Role;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::carriers::{Carrier, GroupCarrier, OrderedCarrier};
use super::cores::Cores;
use super::datagrams::Udp;
use super::tolerate::Tolerate;
use crate::units::{Interval, Size};

/// `[partition]`: what this slice of the system is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Identity {
    /// Name of the partition, of letters, digits, `_` and `-`, at most 64. Required.
    pub name: String,
    /// Secret that applications prove to each other before any message is accepted; it never leaves the process that reads it
    /// here: what others are told is of one run. Without it a new one is drawn for each run. Not by `--set`, which everybody
    /// can read; whoever can read the file can join the partition.
    pub key: Option<Secret>,
}

/// A secret string; its debug form does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// `[run]`: the run's number, limits and kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Run {
    /// Run number, written into every event and file. Without it, the next free one of `output.directory`, or of a replay
    /// that of its files. No run begins where files of its number are.
    pub number: Option<u32>,
    /// The run ends after this many level-1 events; without it there is no such limit.
    pub events: Option<u64>,
    /// The run ends after this time; without it there is no such limit.
    pub duration: Option<Interval>,
    /// Level-1 id of the first event; a value just below 4294967296 tests the wrap of the 32-bit id.
    pub first_lvl1_id: u32,
    /// Seed of everything random: equal seeds give equal decisions.
    pub seed: u64,
    /// While a run stops, a stage that has not drained may make no progress for this time; then the stop is forced.
    pub stop_timeout: Interval,
    /// Kind of run, as recorded in events and files.
    #[serde(rename = "type")]
    pub run_type: RunType,
    /// Marks the data as simulated: sets bit 31 of the recorded run type.
    pub simulation: bool,
    /// Losses with which a run is still well.
    pub tolerate: Tolerate,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            number: None,
            events: None,
            duration: None,
            first_lvl1_id: 0,
            seed: 1,
            stop_timeout: Interval::from_ms(10_000),
            run_type: RunType::Test,
            simulation: false,
            tolerate: Tolerate::default(),
        }
    }
}

impl Run {
    /// Run number; 1 as long as none is given.
    pub fn number(&self) -> u32 {
        self.number.unwrap_or(1)
    }

    /// The run type word of event headers and files (format note §3c).
    pub const fn run_type_word(&self) -> u32 {
        let kind = match self.run_type {
            RunType::Physics => 0,
            RunType::Calibration => 1,
            RunType::Cosmics => 2,
            RunType::Test => 0xf,
        };
        if self.simulation { kind | 1 << 31 } else { kind }
    }
}

/// Kind of run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunType {
    /// Collisions for physics.
    Physics,
    /// Detector calibration.
    Calibration,
    /// Cosmic rays.
    Cosmics,
    /// Anything else.
    #[default]
    Test,
}

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
    /// TCP congestion control by its kernel name, such as `reno`; without it the kernel decides.
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

/// `[processes]`: rules for the applications as processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Processes {
    /// An application must be ready within this time after it was started.
    pub start_timeout: Interval,
    /// How often an application that is lost may be started again within `restart_window`; once more, and the run ends.
    pub restarts: u32,
    /// The time in which restarts of an application are counted.
    pub restart_window: Interval,
    /// What happens when an application is lost: one word for all roles, or a table with a word per role.
    pub on_loss: OnLoss,
    /// Processor cores to which the processes of each role are bound; `weir run` without `--processes` does not look at it.
    #[serde(skip_serializing_if = "Cores::is_empty")]
    pub cores: Cores,
}

impl Default for Processes {
    fn default() -> Self {
        Self {
            start_timeout: Interval::from_ms(30_000),
            restarts: 3,
            restart_window: Interval::from_ms(60_000),
            on_loss: OnLoss::default(),
            cores: Cores::default(),
        }
    }
}

/// What happens when an application of a role is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OnLoss {
    /// The source of level-1 triggers.
    pub level1: LossAction,
    /// A level-2 supervisor.
    pub l2sv: LossAction,
    /// A level-2 processing unit.
    pub l2pu: LossAction,
    /// The pseudo-ROS.
    pub pros: LossAction,
    /// A read-out system.
    pub ros: LossAction,
    /// The dataflow manager.
    pub dfm: LossAction,
    /// An event builder.
    pub sfi: LossAction,
    /// An event-filter dataflow daemon.
    pub efd: LossAction,
    /// A recorder.
    pub sfo: LossAction,
}

impl OnLoss {
    /// What happens when an application of this role is lost. Run control is the parent: without it the run stops.
    pub const fn of(&self, role: Role) -> LossAction {
        match role {
            Role::RunControl => LossAction::Stop,
            Role::Level1 => self.level1,
            Role::L2sv => self.l2sv,
            Role::L2pu => self.l2pu,
            Role::Pros => self.pros,
            Role::Ros => self.ros,
            Role::Dfm => self.dfm,
            Role::Sfi => self.sfi,
            Role::Efd => self.efd,
            Role::Sfo => self.sfo,
        }
    }

    fn by_stem(&mut self, stem: &str) -> Option<&mut LossAction> {
        Some(match stem {
            "level1" => &mut self.level1,
            "l2sv" => &mut self.l2sv,
            "l2pu" => &mut self.l2pu,
            "pros" => &mut self.pros,
            "ros" => &mut self.ros,
            "dfm" => &mut self.dfm,
            "sfi" => &mut self.sfi,
            "efd" => &mut self.efd,
            "sfo" => &mut self.sfo,
            _ => return None,
        })
    }
}

const STEMS: &[&str] = &["level1", "l2sv", "l2pu", "pros", "ros", "dfm", "sfi", "efd", "sfo"];

impl<'de> Deserialize<'de> for OnLoss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OnLossVisitor)
    }
}

struct OnLossVisitor;

impl<'de> Visitor<'de> for OnLossVisitor {
    type Value = OnLoss;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"stop\", \"restart\" or a table such as { ros = \"restart\" }")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<OnLoss, E> {
        let action = LossAction::named(name)?;
        let mut all = OnLoss::default();
        for stem in STEMS {
            *all.by_stem(stem).expect("every stem has its field") = action;
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OnLoss, A::Error> {
        let mut by_role = OnLoss::default();
        while let Some(stem) = map.next_key::<String>()? {
            let Some(action) = by_role.by_stem(&stem) else {
                return Err(de::Error::unknown_field(&stem, STEMS));
            };
            *action = map.next_value()?;
        }
        Ok(by_role)
    }
}

impl JsonSchema for OnLoss {
    fn schema_name() -> Cow<'static, str> {
        "OnLoss".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let action = generator.subschema_for::<LossAction>();
        let by_role: serde_json::Map<_, _> = STEMS
            .iter()
            .map(|stem| {
                let mut role = action.clone();
                role.insert(
                    "description".into(),
                    format!("What the loss of an application of the role {stem} does to the run.").into(),
                );
                ((*stem).to_owned(), role.into())
            })
            .collect();
        json_schema!({
            "anyOf": [
                action,
                { "type": "object", "properties": by_role, "additionalProperties": false },
            ],
        })
    }
}

/// What the loss of an application does to the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossAction {
    /// The run stops, says what was lost and ends as aborted.
    #[default]
    Stop,
    /// The application is started again and the run goes on; what was lost with it is counted. For roles whose protocols
    /// recover: for the others the run stops.
    Restart,
}

impl LossAction {
    fn named<E: de::Error>(name: &str) -> Result<Self, E> {
        match name {
            "stop" => Ok(Self::Stop),
            "restart" => Ok(Self::Restart),
            "ignore" => Err(E::custom(format!(
                "expected \"stop\" or \"restart\", found {name:?}, which is not available yet in this version"
            ))),
            _ => Err(E::unknown_variant(name, &["stop", "restart"])),
        }
    }
}

impl<'de> Deserialize<'de> for LossAction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = LossAction;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"stop\" or \"restart\"")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<LossAction, E> {
                LossAction::named(name)
            }
        }

        deserializer.deserialize_str(Name)
    }
}
