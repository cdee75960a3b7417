//! How far a run is, from the newest reports of its applications.

use std::time::Duration;

use base::ids::Role;
use dataflow::report::{Counters, DfmCounters, Level1Counters, Report, SfiCounters, SfoCounters};

use crate::probe::{Counted, Figures, Wait};
use crate::sources::sources_of;
use crate::summary::{cause_in_words, named_sources};
use driver::Assembly;

/// The figures that the reports make.
pub(super) fn figures(elapsed: Duration, assembly: &Assembly, reports: impl Iterator<Item = Report>) -> Figures {
    let mut figures = Figures { elapsed, ..Figures::default() };
    let reports: Vec<Report> = reports.collect();
    let sources = named_sources(&assembly.partition);
    for report in &reports {
        match report.role {
            Role::Level1 => {
                let level1 = Level1Counters::from_values(&report.counters);
                figures.issued += level1.issued;
                figures.offered += level1.offered;
                figures.vetoed += level1.vetoed;
            }
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
        figures.sources.extend(sources_of(&assembly.name(report.node), report, &sources));
        figures.waits.extend(report.blocked.iter().map(|blocked| Wait {
            stage: report.role,
            who: assembly.name(report.node),
            whom: assembly.name(blocked.by),
            by: assembly.application(blocked.by).map_or(Role::RunControl, |application| application.role),
            cause: blocked.cause,
            words: format!(
                "{} waits for {}: {}",
                assembly.name(report.node),
                assembly.name(blocked.by),
                cause_in_words(blocked, &sources, reports.iter())
            ),
            time_ns: blocked.time_ns,
        }));
    }
    let counted = |report: Report| {
        let (name, role) = (assembly.name(report.node), report.role);
        Counted { name, role, counts: report.counters }
    };
    figures.applications = reports.into_iter().map(counted).collect();
    figures
}
