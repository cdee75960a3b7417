//! Ranges of integer keys, for the checks and for the schema.

use core::ops::RangeInclusive;

use crate::partition::{Partition, SLOTS_MAX};

/// The integer keys that do not take all 32 bits, with their values and ranges.
pub(crate) fn ranges(p: &Partition) -> Vec<(&'static str, u32, RangeInclusive<u32>)> {
    let mut ranges = vec![
        ("ros.count", p.ros.count, 1..=APPLICATIONS_MAX),
        ("ros.robs", p.ros.robs, 1..=ROBS_MAX),
        ("ros.pages", p.ros.pages, 1..=PAGES_MAX),
        ("dfm.clear_group", p.dfm.clear_group, 1..=GROUP_MAX),
        ("dfm.queue", p.dfm.queue, 1..=EVENTS_MAX),
        ("sfi.count", p.sfi.count, 0..=APPLICATIONS_MAX),
        ("sfi.events", p.sfi.events, 1..=SLOTS_MAX),
        ("sfi.building", p.sfi.building, 1..=SLOTS_MAX),
        ("sfi.outstanding_requests", p.sfi.outstanding_requests, 1..=SLOTS_MAX),
        ("sfi.retries", p.sfi.retries, 0..=RETRIES_MAX),
        ("transport.pages", p.transport.pages, 1..=PAGES_MAX),
        ("processes.restarts", p.processes.restarts, 1..=RESTARTS_MAX),
        ("sampling.prescale", p.sampling.prescale, 1..=u32::MAX),
        ("sampling.samples", p.sampling.samples, 1..=SAMPLES_MAX),
    ];
    if let Some(level1) = &p.level1 {
        ranges.extend([
            ("level1.in_flight", level1.in_flight, 1..=EVENTS_MAX),
            ("level1.rois_per_event", level1.rois_per_event, 0..=ROIS_MAX),
        ]);
    }
    if let Some(l2sv) = &p.l2sv {
        ranges.extend([
            ("l2sv.count", l2sv.count, 1..=APPLICATIONS_MAX),
            ("l2sv.events_in_system", l2sv.events_in_system, 1..=EVENTS_MAX),
            ("l2sv.group", l2sv.group, 1..=GROUP_MAX),
        ]);
    }
    if let Some(l2pu) = &p.l2pu {
        ranges.extend([
            ("l2pu.count", l2pu.count, 1..=APPLICATIONS_MAX),
            ("l2pu.workers", l2pu.workers, 1..=SLOTS_MAX),
            ("l2pu.robs_per_step", l2pu.robs_per_step, 1..=ROBS_MAX),
        ]);
    }
    if let Some(ef) = &p.ef {
        ranges.extend([
            ("ef.count", ef.count, 1..=APPLICATIONS_MAX),
            ("ef.slots", ef.slots, 1..=SLOTS_MAX),
            ("ef.prescale", ef.prescale, 1..=u32::MAX),
        ]);
    }
    ranges.extend(p.ros.push.as_ref().map(|push| ("ros.push.group", push.group, 1..=GROUP_MAX)));
    if let Some(roc) = &p.roc {
        ranges.extend([
            ("roc.count", roc.count, 1..=CRATES_MAX),
            ("roc.ros", roc.ros, 1..=CRATE_MAX),
            ("roc.clear_group", roc.clear_group, 1..=GROUP_MAX),
        ]);
    }
    ranges.extend(p.pt.as_ref().map(|pt| ("pt.count", pt.count, 1..=TASKS_MAX)));
    ranges.extend(p.sfo.as_ref().map(|sfo| ("sfo.count", sfo.count, 1..=APPLICATIONS_MAX)));
    ranges
}

/// Applications of one role. Those of all roles and run control together stay within the 16 bits of a node id.
const APPLICATIONS_MAX: u32 = 10_000;
const _: () = assert!(6 * APPLICATIONS_MAX + 2 * CRATES_MAX + 4 <= u16::MAX as u32);
/// Each has a TRG and an EBIF.
const CRATES_MAX: u32 = 2_500;
/// Read-out systems of a crate.
const CRATE_MAX: u32 = dataflow::roc::ebif::SYSTEMS_MAX as u32;

/// ROBs of an event that readers of the format take (format note §3e).
const ROBS_MAX: u32 = 4096;
/// Processing tasks of one EFD.
const TASKS_MAX: u32 = 1024;
const PAGES_MAX: u32 = 1 << 24;
const GROUP_MAX: u32 = 10_000;
const EVENTS_MAX: u32 = 1_000_000;
const SAMPLES_MAX: u32 = 1000;
const RETRIES_MAX: u32 = 1000;
const RESTARTS_MAX: u32 = 1000;
const ROIS_MAX: u32 = dataflow::message::ROIS_MAX as u32;
