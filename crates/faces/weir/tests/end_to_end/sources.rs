//! Programs of detectors: those of the examples, built with an installed Weir, and `weir feed`. An intake takes their fragments.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::Signal;
use testkit::TempDir;

use crate::links::in_files;
use crate::readout::Readout;
use crate::running::{Job, examples, program, test_beam_by_number};

#[test]
fn the_examples_in_c_and_cpp_are_built_with_an_installed_weir_and_lose_nothing() {
    let test = "the_examples_in_c_and_cpp_are_built_with_an_installed_weir_and_lose_nothing";
    for tool in ["make", "pkg-config", "cc", "c++"] {
        if !is_installed(tool) {
            return testkit::skip(test, &format!("{tool} is not installed"));
        }
    }
    let installed = Installed::new();
    let built = installed.directory.join("by-make");
    fs::create_dir(&built).unwrap();
    let mut make = Command::new("make");
    make.arg("-C").arg(examples().join("detector")).arg(format!("OUT={}", built.display()));
    well(make.env("PKG_CONFIG_PATH", installed.prefix.join("lib/pkgconfig")));
    check_c(&built.join("detector-c"));
    check_cpp(&built.join("detector-cpp"));
}

#[test]
fn the_examples_are_built_by_cmake_with_an_installed_weir() {
    if !is_installed("cmake") {
        return testkit::skip("the_examples_are_built_by_cmake_with_an_installed_weir", "cmake is not installed");
    }
    let installed = Installed::new();
    let built = installed.directory.join("by-cmake");
    build_by_cmake(&installed, "detector", &built);
    check_c(&built.join("detector-c"));
    check_cpp(&built.join("detector-cpp"));
}

#[test]
fn the_example_in_python_runs_with_an_installed_weir() {
    let Some(python) = testkit::python("the_example_in_python_runs_with_an_installed_weir") else { return };
    let installed = Installed::new();
    let mut command = Command::new(python);
    command.arg(examples().join("detector/detector.py")).env("PYTHONPATH", installed.prefix.join("lib/weir/python"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let look = |_, number, found: &[u8]| assert!(found == of_tlu(number), "event {number}");
    check("tlu", |at| command.arg(at).args(["--set", "rate=1e9"]), look);
}

#[test]
fn a_source_in_python_that_fails_tells_run_control_why() {
    let Some(python) = testkit::python("a_source_in_python_that_fails_tells_run_control_why") else { return };
    let installed = Installed::new();
    for (statement, says) in [
        ("raise OSError('no device')", "OSError: no device"),
        ("yield 'a', b'x'", "TypeError: read gave ('a', b'x'): expected None, or a number and bytes or a length"),
        ("yield -1, b'x'", "ValueError: event number -1: expected 0 to 2**64 - 1"),
    ] {
        let mut readout = Readout::of("device");
        let script =
            format!("import weir\n@weir.source\ndef device(run):\n    {statement}\n    yield None\ndevice.main()\n");
        let mut command = Command::new(&python);
        command.args(["-c", &script, readout.at()]).env("PYTHONPATH", installed.prefix.join("lib/weir/python"));
        let source = spawn(command.env("PYTHONDONTWRITEBYTECODE", "1"));
        readout.start(1);
        readout.until("it is gone", |came| came.down.len() == 1);
        let said = &readout.came.statuses;
        assert!(said.last().is_some_and(|said| said.starts_with(says)), "{statement}: {said:?}");
        assert_eq!(ended(source).status.code(), Some(1));
    }
}

#[test]
fn a_source_says_the_same_and_is_told_the_same_in_each_language() {
    let test = "a_source_says_the_same_and_is_told_the_same_in_each_language";
    let Some(python) = testkit::python(test) else { return };
    for tool in ["pkg-config", "cc", "c++"] {
        if !is_installed(tool) {
            return testkit::skip(test, &format!("{tool} is not installed"));
        }
    }
    let installed = Installed::new();
    let mut in_python = Command::new(python);
    in_python.arg(here("marks.py")).env("PYTHONPATH", installed.prefix.join("lib/weir/python"));
    let in_c = installed.build("cc -std=c99", "marks.c");
    let in_cpp = installed.build("c++ -std=c++17", "marks.cpp");
    for command in [Command::new(&in_c), Command::new(&in_cpp), in_python] {
        says_its_marks(command);
    }
    for program in [in_c, in_cpp] {
        let refused = Command::new(program).args(["shm:marks", "--sets", "first=41"]).output().unwrap();
        let says = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1) && says.starts_with("--sets: no such argument"), "{says}");
    }
}

fn says_its_marks(mut command: Command) {
    let mut readout = Readout::of("marks");
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let source = spawn(command.args([readout.at(), "--set", "first=41", "--deadline", "2.5"]));
    readout.start(1);
    readout.until("it ends", |came| came.ended == [(1, 1)]);
    assert!(readout.came.payloads.keys().eq(&[41]), "{:?}", readout.came);
    assert_eq!(readout.came.idle, [(42, 0), (0, 7000)]);
    drop(readout);
    let ended = ended(source);
    assert!(ended.status.success(), "{ended:?}");
}

/// Its authors look for mistakes of their own, and find none of ours.
#[test]
fn a_source_in_c_has_no_mistake_that_valgrind_sees() {
    let test = "a_source_in_c_has_no_mistake_that_valgrind_sees";
    for tool in ["pkg-config", "cc", "valgrind"] {
        if !is_installed(tool) {
            return testkit::skip(test, &format!("{tool} is not installed"));
        }
    }
    let installed = Installed::new();
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9"]).arg(installed.build("cc -std=c99", "marks.c"));
    says_its_marks(command);
}

#[test]
fn a_source_in_python_that_hangs_is_told_in_which_of_its_functions() {
    let Some(python) = testkit::python("a_source_in_python_that_hangs_is_told_in_which_of_its_functions") else {
        return;
    };
    let installed = Installed::new();
    let hangs = "while True: time.sleep(0.01)";
    let class = "class Scope:\n    stops = False\n    def stop(self):\n        self.stops = True";
    for (detector, function) in [
        (format!("def scope(run):\n    try:\n        while True: yield None\n    finally:\n        {hangs}"), "scope"),
        (format!("{class}\n    def read(self, slot):\n        while self.stops: time.sleep(0.01)"), "read"),
        (format!("{class}\n        {hangs}\n    def read(self, slot): pass"), "stop"),
    ] {
        let mut readout = Readout::of("device");
        let script = format!("import time, weir\n@weir.source\n{detector}\n(globals().get('scope') or Scope).main()\n");
        let mut command = Command::new(&python);
        command.args(["-c", &script, readout.at(), "--deadline", "0.2"]).env("PYTHONDONTWRITEBYTECODE", "1");
        let source = spawn(command.env("PYTHONPATH", installed.prefix.join("lib/weir/python")));
        readout.start(1);
        readout.until("it is there", |came| came.up == 1);
        readout.stop();
        readout.until("it is gone", |came| came.down.len() == 1);
        let ended = ended(source);
        let says = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(70), "{ended:?}");
        assert!(says.contains(&format!("weir: source device: {function} has not returned while")), "{says}");
    }
}

/// The three examples are the detectors of the example of a test beam: what each makes up is in the files, to the last byte.
#[test]
fn a_test_beam_of_the_examples_is_recorded_byte_by_byte() {
    let test = "a_test_beam_of_the_examples_is_recorded_byte_by_byte";
    let Some(python) = testkit::python(test) else { return };
    if !is_installed("cmake") {
        return testkit::skip(test, "cmake is not installed");
    }
    let installed = Installed::new();
    let built = installed.directory.join("by-cmake");
    build_by_cmake(&installed, "detector", &built);
    let at = |name: &str| format!("shm:{}/{name}.sock", installed.directory.path().display());
    let mut text = test_beam_by_number();
    for name in ["tlu", "telescope", "device"] {
        text = text.replace(&format!("at = \"shm:{name}\""), &format!("at = {:?}", at(name)));
    }
    let configuration = installed.directory.join("beam.toml");
    fs::write(&configuration, text).unwrap();
    let running = Job::of(&configuration).patient().events(BEAM_EVENTS).start();
    let mut tlu = Command::new(python);
    tlu.arg(examples().join("detector/detector.py")).arg(at("tlu")).args(["--set", "rate=1e9"]);
    tlu.env("PYTHONPATH", installed.prefix.join("lib/weir/python")).env("PYTHONDONTWRITEBYTECODE", "1");
    let mut telescope = Command::new(built.join("detector-cpp"));
    let mut device = Command::new(built.join("detector-c"));
    let sources = [&mut tlu, telescope.arg(at("telescope")), device.arg(at("device"))].map(spawn);
    let (ended_run, summary) = running.end().expect_ok();
    for source in sources {
        let ended = ended(source);
        assert!(ended.status.success(), "{ended:?}");
    }
    assert_eq!(summary.count("recorded"), BEAM_EVENTS);
    let found = in_files(ended_run.output());
    assert_eq!(found.len() as u64, 3 * BEAM_EVENTS);
    for ((number, source), data) in found {
        let expected = match source & 0xffff {
            0 => of_tlu(number),
            1 => of_telescope(number),
            _ => of_device(number),
        };
        assert!(data == expected, "event {number} of source {source:#010x}");
    }
}

#[test]
fn what_is_installed_is_taken_away_again_and_destdir_stands_before_it() {
    let installed = Installed::new();
    let stage = installed.directory.join("stage");
    let under = |arguments: &[&str]| {
        let mut install = Command::new(root().join("scripts/install"));
        well(install.args(arguments).env("DESTDIR", &stage));
    };
    let (program, libraries) = (program(), libraries());
    under(&[&program, libraries.to_str().unwrap(), "/usr"]);
    let package = fs::read_to_string(stage.join("usr/lib/pkgconfig/weir.pc")).unwrap();
    assert!(package.starts_with("prefix=/usr\n"), "{package}");
    assert!(stage.join("usr/bin/weir").is_file());
    under(&["--uninstall", "/usr"]);
    let left: Vec<PathBuf> = files_below(&stage);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_fed_partition_gets_what_the_feed_wrote_down() {
    let mut readout = Readout::of("board");
    let directory = TempDir::new("feed");
    let record = directory.join("record");
    let mut feed = feed(&readout, &["--spread", "exponential", "--size", "500 B", "--checksum", "--count", "3000"]);
    let fed = spawn(feed.arg("--record").arg(&record));
    readout.start(1);
    readout.until("all came", |came| came.ended == [(3000, 3000)]);
    readout.stop();
    let came = std::mem::take(&mut readout.came);
    drop(readout);
    let ended = ended(fed);
    assert!(ended.status.success(), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).starts_with("board: 3000 fragments, "), "{ended:?}");
    let mut written = Vec::new();
    for (number, payload) in &came.payloads {
        written.extend_from_slice(&number.to_le_bytes());
        written.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        written.extend_from_slice(payload);
    }
    assert!(fs::read(record).unwrap() == written, "what came is what was written down");
}

#[test]
fn a_feed_misbehaves_as_it_is_told() {
    let mut readout = Readout::of("board");
    let fed = spawn(&mut feed(&readout, &["--skip", "10", "--double", "20", "--damage", "30", "--die-at", "40"]));
    readout.start(1);
    readout.until("it dies", |came| came.down.len() == 1);
    assert_eq!(ended(fed).status.signal(), Some(Signal::SIGKILL as i32));
    // Those that were on their way with the one that was never sent may have died with it.
    let came = &readout.came;
    assert!(!came.payloads.contains_key(&10) && !came.payloads.contains_key(&40), "{came:?}");

    let mut readout = Readout::of("board");
    let arguments = ["--count", "35", "--skip", "10", "--double", "20", "--damage", "30"];
    let fed = spawn(&mut feed(&readout, &arguments));
    readout.start(1);
    readout.until("all came", |came| came.ended == [(35, 35)]);
    let came = std::mem::take(&mut readout.came);
    assert_eq!((came.payloads.len(), came.fragments, came.damaged), (34, 35, vec![30]));
    assert!(!came.payloads.contains_key(&10));
    drop(readout);
    assert!(ended(fed).status.success());
}

#[test]
fn a_feed_that_hangs_is_ended_by_name_when_the_run_stops() {
    let mut readout = Readout::of("board");
    let fed = spawn(&mut feed(&readout, &["--hang-at", "0", "--deadline", "100 ms"]));
    readout.until("it is there", |came| came.up == 1);
    readout.start(1);
    readout.stop();
    readout.until("it is gone", |came| came.down.len() == 1);
    let ended = ended(fed);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("source board: read has not returned"), "{ended:?}");
}

/// The short form of `scripts/kill-sources`: sources over shared memory and TCP, killed at random.
#[test]
fn a_run_whose_sources_are_killed_at_random_ends_names_them_and_leaves_nothing() {
    let test = "a_run_whose_sources_are_killed_at_random_ends_names_them_and_leaves_nothing";
    let Some(python) = testkit::python(test) else { return };
    let directory = TempDir::new("killed-sources");
    let mut campaign = Command::new(python);
    campaign.arg(root().join("scripts/kill-sources")).arg("--weir").arg(program());
    // Each of the three sources is a victim.
    well(campaign.args(["--kills", "3", "--seed", "1", "--keep"]).arg(directory.join("kept")));
}

#[test]
fn a_feed_without_a_partition_says_what_to_do() {
    let directory = TempDir::new("feed");
    let at = format!("shm:{}", directory.join("nobody.sock").display());
    for (arguments, status, expected) in [
        (&[at.as_str(), "--patience", "20 ms"][..], 2, "start the partition"),
        (&["tcp://127.0.0.1:9", "--name", "board"], 1, "needs a key"),
        (&["telescope"], 1, "expected shm:NAME"),
    ] {
        let ended = Command::new(program()).arg("feed").args(arguments).output().unwrap();
        let says = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(status) && says.contains(expected), "{arguments:?}: {ended:?}");
    }
}

pub(crate) fn build_by_cmake(installed: &Installed, example: &str, built: &Path) {
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(examples().join(example)).arg("-B").arg(built);
    well(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", installed.prefix.display())));
    well(Command::new("cmake").arg("--build").arg(built));
}

/// What the examples make up.
pub(crate) fn of_tlu(number: u64) -> Vec<u8> {
    [number.to_le_bytes(), (number * 25).to_le_bytes()].concat()
}

fn of_telescope(number: u64) -> Vec<u8> {
    (0..500 + number * 7 % 1500).map(|at| (number * 3 + at) as u8).collect()
}

pub(crate) fn of_device(number: u64) -> Vec<u8> {
    (0..100 + number % 200).map(|at| (number + at) as u8).collect()
}

fn check_c(program: &Path) {
    check_program("device", program, of_device);
}

fn check_cpp(program: &Path) {
    check_program("telescope", program, of_telescope);
}

fn check_program(name: &str, program: &Path, payload: impl Fn(u64) -> Vec<u8>) {
    let mut command = Command::new(program);
    check(name, |at| command.arg(at), |_, number, found| assert!(found == payload(number), "{name}, event {number}"));
}

/// Leads a source through two runs, each stopped in the middle, and shows every payload with run and number.
pub(crate) fn check<'a>(name: &str, command: impl FnOnce(&str) -> &'a mut Command, look: impl Fn(u32, u64, &[u8])) {
    let mut readout = Readout::of(name);
    let source = spawn(command(readout.at()));
    for run in [1, 2] {
        readout.start(run);
        let before = readout.came.fragments;
        readout.until("fragments come", |came| came.fragments > before + 1000);
        readout.stop();
        readout.until("the run ends", |came| came.ended.len() as u32 == run);
        let (sent, received) = *readout.came.ended.last().unwrap();
        assert_eq!((sent, readout.came.fragments - before), (received, received), "{name}, run {run}");
        let found = std::mem::take(&mut readout.came.payloads);
        assert_eq!(found.len() as u64, received);
        for (number, found) in found {
            look(run, number, &found);
        }
    }
    drop(readout);
    let ended = ended(source);
    assert!(ended.status.success(), "{name}: {ended:?}");
}

/// A Weir that is installed as `make install` does it.
pub(crate) struct Installed {
    pub(crate) directory: TempDir,
    pub(crate) prefix: PathBuf,
}

impl Installed {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new("installed");
        let prefix = directory.join("prefix");
        let mut install = Command::new(root().join("scripts/install"));
        well(install.arg(program()).arg(libraries()).arg(&prefix).env_remove("DESTDIR"));
        Self { directory, prefix }
    }

    /// A program of one file beside this one.
    fn build(&self, compiler: &str, file: &str) -> PathBuf {
        let program = self.directory.join(file.replace('.', "-"));
        let libraries = self.prefix.join("lib");
        let build = format!(
            "{compiler} -Wall -Wextra -Wpedantic -Werror {} $(pkg-config --cflags --libs weir) -Wl,-rpath,{} -o {}",
            here(file).display(),
            libraries.display(),
            program.display()
        );
        let mut shell = Command::new("sh");
        well(shell.args(["-c", &build]).env("PKG_CONFIG_PATH", libraries.join("pkgconfig")));
        program
    }

    /// With its package for Python.
    pub(crate) fn python<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("PYTHONPATH", self.prefix.join("lib/weir/python")).env("PYTHONDONTWRITEBYTECODE", "1")
    }
}

/// Where cargo puts the libraries of `weir-c`, on which these tests depend: beside the program that runs them.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end").join(file)
}

fn root() -> PathBuf {
    examples().parent().unwrap().to_owned()
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

pub(crate) fn is_installed(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok()
}

fn feed(readout: &Readout, arguments: &[&str]) -> Command {
    let mut feed = Command::new(program());
    feed.arg("feed").arg(readout.at()).args(arguments);
    feed
}

pub(crate) fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn ended(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

pub(crate) fn well(command: &mut Command) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
}

const BEAM_EVENTS: u64 = 2_000;
