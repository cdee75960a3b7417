//! Every accepted event of a sample once through the real chain, in this process.

use std::path::PathBuf;

use configuration::{
    ConfigurationError, DfmInput, FRAGMENT_OVERHEAD_BYTES, Interval, Level1Source, Partition, Preprocessing, RosInput,
    Size, Strategy,
};
use trigger::{Decision, Feature};

use super::error::StudyError;
use super::sample::Sample;
use partition::observer::{Observer, Seen};
use partition::{Outcome, Run};
use terminal::conduct;

/// Where the configuration of a study comes from.
pub(super) enum Configuration {
    /// The trigger that is an example of the project.
    Example,
    /// A file.
    File(PathBuf),
}

/// What was decided on an event that level 1 accepted.
#[derive(Clone, Debug, Default)]
pub(super) struct Decided {
    /// By level 2.
    pub(super) decision: Decision,
    /// What its algorithms found.
    pub(super) features: Vec<Feature>,
    /// The chains that accepted it in the event filter; none of an event that level 2 rejected.
    pub(super) filter: u64,
}

impl Configuration {
    /// Reads it, changed by these overrides.
    pub(super) fn read(&self, overrides: &[String]) -> Result<Partition, ConfigurationError> {
        match self {
            Self::Example => Partition::parse("trigger.toml", EXAMPLE, overrides),
            Self::File(path) => Partition::load(path, overrides),
        }
    }

    /// What of it is not under study, in words: the study is of the menu.
    pub(super) fn left_out(&self, overrides: &[String]) -> Result<Vec<&'static str>, ConfigurationError> {
        let partition = self.read(overrides)?;
        let strategy = partition.l2pu.as_ref().map_or(Strategy::Menu, |l2pu| l2pu.strategy);
        let notes = [
            (strategy != Strategy::Menu, "l2pu.strategy: level 2 decides by the menu here"),
            (partition.pt.as_ref().is_none_or(|pt| !pt.is_menu()), "[pt]: the event filter decides by the menu here"),
            (!partition.input.prescales.is_empty(), "input.prescales: all events of a sample are taken here"),
            (
                partition.menu.iter().flat_map(|menu| &menu.chain).any(|chain| chain.prescale > 1),
                "prescales of chains are applied: they lower efficiencies and rates here",
            ),
        ];
        Ok(notes.into_iter().filter(|(applies, _)| *applies).map(|(_, note)| note).collect())
    }

    /// The partition that takes each accepted event of a sample through the selection once, as fast as it can. Nothing
    /// but the selection decides.
    pub(super) fn partition(&self, sample: &Sample, overrides: &[String]) -> Result<Partition, StudyError> {
        let mut overrides = overrides.to_vec();
        overrides.push(format!("input.files=[{}]", toml_string(&sample.path.display().to_string())));
        if let Some(detector) = sample.detector() {
            overrides.push(format!("input.detector={}", toml_string(&detector.display().to_string())));
        }
        if let Some(layout) = &sample.description.layout {
            overrides.push(format!("menu.layout={}", toml_string(layout)));
        }
        let mut partition = self.read(&overrides)?;
        if partition.menu.as_ref().is_none_or(|menu| menu.chain.is_empty()) {
            return Err(StudyError::NoMenu);
        }
        take_each_event_once(&mut partition, sample.accepted().count() as u64);
        make_room(&mut partition, sample);
        select_by_the_menu_alone(&mut partition);
        Ok(partition)
    }
}

/// Sends the events through the chain; the answer has one entry for each of them, in their order.
pub(super) fn decide(partition: Partition, name: &str) -> Result<Vec<Decided>, StudyError> {
    let events = partition.run.events.expect("a study sends the events of its sample");
    let observer = Observer::default();
    let run = Run::new(partition).note_decisions(observer.clone());
    let conducted = conduct(run)?;
    let unsound = |reason| StudyError::Unsound { sample: name.to_owned(), reason };
    check(&conducted, events).map_err(unsound)?;
    collect(observer.take(), events, conducted.account.filter_accepted).map_err(unsound)
}

fn check(conducted: &Outcome, events: u64) -> Result<(), String> {
    let account = &conducted.account;
    if account.residual > 0 {
        return Err(format!("a residual of {} events: {}", account.residual, account.differences.join("; ")));
    }
    if let Some(reason) = conducted.ending.reasons.first() {
        return Err(reason.clone());
    }
    let none = [
        ("accepted by force", account.level2_forced),
        ("decided without all their data", account.level2_incomplete),
        ("lost in level 2", account.level2_lost),
        ("not built", account.not_built),
        ("built without all their data", account.built_incomplete),
        ("lost after building", account.lost_after_build),
        ("given up by the event filter", account.filter_debug),
    ];
    if let Some((what, count)) = none.into_iter().find(|(_, count)| *count > 0) {
        return Err(format!("{count} events were {what}"));
    }
    if account.level1 == events { Ok(()) } else { Err(format!("it ended after {} of {events} events", account.level1)) }
}

fn collect(seen: Vec<Seen>, events: u64, filter_accepted: u64) -> Result<Vec<Decided>, String> {
    let mut decided: Vec<Option<Decided>> = Vec::new();
    decided.resize_with(events as usize, || None);
    let mut filtered = Vec::new();
    for seen in seen {
        match seen {
            Seen::Level2 { ordinal, decision, features } => {
                let slot = usize::try_from(ordinal).ok().and_then(|at| decided.get_mut(at));
                let slot = slot.ok_or_else(|| format!("level 2 decided on event {ordinal}, which was not sent"))?;
                if slot.replace(Decided { decision, features, filter: 0 }).is_some() {
                    return Err(format!("level 2 decided on event {ordinal} twice"));
                }
            }
            Seen::Filter { ordinal, passed } => filtered.push((ordinal, passed)),
        }
    }
    let missing = decided.iter().position(Option::is_none);
    let mut decided: Vec<Decided> = match missing {
        Some(ordinal) => return Err(format!("level 2 never decided on event {ordinal}")),
        None => decided.into_iter().flatten().collect(),
    };
    if filtered.len() as u64 != filter_accepted {
        return Err(format!(
            "{} decisions of the event filter, which accepted {filter_accepted} events",
            filtered.len()
        ));
    }
    for (ordinal, passed) in filtered {
        decided[ordinal as usize].filter = passed;
    }
    Ok(decided)
}

fn take_each_event_once(partition: &mut Partition, events: u64) {
    partition.run.events = Some(events);
    partition.run.duration = None;
    partition.input.repeat = false;
    partition.input.mix = None;
    partition.input.prescales.clear();
    partition.input.pad_to = None;
    partition.ros.input = RosInput::Sample;
    let level1 = partition.level1.get_or_insert_default();
    level1.source = Level1Source::Sample;
    level1.rate = None;
    level1.file = None;
    level1.processor.clear();
}

/// Lets every event of the sample fit.
fn make_room(partition: &mut Partition, sample: &Sample) {
    let largest = |bytes: &dyn Fn(&rol::SampleRow) -> u64| sample.accepted().map(bytes).max().unwrap_or(0);
    let fragment = largest(&|row| row.fragment_bytes_max + FRAGMENT_OVERHEAD_BYTES);
    let event = largest(&|row| row.payload_bytes + (row.fragments as u64 + 1) * FRAGMENT_OVERHEAD_BYTES);
    let links = sample.accepted().map(|row| row.fragments).max().unwrap_or(1).max(1);
    let (ros, sfi) = (&mut partition.ros, &mut partition.sfi);
    ros.page_size = ros.page_size.max(Size::from_bytes(fragment));
    ros.count = ros.count.min(u32::try_from(links).unwrap_or(u32::MAX));
    sfi.max_event_size = sfi.max_event_size.max(Size::from_bytes(2 * event));
}

/// Without time-outs, whatever else the machine does; without data that level 2 does not see; without recording.
fn select_by_the_menu_alone(partition: &mut Partition) {
    partition.l2sv.get_or_insert_default().timeout = LONG;
    let l2pu = partition.l2pu.get_or_insert_default();
    l2pu.strategy = Strategy::Menu;
    l2pu.request_timeout = LONG;
    l2pu.cost = Interval::from_ns(0);
    partition.ros.request_timeout = LONG;
    partition.ros.preprocessing = Preprocessing::None;
    partition.ros.suppress_below = 0;
    partition.dfm.input = DfmInput::Level2;
    partition.dfm.rate = None;
    partition.dfm.build_timeout = LONG;
    partition.dfm.clear_after = configuration::ClearAfter::Built;
    partition.sfi.request_timeout = LONG;
    let pt = partition.pt.get_or_insert_default();
    *pt = configuration::Pt {
        count: pt.count,
        timeout: LONG,
        memory_limit: pt.memory_limit,
        ..configuration::Pt::default()
    };
    let ef = partition.ef.get_or_insert_default();
    ef.policy = configuration::FilterPolicy::Accept;
    partition.sfo = None;
    partition.stream.clear();
}

/// A TOML basic string; that of JSON is one.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Longer than any study.
const LONG: Interval = Interval::from_ms(24 * 3600 * 1000);

const EXAMPLE: &str = include_str!("../../../../examples/trigger.toml");
