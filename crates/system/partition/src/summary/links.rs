//! What came of each source that sends by itself.

use base::ids::NodeId;
use configuration::{Partition, Play, Processor};
use dataflow::message::BusyCause;
use dataflow::report::{BlockCause, Blocked, EfdCounters, LinkClock, LinkReport, LinkState, Report};
use serde::{Deserialize, Serialize};

/// A source as the configuration has it.
#[derive(Clone, Debug)]
pub struct NamedSource {
    /// Source identifier of its ROB.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What the partition plays in its place.
    pub play: Option<Play>,
}

/// What came of a source. `fragments` is what became of them: `kept`, dropped, or `never_triggered`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The name of the source.
    pub name: String,
    /// Source identifier of its ROB.
    pub id: u32,
    /// How it was with the source at the end: `awaited`, `up`, `down`, `lost` or `ended`.
    pub state: String,
    /// What the partition has played in its place: `emulator`, `sample` or `replay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<String>,
    /// Fragments that came.
    pub fragments: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
    /// Fragments that the source says to have sent; 0 as long as it has not said so.
    pub sent: u64,
    /// Fragments of events that were triggered.
    pub kept: u64,
    /// Events for which nothing came, or not before they were decided.
    pub missing: u64,
    /// Events that were made before the source had passed them, of data that belong to events by time or count.
    #[serde(default)]
    pub unpassed: u64,
    /// Fragments whose event was never triggered.
    pub never_triggered: u64,
    /// Dropped: their event was cleared, or its builder answered without them, or is not valid any more.
    pub late: u64,
    /// Dropped: the fragment of the event was there already.
    pub doubled: u64,
    /// Dropped: a number far from all others.
    pub unplaced: u64,
    /// Fragments with an error of the source, of the transmission, or of their checksum.
    pub damaged: u64,
    /// How often the source was lost.
    pub lost: u64,
    /// Its clock beside that of the leader, or of the first source with `clock = "model"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// The damaged ones by cause. A fragment may have several.
    #[serde(default)]
    pub damage: Damage,
    /// What of a device that knows nothing of Weir did not become fragments.
    #[serde(default)]
    pub device: Device,
}

/// A clock beside that of the reference, and where the numbers of its source slipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// How far it is ahead, ns.
    pub offset_ns: i64,
    /// How much faster it goes, in 10⁻¹²: 10 ppm are 10,000,000.
    pub drift_ppt: i64,
    /// Median distance of its times from the model, ns.
    pub quality_ns: u64,
    /// Steps of the clock.
    pub steps: u64,
    /// Slips of its numbers.
    pub slips: u64,
    /// The event of the last slip; 0 if there is none.
    pub slipped_at: u64,
    /// What has to be added to its numbers since.
    pub shift: i64,
}

/// Fragments in which something is wrong, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// A wrong checksum.
    pub checksum: u64,
    /// A transmission error in the data.
    pub data: u64,
    /// Of an S-LINK: an error in a control word.
    pub control: u64,
    /// Of an S-LINK: no begin.
    pub no_begin: u64,
    /// Of an S-LINK: no end.
    pub no_end: u64,
    /// Longer than a page, or cut by the source.
    pub cut: u64,
}

/// What of a device did not become fragments, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Frames that its counter has counted, and that did not come in time.
    pub missing: u64,
    /// Frames that came twice, or too late.
    pub repeated: u64,
    /// Frames that are not as described.
    pub malformed: u64,
    /// Datagrams of others.
    pub foreign: u64,
    /// What came when there was no run.
    pub outside: u64,
    /// Datagrams that the kernel has dropped, since nobody had room for them.
    pub unread: u64,
}

impl Link {
    pub(crate) fn new(report: &LinkReport, source: &NamedSource) -> Self {
        let c = report.counters;
        let state = match report.state {
            LinkState::Awaited => "awaited",
            LinkState::Up => "up",
            LinkState::Down => "down",
            LinkState::Lost => "lost",
            LinkState::Ended => "ended",
        };
        Self {
            name: source.name.clone(),
            id: report.rob,
            state: state.to_owned(),
            played: source.play.map(|play| play.name().to_owned()),
            fragments: c.fragments_in,
            bytes: c.bytes_in,
            sent: c.announced,
            kept: c.cleared + c.garbage_collected,
            missing: c.absent,
            unpassed: c.unpassed,
            never_triggered: c.never_triggered + c.resident,
            late: c.dropped_old + c.dropped_cleared,
            doubled: c.dropped_duplicate,
            unplaced: c.dropped_unplaced,
            damaged: c.flagged,
            lost: c.sources_lost,
            clock: report.clock.map(Clock::from),
            damage: Damage {
                checksum: c.damaged_checksum,
                data: c.damaged_data,
                control: c.damaged_control,
                no_begin: c.damaged_begin,
                no_end: c.damaged_end,
                cut: c.damaged_cut,
            },
            device: Device {
                missing: c.frames_missing,
                repeated: c.frames_repeated,
                malformed: c.frames_malformed,
                foreign: c.frames_foreign,
                outside: c.frames_outside,
                unread: c.frames_unread,
            },
        }
    }
}

impl From<LinkClock> for Clock {
    fn from(clock: LinkClock) -> Self {
        let LinkClock { offset_ns, drift, quality_ns, steps, slips, slipped_at, shift } = clock;
        Self { offset_ns, drift_ppt: drift, quality_ns, steps, slips, slipped_at, shift }
    }
}

/// Events that lack a source that they shall not go on without, and that nobody decided on: `on_missing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withheld {
    /// Not recorded.
    pub dropped: u64,
    /// In the debug stream.
    pub debug: u64,
}

/// By what filter daemons report.
pub(super) fn withheld<'a>(efds: impl Iterator<Item = &'a Report>) -> Withheld {
    let efd = EfdCounters::total(efds);
    Withheld { dropped: efd.dropped_incomplete, debug: efd.debug_incomplete }
}

/// Sources, then level-1 processors, in the order of the configuration.
pub(crate) fn named_sources(partition: &Partition) -> Vec<NamedSource> {
    let sources = partition.source.iter().enumerate();
    let sources = sources.map(|(place, source)| NamedSource {
        id: source.source_id(place),
        name: source.name.clone(),
        play: source.played(),
    });
    let processors = partition.level1.iter().flat_map(|level1| &level1.processor).enumerate();
    let processors = processors.map(|(place, processor)| NamedSource {
        id: Processor::source_id(place),
        name: processor.name.clone(),
        play: processor.played(),
    });
    sources.chain(processors).collect()
}

/// Why somebody waits. Sources that have not come are named: those of whom it waits for, or, behind a crate, all.
pub(crate) fn cause_in_words<'a>(
    blocked: &Blocked,
    sources: &[NamedSource],
    reports: impl Iterator<Item = &'a Report>,
) -> String {
    let mut awaited: Vec<(NodeId, &str)> = Vec::new();
    if blocked.cause == BlockCause::Busy(BusyCause::Source) {
        let links = reports.flat_map(|report| report.links.iter().map(|link| (report.node, link)));
        awaited.extend(links.filter(|(_, link)| link.state == LinkState::Awaited).filter_map(|(node, link)| {
            Some((node, sources.iter().find(|source| source.id == link.rob)?.name.as_str()))
        }));
    }
    if awaited.iter().any(|(node, _)| *node == blocked.by) {
        awaited.retain(|(node, _)| *node == blocked.by);
    }
    let names: Vec<&str> = awaited.iter().map(|(_, name)| *name).collect();
    match &names[..] {
        [] => blocked.cause.describe().to_owned(),
        [name] => format!("source {name} has not come"),
        names => format!("sources {} have not come", names.join(", ")),
    }
}

/// All sources, in the order of the configuration.
pub(super) fn links<'a>(sources: &[NamedSource], reports: &(impl Iterator<Item = &'a Report> + Clone)) -> Vec<Link> {
    let of = |id: u32| reports.clone().flat_map(|report| &report.links).find(move |link| link.rob == id);
    sources.iter().filter_map(|source| Some(Link::new(of(source.id)?, source))).collect()
}
