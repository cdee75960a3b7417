//! `[partition]`, `[run]`, `[processes]`.

use core::fmt;
use std::borrow::Cow;

use base::ids::Role;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::cores::Cores;
use super::tolerate::Tolerate;
use crate::units::{Interval, Size};

/// `[partition]`: what this slice of the system is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Identity {
    /// Name of the partition, of letters, digits, `_` and `-`, at most 64. Required.
    pub name: String,
    /// Secret that applications prove to each other before any message is accepted. It never leaves the process that
    /// reads it here: others are told a secret of one run. Without it a new one is drawn for each run. Not by `--set`,
    /// which everybody can read; whoever can read the file can join the partition.
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
    /// The run ends when so many bytes of events are recorded. Run control looks four times per second, so somewhat more are. Without it
    /// there is no such limit; a simulation has none.
    pub size: Option<Size>,
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
    /// Whether applications write time stamps from the start of the run to its end (docs/trace.md). Files are in the directory `trace` where
    /// each of them runs. `weir ctl stamps` changes it while the run goes on.
    pub stamps: Stamps,
    /// Losses with which a run is still well.
    pub tolerate: Tolerate,
}

/// Time stamps of applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stamps {
    /// None.
    #[default]
    Off,
    /// At each entry and exit of an Action function and of a section, and at what is sent.
    On,
    /// The same, and at each entry and exit of a Poll function. There are more of them than a disk takes, if nothing sleeps.
    Polls,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            number: None,
            events: None,
            duration: None,
            size: None,
            first_lvl1_id: 0,
            seed: 1,
            stop_timeout: Interval::from_ms(10_000),
            run_type: RunType::Test,
            simulation: false,
            stamps: Stamps::default(),
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
    /// An agent that is silent for so long is lost with its host, with `[[host]]`. One that does not hear run control for twice as long
    /// ends its applications.
    pub lease: Interval,
    /// An application that lives and says nothing to run control for so long hangs: it is ended, and `on_loss` says what follows.
    pub hang_timeout: Interval,
    /// Processor cores to which the processes of each role are bound, on each host that has no `cores` of its own. `weir run` without
    /// `--processes` does not look at it.
    #[serde(skip_serializing_if = "Cores::is_empty")]
    pub cores: Cores,
    /// Whom the kernel gives a processor; `weir run` without `--processes` does not look at it.
    #[serde(skip_serializing_if = "Scheduling::is_normal")]
    pub scheduling: Scheduling,
}

impl Default for Processes {
    fn default() -> Self {
        Self {
            start_timeout: Interval::from_ms(30_000),
            restarts: 3,
            restart_window: Interval::from_ms(60_000),
            on_loss: OnLoss::default(),
            lease: Interval::from_ms(1000),
            hang_timeout: Interval::from_ms(30_000),
            cores: Cores::default(),
            scheduling: Scheduling::Normal,
        }
    }
}

/// Whom the kernel gives a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// A fair share for each process.
    #[default]
    Normal,
    /// Applications before all else that runs on their cores, with the threads that work for them and processing tasks. Run control
    /// stays normal: leave it a core, or let applications sleep while they wait. Needs `CAP_SYS_NICE` or `ulimit -r`.
    RealTime,
}

impl Scheduling {
    fn is_normal(&self) -> bool {
        *self == Self::Normal
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
    /// The front of a read-out crate.
    pub trg: LossAction,
    /// The interface of a read-out crate to event building.
    pub ebif: LossAction,
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
            Role::Trg => self.trg,
            Role::Ebif => self.ebif,
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
            "trg" => &mut self.trg,
            "ebif" => &mut self.ebif,
            _ => return None,
        })
    }
}

const STEMS: &[&str] = &["level1", "l2sv", "l2pu", "pros", "ros", "dfm", "sfi", "efd", "sfo", "trg", "ebif"];

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
