//! Runs of `examples/readout-crate.toml`: a crate of four ROBs, with what it feeds, in processes of their own.
//!
//! `pair` has all of a read-out crate and a sub-farm crate in processes of their own, TRG, ROBs, EBIF, SFI, event handler and SFO.
//! `control` has those of the read-out crate alone. What stands for the world outside is in the process of run control: level 1, level
//! 2, the DFM.

use std::time::Duration;

use base::ids::Role;
use configuration::Partition;
use dataflow::report::TrgCounters;
use driver::scratch::Scratch;
use partition::{Outcome, Placement, Run};
use terminal::conduct;

use super::{BLOCK_EVENTS, BLOCK_ROIS, CLEAR_GROUP, Facts, More, Parameters};
use crate::bench::arguments::{BenchArgs, BenchCratePart};
use crate::bench::paired::{Figures, Unit};
use crate::bench::points::Point;
use crate::bench::reference::{Measurement, ReferenceError};
use crate::bench::ring::{self, Ring};
use crate::bench::{BenchError, sound};

/// The crate alone, whose messages are counted.
pub(super) fn control(args: &BenchArgs) -> Result<Point<Parameters, More>, BenchError> {
    let parameters = Parameters { processes: 2 + ROBS + 1, ..Parameters::of_crate(args, BenchCratePart::Control) };
    let in_crate = |role| matches!(role, Role::Trg | Role::Ros | Role::Ebif);
    let paper_us = BLOCK_US.map(|us| us / (BLOCK_EVENTS + BLOCK_ROIS) as f64);
    Ok(parameters.compared(paper_us, Some(1e6), runs(&parameters, Unit::Message, in_crate)?))
}

/// Both crates, with fragments of the three lengths of the paper.
pub(super) fn pair(args: &BenchArgs) -> Result<Vec<Point<Parameters, More>>, BenchError> {
    let in_crates = |role| matches!(role, Role::Trg | Role::Ros | Role::Ebif | Role::Sfi | Role::Efd | Role::Sfo);
    let paper_us = BLOCK_US.map(|us| us / BLOCK_EVENTS as f64);
    let point = |fragment_bytes| {
        let parameters = Parameters::of_crate(args, BenchCratePart::Pair);
        let parameters = Parameters { fragment_bytes, processes: 5 + ROBS + 1, ..parameters };
        Ok(parameters.compared(paper_us, Some(1e5), runs(&parameters, Unit::Event, in_crates)?))
    };
    LENGTHS_BYTES.into_iter().map(point).collect()
}

fn runs(
    parameters: &Parameters,
    unit: Unit,
    in_children: fn(Role) -> bool,
) -> Result<Vec<(Figures, Figures, Facts)>, BenchError> {
    let run = |_| {
        let (ours, facts) = run(parameters, unit, in_children)?;
        Ok((ours, bare(parameters, unit)?, facts))
    };
    (0..parameters.pairs).map(run).collect()
}

fn run(parameters: &Parameters, unit: Unit, in_children: fn(Role) -> bool) -> Result<(Figures, Facts), BenchError> {
    let failed = |error| BenchError::System { what: "a temporary directory", error };
    let scratch = Scratch::new().map_err(failed)?;
    let overrides = parameters.overrides(&scratch);
    let partition = Partition::parse(EXAMPLE_NAME, EXAMPLE, &overrides)?;
    let conducted = conduct(Run::new(partition).place(Placement::apart(in_children)))?;
    let events = sound(&conducted)?.level1 as f64;
    let TrgCounters { accepted, dispatched, rois, .. } = TrgCounters::total(conducted.reports(Role::Trg));
    // Clears of accepted events are Discards, which the paper's TRG does not send.
    let (l2a, l2r, roi) = (accepted as f64, dispatched.saturating_sub(accepted) as f64, rois as f64);
    let counted = if unit == Unit::Message { l2a + l2r + roi } else { events };
    let seconds = conducted.duration.as_secs_f64();
    let figures = Figures { unit, ..Figures::of(counted, None, seconds, conducted.cpu.as_secs_f64()) };
    let counts = [("level1_per_s", events), ("l2a_per_s", l2a), ("l2r_per_s", l2r), ("roi_per_s", roi)];
    let mut facts: Facts = counts.into_iter().map(|(name, count)| (name, count / seconds)).collect();
    facts.extend(PARTS.map(|(name, role)| (name, cpu_us(&conducted, role) / events)));
    facts.insert("cores_used", conducted.cores_used);
    facts.insert("part_left_to_us", conducted.left_to_us.unwrap_or(f64::NAN));
    Ok((figures, facts))
}

/// Processor time of all children of a role.
fn cpu_us(conducted: &Outcome, role: Role) -> f64 {
    let cpu = conducted.reports(role).map(|report| conducted.cpu_of_children.get(&report.node).copied());
    cpu.sum::<Option<Duration>>().map_or(f64::NAN, |cpu| cpu.as_secs_f64() * 1e6)
}

/// As many rings of shared memory as there are ROBs. One slot of each is written and read for an event; or for a message, which is as
/// long as those of the paper.
fn bare(parameters: &Parameters, unit: Unit) -> Result<Figures, BenchError> {
    let fragment_bytes = if unit == Unit::Message { MESSAGE_BYTES } else { parameters.fragment_bytes };
    let ring = Ring {
        sources: ROBS,
        fragment_bytes,
        written: false,
        summed: false,
        slots: SLOTS,
        seconds: parameters.seconds,
    };
    let Measurement { events, seconds, cpu_seconds, bad } = ring::run(&ring)?;
    if bad > 0 {
        return Err(BenchError::Reference(ReferenceError::Bad { bad }));
    }
    Ok(Figures { unit, ..Figures::of(events as f64, None, seconds, cpu_seconds) })
}

impl Parameters {
    fn of_crate(args: &BenchArgs, part: BenchCratePart) -> Self {
        Self { robs: ROBS, transport: "shm", ..Self::new(args, part) }
    }

    /// The example has a read-out system that stands alone and level 2 look at each event; all else is as it says.
    fn overrides(&self, scratch: &Scratch) -> Vec<String> {
        let part_of_block = |count: u64| count as f64 / BLOCK_EVENTS as f64;
        vec![
            format!("run.duration={} ms", self.milliseconds()),
            format!("output.directory={}", scratch.path().display()),
            format!("transport.roc={}", self.transport),
            format!("transport.idle={}", self.idle.name()),
            format!("ros.count={}", self.robs),
            format!("ros.fragment.size={} B", self.fragment_bytes),
            format!("ros.page_size={} B", self.fragment_bytes.next_multiple_of(1024) + 512),
            format!("ros.pages={PAGES}"),
            format!("roc.clear_group={CLEAR_GROUP}"),
            "l2pu.strategy=generate".to_owned(),
            format!("l2pu.accept={:.4}", part_of_block(1)),
            format!("l2pu.asked={:.4}", part_of_block(BLOCK_ROIS)),
            format!("l2pu.workers={WORKERS}"),
        ]
    }
}

/// Where processor time goes, of each event of level 1.
const PARTS: [(&str, Role); 3] = [("trg_cpu_us", Role::Trg), ("robs_cpu_us", Role::Ros), ("ebif_cpu_us", Role::Ebif)];
const EXAMPLE_NAME: &str = "readout-crate.toml";
const EXAMPLE: &str = include_str!("../../../../../../examples/readout-crate.toml");
const ROBS: u32 = 4;
const LENGTHS_BYTES: [u32; 3] = [512, 768, 2560];
/// The paper's TRG with four ROBs takes so long for a block of messages \[DAQ1999 Fig. 5 (d)\].
const BLOCK_US: [f64; 2] = [1780.0, 1950.0];
const MESSAGE_BYTES: u32 = 24;
const SLOTS: u32 = 1024;
const PAGES: u32 = 2048;
/// Events that level 2 may have at a time: as many as a supervisor has.
const WORKERS: u32 = 1000;
