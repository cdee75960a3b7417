//! Messages outlive run control, in a file beside the run catalogue.

use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::running::{Job, send, within_deadline};
use crate::served::Served;

/// Ended in order, and killed; then read without any service.
#[test]
fn messages_survive_run_control() {
    let mut served = Served::start(Job::example("quickstart").patient().set("processes.on_loss", "restart"));
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    served.running.until_recording();
    send(served.running.child("sfi-1"), Signal::SIGKILL);
    let died = |messages: &Value| {
        let all = messages.as_array().unwrap();
        all.iter().find(|message| message["severity"] == "warning" && message["application"] == "sfi-1").cloned()
    };
    let mut found = None;
    within_deadline("its death is told", || {
        found = died(&served.get("messages"));
        found.is_some()
    });
    let death = found.unwrap();
    assert_eq!(death["run"], 1, "{death}");
    assert_eq!(death["text"], "sfi-1 died; it is started again", "{death}");
    assert_eq!(death["causes"][0], "killed by SIGKILL", "{death}");
    let told = served.ctl("anna", &["messages", "--words", "SIGKILL", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap()["causes"], death["causes"], "{told}");
    served.ctl("anna", &["stop"]);
    served.until("the run is over", |status| status["last"]["number"] == 1);
    let said = texts(&served.get("messages"));

    served.running.signal(Signal::SIGTERM);
    assert!(served.running.end_of_last().success());
    served.again(&[]);
    let restored = texts(&served.get("messages"));
    assert_eq!(restored[..said.len()], said, "all of them, and behind them how the applications ended");
    assert_eq!(died(&served.get("messages?run=1")), Some(death.clone()), "with all that it said");

    served.ctl("bob", &["boot"]);
    served.running.signal(Signal::SIGKILL);
    served.running.end_of_last();
    served.again(&[]);
    let all = served.get("messages");
    assert!(texts(&all).contains(&"bob commands".to_owned()), "{all}");
    let numbers: Vec<u64> = all.as_array().unwrap().iter().map(|message| message["number"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|before, after| before < after) && numbers[0] == 1, "{numbers:?}");

    served.ctl("anna", &["boot"]);
    let newest = served.ctl("anna", &["messages", "--newest", "1"]);
    assert!(newest.lines().count() == 1 && newest.ends_with("the applications run\n"), "{newest}");
    let told = served.ctl("anna", &["messages", "--before", "2", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap()["number"], json!(1));
    assert!(served.refused("anna", &["messages", "--newest", "0"], 1).contains("0 is not in 1..=10000"));
    served.running.signal(Signal::SIGTERM);
    let weir = served.running.program();
    let ended = served.end().expect(0);
    let of_run = messages_of_run(weir, &ended.directory.join("runs.sqlite"), "1");
    assert!(of_run.contains("warning run 1: sfi-1 died; it is started again, because: killed by SIGKILL"), "{of_run}");
    assert!(!of_run.contains("bob commands"), "that was between two runs: {of_run}");
}

fn messages_of_run(mut weir: Command, catalogue: &Path, run: &str) -> String {
    let told = weir.args(["runs", "messages", run, "--catalogue"]).arg(catalogue).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    String::from_utf8(told.stdout).unwrap()
}

fn texts(messages: &Value) -> Vec<String> {
    messages.as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}
