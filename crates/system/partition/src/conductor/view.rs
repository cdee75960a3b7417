//! How far a run is, from the newest reports of its applications.

use std::time::Duration;

use base::ids::Role;
use dataflow::report::{Counters, DfmCounters, Level1Counters, Report, SfiCounters, SfoCounters};

use crate::assembly::Assembly;
use crate::probe::{Figures, Wait};

/// The figures that the reports make.
pub(super) fn figures(elapsed: Duration, assembly: &Assembly, reports: impl Iterator<Item = Report>) -> Figures {
    let mut figures = Figures { elapsed, ..Figures::default() };
    for report in reports {
        match report.role {
            Role::Level1 => figures.issued += Level1Counters::from_values(&report.counters).issued,
            Role::Dfm => figures.issued += DfmCounters::from_values(&report.counters).self_triggered,
            Role::Sfi => {
                let sfi = SfiCounters::from_values(&report.counters);
                figures.built += sfi.built_complete + sfi.built_incomplete;
            }
            Role::Sfo => {
                let sfo = SfoCounters::from_values(&report.counters);
                figures.recorded += sfo.recorded;
                figures.bytes_recorded += sfo.bytes;
            }
            _ => {}
        }
        figures.waits.extend(report.blocked.iter().map(|blocked| Wait {
            stage: report.role,
            words: format!(
                "{} waits for {}: {}",
                assembly.name(report.node),
                assembly.name(blocked.by),
                blocked.cause.describe()
            ),
            time_ns: blocked.time_ns,
        }));
    }
    figures
}
