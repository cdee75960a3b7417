//! Where the time goes: which of many waits is the cause, and what helps.

use std::thread::available_parallelism;

use base::ids::Role;
use configuration::Partition;
use dataflow::message::BusyCause;
use dataflow::report::BlockCause;
use partition::Wait;
use partition::human::percent;

use crate::remedy::remedy;

/// The cause of a delay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attribution {
    /// Who waits for whom and why, in words.
    pub(crate) words: String,
    /// Share of the last seconds.
    pub(crate) share: f64,
    /// What helps.
    pub(crate) remedy: String,
}

impl Attribution {
    /// Of all waits with their shares of the time the cause, if one takes more than a tenth. A role that is held up
    /// holds up those before it. So of the long waits the one counts that is the last on the way of an event.
    pub(crate) fn of<'a>(waits: impl Iterator<Item = (&'a Wait, f64)>, partition: &Partition) -> Option<Self> {
        let waits: Vec<_> = waits.filter(|(_, share)| *share > SHARE_MIN).collect();
        let longest = waits.iter().map(|(_, share)| *share).max_by(f64::total_cmp)?;
        let long: Vec<_> = waits.into_iter().filter(|(_, share)| *share >= longest * LONG).collect();
        let by_place = |(one, a): &&(&Wait, f64), (other, b): &&(&Wait, f64)| {
            place(one.stage).cmp(&place(other.stage)).then(a.total_cmp(b))
        };
        let (cause, share) = *long.iter().max_by(by_place)?;
        // Who waits for the one that is held up.
        let before =
            long.iter().filter(|(wait, _)| wait.by == cause.stage && wait.stage != cause.stage).max_by(by_place);
        let effect = before.map_or_else(String::new, |(wait, _)| effect(wait));
        let words = format!("{effect}{}", because(cause, partition));
        Some(Self { words, share, remedy: remedy(cause, partition, processors(partition)) })
    }
}

impl core::fmt::Display for Attribution {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ({} of the time); {}", self.words, percent(self.share), self.remedy)
    }
}

fn place(stage: Role) -> Option<usize> {
    Role::IN_DRAIN_ORDER.iter().position(|role| *role == stage)
}

/// Those of the machine, if all runs on one.
fn processors(partition: &Partition) -> Option<usize> {
    available_parallelism().ok().map(usize::from).filter(|_| partition.host.is_empty())
}

/// Such as `the DFM waits for SFIs: `.
fn effect(wait: &Wait) -> String {
    let waits = if matches!(wait.stage, Role::Level1 | Role::Dfm) { "waits" } else { "wait" };
    format!("{} {waits} for {}: ", all(wait.stage), all(wait.by))
}

/// Why one is held up, in words.
fn because(wait: &Wait, partition: &Partition) -> String {
    let Wait { who, whom, words, .. } = wait;
    match wait.cause {
        BlockCause::NoSfi => format!("{who} waits because {whom} has no room for an event"),
        BlockCause::NoPull if partition.pt.is_some() => format!("{who} is busy because {whom} has no free task"),
        BlockCause::NoPull => format!("{who} is busy because {whom} has no free slot"),
        BlockCause::Recording => format!("{who} is busy because {whom} has not recorded what it was given"),
        BlockCause::NoWorker => format!("{who} is busy because {whom} has no free worker"),
        BlockCause::Busy(cause) => {
            let why = match cause {
                BusyCause::Pages => format!("the pages of {whom} are used up"),
                BusyCause::EventsInSystem => format!("{whom} holds as many events as it may"),
                BusyCause::ForcedLimit => format!("{whom} waits too long for level 2"),
                BusyCause::BuildQueue => format!("too many events wait in {whom} for an event builder"),
                BusyCause::Window => format!("{whom} has not taken over what is on the way"),
                // These words name it.
                BusyCause::Source => words.rsplit_once(": ").map_or(words.as_str(), |(_, why)| why).to_owned(),
            };
            format!("{who} holds triggers back because {why}")
        }
    }
}

/// All of a role, as people call them.
const fn all(role: Role) -> &'static str {
    match role {
        Role::RunControl => "run control",
        Role::Level1 => "level 1",
        Role::L2sv => "L2SVs",
        Role::L2pu => "L2PUs",
        Role::Pros => "the pROS",
        Role::Ros => "ROSs",
        Role::Trg => "TRGs",
        Role::Ebif => "EBIFs",
        Role::Dfm => "the DFM",
        Role::Sfi => "SFIs",
        Role::Efd => "EFDs",
        Role::Sfo => "SFOs",
    }
}

const SHARE_MIN: f64 = 0.1;
/// A wait of this part of the longest one is long.
const LONG: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(stage: Role, by: Role, cause: BlockCause) -> Wait {
        let (who, whom) = (format!("{}-1", stage.stem()), format!("{}-2", by.stem()));
        let words = format!("{who} waits for {whom}: {}", cause.describe());
        Wait { stage, who, whom, by, cause, words, time_ns: 0 }
    }

    fn said(waits: &[(Wait, f64)]) -> Option<String> {
        let text = "partition.name = \"p\"\nsfi.count = 2\nros.count = 1\npt.count = 1\npt.algorithm = \"a:B\"\nef = {}\n\
                    level1 = {}\nl2sv = {}\nl2pu = {}\nhost = [{ name = \"a\" }]\n";
        let partition = Partition::parse("p", text, &[]).unwrap();
        let waits = waits.iter().map(|(wait, share)| (wait, *share));
        Attribution::of(waits, &partition).map(|cause| cause.to_string())
    }

    #[test]
    fn the_last_on_the_way_of_those_that_wait_long_is_the_cause() {
        let pages = wait(Role::Level1, Role::Ros, BlockCause::Busy(BusyCause::Pages));
        let builders = wait(Role::Dfm, Role::Sfi, BlockCause::NoSfi);
        let filter = wait(Role::Sfi, Role::Efd, BlockCause::NoPull);
        // A slow event filter holds up all before it.
        let all = [(pages.clone(), 0.99), (builders, 0.95), (filter.clone(), 0.9)];
        let expected = "the DFM waits for SFIs: sfi-1 is busy because efd-2 has no free task (90 % of the time); start more \
                        tasks (pt.count = 2 instead of 1)";
        assert_eq!(said(&all).as_deref(), Some(expected));
        // What it waits for now and then is not why level 2 is late.
        let level2 = wait(Role::L2sv, Role::L2pu, BlockCause::NoWorker);
        let some = said(&[(pages.clone(), 0.6), (level2, 1.0), (filter, 0.4)]).unwrap();
        assert!(some.starts_with("l2sv-1 is busy because l2pu-2 has no free worker (100 % of the time); "), "{some}");
        let alone = said(&[(pages, 0.6)]).unwrap();
        assert!(alone.starts_with("level1-1 holds triggers back because the pages of ros-2 are used up"), "{alone}");
        assert_eq!(said(&[(wait(Role::Dfm, Role::Sfi, BlockCause::NoSfi), 0.1)]), None);
        assert_eq!(said(&[]), None);
    }

    #[test]
    fn a_source_that_has_not_come_is_named() {
        let source = wait(Role::Level1, Role::Ros, BlockCause::Busy(BusyCause::Source));
        let words = "level1-1 waits for ros-1: source device has not come".to_owned();
        let said = said(&[(Wait { words, ..source }, 1.0)]).unwrap();
        let expected = "level1-1 holds triggers back because source device has not come (100 % of the time); start it, or see \
                        why it sends nothing";
        assert_eq!(said, expected);
    }
}
