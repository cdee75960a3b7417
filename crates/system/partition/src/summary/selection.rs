//! What the summary says of the selection: chains, data moved for level 2, failures of the event filter.

use base::ids::Role;
use control::controller::Ending;
use dataflow::report::{ChainCount, EfdCounters, L2puCounters, Report, RosCounters};
use serde::{Deserialize, Serialize};

use super::{RunFacts, fraction};

/// The selection of a run that has a menu or processing tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The chains of the menu, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<Chain>,
    /// Data that level 2 looked at.
    pub level2_data: Level2Data,
    /// Events that the event filter accepted and no stream took, for its chains or prescale: they count as rejected.
    pub without_stream: u64,
    /// Events that the event filter failed on, by reason.
    pub failures: Failures,
    /// Accepted events of which only windows are kept, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
}

/// What is kept of accepted events of which the event filter wanted windows. They are counted before they are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are counters of the EFDs, which docs/metrics.md explains")]
pub struct Windows {
    pub events: u64,
    pub kept_chunks: u64,
    pub left_chunks: u64,
    pub left_fragments: u64,
    pub left_bytes: u64,
}

/// What became of the events of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// Events that it looked at in level 2: its item had fired and its prescale let them through.
    pub level2_input: u64,
    /// Of these, events that it accepted.
    pub level2_passed: u64,
    /// Events that it looked at in the event filter.
    pub filter_input: u64,
    /// Of these, events that it accepted.
    pub filter_passed: u64,
}

/// Data that level 2 looked at, without headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Level2Data {
    /// ROBs asked for each event, on the average.
    pub robs_per_event: f64,
    /// Bytes of detector data that level 2 looked at.
    pub payload_bytes: u64,
    /// Bytes of detector data of all events.
    pub event_payload_bytes: u64,
    /// Their ratio.
    pub fraction: f64,
    /// Steps of steering that ran without some of the data that they had asked for.
    #[serde(default)]
    pub incomplete_steps: u64,
}

/// Events that the event filter failed on, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the reasons")]
pub struct Failures {
    pub crash: u64,
    pub exception: u64,
    pub timeout: u64,
    pub memory: u64,
    pub other: u64,
}

impl Selection {
    /// `None` if neither a menu nor processing tasks selected anything.
    pub(super) fn new(facts: &RunFacts, ending: &Ending) -> Option<Self> {
        let all = ending.lives.all();
        let reports = |role: Role| all.values().filter(move |report| report.role == role);
        if facts.chains.is_empty() && !facts.has_tasks {
            return None;
        }
        let (level2, filter) = (sum(reports(Role::L2pu)), sum(reports(Role::Efd)));
        let chain = |(index, name): (usize, &String)| {
            let of = |counts: &[ChainCount]| counts.get(index).copied().unwrap_or_default();
            let (level2, filter) = (of(&level2), of(&filter));
            Chain {
                name: name.clone(),
                level2_input: level2.input,
                level2_passed: level2.passed,
                filter_input: filter.input,
                filter_passed: filter.passed,
            }
        };
        let efd = EfdCounters::total(reports(Role::Efd));
        Some(Self {
            chains: facts.chains.iter().enumerate().map(chain).collect(),
            level2_data: level2_data(facts, reports(Role::L2pu), reports(Role::Ros)),
            without_stream: efd.prescaled,
            failures: failures(&efd),
            windows: windows(&efd),
        })
    }
}

fn sum<'a>(reports: impl Iterator<Item = &'a Report>) -> Vec<ChainCount> {
    let mut sum = Vec::new();
    for report in reports {
        if sum.len() < report.chains.len() {
            sum.resize(report.chains.len(), ChainCount::default());
        }
        for (total, count) in sum.iter_mut().zip(&report.chains) {
            total.input = total.input.saturating_add(count.input);
            total.passed = total.passed.saturating_add(count.passed);
        }
    }
    sum
}

fn level2_data<'a>(
    facts: &RunFacts,
    l2pus: impl Iterator<Item = &'a Report>,
    ros: impl Iterator<Item = &'a Report>,
) -> Level2Data {
    let (l2pu, ros) = (L2puCounters::total(l2pus), RosCounters::total(ros));
    let headers = ros.fragments_in.saturating_mul(facts.fragment_overhead_bytes);
    let event_payload_bytes = ros.bytes_in.saturating_sub(headers);
    Level2Data {
        robs_per_event: fraction(l2pu.robs as f64, l2pu.received as f64),
        payload_bytes: l2pu.payload_bytes,
        event_payload_bytes,
        fraction: fraction(l2pu.payload_bytes as f64, event_payload_bytes as f64),
        incomplete_steps: l2pu.incomplete,
    }
}

fn windows(efd: &EfdCounters) -> Option<Windows> {
    let EfdCounters { windowed: events, kept_chunks, left_chunks, left_fragments, left_bytes, .. } = *efd;
    (events > 0).then_some(Windows { events, kept_chunks, left_chunks, left_fragments, left_bytes })
}

fn failures(efd: &EfdCounters) -> Failures {
    let known = efd.debug_crash + efd.debug_exception + efd.debug_timeout + efd.debug_memory;
    Failures {
        crash: efd.debug_crash,
        exception: efd.debug_exception,
        timeout: efd.debug_timeout,
        memory: efd.debug_memory,
        other: efd.debug.saturating_sub(known),
    }
}
