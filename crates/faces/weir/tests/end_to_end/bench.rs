//! The benchmarks, shortened until they measure nothing: they run, and print what DESIGN §8 says.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::TempDir;

use crate::running::Job;
use crate::sources::Installed;

/// All that `--list` names have a test here.
#[test]
fn each_that_is_listed_is_tried() {
    let listed = Job::command(&["bench".as_ref(), "--list".as_ref()], MEMORY_BYTES).run().expect(0).stdout;
    let listed: BTreeSet<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(listed, BTreeSet::from(TRIED));
}

#[test]
fn accretion() {
    assert_eq!(numbers(&tried("accretion", &[]), "links"), [2, 4, 12]);
}

/// All emulated hosts and applications join run control, report while they run, drain, and end.
#[test]
fn agents() {
    let found = bench(&["agents", "--agents", "20", "--applications", "10"]);
    assert_eq!((&found["agents"], &found["applications"], &found["reported"]), (&20.into(), &200.into(), &200.into()));
    assert_eq!(found["seen"], serde_json::json!({ "agents": 20, "applications": 200, "left": 0 }));
    // Without a residual.
    assert_eq!(found["state"], "ok", "{found}");
    for figure in ["boot_s", "start_s", "cores", "cores_booted", "stop_s", "shutdown_s"] {
        assert!(found[figure].as_f64().is_some_and(|figure| figure >= 0.0), "{figure}: {found}");
    }
}

/// Each part with its figures beside those of the paper; whether aims are reached is for a machine without other users to say.
#[test]
fn crate_of_the_paper() {
    let found = tried("crate", &[]);
    let points = found["points"].as_array().unwrap();
    let of = |part: &str| points.iter().filter(|point| point["parameters"]["part"] == part).collect::<Vec<_>>();
    assert_eq!(["rob", "control", "locate", "pair"].map(|part| of(part).len()), [1, 1, 10, 3], "{found}");
    assert!(points.iter().all(|point| point["paper_us"][0].as_f64().is_some_and(|us| us > 0.0)), "{found}");
    let located = of("locate");
    let robs = located.iter().map(|point| point["parameters"]["robs"].as_u64().unwrap());
    assert_eq!(robs.collect::<Vec<_>>(), [1, 2, 4, 8, 16].repeat(2));
    assert!(located.iter().all(|point| point["event_ns"].as_f64().is_some_and(|ns| ns > 0.0)), "{found}");
    for line in found["locating"].as_array().unwrap() {
        assert!(line["rob_ns"].is_f64() && line["bare_rob_ns"].is_f64(), "{line}");
    }
    for point in [of("control"), of("pair")].concat() {
        assert!(point["level1_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{point}");
        check_cpu_of_processes(&point["robs_cpu_us"]);
    }
}

#[test]
fn a_part_of_the_crate() {
    let found = bench(&["crate", "--part", "rob"]);
    check_named("crate", &found);
    assert_eq!(found["points"].as_array().map(Vec::len), Some(1), "{found}");
}

/// What is best is for a machine without other users to say.
#[test]
fn credits() {
    if let Err(reason) = benchmarks::lossy::check_port() {
        return testkit::skip("bench credits", &reason);
    }
    let found = tried("credits", &[]);
    assert_eq!(numbers(&found, "outstanding_requests"), [1, 4, 16, 64, 256, 256]);
    let (adaptive, fixed) = found["points"].as_array().unwrap().split_last().unwrap();
    check_against_best(fixed, "outstanding_requests");
    assert_eq!(adaptive["parameters"]["credits"], "adaptive");
    for key in ["parameters", "result", "ratio"] {
        assert_eq!(found[key], adaptive[key], "what adapts stands for all");
    }
    assert_eq!(adaptive["reference"], fixed[0]["reference"], "one is the best of all");
}

#[test]
fn event_builder() {
    tried("event-builder", &[]);
}

#[test]
fn filter() {
    let Some(python) = testkit::python("filter") else { return };
    let found = tried("filter", &["--python", python.to_str().unwrap()]);
    for task in ["python", "rust"] {
        check_named(&format!("filter.{task}"), &found[task]);
    }
}

#[test]
fn grouping() {
    assert_eq!(numbers(&tried("grouping", &[]), "group"), [1, 4, 16, 64].repeat(4));
}

#[test]
fn level2() {
    let found = tried("level2", &[]);
    for name in ["sink", "two_step", "round_trip"] {
        check_named(&format!("level2.{name}"), &found[name]);
    }
    assert_eq!(found["ratio"], found["sink"]["ratio"]);
    let [ours, bare] = ["result", "reference"].map(|side| found["round_trip"][side]["round_trip_ns"].as_f64().unwrap());
    assert!(ours > 0.0 && bare > 0.0, "{found}");
    assert_eq!(found["round_trip"]["ratio_of"], "round_trip_ns");
}

/// Each kind of source, built with what is installed; how fast they are is for a machine without other users to say.
#[test]
fn links() {
    if Command::new("cc").arg("--version").output().is_err() {
        return testkit::skip("bench links", "cc is not installed");
    }
    let installed = Installed::new();
    let prefix = installed.prefix.to_str().unwrap();
    let Some(python) = testkit::python("bench links in Python") else {
        assert_eq!(bench(&["links", "--prefix", prefix, "--source", "shm"])["bench"], "links");
        return;
    };
    let found = tried("links", &["--prefix", prefix, "--python", python.to_str().unwrap()]);
    let points = found["points"].as_array().unwrap();
    let sources: Vec<&str> = points.iter().map(|point| point["parameters"]["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["shm", "tcp", "tcp", "tcp", "send-many", "generator", "slices", "slices"]);
    let [pushed @ .., few, many] = &points[..] else { panic!("{found}") };
    for point in pushed {
        check_cpu_of_processes(&point["source_cpu_us"]);
        assert!(point["readout_cpu_us"].as_f64().is_some_and(|cpu| cpu > 0.0), "{point}");
    }
    for slices in [few, many] {
        let number = |key: &str| slices[key].as_u64().unwrap();
        assert_eq!(number("chunks_in"), number("chunks_in_slices") + number("chunks_late") + number("chunks_left"));
        assert!(number("slices") > 0 && number("chunks_in_slices") > 0, "{slices}");
    }
}

#[test]
fn links_without_an_installation_say_what_to_do() {
    let ended = job(&["links", "--prefix", "/no/such/prefix"]).run().expect(2);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("make install PREFIX="), "{}", ended.stderr);
}

/// Every event is complete, or there would be no result.
#[test]
fn losses() {
    if let Err(reason) = benchmarks::lossy::check() {
        return testkit::skip("bench losses", &reason);
    }
    let found = tried("losses", &[]);
    assert_eq!(numbers(&found, "dropped_percent"), [0, 1, 10, 30].repeat(2));
    for point in found["points"].as_array().unwrap() {
        let number = |key: &str| point[key].as_f64().unwrap();
        assert!(number("complete_events") > 0.0 && point["requests_repeated"].is_number(), "{point}");
        assert!(1.0 <= number("tries_mean") && number("tries_mean") <= number("tries_max"), "{point}");
        if point["parameters"]["dropped_percent"].as_u64() >= Some(10) {
            assert!(number("asked") > 0.0 && number("segments_repeated") > 0.0 && number("tries_max") > 1.0, "{point}");
        }
    }
    for of_length in found["points"].as_array().unwrap().chunks(4) {
        let [none, .., most] = of_length else { panic!("{found}") };
        assert!(of_length.iter().all(|point| point["reference"] == none["result"]), "none dropped: {of_length:?}");
        let number = |point: &Value, key: &str| point[key].as_f64().unwrap();
        assert!(number(none, "asked_per_event") < number(most, "asked_per_event"), "{of_length:?}");
        // Of the 28 datagrams or more of an event, 8 or more are lost in the mean.
        assert!(number(most, "segments_repeated") > number(most, "complete_events"), "{most}");
    }
}

/// The resident set is seen at the least; whether it grows is for ten million events to say.
#[test]
fn memory() {
    let found = tried("memory", &["--events", "20000"]);
    assert_eq!(found["events"].as_u64(), Some(20_000));
    let counted = found["result"]["events_per_s"].as_f64().unwrap() * found["seconds"].as_f64().unwrap();
    assert!((counted - 20_000.0).abs() < 1.0, "{found}");
    let tenths = found["resident_bytes"].as_array().unwrap();
    assert!(tenths.iter().all(|bytes| bytes.as_f64().is_some_and(|bytes| bytes > 1e6)), "{found}");
    assert!(found["growth_bytes"].is_number() && found["flat"].is_boolean(), "{found}");
}

/// How well it predicts is for a machine without other users to say.
#[test]
fn prediction() {
    let found = tried("prediction", &[]);
    assert!(found["within"].is_null(), "{found}");
    let mut most_off: f64 = 0.0;
    let off = |found: &Value| (found["ratio"].as_f64().unwrap() - 1.0).abs();
    for (name, processes) in
        [("building", false), ("level2", false), ("processes", true), ("datagrams", true), ("shared", true)]
    {
        let found = &found[name];
        check_named(&format!("prediction.{name}"), found);
        let of = |key: &str| &found["parameters"][key];
        assert!(found["within"].is_null() && of("processes") == processes && of("pairs") == 1, "{found}");
        let is_said = !processes || Path::new("/proc/self/schedstat").exists();
        assert_eq!(found["share"].is_f64(), is_said, "{found}");
        // Where others took too much there is nothing better than the one run, which is said to be out.
        let is_disturbed = found["share"].as_f64().is_some_and(|share| share < 0.9);
        let taken_out = found["taken_out"].as_u64().unwrap();
        assert!(taken_out <= 1 && (taken_out == 1 || !is_disturbed), "{found}");
        most_off = most_off.max(off(found));
    }
    assert_eq!(off(&found), most_off, "{found}");
}

#[test]
fn push_pull() {
    let found = tried("push-pull", &[]);
    for kinds in found["points"].as_array().unwrap().chunks(3) {
        let of = |kind: &Value, key: &str| kind["parameters"][key].as_str().unwrap().to_owned();
        let names: Vec<String> = kinds.iter().map(|kind| of(kind, "building")).collect();
        assert_eq!(names, ["pull", "push", "push-by-number"]);
        check_against_best(kinds, "building");
    }
}

/// Whether both loops are equally fast is for a machine without other users to say.
#[test]
fn reference() {
    let directory = TempDir::new("evb");
    let Some(program) = compiled(&directory) else { return };
    let found = tried("reference", &["--against", &program]);
    for point in found["points"].as_array().unwrap() {
        let off = (point["ratio"].as_f64().unwrap() - 1.0).abs();
        assert_eq!(point["within"], off <= found["difference_max"].as_f64().unwrap(), "{point}");
    }
}

/// All that is asked is answered, the first time.
#[test]
fn ros() {
    let found = tried("ros", &["--l2pus", "2", "--sfis", "2"]);
    for point in found["points"].as_array().unwrap() {
        let accepted = point["parameters"]["accepted"].as_f64().unwrap();
        for (kind, is_asked) in [("roi", true), ("building", accepted > 0.0)] {
            let number = |key: &str| point[kind][key].as_f64().unwrap();
            assert_eq!(number("requests_per_s") > 0.0, is_asked, "{kind}: {point}");
            assert_eq!((number("repeated"), number("unanswered")), (0.0, 0.0), "{kind}: {point}");
            let wait = |key: &str| point[kind]["wait_us"][key].as_f64().unwrap();
            assert!(wait("median") <= wait("p99") && wait("p99") <= wait("max"), "{kind}: {point}");
            assert_eq!(wait("max") > 0.0, is_asked, "{kind}: {point}");
        }
        assert_eq!(point["parameters"]["reference_transport"], "tcp", "{point}");
        for key in ["requests_per_s", "cpu_us_per_request", "reference_cpu_us_per_request"] {
            assert!(point[key].as_f64().is_some_and(|number| number > 0.0), "{key}: {point}");
        }
        check_cpu_of_processes(&point["ros_cpu_us_per_request"]);
    }
}

#[test]
fn sfi() {
    let found = tried("sfi", &[]);
    for size in ["large", "small"] {
        check_named(&format!("sfi.{size}"), &found[size]);
    }
}

#[test]
fn simulation() {
    assert_eq!(tried("simulation", &[])["parameters"]["scenario"], "eb2007-full.toml");
}

#[test]
fn sources() {
    let found = tried("sources", &[]);
    let sources = numbers(&found, "sources");
    assert_eq!((sources.first(), sources.last()), (Some(&4), Some(&1600)));
    assert!(found["largest_by_smallest"].as_f64().is_some_and(|number| number >= 1.0), "{found}");
}

#[test]
fn start() {
    let found = tried("start", &[]);
    assert_eq!(found["parameters"]["processes"], 261);
    for key in ["start_s", "stop_s"] {
        assert_eq!(found[key].as_array().unwrap().len(), 3, "{found}");
    }
    assert!(found["within"].is_boolean() && found["aim_s"] == 10.0, "{found}");
}

#[test]
fn monitoring() {
    let found = tried("monitoring", &["--pairs", "2", "--pages", "4"]);
    assert_eq!((&found["state"], &found["parameters"]["pages"]), (&"ok".into(), &4.into()), "{found}");
    // Each view has been asked for something.
    assert!(found["pages_bytes_per_s"].as_f64().is_some_and(|bytes| bytes > 0.0), "{found}");
    for side in [0, 1] {
        for state in ["running", "paused"] {
            for who in ["control", "agents", "applications"] {
                assert!(found[state][side][who].as_f64().is_some_and(|cores| cores > 0.0), "{who}: {found}");
            }
        }
    }
    for loss in ["loss", "loss_by_cpu"] {
        let between = |place: usize| found[loss]["between"][place].as_f64().unwrap();
        let median = found[loss]["median"].as_f64().unwrap();
        assert!(between(0) <= median && median <= between(1), "{loss}: {found}");
    }
}

/// Each kind of link with each length of frames, one way and there and back.
#[test]
fn transport() {
    let found = tried("transport", &[]);
    let points = found["points"].as_array().unwrap();
    let kinds = |name: &str| points.iter().filter(|point| point["link"] == name).count();
    assert_eq!(["tcp", "shm", "local"].map(kinds), [5; 3], "{found}");
    assert!(kinds("udp") >= 3, "{found}");
    for point in points {
        let figure = |talk: &str, side: &str, key: &str| point[talk][side][key].as_f64();
        for side in ["result", "reference"] {
            assert!(figure("one_way", side, "frames_per_s").is_some_and(|rate| rate > 0.0), "{point}");
            assert!(figure("ping_pong", side, "round_trip_ns").is_some_and(|time| time > 0.0), "{point}");
            let moves_bytes = point["link"] == "tcp" || point["link"] == "udp";
            assert_eq!(figure("one_way", side, "bytes_per_s").is_some(), moves_bytes, "{point}");
        }
        assert_eq!(point["ping_pong"]["ratio_of"], "round_trip_ns");
    }
}

#[test]
fn window() {
    let found = tried("window", &[]);
    assert_eq!(numbers(&found, "fragment_bytes"), [1000, 1000, 9000, 9000, 37_500, 37_500]);
    assert_eq!(numbers(&found, "datagram_bytes"), [1472, 65_507].repeat(3));
    assert!(numbers(&found, "window_bytes").iter().all(|window| *window == 1_000_000));
}

/// The program in C that builds events with bare sockets.
fn compiled(directory: &TempDir) -> Option<String> {
    let source = testkit::shared("bench reference", "bench/evb.c")?;
    let program = directory.join("evb");
    match Command::new("cc").args(["-O2", "-o"]).args([&program, &source]).status() {
        Ok(status) if status.success() => Some(program.display().to_string()),
        other => {
            testkit::skip("bench reference", &format!("cc: {other:?}"));
            None
        }
    }
}

/// The processor time of processes that live; the kernel need not say it.
fn check_cpu_of_processes(cpu_us: &Value) {
    let is_said = Path::new("/proc/self/schedstat").exists();
    assert!(if is_said { cpu_us.as_f64().is_some_and(|cpu_us| cpu_us > 0.0) } else { cpu_us.is_null() }, "{cpu_us}");
}

/// How much of the link is used is for a machine without other users to say.
#[test]
fn shaping() {
    let found = tried("shaping", &[]);
    let sizes = [1000, 9000, 37_500, 100_000].into_iter().flat_map(|size| [size; 3]);
    assert_eq!(numbers(&found, "fragment_bytes"), sizes.collect::<Vec<u64>>());
    assert_eq!(found["parameters"]["link_bytes_per_s"], 50_000_000);
}

#[test]
fn one_read_out_system_by_datagrams() {
    let found = bench(&["ros", "--transport", "udp"]);
    check_all(&found);
    assert_eq!(found["parameters"]["transport"], "udp");
}

#[test]
fn grouping_of_datagrams() {
    check_all(&bench(&["grouping", "--transport", "udp"]));
}

#[test]
fn a_bench_that_lacks_something_says_what() {
    let ended = job(&["reference"]).run().expect(2);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("expected --against PROGRAM"), "{}", ended.stderr);
    let ended = job(&["reference", "--against", "true"]).run().expect(2);
    assert!(ended.stderr.contains("true: what it prints"), "{}", ended.stderr);
}

#[test]
fn event_builder_that_touches_all_data() {
    let found = bench(&["event-builder", "--sources", "2", "--fragment", "1 kB", "--payload", "touched"]);
    check_named("event-builder", &found);
    assert_eq!(found["parameters"]["payload"], "touched");
}

#[test]
fn event_builder_through_shared_memory() {
    for payload in ["handles", "touched"] {
        let options = ["--transport", "shm", "--payload", payload, "--sources", "2", "--fragment", "5000"];
        let found = bench(&[&["event-builder"], &options[..]].concat());
        check_named("event-builder", &found);
    }
}

/// Each transport has a bare machine of its own; what moves no bytes has no rate of bytes.
#[test]
fn bare_machines_of_event_building() {
    for (transport, payload) in [
        ("tcp", "plain"),
        ("tcp", "touched"),
        ("udp", "plain"),
        ("udp", "touched"),
        ("shm", "handles"),
        ("shm", "touched"),
    ] {
        let options = ["--transport", transport, "--payload", payload, "--only", "reference", "--sources", "2"];
        let found = bench(&[&["event-builder", "--fragment", "5003"], &options[..]].concat());
        assert_eq!(
            (found["side"].as_str(), found["parameters"]["transport"].as_str()),
            (Some("reference"), Some(transport))
        );
        assert!(found["figures"]["events_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{found}");
        assert_eq!(found["figures"]["bytes_per_s"].is_null(), payload == "handles", "{found}");
    }
}

#[test]
fn event_builder_over_udp() {
    let found = bench(&["event-builder", "--sources", "2", "--fragment", "5 kB", "--transport", "udp"]);
    check_named("event-builder", &found);
    assert_eq!(found["parameters"]["datagram_bytes"], 65507);
    check_named("event-builder", &found["single"]);
    assert_eq!(found["single"]["parameters"]["single"], true);
    let cut = ["--datagram", "1472", "--single", "--only", "reference"];
    let found = bench(&[&["event-builder", "--sources", "2", "--transport", "udp"], &cut[..]].concat());
    assert_eq!(found["parameters"]["single"], true);
}

/// The same with and without acknowledgements.
#[test]
fn event_builder_over_acknowledged_datagrams() {
    let found = bench(&["event-builder", "--sources", "2", "--transport", "udp", "--window", "100 kB"]);
    check_named("event-builder", &found);
    assert_eq!(found["parameters"]["window_bytes"], 100_000);
    assert!(found["single"].is_null(), "{found}");
}

#[test]
fn payloads_that_a_transport_does_not_have() {
    for options in [["--transport", "shm", "--payload", "plain"], ["--transport", "tcp", "--payload", "handles"]] {
        let ended = job(&["event-builder"]).with(&options).run().expect(2);
        assert!(ended.stdout.is_empty() && ended.stderr.contains("expected handles or touched"), "{}", ended.stderr);
    }
}

/// What is wrong with an interpreter is told, and nothing is measured.
#[test]
fn filter_without_python() {
    let ended = job(&["filter", "--python", "/no/such/python"]).run().expect(2);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("/no/such/python"), "{}", ended.stderr);
}

/// What has been measured until then is no result.
#[test]
fn an_interrupt_ends_a_bench() {
    let arguments = ["bench", "event-builder", "--sources", "2", "--seconds", "100"].map(OsStr::new);
    let mut running = Job::command(&arguments, MEMORY_BYTES).start();
    let pid = running.pid();
    running.until("events are built", |_| cpu_ticks(pid) > CPU_TICKS_TO_START);
    running.signal(Signal::SIGINT);
    let ended = running.end().expect(2);
    assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("stopping") && ended.stderr.contains("event-builder: interrupted"),
        "{}",
        ended.stderr
    );
}

/// Processor time of a process.
fn cpu_ticks(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(") ").expect("the name of the program is in brackets").1;
    after_name.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn for_people() {
    let ended = job(&["level2"]).run().expect(0);
    for words in ["level2.sink", "level2.two_step", "level2.round_trip", "there and back"] {
        assert!(ended.stdout.contains(words), "{}", ended.stdout);
    }
}

/// What one of [`TRIED`] prints.
fn tried(name: &str, options: &[&str]) -> Value {
    assert!(TRIED.contains(&name), "{name}");
    let found = bench(&[&[name], options].concat());
    assert_eq!(found["bench"], name);
    check_all(&found);
    found
}

fn bench(arguments: &[&str]) -> Value {
    let ended = job(arguments).with(&["--json"]).run();
    // A read-out system that is short of pages does not wait long for clears that a busy machine keeps back.
    let is_about_clears = |line: &&str| line.ends_with("removed to make room: no clears had come for them");
    assert_eq!(ended.stderr.lines().find(|line| !is_about_clears(line)), None, "{arguments:?}\n{}", ended.stderr);
    let found = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{arguments:?}: {}, {error}\n{}", ended.status, ended.stderr));
    assert_eq!(ended.status.code(), Some(i32::from(is_off(arguments[0], &found))), "{arguments:?}: {found}");
    found
}

/// Whether a benchmark that judges itself has found what it is not to find. The others do not judge.
fn is_off(name: &str, found: &Value) -> bool {
    let mut points = found["points"].as_array().into_iter().flatten();
    match name {
        "reference" => points.any(|point| point["within"] == false),
        "shaping" => points.any(|point| point["ratio"].as_f64().unwrap() < 0.9),
        _ => false,
    }
}

/// All have the same reference: the one of them that is the fastest, by the parameter that tells them apart.
fn check_against_best(points: &[Value], parameter: &str) {
    let best = &points[0]["parameters"]["reference"];
    let of_best = points.iter().find(|point| point["parameters"][parameter] == *best).unwrap();
    let rate = |point: &Value| point["result"]["events_per_s"].as_f64().unwrap();
    for point in points {
        assert_eq!((&point["parameters"]["reference"], &point["reference"]), (best, &of_best["result"]), "{point}");
        assert!(rate(point) <= rate(of_best), "{point}\n{of_best}");
    }
}

fn job(arguments: &[&str]) -> Job {
    let arguments: Vec<&OsStr> = ["bench"].iter().chain(arguments).map(AsRef::as_ref).collect();
    Job::command(&arguments, MEMORY_BYTES).with(&["--seconds", "0.05"])
}

/// This parameter of all points.
fn numbers(found: &Value, parameter: &str) -> Vec<u64> {
    let points = found["points"].as_array().unwrap();
    points.iter().map(|point| point["parameters"][parameter].as_u64().unwrap()).collect()
}

fn check_named(bench: &str, found: &Value) {
    assert_eq!(found["bench"], bench);
    check_all(found);
}

/// The benchmark, each of its points, and whatever else is called one.
fn check_all(found: &Value) {
    let points = found.get("points").and_then(Value::as_array).into_iter().flatten();
    for point in points {
        let talks = ["one_way", "ping_pong"].map(|talk| &point[talk]);
        assert!(point["bench"].is_string() || talks.iter().all(|talk| talk["bench"].is_string()), "{point}");
    }
    if found["bench"].is_string() {
        check(found);
    }
    let inside: Vec<&Value> = match found {
        Value::Object(values) => values.values().collect(),
        Value::Array(values) => values.iter().collect(),
        _ => Vec::new(),
    };
    inside.into_iter().for_each(check_all);
}

/// Parameters, both sides, their ratio and its spread (DESIGN §8).
fn check(found: &Value) {
    let parameters = found["parameters"].as_object().unwrap_or_else(|| panic!("{found}"));
    let units = [
        ("events", "event"),
        ("frames", "frame"),
        ("inputs", "input"),
        ("fragments", "fragment"),
        ("messages", "message"),
        ("processes", "process"),
    ];
    let (units, unit) =
        units.into_iter().find(|(units, _)| found["result"][format!("{units}_per_s")].is_f64()).unwrap();
    // Where nothing moves but handles there are no bytes, nor where a link's latency is measured or it has no bytes of its own.
    let has_bytes = unit == "event" && parameters.get("payload").is_none_or(|payload| payload != "handles");
    for side in ["result", "reference"] {
        let figure = |key: &str| found[side][key].as_f64();
        assert!(figure(&format!("{units}_per_s")).is_some_and(|value| value > 0.0), "{side}: {found}");
        let cpu_us = &found[side][format!("cpu_us_per_{unit}")];
        if unit == "process" {
            check_cpu_of_processes(cpu_us);
        } else if found["bench"] == "shaping" && side == "reference" {
            assert!(cpu_us.is_null(), "a link takes no processor time: {found}");
        } else {
            assert!(cpu_us.as_f64().is_some_and(|value| value > 0.0), "{side}: {found}");
        }
        assert!(figure("bytes_per_s").map_or(!has_bytes, |value| value > 0.0), "{side}.bytes_per_s: {found}");
    }
    let number = |value: &Value| value.as_f64().filter(|number| *number > 0.0).unwrap_or_else(|| panic!("{found}"));
    let (low, ratio, high) = (number(&found["spread"][0]), number(&found["ratio"]), number(&found["spread"][1]));
    assert!(low <= ratio && ratio <= high, "{found}");
    if low == high && found["ratio_of"] == "events_per_s" {
        // One pair: the medians are its figures.
        let [ours, bare] = ["result", "reference"].map(|side| number(&found[side][format!("{units}_per_s")]));
        assert!((ratio - ours / bare).abs() < 1e-6 * ratio, "{found}");
    }
}

/// A second, far more than a start takes.
const CPU_TICKS_TO_START: u64 = 100;

/// More than any benchmark maps.
const MEMORY_BYTES: u64 = 1 << 40;

/// The benchmarks, each in a test of its name.
const TRIED: [&str; 23] = [
    "accretion",
    "agents",
    "crate",
    "credits",
    "event-builder",
    "filter",
    "grouping",
    "level2",
    "links",
    "losses",
    "memory",
    "monitoring",
    "prediction",
    "push-pull",
    "reference",
    "ros",
    "sfi",
    "shaping",
    "simulation",
    "sources",
    "start",
    "transport",
    "window",
];
