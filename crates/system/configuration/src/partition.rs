//! A whole configuration, and the list of applications that it asks for.

use base::ids::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shift::Shift;
use crate::source::Node;
use crate::tables::{
    BuildingMode, Control, Dfm, DfmInput, Ef, FragmentKind, Host, Identity, Input, L2pu, L2sv, Level1, Level1Source,
    LinkSource, Matching, Menu, Output, Play, Processes, Pt, Push, Roc, Ros, RosInput, Run, Sampling, Sfi, Sfo,
    Simulation, SourceClock, Strategy, Stream, Transport,
};
use crate::units::Size;

/// The configuration of a partition.
///
/// [`Partition::load`] and [`Partition::parse`] return only what passed all checks; a value that is made or changed by
/// hand did not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Partition {
    /// What this slice of the system is called. Required.
    pub partition: Identity,
    /// The run's number, limits and kind.
    pub run: Run,
    /// The files that a sample or a replay reads.
    pub input: Input,
    /// The source of level-1 triggers. Without it the DFM triggers itself.
    pub level1: Option<Level1>,
    /// The level-2 supervisors. Without them every level-1 event is accepted; they need `[level1]` and `[l2pu]`.
    pub l2sv: Option<L2sv>,
    /// The level-2 processing units; they need `[l2sv]`.
    pub l2pu: Option<L2pu>,
    /// What level 2 and the event filter select.
    pub menu: Option<Menu>,
    /// The read-out systems and their read-out buffers (ROBs).
    pub ros: Ros,
    /// The read-out crates. Without them all read-out systems stand alone.
    pub roc: Option<Roc>,
    /// The programs that send fragments by themselves; for `ros.input = "links"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<LinkSource>,
    /// The dataflow manager, which assigns events to event builders and clears the read-out systems.
    pub dfm: Dfm,
    /// The event builders. Required.
    pub sfi: Sfi,
    /// The event filter. Without it every built event is accepted.
    pub ef: Option<Ef>,
    /// The processing tasks of the event filter; they need `[ef]`. Without them `ef.policy` decides.
    pub pt: Option<Pt>,
    /// The recorders. Without them events are dropped at the end of the chain as if recorded.
    pub sfo: Option<Sfo>,
    /// The streams that accepted events are recorded in, at most 32. Without them all go to `sfo.stream`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stream: Vec<Stream>,
    /// Where files go.
    pub output: Output,
    /// How applications talk to each other.
    pub transport: Transport,
    /// Rules for the applications as processes.
    pub processes: Processes,
    /// The machines of the partition. Without them it has one: that of run control.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<Host>,
    /// What run control keeps.
    #[serde(skip_serializing_if = "Control::keeps_nothing")]
    pub control: Control,
    /// Which events are shown to those who watch.
    #[serde(skip_serializing_if = "Sampling::is_usual")]
    pub sampling: Sampling,
    /// What `weir sim` needs to know of hosts and networks.
    pub simulation: Option<Simulation>,
}

/// One application of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Application {
    /// Its name, such as `sfi-1`; counted from 1.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Its place among those of its role, from 0.
    pub index: usize,
}

impl Partition {
    /// The configuration as a TOML text with all defaults written out; [`Partition::parse`] makes the same of it.
    ///
    /// It holds the secret `partition.key`; see [`Partition::without_secrets`].
    ///
    /// # Panics
    ///
    /// Never: all that a partition can hold is TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("tables of numbers, strings and lists are TOML")
    }

    /// The same without what must not be shown, for records that others may read.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mut open = self.clone();
        open.partition.key = None;
        open
    }

    /// Whether events are built; if not, the chain ends with level 2.
    pub fn builds(&self) -> bool {
        self.sfi.count > 0
    }

    /// Number of read-out crates.
    pub fn crates(&self) -> u32 {
        self.roc.as_ref().map_or(0, |roc| roc.count)
    }

    /// The crate of a read-out system, by its place among all of them; `None` if it stands alone.
    pub fn crate_of(&self, ros: usize) -> Option<usize> {
        let roc = self.roc.as_ref()?;
        Some(ros / roc.ros.max(1) as usize).filter(|place| *place < roc.count as usize)
    }

    /// How many sources event builders have: crates, and read-out systems that stand alone.
    pub fn sources(&self) -> u32 {
        let within = self.roc.as_ref().map_or(0, |roc| roc.count.saturating_mul(roc.ros));
        self.ros.count.saturating_sub(within).saturating_add(self.crates())
    }

    /// How read-out systems push, if they do.
    pub fn push(&self) -> Option<Push> {
        (self.dfm.building != BuildingMode::Pull).then(|| self.ros.push.clone().unwrap_or_default())
    }

    /// Most data that a read-out system has pushed to an event builder and that are on the way.
    pub fn push_window(&self) -> Size {
        let share = || {
            let events = self.sfi.max_event_size.bytes().saturating_mul(u64::from(self.sfi.building));
            Size::from_bytes(events.div_ceil(u64::from(self.sources().max(1))))
        };
        self.push().and_then(|push| push.window).unwrap_or_else(share)
    }

    /// The event filter's settings: those of `[ef]`, else one EFD that passes everything on to the recorders. `None` if
    /// the chain ends with the event builders.
    pub fn event_filter(&self) -> Option<Ef> {
        match (&self.ef, &self.sfo) {
            _ if !self.builds() => None,
            (Some(ef), _) => Some(ef.clone()),
            (None, Some(_)) => Some(Ef::default()),
            (None, None) => None,
        }
    }

    /// The place of the source whose fragments are the triggers, if one leads.
    pub fn leader(&self) -> Option<usize> {
        let level1 = self.level1.as_ref().filter(|level1| level1.source == Level1Source::Link)?;
        let is_it = |source: &LinkSource| level1.leader.as_ref().is_none_or(|leader| *leader == source.name);
        self.source.iter().position(is_it)
    }

    /// Whether a source is to lead that there is not.
    pub fn leader_is_unknown(&self) -> bool {
        let is_link = self.level1.as_ref().is_some_and(|level1| level1.source == Level1Source::Link);
        is_link && !self.source.is_empty() && self.leader().is_none()
    }

    /// The input whose data sources of this partition play, if any does. A checked configuration has one at most.
    pub fn played_input(&self) -> Option<RosInput> {
        self.source.iter().filter_map(LinkSource::played).find_map(Play::input)
    }

    /// How it is known which event a fragment of this source belongs to.
    pub fn matching(&self, source: &LinkSource) -> Matching {
        source.matching.unwrap_or(if self.slice_ns().is_some() { Matching::Time } else { Matching::Number })
    }

    /// What is added to the times of a source to have those of its events, in ns. `None` if it is not matched by time, or has a
    /// clock of its own.
    pub fn offset_ns(&self, source: &LinkSource) -> Option<i64> {
        let is_common = self.matching(source) == Matching::Time && source.clock == SourceClock::None;
        is_common.then(|| source.offset.map_or(0, Shift::ns))
    }

    /// Length of a slice in ns, where events are slices of time.
    pub fn slice_ns(&self) -> Option<u64> {
        self.level1.as_ref().and_then(Level1::slice_ns)
    }

    /// Names of the streams as `type_name`, in the order of their bits; those that an algorithm may ask for.
    pub fn stream_names(&self) -> Vec<String> {
        self.stream.iter().map(|stream| format!("{}_{}", stream.stream_type.name(), stream.name)).collect()
    }

    /// All applications, in the order in which data move.
    pub fn applications(&self) -> Vec<Application> {
        let level2 = self.l2sv.is_some();
        let counts = [
            (Role::Level1, u32::from(self.level1.is_some())),
            (Role::L2sv, self.l2sv.as_ref().map_or(0, |l2sv| l2sv.count)),
            (Role::L2pu, self.l2pu.as_ref().map_or(0, |l2pu| l2pu.count)),
            (Role::Pros, u32::from(level2 && self.builds())),
            (Role::Ros, self.ros.count),
            (Role::Dfm, u32::from(self.builds())),
            (Role::Sfi, self.sfi.count),
            (Role::Efd, self.event_filter().map_or(0, |ef| ef.count)),
            (Role::Sfo, self.sfo.as_ref().map_or(0, |sfo| sfo.count)),
            (Role::Trg, self.crates()),
            (Role::Ebif, if self.builds() { self.crates() } else { 0 }),
        ];
        counts
            .into_iter()
            .flat_map(|(role, count)| (0..count as usize).map(move |index| Application::new(role, index)))
            .collect()
    }

    /// Gives the keys that are absent and have no fixed default the value that the others imply.
    pub(crate) fn resolve(&mut self, root: &Node) {
        if root.get("ros.input").is_none() {
            self.ros.input = match self.level1.as_ref().map(|level1| level1.source) {
                Some(Level1Source::Sample) => RosInput::Sample,
                Some(Level1Source::Replay) => RosInput::Replay,
                Some(Level1Source::Link | Level1Source::Time) => RosInput::Links,
                Some(Level1Source::Emulator | Level1Source::File | Level1Source::External) | None => RosInput::Emulator,
            };
        }
        if root.get("dfm.input").is_none() {
            self.dfm.input = match (&self.l2sv, &self.level1) {
                (Some(_), _) => DfmInput::Level2,
                (None, Some(_)) => DfmInput::Level1,
                (None, None) => DfmInput::SelfTrigger,
            };
        }
        if let (Some(sfo), true) = (&mut self.sfo, self.stream.is_empty()) {
            sfo.stream = Some(sfo.stream().to_owned());
        }
        if let (Some(_), Some(l2pu), None) = (&self.menu, &mut self.l2pu, root.get("l2pu.strategy")) {
            l2pu.strategy = Strategy::Menu;
        }
        if let (Some(pt), None) = (&self.pt, root.get("ef.slots")) {
            let ef = self.ef.get_or_insert_default();
            ef.slots = pt.count.saturating_mul(SLOTS_PER_TASK).clamp(1, SLOTS_MAX);
        }
        let fragment = &mut self.ros.fragment;
        if fragment.kind == FragmentKind::Fixed && fragment.size.is_none() {
            fragment.size = fragment.distribution().map(|fixed| fixed.size_max());
        }
    }
}

impl Application {
    fn new(role: Role, index: usize) -> Self {
        Self { name: format!("{role}-{}", index + 1), role, index }
    }
}

/// Keeps a fast processing task busy.
const SLOTS_PER_TASK: u32 = 32;

/// Places of a table that other processes name by 16 bits.
pub(crate) const SLOTS_MAX: u32 = u16::MAX as u32;
