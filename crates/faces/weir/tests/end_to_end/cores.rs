//! Processes that are bound to processor cores, and scheduled in real time.

use std::fs;

use nix::sys::signal::Signal;
use transport::scheduling::real_time_is_allowed;

use crate::children::{marked, name};
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

/// Agents start them, each with the cores of its host.
#[test]
fn each_host_has_cores_of_its_own() {
    let allowed = allowed(std::process::id() as i32);
    let (first, last) = (allowed[0], allowed[allowed.len() - 1]);
    let hosts = format!(
        "[{{name=\"a\",data=\"127.0.0.2\",roles={{ros=2}},cores={{ros=[{first},{last}]}}}},{{name=\"b\",data=\"127.0.0.3\"}}]"
    );
    let job = Job::example("quickstart").patient().set("ros.count", "3").set("host", &hosts);
    let job = job.set("processes.cores", &format!("{{ros=[{last}],sfi=[{last},{first}]}}"));
    let mut running = job.endless().start();
    running.until_recording();
    let processes = marked(running.directory().path());
    let allowed_to = |application: &str| {
        let process = processes.iter().find(|pid| name(**pid).as_deref() == Some(application));
        self::allowed(*process.unwrap_or_else(|| panic!("no {application}: {}", running.error_output())))
    };
    assert_eq!([allowed_to("ros-1"), allowed_to("ros-2")], [[first], [last]], "of their host");
    assert_eq!(
        [allowed_to("ros-3"), allowed_to("sfi-1"), allowed_to("sfi-2")],
        [[last], [last], [first]],
        "of all others"
    );
    assert_eq!(allowed_to("dfm-1"), allowed);
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
    let hosts = "[{name=\"here\",cores={dfm=[1023]}}]";
    let ended = Job::example("quickstart").set("host", hosts).run().expect(1);
    assert!(ended.stderr.contains("host.0.cores: host here: expected some of the cores "), "{}", ended.stderr);
}

#[test]
fn real_time_is_had_or_refused() {
    let job = Job::example("quickstart")
        .patient()
        .processes(true)
        .set("processes.scheduling", "real-time")
        .set("level1.rate", "500 Hz");
    if real_time_is_allowed().is_err() {
        let ended = job.run().expect(1);
        assert!(ended.stderr.contains("--set processes.scheduling: real time is not allowed here"), "{}", ended.stderr);
        return;
    }
    let mut running = job.events(1_000_000_000).start();
    running.until_recording();
    // Who waits for signals stays as it was; who writes files belongs to the application.
    for (child, threads) in [("ros-1", 1), ("sfo-1", 2)] {
        let policies = policies(running.child(child));
        let real_time = policies.iter().filter(|policy| *policy == "2").count();
        assert!(real_time >= threads, "{child}: {policies:?}");
    }
    running.signal(Signal::SIGINT);
    let (_, summary) = running.end().expect_ok();
    assert_eq!(summary.count("residual"), 0);
}

/// How each thread of a process is scheduled: 2 is `SCHED_RR`.
fn policies(pid: i32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let policy = |stat: String| stat.rsplit(')').next().unwrap().split_whitespace().nth(38).unwrap().to_owned();
    threads.map(|thread| policy(fs::read_to_string(thread.unwrap().path().join("stat")).unwrap())).collect()
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
