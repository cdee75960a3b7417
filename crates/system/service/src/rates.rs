//! How fast a run is now, and who waits for whom now: differences of figures over the last seconds.

use std::collections::VecDeque;
use std::time::Duration;

use configuration::Partition;
use partition::{Figures, Wait};
use serde::Serialize;

use crate::attribution::Attribution;

/// Per second, over the last two seconds or so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Level-1 events.
    pub level1_hz: f64,
    /// Events built.
    pub built_hz: f64,
    /// Events recorded.
    pub recorded_hz: f64,
    /// Bytes recorded.
    pub bytes_per_s: f64,
    /// Share of the trigger opportunities of level 1 that fell into dead time; none if there were no opportunities.
    pub dead_time: Option<f64>,
}

/// The last figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<Figures>);

impl Recent {
    /// Adds the newest ones. The oldest are so old that they tell of [`WINDOW`] at least.
    pub(crate) fn add(&mut self, figures: Figures) {
        let elapsed = figures.elapsed;
        self.0.push_back(figures);
        while self.0.get(1).is_some_and(|second| second.elapsed + WINDOW <= elapsed) {
            self.0.pop_front();
        }
    }

    /// What they say.
    pub(crate) fn rates(&self) -> Rates {
        let Some((first, last, seconds)) = self.ends() else { return Rates::default() };
        let per_second = |count: fn(&Figures) -> u64| count(last).saturating_sub(count(first)) as f64 / seconds;
        Rates {
            level1_hz: per_second(|figures| figures.issued),
            built_hz: per_second(|figures| figures.built),
            recorded_hz: per_second(|figures| figures.recorded),
            bytes_per_s: per_second(|figures| figures.bytes_recorded),
            dead_time: Some(last.offered.saturating_sub(first.offered))
                .filter(|offered| *offered > 0)
                .map(|offered| last.vetoed.saturating_sub(first.vetoed) as f64 / offered as f64),
        }
    }

    /// What holds up the run now.
    pub(crate) fn cause(&self, partition: &Partition) -> Option<Attribution> {
        Attribution::of(self.waits(), partition)
    }

    /// All waits, each with its share of the last seconds.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (&Wait, f64)> {
        self.ends().into_iter().flat_map(|(first, last, seconds)| {
            let before =
                |words: &str| first.waits.iter().find(|wait| wait.words == words).map_or(0, |wait| wait.time_ns);
            // A wait that is told a little later than the time may be longer.
            let share = move |wait: &Wait| {
                let waited_ns = wait.time_ns.saturating_sub(before(&wait.words));
                (waited_ns as f64 / 1e9 / seconds).min(1.0)
            };
            last.waits.iter().map(move |wait| (wait, share(wait)))
        })
    }

    /// The newest figures.
    pub(crate) fn newest(&self) -> Option<&Figures> {
        self.0.back()
    }

    pub(crate) fn ends(&self) -> Option<(&Figures, &Figures, f64)> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        let seconds = last.elapsed.checked_sub(first.elapsed)?.as_secs_f64();
        (seconds > 0.0).then_some((first, last, seconds))
    }
}

/// Figures come four times in a second, or once.
const WINDOW: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use base::ids::Role;
    use dataflow::report::BlockCause;

    #[test]
    fn rates_and_waits_are_those_of_the_last_seconds() {
        let mut recent = Recent::default();
        let partition = Partition::parse("p", "partition.name = \"p\"\nsfi.count = 1\nros.count = 1\n", &[]).unwrap();
        assert_eq!((recent.rates(), recent.cause(&partition)), (Rates::default(), None));
        for quarter in 0..40_u64 {
            let (stage, by) = (Role::Dfm, Role::Sfi);
            let wait = |words: &str, time_ns| Wait {
                stage,
                who: "dfm-1".to_owned(),
                whom: "sfi-1".to_owned(),
                by,
                cause: BlockCause::NoSfi,
                words: words.to_owned(),
                time_ns,
            };
            // The first wait is old; the second one takes a half of the time.
            let waits = vec![wait("the DFM waited", 5_000_000_000), wait("the DFM waits", quarter * 125_000_000)];
            let figures = Figures {
                issued: quarter * 250,
                offered: quarter * 1000,
                vetoed: quarter * 750,
                built: quarter * 25,
                recorded: quarter * 5,
                bytes_recorded: quarter * 1000,
                elapsed: Duration::from_millis(quarter * 250),
                waits,
                ..Figures::default()
            };
            recent.add(figures);
        }
        let dead_time = Some(0.75);
        let rates = Rates { level1_hz: 1000.0, built_hz: 100.0, recorded_hz: 20.0, bytes_per_s: 4000.0, dead_time };
        assert_eq!(recent.rates(), rates);
        let cause = recent.cause(&partition).map(|cause| (cause.words, cause.share));
        assert_eq!(cause, Some(("dfm-1 waits because sfi-1 has no room for an event".to_owned(), 0.5)));
    }
}
