//! One suite for both carriers of observation: a watcher sees a run over HTTP and over NATS alike.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::server::Server;
use super::watchers::{OverHttp, OverNats, Watcher};
use crate::running::{Job, within_deadline};
use crate::served::Served;

#[test]
fn what_a_watcher_sees_is_the_same_over_both_carriers() {
    let Some(server) = Server::start("what_a_watcher_sees_is_the_same_over_both_carriers") else { return };
    let over_nats = OverNats::of(server.watcher());
    let job = Job::example("quickstart").patient().set("ros.count", "2").set("sampling.stages", "[\"sfi\", \"efd\"]");
    let served = Served::start(server.told_by(job));
    let over_http = OverHttp::of(&served.address);
    let watchers: [&dyn Watcher; 2] = [&over_http, &over_nats];

    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    watchers.iter().for_each(|watcher| sees_a_run_go_on(*watcher));
    served.ctl("anna", &["pause"]);
    watchers.iter().for_each(|watcher| sees_a_state(*watcher, "paused"));
    served.ctl("anna", &["resume"]);
    served.ctl("anna", &["stop"]);
    watchers.iter().for_each(|watcher| sees_the_end(*watcher));
    is_seen_alike(&over_http, &over_nats);

    // Over NATS those who come later see the state, too.
    let late = OverNats::of(server.watcher());
    within_deadline("who comes late sees the state", || late.statuses().last() == Some(&served.status()));
    within_deadline("and the counters", || late.metrics("sfi-1") == over_http.metrics("sfi-1"));
    // All that is said at the end is heard.
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
    within_deadline("it is heard how it ended", || {
        over_nats.statuses().last().is_some_and(|status| status["state"] == "absent")
    });
}

fn sees_a_run_go_on(watcher: &dyn Watcher) {
    sees_a_state(watcher, "running");
    let name = watcher.name();
    let stages = |stage: &str| watcher.samples().values().filter(|sample| sample["stage"] == *stage).count();
    within_deadline(&format!("{name}: samples of both stages"), || stages("sfi") > 2 && stages("efd") > 2);
    within_deadline(&format!("{name}: rates"), || {
        watcher.statuses().iter().any(|status| status["run"]["rates"]["recorded_hz"].as_f64() > Some(0.0))
    });
    within_deadline(&format!("{name}: counters"), || {
        watcher.metrics("sfi-1").is_some_and(|metrics| metrics["counts"]["built_complete"].as_u64() > Some(0))
    });
}

fn sees_a_state(watcher: &dyn Watcher, state: &str) {
    within_deadline(&format!("{}: {state}", watcher.name()), || {
        watcher.statuses().iter().any(|status| status["state"] == state)
    });
}

fn sees_the_end(watcher: &dyn Watcher) {
    let name = watcher.name();
    within_deadline(&format!("{name}: the end"), || {
        watcher.statuses().last().is_some_and(|status| status["state"] == "booted" && status["last"]["number"] == 1)
    });
    within_deadline(&format!("{name}: the record"), || watcher.record(1).is_some());
    let record = watcher.record(1).unwrap();
    let account = &record["summary"]["accounting"];
    assert_eq!((&record["quality"], &account["residual"]), (&json!("good"), &json!(0)), "{name}: {record}");
    within_deadline(&format!("{name}: all counters agree with the account"), || {
        watcher.metrics("sfo-1").is_some_and(|metrics| metrics["counts"]["recorded"] == account["recorded"])
    });
    within_deadline(&format!("{name}: the last message"), || {
        watcher.messages().values().any(|message| message["text"] == "the run has ended ok")
    });
    let said = watcher.messages();
    assert_eq!(said.keys().copied().collect::<Vec<_>>(), (1..=said.len() as u64).collect::<Vec<_>>(), "{name}");
    for expected in ["anna commands", "the applications run", "anna has begun the run", "the run has ended ok"] {
        assert!(said.values().any(|message| message["text"] == expected), "{name}: {expected}: {said:?}");
    }
}

fn is_seen_alike(one: &dyn Watcher, other: &dyn Watcher) {
    within_deadline("the same samples", || one.samples() == other.samples());
    within_deadline("the same messages", || one.messages() == other.messages());
    within_deadline("the same status", || one.statuses().last() == other.statuses().last());
    assert_eq!(one.record(1), other.record(1));
    for (number, sample) in one.samples() {
        // Over HTTP older ones have made room for newer ones, perhaps.
        let (Some(event), heard) = (one.event(number), other.event(number)) else { continue };
        assert_eq!((Some(&event), json!(event.len())), (heard.as_ref(), sample["bytes"].clone()), "{sample}");
    }
    for application in ["level1-1", "l2sv-1", "ros-1", "ros-2", "dfm-1", "sfi-1", "efd-1", "sfo-1"] {
        within_deadline(application, || {
            let seen = one.metrics(application);
            seen.is_some() && seen == other.metrics(application)
        });
    }
}

#[test]
fn who_watches_may_publish_nothing_and_who_reads_finds_what_was_kept() {
    let Some(server) = Server::start("who_watches_may_publish_nothing_and_who_reads_finds_what_was_kept") else {
        return;
    };
    let mut served = Served::start(server.told_by(Job::example("quickstart").patient().set("ros.count", "2")));
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--events", "100"]);
    served.until("the run is over", |status| status["last"]["number"] == 1);

    let watcher = OverNats::of(server.watcher());
    let [forged, forged_message] = ["status", "message"].map(|what| format!("weir.quickstart.forged.rc.{what}"));
    for mut stranger in [server.watcher(), server.reader()] {
        let refused = stranger.publish(&forged, "{}").unwrap_err();
        assert!(refused.contains("Permissions Violation for Publish"), "{refused}");
        assert!(stranger.subscribe("$JS.API.>").is_err());
    }
    let mut reader = server.reader();
    within_deadline("the record is kept", || !reader.kept("record").is_empty());
    let records = reader.kept("record");
    assert_eq!((records.len(), &records[0]), (1, &served.get("runs/1")));
    // An answer is a publication, too.
    let refused = reader.ask_for(&forged, "$JS.API.STREAM.INFO.weir-quickstart", "").unwrap_err();
    assert!(refused.contains("Permissions Violation for Publish"), "{refused}");
    let oldest = json!({ "seq": 1, "next_by_subj": "weir.quickstart.*.rc.message" }).to_string();
    reader.ask_for(&forged_message, "$JS.API.DIRECT.GET.weir-quickstart", &oldest).unwrap();
    within_deadline("all messages are kept", || Value::from(reader.kept("message")) == served.get("messages"));
    let heard = watcher.statuses().len();
    within_deadline("more is published", || watcher.statuses().len() > heard + 1);
    assert!(!watcher.has_heard(&forged) && !watcher.has_heard(&forged_message));
    assert_eq!(Value::from(reader.kept("message")), served.get("messages"));
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}
