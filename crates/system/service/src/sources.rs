//! Sources that send by themselves: what comes of each, how fast, and what is wrong.

use std::collections::BTreeMap;

use partition::Source;
use partition::human::grouped;
use partition::summary::Clock;
use serde::{Deserialize, Serialize};

use crate::rates::Recent;

/// A source now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceRates {
    /// What is known of it.
    #[serde(flatten)]
    pub source: Source,
    /// Fragments that come in a second.
    pub fragments_hz: f64,
    /// Their bytes, headers included.
    pub bytes_per_s: f64,
}

/// The sources of a run, by its figures of the last seconds.
pub(crate) fn sources(recent: &Recent) -> Vec<SourceRates> {
    let Some(newest) = recent.newest() else { return Vec::new() };
    let (first, seconds) = recent.ends().map_or((&[][..], 1.0), |(first, _, seconds)| (&first.sources[..], seconds));
    let before: BTreeMap<u32, &Source> = first.iter().map(|source| (source.link.id, source)).collect();
    let with_rates = |source: &Source| {
        let rate = |count: fn(&Source) -> u64| {
            let gained = |before: &&Source| count(source).saturating_sub(count(before)) as f64 / seconds;
            before.get(&source.link.id).map_or(0.0, gained)
        };
        let (fragments_hz, bytes_per_s) = (rate(|source| source.link.fragments), rate(|source| source.link.bytes));
        SourceRates { source: source.clone(), fragments_hz, bytes_per_s }
    };
    newest.sources.iter().map(with_rates).collect()
}

impl SourceRates {
    /// What is to be known beside rates: what is missing or dropped, its clock, what it says. In words, as they stand in a line.
    pub fn remarks(&self) -> String {
        let Source { link, status, .. } = &self.source;
        let device = link.device;
        let counts = [
            (link.missing, "missing"),
            (link.late, "late"),
            (link.doubled, "doubled"),
            (link.unplaced, "unplaced"),
            (link.never_triggered, "never triggered"),
            (link.damaged, "damaged"),
            (device.missing, "frames missing"),
            (device.repeated, "frames repeated"),
            (device.malformed, "frames malformed"),
            (device.foreign, "frames foreign"),
            (device.outside, "frames outside"),
            (device.unread, "frames unread"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts = counts.map(|(count, words)| format!("{} {words}", grouped(count)));
        let said = Some(status.clone()).filter(|status| !status.is_empty());
        let lost = Some(format!("lost {} ×", grouped(link.lost))).filter(|_| link.lost > 0);
        lost.into_iter().chain(counts).chain(link.clock.map(in_words)).chain(said).collect::<Vec<_>>().join(", ")
    }

    /// The run is over. What was counted stays. So does the state of a source that is awaited, down or lost.
    pub(crate) fn rest(&mut self) {
        (self.fragments_hz, self.bytes_per_s) = (0.0, 0.0);
        let state = &mut self.source.link.state;
        if !["awaited", "down", "lost"].contains(&state.as_str()) {
            *state = "ended".to_owned();
        }
    }
}

/// Such as `clock +2000 ns +10.000 ppm ± 5 ns`, with its slips.
fn in_words(clock: Clock) -> String {
    let Clock { offset_ns, drift_ppt, quality_ns, steps, slips, slipped_at, shift } = clock;
    let mut words = format!("clock {offset_ns:+} ns {:+.3} ppm ± {quality_ns} ns", drift_ppt as f64 / 1e6);
    if steps > 0 {
        words += &format!(", stepped {steps} ×");
    }
    if slips > 0 {
        words += &format!(", slipped {slips} ×, last at event {slipped_at} ({shift:+})");
    }
    words
}

/// One that has all that a source may have.
#[cfg(test)]
pub(crate) fn full() -> SourceRates {
    let counts = serde_json::json!({
        "application": "ros-1", "name": "tlu", "id": 1, "state": "running", "fragments": 30, "bytes": 3000, "sent": 0, "kept": 20,
        "missing": 1, "never_triggered": 2, "late": 3, "doubled": 4, "unplaced": 5, "damaged": 6, "lost": 7, "in_buffers": 8,
        "last_number": 41, "last_time_ns": 1_500_000_000, "status": "armed",
        "clock": { "offset_ns": -2000, "drift_ppt": 10_000_000, "quality_ns": 5, "steps": 1, "slips": 2, "slipped_at": 9, "shift": 1 },
    });
    let source = serde_json::from_value(counts).expect("a source");
    SourceRates { source, fragments_hz: 0.0, bytes_per_s: 0.0 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use partition::Figures;

    use super::*;

    #[test]
    fn rates_are_those_of_the_last_seconds() {
        let mut recent = Recent::default();
        for second in 0..3 {
            let mut source = full().source;
            (source.link.fragments, source.link.bytes) = (100 * second, 5000 * second);
            let elapsed = Duration::from_secs(second);
            recent.add(Figures { elapsed, sources: vec![source], ..Figures::default() });
        }
        let mut found = sources(&recent);
        assert_eq!((found[0].fragments_hz, found[0].bytes_per_s, found[0].source.link.fragments), (100.0, 5000.0, 200));
        found[0].rest();
        assert_eq!((found[0].fragments_hz, found[0].source.link.fragments), (0.0, 200));
        assert_eq!(found[0].source.link.state, "ended");
        found[0].source.link.state = "lost".to_owned();
        found[0].rest();
        assert_eq!(found[0].source.link.state, "lost");
    }

    #[test]
    fn remarks_say_what_is_wrong_and_how_the_clock_goes() {
        let clock = "clock -2000 ns +10.000 ppm ± 5 ns, stepped 1 ×, slipped 2 ×, last at event 9 (+1)";
        let counts = "lost 7 ×, 1 missing, 3 late, 4 doubled, 5 unplaced, 2 never triggered, 6 damaged";
        assert_eq!(full().remarks(), format!("{counts}, {clock}, armed"));
    }
}
