//! Orders that change a partition: one application ends at once, and another configuration is put into force.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::TempDir;

use crate::children;
use crate::running::{Job, examples, within_deadline};
use crate::served::Served;

/// The policy of its role applies, and the messages say who did it.
#[test]
fn an_application_that_is_named_twice_ends_at_once() {
    let mut served = Served::start(Job::example("quickstart").patient().set("processes.on_loss", "restart"));
    let kill = ["kill", "sfi-1", "--confirm", "sfi-1"];
    assert_eq!(served.refused("anna", &kill, 1), "weir: no application runs\n");
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    served.running.until_recording();
    for (arguments, why) in [
        (&["kill", "sfi-1"][..], "expected the same application as application and confirm"),
        (&["kill", "sfi-1", "--confirm", "sfi-2"], "expected the same application as application and confirm"),
        (&["kill", "sfi-9", "--confirm", "sfi-9"], "there is no application \"sfi-9\": expected one of "),
    ] {
        let refused = served.refused("anna", arguments, 1);
        assert!(refused.contains(why), "{refused}");
    }
    let body = json!({ "name": "eve", "client": "eve", "application": "sfi-1", "confirm": "sfi-1" });
    let json = [("Content-Type", "application/json")];
    assert_eq!(served.ask("POST", "/api/orders/kill", &json, &body.to_string()).status, 401);
    assert_eq!(served.post("orders/kill", &body).status, 409, "anna commands");

    let former = served.running.child("sfi-1");
    assert_eq!(served.ctl("anna", &kill), "sfi-1 is ended\n");
    within_deadline("it is back", || texts(&served).iter().any(|text| text.contains("sfi-1 is back")));
    assert_ne!(served.running.child("sfi-1"), former);
    let said = texts(&served);
    let place = |words: &str| said.iter().position(|text| text.contains(words)).unwrap_or_else(|| panic!("{said:?}"));
    assert!(place("anna ends sfi-1 at once") < place("sfi-1 is back"), "{said:?}");
    served.running.until_more_is_recorded();
    served.ctl("anna", &["stop"]);
    served.until("the run is over", |status| status["last"]["number"] == 1);
    let run = served.get("runs/1");
    assert_eq!(run["summary"]["accounting"]["residual"], 0, "{run}");
    assert_eq!(run["summary"]["restarts"].as_array().map(Vec::len), Some(1), "{run}");
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

/// All applications live in run control.
#[test]
fn what_lives_in_run_control_is_not_ended_alone() {
    let served = Served::start(Job::example("quickstart").patient().with(&["--one-process"]));
    served.ctl("anna", &["boot"]);
    let refused = served.refused("anna", &["kill", "sfi-1", "--confirm", "sfi-1"], 1);
    assert!(refused.contains("sfi-1 lives in the process of run control"), "{refused}");
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

#[test]
fn a_changed_configuration_is_in_force_between_two_runs() {
    let folder = TempDir::new("configure");
    let file = folder.join("partition.toml");
    let original = fs::read_to_string(examples().join("quickstart.toml")).unwrap();
    let original = original.replace("\"data/", &format!("\"{}/data/", examples().display()));
    fs::write(&file, &original).unwrap();
    let mut served = Served::start(Job::of(&file).patient());
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    served.until_state("running");
    let refused = served.refused("anna", &["configure"], 1);
    assert_eq!(refused, "weir: cannot configure while the partition is running: possible is pause or stop\n");
    served.ctl("anna", &["stop"]);
    served.until_state("booted");

    fs::write(&file, original.clone() + "\n[nonsense]\nkey = 1\n").unwrap();
    let refused = served.refused("anna", &["configure"], 1);
    assert!(refused.contains("partition.toml:") && refused.contains("nonsense"), "{refused}");
    fs::write(&file, original.replace("name = \"quickstart\"", "name = \"other\"")).unwrap();
    assert!(served.refused("anna", &["configure"], 1).contains("partition.name cannot change while the service lives"));
    assert_eq!(served.status()["configured"], 0);

    // What concerns runs alone leaves the applications as they are.
    let before = applications(&served);
    let shorter = original.replace("events = 1000", "events = 150");
    fs::write(&file, &shorter).unwrap();
    let said = served.ctl("anna", &["configure"]);
    assert!(said.starts_with("it is in force: run.") && said.contains("run.events"), "{said}");
    assert_eq!(applications(&served), before);
    served.ctl("anna", &["start"]);
    let over = served.until("the run is over", |status| status["last"]["number"] == 2);
    assert_eq!((&over["last"]["state"], &over["configured"]), (&json!("ok"), &json!(1)), "{over}");

    // All else starts them anew, by another file too.
    let other = other_file(&folder, &shorter.replace("[sfi]\ncount = 2", "[sfi]\ncount = 3"));
    let said = served.ctl("anna", &["configure", other.to_str().unwrap()]);
    assert!(said.starts_with("it is in force, and the applications run anew: "), "{said}");
    assert!(said.contains("sfi.count 2 -> 3"), "{said}");
    assert!(applications(&served).iter().any(|(name, _)| name == "sfi-3"), "{:?}", applications(&served));
    let shown = served.get("configuration");
    assert_eq!(shown["value"]["sfi"]["count"], 3, "{shown}");
    assert!(texts(&served).iter().any(|text| text.starts_with("anna has given another configuration: ")));
    served.ctl("anna", &["start"]);
    let over = served.until("the run is over", |status| status["last"]["number"] == 3);
    assert_eq!(over["last"]["state"], "ok", "{over}");
    assert!(served.get("runs/2/difference/3").to_string().contains("sfi.count"));
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

fn other_file(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.join("other.toml");
    fs::write(&path, text).unwrap();
    path
}

/// Names and processes.
fn applications(served: &Served) -> Vec<(String, i32)> {
    let children = children::of(served.running.pid()).into_iter();
    let mut all: Vec<_> = children.filter_map(|pid| Some((children::name(pid)?, pid))).collect();
    all.sort();
    all
}

fn texts(served: &Served) -> Vec<String> {
    let messages = served.get("messages");
    let texts = messages.as_array().unwrap().iter().map(|message: &Value| message["text"].as_str().unwrap().to_owned());
    texts.collect()
}
