//! The commands as users run them, and the end of a run as programs and people see it.

#[path = "commands/catalogue.rs"]
mod catalogue;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use base::ids::{NodeId, Role};
use configuration::{Fraction, TEMPLATES, Tolerance, template};
use control::accounting::Accounting;
use control::controller::{Application, Ending};
use control::lives::Lives;
use dataflow::message::{BusyCause, FileRecord};
use dataflow::report::{
    BlockCause, Blocked, Counters, DfmCounters, L2svCounters, Level1Counters, Report, RosCounters, SfiCounters,
    SfoCounters,
};
use eformat::{EventHeader, RobParams, event_envelope, lost_rob, marker};
use partition::summary::{Network, RunFacts, RunState, Summary};
use partition::table::Table;
use storage::{Writer, WriterConfig};
use terminal::Exit;
use testkit::TempDir;

fn program() -> String {
    testkit::program(env!("CARGO_BIN_EXE_weir"))
}

fn weir(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).output().unwrap()
}

/// What a command that ends with this status has written to its output and its error output.
fn said(status: i32, directory: &Path, arguments: &[&str]) -> (String, String) {
    let output = weir(directory, arguments);
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(output.status.code(), Some(status), "{arguments:?}\n{out}\n{err}");
    (out, err)
}

#[test]
fn check_lists_the_applications_of_a_good_configuration() {
    let directory = TempDir::new("check");
    fs::write(directory.join("eb.toml"), template("event-builder").unwrap()).unwrap();
    let (out, err) = said(0, directory.path(), &["check", "eb.toml", "--set", "sfi.count=1"]);
    let expected = "\
eb.toml: well
partition event-builder, 6 applications:
  ros-1 … ros-4
  dfm-1
  sfi-1
a run ends after 5 s
";
    assert_eq!((out.as_str(), err.as_str()), (expected, ""));
}

#[test]
fn check_says_where_what_is_wrong() {
    let directory = TempDir::new("check");
    fs::write(directory.join("bad.toml"), "partition.name = \"x\"\n\n[sfi]\ncuont = 2\n").unwrap();
    let (out, err) = said(1, directory.path(), &["check", "bad.toml"]);
    assert_eq!(out, "");
    assert!(err.contains("bad.toml:4:1: sfi.cuont: "), "{err}");
    assert!(err.contains("`count`"), "{err}");
    let (_, err) = said(1, directory.path(), &["check", "bad.toml", "--set", "ros.count=many"]);
    assert!(err.contains("--set ros.count: "), "{err}");
    let (_, err) = said(1, directory.path(), &["check", "absent.toml"]);
    assert!(err.contains("absent.toml"), "{err}");
}

#[test]
fn check_and_run_say_what_this_machine_lacks() {
    let directory = TempDir::new("machine");
    for template in ["quickstart", "trigger"] {
        said(0, directory.path(), &["init", template]);
    }
    fs::write(directory.join("occupied"), "").unwrap();
    let cases: [(&str, &[&str], &str); 7] = [
        (
            "quickstart",
            &["input.files=[\"absent.parquet\"]"],
            "input.files.0: expected a file that can be read, found /",
        ),
        ("quickstart", &["processes.cores={ros=[1023]}"], "processes.cores: expected some of the cores 0"),
        (
            "quickstart",
            &["output.directory=occupied/out"],
            "output.directory: expected a directory that can be written to",
        ),
        (
            "quickstart",
            &["ros.pages=16000000", "ros.page_size=1 MiB"],
            "found 134 TB: ros.count × ros.robs × ros.pages",
        ),
        ("trigger", &["pt.algorithm=absent.py:Mine"], "pt.algorithm: expected a file that can be read"),
        (
            "trigger",
            &["pt.algorithm=absent.py:Mine", "pt.python=no-python"],
            "pt.python: expected a program, found none",
        ),
        ("trigger", &["input.detector=absent.json"], "input.detector"),
    ];
    for (template, keys, expected) in cases {
        let file = format!("{template}.toml");
        let set: Vec<&str> = keys.iter().flat_map(|key| ["--set", key]).collect();
        for command in [&["check", &file] as &[&str], &["run", &file, "--events", "5"]] {
            let (out, err) = said(1, directory.path(), &[command, &set].concat());
            assert!(out.is_empty() && err.contains(expected), "{command:?} {set:?}: {err}");
            assert!(err.starts_with("--set ") || err.starts_with("warning: "), "{err}");
        }
        // Of the detector description the menu itself needs the names.
        if !expected.starts_with("input.detector") {
            let text_only = [&["check", &file, "--text-only"][..], &set].concat();
            assert!(said(0, directory.path(), &text_only).0.contains(": well\n"), "{set:?}");
        }
    }
    assert!(!directory.join("out").exists());
}

/// `weir serve` would refuse it; a run by `weir run` needs no bus.
#[test]
fn check_says_that_the_bus_is_not_built_in_or_cannot_be_entered() {
    let directory = TempDir::new("bus");
    fs::write(directory.join("p.toml"), "partition.name = \"p\"\nsfi.count = 1\nros.count = 1\n").unwrap();
    let keys = ["check", "p.toml", "--set", "control.bus=nats://daq-1", "--set", "control.bus_login=absent"];
    let (out, err) = said(0, directory.path(), &keys);
    let expected = if cfg!(feature = "nats") { "absent: " } else { "built without NATS" };
    assert!(err.contains("control.bus: `weir serve` cannot tell it: ") && err.contains(expected), "{err}");
    assert!(out.contains(": well, with a warning"), "{out}");
    let (out, err) = said(0, directory.path(), &[&keys[..], &["--text-only"]].concat());
    assert!(out.contains(": well\n") && err.is_empty(), "{out}{err}");
}

/// As the bus.
#[test]
fn check_says_that_the_collector_is_not_built_in_or_nobody_vouches_for_it() {
    let directory = TempDir::new("collector");
    fs::write(directory.join("p.toml"), "partition.name = \"p\"\nsfi.count = 1\nros.count = 1\n").unwrap();
    let certificate = ["--set", "control.otlp_certificate=absent.pem"];
    let keys = [&["check", "p.toml", "--set", "control.otlp=https://c"][..], &certificate].concat();
    let (out, err) = said(0, directory.path(), &keys);
    let expected = if cfg!(feature = "otlp") { "absent.pem: expected certificates" } else { "built without OTLP" };
    assert!(err.contains("control.otlp: `weir serve` cannot tell it: ") && err.contains(expected), "{err}");
    assert!(out.contains(": well, with a warning"), "{out}");
}

#[test]
fn check_warns_of_keys_without_effect_and_of_a_disk_that_will_be_full() {
    let directory = TempDir::new("warnings");
    let text = "partition.name = \"p\"\nsfi.count = 1\nros.count = 2\nsfo = {}\ndfm.rate = \"1 kHz\"\n\
                [processes]\non_loss = \"restart\"\n[transport]\nclear = \"udp\"\nfilter = \"shm\"\npages = 9\n";
    fs::write(directory.join("p.toml"), text).unwrap();
    let (out, err) = said(0, directory.path(), &["check", "p.toml"]);
    assert!(out.starts_with("p.toml: well, with 3 warnings\n"), "{out}");
    assert!(out.contains("efd-1    passes every event on"), "{out}");
    let lines: Vec<&str> = err.lines().collect();
    assert!(
        lines[0].starts_with("warning: p.toml: run.events: the run has no end: at 2.")
            && lines[0].contains(" MB/s it fills the "),
        "{err}"
    );
    assert_eq!(
        lines[1],
        "warning: p.toml:9:9: transport.clear: has no effect without --processes, nor have transport.filter"
    );
    assert_eq!(lines[2], "warning: p.toml:7:11: processes.on_loss: has no effect without --processes");
    let (out, err) = said(0, directory.path(), &["check", "p.toml", "--processes", "--events", "10k"]);
    assert!(out.starts_with("p.toml: well\n") && out.ends_with("a run ends after 10000 level-1 events\n"), "{out}");
    assert_eq!(err, "");
}

#[test]
fn a_key_has_an_effect_where_programs_of_detectors_prove_it() {
    let directory = TempDir::new("keys");
    let text = |ros: &str| {
        format!("partition.name = \"p\"\npartition.key = \"secret\"\nsfi.count = 1\nrun.events = 10\nsfo = {{}}\n{ros}")
    };
    let links = "ros.input = \"links\"\nlevel1.source = \"link\"\nlevel1.leader = \"a\"\n[[source]]\nname = \"a\"\nat = \"tcp://127.0.0.1:7000\"\n";
    for (ros, warns) in [("ros.count = 1\n", true), (links, false)] {
        fs::write(directory.join("p.toml"), text(ros)).unwrap();
        let (_, err) = said(0, directory.path(), &["check", "p.toml"]);
        assert_eq!(err.contains("partition.key: has no effect without --processes"), warns, "{ros}: {err}");
    }
}

/// As a newcomer would do it.
#[test]
fn the_first_configuration_of_the_readme_does_what_the_readme_says() {
    let directory = TempDir::new("readme");
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../README.md")).unwrap();
    let (_, after) = readme.split_once("Save this as `first.toml`:\n\n```toml\n").expect("the configuration");
    let (text, after) = after.split_once("```\n\n```sh\n").expect("what to do with it");
    let (commands, _) = after.split_once("```").unwrap();
    fs::write(directory.join("first.toml"), text).unwrap();
    let program = program();
    let path =
        format!("{}:{}", Path::new(&program).parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    for line in commands.lines() {
        let ended = Command::new("sh").args(["-ec", line]).env("PATH", &path).current_dir(directory.path()).output();
        let ended = ended.unwrap();
        assert!(ended.status.success(), "{line}: {}", String::from_utf8_lossy(&ended.stderr));
    }
    assert_eq!(commands.lines().count(), 3);
}

#[test]
fn schema_is_json() {
    let directory = TempDir::new("schema");
    let (out, _) = said(0, directory.path(), &["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(schema["properties"]["sfi"].is_object());
}

#[test]
fn wrong_usage_ends_with_1_and_help_with_0() {
    let directory = TempDir::new("usage");
    for arguments in [&[] as &[&str], &["fly"], &["run"], &["check", "--fast", "x.toml"], &["file", "ls"]] {
        let (out, err) = said(1, directory.path(), arguments);
        assert!(out.is_empty() && !err.is_empty(), "{arguments:?}");
    }
    for command in ["run", "check", "schema", "init", "file", "bench"] {
        let (out, _) = said(0, directory.path(), &[command, "--help"]);
        assert!(out.contains(&format!("weir {command}")), "{out}");
    }
    let (out, _) = said(0, directory.path(), &["--version"]);
    assert_eq!(out, format!("weir {}\n", env!("CARGO_PKG_VERSION")));
    let (out, _) = said(0, directory.path(), &["--help"]);
    assert!(out.contains("weir init quickstart") && !out.contains("node"), "{out}");
}

#[test]
fn every_template_is_written_with_its_data_and_is_well() {
    let directory = TempDir::new("init");
    for template in TEMPLATES {
        let name = format!("{}.toml", template.name);
        let (out, _) = said(0, directory.path(), &["init", template.name]);
        assert!(out.contains(&name), "{out}");
        assert!(out.contains(&format!("next: weir run {name}\n")), "{out}");
        assert_eq!(fs::read_to_string(directory.join(&name)).unwrap(), template.text);
        let (out, _) = said(0, directory.path(), &["check", &name]);
        assert!(!out.contains("note: "), "its data are there: {out}");
    }
}

#[test]
fn init_overwrites_nothing() {
    let directory = TempDir::new("init");
    fs::create_dir(directory.join("data")).unwrap();
    fs::write(directory.join("data/replay.data"), "mine").unwrap();
    let (out, _) = said(0, directory.path(), &["init", "replay", "my.toml"]);
    assert!(out.contains("kept data/replay.data"), "{out}");
    fs::write(directory.join("my.toml"), "mine").unwrap();
    let (_, err) = said(1, directory.path(), &["init", "replay", "my.toml"]);
    assert!(err.contains("my.toml: it exists and is not overwritten"), "{err}");
    for name in ["my.toml", "data/replay.data"] {
        assert_eq!(fs::read(directory.join(name)).unwrap(), b"mine");
    }
}

#[test]
fn init_lists_templates_and_writes_to_the_output() {
    let directory = TempDir::new("init");
    let (out, _) = said(0, directory.path(), &["init", "--list"]);
    assert_eq!(out.lines().count(), TEMPLATES.len());
    let (out, err) = said(0, directory.path(), &["init", "quickstart", "-"]);
    assert_eq!(out, template("quickstart").unwrap());
    assert!(err.contains("data/zee_mu0.parquet"), "{err}");
    let (_, err) = said(1, directory.path(), &["init", "quickstar"]);
    assert!(err.contains("expected one of") && err.contains("event-builder"), "{err}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// A good file with this many events.
fn recorded(directory: &Path, events: u64) -> PathBuf {
    recorded_with(true, directory, events)
}

fn recorded_with(adler32: bool, directory: &Path, events: u64) -> PathBuf {
    let config = WriterConfig { directory: directory.to_owned(), run_number: 7, ..WriterConfig::default() };
    let mut writer = Writer::new(config).unwrap();
    for global_id in 0..events {
        let (mut header, rob) = (Vec::new(), lost_rob(&RobParams::default()));
        let event = EventHeader { global_id, run_number: 7, ..EventHeader::default() };
        let sum = event_envelope(&event, [rob.as_slice()], adler32, &mut header);
        writer.write_event(&[&header, &rob, sum.as_ref().map_or(&[], |sum| sum.as_slice())]).unwrap();
    }
    writer.finish().unwrap().remove(0).path
}

#[test]
fn file_check_tells_good_from_bad() {
    let directory = TempDir::new("file");
    let good = recorded(directory.path(), 3);
    let mut bytes = fs::read(&good).unwrap();
    bytes.truncate(bytes.len() - 100);
    fs::write(directory.join("torn.data"), bytes).unwrap();
    let good = good.file_name().unwrap().to_str().unwrap();

    let (out, err) = said(0, directory.path(), &["file", "check", good]);
    assert!(out.starts_with(&format!("{good}: good, 3 events, ")) && err.is_empty(), "{out}{err}");
    let (out, err) = said(1, directory.path(), &["file", "check", "torn.data", "absent.data", good]);
    assert!(out.contains("torn.data: BAD") && out.contains("\n  byte "), "{out}");
    assert!(out.contains(&format!("{good}: good")), "the others are checked too: {out}");
    assert!(err.contains("absent.data"), "{err}");
}

#[test]
fn file_ls_dump_and_recover_work_on_files() {
    let directory = TempDir::new("file");
    let good = recorded(directory.path(), 3);
    let name = good.file_name().unwrap().to_str().unwrap();
    let (out, _) = said(0, directory.path(), &["file", "ls", name]);
    assert!(out.starts_with(name) && out.contains("3 events") && out.lines().count() == 1, "{out}");

    let (out, _) = said(0, directory.path(), &["file", "dump", name]);
    assert_eq!(out.lines().filter(|line| line.starts_with("event ")).count(), 3, "{out}");
    assert_eq!(out.lines().filter(|line| line.starts_with("  ROB ")).count(), 3, "{out}");
    let (out, _) = said(0, directory.path(), &["file", "dump", "--skip=1", "--events=1", "--headers", name]);
    assert_eq!(out.lines().filter(|line| line.starts_with("event ")).count(), 1, "{out}");
    assert!(!out.contains("  ROB "), "{out}");

    let mut bytes = fs::read(&good).unwrap();
    bytes.truncate(bytes.len() - 60);
    fs::write(directory.join("torn.writing"), &bytes).unwrap();
    let (out, _) = said(4, directory.path(), &["file", "recover", "torn.writing"]);
    assert!(out.starts_with("torn.writing -> torn.recovered.data: 2 events kept, 1 lost, "), "{out}");
    assert_eq!(fs::read(directory.join("torn.writing")).unwrap(), bytes);
    said(0, directory.path(), &["file", "check", "torn.recovered.data"]);
    let (_, err) = said(1, directory.path(), &["file", "recover", "torn.writing"]);
    assert!(err.contains("torn.recovered.data exists and is not overwritten"), "{err}");
}

#[test]
fn recover_never_touches_its_input_and_loses_nothing_but_the_damaged_event() {
    let directory = TempDir::new("file");
    let good = recorded(directory.path(), 1000);
    let mut bytes = fs::read(&good).unwrap();
    let rob = bytes[20_000..].windows(4).position(|word| word == marker::ROB.to_le_bytes()).unwrap();
    bytes[20_000 + rob] ^= 1;
    fs::write(directory.join("flipped.data"), &bytes).unwrap();
    let (out, _) = said(1, directory.path(), &["file", "check", "flipped.data"]);
    assert!(out.starts_with("flipped.data: BAD"), "{out}");
    let (out, _) = said(4, directory.path(), &["file", "recover", "flipped.data"]);
    assert!(out.starts_with("flipped.data -> flipped.recovered.data: 999 events kept, 1 lost, "), "{out}");
    assert!(out.contains("\n  bytes ") && out.contains("1 event lost (byte "), "{out}");
    assert_eq!(fs::read(directory.join("flipped.data")).unwrap(), bytes);
    let (out, _) = said(0, directory.path(), &["file", "check", "flipped.recovered.data"]);
    assert!(out.contains(" 999 events, "), "{out}");
    let (_, err) = said(1, directory.path(), &["file", "recover", "--output=x.data", "flipped.data", "flipped.data"]);
    assert!(err.contains("--output names one file"), "{err}");
    let (out, _) = said(4, directory.path(), &["file", "recover", "--output", "x.data", "flipped.data"]);
    assert!(out.starts_with("flipped.data -> x.data: 999"), "{out}");
}

#[test]
fn events_without_a_checksum_are_not_said_to_be_good() {
    let directory = TempDir::new("file");
    let bare = recorded_with(false, directory.path(), 3);
    let (out, _) = said(0, directory.path(), &["file", "check", bare.to_str().unwrap()]);
    assert!(out.contains(": not verified, 3 events, ") && out.contains("0.0 % of the event bytes"), "{out}");
    assert!(out.contains("not verified: 156 bytes of data in 3 events, which have no checksum"), "{out}");
}

#[test]
fn an_event_in_two_files_of_a_stream_is_reported() {
    let directory = TempDir::new("file");
    let folders = ["first", "second"].map(|name| directory.join(name));
    let files = folders.each_ref().map(|folder| recorded(folder, 3));
    let [first, second] = files.each_ref().map(|path| path.to_str().unwrap());
    let (out, _) = said(1, directory.path(), &["file", "check", first, second]);
    assert!(out.contains(&format!("{second}: BAD")) && out.contains("3 events are in "), "{out}");
    fs::copy(first, directory.join("copy.data")).unwrap();
    said(0, directory.path(), &["file", "check", first, "copy.data"]);
}

#[test]
fn a_reader_that_leaves_ends_a_dump_silently() {
    let directory = TempDir::new("file");
    let good = recorded(directory.path(), 2000);
    let mut command = Command::new(program());
    command.args(["file", "dump"]).arg(&good).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

/// A run of a second with two SFIs, in which everything that is shown is different.
struct Run {
    facts: RunFacts,
    ending: Ending,
    account: Accounting,
}

impl Run {
    fn summary(&self) -> Summary {
        Summary::new(&self.facts, &self.ending, &self.account)
    }

    fn table(&self) -> String {
        let summary = self.summary();
        let table = Table { facts: &self.facts, ending: &self.ending, summary: &summary };
        table.to_string()
    }
}

fn report(role: Role, node: u16, counters: Vec<u64>) -> Report {
    Report { node: NodeId(node), ..Report::of(role, counters) }
}

fn sfi(node: u16, built_complete: u64, bytes_built: u64) -> Report {
    let counters = SfiCounters { built_complete, bytes_built, reasks: 1, ..SfiCounters::default() };
    report(Role::Sfi, node, counters.to_values())
}

fn reports() -> Vec<Report> {
    let level1 = Level1Counters { issued: 1000, offered: 1250, vetoed: 250, ..Level1Counters::default() };
    let mut level1 = report(Role::Level1, 0, level1.to_values());
    level1.blocked.push(Blocked {
        by: NodeId(1),
        cause: BlockCause::Busy(BusyCause::EventsInSystem),
        time_ns: 200_000_000,
    });
    let l2sv = L2svCounters { received: 1000, rejected: 740, accepted: 260, forced: 3, ..L2svCounters::default() };
    let mut l2sv = report(Role::L2sv, 1, l2sv.to_values());
    [1_000_000, 1_000_000, 2_000_000].into_iter().for_each(|ns| l2sv.latency_ns.record(ns));
    let ros = RosCounters { fragments_in: 163_000, bytes_in: 12_345_678, timeouts: 2, ..RosCounters::default() };
    let dfm = DfmCounters { taken_rejected: 740, taken_accepted: 260, ..DfmCounters::default() };
    let mut dfm = report(Role::Dfm, 3, dfm.to_values());
    for (by, time_ns) in [(4, 5_000_000), (5, 430_000_000)] {
        dfm.blocked.push(Blocked { by: NodeId(by), cause: BlockCause::NoSfi, time_ns });
    }
    let sfo = SfoCounters { recorded: 250, copies: 250, bytes: 2_500_000, ..SfoCounters::default() };
    let ros = report(Role::Ros, 2, ros.to_values());
    let (sfi_1, sfi_2) = (sfi(4, 120, 1_200_000), sfi(5, 130, 1_300_000));
    vec![level1, l2sv, ros, dfm, sfi_1, sfi_2, report(Role::Sfo, 6, sfo.to_values())]
}

fn run() -> Run {
    let names = ["level1-1", "l2sv-1", "ros-1", "dfm-1", "sfi-1", "sfi-2", "sfo-1"];
    let reports: BTreeMap<NodeId, Report> = reports().into_iter().map(|report| (report.node, report)).collect();
    let applications = names.iter().zip(reports.values()).map(|(name, report)| Application {
        name: (*name).to_owned(),
        role: report.role,
        node: report.node,
    });
    let facts = RunFacts {
        run_number: 42,
        applications: applications.collect(),
        forced: false,
        duration: Duration::from_secs(1),
        cpu: Duration::from_millis(1500),
        network: Network { messages: 12_000, bytes: 15_000_000, stale: 0, malformed: 0, ..Network::default() },
        ..RunFacts::default()
    };
    let file = FileRecord {
        path: "out/data_test.00000042.physics_Main.daq.RAW._lb0001._sfo-1._0001.data".to_owned(),
        stream: "physics_Main".to_owned(),
        events: 250,
        first_copies: 250,
        bytes: 2_510_000,
        adler32: 0xabc_def1,
    };
    let mut lives = Lives::default();
    reports.iter().for_each(|(node, report)| lives.on_report(*node, report.clone()));
    let ending = Ending {
        began: None,
        stopped: None,
        reports,
        lives,
        unexpected: Vec::new(),
        dead: Vec::new(),
        forced: false,
        files: vec![file],
        reasons: Vec::new(),
    };
    let account = Accounting {
        level1: 1000,
        level2_rejected: 740,
        level2_accepted: 260,
        level2_forced: 3,
        built_complete: 250,
        not_built: 10,
        filter_accepted: 250,
        recorded: 250,
        recorded_copies: 250,
        ..Accounting::default()
    };
    Run { facts, ending, account }
}

#[test]
fn the_summary_has_the_keys_of_the_contract_in_their_order() {
    let summary = run().summary();
    assert_eq!(summary.to_json(), SUMMARY);
    assert_eq!(serde_json::from_str::<Summary>(SUMMARY).unwrap(), summary);
    assert_eq!(Exit::from(summary.state), Exit::Degraded);
}

#[test]
fn losses_that_are_tolerated_are_said_and_the_run_is_well() {
    let mut run = run();
    run.facts.tolerate.level2_forced = Tolerance::Part(Fraction::from_percent(1));
    assert_eq!(run.summary().degraded_by, [("not_built".to_owned(), 10)].into());
    let table = run.table();
    assert!(
        table.ends_with("degraded, residual 0: 10 accepted and not built; tolerated: level2_forced 3\n"),
        "{table}"
    );
    run.facts.tolerate.not_built = Tolerance::Events(10);
    let summary = run.summary();
    assert_eq!((summary.state, Exit::from(summary.state), &summary.reason), (RunState::Ok, Exit::Well, &None));
    assert_eq!(summary.tolerated, [("level2_forced".to_owned(), 3), ("not_built".to_owned(), 10)].into());
    let table = run.table();
    assert!(table.ends_with("run 42: ok, residual 0; tolerated: level2_forced 3, not_built 10\n"), "{table}");
}

#[test]
fn a_run_that_loses_nothing_is_well() {
    let mut run = run();
    (run.account.level2_accepted, run.account.level2_rejected) = (250, 750);
    (run.account.level2_forced, run.account.not_built) = (0, 0);
    let summary = run.summary();
    assert_eq!((summary.state, Exit::from(summary.state)), (RunState::Ok, Exit::Well));
    assert!(summary.degraded_by.is_empty() && summary.tolerated.is_empty());
    assert!(run.table().ends_with("run 42: ok, residual 0\n"), "{}", run.table());
}

#[test]
fn the_table_fits_80_columns() {
    let table = run().table();
    assert_eq!(table, TABLE);
    assert_eq!(too_long(&table), [""; 0]);
}

#[test]
fn the_table_of_a_long_run_of_many_applications_fits_80_columns() {
    let mut run = run();
    let many: Vec<Application> = (10..1700)
        .map(|node| Application { name: format!("ros-{node}"), role: Role::Ros, node: NodeId(node) })
        .collect();
    run.facts.applications.extend(many);
    run.ending.dead.extend([NodeId(5), NodeId(2)]);
    run.facts.duration = Duration::from_secs(1_000_000);
    let large = 123_456_789_012;
    for report in run.ending.reports.values_mut() {
        report.counters.iter_mut().for_each(|count| *count = large);
        report.blocked.iter_mut().for_each(|blocked| blocked.time_ns = 900_000_000_000_000);
    }
    run.facts.network.messages = large;
    run.facts.network.datagrams = serde_json::from_value(serde_json::json!({
        "sent": large, "received": large, "dropped": large, "not_sent": large, "foreign": large, "malformed": large,
        "stale": large, "duplicates": large, "given_up": large, "asked": large, "repeated": large,
    }))
    .unwrap();
    for count in [&mut run.account.level1, &mut run.account.level2_rejected, &mut run.account.filter_rejected] {
        *count = large;
    }
    run.account.built_complete = large;
    let table = run.table();
    assert_eq!(too_long(&table), [""; 0], "{table}");
    assert!(table.contains("\nros ×1691, fragments (1 died)\n"), "{table}");
    assert!(table.contains("datagrams        123 456 789 012 sent, 123 456 789 012 received,\n"), "{table}");
}

/// Lines that a terminal breaks; the verdict is one line, however much it says.
fn too_long(table: &str) -> Vec<&str> {
    let lines = table.lines().filter(|line| !line.starts_with("run 42: "));
    lines.filter(|line| line.chars().count() >= 80).collect()
}

#[test]
fn a_residual_is_named_and_ends_with_3() {
    let mut run = run();
    run.account.recorded = 249;
    run.account.residual = 1;
    run.account.differences.push("accepted, against recorded: 250 against 249".to_owned());
    let summary = run.summary();
    assert_eq!((summary.state, Exit::from(summary.state)), (RunState::Residual, Exit::Aborted));
    assert!(summary.to_json().contains("\"state\": \"residual\""));
    let table = run.table();
    assert!(table.contains("249 ≠ 250 accepted"), "{table}");
    assert!(table.ends_with("run 42: residual 1: accepted, against recorded: 250 against 249\n"), "{table}");
}

#[test]
fn an_aborted_run_says_why_and_ends_with_3() {
    let mut run = run();
    run.ending.dead.push(NodeId(5));
    run.ending.reports.remove(&NodeId(5));
    run.ending.reasons.push("sfi-2 died: killed by signal 9".to_owned());
    let summary = run.summary();
    assert_eq!((summary.state, Exit::from(summary.state)), (RunState::Aborted, Exit::Aborted));
    assert_eq!(summary.reason.as_deref(), Some("sfi-2 died: killed by signal 9"));
    assert_eq!(summary.died, ["sfi-2"]);
    let table = run.table();
    assert!(table.contains("\nsfi ×2 (1 died) "), "{table}");
    assert!(table.ends_with("run 42: aborted: sfi-2 died: killed by signal 9\n"), "{table}");
    run.facts.forced = true;
    run.ending.reasons.clear();
    assert_eq!(run.summary().reason.as_deref(), Some("the stop was forced"));
}

#[test]
fn a_run_without_time_has_no_infinite_rates() {
    let mut run = run();
    run.facts.duration = Duration::ZERO;
    run.ending.reports.clear();
    let json = run.summary().to_json();
    assert!(!json.contains("null") && json.contains("\"level1\": 0.0"), "{json}");
    assert!(!run.table().contains("inf"), "{}", run.table());
}

#[test]
fn the_summary_file_is_replaced_whole_or_the_error_is_clear() {
    let directory = TempDir::new("summary");
    let path = directory.join("s.json");
    fs::write(&path, "old").unwrap();
    run().summary().write_to(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), SUMMARY);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left");
    for bad in [directory.join("absent/s.json"), directory.path().to_owned(), PathBuf::from("..")] {
        let error = run().summary().write_to(&bad).unwrap_err();
        assert!(error.starts_with("cannot write the summary ") && error.contains(bad.to_str().unwrap()), "{error}");
    }
    run().summary().write_to(Path::new("/dev/null")).unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

const SUMMARY: &str = include_str!("golden/summary.json");

const TABLE: &str = include_str!("golden/table.txt");
