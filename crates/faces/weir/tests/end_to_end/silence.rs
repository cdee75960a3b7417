//! An application that hangs is named as the cause until it answers again. One that never does is lost.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::children::{marked, name};
use crate::running::{Job, send, within_deadline};
use crate::served::Served;

#[test]
fn an_application_that_hangs_is_named_until_it_answers() {
    check_named_until_they_answer(recording(job()), &["l2pu-1", "ros-1", "sfi-1", "sfo-1"].map(|name| (name, "")));
}

/// Each hangs for a while. Then the run goes on, and nothing is missing at its end.
pub(crate) fn check_named_until_they_answer(mut served: Served, applications: &[(&str, &str)]) {
    for (application, on_host) in applications {
        let process = process(&served, application);
        send(process, Signal::SIGSTOP);
        let said = format!("{application}{on_host} has said nothing for ");
        let remedy = "it hangs or gets no processor; after 240 s it is ended as lost (processes.hang_timeout)";
        let is_said = |text: &Value| text.as_str().is_some_and(|text| text.starts_with(&said));
        let status = served.until("the sentence names it", |status| is_said(&status["sentence"]));
        assert!(status["sentence"].as_str().unwrap().ends_with(remedy), "{status}");
        assert!(is_said(&status["run"]["troubles"][0]) && status["state"] == "running", "{status}");
        assert!(served.ctl("anna", &["status"]).contains(&said));
        assert!(silent_s(&served, application) >= Some(1.5), "{}", served.get("dataflow"));
        let metrics = served.ask("GET", "/metrics", &[], "").body;
        let metric = format!("weir_silent_seconds{{partition=\"quickstart\",application=\"{application}\"}} ");
        assert!(metrics.contains(&metric) && !metrics.contains(&format!("{metric}0\n")), "{metrics}");
        let warnings = served.get("messages?severity=warning");
        let warning = warnings.as_array().unwrap().iter().find(|message| is_said(&message["text"]));
        assert_eq!(warning.expect("it is among the messages")["application"], json!(application));

        send(process, Signal::SIGCONT);
        served.until("nobody is silent", |status| status["run"]["troubles"] == json!([]));
        within_deadline("it is said that it answers", || {
            let messages = served.get("messages");
            let answers = format!("{application} answers again, after ");
            messages.as_array().unwrap().iter().any(|message| message["text"].as_str().unwrap().starts_with(&answers))
        });
        within_deadline("it is not shown as silent", || silent_s(&served, application).is_none());
        served.running.until_more_is_recorded();
    }
    served.ctl("anna", &["stop"]);
    let over = served.until("the run is over", |status| status["last"]["number"] == 1);
    assert_eq!(over["last"]["state"], "ok", "{over}");
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

#[test]
fn one_that_hangs_for_too_long_is_lost() {
    let hung = "it hung, and was ended after 3 s of silence (processes.hang_timeout)";
    let job = || job().set("processes.hang_timeout", "3 s").set("dfm.clear_after", "recorded");
    let mut served = recording(job().set("processes.on_loss", "restart"));
    send(process(&served, "sfi-1"), Signal::SIGSTOP);
    within_deadline("it is back", || served.get("messages").to_string().contains("sfi-1 is back after"));
    let messages = served.get("messages");
    let death =
        messages.as_array().unwrap().iter().find(|message| message["text"] == "sfi-1 died; it is started again");
    assert_eq!(death.unwrap_or_else(|| panic!("{messages}"))["causes"][0], hung);
    served.running.until_more_is_recorded();
    served.ctl("anna", &["stop"]);
    served.until("the run is over", |status| status["last"]["number"] == 1);
    let run = served.get("runs/1");
    assert_eq!(
        (&run["summary"]["accounting"]["residual"], &run["summary"]["forced"]),
        (&json!(0), &Value::Null),
        "{run}"
    );
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);

    let mut served = recording(job());
    send(process(&served, "sfi-1"), Signal::SIGSTOP);
    let over = served.until("the run ends without it", |status| status["last"]["number"] == 1);
    assert!(
        over["last"]["reason"].as_str().is_some_and(|reason| reason.contains(&format!("sfi-1 died: {hung}"))),
        "{over}"
    );
    assert_eq!(over["state"], "fault", "{over}");
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

fn job() -> Job {
    Job::example("quickstart").patient().set("ros.count", "2").set("level1.rate", "400 Hz")
}

/// A run that records.
pub(crate) fn recording(job: Job) -> Served {
    let mut served = Served::start(job);
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    served.running.until_recording();
    served
}

/// How long an application has been silent, as the page shows it.
fn silent_s(served: &Served, application: &str) -> Option<f64> {
    let dataflow = served.get("dataflow");
    let mut all =
        dataflow["stages"].as_array().unwrap().iter().flat_map(|stage| stage["applications"].as_array().unwrap());
    all.find(|one| one["name"] == application).unwrap()["silent_s"].as_f64()
}

/// The process of an application, whoever has started it.
fn process(served: &Served, application: &str) -> i32 {
    let processes = marked(served.running.directory().path());
    let found = processes.into_iter().find(|pid| name(*pid).as_deref() == Some(application));
    found.unwrap_or_else(|| panic!("no process of {application}\n{}", served.running.error_output()))
}
