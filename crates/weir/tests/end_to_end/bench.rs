//! The benchmarks, shortened until they measure nothing: they run, and print what DESIGN §8 says.

use std::ffi::OsStr;

use serde_json::Value;

use crate::running::Job;

#[test]
fn event_builder() {
    let found = bench(&["event-builder", "--sources", "2", "--fragment", "100"]);
    check("event-builder", &found);
}

#[test]
fn event_builder_that_touches_all_data() {
    let found = bench(&["event-builder", "--sources", "2", "--fragment", "1 kB", "--payload", "touched"]);
    check("event-builder", &found);
    assert_eq!(found["parameters"]["payload"], "touched");
}

#[test]
fn event_builder_through_shared_memory() {
    for payload in ["handles", "touched"] {
        let options = ["--transport", "shm", "--payload", payload, "--sources", "2", "--fragment", "5000"];
        let found = bench(&[&["event-builder"], &options[..]].concat());
        check("event-builder", &found);
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
    check("event-builder", &found);
    assert_eq!(found["parameters"]["datagram_bytes"], 65507);
    check("event-builder", &found["single"]);
    assert_eq!(found["single"]["parameters"]["single"], true);
    let cut = ["--datagram", "1472", "--single", "--only", "reference"];
    let found = bench(&[&["event-builder", "--sources", "2", "--transport", "udp"], &cut[..]].concat());
    assert_eq!(found["parameters"]["single"], true);
}

/// The same with and without acknowledgements.
#[test]
fn event_builder_over_acknowledged_datagrams() {
    let found = bench(&["event-builder", "--sources", "2", "--transport", "udp", "--window", "100 kB"]);
    check("event-builder", &found);
    assert_eq!(found["parameters"]["window_bytes"], 100_000);
    assert!(found["single"].is_null(), "{found}");
}

#[test]
fn grouping() {
    for transport in ["tcp", "udp"] {
        let found = bench(&["grouping", "--transport", transport]);
        let points = found["points"].as_array().unwrap();
        assert_eq!(points.len(), 4);
        for point in points {
            let groups = point["groups"].as_array().unwrap();
            assert_eq!(groups.iter().map(|group| group["group"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 4, 16, 64]);
            for key in ["events_per_s", "cpu_us_per_event", "of_single", "cpu_of_single"] {
                assert!(groups.iter().all(|group| group[key].as_f64().is_some_and(|number| number > 0.0)), "{point}");
            }
        }
    }
}

#[test]
fn sfi() {
    let found = bench(&["sfi"]);
    check("sfi", &found);
    check("sfi.large", &found["large"]);
    check("sfi.small", &found["small"]);
}

/// The resident set is seen at the least; whether it grows is for ten million events to say.
#[test]
fn memory() {
    let found = bench(&["memory", "--events", "20000"]);
    assert_eq!((found["bench"].as_str(), found["events"].as_u64()), (Some("memory"), Some(20_000)));
    let tenths = found["resident_bytes"].as_array().unwrap();
    assert!(tenths.iter().all(|bytes| bytes.as_f64().is_some_and(|bytes| bytes > 1e6)), "{found}");
    assert!(found["growth_bytes"].is_number() && found["flat"].is_boolean(), "{found}");
}

#[test]
fn sources() {
    let found = bench(&["sources"]);
    let points = found["points"].as_array().unwrap();
    let sources: Vec<u64> = points.iter().map(|point| point["sources"].as_u64().unwrap()).collect();
    assert_eq!((sources.first(), sources.last()), (Some(&4), Some(&1600)));
    assert!(found["spread"].as_f64().is_some_and(|spread| spread >= 1.0), "{found}");
}

/// Each point of one read-out system: all that was asked for was answered, or the run would not be sound.
#[test]
fn ros() {
    let found = bench(&["ros"]);
    check("ros", &found);
    for point in found["points"].as_array().unwrap() {
        let number = |key: &str| point[key].as_f64().unwrap();
        assert!(number("roi_requests_per_s") > 0.0 && number("ratio") > 0.0, "{point}");
        assert_eq!(number("event_requests_per_s") > 0.0, number("accepted") > 0.0, "{point}");
    }
}

/// Each kind of link with each length of frames, one way and there and back.
#[test]
fn transport() {
    let found = bench(&["transport"]);
    check_in("frame", "transport", &found);
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

/// Many links beside one with as many data.
#[test]
fn accretion() {
    let found = bench(&["accretion"]);
    check("accretion", &found);
    let links: Vec<u64> =
        found["points"].as_array().unwrap().iter().map(|point| point["links"].as_u64().unwrap()).collect();
    assert_eq!(links, [2, 4, 12]);
}

#[test]
fn push_pull() {
    let found = bench(&["push-pull"]);
    for point in found["points"].as_array().unwrap() {
        let kinds = point["buildings"].as_array().unwrap();
        let names: Vec<&str> = kinds.iter().map(|kind| kind["building"].as_str().unwrap()).collect();
        assert_eq!(names, ["pull", "push", "push-by-number"]);
        let best = kinds.iter().map(|kind| kind["of_best"].as_f64().unwrap()).fold(0.0, f64::max);
        assert_eq!(best, 1.0, "{point}");
    }
}

#[test]
fn payloads_that_a_transport_does_not_have() {
    for options in [["--transport", "shm", "--payload", "plain"], ["--transport", "tcp", "--payload", "handles"]] {
        let ended = job(&["event-builder"]).with(&options).run().expect(2);
        assert!(ended.stdout.is_empty() && ended.stderr.contains("expected handles or touched"), "{}", ended.stderr);
    }
}

#[test]
fn level2() {
    let found = bench(&["level2"]);
    check("level2", &found);
    for (name, bench) in [("sink", "level2.sink"), ("two_step", "level2.two_step"), ("round_trip", "level2.round_trip")]
    {
        check(bench, &found[name]);
    }
    assert_eq!(found["ratio"], found["sink"]["ratio"]);
    let [ours, bare] = ["result", "reference"].map(|side| found["round_trip"][side]["round_trip_ns"].as_f64().unwrap());
    assert!(ours > 0.0 && bare > 0.0, "{found}");
    assert_eq!(found["round_trip"]["ratio_of"], "round_trip_ns");
}

/// How well it predicts is for a machine without other users to say.
#[test]
fn prediction() {
    let found = bench(&["prediction"]);
    assert!(found["within"].is_null(), "{found}");
    for name in ["building", "level2", "processes", "datagrams", "shared"] {
        let found = &found[name];
        assert_eq!(found["bench"], format!("prediction.{name}"));
        for side in ["result", "reference"] {
            let number = |key: &str| found[side][key].as_f64().unwrap_or(0.0);
            assert!(number("events_per_s") > 0.0 && number("cpu_us_per_event") > 0.0, "{found}");
        }
        assert!(found["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{found}");
        assert!(found["within"].is_null() && found["taken_out"].is_u64(), "{found}");
        assert!(found["share"].is_f64() || found["share"].is_null(), "{found}");
    }
}

#[test]
fn simulation() {
    let found = bench(&["simulation"]);
    assert_eq!((&found["bench"], &found["parameters"]["scenario"]), (&"simulation".into(), &"eb2007-full.toml".into()));
    for side in ["result", "reference"] {
        assert!(found[side]["inputs_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{side}: {found}");
    }
    assert!(found["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{found}");
}

#[test]
fn filter() {
    let Some(python) = testkit::python("filter") else { return };
    let found = bench(&["filter", "--python", python.to_str().unwrap()]);
    check("filter", &found);
    check("filter.python", &found["python"]);
    check("filter.rust", &found["rust"]);
}

/// What is wrong with an interpreter is told, and nothing is measured.
#[test]
fn filter_without_python() {
    let ended = job(&["filter", "--python", "/no/such/python"]).run().expect(2);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("/no/such/python"), "{}", ended.stderr);
}

#[test]
fn for_people() {
    let ended = job(&["level2"]).run().expect(0);
    for words in ["level2.sink", "level2.two_step", "level2.round_trip", "there and back"] {
        assert!(ended.stdout.contains(words), "{}", ended.stdout);
    }
}

fn bench(arguments: &[&str]) -> Value {
    let ended = job(arguments).with(&["--json"]).run().expect(0);
    assert!(ended.stderr.is_empty(), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn job(arguments: &[&str]) -> Job {
    let arguments: Vec<&OsStr> = ["bench"].iter().chain(arguments).map(AsRef::as_ref).collect();
    Job::command(&arguments, MEMORY_BYTES).with(&["--seconds", "0.05"])
}

fn check(bench: &str, found: &Value) {
    check_in("event", bench, found);
}

fn check_in(unit: &str, bench: &str, found: &Value) {
    assert_eq!(found["bench"], bench);
    assert!(found["parameters"].is_object(), "{found}");
    for side in ["result", "reference"] {
        for figure in [&format!("{unit}s_per_s"), "bytes_per_s", &format!("cpu_us_per_{unit}")] {
            let is_absent = figure == "bytes_per_s" && found["parameters"]["payload"] == "handles";
            let is_right = if is_absent { f64::is_nan as fn(f64) -> bool } else { |value: f64| value > 0.0 };
            assert!(is_right(found[side][figure].as_f64().unwrap_or(f64::NAN)), "{side}.{figure}: {found}");
        }
    }
    let number = |value: &Value| value.as_f64().filter(|number| *number > 0.0).unwrap();
    let (low, ratio, high) = (number(&found["spread"][0]), number(&found["ratio"]), number(&found["spread"][1]));
    assert!(low <= ratio && ratio <= high, "{found}");
}

/// More than any benchmark maps.
const MEMORY_BYTES: u64 = 1 << 40;
