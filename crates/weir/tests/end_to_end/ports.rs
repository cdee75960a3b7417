//! Read-out systems with several network ports, between real processes.

use nix::sys::signal::Signal;

use crate::children::listening;
use crate::death::check_death_in;
use crate::lossy::can_lose;
use crate::running::{Job, send};

#[test]
fn events_are_built_and_decided_on_by_several_ports() {
    for ports in ["[\"127.0.0.2\"]", "[\"127.0.0.2\", \"127.0.0.3\", \"127.0.0.4\"]"] {
        let job = Job::example("quickstart").set("ros.count", "2").set("ros.ports", ports).events(500);
        let (_, summary) = job.processes(true).run().expect_ok();
        assert!(summary.count("recorded") > 0, "{summary:?}");
        assert_eq!(summary.0["reasks"].as_u64(), Some(0), "{summary:?}");
    }
}

#[test]
fn a_read_out_system_listens_at_each_of_its_ports() {
    let job = builder().set("sfo.max_file_events", "40").with(&["--duration", "90s"]).processes(true);
    let mut running = job.start();
    running.until_recording();
    let mut hosts: Vec<String> =
        listening(running.child("ros-1")).into_iter().map(|(address, _)| address.ip().to_string()).collect();
    hosts.sort();
    assert_eq!(hosts, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
    assert_eq!(listening(running.child("sfi-1")).len(), 1);
    send(running.pid(), Signal::SIGINT);
    running.end().expect_ok();
}

#[test]
fn a_death_ends_the_run_as_with_one() {
    for application in ["ros-2", "sfi-1"] {
        check_death_in(crate::death::job().set("ros.ports", PORTS), application);
    }
}

#[test]
fn without_processes_nothing_goes_by_them() {
    let (_, summary) = builder().events(100).run().expect_ok();
    assert_eq!(summary.count("built_complete"), 100);
}

/// Counted by the kernel, in a network of its own: each port has its share, and little goes elsewhere.
#[test]
fn data_are_spread_over_the_ports() {
    if !can_lose("data_are_spread_over_the_ports") {
        return;
    }
    let events = 400_u64;
    let (ended, summary) = builder().events(events).processes(true).in_network(counting()).run().expect_ok();
    assert_eq!(summary.count("built_complete"), events);
    let bytes = |address: &str| -> u64 {
        let counter = ended.stdout.split(&format!("counter at_{address} ")).nth(1).expect("a counter");
        let bytes = counter.split("bytes ").nth(1).and_then(|text| text.split_whitespace().next());
        bytes.and_then(|bytes| bytes.parse().ok()).expect("a number of bytes")
    };
    let (data, [first, second, elsewhere]) = (4 * 9000 * events, ["2", "3", "1"].map(bytes));
    assert!(first > data / 4 && second > data / 4 && first + second > data, "{first} {second} of {data}");
    // What goes to disk passes from process to process by the first connection.
    assert!(elsewhere < 3 * data, "{elsewhere} of {data}");
}

/// Event building alone from four sources with two ports each, recorded.
fn builder() -> Job {
    Job::example("event-builder").set("sfo", "{}").set("ros.ports", PORTS)
}

/// A network that counts what comes from each address, and tells at the end.
fn counting() -> String {
    let counters: String = (1..=3).map(|port| format!(" counter at_{port} {{\n }}\n")).collect();
    let rules: String = (1..=3).map(|port| format!(" ip saddr 127.0.0.{port} counter name at_{port}\n")).collect();
    format!(
        "set -e; PATH=$PATH:/usr/sbin; ip link set lo up; nft -f - <<'RULES'\ntable inet ports {{\n{counters} chain in \
         {{\n type filter hook input priority 0\n{rules} }}\n}}\nRULES\n\"$0\" \"$@\"; nft list counters"
    )
}

const PORTS: &str = "[\"127.0.0.2\", \"127.0.0.3\"]";
