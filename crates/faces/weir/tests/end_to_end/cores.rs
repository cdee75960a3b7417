//! Processes that are bound to processor cores.

use std::fs;

use nix::sys::signal::Signal;

use crate::running::Job;

#[test]
fn processes_run_where_they_are_told() {
    let allowed = allowed(std::process::id() as i32);
    let cores = format!("{{ros=[{0}],sfi=[{0},{1}]}}", allowed[0], allowed[allowed.len() - 1]);
    let job = Job::example("quickstart").patient().processes(true).set("processes.cores", &cores);
    let mut running = job.events(1_000_000_000).start();
    running.until_recording();
    assert_eq!(self::allowed(running.child("ros-2")), [allowed[0]]);
    assert_eq!(self::allowed(running.child("sfi-2")), [allowed[allowed.len() - 1]]);
    assert_eq!(self::allowed(running.child("dfm-1")), allowed);
    running.signal(Signal::SIGINT);
    let (_, summary) = running.end().expect_ok();
    assert_eq!(summary.count("residual"), 0);
}

#[test]
fn a_core_that_there_is_not_is_told() {
    let job = Job::example("quickstart").processes(true).set("processes.cores", "{dfm=[1023]}");
    let ended = job.run().expect(1);
    assert!(ended.stderr.contains("--set processes.cores: expected some of the cores "), "{}", ended.stderr);
    assert!(ended.stderr.contains("found 1023"), "{}", ended.stderr);
}

/// The cores on which a process may run.
fn allowed(pid: i32) -> Vec<usize> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse::<usize>().unwrap()..=last.parse().unwrap()
    };
    list.split(',').flat_map(range).collect()
}
