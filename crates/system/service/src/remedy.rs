//! What helps against a cause: keys that the configuration has, with their values and larger ones.

use base::ids::Role;
use configuration::{BuildingMode, Compression, Durability, Partition, Strategy};
use dataflow::message::BusyCause;
use dataflow::report::BlockCause;
use partition::Wait;

/// What helps against a wait in this partition. `processors` are those of the machine on which all of it runs; none if it has several.
pub(crate) fn remedy(wait: &Wait, partition: &Partition, processors: Option<usize>) -> String {
    let of = Remedies { partition, processors };
    match wait.cause {
        BlockCause::Busy(BusyCause::Source) => "start it, or see why it sends nothing".to_owned(),
        BlockCause::Busy(BusyCause::Pages) => {
            format!("give each read-out buffer more pages ({})", twice("ros.pages", partition.ros.pages))
        }
        BlockCause::Busy(BusyCause::Window) => of.window(),
        BlockCause::Busy(BusyCause::EventsInSystem) => of.events_in_system(),
        BlockCause::Busy(BusyCause::ForcedLimit) | BlockCause::NoWorker => of.level2(),
        BlockCause::Busy(BusyCause::BuildQueue) => of.builders(),
        BlockCause::NoSfi => of.builders(),
        BlockCause::NoPull => of.filter(),
        BlockCause::Recording => of.recorders(),
    }
}

struct Remedies<'a> {
    partition: &'a Partition,
    processors: Option<usize>,
}

impl Remedies<'_> {
    fn window(&self) -> String {
        let in_flight = self.partition.level1.as_ref().map_or(0, |level1| level1.in_flight);
        format!("let more triggers be on the way ({})", twice("level1.in_flight", in_flight))
    }

    fn events_in_system(&self) -> String {
        let events = self.partition.l2sv.as_ref().map_or(0, |l2sv| l2sv.events_in_system);
        format!("let level 2 hold more events ({})", twice("l2sv.events_in_system", events))
    }

    fn level2(&self) -> String {
        let Some(l2pu) = &self.partition.l2pu else { return "make level 2 faster".to_owned() };
        let computes = !l2pu.cost.duration().is_zero() || l2pu.strategy == Strategy::Menu;
        if !computes {
            let more = [twice("l2pu.workers", l2pu.workers), one_more("l2pu.count", l2pu.count)].join(" or ");
            return format!("let level 2 work on more events at once ({more})");
        }
        // A unit has one thread: more workers compute no faster.
        match self.taken(l2pu.count) {
            Some(taken) => format!("{taken}: cheaper steps, or another host ([[host]]), help"),
            None => format!("start more units of level 2 ({})", one_more("l2pu.count", l2pu.count)),
        }
    }

    fn builders(&self) -> String {
        let Partition { sfi, dfm, .. } = self.partition;
        let sources = self.sources();
        if dfm.building == BuildingMode::Pull && sfi.outstanding_requests < sources {
            let more = larger("sfi.outstanding_requests", sfi.outstanding_requests, sources);
            return format!("let each ask all {sources} sources of an event at once ({more})");
        }
        let more = [one_more("sfi.count", sfi.count), twice("sfi.events", sfi.events)].join(" or ");
        format!("start more event builders, or give each more room ({more})")
    }

    fn filter(&self) -> String {
        let daemons = self.partition.ef.as_ref().map_or(1, |ef| ef.count);
        let Some(pt) = &self.partition.pt else {
            let slots = self.partition.ef.as_ref().map_or(0, |ef| ef.slots);
            let more = [twice("ef.slots", slots), one_more("ef.count", daemons)].join(" or ");
            return format!("let the event filter have more events at once ({more})");
        };
        match self.taken(daemons * pt.count) {
            Some(taken) => format!("{taken}: a faster filter, or another host ([[host]]), helps"),
            None => format!("start more tasks ({})", one_more("pt.count", pt.count)),
        }
    }

    fn recorders(&self) -> String {
        let Some(sfo) = &self.partition.sfo else { return "make recording faster".to_owned() };
        match (sfo.durable, sfo.compression) {
            (Durability::Fsync | Durability::File, _) => {
                let now = if sfo.durable == Durability::Fsync { "fsync" } else { "file" };
                format!("let an event count as recorded earlier (sfo.durable = \"write\" instead of \"{now}\")")
            }
            (_, Compression::Zlib) => {
                "let events be recorded as they are (sfo.compression = \"none\" instead of \"zlib\")".to_owned()
            }
            (_, Compression::None) => {
                let more = one_more("sfo.count", sfo.count);
                format!("a faster disk below output.directory helps, or one more recorder ({more})")
            }
        }
    }

    /// Whom an event builder asks for the data of an event.
    fn sources(&self) -> u32 {
        let is_source = |role| matches!(role, Role::Ros | Role::Ebif | Role::Pros);
        let crates = self.partition.roc.as_ref().map_or(0, |roc| roc.count * roc.ros);
        let all = self.partition.applications().iter().filter(|application| is_source(application.role)).count();
        // Those in crates give their data to an EBIF.
        u32::try_from(all).unwrap_or(u32::MAX).saturating_sub(crates)
    }

    /// Says so where each processor of the machine has one already.
    fn taken(&self, working: u32) -> Option<String> {
        let processors = self.processors.filter(|processors| working as usize >= *processors)?;
        Some(format!("all {processors} processors of this machine have one"))
    }
}

fn one_more(key: &str, now: u32) -> String {
    larger(key, now, now.saturating_add(1))
}

fn twice(key: &str, now: u32) -> String {
    larger(key, now, now.saturating_mul(2).max(1))
}

fn larger(key: &str, now: u32, larger: u32) -> String {
    format!("{key} = {larger} instead of {now}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str =
        "[partition]\nname = \"p\"\n[level1]\n[l2sv]\n[l2pu]\n[ros]\ncount = 4\n[sfi]\ncount = 2\n[ef]\n[sfo]\n";

    fn said(cause: BlockCause, set: &[&str], processors: Option<usize>) -> String {
        let mut set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        if set.iter().any(|set| set.starts_with("pt.")) {
            set.push("pt.algorithm=mine:Filter".to_owned());
        }
        let partition = Partition::parse("p", BASE, &set).unwrap();
        let (who, whom, words) = (String::new(), String::new(), String::new());
        let wait = Wait { stage: Role::Sfi, who, whom, by: Role::Efd, cause, words, time_ns: 0 };
        remedy(&wait, &partition, processors)
    }

    #[test]
    fn keys_have_their_present_values_and_larger_ones() {
        let busy = BlockCause::Busy;
        for (cause, set, expected) in [
            (busy(BusyCause::Pages), &["ros.pages=100"][..], "ros.pages = 200 instead of 100"),
            (busy(BusyCause::Window), &["level1.in_flight=10"], "level1.in_flight = 20 instead of 10"),
            (busy(BusyCause::EventsInSystem), &["l2sv.events_in_system=7"], "l2sv.events_in_system = 14 instead of 7"),
            (busy(BusyCause::BuildQueue), &[], "sfi.count = 3 instead of 2 or sfi.events = 128 instead of 64"),
            (BlockCause::NoPull, &["pt.count=3"], "start more tasks (pt.count = 4 instead of 3)"),
            (BlockCause::NoPull, &["ef.slots=2"], "ef.slots = 4 instead of 2 or ef.count = 2 instead of 1"),
            (BlockCause::NoWorker, &["l2pu.workers=1"], "l2pu.workers = 2 instead of 1 or l2pu.count = 2 instead of 1"),
            (BlockCause::Recording, &["sfo.count=2"], "sfo.count = 3 instead of 2"),
            (BlockCause::Recording, &["sfo.durable=\"file\""], "sfo.durable = \"write\" instead of \"file\""),
            (BlockCause::Recording, &["sfo.compression=\"zlib\""], "sfo.compression = \"none\" instead of \"zlib\""),
        ] {
            let said = said(cause, set, None);
            assert!(said.contains(expected), "{cause:?}: {said}");
        }
    }

    #[test]
    fn what_cannot_help_is_not_named() {
        let computes = said(BlockCause::NoWorker, &["l2pu.cost=\"1 ms\""], Some(2));
        assert_eq!(computes, "start more units of level 2 (l2pu.count = 2 instead of 1)");
        let taken = said(BlockCause::NoWorker, &["l2pu.cost=\"1 ms\"", "l2pu.count=2"], Some(2));
        assert!(taken.contains("all 2 processors of this machine have one") && !taken.contains("l2pu."), "{taken}");
        let tasks = said(BlockCause::NoPull, &["pt.count=2", "ef.count=2"], Some(4));
        assert!(tasks.contains("a faster filter") && !tasks.contains("pt.count"), "{tasks}");
        let credits = said(BlockCause::NoSfi, &["sfi.outstanding_requests=1"], None);
        let sources = "ask all 5 sources of an event at once (sfi.outstanding_requests = 5 instead of 1)";
        assert!(credits.contains(sources) && !credits.contains("sfi.count"), "{credits}");
        let crates = ["sfi.outstanding_requests=2", "roc.count=1", "roc.ros=3"];
        let behind = said(BlockCause::NoSfi, &crates, None);
        assert!(behind.contains("all 3 sources"), "a read-out system, an EBIF and the pROS: {behind}");
    }

    #[test]
    fn what_is_named_may_be_set() {
        for cause in (0..=u8::MAX).filter_map(BlockCause::from_u8) {
            let said = said(cause, &["pt.count=1"], None);
            let keys: Vec<&str> =
                said.split(['(', ')']).nth(1).into_iter().flat_map(|keys| keys.split(" or ")).collect();
            assert!(!keys.is_empty() || cause == BlockCause::Busy(BusyCause::Source), "{said}");
            for key in keys {
                let set = key.split(" instead").next().unwrap().replace(' ', "");
                Partition::parse("p", BASE, &[set.clone(), "pt.algorithm=mine:Filter".to_owned()])
                    .unwrap_or_else(|error| panic!("{set}: {error}"));
            }
        }
    }
}
