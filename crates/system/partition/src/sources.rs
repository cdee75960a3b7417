//! The sources of a run that goes on, as people watch them.

use base::sources::{SourceNow, SourcePhase};
use dataflow::report::{LinkReport, LinkState, Report};
use serde::{Deserialize, Serialize};

use crate::summary::{Link, NamedSource};

/// A source at one moment of a run. What came of it is the same as in the summary, but for its state, one of [`STATES`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The application that has its link.
    pub application: String,
    /// What has come, and what became of it. Never triggered are those alone that were removed.
    #[serde(flatten)]
    pub link: Link,
    /// Fragments in the buffers now.
    pub in_buffers: u64,
    /// The number of the fragment that came last; `None` before the first one.
    pub last_number: Option<u64>,
    /// The end of that fragment in ns, by the clock of the source, if it says times.
    pub last_time_ns: Option<u64>,
    /// What it has said of itself last, or why it was lost.
    pub status: String,
}

/// What a source may be. It is not there yet; there; waiting for a run; sending; told to send nothing for now; told to end; at its end.
/// It is away, and perhaps soon there again, or away for so long that events do without it.
pub const STATES: [&str; 9] =
    ["awaited", "connected", "configured", "running", "xoff", "stopping", "ended", "down", "lost"];

/// The sources of an application, which has this name.
pub(crate) fn sources_of<'a>(
    application: &str,
    report: &'a Report,
    named: &'a [NamedSource],
) -> impl Iterator<Item = Source> + use<'a> {
    let application = application.to_owned();
    report.links.iter().enumerate().filter_map(move |(place, link)| {
        let source = named.iter().find(|source| source.id == link.rob)?;
        Some(Source::new(application.clone(), link, source, report.sources.get(place)))
    })
}

impl Source {
    /// Of an application that is not there any more, nobody knows what its sources do now.
    fn new(application: String, report: &LinkReport, named: &NamedSource, now: Option<&SourceNow>) -> Self {
        let in_buffers = report.counters.resident;
        let mut link = Link::new(report, named);
        link.never_triggered -= in_buffers;
        link.state = state(report.state, now).to_owned();
        // Fragments of a former life of the application are counted, but it was another one that saw them.
        let has_come = |now: &&SourceNow| link.fragments > 0 && (now.number > 0 || now.phase != SourcePhase::Absent);
        let last = now.filter(has_come);
        let last_number = last.map(|now| now.number);
        let last_time_ns = last.map(|now| now.time_ns).filter(|time| *time > 0);
        let status = now.map_or_else(String::new, |now| now.status.clone());
        Self { application, link, in_buffers, last_number, last_time_ns, status }
    }
}

/// One of [`STATES`].
fn state(state: LinkState, now: Option<&SourceNow>) -> &'static str {
    match (state, now.map(|now| (now.phase, now.is_off))) {
        (LinkState::Awaited, _) => "awaited",
        (LinkState::Down, _) => "down",
        (LinkState::Lost, _) => "lost",
        (LinkState::Ended, _) => "ended",
        (LinkState::Up, Some((SourcePhase::Configured, _))) => "configured",
        (LinkState::Up, Some((SourcePhase::Started, true))) => "xoff",
        (LinkState::Up, Some((SourcePhase::Started, false))) => "running",
        (LinkState::Up, Some((SourcePhase::Stopped, _))) => "stopping",
        (LinkState::Up, None | Some((SourcePhase::Absent | SourcePhase::Connected, _))) => "connected",
    }
}

#[cfg(test)]
mod tests {
    use base::ids::Role;
    use dataflow::report::{LinkClock, RosCounters};

    use super::*;

    #[test]
    fn a_source_is_told_with_its_state_and_what_came_of_it() {
        let named = [NamedSource { id: 7, name: "tlu".to_owned(), play: None }];
        let counters =
            RosCounters { fragments_in: 9, resident: 2, never_triggered: 1, cleared: 6, ..RosCounters::default() };
        let clock = Some(LinkClock { offset_ns: -5, slips: 1, ..LinkClock::default() });
        let mut report = Report::of(Role::Ros, Vec::new());
        report.links = vec![LinkReport { rob: 7, state: LinkState::Up, counters, clock }];
        let phase = SourcePhase::Started;
        report.sources = vec![SourceNow { phase, is_off: true, number: 8, time_ns: 0, status: "armed".to_owned() }];
        let of = |report: &Report| sources_of("ros-1", report, &named).next().unwrap();
        let source = of(&report);
        assert_eq!(
            (source.application.as_str(), source.link.name.as_str(), source.link.state.as_str()),
            ("ros-1", "tlu", "xoff")
        );
        assert_eq!((source.in_buffers, source.link.never_triggered, source.link.kept), (2, 1, 6));
        assert_eq!((source.last_number, source.last_time_ns, source.status.as_str()), (Some(8), None, "armed"));
        assert_eq!(source.link.clock.map(|clock| (clock.offset_ns, clock.slips)), Some((-5, 1)));
        report.links[0].state = LinkState::Lost;
        assert_eq!(of(&report).link.state, "lost");
        report.sources.clear();
        assert_eq!((of(&report).last_number, of(&report).status), (None, String::new()));
    }

    #[test]
    fn each_state_has_its_word() {
        let now = |phase, is_off| SourceNow { phase, is_off, ..SourceNow::default() };
        for (link, phase, word) in [
            (LinkState::Awaited, SourcePhase::Absent, "awaited"),
            (LinkState::Up, SourcePhase::Connected, "connected"),
            (LinkState::Up, SourcePhase::Configured, "configured"),
            (LinkState::Up, SourcePhase::Started, "running"),
            (LinkState::Up, SourcePhase::Stopped, "stopping"),
            (LinkState::Ended, SourcePhase::Stopped, "ended"),
            (LinkState::Down, SourcePhase::Absent, "down"),
            (LinkState::Lost, SourcePhase::Absent, "lost"),
        ] {
            assert_eq!(state(link, Some(&now(phase, false))), word);
            assert!(STATES.contains(&word));
        }
    }
}
