//! Each way to another state says whom it waits for, and can be given up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::children::marked;
use crate::running::{Job, Running, send, within_deadline};
use crate::served::Served;

/// The agent of a host never comes.
#[test]
fn a_boot_says_whom_it_waits_for_and_can_be_given_up() {
    let job = Job::example("quickstart").patient().set("ros.count", "3").set("processes.lease", "10 s");
    let program = job.directory().join("silent-agent");
    fs::write(&program, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let program = program.display();
    let mut served = Served::start(
        job.set("host", &format!("[{{name=\"a\"}}, {{name=\"b\", program=\"{program}\", data=\"127.0.0.2\"}}]")),
    );
    let boot = order(&served, "boot");
    let status = served.until("it waits for those of the host alone", |status| {
        status["waiting"]["whom"].as_array().is_some_and(|whom| whom.iter().all(is_of_b))
    });
    assert_eq!((&status["state"], &status["verbs"]), (&json!("booting"), &json!(["shutdown"])), "{status}");
    let (missing, of) = (status["waiting"]["missing"].as_u64().unwrap(), status["waiting"]["of"].as_u64().unwrap());
    let sentence = status["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("the applications start: run control waits for "), "{sentence}");
    let end = format!(" (host b) ({missing} of {of}), at most 240 s (processes.start_timeout)");
    assert!(sentence.ends_with(&end) && missing < of, "{sentence}");
    assert!(served.ctl("anna", &["status"]).starts_with("quickstart booting: the applications start: "));
    let refused = served.refused("anna", &["start"], 1);
    assert_eq!(refused, "weir: cannot start while the partition is booting: possible is shutdown\n");

    assert_eq!(served.ctl("anna", &["shutdown"]), "no application runs\n");
    assert!(!boot.wait_with_output().unwrap().status.success(), "who has ordered it is told");
    let status = served.until_state("absent");
    assert_eq!((&status["waiting"], &status["verbs"]), (&Value::Null, &json!(["boot"])));
    let directory = served.running.directory().path().to_owned();
    let services = [served.running.pid()];
    within_deadline("nothing is left", || marked(&directory) == services);
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

fn is_of_b(name: &Value) -> bool {
    name.as_str().is_some_and(|name| name.ends_with(" (host b)"))
}

/// An application hangs while a run begins. Somebody gives the run up, and the next one is as any other.
#[test]
fn a_start_says_whom_it_waits_for_and_can_be_given_up() {
    let mut served = Served::start(Job::example("quickstart").patient().set("ros.count", "2"));
    served.ctl("anna", &["boot"]);
    let hung = served.running.child("sfi-1");
    send(hung, Signal::SIGSTOP);
    let start = order(&served, "start");
    let status = served.until("it waits for that one", |status| {
        status["waiting"]["whom"].as_array().is_some_and(|whom| whom.contains(&json!("sfi-1")))
    });
    let sentence = status["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("a run begins: run control waits for "), "{sentence}");
    served.ctl("anna", &["stop"]);
    served.until("it is waited for to leave", |status| status["waiting"]["what"] == "the applications leave the run");
    send(hung, Signal::SIGCONT);
    let told = start.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&told.stderr).contains("interrupted before the run began"));
    served.until("it is ready", |status| status["state"] == "booted" && status["run"].is_null());
    let messages = served.get("messages").to_string();
    assert!(messages.contains("no run has begun: it was given up"), "{messages}");

    assert_eq!(served.get("runs/1")["quality"], "interrupted", "its number is never given again");
    assert_eq!(served.ctl("anna", &["start", "--events", "200"]), "run 2 has begun\n");
    let over = served.until("the run is over", |status| !status["last"].is_null());
    assert_eq!(over["last"]["state"], "ok", "{over}");
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

#[test]
fn a_stop_says_whom_it_waits_for() {
    let mut served = Served::start(Job::example("quickstart").patient().set("ros.count", "2"));
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    served.running.until_recording();
    let hung = served.running.child("sfo-1");
    send(hung, Signal::SIGSTOP);
    served.ctl("anna", &["stop"]);
    // Builders and filter daemons have not drained before the recorder has what they gave.
    let status = served.until("it waits", |status| {
        status["waiting"]["what"].as_str().is_some_and(|what| what.starts_with("the run stops, "))
            && status["waiting"]["limit"] == "at most 60 s without progress (run.stop_timeout)"
    });
    let waiting = &status["waiting"];
    assert!(status["state"] == "draining" && waiting["missing"].as_u64() > Some(0), "{status}");
    assert_eq!(waiting["whom"].as_array().map(|whom| whom.len() as u64), waiting["missing"].as_u64(), "{status}");
    // That it hangs is more than that it has not drained.
    served.until("it is known to hang", |status| {
        status["sentence"].as_str().is_some_and(|sentence| sentence.starts_with("sfo-1 has said nothing for "))
    });
    send(hung, Signal::SIGCONT);
    let over = served.until("the run is over", |status| status["last"]["number"] == 1);
    assert_eq!(over["last"]["state"], "ok", "{over}");
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

/// Without a page the terminal says it.
#[test]
fn a_run_that_does_not_begin_says_whom_it_waits_for() {
    let mut running: Running = crate::open_files::that_cannot_begin().start();
    running.until("it says so", |running| running.error_output().contains("a run begins: run control waits for "));
    running.signal(Signal::SIGINT);
    running.end().expect(2);
}

/// An order of which nobody waits for the end.
fn order(served: &Served, verb: &str) -> Child {
    let mut order = served.ctl_command("anna");
    order.arg(verb).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}
