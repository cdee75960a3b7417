//! `weir serve` and `weir ctl`: one partition, whose runs people command one after the other.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::TempDir;

use crate::children;
use crate::files::check_all;
use crate::running::{Job, examples, program, send, within_deadline};
use crate::served::Served;

#[test]
fn runs_follow_one_another_in_the_same_processes_at_the_command_of_a_terminal() {
    let mut served = Served::start(Job::example("quickstart").patient().set("ros.count", "2"));
    assert_eq!(served.ctl("anna", &["status"]), "quickstart absent: no application runs\n");
    let refused = served.refused("anna", &["pause"], 1);
    assert_eq!(refused, "weir: cannot pause while the partition is absent: possible is boot\n");
    assert_eq!(served.ctl("anna", &["boot"]), "the applications run\n");
    let applications = applications(&served);
    assert!(applications.len() > 5, "{applications:?}");

    assert_eq!(served.ctl("anna", &["start", "--duration", "1h"]), "run 1 has begun\n");
    served.running.until_recording();
    served.until("rates are known", |status| status["run"]["rates"]["recorded_hz"].as_f64() > Some(0.0));
    let refused = served.refused("anna", &["start"], 1);
    assert_eq!(refused, "weir: cannot start while the partition is running: possible is pause or stop\n");
    assert_eq!(served.ctl("anna", &["pause"]), "triggers are held back\n");
    assert_eq!(served.status()["verbs"], json!(["resume", "stop"]));
    until_level1(&mut served, |before, after| before == after);
    assert_eq!(served.ctl("anna", &["resume"]), "triggers go on\n");
    until_level1(&mut served, |before, after| before < after);
    assert_eq!(served.ctl("anna", &["stop"]), "the run ends\n");
    let first = served.until_state("booted");
    assert_eq!((&first["last"]["number"], &first["run"]), (&json!(1), &Value::Null), "{first}");

    assert_eq!(served.ctl("anna", &["start", "--events", "500"]), "run 2 has begun\n");
    let second = served.until("the second run is over", |status| status["last"]["number"] == 2);
    assert_eq!((&second["last"]["state"], &second["state"]), (&json!("ok"), &json!("booted")), "{second}");
    assert_eq!(self::applications(&served), applications, "the processes live on");

    let output = served.running.output();
    let files = check_all(&output);
    for (number, recorded) in [(1, &first["last"]["recorded"]), (2, &second["last"]["recorded"])] {
        let run = served.get(&format!("runs/{number}"));
        assert_eq!(
            (&run["quality"], &run["operator"], &run["recorded"]),
            (&json!("good"), &json!("anna"), recorded),
            "{run}"
        );
        for file in run["files"].as_array().unwrap() {
            let events = files.iter().find(|(path, _)| *path == file["path"]).map(|(_, events)| *events);
            assert_eq!(events, file["events"].as_u64(), "{file}");
        }
        assert!(!run["files"].as_array().unwrap().is_empty() && run["configuration"].is_string());
    }
    assert_eq!(listed(&served), [json!(2), json!(1)]);
    let differing = served.get("runs/1/difference/2");
    let differing: Vec<_> = differing.as_array().unwrap().iter().map(|difference| &difference["key"]).collect();
    assert_eq!(differing, ["run.duration", "run.events"]);
    what_is_seen(&served, second["last"]["recorded"].as_u64().unwrap());

    assert_eq!(served.ctl("anna", &["shutdown"]), "no application runs\n");
    assert!(self::applications(&served).is_empty());
    assert_eq!(served.ctl("anna", &["boot"]), "the applications run\n");
    assert!(self::applications(&served).is_disjoint(&applications));
    served.running.signal(Signal::SIGTERM);
    let ended = served.end().expect(0);
    assert!(ended.directory.join("runs.sqlite").is_file());
}

#[test]
fn runs_follow_one_another_by_themselves_until_somebody_stops_them() {
    let mut served = Served::start(quick());
    served.ctl("anna", &["boot"]);
    let refused = served.refused("anna", &["start", "--runs", "0"], 1);
    assert!(refused.contains("0 is not in 1..="), "{refused}");
    assert_eq!(served.ctl("anna", &["start", "--runs", "3", "--events", "200"]), "run 1 has begun\n");
    let third = served.until("three runs are over", |status| status["last"]["number"] == 3);
    assert_eq!((&third["follow"], &third["run"]), (&json!(0), &Value::Null), "{third}");

    // The size that is recorded ends a run as well; who stops one of a series stops the series.
    assert_eq!(served.ctl("anna", &["start", "--runs", "2", "--size", "300 kB"]), "run 4 has begun\n");
    served.until("two runs are over", |status| status["last"]["number"] == 5);
    for number in [4, 5] {
        let run = served.get(&format!("runs/{number}"));
        assert!(run["bytes"].as_u64() >= Some(300_000) && run["quality"] == "good", "{run}");
    }
    assert_eq!(served.ctl("anna", &["start", "--runs", "1000", "--duration", "1h"]), "run 6 has begun\n");
    assert_eq!(served.until_state("running")["follow"], 999);
    assert_eq!(served.ctl("anna", &["stop"]), "the run ends\n");
    let stopped = served.until("the sixth run is over", |status| status["last"]["number"] == 6);
    assert_eq!((&stopped["follow"], &stopped["state"]), (&json!(0), &json!("booted")), "{stopped}");
    assert_eq!(listed(&served).len(), 6);

    // Also between two runs.
    for _ in 0..5 {
        served.ctl("anna", &["start", "--runs", "1000", "--events", "1"]);
        served.until("one is over", |status| status["follow"].as_u64() < Some(998));
        served.ctl("anna", &["stop"]);
        let stopped = served.until("the series is over", |status| {
            status["state"] == "booted" && status["run"].is_null() && status["follow"] == 0
        });
        // One that was given up before it began has a number, too.
        let said = served.ctl("anna", &["start", "--events", "10"]);
        let next: u64 = said.split(' ').nth(1).and_then(|number| number.parse().ok()).expect(&said);
        assert!(next > stopped["last"]["number"].as_u64().unwrap(), "{said}");
        served.until("it is over", |status| status["last"]["number"] == next);
    }
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

#[test]
fn a_death_between_two_runs_is_told_at_once() {
    for (on_loss, then) in [("restart", "it is started again"), ("stop", "no run can begin")] {
        let mut served = Served::start(Job::example("quickstart").patient().set("processes.on_loss", on_loss));
        served.ctl("anna", &["boot"]);
        send(served.running.child("sfi-1"), Signal::SIGKILL);
        let expected = json!([format!("sfi-1 is dead between two runs; {then}"), ["killed by SIGKILL"]]);
        let is_told = |served: &Served| {
            let messages = served.get("messages");
            messages.as_array().unwrap().iter().any(|message| json!([message["text"], message["causes"]]) == expected)
        };
        within_deadline("the messages say so", || is_told(&served));
        if on_loss == "stop" {
            served.until_state("fault");
            served.ctl("anna", &["boot"]);
        }
        served.ctl("anna", &["start", "--events", "100"]);
        let over = served.until("the run is over", |status| status["last"]["number"] == 1);
        assert_eq!(over["last"]["state"], "ok", "{over}");
        served.running.signal(Signal::SIGTERM);
        served.end().expect(0);
    }
}

#[test]
fn one_person_commands_until_another_takes_over() {
    let mut served = Served::start(quick());
    let mut watch = served.ctl_command("carla");
    let watch = watch.args(["status", "--watch"]).stdout(Stdio::piped()).stdin(Stdio::null()).spawn();
    let mut watch = watch.unwrap();
    let mut watched = BufReader::new(watch.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(watched.any(|line| line == "quickstart absent: no application runs"));

    served.ctl("anna", &["boot"]);
    let refused = served.refused("bob", &["start"], 1);
    assert!(refused.contains("anna commands this partition: take over"), "{refused}");
    assert_eq!(served.status()["operator"], json!({ "name": "anna" }));
    assert_eq!(served.status()["state"], "booted", "nothing was done");
    served.ctl("bob", &["--take-over", "start", "--events", "100"]);
    let refused = served.refused("anna", &["stop"], 1);
    assert!(refused.contains("bob commands"), "{refused}");
    assert!(watched.any(|line| line == "bob takes command over from anna"));
    served.until("the run is over", |status| status["last"]["number"] == 1);
    assert_eq!(served.get("runs/1")["operator"], "bob");

    // Who has the key may give up only what is its own.
    let give_up = |name: &str| {
        let key = format!("Bearer {}", served.key);
        let headers = [("Content-Type", "application/json"), ("Authorization", &*key)];
        let body = json!({ "name": name, "client": format!("terminal of {name}") });
        let answer = served.ask("DELETE", "/api/command", &headers, &body.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        served.status()["operator"].clone()
    };
    assert_eq!(give_up("anna"), json!({ "name": "bob" }));
    assert_eq!(give_up("bob"), Value::Null);
    served.ctl("anna", &["shutdown"]);
    let messages = served.get("messages").to_string();
    for said in [
        "anna commands",
        "bob takes command over from anna",
        "nobody commands",
        "bob has begun the run",
        "anna ends the applications",
    ] {
        assert!(messages.contains(said), "{said}: {messages}");
    }
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
    assert!(watched.any(|line| line.contains("absent")) && watched.count() < 10);
    assert!(watch.wait().unwrap().success());
}

#[test]
fn what_people_say_of_a_run_is_kept() {
    let mut served = Served::start(quick());
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--events", "100"]);
    served.until("the run is over", |status| status["last"]["number"] == 1);
    let remark = json!({ "name": "bob", "text": "beam was off", "quality": "tainted" });
    assert_eq!(served.post("runs/1/remarks", &remark).status, 200);
    let run = served.get("runs/1");
    assert_eq!((&run["quality"], &run["remarks"][0]["author"]), (&json!("tainted"), &json!("bob")), "{run}");
    for (path, body, status) in [
        ("runs/1/remarks", json!({ "name": "bob", "text": " " }), 422),
        ("runs/1/remarks", json!({ "name": "bob", "text": "x", "quality": "superb" }), 422),
        ("runs/9/remarks", json!({ "name": "bob", "text": "x" }), 404),
    ] {
        assert_eq!(served.post(path, &body).status, status, "{path} {body}");
    }
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}

#[test]
fn strangers_and_wrong_requests_change_nothing() {
    let served = Served::start(quick());
    let json = ("Content-Type", "application/json");
    let key = format!("Bearer {}", served.key);
    let key = ("Authorization", &*key);
    let wrong = format!("Bearer {}", "0".repeat(64));
    let anna = r#"{"name": "anna", "client": "a page"}"#;
    let refused: [Refused<'_>; 22] = [
        ("POST", "/api/orders/boot", &[json], anna, 401),
        ("POST", "/api/orders/boot", &[json, ("Authorization", &wrong)], anna, 401),
        ("POST", "/api/orders/boot", &[json, ("Authorization", &served.key)], anna, 401),
        ("POST", "/api/command", &[json], anna, 401),
        ("DELETE", "/api/command", &[json], anna, 401),
        ("POST", "/api/runs/1/remarks", &[json], r#"{"name": "anna", "text": "x"}"#, 401),
        ("GET", "/api/status", &[("Host", "weir.example")], "", 403),
        ("GET", "/", &[("Host", "127.0.0.1:1")], "", 403),
        ("GET", "/api/status", &[("Origin", "http://weir.example")], "", 403),
        ("POST", "/api/orders/boot", &[json, key, ("Origin", "null")], anna, 403),
        ("POST", "/api/orders/boot", &[json, key, ("Host", "weir.example")], anna, 403),
        // What a form of another page could send.
        ("POST", "/api/orders/boot", &[("Content-Type", "text/plain"), key], anna, 422),
        ("POST", "/api/orders/boot", &[json, key], "{", 422),
        ("POST", "/api/orders/boot", &[json, key], "{}", 422),
        ("POST", "/api/orders/boot", &[json, key], r#"{"name": "", "client": "a page"}"#, 422),
        ("POST", "/api/orders/explode", &[json, key], anna, 404),
        ("GET", "/api/nothing", &[], "", 404),
        ("GET", "/api/runs/1", &[], "", 404),
        ("GET", "/api/runs/one", &[], "", 422),
        ("GET", "/api/orders/boot", &[key], "", 405),
        ("GET", "/api/messages?behind=all", &[], "", 400),
        ("POST", "/api/orders/pause", &[json, key], anna, 409),
    ];
    for (method, path, headers, body, status) in refused {
        let answer = served.ask(method, path, headers, body);
        assert_eq!(answer.status, status, "{method} {path} {headers:?} {body}: {answer:?}");
        assert!(!answer.error().is_empty() && !answer.body.contains(&served.key), "{answer:?}");
        assert!(!answer.head.contains("access-control-allow"), "{answer:?}");
    }
    let start = |run: Value| served.post("orders/start", &json!({ "name": "anna", "client": "a page", "run": run }));
    for (run, what) in [
        (json!({ "events": "many" }), "events"),
        (json!({ "duration": -1 }), "duration"),
        (json!({ "colour": "red" }), "colour"),
        (json!({ "events": 0 }), "events"),
    ] {
        let answer = start(run.clone());
        assert!(answer.status == 422 && answer.error().contains(what), "{run}: {answer:?}");
    }
    // Who sends half a request holds up nobody.
    let mut held: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(&served.address).unwrap()).collect();
    held.iter_mut().for_each(|stream| stream.write_all(b"POST /api/orders/boot HTTP/1.1\r\nHost: ").unwrap());
    let large = served.ask("POST", "/api/orders/boot", &[json, key], &" ".repeat((2 << 20) + 1));
    assert_eq!(large.status, 413, "{large:?}");
    assert_eq!((&served.status()["state"], listed(&served).len()), (&json!("absent"), 0));
    assert!(applications(&served).is_empty());
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}

#[test]
fn an_interrupt_ends_the_run_in_order_and_then_the_service() {
    let mut served = Served::start(Job::example("quickstart").patient().set("ros.count", "2"));
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    served.running.until_recording();
    served.running.signal(Signal::SIGINT);
    let ended = served.end().expect(0);
    check_all(ended.output());
    let run = kept(ended.directory.path(), 1);
    assert_eq!((&run["quality"], &run["summary"]["accounting"]["residual"]), (&json!("good"), &json!(0)), "{run}");
}

#[test]
fn a_second_interrupt_ends_the_run_at_once() {
    // So slow that level 2 cannot have drained before the second interrupt.
    let slow = [("l2pu.cost", "100 ms"), ("l2pu.step_accept", "1"), ("l2pu.workers", "1"), ("ros.count", "2")];
    let job = slow.into_iter().fold(Job::example("quickstart").patient(), |job, (key, value)| job.set(key, value));
    let mut served = Served::start(job);
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    served.running.until_recording();
    // What helps depends on how many processors this machine has.
    let cause = ["l2sv-1 is busy because l2pu-", "has no free worker"];
    served.until("the cause is named", |status| {
        cause.iter().all(|words| status["sentence"].as_str().unwrap_or_default().contains(words))
    });
    served.running.signal(Signal::SIGINT);
    served.until_state("draining");
    served.running.signal(Signal::SIGINT);
    let ended = served.end().expect(0);
    check_all(ended.output());
    let run = kept(ended.directory.path(), 1);
    let accounting = &run["summary"]["accounting"];
    let lost =
        ["level2_lost", "not_built", "lost_after_build", "lost_in_recording"].map(|key| accounting[key].as_u64());
    assert_eq!(run["quality"], "aborted", "{run}");
    assert!(accounting["recorded"].as_u64() > Some(0) && lost.iter().any(|lost| *lost > Some(0)), "{accounting}");
}

#[test]
fn a_service_that_is_killed_leaves_no_process_and_the_next_one_knows_its_run() {
    let mut served = Served::start(Job::example("quickstart").patient().set("ros.count", "2"));
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    served.running.until_recording();
    served.running.signal(Signal::SIGKILL);
    let here = served.running.directory().path().to_owned();
    within_deadline("its applications end", || children::marked(&here).is_empty());
    let refused = served.refused("anna", &["status"], 2);
    assert!(refused.contains("does not answer"), "{refused}");
    let killed = served.running.end();

    let catalogue = format!("{:?}", killed.directory.join("runs.sqlite").display().to_string());
    let mut served = Served::start(quick().set("control.catalogue", &catalogue));
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--events", "100"]);
    served.until("the run is over", |status| status["last"]["number"] == 2);
    let run = served.get("runs/1");
    assert_eq!((&run["quality"], &run["ended"]), (&json!("interrupted"), &Value::Null), "{run}");
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}

#[test]
fn a_service_that_nobody_can_reach_does_not_begin() {
    let directory = TempDir::new("service");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let quickstart = examples().join("quickstart.toml").display().to_string();
    let weir = |arguments: &[&str]| {
        let here = directory.path();
        let mut command = Command::new(program());
        command.args(arguments).current_dir(here).env("XDG_RUNTIME_DIR", here).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (arguments, status, why) in [
        (&["serve", &quickstart, "--certificate", "absent.pem"][..], 1, "--certificate-key"),
        (
            &["serve", &quickstart, "--certificate", "absent.pem", "--certificate-key", "absent.pem"],
            2,
            "absent.pem: expected",
        ),
        (&["serve", &quickstart, "--listen", &taken], 2, &*format!("nobody can listen on {taken}")),
        (&["serve", &quickstart, "--set", "ros.count=many"], 1, "ros.count"),
        (&["serve", "absent.toml"], 1, "absent.toml"),
        (&["ctl", "status"], 2, "no `weir serve` of yours runs on this machine"),
        (&["ctl", "--partition", "quickstart", "stop"], 2, "for the partition quickstart"),
    ] {
        let (code, said) = weir(arguments);
        assert!(code == Some(status) && said.contains(why), "{arguments:?}: {code:?} {said}");
    }
    assert!(!directory.join("weir/quickstart.json").exists());
}

/// Method, path, headers, body, and the status that is the answer.
type Refused<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, u16);

/// All in one process, for tests of the service itself.
fn quick() -> Job {
    Job::example("quickstart").patient().set("ros.count", "1").set("l2pu.count", "1").with(&["--one-process"])
}

/// The processes of applications.
fn applications(served: &Served) -> BTreeSet<i32> {
    children::of(served.running.pid()).into_iter().collect()
}

/// What the page shows of a partition whose run is over.
fn what_is_seen(served: &Served, recorded: u64) {
    let dataflow = served.get("dataflow");
    let stages = dataflow["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|stage| stage["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["level 1", "L2SV", "L2PU", "pROS", "ROS", "DFM", "SFI", "EFD", "SFO"]);
    let recorder = &stages[8]["applications"][0];
    assert_eq!((&recorder["name"], &recorder["rate_hz"]), (&json!("sfo-1"), &json!(0.0)));
    assert_eq!(recorder["counts"]["recorded"].as_u64(), Some(recorded), "of this run, and all of it");
    assert!(dataflow["links"].as_array().unwrap().contains(&json!({ "from": "efd", "to": "sfo" })));
    let trend = served.get("trend");
    let rates: Vec<f64> =
        trend.as_array().unwrap().iter().filter_map(|sample| sample["rates"]["built_hz"].as_f64()).collect();
    assert!(rates.iter().any(|rate| *rate > 0.0), "{trend}");
    assert!(served.get("schema")["properties"]["sfi"].is_object());
    let messages = served.get("messages");
    assert!(messages.as_array().unwrap().iter().all(|message| message["severity"] == "notice"), "{messages}");
}

/// Waits until so many events of level 1 lie between two figures.
fn until_level1(served: &mut Served, is_so: impl Fn(u64, u64) -> bool) {
    let figure = |status: &Value| (status["run"]["elapsed_s"].as_f64(), status["run"]["level1"].as_u64());
    let mut before = figure(&served.status());
    served.until("level 1 is as it should be", |status| {
        let now = figure(status);
        let is_newer = now.0 > before.0;
        let is_it = is_newer && before.1.zip(now.1).is_some_and(|(before, after)| is_so(before, after));
        before = if is_newer { now } else { before };
        is_it
    });
}

/// The numbers of the runs in the catalogue, the newest first.
fn listed(served: &Served) -> Vec<Value> {
    served.get("runs").as_array().unwrap().iter().map(|run| run["run_number"].clone()).collect()
}

/// What the catalogue of a service that has ended says of a run.
fn kept(directory: &Path, number: u32) -> Value {
    let mut command = Command::new(program());
    command.args(["runs", "show", &number.to_string(), "--json", "--catalogue"]).arg(directory.join("runs.sqlite"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::exists(directory).unwrap());
    serde_json::from_slice(&output.stdout).unwrap()
}
