//! `scenarios/faults`: each kind of fault by itself in virtual time, beside the same partition without it.
//!
//! The summary has to show the effect of a fault where it strikes, and only there. A scenario whose fault does nothing
//! fails.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use testkit::TempDir;

use crate::simulation::{scenario, sim, text};

#[test]
fn every_fault_of_networks_hosts_and_disks_is_seen_and_loses_nothing() {
    for scenario in SCENARIOS {
        let Scenario { name, without, effects, degraded_by } = scenario;
        let status = if degraded_by.is_empty() { 0 } else { 4 };
        let (with, without) = (Seen::of(name, &[], status), Seen::of(name, without, 0));
        for effect in *effects {
            assert!(with.shows(effect), "{name}: expected {effect:?}, found {}", with.0);
            assert!(!without.shows(effect), "{name}: without the fault expected no {effect:?}, found {}", without.0);
        }
        for seen in [&with, &without] {
            assert_eq!(seen.lost(), [0; 4], "{name}: {}", seen.0);
        }
        assert_eq!(with.degraded_by(), *degraded_by, "{name}: {}", with.0);
    }
}

/// A run ends in order when an application dies, and what nobody else held is in the account.
#[test]
fn a_crash_of_each_role_ends_the_run_with_an_account() {
    for role in ROLES {
        let seen = Seen::of("crash", &[&format!("simulation.fault.0.application={role}")], 3);
        assert_eq!(seen.names("died"), [role], "{}", seen.0);
        assert_eq!(seen.faults(), ["kill"], "{}", seen.0);
        assert!(seen.reason().contains(&format!("{role} died")), "{}", seen.0);
        assert!((300..500).contains(&seen.count("level1")), "{role}: it ends when it dies: {}", seen.0);
        let lost = match role {
            "l2sv-1" => ["level2_lost"].as_slice(),
            "dfm-1" => &["not_built"],
            "ros-1" | "pros-1" => &["built_incomplete"],
            _ => &[],
        };
        seen.assert_lost(role, lost);
    }
    assert_unharmed("crash");
}

#[test]
fn a_hang_of_each_role_is_told_from_the_others() {
    for role in ROLES {
        let seen = Seen::of("hang", &[&format!("simulation.fault.0.application={role}")], 3);
        assert_eq!(seen.names("died"), [role], "{}", seen.0);
        assert_eq!(seen.faults(), ["hang"], "{}", seen.0);
        assert!(seen.reason().contains(&format!("{role} did not report")), "{}", seen.0);
        let lost = match role {
            "l2sv-1" => ["level2_lost"].as_slice(),
            "pros-1" => &["level2_lost", "built_incomplete"],
            "ros-1" => &["built_incomplete"],
            "dfm-1" => &["not_built"],
            "efd-1" | "sfo-1" => &["lost_after_build"],
            _ => &[],
        };
        seen.assert_lost(role, lost);
        assert_eq!(seen.count("level2_forced") > 0, ["l2pu-1", "pros-1"].contains(&role), "{role}: {}", seen.0);
    }
    assert_unharmed("hang");
}

#[test]
fn each_role_but_level_1_dies_and_returns_and_no_event_is_lost() {
    for role in ROLES.into_iter().filter(|role| *role != "level1-1") {
        let lost: &[&str] = if ["ros-1", "pros-1"].contains(&role) { &["built_incomplete"] } else { &[] };
        let status = if lost.is_empty() { 0 } else { 4 };
        let seen = Seen::of("restart", &[&format!("simulation.fault.0.application={role}")], status);
        let restart = &seen.0["restarts"][0];
        assert_eq!((&restart["name"], restart["away_s"].as_f64()), (&role.into(), Some(0.05)), "{}", seen.0);
        assert_eq!(seen.faults(), ["restart"], "{}", seen.0);
        seen.assert_lost(role, lost);
        // Level 2 did not wait for its next life.
        let undecided: &[&str] = if role == "ros-1" { &["level2_incomplete"] } else { &[] };
        assert_eq!(seen.degraded_by(), [lost, undecided].concat(), "{}", seen.0);
    }
    assert_unharmed("restart");
}

#[test]
fn many_faults_at_once_lose_nothing() {
    let seen = Seen::of("bad-day", &[], 0);
    assert_eq!(seen.lost(), [0; 4], "{}", seen.0);
    let struck = ["slow", "cut-off", "network-partition", "full-disk", "restart", "restart", "restart", "clock-step"];
    assert_eq!(seen.faults(), struck, "{}", seen.0);
    assert_eq!(seen.0["restarts"].as_array().unwrap().len(), 3, "{}", seen.0);
    let counts = [("frames", "lost damaged duplicated delayed overtaking"), ("messages", "cut_off stale wrong_run")];
    for (of, key) in counts.into_iter().flat_map(|(of, keys)| keys.split(' ').map(move |key| (of, key))) {
        assert!(seen.shows(&At(&format!("/simulated/{of}/{key}"), 1.0)), "{of} {key}: {}", seen.0);
    }
}

#[test]
fn a_fault_that_comes_too_late_is_told() {
    let config = scenario("faults/crash");
    let ended = sim(&[text(&config), "--set", "simulation.fault.0.at=9 s"]).expect(0);
    assert!(ended.stderr.contains("1 of 1 faults did not strike"), "{}", ended.stderr);
}

#[test]
fn every_scenario_of_a_fault_is_tested() {
    let directory = scenario("faults").with_extension("");
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files: BTreeSet<String> = files.map(|path| text(path.file_stem().unwrap().as_ref()).to_owned()).collect();
    let by_role = ["crash", "hang", "restart", "bad-day"].into_iter();
    let tested = by_role.chain(SCENARIOS.iter().map(|scenario| scenario.name)).map(str::to_owned).collect();
    assert_eq!(files, tested);
}

/// A fault that a run survives.
struct Scenario {
    /// Of the file.
    name: &'static str,
    /// Keys that take the fault away.
    without: &'static [&'static str],
    /// What is to be seen of it, and is not without it.
    effects: &'static [Effect<'static>],
    /// For which causes the run is not well.
    degraded_by: &'static [&'static str],
}

/// Something in a summary.
#[derive(Debug)]
enum Effect<'a> {
    /// A number that is at least so large.
    At(&'a str, f64),
    /// Somebody waits for one whose name begins so, for this cause.
    Waits(&'a str, &'a str),
}

use Effect::{At, Waits};

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "loss",
        without: &["simulation.frame_loss=0"],
        effects: &[
            At("/simulated/frames/lost", 1.0),
            At("/simulated/messages/lost", 1.0),
            At("/simulated/frames/tcp_repeats", 1.0),
            At("/reasks", 1.0),
            At("/latency_ns/level2/max", 200e6),
        ],
        degraded_by: &[],
    },
    Scenario {
        name: "corruption",
        without: &["simulation.frame_corruption=0"],
        effects: &[
            At("/simulated/frames/damaged", 1.0),
            At("/simulated/messages/damaged", 1.0),
            At("/simulated/frames/tcp_repeats", 1.0),
            At("/network/malformed", 1.0),
            At("/reasks", 1.0),
        ],
        degraded_by: &[],
    },
    Scenario {
        name: "duplication",
        without: &["simulation.frame_duplication=0"],
        effects: &[At("/simulated/frames/duplicated", 1.0)],
        degraded_by: &[],
    },
    Scenario {
        name: "reordering",
        without: &["simulation.frame_jitter=0 s"],
        effects: &[
            At("/simulated/frames/overtaking", 1.0),
            At("/simulated/frames/tcp_repeats", 1.0),
            At("/latency_ns/build/p50", 800e3),
        ],
        degraded_by: &[],
    },
    Scenario {
        name: "delay",
        without: &["simulation.frame_delay=0"],
        effects: &[
            At("/simulated/frames/delayed", 1.0),
            At("/reasks", 1.0),
            At("/latency_ns/level2/max", 40e6),
            At("/latency_ns/build/max", 20e6),
        ],
        degraded_by: &[],
    },
    Scenario {
        name: "stale",
        without: &["simulation.message_stale=0"],
        effects: &[At("/simulated/messages/stale", 1.0), At("/network/stale", 1.0)],
        degraded_by: &[],
    },
    Scenario {
        name: "wrong-run",
        without: &["simulation.message_wrong_run=0"],
        effects: &[At("/simulated/messages/wrong_run", 1.0), At("/network/stale", 1.0)],
        degraded_by: &[],
    },
    Scenario {
        name: "network-partition",
        without: &["simulation.fault=[]"],
        effects: &[
            At("/simulated/messages/cut_off", 1.0),
            At("/simulated/messages/held_back", 1.0),
            At("/reasks", 1.0),
            At("/latency_ns/level2/max", 90e6),
            At("/latency_ns/build/max", 90e6),
        ],
        degraded_by: &["level2_incomplete"],
    },
    Scenario {
        name: "slow",
        without: &["simulation.fault=[]"],
        effects: &[
            At("/reasks", 1.0),
            At("/dead_time_fraction", 0.05),
            At("/latency_ns/level2/max", 50e6),
            Waits("l2pu-", "no free level-2 worker"),
        ],
        degraded_by: &["level2_incomplete"],
    },
    Scenario {
        name: "clock-step",
        without: &["simulation.fault=[]"],
        effects: &[At("/accounting/level2_forced", 1.0), At("/latency_ns/level2/max", 1e9)],
        degraded_by: &["level2_forced"],
    },
    Scenario {
        name: "full-disk",
        without: &["simulation.fault=[]"],
        effects: &[Waits("sfo-1", "waiting for recording"), Waits("efd-", "no request from the event filter")],
        degraded_by: &[],
    },
    Scenario {
        name: "full-buffers",
        without: &["simulation.port_buffer=1 MB", "ros.pages=1024"],
        effects: &[
            At("/simulated/frames/dropped", 1.0),
            At("/simulated/messages/dropped", 1.0),
            At("/reasks", 1.0),
            At("/dead_time_fraction", 0.05),
            Waits("ros-", "buffer pages in use"),
        ],
        degraded_by: &["built_incomplete"],
    },
];

/// One application of each role.
const ROLES: [&str; 9] = ["level1-1", "l2sv-1", "l2pu-1", "pros-1", "ros-1", "dfm-1", "sfi-1", "efd-1", "sfo-1"];

/// Without the fault nothing of it is there.
fn assert_unharmed(name: &str) {
    let seen = Seen::of(name, &["simulation.fault=[]"], 0);
    seen.assert_lost(name, &[]);
    assert!(seen.0.get("died").is_none() && seen.0.get("restarts").is_none(), "{name}: {}", seen.0);
    assert!(seen.faults().is_empty(), "{name}: {}", seen.0);
    assert!(seen.count("level1") > 900, "{name}: {}", seen.0);
}

/// The summary of a run in which every event is accounted for.
struct Seen(Value);

impl Seen {
    fn of(name: &str, keys: &[&str], status: i32) -> Self {
        let directory = TempDir::new("faults");
        let summary = directory.join("summary.json");
        let config = scenario(&format!("faults/{name}"));
        let mut arguments = vec![text(&config), "--summary", text(&summary)];
        arguments.extend(keys.iter().flat_map(|key| ["--set", key]));
        sim(&arguments).expect(status);
        let seen = Self(serde_json::from_str(&fs::read_to_string(summary).unwrap()).unwrap());
        let state = ["ok", "", "", "aborted", "degraded"][status as usize];
        assert_eq!((seen.0["state"].as_str(), seen.count("residual")), (Some(state), 0), "{name} {keys:?}: {}", seen.0);
        assert!(seen.count("recorded") > 0, "{name} {keys:?}: {}", seen.0);
        let strays = ["stale", "wrong_run"].map(|kind| seen.0["simulated"]["messages"][kind].as_u64().unwrap());
        if seen.faults().is_empty() {
            let stale = seen.0["network"]["stale"].as_u64().unwrap();
            assert_eq!(
                stale,
                strays.iter().sum::<u64>(),
                "{name} {keys:?}: each is refused, and nothing else: {}",
                seen.0
            );
        }
        seen
    }

    fn shows(&self, effect: &Effect<'_>) -> bool {
        match effect {
            At(pointer, least) => self.0.pointer(pointer).and_then(Value::as_f64).unwrap() >= *least,
            Waits(by, cause) => self.0["blocked_by"].as_array().unwrap().iter().any(|blocked| {
                blocked["by"].as_str().unwrap().starts_with(by) && blocked["cause"].as_str() == Some(*cause)
            }),
        }
    }

    fn count(&self, key: &str) -> u64 {
        self.0["accounting"][key].as_u64().unwrap()
    }

    /// Events that are lost, by where.
    fn lost(&self) -> [u64; 4] {
        LOST.map(|key| self.count(key))
    }

    /// Events are lost or incomplete exactly where the role says.
    fn assert_lost(&self, role: &str, where_lost: &[&str]) {
        for key in LOST.into_iter().chain(["built_incomplete"]) {
            assert_eq!(self.count(key) > 0, where_lost.contains(&key), "{role}: {key} in {}", self.0);
        }
    }

    fn faults(&self) -> Vec<&str> {
        let faults = self.0["simulated"]["faults"].as_array();
        faults.into_iter().flatten().map(|fault| fault["kind"].as_str().unwrap()).collect()
    }

    /// The causes for which the run is not well.
    fn degraded_by(&self) -> Vec<&str> {
        self.0["degraded_by"].as_object().unwrap().keys().map(String::as_str).collect()
    }

    fn names(&self, key: &str) -> Vec<&str> {
        self.0[key].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
    }

    fn reason(&self) -> &str {
        self.0["reason"].as_str().unwrap()
    }
}

const LOST: [&str; 4] = ["level2_lost", "not_built", "lost_after_build", "lost_in_recording"];
