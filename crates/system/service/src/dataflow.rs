//! Who gives to whom, how fast, what is in hand, and who waits for whom: the topology of a partition with figures of now.

use std::collections::BTreeMap;

use base::ids::Role;
use configuration::Partition;
use dataflow::report::Counter;
use partition::Counted;
use serde::Serialize;

use crate::rates::Recent;
use crate::sources::{SourceRates, sources};

/// The applications of a partition, stage by stage, and the ways of the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Dataflow {
    /// The stages that there are, in the order in which data move.
    pub stages: Vec<Stage>,
    /// From stage to stage.
    pub links: Vec<Link>,
    /// The sources of the run that goes on, or of the last one, that send by themselves.
    pub sources: Vec<SourceRates>,
}

/// The applications of one role.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// The stem of their names, such as `sfi`.
    pub role: &'static str,
    /// What people call them.
    pub name: String,
    /// What the rate counts.
    pub unit: &'static str,
    /// Of all together, per second.
    pub rate_hz: f64,
    /// What all have taken and not given on; none where nothing is kept.
    pub in_hand: Option<u64>,
    /// Each of them.
    pub applications: Vec<ApplicationNow>,
}

/// One application.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ApplicationNow {
    /// Its name.
    pub name: String,
    /// How much it does in a second, in the unit of its stage.
    pub rate_hz: f64,
    /// What it has taken and not given on; none where nothing is kept.
    pub in_hand: Option<u64>,
    /// Its counters by name, since the start of the run.
    pub counts: BTreeMap<&'static str, u64>,
    /// For whom it waits.
    pub waits: Vec<WaitNow>,
    /// For so long it has lived and said nothing, in seconds; none as long as it answers run control.
    pub silent_s: Option<f64>,
}

/// For whom an application waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitNow {
    /// The one that is waited for.
    pub by: String,
    /// The stem of its role.
    pub role_of: &'static str,
    /// Who waits for whom, and why.
    pub words: String,
    /// Why.
    pub cause: &'static str,
    /// Share of the last seconds.
    pub share: f64,
}

/// A way of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The stem of the role that gives.
    pub from: &'static str,
    /// The stem of the role that takes.
    pub to: &'static str,
}

impl Dataflow {
    /// That of a partition in which nothing goes on.
    pub(crate) fn of(partition: &Partition) -> Self {
        let mut stages: Vec<Stage> = Vec::new();
        for application in partition.applications() {
            let role = application.role.stem();
            if stages.last().is_none_or(|stage| stage.role != role) {
                let unit = kind(application.role).unit;
                let name = kind(application.role).name.to_owned();
                stages.push(Stage { role, name, unit, rate_hz: 0.0, in_hand: None, applications: Vec::new() });
            }
            let stage = stages.last_mut().expect("one was just pushed");
            stage.applications.push(ApplicationNow { name: application.name, ..ApplicationNow::default() });
        }
        let is_there = |role: Role| stages.iter().any(|stage| stage.role == role.stem());
        let has_level2 = is_there(Role::L2sv);
        let has_lone_systems = (0..partition.ros.count as usize).any(|ros| partition.crate_of(ros).is_none());
        let links = WAYS
            .into_iter()
            .filter(|(from, to)| is_there(*from) && is_there(*to))
            // Without level 2 the DFM has the triggers of level 1.
            .filter(|way| !has_level2 || *way != (Role::Level1, Role::Dfm))
            .filter(|way| has_lone_systems || !WAYS_OF_LONE_SYSTEMS.contains(way))
            .map(|(from, to)| Link { from: from.stem(), to: to.stem() })
            .collect();
        Self { stages, links, sources: Vec::new() }
    }

    /// Takes the newest figures of a run.
    pub(crate) fn note(&mut self, recent: &Recent) {
        let Some(newest) = recent.newest() else { return };
        self.rest();
        self.sources = sources(recent);
        let (first, seconds) = recent.ends().map_or((&[][..], 1.0), |(first, _, s)| (&first.applications[..], s));
        let before: BTreeMap<&str, &Counted> = first.iter().map(|before| (before.name.as_str(), before)).collect();
        let mut applications = self.by_name();
        for counted in &newest.applications {
            let Some(application) = applications.get_mut(counted.name.as_str()) else { continue };
            application.count(counted);
            application.rate_hz = before.get(counted.name.as_str()).map_or(0.0, |before| {
                let done = |counted| sum(kind(counted).rate, &application.counts);
                let former = sum(kind(before.role).rate, &counts(before));
                done(counted.role).saturating_sub(former) as f64 / seconds
            });
        }
        for (wait, share) in recent.waits().filter(|(_, share)| *share >= SHARE_MIN) {
            let Some(application) = applications.get_mut(wait.who.as_str()) else { continue };
            application.waits.push(WaitNow {
                by: wait.whom.clone(),

                role_of: wait.by.stem(),
                words: wait.words.clone(),
                cause: wait.cause.describe(),
                share,
            });
        }
        for (name, silent) in &newest.silent {
            if let Some(application) = applications.get_mut(name.as_str()) {
                application.silent_s = Some(silent.as_secs_f64());
            }
        }
        self.add_up();
    }

    /// A run begins; nothing of the one before is left.
    pub(crate) fn begin(&mut self) {
        self.rest();
        self.sources.clear();
        for stage in &mut self.stages {
            stage.in_hand = None;
            for application in &mut stage.applications {
                (application.in_hand, application.counts) = (None, BTreeMap::new());
            }
        }
    }

    /// A run is over, and this is what was counted in it.
    pub(crate) fn end(&mut self, counted: impl Iterator<Item = Counted>) {
        self.rest();
        let mut applications = self.by_name();
        for counted in counted {
            if let Some(application) = applications.get_mut(counted.name.as_str()) {
                application.count(&counted);
            }
        }
        self.add_up();
    }

    fn add_up(&mut self) {
        for stage in &mut self.stages {
            stage.rate_hz = stage.applications.iter().map(|application| application.rate_hz).sum();
            stage.in_hand = stage.applications.iter().map(|application| application.in_hand).sum();
        }
    }

    /// Nothing goes on any more; what was counted stays.
    fn rest(&mut self) {
        self.sources.iter_mut().for_each(SourceRates::rest);
        for stage in &mut self.stages {
            stage.rate_hz = 0.0;
            for application in &mut stage.applications {
                (application.rate_hz, application.silent_s) = (0.0, None);
                application.waits.clear();
            }
        }
    }

    /// There may be thousands.
    fn by_name(&mut self) -> BTreeMap<String, &mut ApplicationNow> {
        let all = self.stages.iter_mut().flat_map(|stage| &mut stage.applications);
        all.map(|application| (application.name.clone(), application)).collect()
    }
}

impl ApplicationNow {
    fn count(&mut self, counted: &Counted) {
        self.counts = counts(counted);
        self.in_hand = in_hand(counted.role, &self.counts);
    }
}

/// Which counters of a role say how fast it is, and what it has in hand.
struct RoleCounters {
    name: &'static str,
    unit: &'static str,
    rate: &'static [&'static str],
    taken: &'static [&'static str],
    given: &'static [&'static str],
}

const fn kind(role: Role) -> RoleCounters {
    const EVENTS: &str = "events";
    match role {
        Role::RunControl => RoleCounters { name: "run control", unit: EVENTS, rate: &[], taken: &[], given: &[] },
        Role::Level1 => RoleCounters { name: "level 1", unit: "triggers", rate: &["issued"], taken: &[], given: &[] },
        Role::L2sv => RoleCounters {
            name: "L2SV",
            unit: EVENTS,
            rate: &["rejected", "accepted"],
            taken: &["received"],
            given: &["rejected", "accepted", "abandoned"],
        },
        Role::L2pu => RoleCounters {
            name: "L2PU",
            unit: EVENTS,
            rate: &["rejected", "accepted"],
            taken: &["received"],
            given: &["rejected", "accepted"],
        },
        Role::Pros => {
            RoleCounters { name: "pROS", unit: "fragments", rate: &["fragments_in"], taken: &["resident"], given: &[] }
        }
        Role::Ros => {
            RoleCounters { name: "ROS", unit: "fragments", rate: &["fragments_in"], taken: &["resident"], given: &[] }
        }
        Role::Trg => RoleCounters {
            name: "TRG",
            unit: "triggers",
            rate: &["triggers"],
            taken: &["rejected"],
            given: &["dispatched"],
        },
        Role::Ebif => {
            RoleCounters { name: "EBIF", unit: EVENTS, rate: &["answered", "pushed"], taken: &["in_hand"], given: &[] }
        }
        Role::Dfm => RoleCounters {
            name: "DFM",
            unit: EVENTS,
            rate: &["built_complete", "built_incomplete"],
            taken: &["self_triggered", "taken_accepted"],
            given: &["built_complete", "built_incomplete", "not_built"],
        },
        Role::Sfi => RoleCounters {
            name: "SFI",
            unit: EVENTS,
            rate: &["built_complete", "built_incomplete"],
            taken: &["assigned"],
            given: &["revoked", "rejected", "accepted", "debug", "unrecorded", "abandoned"],
        },
        Role::Efd => RoleCounters {
            name: "EFD",
            unit: EVENTS,
            rate: &["rejected", "accepted", "debug"],
            taken: &["received"],
            given: &["rejected", "accepted", "debug", "abandoned"],
        },
        Role::Sfo => RoleCounters {
            name: "SFO",
            unit: EVENTS,
            rate: &["recorded"],
            taken: &["received"],
            given: &["recorded", "duplicates", "refused", "abandoned"],
        },
    }
}

fn counts(counted: &Counted) -> BTreeMap<&'static str, u64> {
    let names = Counter::of_role(counted.role).iter().map(|counter| counter.name);
    names.zip(counted.counts.iter().copied()).collect()
}

fn in_hand(role: Role, counts: &BTreeMap<&'static str, u64>) -> Option<u64> {
    let RoleCounters { taken, given, .. } = kind(role);
    (!taken.is_empty()).then(|| sum(taken, counts).saturating_sub(sum(given, counts)))
}

fn sum(names: &[&'static str], counts: &BTreeMap<&'static str, u64>) -> u64 {
    names.iter().filter_map(|name| counts.get(name)).sum()
}

/// The ways of the data; those are there whose ends are.
const WAYS: [(Role, Role); 18] = [
    (Role::Level1, Role::L2sv),
    (Role::Level1, Role::Ros),
    (Role::Level1, Role::Dfm),
    (Role::L2sv, Role::L2pu),
    (Role::Ros, Role::L2pu),
    (Role::Level1, Role::Trg),
    (Role::Trg, Role::Ros),
    (Role::Trg, Role::L2pu),
    (Role::Trg, Role::Ebif),
    (Role::Ros, Role::Ebif),
    (Role::Ebif, Role::Sfi),
    (Role::L2pu, Role::Pros),
    (Role::L2sv, Role::Dfm),
    (Role::Dfm, Role::Sfi),
    (Role::Ros, Role::Sfi),
    (Role::Pros, Role::Sfi),
    (Role::Sfi, Role::Efd),
    (Role::Efd, Role::Sfo),
];
/// Those that go by TRG and EBIF where a read-out system is in a crate.
const WAYS_OF_LONE_SYSTEMS: [(Role, Role); 3] =
    [(Role::Level1, Role::Ros), (Role::Ros, Role::L2pu), (Role::Ros, Role::Sfi)];
/// Waits that take less are not worth a word.
const SHARE_MIN: f64 = 0.001;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dataflow::report::BlockCause;
    use partition::{Figures, Wait};

    use super::*;

    #[test]
    fn what_says_how_fast_a_role_is_are_counters_of_it() {
        for role in Role::IN_DRAIN_ORDER {
            let RoleCounters { rate, taken, given, .. } = kind(role);
            let is_counter = |name: &&str| Counter::of_role(role).iter().any(|counter| counter.name == *name);
            assert!(!rate.is_empty() && [rate, taken, given].into_iter().flatten().all(is_counter), "{role:?}");
        }
    }

    #[test]
    fn figures_of_the_last_seconds_reach_the_applications_that_made_them() {
        let text = "partition.name = \"p\"\nsfi.count = 2\nros.count = 1\ndfm.input = \"self\"\n";
        let partition = Partition::parse("p", text, &[]).unwrap();
        let mut dataflow = Dataflow::of(&partition);
        let roles: Vec<&str> = dataflow.stages.iter().map(|stage| stage.role).collect();
        assert_eq!(roles[..2], ["ros", "dfm"]);
        assert!(dataflow.links.contains(&Link { from: "ros", to: "sfi" }));
        assert!(dataflow.links.iter().all(|link| link.from != "level1"));

        let mut recent = Recent::default();
        for second in 0..3_u64 {
            let count = |role, name: &str, count| {
                let names = Counter::of_role(role).iter().map(|counter| counter.name);
                names.map(|known| if known == name { count } else { 0 }).collect::<Vec<u64>>()
            };
            let counted = |name: &str, counts| Counted { name: name.to_owned(), role: Role::Sfi, counts };
            let built = count(Role::Sfi, "built_complete", 100 * second);
            let assigned = count(Role::Sfi, "assigned", 7 * second);
            let words = "the DFM waits".to_owned();
            let (stage, by, time_ns) = (Role::Dfm, Role::Sfi, second * 250_000_000);
            recent.add(Figures {
                elapsed: Duration::from_secs(second),
                applications: vec![counted("sfi-1", built), counted("sfi-2", assigned), counted("sfi-9", vec![])],
                waits: vec![Wait {
                    stage,
                    who: "dfm-1".to_owned(),
                    whom: "sfi-1".to_owned(),
                    by,
                    cause: BlockCause::NoSfi,
                    words,
                    time_ns,
                }],
                silent: vec![("sfi-2".to_owned(), Duration::from_millis(1500)); usize::from(second == 2)],
                ..Figures::default()
            });
        }
        dataflow.note(&recent);
        let stage =
            |dataflow: &Dataflow, role| dataflow.stages.iter().find(|stage| stage.role == role).cloned().unwrap();
        let sfi = stage(&dataflow, "sfi");
        assert_eq!((sfi.rate_hz, sfi.in_hand, sfi.applications[1].in_hand), (100.0, Some(14), Some(14)));
        assert_eq!(sfi.applications.iter().map(|one| one.silent_s).collect::<Vec<_>>(), [None, Some(1.5)]);
        let waits = &stage(&dataflow, "dfm").applications[0].waits;
        assert_eq!((waits.len(), waits[0].role_of, waits[0].share), (1, "sfi", 0.25));
        let last = recent.newest().unwrap().applications.clone();
        dataflow.end(last.into_iter());
        assert_eq!((stage(&dataflow, "sfi").rate_hz, stage(&dataflow, "sfi").applications[1].silent_s), (0.0, None));
        assert_eq!(stage(&dataflow, "sfi").applications[0].counts["built_complete"], 200);
        dataflow.begin();
        assert_eq!(dataflow, Dataflow::of(&partition));
    }
}
