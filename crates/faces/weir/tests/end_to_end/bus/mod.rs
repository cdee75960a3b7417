//! The bus of those who watch: a real NATS server that comes, goes, refuses and is stuck, and a run that it never touches.

mod client;
mod conformance;
mod server;
mod watchers;

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use server::Server;
use watchers::{OverNats, Watcher};

use crate::observed::{ends_well, is_well, leave};
use crate::running::{Job, within_deadline};
use crate::served::Served;

#[test]
fn a_server_that_is_killed_within_a_run_and_returns_misses_no_message() {
    let Some(mut server) = Server::start("a_server_that_is_killed_within_a_run_and_returns_misses_no_message") else {
        return;
    };
    let mut served = Served::start(server.told_by(quickstart()));
    until_said(&served, GETS, 1);
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    served.running.until_recording();
    server.go();
    until_said(&served, IS_LOST, 1);
    served.running.until_more_is_recorded();
    served.ctl("anna", &["pause"]);
    served.ctl("anna", &["resume"]);
    server.come();
    until_said(&served, GETS, 2);
    served.running.until_more_is_recorded();
    ends_well(&mut served, 1);
    assert_eq!((said(&served, IS_LOST), said(&served, "is not there")), (1, 0), "{}", served.get("messages"));

    // The next run ends while the server is away; its record comes later.
    served.ctl("anna", &["start", "--duration", "1h"]);
    server.go();
    until_said(&served, IS_LOST, 2);
    ends_well(&mut served, 2);
    server.come();
    until_said(&served, GETS, 3);
    assert_eq!(said(&served, IS_LOST), 2, "{}", served.get("messages"));
    let mut reader = server.reader();
    within_deadline("both records are kept", || reader.kept("record").len() == 2);
    assert_eq!(reader.kept("record"), [served.get("runs/1"), served.get("runs/2")]);
    within_deadline("each message is kept once", || Value::from(reader.kept("message")) == served.get("messages"));
    leave(served);
}

#[test]
fn a_server_that_is_away_at_the_start_is_tried_again() {
    let Some(mut server) = Server::absent("a_server_that_is_away_at_the_start_is_tried_again") else { return };
    let mut served = Served::start(server.told_by(quickstart()));
    until_said(&served, "is not there: ", 1);
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--events", "200"]);
    served.until("the run is over", |status| status["last"]["number"] == 1);
    is_well(&served, 1);
    server.come();
    until_said(&served, GETS, 1);
    assert_eq!(said(&served, "is not there: "), 1, "{}", served.get("messages"));
    let mut reader = server.reader();
    within_deadline("what was said before is kept", || Value::from(reader.kept("message")) == served.get("messages"));
    assert_eq!(metric(&served, "weir_bus_connected"), 1.0);
    leave(served);
}

#[test]
fn a_login_that_is_refused_is_told_and_read_again() {
    let Some(server) = Server::start("a_login_that_is_refused_is_told_and_read_again") else { return };
    let job = server.told_by(quickstart());
    server.log_in("weir-quickstart:wrong", 0o600);
    let mut served = Served::start(job);
    until_said(&served, "refuses run control: authorization violation", 1);
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--events", "200"]);
    served.until("the run is over", |status| status["last"]["number"] == 1);
    is_well(&served, 1);
    assert_eq!(metric(&served, "weir_bus_connected"), 0.0);
    server.log_in_rightly();
    until_said(&served, GETS, 1);
    let refused = served.get("messages");
    assert_eq!(said(&served, "refuses run control"), 1, "{refused}");
    assert!(refused.to_string().contains("expected its user and password in control.bus_login"), "{refused}");
    leave(served);
}

#[test]
fn a_login_that_others_can_read_is_refused_at_the_start() {
    let Some(server) = Server::absent("a_login_that_others_can_read_is_refused_at_the_start") else { return };
    let job = server.told_by(quickstart());
    server.log_in("weir-quickstart:x", 0o644);
    let ended = job.served().run().expect(2);
    assert!(ended.stderr.contains("others can read it: expected the mode 600, found 644"), "{}", ended.stderr);
}

#[test]
fn what_is_said_to_a_server_may_be_encrypted() {
    let Some(mut server) = Server::absent("what_is_said_to_a_server_may_be_encrypted") else { return };
    let certificate = server.encrypts();
    server.come();
    let job = || {
        let address = format!("tls://{}", server.address);
        server.told_by(quickstart()).set("control.bus", &address)
    };
    let [other, _] = server.certificate("other");
    let stranger = Served::start(job().environment("SSL_CERT_FILE", &other));
    until_said(&stranger, "invalid peer certificate: UnknownIssuer", 1);
    leave(stranger);
    let served = Served::start(job().environment("SSL_CERT_FILE", &certificate));
    until_said(&served, GETS, 1);
    leave(served);
}

#[test]
fn a_stream_that_does_not_acknowledge_keeps_the_rest_from_nothing() {
    let Some(server) = Server::start("a_stream_that_does_not_acknowledge_keeps_the_rest_from_nothing") else { return };
    let silent = json!({ "name": "weir-quickstart", "subjects": ["weir.quickstart.*.rc.message"], "no_ack": true });
    let made = server.publisher().ask("$JS.API.STREAM.CREATE.weir-quickstart", &silent.to_string());
    assert!(!String::from_utf8_lossy(&made.payload).contains("error"), "{made:?}");
    let served = Served::start(server.told_by(quickstart()));
    until_said(&served, "keeps no messages and run records: it does not acknowledge", 1);
    let watcher = OverNats::of(server.watcher());
    served.ctl("anna", &["boot"]);
    within_deadline("what changes is told", || {
        watcher.statuses().last().is_some_and(|status| status["state"] == "booted")
    });
    assert_eq!((said(&served, GETS), said(&served, IS_LOST)), (1, 0), "{}", served.get("messages"));
    leave(served);
}

/// It takes connections and bytes until its buffers are full, and then nothing.
#[test]
fn a_server_that_is_stuck_takes_nothing_and_costs_no_memory() {
    let Some(server) = Server::start("a_server_that_is_stuck_takes_nothing_and_costs_no_memory") else { return };
    let mut served = Served::start(server.told_by(quickstart().set("sampling.samples", "1000")));
    until_said(&served, GETS, 1);
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    // What is kept for the page is full then.
    within_deadline("many events are shown", || shown(&served) > 2000);
    let before = memory_bytes(&served);
    server.signal(Signal::SIGSTOP);
    let bytes = sample_bytes(&served);
    let dropped_bytes = || metric(&served, "weir_bus_dropped_total") as u64 * bytes;
    within_deadline("many samples are dropped", || dropped_bytes() > DROPPED_BYTES_MIN);
    until_said(&served, IS_LOST, 1);
    let grown = memory_bytes(&served).saturating_sub(before);
    // Whoever holds what is dropped has grown by all of it.
    let dropped = dropped_bytes();
    assert!(grown < dropped / 2, "{grown} bytes more, {dropped} bytes dropped");
    served.running.until_more_is_recorded();
    ends_well(&mut served, 1);
    server.signal(Signal::SIGCONT);
    until_said(&served, GETS, 2);
    assert_eq!(said(&served, IS_LOST), 1, "{}", served.get("messages"));
    // Nor is it waited for at the end.
    server.signal(Signal::SIGSTOP);
    leave(served);
}

fn quickstart() -> Job {
    Job::example("quickstart").patient().set("ros.count", "2")
}

/// Waits for as many messages with these words.
fn until_said(served: &Served, words: &str, times: usize) {
    within_deadline(words, || said(served, words) >= times);
}

/// How often messages have these words.
fn said(served: &Served, words: &str) -> usize {
    let messages = served.get("messages");
    let texts = messages.as_array().unwrap().iter().filter_map(|message| message["text"].as_str());
    texts.filter(|text| text.starts_with("the bus ") && text.contains(words)).count()
}

fn shown(served: &Served) -> u64 {
    served.get("samples").as_array().unwrap().last().and_then(|newest| newest["number"].as_u64()).unwrap_or_default()
}

/// How large the events of samples are, on average.
fn sample_bytes(served: &Served) -> u64 {
    let samples = served.get("samples");
    let bytes: Vec<u64> = samples.as_array().unwrap().iter().filter_map(|sample| sample["bytes"].as_u64()).collect();
    bytes.iter().sum::<u64>() / bytes.len() as u64
}

fn metric(served: &Served, name: &str) -> f64 {
    let metrics = served.ask("GET", "/metrics", &[], "").body;
    let line = metrics.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {metrics}"));
    line.split(' ').next_back().unwrap().parse().unwrap()
}

/// What run control has in memory.
fn memory_bytes(served: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", served.running.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

const GETS: &str = "gets what is observed";
const IS_LOST: &str = "is lost";
/// Far more than publications that wait and what the page keeps differ by.
const DROPPED_BYTES_MIN: u64 = 96 << 20;
