//! Events that applications show while a run goes on: over HTTP, and by `weir ctl`.

use std::io::Write;
use std::net::TcpStream;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::files::check_all;
use crate::running::{Job, examples, program, within_deadline};
use crate::served::Served;

#[test]
fn events_are_shown_as_they_are_built_and_filtered() {
    let job = Job::example("quickstart").patient().set("ros.count", "2");
    let mut served = Served::start(job.set("sampling.stages", "[\"sfi\", \"efd\"]"));
    let refused = served.refused("anna", &["sample"], 1);
    assert!(refused.contains("no event was shown yet") && refused.contains("sampling.stages"), "{refused}");
    assert_eq!(served.get("samples"), json!([]));
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    let mut samples = Vec::new();
    within_deadline("both stages show events", || {
        samples = served.get("samples").as_array().unwrap().clone();
        ["sfi", "efd"].iter().all(|stage| samples.iter().any(|sample| sample["stage"] == *stage))
    });
    let numbers: Vec<u64> = samples.iter().map(|sample| sample["number"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted() && samples.iter().all(|sample| sample["run"] == 1), "{samples:?}");
    let last = numbers.last().unwrap();
    assert!(
        served
            .get(&format!("samples?behind={last}"))
            .as_array()
            .unwrap()
            .iter()
            .all(|s| s["number"].as_u64() > Some(*last))
    );
    what_a_terminal_shows(&served);
    wrong_requests(&served);

    served.ctl("anna", &["stop"]);
    served.until_state("booted");
    // What was shown last stays.
    let newest: Value = serde_json::from_str(&served.ctl("bob", &["sample", "--json"])).unwrap();
    let counted = served.get("dataflow");
    let counts =
        counted["stages"].as_array().unwrap().iter().flat_map(|stage| stage["applications"].as_array().unwrap());
    let shown: u64 = counts.filter_map(|application| application["counts"]["samples"].as_u64()).sum();
    assert!(newest["number"].as_u64() <= Some(shown), "{newest} of {shown}");
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}

fn what_a_terminal_shows(served: &Served) {
    let listed = served.ctl("anna", &["sample", "--list", "--of", "sfi"]);
    assert!(listed.lines().count() > 0 && listed.lines().all(|line| line.contains(" of sfi-")), "{listed}");
    let tree: Value = serde_json::from_str(&served.ctl("anna", &["sample", "--of", "efd", "--json"])).unwrap();
    let (header, readout) = (&tree["tree"]["header"], tree["tree"]["readout"].as_array().unwrap());
    assert_eq!(
        (&tree["stage"], &header["event"], &header["run"]),
        (&json!("efd"), &tree["event"], &json!(1)),
        "{tree}"
    );
    assert_eq!(tree["tree"]["problems"], json!([]), "{tree}");
    let names: Vec<&str> = readout.iter().filter_map(|branch| branch["name"].as_str()).collect();
    assert_eq!(names, ["ros-1", "ros-2", "level 2"]);
    let robs: Vec<&Value> = readout.iter().flat_map(|branch| branch["robs"].as_array().unwrap()).collect();
    let bytes: u64 = robs.iter().filter_map(|rob| rob["bytes"].as_u64()).sum();
    let checksum_bytes = tree["bytes"].as_u64().unwrap() - header["bytes"].as_u64().unwrap() - bytes;
    assert!([0, 4].contains(&checksum_bytes), "{tree}");
    assert!(robs.iter().all(|rob| rob["rod"]["level1_id"] == header["level1_id"]), "{tree}");

    let number = tree["number"].to_string();
    let dumped = served.ctl("anna", &["sample", "--number", &number, "--data"]);
    assert_eq!(dumped.lines().filter(|line| line.starts_with("  ROB ")).count(), robs.len(), "{dumped}");
    assert!(dumped.starts_with(&format!("sample {number} of efd-")) && dumped.contains("level 1 info"), "{dumped}");
    let said = served.ctl("anna", &["sample", "--number", &number, "--output", "event.data"]);
    assert_eq!(said, format!("sample {number} is in event.data\n"));
    let file = served.running.directory().join("event.data");
    let weir = |verb: &str| {
        let output = Command::new(program()).args(["file", verb]).arg(&file).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (status, checked) = weir("check");
    assert_eq!(status, Some(0), "{checked}");
    let (_, told) = weir("dump");
    assert!(told.contains(&format!("id {}", tree["event"])) && told.contains("1 events"), "{told}");
    let refused = served.refused("anna", &["sample", "--output", "event.data"], 2);
    assert!(refused.contains("event.data"), "{refused}");
    let refused = served.refused("anna", &["sample", "--number", "999999999"], 1);
    assert!(refused.contains("no sample 999999999"), "{refused}");
    let refused = served.refused("anna", &["sample", "--of", "ros-1"], 1);
    assert!(refused.contains("no sample is of ros-1: expected efd-1, sfi-1"), "{refused}");
}

/// Each module shows its part of the same events, by trigger type.
#[test]
fn every_module_of_a_read_out_crate_shows_the_same_events() {
    let test = "sampling::every_module_of_a_read_out_crate_shows_the_same_events";
    let stages = ["ros", "ebif", "sfi", "efd"];
    let job = Job::example("readout-crate").patient().set("l2pu.step_accept", "0.5").set("level1.rate", "2 kHz");
    let job = job.set("sampling.stages", "[\"ros\", \"ebif\", \"sfi\", \"efd\"]").set("sampling.prescale", "7");
    let mut served = Served::start(job.set("sampling.samples", "1000").set("transport.roc", "shm"));
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    let mut found = Vec::new();
    within_deadline("all modules show the same event", || {
        let samples = served.get("samples").as_array().unwrap().clone();
        let of = |event: &Value| samples.iter().filter(|sample| sample["event"] == *event).cloned().collect::<Vec<_>>();
        let builds = samples.iter().filter(|sample| sample["stage"] == "efd").map(|sample| of(&sample["event"]));
        // Five read-out systems, the crate of four, the builder, the filter.
        found = builds.into_iter().find(|all| all.len() == 8).unwrap_or_default();
        !found.is_empty()
    });
    let mut seen: Vec<&str> = found.iter().map(|sample| sample["stage"].as_str().unwrap()).collect();
    seen.dedup();
    assert!(stages.iter().all(|stage| seen.contains(stage)), "{found:?}");
    let trees: Vec<Value> = found.iter().map(|sample| served.get(&format!("samples/{}", sample["number"]))).collect();
    let robs = |tree: &Value| -> Vec<Value> {
        let branches = tree["tree"]["readout"].as_array().unwrap().clone();
        let robs = branches.into_iter().flat_map(|branch| branch["robs"].as_array().unwrap().clone());
        let mut robs: Vec<Value> =
            robs.map(|rob| json!([rob["source_id"], rob["bytes"], rob["rod"]["level1_id"]])).collect();
        robs.sort_by_key(Value::to_string);
        robs
    };
    let of_sfi = robs(trees.iter().find(|tree| tree["stage"] == "sfi").unwrap());
    for tree in &trees {
        let (stage, its) = (tree["stage"].as_str().unwrap(), robs(tree));
        let is_part = ["ros", "ebif"].contains(&stage);
        let count = its.iter().filter(|rob| of_sfi.contains(rob)).count();
        assert!(stage == "efd" || count == its.len(), "its fragments are those that are built: {tree}");
        assert_eq!(
            count,
            match stage {
                "ros" => 1,
                "ebif" => 4,
                _ => of_sfi.len(),
            },
            "{tree}"
        );
        assert_eq!((&tree["tree"]["problems"], &tree["incomplete"]), (&json!([]), &json!(false)), "{tree}");
        let status = tree["tree"]["header"]["status"][0].as_str().unwrap();
        assert_eq!(status.starts_with("0x8"), is_part, "the bit of partial events: {tree}");
    }
    let number = found.iter().find(|sample| sample["stage"] == "ros").unwrap()["number"].to_string();
    served.ctl("anna", &["sample", "--number", &number, "--output", "part.data"]);
    let part = served.running.directory().join("part.data");
    for verb in ["check", "dump"] {
        let output = Command::new(program()).args(["file", verb]).arg(&part).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    if let Some(python) = testkit::python(test) {
        let package = examples().parent().unwrap().join("python");
        let code = "from weir.monitor import Monitor; import sys\n\
                    sample = next(Monitor(address=sys.argv[1], key=\"\").events(stage=\"ros\"))\n\
                    print(sample.application[:4], len(sample.fragments))";
        let output =
            Command::new(python).args(["-c", code, &served.address]).env("PYTHONPATH", package).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ros- 1\n", "{output:?}");
    }
    served.ctl("anna", &["stop"]);
    let over = served.until("the run is over", |status| status["last"]["number"] == 1);
    assert_eq!(over["last"]["state"], "ok", "{over}");
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}

fn wrong_requests(served: &Served) {
    for (path, status, why) in [
        ("samples/0", 404, "no sample 0"),
        ("samples/0/raw", 404, "no sample 0"),
        ("samples/18446744073709551615/file", 404, "the newest ones alone are kept"),
        ("samples/newest", 422, "the number of a sample"),
        ("samples/-1/raw", 422, "the number of a sample"),
        ("samples/18446744073709551616/file", 422, "the number of a sample"),
        ("samples?behind=all", 400, ""),
        ("samples/1/pages", 404, "no such page"),
    ] {
        let answer = served.ask("GET", &format!("/api/{path}"), &[], "");
        assert!(answer.status == status && answer.error().contains(why), "{path}: {answer:?}");
    }
    assert_eq!(served.ask("POST", "/api/samples", &[], "").status, 405);
    let elsewhere = served.ask("GET", "/api/samples/1/raw", &[("Origin", "http://weir.example")], "");
    assert_eq!(elsewhere.status, 403, "{elsewhere:?}");
}

/// Those who ask for samples and never read hold up nobody: a run of many samples ends as one that nobody watches.
#[test]
fn who_watches_and_reads_nothing_holds_up_nobody() {
    let job = Job::example("quickstart").patient().set("ros.count", "2").set("ef.policy", "accept");
    let mut served = Served::start(job.set("sampling.samples", "1000"));
    served.ctl("anna", &["boot"]);
    let mut stuck: Vec<TcpStream> = (0..30).map(|_| TcpStream::connect(&served.address).unwrap()).collect();
    for (index, stream) in stuck.iter_mut().enumerate() {
        let path = if index % 2 == 0 { "samples/events" } else { "events" };
        let request = format!("GET /api/{path} HTTP/1.1\r\nHost: {}\r\n\r\n", served.address);
        stream.write_all(request.as_bytes()).unwrap();
    }
    served.ctl("anna", &["start", "--duration", "1h"]);
    within_deadline("a thousand events are shown", || {
        served.get("samples").as_array().unwrap().last().is_some_and(|newest| newest["number"].as_u64() >= Some(1000))
    });
    served.ctl("anna", &["stop"]);
    let over = served.until("the run is over", |status| status["last"]["number"] == 1);
    assert_eq!((&over["last"]["state"], &over["last"]["reason"]), (&json!("ok"), &Value::Null), "{over}");
    let run = served.get("runs/1");
    let account = &run["summary"]["accounting"];
    assert_eq!((&account["residual"], &run["quality"]), (&json!(0), &json!("good")));
    assert_eq!(account["recorded"], account["level2_accepted"], "{account}");
    let stages = served.get("dataflow");
    let sum = |key: &str| {
        let stages = stages["stages"].as_array().unwrap().iter().filter(|stage| stage["role"] == "sfi");
        let applications = stages.flat_map(|stage| stage["applications"].as_array().unwrap());
        applications.filter_map(|application| application["counts"][key].as_u64()).sum::<u64>()
    };
    let (shown, lost) = (sum("samples"), sum("samples_lost"));
    assert!(shown + lost <= sum("built_complete") + sum("built_incomplete"), "{stages}");
    // Some may be dropped where more waits for run control.
    let kept = served.get("samples").as_array().unwrap().len() as u64;
    assert!((1..=shown.min(1024)).contains(&kept), "{kept} are kept: {stages}");
    check_all(&served.running.output());
    drop(stuck);
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}
