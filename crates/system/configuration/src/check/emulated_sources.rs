//! What `source.emulated` demands.

use super::Checker;
use crate::tables::{EmulatedSource, Level1Source, LinkSource};
use crate::units::{Fraction, Interval, Rate};

impl Checker<'_> {
    pub(super) fn emulated(&mut self, place: usize, source: &LinkSource) {
        let key = |key: &str| format!("source.{place}.emulated.{key}");
        let size_max = source.size_max;
        if let Some(size) = source.emulated.size.filter(|size| *size > size_max) {
            let message = format!("expected at most source.{place}.size_max, which is {size_max}, found {size}");
            self.problem(&[&key("size"), &format!("source.{place}.size_max")], message);
        }
        for (name, message) in self.wrong_with_source(place, &source.emulated) {
            self.problem(&[&key(name)], message);
        }
    }

    /// Keys that mean nothing for this source, or have no meaning at all.
    fn wrong_with_source(&self, place: usize, emulated: &EmulatedSource) -> Vec<(&'static str, String)> {
        let EmulatedSource { rate, chunk, overlap, delay, efficiency, .. } = emulated;
        let is_sliced = self.partition.level1.as_ref().is_some_and(|level1| level1.source == Level1Source::Time);
        let leader = self.partition.leader();
        // The leader is unknown, which is a problem of its own: this source may lead or follow.
        let is_unknown = self.partition.leader_is_unknown();
        let leads = leader == Some(place) || is_unknown;
        let follows = is_unknown || (leader.is_some() && !leads);
        let of_slices = "only for level1.source = \"time\"";
        let given = [
            ("rate", rate.is_some() && !leads, "only for the source that leads; others send when it does"),
            ("chunk", chunk.is_some() && !is_sliced, of_slices),
            ("overlap", *overlap != Fraction::default() && !is_sliced, of_slices),
            (
                "delay",
                *delay != Interval::default() && !follows && !is_sliced,
                "only for a source that follows one that leads, or sends chunks",
            ),
            ("efficiency", *efficiency != Fraction::ONE && !follows, "only for a source that follows one that leads"),
        ];
        let mut wrong: Vec<_> =
            given.into_iter().filter(|(_, is_wrong, _)| *is_wrong).map(|(key, _, why)| (key, why.to_owned())).collect();
        if rate.is_some_and(|rate| rate == Rate::default()) {
            wrong.push(("rate", "expected a rate above 0, such as \"1 kHz\"".to_owned()));
        }
        if let Some(rate) = rate.filter(|rate| *rate > RATE_MAX) {
            wrong.push(("rate", format!("expected at most {RATE_MAX}, found {rate}")));
        }
        if *chunk == Some(Interval::default()) {
            wrong.push(("chunk", "expected a time above 0, such as \"2 ms\"".to_owned()));
        }
        if *overlap == Fraction::ONE {
            wrong.push(("overlap", "expected less than 100 %, or chunks do not go on".to_owned()));
        } else if let Some(slice_ns) = self.partition.slice_ns().filter(|_| *chunk != Some(Interval::default())) {
            let every = emulated.every(slice_ns);
            if every < EVERY_MIN {
                wrong.push((
                    "chunk",
                    format!("expected at least {EVERY_MIN} from one chunk to the next, found {every}"),
                ));
            }
        }
        if follows && *delay > DELAY_MAX {
            wrong.push(("delay", format!("expected at most {DELAY_MAX}, found {delay}")));
        }
        wrong
    }
}

/// Above this the least pause of an emulated source, 1 us, takes more than 1 % off the rate.
const RATE_MAX: Rate = Rate::from_millihertz(200_000_000);
/// Likewise.
const EVERY_MIN: Interval = Interval::from_ns(5_000);
/// At that rate the simulation keeps triggers for so long.
const DELAY_MAX: Interval = Interval::from_ms(100);
