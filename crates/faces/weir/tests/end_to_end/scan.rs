//! `weir scan`: runs that follow one another unattended, whatever happens to them.

use std::fs;
use std::path::Path;

use base::random::Random;
use catalogue::{Catalogue, Quality};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::children;
use crate::files::check_all;
use crate::running::{Ended, Job, send};

#[test]
fn each_point_is_a_run_with_its_settings() {
    let ended = Job::scan(&plan("", "[[axis]]\nkey = \"sfi.count\"\nvalues = [1, 2]\n", VOLTAGES)).run().expect(0);
    let results = results(ended.directory.path());
    let taken: Vec<_> =
        results.iter().map(|taken| (&taken["settings"]["sfi.count"], &taken["settings"]["voltage"])).collect();
    assert_eq!(
        taken,
        [(&json!(1), &json!(1000)), (&json!(1), &json!(1100)), (&json!(2), &json!(1000)), (&json!(2), &json!(1100))]
    );
    let log = fs::read_to_string(ended.directory.join("voltages")).unwrap();
    assert_eq!(log, "1/4 1000 1\n2/4 1100 1\n3/4 1000 2\n4/4 1100 2\n", "{}", ended.stderr);
    let catalogue = Catalogue::existing(&ended.directory.join("runs.sqlite")).unwrap();
    let mut recorded = 0;
    for (number, taken) in (1..).zip(&results) {
        assert_eq!((&taken["quality"], &taken["summary"]["run_number"]), (&json!("good"), &json!(number)), "{taken}");
        let run = catalogue.run(number).unwrap();
        assert_eq!(run.entry.quality, Some(Quality::Good));
        assert!(
            run.configuration.contains(&format!("[sfi]\ncount = {}\n", taken["settings"]["sfi.count"])),
            "{}",
            run.configuration
        );
        assert!(run.remarks[0].text.contains(&format!("point {number}: sfi.count = ")), "{:?}", run.remarks);
        recorded += run.entry.recorded;
    }
    let files = check_all(&ended.directory.join("out"));
    assert_eq!(files.iter().map(|(_, events)| events).sum::<u64>(), recorded);
    assert!(ended.stdout.contains("scan.toml: 4 of 4 points are taken; results: "), "{}", ended.stdout);
}

#[test]
fn a_point_that_fails_says_why_and_is_taken_when_the_scan_is_resumed() {
    let prepare = "test -e repaired || { test $WEIR_VOLTAGE != 1000 || exit 3; kill -9 $$; }";
    let axis = voltages(prepare);
    let scan = Job::scan(&plan("tries = 2", "", &axis)).run().expect(4);
    let first = results(scan.directory.path());
    let tried: Vec<_> = first.iter().map(|taken| json!([taken["point"], taken["attempt"], taken["quality"]])).collect();
    assert_eq!(tried, [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(point, attempt)| json!([point, attempt, null])));
    assert_eq!(first[0]["reason"], "prepare.command ended with status 3");
    assert_eq!(first[2]["reason"], "prepare.command was ended by signal 9");
    assert!(scan.stdout.contains("0 of 2 points are taken, 2 failed"), "{}", scan.stdout);

    // What is there already is neither written over nor forgotten; half a line is no result.
    let refused = scan.again(&[]).run().expect(2);
    assert!(
        refused.stderr.contains("scan.results.jsonl has the results of a scan: --resume goes on"),
        "{}",
        refused.stderr
    );
    let path = refused.directory.join("scan.results.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole + "{\"point\":1,\"att").unwrap();
    fs::write(refused.directory.join("repaired"), "").unwrap();
    let resumed = refused.again(&["--resume"]).run().expect(0);
    assert_eq!(results(resumed.directory.path()).len(), 4 + 2);
    let complete = resumed.again(&["--resume"]).run().expect(0);
    assert_eq!(results(complete.directory.path()).len(), 4 + 2);
    assert!(complete.stdout.contains("2 of 2 points are taken; "), "{}", complete.stdout);
}

#[test]
fn a_preparation_that_hangs_is_ended_with_all_that_it_has_started() {
    let axis = voltages("sleep 3600 & wait").replace("timeout = \"10 min\"", "timeout = \"100 ms\"");
    let ended = Job::scan(&plan("", "", &axis)).run().expect(4);
    for taken in results(ended.directory.path()) {
        assert_eq!(taken["reason"], "prepare.command took longer than prepare.timeout = \"100 ms\"");
    }
    let mut running = Job::scan(&plan("", "", &voltages("sleep 3600 & touch begun; wait"))).start();
    running.until("it prepares", |running| running.directory().join("begun").exists());
    running.signal(Signal::SIGTERM);
    let ended = running.end().expect(3);
    assert_eq!(results(ended.directory.path())[0]["reason"], "interrupted while prepare.command ran");
    assert!(ended.stdout.contains("0 of 2 points are taken, 1 failed, 1 not tried"), "{}", ended.stdout);
}

#[test]
fn an_interrupt_ends_the_run_in_order_and_the_scan() {
    let mut running = Job::scan(&plan("processes = true", &limits(&[300, ENDLESS, 300]), "")).start();
    until_recording(&mut running, 2);
    running.signal(Signal::SIGINT);
    let ended = running.end().expect(3);
    let results = results(ended.directory.path());
    let taken: Vec<_> = results.iter().map(|taken| json!([taken["quality"], taken["reason"]])).collect();
    assert_eq!(taken, [json!(["good", null]), json!(["good", "interrupted before its limit"])]);
    assert_eq!(results[1]["summary"]["accounting"]["residual"], 0);
    check_all(&ended.directory.join("out"));
    assert!(ended.stdout.contains("1 of 3 points are taken, 1 failed, 1 not tried"), "{}", ended.stdout);
}

/// As many points as `WEIR_SCAN_POINTS` says, at half of which any application is killed.
#[test]
fn whatever_dies_each_run_is_flagged_rightly() {
    let points = std::env::var("WEIR_SCAN_POINTS").map_or(8, |points| points.parse().unwrap());
    let mut random = Random::new(points);
    let limits: Vec<u64> = (0..points).map(|point| if point % 2 == 0 { 300 } else { ENDLESS }).collect();
    let mut running = Job::scan(&plan("processes = true", &self::limits(&limits), "")).start();
    let mut killed = Vec::new();
    for point in (2..=points).step_by(2) {
        until_recording(&mut running, point);
        let applications: Vec<i32> =
            children::of(running.pid()).into_iter().filter(|pid| children::name(*pid).is_some()).collect();
        let victim = applications[random.below(applications.len() as u64) as usize];
        killed.push(children::name(victim).unwrap());
        send(victim, Signal::SIGKILL);
    }
    let ended = running.end().expect(4);
    let results = results(ended.directory.path());
    assert_eq!(results.len() as u64, points);
    for (taken, victim) in results.chunks(2).zip(&killed) {
        assert_eq!(taken[0]["quality"], "good", "{}", taken[0]["reason"]);
        assert!(["interrupted", "aborted"].map(Some).contains(&taken[1]["quality"].as_str()), "{victim}: {}", taken[1]);
        assert!(taken[1]["reason"].as_str().unwrap().contains(victim), "{victim}: {}", taken[1]["reason"]);
        assert_eq!(taken[1]["summary"]["accounting"]["residual"], 0, "{victim}");
    }
    assert!(
        ended.stdout.contains(&format!("{} of {points} points are taken, {} failed", points - points / 2, points / 2)),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_wrong_configuration_of_any_point_is_found_before_the_first_run() {
    let axis = "[[axis]]\nkey = \"sfi.count\"\nvalues = [1, -1]\n";
    let ended = Job::scan(&plan("", axis, "")).run().expect(1);
    assert!(
        ended.stderr.contains("point 2 (sfi.count = -1):") && ended.stderr.contains("sfi.count"),
        "{}",
        ended.stderr
    );
    assert!(nothing_was_taken(&ended));
    let endless = plan("", "[[axis]]\nkey = \"sfi.count\"\nvalues = [1]\n", "")
        .replace("run.events = 300", "run.duration = \"0 s\"");
    let ended = Job::scan(&endless).run().expect(1);
    assert!(ended.stderr.contains("run.duration"), "{}", ended.stderr);
    assert!(nothing_was_taken(&ended));
    let listed = Job::scan(&plan("", &limits(&[300, 400]), "")).with(&["--list"]).run().expect(0);
    assert_eq!(listed.stdout, "     1  run.events = 300\n     2  run.events = 400\n");
    assert!(nothing_was_taken(&listed));
}

fn nothing_was_taken(ended: &Ended) -> bool {
    ["out", "scan.results.jsonl"].iter().all(|name| !ended.directory.join(name).exists())
}

/// A scan of the quickstart, with more at its beginning and its end.
fn plan(first: &str, axis: &str, rest: &str) -> String {
    format!(
        "configuration = \"{{examples}}/quickstart.toml\"\n{first}\n\
         set = {{ ros.count = 2, run.events = 300, output.directory = \"{{here}}/out\", \
         control.catalogue = \"{{here}}/runs.sqlite\", run.tolerate.level2_forced = \"100 %\", \
         run.tolerate.level2_incomplete = \"100 %\", processes.start_timeout = \"240 s\", l2sv.timeout = \"60 s\", \
         l2pu.request_timeout = \"60 s\", ros.request_timeout = \"60 s\", sfi.request_timeout = \"60 s\", dfm.build_timeout = \"60 s\" }}\n\
         {axis}{rest}"
    )
}

/// An axis of so many events.
fn limits(events: &[u64]) -> String {
    format!("[[axis]]\nkey = \"run.events\"\nvalues = {events:?}\n")
}

const VOLTAGES: &str = "[[axis]]\nname = \"voltage\"\nfrom = 1000\nto = 1100\nsteps = 2\n[prepare]\ncommand = [\"sh\", \"-c\", \
                        \"echo $WEIR_POINT/$WEIR_POINTS $WEIR_VOLTAGE $WEIR_SFI_COUNT >> voltages\"]\n";

/// An axis that this command of a shell prepares.
fn voltages(command: &str) -> String {
    format!(
        "[[axis]]\nname = \"voltage\"\nvalues = [1000, 1100]\n\
         [prepare]\ntimeout = \"10 min\"\ncommand = [\"sh\", \"-c\", {command:?}]\n"
    )
}

/// Waits until the run of this point, which are numbered from 1, has recorded something.
fn until_recording(running: &mut crate::running::Running, point: u64) {
    let out = running.directory().join("out");
    let number = format!(".{point:08}.");
    running.until("the run records", |_| {
        let entries = fs::read_dir(&out).into_iter().flatten().flatten();
        let mut files = entries.filter(|entry| entry.file_name().to_string_lossy().contains(&number));
        files.any(|file| file.metadata().is_ok_and(|file| file.len() > RECORDED_BYTES))
    });
}

fn results(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("scan.results.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// More events than any test takes.
const ENDLESS: u64 = 1_000_000_000;

/// A few events of the sample.
const RECORDED_BYTES: u64 = 200_000;
