//! How fast a run is now, and who waits for whom now: differences of figures over the last seconds.

use std::collections::VecDeque;

use partition::Figures;
use serde::Serialize;

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
}

/// The last figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<Figures>);

impl Recent {
    /// Adds the newest ones.
    pub(crate) fn add(&mut self, figures: Figures) {
        if self.0.len() == FIGURES_KEPT {
            self.0.pop_front();
        }
        self.0.push_back(figures);
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
        }
    }

    /// The longest wait of the last seconds, if it took more than a tenth of them: who waits for whom and why.
    pub(crate) fn blocked(&self) -> Option<(String, f64)> {
        let (first, last, seconds) = self.ends()?;
        let before = |words: &str| first.waits.iter().find(|wait| wait.words == words).map_or(0, |wait| wait.time_ns);
        let share = |time_ns: u64, words: &str| time_ns.saturating_sub(before(words)) as f64 / 1e9 / seconds;
        let now = last.waits.iter().map(|wait| (wait.words.clone(), share(wait.time_ns, &wait.words)));
        now.filter(|(_, share)| *share > SHARE_MIN).max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    fn ends(&self) -> Option<(&Figures, &Figures, f64)> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        let seconds = last.elapsed.checked_sub(first.elapsed)?.as_secs_f64();
        (seconds > 0.0).then_some((first, last, seconds))
    }
}

/// Figures come four times per second.
const FIGURES_KEPT: usize = 9;
const SHARE_MIN: f64 = 0.1;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::ids::Role;
    use partition::Wait;

    use super::*;

    #[test]
    fn rates_and_waits_are_those_of_the_last_seconds() {
        let mut recent = Recent::default();
        assert_eq!((recent.rates(), recent.blocked()), (Rates::default(), None));
        for quarter in 0..40_u64 {
            let wait = |words: &str, time_ns| Wait { stage: Role::Dfm, words: words.to_owned(), time_ns };
            // The first wait is old; the second one takes a half of the time.
            let waits = vec![wait("the DFM waited", 5_000_000_000), wait("the DFM waits", quarter * 125_000_000)];
            let figures = Figures {
                issued: quarter * 250,
                built: quarter * 25,
                recorded: quarter * 5,
                bytes_recorded: quarter * 1000,
                elapsed: Duration::from_millis(quarter * 250),
                waits,
                ..Figures::default()
            };
            recent.add(figures);
        }
        let rates = Rates { level1_hz: 1000.0, built_hz: 100.0, recorded_hz: 20.0, bytes_per_s: 4000.0 };
        assert_eq!(recent.rates(), rates);
        assert_eq!(recent.blocked(), Some(("the DFM waits".to_owned(), 0.5)));
    }
}
