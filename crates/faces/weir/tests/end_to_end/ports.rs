//! Read-out systems with several network ports, between real processes.

use nix::sys::signal::Signal;

use crate::account::Summary;
use crate::children::listening;
use crate::death::check_death_in;
use crate::lossy::can_lose;
use crate::running::{Job, send};

#[test]
fn events_are_built_and_decided_on_by_several_ports() {
    for ports in ["[\"127.0.0.2\"]", "[\"127.0.0.2\", \"127.0.0.3\", \"127.0.0.4\"]"] {
        let job = Job::example("quickstart").patient().set("ros.count", "2").set("ros.ports", ports).events(500);
        let (_, summary) = job.processes(true).run().expect_ok();
        assert!(summary.count("recorded") > 0, "{summary:?}");
        assert_eq!(summary.0["reasks"].as_u64(), Some(0), "{summary:?}");
    }
}

/// More connections than twice the processes.
#[test]
fn many_builders_connect_to_many_ports() {
    let ports: Vec<String> = (2..18).map(|number| format!("\"127.0.0.{number}\"")).collect();
    for reply in ["tcp", "shm"] {
        let job = Job::example("event-builder")
            .patient()
            .set("sfo", "{}")
            .set("ros.ports", &format!("[{}]", ports.join(", ")));
        let job = job.set("ros.fragment", "{kind=\"fixed\", size=\"100 B\"}").set("sfi.count", "4");
        let (_, summary) = job.set("transport.event_reply", reply).events(800).processes(true).run().expect_ok();
        assert_eq!(summary.count("built_complete"), 800, "{summary:?}");
        let ports = by_port(&summary);
        assert!(ports.len() == 16 && ports.iter().all(|bytes| *bytes > 0), "{summary:?}");
    }
}

/// Counted by those who receive: each port has its share of requests and replies, and nothing else.
#[test]
fn each_carrier_spreads_data_over_the_ports() {
    let events = 400;
    for carrier in ["tcp", "udp", "shm"] {
        let job = builder().events(events).processes(true).set("transport.event_reply", carrier);
        let (_, summary) = job.set("transport.event_request", carrier).run().expect_ok();
        assert_eq!(summary.count("built_complete"), events);
        let (data, ports) = (4 * 9000 * events, by_port(&summary));
        let sum: u64 = ports.iter().sum();
        assert!(ports.len() == 2 && ports.iter().all(|bytes| *bytes > data / 4), "{carrier}: {summary:?}");
        assert!((data..data + data / 4).contains(&sum), "{carrier}: {summary:?}");
        assert!(summary.0["network"]["carriers"][carrier]["bytes"].as_u64() >= Some(sum), "{carrier}: {summary:?}");
    }
}

#[test]
fn requests_and_replies_of_level_2_go_by_the_ports_too() {
    let job = || {
        Job::example("quickstart").patient().set("ros.count", "2").set("ros.ports", PORTS).events(300).processes(true)
    };
    // What is not built is asked for by level 2 alone.
    let job = || job().set("l2pu.strategy", "generate").set("l2pu.accept", "0.0");
    for carrier in ["tcp", "udp", "shm"] {
        let job = job().set("transport.roi_request", carrier).set("transport.roi_reply", carrier);
        let (_, summary) = job.run().expect_ok();
        let ports = by_port(&summary);
        assert!(ports.len() == 2 && ports.iter().all(|bytes| *bytes > 10_000), "{carrier}: {summary:?}");
    }
}

#[test]
fn a_read_out_system_listens_at_each_of_its_ports() {
    let job = builder().set("sfo.max_file_events", "40").endless().processes(true);
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
fn a_port_of_another_host_is_named() {
    let ended = builder().set("ros.ports", "[\"192.0.2.1\"]").processes(true).run().expect(2);
    assert!(ended.stderr.contains("ros.ports: ") && ended.stderr.contains("192.0.2.1"), "{}", ended.stderr);
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

/// Requests that a dead port has swallowed are repeated by another.
#[test]
fn events_are_complete_although_a_port_is_dead() {
    if !can_lose("events_are_complete_although_a_port_is_dead") {
        return;
    }
    let job =
        ["event_request", "event_reply"].iter().fold(builder(), |job, of| job.set(&format!("transport.{of}"), "udp"));
    let job = job.set("sfi.request_timeout", "1 s").set("sfi.retries", "100").events(100).processes(true);
    let (_, summary) = job.in_network(dead()).run().expect_ok();
    assert_eq!(summary.count("built_complete"), 100, "{summary:?}");
    assert!(summary.0["reasks"].as_u64() > Some(0), "{summary:?}");
}

fn by_port(summary: &Summary) -> Vec<u64> {
    let ports = summary.0["network"]["ports"].as_array().unwrap_or_else(|| panic!("no ports: {summary:?}"));
    ports.iter().map(|bytes| bytes.as_u64().expect("a number of bytes")).collect()
}

/// Event building alone from four sources with two ports each, recorded.
fn builder() -> Job {
    Job::example("event-builder").patient().set("sfo", "{}").set("ros.ports", PORTS)
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

/// A network that drops all datagrams to and from the second port.
fn dead() -> String {
    "set -e; PATH=$PATH:/usr/sbin; ip link set lo up; nft -f - <<'RULES'\ntable inet ports {\n chain in {\n type filter hook \
     input priority 0\n meta l4proto udp ip saddr 127.0.0.3 drop\n meta l4proto udp ip daddr 127.0.0.3 drop\n }\n}\n\
     RULES\nexec \"$0\" \"$@\""
        .into()
}

const PORTS: &str = "[\"127.0.0.2\", \"127.0.0.3\"]";
