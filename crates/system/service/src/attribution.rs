//! Where the time goes: which of many waits is the cause, and what helps.

use base::ids::Role;
use dataflow::message::BusyCause;
use dataflow::report::BlockCause;
use partition::Wait;
use partition::human::percent;

/// The cause of a delay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attribution {
    /// Who waits for whom and why, in words.
    pub(crate) words: String,
    /// Share of the last seconds.
    pub(crate) share: f64,
    /// What helps.
    pub(crate) remedy: &'static str,
}

impl Attribution {
    /// Of all waits with their shares of the time the cause, if one takes more than a tenth. A role that is held up
    /// holds up those before it. So of the long waits the one counts that is the last on the way of an event.
    pub(crate) fn of<'a>(waits: impl Iterator<Item = (&'a Wait, f64)>) -> Option<Self> {
        let waits: Vec<_> = waits.filter(|(_, share)| *share > SHARE_MIN).collect();
        let longest = waits.iter().map(|(_, share)| *share).max_by(f64::total_cmp)?;
        let long = waits.into_iter().filter(|(_, share)| *share >= longest * LONG);
        let place = |wait: &Wait| Role::IN_DRAIN_ORDER.iter().position(|role| *role == wait.stage);
        let cause = long.max_by(|(one, a), (other, b)| place(one).cmp(&place(other)).then(a.total_cmp(b)));
        cause.map(|(wait, share)| Self { words: wait.words.clone(), share, remedy: remedy(wait.cause) })
    }
}

impl core::fmt::Display for Attribution {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ({} of the time); {}", self.words, percent(self.share), self.remedy)
    }
}

/// What helps against a cause, with the keys of the configuration.
const fn remedy(cause: BlockCause) -> &'static str {
    match cause {
        BlockCause::Busy(BusyCause::Pages) => "more pages help (ros.pages)",
        BlockCause::Busy(BusyCause::EventsInSystem) => "more events in level 2 help (l2sv.events_in_system)",
        BlockCause::Busy(BusyCause::ForcedLimit) => "level 2 is late: more units help (l2pu.count)",
        BlockCause::Busy(BusyCause::BuildQueue) => "more event builders help (sfi.count)",
        BlockCause::Busy(BusyCause::Window) => "more triggers in flight help (level1.in_flight)",
        BlockCause::Busy(BusyCause::Source) => "start the source",
        BlockCause::NoSfi => "more event builders help, or more room in each (sfi.count, sfi.events)",
        BlockCause::NoPull => "more of the event filter helps (ef.count, pt.count)",
        BlockCause::Recording => "more recorders or a faster disk help (sfo.count)",
        BlockCause::NoWorker => "more units or workers help (l2pu.count, l2pu.workers)",
    }
}

const SHARE_MIN: f64 = 0.1;
/// A wait of this part of the longest one is long.
const LONG: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(stage: Role, cause: BlockCause) -> Wait {
        let words = format!("{} waits: {}", stage.stem(), cause.describe());
        Wait { stage, who: String::new(), whom: String::new(), by: Role::Sfi, cause, words, time_ns: 0 }
    }

    fn said(waits: &[(Role, BlockCause, f64)]) -> Option<String> {
        let waits: Vec<(Wait, f64)> = waits.iter().map(|(role, cause, share)| (wait(*role, *cause), *share)).collect();
        Attribution::of(waits.iter().map(|(wait, share)| (wait, *share))).map(|cause| cause.to_string())
    }

    #[test]
    fn the_last_on_the_way_of_those_that_wait_long_is_the_cause() {
        let pages = BlockCause::Busy(BusyCause::Pages);
        let filter = (Role::Sfi, BlockCause::NoPull);
        // A slow event filter holds up all before it.
        let all = [(Role::Level1, pages, 0.99), (Role::Dfm, BlockCause::NoSfi, 0.95), (filter.0, filter.1, 0.9)];
        let expected = "sfi waits: no request from the event filter (90 % of the time); more of the event filter helps (ef.count, pt.count)";
        assert_eq!(said(&all).as_deref(), Some(expected));
        // What it waits for now and then is not why level 2 is late.
        let some = [(Role::Level1, pages, 0.6), (Role::L2sv, BlockCause::NoWorker, 1.0), (filter.0, filter.1, 0.4)];
        assert!(said(&some).is_some_and(|said| said.contains("no free level-2 worker") && said.contains("l2pu.count")));
        assert_eq!(said(&[(Role::Dfm, BlockCause::NoSfi, 0.1)]), None);
        assert_eq!(said(&[]), None);
    }

    #[test]
    fn remedies_name_keys_that_there_are() {
        let schema = configuration::schema();
        let causes = (0..=u8::MAX).filter_map(BlockCause::from_u8);
        let remedies: Vec<&str> = causes.map(remedy).collect();
        assert_eq!(remedies.len(), 10);
        for word in
            remedies.iter().flat_map(|remedy| remedy.split([' ', '(', ')', ','])).filter(|word| word.contains('.'))
        {
            let (table, key) = word.split_once('.').unwrap();
            let table = schema["properties"][table]["$ref"].as_str().unwrap_or_else(|| panic!("{word}"));
            let pointer = format!("{}/properties/{key}", table.trim_start_matches('#'));
            assert!(schema.pointer(&pointer).is_some(), "{word}");
        }
    }
}
