//! `[simulation]`, and the scenarios that have it.

use std::fs;
use std::path::{Path, PathBuf};

use configuration::{ConfigurationError, Partition, Size, SizeDistribution, SizeSpread};

#[test]
fn the_scenarios_are_good() {
    for path in scenarios() {
        let partition = Partition::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert!(partition.simulation.is_some(), "{}", path.display());
    }
}

#[test]
fn costs_say_where_they_come_from() {
    for path in scenarios() {
        let costs = Partition::load(&path, &[]).unwrap().simulation.unwrap().cost;
        for source in costs.iter().map(|cost| &cost.source) {
            let known = ["cited: ", "measured by ", "inferred: Fig. ", "as for ", "free: "];
            assert!(known.iter().any(|word| source.starts_with(word)), "{}: {source:?}", path.display());
        }
    }
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    for (key, word) in [
        ("simulation.cores=0", "simulation.cores"),
        ("simulation.tcp_window=\"1 kB\"", "simulation.tcp_window"),
        ("simulation.cost=[{ role = \"rose\" }]", "did you mean"),
        ("simulation.second_port_roles=[\"efs\"]", "did you mean"),
        ("simulation.fault=[{ application = \"sfi-9\" }]", "expected an application"),
    ] {
        assert_refused(&[key], word);
    }
}

#[test]
fn faults_that_could_not_happen_are_refused() {
    let farm = "simulation.layout=farm";
    for (fault, word) in [
        ("{ kind = \"kill\" }", "such as application = \"ros-1\""),
        ("{ kind = \"kill\", applications = [\"ros-1\", \"rose-2\"] }", "did you mean `ros-2`?"),
        ("{ kind = \"slow\", application = \"sfi-1\", lasts = \"1 s\" }", "expected each"),
        ("{ kind = \"slow\", application = \"sfi-1\", each = \"1 ms\" }", "expected lasts"),
        ("{ kind = \"full-disk\", application = \"sfi-1\", lasts = \"1 s\" }", "sfi-1 has no disk"),
        ("{ kind = \"restart\", application = \"sfi-1\", lasts = \"1 s\" }", "processes.on_loss"),
        (
            "{ kind = \"network-partition\", applications = [\"dfm-1\", \"sfi-1\", \"sfi-2\", \"ros-1\", \"ros-2\", \"ros-3\", \"ros-4\"], lasts = \"1 s\" }",
            "the other side",
        ),
        ("{ kind = \"stumble\", application = \"sfi-1\" }", "network-partition"),
    ] {
        assert_refused(&[farm, &format!("simulation.fault=[{fault}]")], word);
    }
    let cut_off = "simulation.fault=[{ kind = \"cut-off\", application = \"sfi-1\", lasts = \"1 s\" }]";
    assert_refused(&[cut_off], "found \"process\"");
    let restart = "simulation.fault=[{ kind = \"restart\", application = \"level1-1\" }]";
    assert_refused(&["level1.rate=1 kHz", "processes.on_loss=restart", restart], "does not return");
    for key in ["frame_loss", "frame_corruption", "frame_duplication", "frame_delay"] {
        assert_refused(&[&format!("simulation.{key}=1 %")], "simulation.layout = \"farm\"");
        assert_refused(&[farm, &format!("simulation.{key}=101 %")], key);
    }
    assert_refused(&["simulation.frame_jitter=1 us"], "simulation.layout = \"farm\"");
    assert_refused(&[farm, "simulation.frame_delay=1 %", "simulation.frame_delay_max=0 s"], "a time above 0");
    for key in ["message_stale", "message_wrong_run"] {
        assert_refused(&[farm, &format!("simulation.{key}=1 %")], "travel in datagrams");
    }
}

#[test]
fn what_sources_send_in_a_simulation_is_described_or_has_defaults() {
    let beam = with_sources(
        "link",
        &["{ name = \"tlu\", rate = \"2 kHz\", size = \"40 B\" }, \
           { name = \"device\", delay = \"1 ms\", efficiency = \"80 %\", spread = \"exponential\" }"],
    );
    let simulation = beam.unwrap().simulation.unwrap();
    let (tlu, device) = (simulation.source("tlu"), simulation.source("device"));
    let kilobyte = Size::from_bytes(1000);
    assert_eq!(tlu.interval().ns(), 500_000);
    assert_eq!(tlu.sizes(Size::from_bytes(100)), SizeDistribution::Fixed(Size::from_bytes(40)));
    assert_eq!(device.spread, SizeSpread::Exponential);
    assert_eq!(device.sizes(Size::from_bytes(5000)), SizeDistribution::Exponential { mean: kilobyte });
    assert_eq!(device.sizes(Size::from_bytes(500)), SizeDistribution::Exponential { mean: Size::from_bytes(500) });
    let other = simulation.source("of which nothing is said");
    assert_eq!((other.interval().ns(), other.sizes(kilobyte)), (1_000_000, SizeDistribution::Fixed(kilobyte)));
    let sliced = with_sources("time", &["{ name = \"tlu\", chunk = \"3 ms\", overlap = \"10 %\" }"]);
    let simulation = sliced.unwrap().simulation.unwrap();
    let chunks = ["tlu", "device"].map(|name| simulation.source(name).chunk(10_000_000).ns());
    assert_eq!(chunks, [3_000_000, 2_000_000]);
}

#[test]
fn what_no_source_could_send_is_refused() {
    for (level1, source, word) in [
        (
            "link",
            "{ rate = \"1 kHz\" }",
            "simulation.source.0.name: expected the name of a [[source]], one of tlu, device",
        ),
        ("link", "{ name = \"divice\" }", "did you mean `device`?"),
        ("link", "{ name = \"tlu\" }, { name = \"tlu\" }", "expected each source once"),
        ("link", "{ name = \"device\", rate = \"1 kHz\" }", "only for the source that leads"),
        ("link", "{ name = \"tlu\", rate = \"0 Hz\" }", "expected a rate above 0"),
        ("link", "{ name = \"tlu\", rate = \"1 MHz\" }", "expected at most 200 kHz, found 1 MHz"),
        ("link", "{ name = \"tlu\", delay = \"1 ms\" }", "not for the source that leads"),
        ("link", "{ name = \"tlu\", efficiency = \"10 %\" }", "only for a source that follows one that leads"),
        ("link", "{ name = \"tlu\", size = \"2 kB\" }", "expected at most source.0.size_max, which is 1500 B"),
        ("link", "{ name = \"device\", chunk = \"1 ms\" }", "only for level1.source = \"time\""),
        ("time", "{ name = \"device\", rate = \"1 kHz\" }", "only for the source that leads"),
        ("link", "{ name = \"device\", delay = \"200 ms\" }", "expected at most 100 ms, found 200 ms"),
        ("time", "{ name = \"device\", chunk = \"0 s\" }", "expected a time above 0"),
        (
            "time",
            "{ name = \"device\", chunk = \"4 us\" }",
            "expected at least 5 us from one chunk to the next, found 4 us",
        ),
        ("time", "{ name = \"device\", overlap = \"99.9 %\" }", "expected at least 5 us from one chunk to the next"),
        ("time", "{ name = \"device\", overlap = \"100 %\" }", "expected less than 100 %"),
        ("time", "{ name = \"device\", spread = \"wide\" }", "exponential"),
    ] {
        let error = with_sources(level1, &[source]).unwrap_err().to_string();
        assert!(error.contains(word), "{source}: {error}");
    }
    assert_refused(&["simulation.source=[{ name = \"tlu\" }]"], "only for ros.input = \"links\"");
}

fn with_sources(level1: &str, sources: &[&str]) -> Result<Partition, ConfigurationError> {
    let text = format!(
        "[partition]\nname = \"p\"\n[level1]\nsource = \"{level1}\"\n{}[ros]\ncount = 1\n[dfm]\n[sfi]\ncount = 1\n\
         [[source]]\nname = \"tlu\"\nsize_max = \"1500 B\"\n[[source]]\nname = \"device\"\n",
        if level1 == "time" { "slice = \"10 ms\"\n" } else { "" }
    );
    let sources = sources.join(",");
    Partition::parse("p.toml", &text, &[format!("simulation.source=[{sources}]")])
}

fn assert_refused(keys: &[&str], word: &str) {
    let text = "[partition]\nname = \"p\"\n[ros]\ncount = 4\n[sfi]\ncount = 2\n";
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    let error = Partition::parse("p.toml", text, &keys).unwrap_err().to_string();
    assert!(error.contains(word), "{keys:?}: {error}");
}

/// All but that of ATM, which is no partition.
fn scenarios() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    let files_of = |directory: PathBuf| fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = files_of(directory.join("faults")).chain(files_of(directory));
    let is_one = |path: &PathBuf| path.extension().is_some_and(|e| e == "toml") && !path.ends_with("atm1997.toml");
    let scenarios: Vec<PathBuf> = files.filter(is_one).collect();
    assert!(!scenarios.is_empty());
    scenarios
}
