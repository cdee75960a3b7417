//! The clocks of the sources of a read-out system, and what their times say of their numbers.

use configuration::{LinkSource, SourceClock};
use dataflow::report::LinkClock;
use timing::compare::Comparison;
use timing::slip::Slip;

/// Compares sources that say the times of triggers with one of them, the reference.
pub(super) struct Clocks {
    comparison: Comparison,
    parts: Vec<Part>,
}

/// What a source does in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    None,
    Reference,
    Follower,
}

impl Clocks {
    /// Of these sources, in the order of their links; the leader of the partition by its name.
    pub(super) fn new<'a>(sources: impl Iterator<Item = &'a LinkSource>, leader: Option<&str>) -> Self {
        let sources: Vec<&LinkSource> = sources.collect();
        let has_clock = |source: &&LinkSource| source.clock == SourceClock::Model;
        let leads = |source: &&LinkSource| has_clock(source) && Some(source.name.as_str()) == leader;
        let reference = sources.iter().position(leads).or(sources.iter().position(has_clock));
        let part = |(place, source): (usize, &&LinkSource)| match source.clock {
            SourceClock::None => Part::None,
            SourceClock::Model if Some(place) == reference => Part::Reference,
            SourceClock::Model => Part::Follower,
        };
        let parts = sources.iter().enumerate().map(part).collect();
        Self { comparison: Comparison::new(sources.len()), parts }
    }

    /// A source says the time of an event, ns.
    pub(super) fn observe(&mut self, link: usize, number: u64, time: u64) {
        match self.parts[link] {
            Part::None => {}
            Part::Reference => self.comparison.lead(number, time),
            Part::Follower => self.comparison.follow(link, number, time),
        }
    }

    /// What has turned out since the last time, for people.
    pub(super) fn judge(&mut self, name: impl Fn(usize) -> String, notices: &mut Vec<String>) {
        self.comparison.judge(|link, slip| notices.push(in_words(&name(link), slip)));
    }

    /// The clock of a source; none of the reference, and none that is not known yet.
    pub(super) fn of(&self, link: usize) -> Option<LinkClock> {
        let slips = self.comparison.slips(link);
        let fit = slips.clock().fit()?;
        let last = slips.last();
        Some(LinkClock {
            offset_ns: fit.offset_ns,
            drift: fit.drift,
            quality_ns: fit.quality_ns,
            steps: slips.clock().steps(),
            slips: slips.count(),
            slipped_at: last.map_or(0, |slip| slip.since),
            shift: last.map_or(0, |slip| slip.shift),
        })
    }
}

fn in_words(name: &str, slip: Slip) -> String {
    let Slip { since, by, shift } = slip;
    let what = if by > 0 { "lost" } else { "counted too many" };
    let triggers = by.unsigned_abs();
    format!(
        "source {name} slips: from its event {since} on its times are those of event number {shift:+}; triggers {what}: {triggers}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leader_is_the_reference_if_it_has_a_clock_else_the_first_that_has() {
        let source = |name: &str, clock| LinkSource { name: name.to_owned(), clock, ..LinkSource::default() };
        let parts = |clocks: [SourceClock; 3]| {
            let sources = ["a", "b", "c"].into_iter().zip(clocks).map(|(name, clock)| source(name, clock));
            let sources: Vec<LinkSource> = sources.collect();
            Clocks::new(sources.iter(), Some("b")).parts
        };
        let (none, model) = (SourceClock::None, SourceClock::Model);
        assert_eq!(parts([model; 3]), [Part::Follower, Part::Reference, Part::Follower]);
        assert_eq!(parts([none, none, model]), [Part::None, Part::None, Part::Reference]);
        assert_eq!(parts([model, none, model]), [Part::Reference, Part::None, Part::Follower]);
    }
}
