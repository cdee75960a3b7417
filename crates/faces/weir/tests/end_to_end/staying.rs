//! Programs of sources stay from run to run of a partition, and end with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::links::{Payloads, in_run};
use crate::running::{Job, Running, examples, program};
use crate::served::Served;
use crate::sources::{Installed, ended, of_device, of_tlu, spawn, well};

#[test]
fn sources_stay_for_the_second_run_of_a_command_and_end_with_the_last() {
    let test = "sources_stay_for_the_second_run_of_a_command_and_end_with_the_last";
    let Some(python) = testkit::python(test) else { return };
    for processes in [false, true] {
        let beam = Beam::new(["tlu", "board", "pipe"]);
        let job = beam.job().with(&["--runs", "2"]).events(EVENTS).processes(processes);
        let running = job.start();
        let sources = beam.sources(&python);
        let ended_runs = running.end().expect(0);
        let error = &ended_runs.stderr;
        sources.into_iter().for_each(|source| ended_well(source, error));
        for run in 1..=2 {
            let text = fs::read_to_string(ended_runs.directory.join(format!("summary.{run}.json"))).unwrap();
            let summary: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((&summary["state"], &summary["accounting"]["residual"]), (&json!("ok"), &json!(0)), "{error}");
            assert_eq!(beam.look(ended_runs.output(), run), EVENTS);
        }
    }
}

#[test]
fn sources_stay_in_a_service_through_stops_and_starts_and_end_with_the_shutdown() {
    let test = "sources_stay_in_a_service_through_stops_and_starts_and_end_with_the_shutdown";
    let Some(python) = testkit::python(test) else { return };
    // The one in C has no key.
    let beam = Beam::new(["tlu", "device", "pipe"]);
    let mut served = Served::start(beam.job());
    let sources = beam.sources(&python);
    served.ctl("anna", &["boot"]);
    for run in 1..=3 {
        assert_eq!(served.ctl("anna", &["start", "--duration", "1h"]), format!("run {run} has begun\n"));
        until_recording(&mut served.running, run);
        assert_eq!(served.ctl("anna", &["stop"]), "the run ends\n");
        let over = served.until("the run is over", |status| status["last"]["number"] == run);
        let last = &over["last"];
        assert_eq!(last["state"], "ok", "{over}\n{}", served.running.error_output());
        assert_eq!(Some(beam.look(&served.running.output(), run)), last["recorded"].as_u64());
    }
    served.ctl("anna", &["shutdown"]);
    sources.into_iter().for_each(|source| ended_well(source, ""));
    served.running.signal(nix::sys::signal::Signal::SIGTERM);
    served.end().expect(0);
}

/// A program that ends a run late is still in it when the next one begins.
#[test]
fn a_python_source_that_still_reads_when_the_next_run_begins_takes_part_in_it() {
    let test = "a_python_source_that_still_reads_when_the_next_run_begins_takes_part_in_it";
    let Some(python) = testkit::python(test) else { return };
    let installed = Installed::new();
    let mut readout = crate::readout::Readout::of("late");
    let script = "\
import weir
@weir.source
class Late:
    def start(self, run):
        self.left = 10
    def read(self, slot):
        if self.left == 0:
            return None
        self.left -= 1
        return 9 - self.left, b'data'
    def stop(self):
        self.left += 5
    def status(self):
        return None
Late.main()
";
    let mut command = Command::new(python);
    let source = spawn(installed.python(command.args(["-c", script, readout.at()])));
    for run in 1..=3 {
        readout.start(run);
        readout.until("fragments come", |came| came.payloads.len() == 10);
        readout.came.payloads.clear();
        readout.stop();
    }
    readout.until("the last run ends", |came| came.ended.last() == Some(&(15, 15)));
    drop(readout);
    ended_well(source, "");
}

/// A partition whose sources are programs: `board` over TCP, the others over shared memory.
struct Beam {
    installed: Installed,
    names: [&'static str; 3],
    port: u16,
}

impl Beam {
    fn new(names: [&'static str; 3]) -> Self {
        // The port is free when the run begins, as far as anybody can tell.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let beam = Self { installed: Installed::new(), names, port: listener.local_addr().unwrap().port() };
        fs::write(beam.path("key"), KEY).unwrap();
        beam
    }

    fn path(&self, name: &str) -> PathBuf {
        self.installed.directory.join(name)
    }

    fn at(&self, name: &str) -> String {
        match name {
            "board" => format!("tcp://127.0.0.1:{}", self.port),
            _ => format!("shm:{}", self.path(&format!("{name}.sock")).display()),
        }
    }

    fn has_key(&self) -> bool {
        self.names.contains(&"board")
    }

    fn job(&self) -> Job {
        let key = if self.has_key() { format!("key = {KEY:?}\n") } else { String::new() };
        let mut text = format!(
            "[partition]\nname = \"quickstart\"\n{key}[level1]\nsource = \"link\"\n[ros]\ncount = 2\n[dfm]\n\
             [sfi]\ncount = 1\n[sfo]\ncount = 1\n"
        );
        for name in self.names {
            text += &format!("[[source]]\nname = {name:?}\nat = {:?}\n", self.at(name));
        }
        let configuration = self.path("beam.toml");
        fs::write(&configuration, text).unwrap();
        Job::of(&configuration).patient()
    }

    fn sources(&self, python: &Path) -> [Child; 3] {
        self.names.map(|name| {
            let mut command = match name {
                "tlu" => self.in_python(python),
                "device" => Command::new(self.built_in_c()),
                _ => self.fed(name),
            };
            command.arg(self.at(name));
            if self.has_key() {
                command.arg("--key-file").arg(self.path("key"));
            }
            spawn(&mut command)
        })
    }

    fn in_python(&self, python: &Path) -> Command {
        let mut command = Command::new(python);
        command.arg(examples().join("detector/detector.py")).args(["--set", "rate=1e9"]);
        self.installed.python(&mut command);
        command
    }

    fn fed(&self, name: &str) -> Command {
        let mut command = Command::new(program());
        command.args(["feed", "--name", name, "--spread", "exponential", "--size", "500 B", "--checksum", "--record"]);
        command.arg(self.path(name));
        command
    }

    fn built_in_c(&self) -> PathBuf {
        let (built, prefix) = (self.path("device"), &self.installed.prefix);
        let mut compiler = Command::new("cc");
        compiler.arg(examples().join("detector/detector.c")).arg("-o").arg(&built);
        compiler.arg("-I").arg(prefix.join("include")).arg("-L").arg(prefix.join("lib"));
        well(compiler.arg("-lweir").arg(format!("-Wl,-rpath,{}", prefix.join("lib").display())));
        built
    }

    /// Asserts that the files of a run hold what the sources have sent in it; of how many events.
    fn look(&self, output: &Path, run: u32) -> u64 {
        let found = in_run(output, run);
        let written: BTreeMap<&str, BTreeMap<u64, Vec<u8>>> =
            self.names.map(|name| (name, recorded_by_feed(&self.path(name)))).into();
        for ((number, source), data) in &found {
            let name = self.names[(source & 0xffff) as usize];
            let is_right = match name {
                "tlu" => *data == of_tlu(*number),
                "device" => *data == of_device(*number),
                _ => written[name].get(number) == Some(data),
            };
            assert!(is_right, "run {run}, event {number} of {name}");
        }
        events_of_all(&found)
    }
}

/// Of how many events all three sources have a fragment, with none left over.
fn events_of_all(found: &Payloads) -> u64 {
    let events = found.len() as u64 / 3;
    // Numbers begin again with each run.
    assert!((0..events).all(|number| found.range((number, 0)..(number + 1, 0)).count() == 3));
    assert_eq!(found.len() as u64, 3 * events);
    events
}

/// What a feed wrote down: the same in each run. A number may be cut off at the end of what is written so far.
fn recorded_by_feed(path: &Path) -> BTreeMap<u64, Vec<u8>> {
    let mut rest = &fs::read(path).unwrap_or_default()[..];
    let mut found = BTreeMap::new();
    while let Some((head, behind)) = rest.split_at_checked(12) {
        let (number, len) = head.split_at(8);
        let len = u32::from_le_bytes(len.try_into().unwrap()) as usize;
        let Some((payload, behind)) = behind.split_at_checked(len) else { break };
        found.insert(u64::from_le_bytes(number.try_into().unwrap()), payload.to_vec());
        rest = behind;
    }
    found
}

fn until_recording(running: &mut Running, run: u32) {
    running.until("events of the run are recorded", |running| recorded_bytes(&running.output(), run) > BYTES_MIN);
}

/// What the files of a run have so far.
fn recorded_bytes(output: &Path, run: u32) -> u64 {
    let name = format!(".{run:08}.");
    let entries = fs::read_dir(output).into_iter().flatten().flatten();
    let of_run = entries.filter(|entry| entry.file_name().to_string_lossy().contains(&name));
    of_run.map(|entry| entry.metadata().map_or(0, |metadata| metadata.len())).sum()
}

fn ended_well(source: Child, error: &str) {
    let ended = ended(source);
    assert!(ended.status.success(), "{ended:?}\n{error}");
}

const KEY: &str = "a key of the test beam";
const EVENTS: u64 = 500;
/// More than a file has before its first event.
const BYTES_MIN: u64 = 100_000;
