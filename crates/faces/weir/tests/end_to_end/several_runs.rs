//! Runs that follow one another in the same processes.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base::ids::{NodeId, Role};
use configuration::Partition;
use control::states::State;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use partition::summary::{RunState, Summary};
use partition::{News, Outcome, Placement, Run, RunSettings, Running, Session, StartError};
use testkit::TempDir;

use crate::children;
use crate::running::{Job, examples, program, send, within_deadline};

#[path = "../../../../../examples/embed.rs"]
#[expect(dead_code, reason = "its `main` is for those who run it as a program")]
mod embed;

#[test]
fn the_example_has_two_runs_in_processes_too() {
    let directory = TempDir::new("several-runs");
    let placement = Placement::processes().with_program(program());
    let outcomes = embed::take_data(directory.path(), placement).unwrap();
    let summaries = outcomes.each_ref().map(Outcome::summary);
    assert_eq!(outcomes[0].processes, outcomes[1].processes);
    assert_eq!(
        summaries.each_ref().map(|summary| (summary.state, summary.accounting.residual)),
        [(RunState::Ok, 0); 2]
    );
    assert_eq!(summaries[1].accounting.level1, 500);
}

#[test]
fn two_runs_have_the_same_processes_and_nothing_else_in_common() {
    let directory = TempDir::new("several-runs");
    let mut partition = booted("quickstart", directory.path(), &[]);
    let outcomes = [(1, 600), (2, 250)].map(|(number, events)| {
        let outcome = taken(&mut partition, events);
        let summary = outcome.summary();
        assert_eq!((summary.run_number, outcome.ending.dead.len(), outcome.stale), (number, 0, 0));
        let name = format!(".{number:08}.");
        let files = &outcome.ending.files;
        assert!(
            !files.is_empty() && files.iter().all(|file| file.path.contains(&name) && Path::new(&file.path).is_file())
        );
        outcome
    });
    assert!(!outcomes[0].processes.is_empty());
    assert_eq!(outcomes[0].processes, outcomes[1].processes, "the processes live on");
    let pids: Vec<u32> = outcomes[0].processes.values().copied().collect();
    partition.shut_down().unwrap();
    assert!(pids.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()), "nothing is left behind");
    assert!(fs::read_dir(directory.path()).unwrap().flatten().all(|entry| entry.path().extension().unwrap() == "data"));
}

#[test]
fn all_carriers_begin_anew_with_each_run() {
    let choices: [&[&str]; 3] = [
        &["transport.connections=shm"],
        &["transport.event_request=udp", "transport.event_reply=udp", "transport.clear=multicast"],
        &["transport.event_reply=shm", "transport.event_request=udp"],
    ];
    for choice in choices {
        let directory = TempDir::new("several-runs");
        let mut partition = booted("event-builder", directory.path(), choice);
        let processes: BTreeSet<_> = [900, 400, 600].map(|events| taken(&mut partition, events).processes).into();
        assert_eq!(processes.len(), 1, "{choice:?}");
    }
}

#[test]
fn some_applications_in_this_process_have_runs_with_others_in_theirs() {
    let directory = TempDir::new("several-runs");
    for choice in ["transport.connections=tcp", "transport.connections=shm", "transport.event_reply=udp"] {
        let placement = Placement::apart(|role| role == Role::Ros).with_program(program());
        let mut partition = booted_at("event-builder", directory.path(), &[choice], placement);
        [500, 200, 300].into_iter().for_each(|events| drop(taken(&mut partition, events)));
    }
}

#[test]
fn an_application_that_dies_in_the_second_run_returns_in_it() {
    let directory = TempDir::new("several-runs");
    let mut partition = booted("quickstart", directory.path(), &["processes.on_loss=restart", "level1.rate=\"2 kHz\""]);
    let first = taken(&mut partition, 300);
    let (sfi, before) = process(&first, Role::Sfi);
    let endless = RunSettings { events: None, duration: None, ..partition.settings() };
    let run = partition.start(endless.clone()).unwrap();
    until_built(&run, 100);
    end(before);
    until_said(&run, "is back after");
    until_built(&run, 1);
    run.stop();
    let second = run.wait().unwrap();
    assert_eq!((second.restarts.len(), second.summary().accounting.residual), (1, 0), "{}", second.to_text());
    assert_ne!(second.processes[&sfi], before);
    let third = taken(&mut partition, 300);
    assert_eq!((&third.processes, third.restarts.len()), (&second.processes, 0), "it is one of them now");
}

#[test]
fn an_application_that_dies_between_two_runs_is_there_for_the_next() {
    let directory = TempDir::new("several-runs");
    let mut partition = booted("quickstart", directory.path(), &["processes.on_loss=restart"]);
    let first = taken(&mut partition, 300);
    for role in [Role::Ros, Role::Level1] {
        end(process(&first, role).1);
    }
    let second = taken(&mut partition, 300);
    let lives = |role| (process(&first, role).1, process(&second, role).1);
    assert!([Role::Ros, Role::Level1].map(lives).iter().all(|(first, second)| first != second));
    assert_eq!(process(&first, Role::Sfi), process(&second, Role::Sfi));
}

#[test]
fn no_run_begins_without_an_application_that_was_not_to_return() {
    let directory = TempDir::new("several-runs");
    let mut partition = booted("quickstart", directory.path(), &["processes.on_loss=stop"]);
    let first = taken(&mut partition, 300);
    end(process(&first, Role::Sfi).1);
    within_deadline("fault", || partition.state() == State::Fault);
    let error = partition.start(partition.settings()).unwrap_err();
    assert!(matches!(error, StartError::Lost { .. }), "{error}");
    assert!(error.to_string().contains("sfi-1 was lost: killed by SIGKILL"), "{error}");
    partition.boot_again().unwrap();
    assert_eq!(partition.state(), State::Booted);
    taken(&mut partition, 300);
    // The same in a run: it ends, and says why.
    let run = partition.start(RunSettings { events: None, duration: None, ..partition.settings() }).unwrap();
    until_built(&run, 10);
    let (dfm, pid) = process(&first, Role::Dfm);
    end(pid);
    assert_eq!(run.wait().unwrap().ending.dead, [dfm]);
    assert!(matches!(partition.start(partition.settings()).unwrap_err(), StartError::Lost { .. }));
    partition.boot_again().unwrap();
    taken(&mut partition, 300);
}

#[test]
fn memory_of_processes_is_flat_from_run_to_run() {
    let directory = TempDir::new("several-runs");
    let mut partition = booted("event-builder", directory.path(), &["transport.connections=shm"]);
    let resident = |outcome: &Outcome| -> u64 { outcome.processes.values().map(|pid| children::bytes_now(*pid)).sum() };
    let mut memory = Vec::new();
    for _ in 0..10 {
        let outcome = taken(&mut partition, 300);
        memory.push(resident(&outcome));
    }
    let (early, late) = (memory[2].max(memory[3]), memory[9]);
    assert!(late < early + early / 4, "{memory:?}");
}

#[test]
fn the_command_takes_several_runs() {
    for processes in [false, true] {
        let ended = Job::example("quickstart").with(&["--runs", "3"]).events(300).processes(processes).run().expect(0);
        let summaries = [1, 2, 3].map(|number| {
            let path = ended.directory.join(format!("summary.{number}.json"));
            serde_json::from_str::<Summary>(&fs::read_to_string(path).unwrap()).unwrap()
        });
        for (number, summary) in (1..).zip(summaries) {
            assert_eq!((summary.run_number, summary.accounting.level1, summary.accounting.residual), (number, 300, 0));
        }
    }
}

#[test]
fn a_series_went_on_after_a_death_that_was_to_end_it() {
    let series = Job::example("quickstart").patient().with(&["--runs", "3"]).set("processes.on_loss", "stop");
    let mut running = series.processes(true).endless().start();
    running.until_recording();
    send(running.child("sfi-1"), Signal::SIGKILL);
    let ended = running.end().expect(3);
    assert!(ended.stderr.contains("sfi-1 died"), "{}", ended.stderr);
    assert!(ended.directory.join("summary.1.json").exists() && !ended.directory.join("summary.2.json").exists());
}

#[test]
fn what_dies_at_once_between_two_runs_is_started_a_few_times() {
    let directory = TempDir::new("several-runs");
    let (wrapper, starts, is_broken) = (directory.join("weir"), directory.join("starts"), directory.join("broken"));
    let [starts_path, marker] = [&starts, &is_broken].map(|path| path.display());
    let script = format!("#!/bin/sh\n[ -e {marker} ] && echo >>{starts_path} && exit 7\nexec {} \"$@\"\n", program());
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, Permissions::from_mode(0o700)).unwrap();
    let changes = ["processes.on_loss=restart", "processes.restarts=4"];
    let mut partition =
        booted_at("quickstart", directory.path(), &changes, Placement::processes().with_program(&wrapper));
    let first = taken(&mut partition, 300);
    fs::write(&is_broken, "").unwrap();
    end(process(&first, Role::Sfi).1);
    within_deadline("fault", || partition.state() == State::Fault);
    assert_eq!(fs::read(&starts).unwrap().len(), 4);
    let error = partition.start(partition.settings()).unwrap_err();
    assert!(error.to_string().contains("it was started again 4 times"), "{error}");
    fs::remove_file(&is_broken).unwrap();
    partition.boot_again().unwrap();
    taken(&mut partition, 300);
}

#[test]
fn the_command_refuses_several_runs_of_replayed_files() {
    let ended = Job::example("replay").with(&["--runs", "2"]).run().expect(1);
    assert!(ended.stderr.contains("leave --runs out"), "{}", ended.stderr);
}

fn booted(example: &str, output: &Path, changes: &[&str]) -> Session {
    booted_at(example, output, changes, Placement::processes().with_program(program()))
}

fn booted_at(example: &str, output: &Path, changes: &[&str], placement: Placement) -> Session {
    let output = format!("output.directory = {:?}", output.display().to_string());
    // On a busy machine level 2 may decide late.
    let patience = ["processes.start_timeout=240 s", "run.stop_timeout=60 s", "run.tolerate.level2_forced=100 %"];
    let changes = changes.iter().chain(&patience).map(|change| (*change).to_owned()).chain([output]);
    let path = examples().join(example).with_extension("toml");
    let configuration = Partition::load(path, &changes.collect::<Vec<_>>()).unwrap();
    Run::new(configuration).place(placement).boot().unwrap()
}

/// A run of so many events, which goes well.
fn taken(partition: &mut Session, events: u64) -> Outcome {
    let settings = RunSettings { events: Some(events), duration: None, ..partition.settings() };
    let outcome = partition.start(settings).unwrap().wait().unwrap();
    let summary = outcome.summary();
    let accounting = &summary.accounting;
    assert_eq!((accounting.level1, accounting.residual), (events, 0), "{}", outcome.to_text());
    assert!(matches!(summary.state, RunState::Ok | RunState::Degraded), "{}", outcome.to_text());
    outcome
}

/// The first application of a role, and its process.
fn process(outcome: &Outcome, role: Role) -> (NodeId, u32) {
    let node = outcome.assembly.of(role)[0];
    (node, outcome.processes[&node])
}

/// Ends a process of a session, which is at an end then.
fn end(process: u32) {
    kill(Pid::from_raw(i32::try_from(process).unwrap()), Signal::SIGKILL).unwrap();
    // Its parent hears of that when all threads have ended, and not only the first one.
    let has_others = || fs::read_dir(format!("/proc/{process}/task")).is_ok_and(|tasks| tasks.count() > 1);
    let lives = || fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    within_deadline("its end", || !lives() && !has_others());
}

fn until_built(run: &Running, more: u64) {
    let mut first = None;
    let is_there = |news| match news {
        News::Figures(figures) => figures.built >= *first.get_or_insert(figures.built) + more,
        News::Said(_) | News::Sample(_) => false,
    };
    assert!(run.reports().any(is_there), "the run ended");
}

fn until_said(run: &Running, words: &str) {
    assert!(run.reports().any(|news| matches!(news, News::Said(said) if said.text.contains(words))), "the run ended");
}
