//! Somebody who is logged in at a host, and knows no key of run control, looks after its applications.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use eformat::Event;
use nix::sys::signal::Signal;

use crate::files::events;
use crate::running::{Job, Running, program, send};

/// A read-out crate, and all that is behind it, each with an agent.
const HOSTS: &str = r#"[{name="crate", roles={trg=1, ros=4, ebif=1}}, {name="farm", data="127.0.0.2", roles={sfi=2, efd=1, sfo=1, dfm=1}}, {name="rest"}]"#;

/// Level-1 trigger types of the emulator.
const CALORIMETER: u32 = 0x84;
const MUON: u32 = 0x8c;

#[test]
fn a_crate_is_stopped_and_started_by_whoever_is_logged_in_there() {
    let mut running = start(job().set("processes.on_loss", "restart"));
    // The next beat of run control says so.
    running.until("its agent hears that", |running| ldaq(running, &["status"], 0).starts_with("crate running\n"));
    let said = ldaq(&running, &["status"], 0);
    let living = |said: &str| said.lines().filter(|line| line.contains(" process ")).count();
    assert_eq!(living(&said), 6, "{said}");
    let mode = fs::metadata(&sockets(&running)[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let refused = ldaq(&running, &["stop", "sfi-1"], 1);
    assert!(refused.contains("sfi-1 is not on this host: expected one of "), "{refused}");

    assert_eq!(ldaq(&running, &["stop", "ros-2"], 0), "stopped: ros-2\n");
    running.until("run control is told", |running| {
        running.error_output().contains("ros-2 was stopped by the local agent; the run goes on without it")
    });
    let said = ldaq(&running, &["status"], 0);
    assert!(said.contains("ros-2        stopped by the local agent\n") && living(&said) == 5, "{said}");
    running.until_more_is_recorded();
    assert_eq!(ldaq(&running, &["start", "ros-2"], 0), "started: ros-2\n");
    running.until("it is back", |running| running.error_output().contains("ros-2 is back"));

    let stopped = ldaq(&running, &["stop"], 0);
    assert_eq!(stopped.matches(',').count(), 5, "{stopped}");
    assert!(ldaq(&running, &["status"], 0).starts_with("crate absent\n"));
    ldaq(&running, &["start"], 0);
    running.until("all are back", |running| running.error_output().matches(" is back").count() == 7);
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    let folder = sockets(&running)[0].parent().unwrap().to_owned();
    let (_, summary) = running.end().expect_end();
    assert_eq!(summary.0["restarts"].as_array().map(Vec::len), Some(7), "{summary:?}");
    assert!(!folder.exists(), "the sockets go with their agents");
}

#[test]
fn a_run_ends_with_what_is_stopped_at_its_host_and_may_not_return() {
    let running = start(job());
    assert_eq!(ldaq_of("farm", &running, &["stop", "sfi-1"], 0), "stopped: sfi-1\n");
    running.end().expect_aborted(&["sfi-1 died: stopped by the local agent"]);
}

#[test]
fn a_run_that_is_stopped_does_not_wait_for_what_was_stopped_at_its_host() {
    let mut running = start(job().set("processes.on_loss", "restart"));
    ldaq_of("farm", &running, &["stop", "sfi-1"], 0);
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    running.end().expect_aborted(&["sfi-1 died: stopped by the local agent, and not started again"]);
}

/// Run control is not asked, and the configuration names no stage.
#[test]
fn events_of_a_type_are_sampled_at_any_module_of_a_host() {
    let mut running = start(job());
    for (agent, stage, kind, robs) in [
        ("crate", "ros", CALORIMETER, 1..=1),
        ("crate", "ros-2", MUON, 1..=1),
        ("crate", "ebif", MUON, 4..=4),
        ("farm", "sfi", CALORIMETER, 5..=6),
        ("farm", "efd-1", MUON, 5..=6),
    ] {
        let output = running.directory().join(format!("{stage}.data"));
        let (kind_of, path) = (kind.to_string(), output.display().to_string());
        let wanted =
            ["sample", "--stage", stage, "--type", &kind_of, "--fraction", "0.5", "--count", "3", "--output", &path];
        let said = ldaq_of(agent, &running, &wanted, 0);
        assert_eq!(said, format!("3 events of {stage} are in {path}\n"));
        let events = events(&[output]);
        assert_eq!(events.len(), 3, "{stage}");
        for bytes in events {
            let event = Event::parse(&bytes).unwrap();
            let payload = event.unpacked_payload(1 << 20).unwrap();
            assert_eq!(event.trigger_type(), kind, "{stage}");
            assert!(robs.contains(&event.robs(&payload).map(Result::unwrap).count()), "{stage}");
        }
        let again = ldaq_of(agent, &running, &wanted, 1);
        assert!(again.contains("File exists"), "{again}");
    }
    let output = running.directory().join("trg.data").display().to_string();
    let refused = ldaq(&running, &["sample", "--stage", "trg", "--output", &output], 1);
    assert!(refused.contains("no trg on crate has events: expected one of "), "{refused}");
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    running.end().expect_end();
}

#[test]
fn an_application_that_hangs_does_not_keep_others_from_showing_events() {
    let running = start(job());
    let said = ldaq_of("farm", &running, &["status"], 0);
    let line = said.lines().find(|line| line.trim_start().starts_with("sfi-2 ")).unwrap();
    let process = line.split([' ', ',']).find_map(|word| word.parse().ok()).unwrap();
    send(process, Signal::SIGSTOP);
    let path = running.directory().join("sfi.data").display().to_string();
    let said = ldaq_of("farm", &running, &["sample", "--stage", "sfi", "--count", "2", "--output", &path], 0);
    assert_eq!(said, format!("2 events of sfi are in {path}\n"));
    let path = running.directory().join("sfi-2.data").display().to_string();
    let said = ldaq_of("farm", &running, &["sample", "--stage", "sfi-2", "--output", &path], 1);
    assert!(said.contains("0 of 1 events came: sfi-2 shows none: it has said nothing for 5s"), "{said}");
    assert!(!fs::exists(path).unwrap());
    send(process, Signal::SIGCONT);
    running.signal(Signal::SIGINT);
    running.end().expect_end();
}

#[test]
fn where_no_agent_is_nobody_is_asked() {
    let folder = testkit::TempDir::new("no-agents");
    let (said, status) = ask(folder.path().into(), &["ldaq", "status"]);
    assert!(status == 2 && said.contains("no agent of yours runs on this machine"), "{status}: {said}");
}

/// What a read-out system does not answer is not waited for as long as patience would have it.
fn job() -> Job {
    let job = Job::example("readout-crate").endless().set("sfi.count", "2").set("l2pu.step_accept", "0.5");
    job.set("host", HOSTS)
}

fn start(job: Job) -> Running {
    let folder = job.directory().join("runtime");
    let mut running = job.environment("XDG_RUNTIME_DIR", &folder).start();
    running.until_recording();
    running
}

fn ldaq(running: &Running, arguments: &[&str], status: i32) -> String {
    ldaq_of("crate", running, arguments, status)
}

fn ldaq_of(agent: &str, running: &Running, arguments: &[&str], status: i32) -> String {
    let all = [&["ldaq", "--agent", agent], arguments].concat();
    let (said, found) = ask(running.directory().join("runtime"), &all);
    assert_eq!(found, status, "{arguments:?}: {said}\n{}", running.error_output());
    said
}

fn ask(runtime: PathBuf, arguments: &[&str]) -> (String, i32) {
    let output = Command::new(program()).args(arguments).env("XDG_RUNTIME_DIR", runtime).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (said, output.status.code().unwrap())
}

fn sockets(running: &Running) -> Vec<PathBuf> {
    let folder = running.directory().join("runtime/weir/agents");
    let found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    found
}
