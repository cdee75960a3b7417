//! Programs that are written against the interfaces of EUDAQ and MIDAS, built with an installed Weir.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::links::in_files;
use crate::readout::Readout;
use crate::running::{Job, examples, program};
use crate::sources::{Installed, build_by_cmake, check, ended, is_installed, spawn, well};

#[test]
fn a_producer_and_a_front_end_are_recorded_byte_by_byte() {
    let test = "a_producer_and_a_front_end_are_recorded_byte_by_byte";
    let Some(adapters) = Adapters::new(test) else { return };
    let built = adapters.installed.directory.join("by-make");
    fs::create_dir(&built).unwrap();
    let mut make = Command::new("make");
    make.arg("-C").arg(examples().join("adapters")).arg(format!("OUT={}", built.display()));
    well(
        make.args([&format!("CXX={}", adapters.compiler), &format!("CXXFLAGS={WARNINGS}")])
            .envs(adapters.environment()),
    );
    let at = |name: &str| format!("shm:{}/{name}.sock", adapters.installed.directory.path().display());
    let mut text = "[partition]\nname = \"beam\"\n[level1]\nsource = \"link\"\nleader = \"tlu\"\n[ros]\ncount = 1\n[dfm]\n[sfi]\ncount = 1\n\
                    [sfo]\ncount = 1\n"
        .to_owned();
    for name in ["tlu", "pixel", "adc"] {
        text += &format!("[[source]]\nname = {name:?}\nat = {:?}\n", at(name));
    }
    let configuration = adapters.installed.directory.join("beam.toml");
    fs::write(&configuration, text).unwrap();
    let running = Job::of(&configuration).patient().events(EVENTS).start();
    let mut tlu = Command::new(program());
    tlu.arg("feed").arg(at("tlu")).args(["--name", "tlu"]);
    let mut pixel = Command::new(built.join("pixel"));
    pixel.args(["-t", "pixel", "-r", &at("pixel"), "-s", "EVENTS=1000000"]);
    let mut adc = Command::new(built.join("adc"));
    adc.args(["-h", &format!("adc={}", at("adc")), "-s", "/Equipment/ADC/Settings/samples=3"]);
    let sources = [&mut tlu, &mut pixel, &mut adc].map(spawn);
    let (ended_run, summary) = running.end().expect_ok();
    for source in sources {
        let ended = ended(source);
        assert!(ended.status.success(), "{ended:?}");
    }
    assert_eq!(summary.count("recorded"), EVENTS);
    let run = summary.0["run"].as_u64().map(|run| run as u32);
    let found = in_files(ended_run.output());
    assert_eq!(found.len() as u64, 3 * EVENTS);
    let of_source =
        |place: u32| found.iter().find(|((number, source), _)| *number == 6 && source & 0xffff == place).unwrap().1;
    adapters.read_in_python(test, of_source(1), of_source(2));
    for ((number, source), data) in found {
        match source & 0xffff {
            0 => {}
            1 => look_at_pixels(run, number, &data),
            _ => look_at_samples(number, &data, 3),
        }
    }
}

#[test]
fn a_producer_and_a_front_end_stop_in_the_middle_and_run_again() {
    let test = "a_producer_and_a_front_end_stop_in_the_middle_and_run_again";
    if !is_installed("cmake") {
        return testkit::skip(test, "cmake is not installed");
    }
    let installed = Installed::new();
    let built = installed.directory.join("by-cmake");
    build_by_cmake(&installed, "adapters", &built);
    let mut pixel = Command::new(built.join("pixel"));
    let configuration = installed.directory.join("pixel.conf");
    fs::write(
        &configuration,
        "# of all\n[Producer.device]\nEVENTS = 0x7fffffff # many\nPLANE = 2\n[Other]\nEVENTS = 0\n",
    )
    .unwrap();
    pixel.arg("-i").arg(&configuration).arg("-c").arg(&configuration);
    check(
        "device",
        |at| pixel.args(["-t", "device", "-r", at]),
        |run, number, found| look_at_pixels(Some(run), number, found),
    );
    let mut adc = Command::new(built.join("adc"));
    let database = installed.directory.join("odb");
    fs::write(
        &database,
        "# of the experiment\n/Equipment/adc/Settings/samples = 5\n/Equipment/temperature/Common/enabled = n\n",
    )
    .unwrap();
    adc.arg("--odb").arg(&database);
    check("adc", |at| adc.args(["-h", &format!("adc={at}")]), |_, number, found| look_at_samples(number, found, 5));
}

#[test]
fn a_producer_that_hangs_or_fails_is_ended_and_named() {
    let Some(adapters) = Adapters::new("a_producer_that_hangs_or_fails_is_ended_and_named") else { return };
    let odd = adapters.build("odd_producer.cc", "weir-eudaq");
    for (how, status, says) in [
        ("hangs in DoStartRun", 70, "DoStartRun has not returned"),
        ("hangs in DoStopRun", 70, "DoStopRun has not returned"),
        ("hangs in RunLoop", 70, "RunLoop has not returned"),
        ("throws in RunLoop", 1, "RunLoop: no such device"),
        ("is too long", 1, "RunLoop: SendEvent: "),
    ] {
        let mut readout = Readout::of("odd");
        let mut command = Command::new(&odd);
        let source =
            spawn(command.args(["-t", "odd", "-r", readout.at(), "-s", &format!("HOW={how}"), "--deadline", "0.2"]));
        readout.until("it is there", |came| came.up == 1);
        readout.start(1);
        if status == 70 && how != "hangs in DoStartRun" {
            readout.until("data come", |came| came.fragments == 10);
            readout.stop();
        }
        readout.until("it is gone", |came| came.down.len() == 1);
        let said = readout.came.statuses.join("\n");
        let ended = ended(source);
        assert_eq!(ended.status.code(), Some(status), "{how}: {ended:?}");
        let error = String::from_utf8_lossy(&ended.stderr);
        assert!(error.contains(&format!("weir: source odd: {says}")) && said.contains(says), "{how}: {error}, {said}");
    }
    let refused = Command::new(&odd).args(["-t", "odd", "-s", "HOW=throws in DoConfigure"]).output().unwrap();
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && error.contains("source odd: DoConfigure: no such device"), "{error}");
}

#[test]
fn a_producer_may_send_from_any_thread_and_is_told_of_the_end() {
    let Some(adapters) = Adapters::new("a_producer_may_send_from_any_thread_and_is_told_of_the_end") else { return };
    let odd = adapters.build("odd_producer.cc", "weir-eudaq");
    let mut readout = Readout::of("odd");
    let mut command = Command::new(&odd);
    let source =
        spawn(command.args(["-n", "OddProducer", "-t", "odd", "-r", readout.at(), "-s", "HOW=sends from a thread"]));
    readout.start(1);
    readout.until("data of both threads come", |came| came.fragments == 510);
    readout.stop();
    readout.until("the run ends", |came| came.ended == [(510, 510)]);
    assert!(readout.came.payloads.keys().copied().eq(0..510), "numbers of both threads are those of one source");
    assert_eq!(readout.came.statuses, ["plane 3"]);
    drop(readout);
    let ended = ended(source);
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && error.contains("USER: terminated"), "{ended:?}");
}

#[test]
fn a_front_end_that_hangs_or_fails_is_ended_and_named() {
    let Some(adapters) = Adapters::new("a_front_end_that_hangs_or_fails_is_ended_and_named") else { return };
    let odd = adapters.build("odd_frontend.cxx", "weir-midas");
    for (how, status, says) in [
        ("hangs in HandleEndRun", 70, "HandleEndRun has not returned"),
        ("hangs in HandlePoll", 70, "HandlePoll has not returned"),
        ("fails in HandleBeginRun", 1, "HandleBeginRun: no such device"),
    ] {
        let mut readout = Readout::of("odd_03");
        let mut command = Command::new(&odd);
        let how_is = format!("/Equipment/odd_03/Settings/how={how}");
        let source = spawn(command.args(["-h", readout.at(), "-i", "3", "-s", &how_is, "--deadline", "0.2"]));
        readout.until("it is there", |came| came.up == 1);
        readout.start(1);
        if status == 70 {
            readout.until("data come", |came| came.fragments > 0);
            readout.stop();
        }
        readout.until("it is gone", |came| came.down.len() == 1);
        let said = readout.came.statuses.join("\n");
        let ended = ended(source);
        assert_eq!(ended.status.code(), Some(status), "{how}: {ended:?}");
        let error = String::from_utf8_lossy(&ended.stderr);
        assert!(
            error.contains(&format!("weir: source odd_03: {says}")) && said.contains(says),
            "{how}: {error}, {said}"
        );
    }
    for (arguments, says) in [
        (
            &["-s", "/Equipment/odd_00/Settings/how=says what it was told", "--", "-x"][..],
            "HandleInit: 3 channels, 1 arguments",
        ),
        (&["--deadlin", "1"], "--deadlin: no such option"),
        (&["-h", "eve=shm:eve"], "-h eve=shm:eve: no equipment has this name"),
        (&["-s", "how"], "-s how: expected NAME=VALUE"),
        (
            &["-s", "/Equipment/odd_00/Settings/channels=1,x"],
            "HandleInit: /Equipment/odd_00/Settings/channels = x: expected",
        ),
        (&["--patience", "0.1"], "no partition"),
    ] {
        let refused = Command::new(&odd).args(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1) && error.contains(says), "{arguments:?}: {error}");
    }
}

#[test]
fn a_front_end_may_poll_in_a_thread_and_numbers_events_anew_in_each_run() {
    let test = "a_front_end_may_poll_in_a_thread_and_numbers_events_anew_in_each_run";
    let Some(adapters) = Adapters::new(test) else { return };
    let odd = adapters.build("odd_frontend.cxx", "weir-midas");
    let mut readout = Readout::of("odd_00");
    let mut command = Command::new(&odd);
    let source = spawn(command.args(["-h", readout.at(), "-s", "/Equipment/odd_00/Settings/how=polls in a thread"]));
    for run in [1, 2] {
        readout.start(run);
        let sent = u64::from(run) * 100;
        readout.until("data come", |came| came.payloads.len() as u64 == sent);
        readout.stop();
        readout.until("the run ends", |came| came.ended.last() == Some(&(sent, sent)));
        for (number, found) in std::mem::take(&mut readout.came.payloads) {
            assert_eq!(found[..2], [7, 0], "the event identifier");
            assert_eq!(word(&found, 4), number as u32 + 1, "the serial number");
            assert_eq!(banks(&found), [("LEFT".to_owned(), 6, (sent as u32 - number as u32).to_le_bytes().to_vec())]);
        }
        readout.came.ended.clear();
    }
    drop(readout);
    assert!(ended(source).status.success());
}

#[test]
fn a_front_end_may_use_what_front_ends_of_midas_use_and_have_a_main_of_its_own() {
    let test = "a_front_end_may_use_what_front_ends_of_midas_use_and_have_a_main_of_its_own";
    let Some(adapters) = Adapters::new(test) else { return };
    let whole = adapters.build("whole_frontend.cxx", "weir-midas");
    for has_front_end in [true, false] {
        let mut readout = Readout::of("whole");
        let mut command = Command::new(&whole);
        if has_front_end {
            command.args(["-h", readout.at()]);
        } else {
            command.env("MIDAS_SERVER_HOST", format!("whole={}", readout.at()));
        }
        let source = spawn(&mut command);
        readout.start(3);
        readout.until("data come", |came| came.payloads.len() == 40);
        readout.stop();
        readout.until("the run ends", |came| came.ended.last() == Some(&(40, 40)));
        for (number, found) in std::mem::take(&mut readout.came.payloads) {
            assert_eq!((&found[..2], word(&found, 4)), (&[5, 0][..], number as u32 + 1));
            assert_eq!(banks(&found), [("LEFT".to_owned(), 6, (40 - number as u32).to_le_bytes().to_vec())]);
        }
        drop(readout);
        let ended = ended(source);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{ended:?}");
        for text in ["run 3 is run 3", "[Told] of run 3", "[HandleEndRun] run 3", "[Told] of the end of run 3"] {
            assert_eq!(said.matches(text).count(), 1, "{text}: {said}");
        }
    }
}

/// An installed Weir, with a compiler for programs that are built against its adapters.
struct Adapters {
    installed: Installed,
    compiler: &'static str,
}

impl Adapters {
    fn new(test: &str) -> Option<Self> {
        for tool in ["make", "pkg-config", "c++"] {
            if !is_installed(tool) {
                testkit::skip(test, &format!("{tool} is not installed"));
                return None;
            }
        }
        // What the other tests build by c++ is built by the other compiler here, where there is one.
        let compiler = if is_installed("clang++") { "clang++" } else { "c++" };
        Some(Self { installed: Installed::new(), compiler })
    }

    fn environment(&self) -> [(&str, PathBuf); 1] {
        [("PKG_CONFIG_PATH", self.installed.prefix.join("lib/pkgconfig"))]
    }

    /// The sixth event of both examples, with the module that users have.
    fn read_in_python(&self, test: &str, pixels: &[u8], samples: &[u8]) {
        let Some(python) = testkit::python(test) else { return };
        let files = [("pixels", pixels), ("samples", samples)].map(|(name, data)| {
            let file = self.installed.directory.join(name);
            fs::write(&file, data).unwrap();
            file
        });
        let mut command = Command::new(python);
        command.args(["-c", READS]).args(files).env("PYTHONDONTWRITEBYTECODE", "1");
        well(command.env("PYTHONPATH", self.installed.prefix.join("lib/weir/python")));
    }

    fn build(&self, source: &str, package: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end").join(source);
        let (program, libraries) = (self.installed.directory.join("program"), self.installed.prefix.join("lib"));
        let mut shell = Command::new("sh");
        let build = format!(
            "c++ -std=c++17 {WARNINGS} {} $(pkg-config --variable=main {package}) $(pkg-config --cflags --libs {package}) \
             -Wl,-rpath,{} -o {}",
            source.display(),
            libraries.display(),
            program.display()
        );
        well(shell.args(["-c", &build]).envs(self.environment()));
        program
    }
}

/// What `pixel_producer.cc` makes up, as an event of EUDAQ travels.
fn look_at_pixels(run: Option<u32>, number: u64, found: &[u8]) {
    let number = number as u32;
    assert_eq!((&found[..4], word(found, 4) as usize), (&b"EUD1"[..], found.len()), "event {number}");
    assert_eq!(word(found, 8), 16 | 32, "it has a trigger number and a time");
    if let Some(run) = run {
        assert_eq!(word(found, 12), run);
    }
    assert_eq!([word(found, 16), word(found, 20)], [number, number]);
    let time = |at| u64::from_le_bytes(found[at..at + 8].try_into().unwrap());
    assert_eq!(time(40), time(32) + 100);
    assert_eq!([48, 52, 56, 60].map(|at| word(found, at)), [8, 1, 1, 0]);
    let mut expected = b"PixelRaw".to_vec();
    expected.extend([8u32, 1].map(u32::to_le_bytes).concat());
    expected.extend(b"Plane ID");
    let plane = found[expected.len() + 64];
    expected.push(plane);
    let hits = (0..number % 7).flat_map(|hit| [(number * 13 + hit) as u16, (number + hit * 5) as u16]);
    let data: Vec<u8> = hits.flat_map(u16::to_le_bytes).collect();
    expected.extend([u32::from(plane - b'0'), data.len() as u32].map(u32::to_le_bytes).concat());
    expected.extend(data);
    assert!(found[64..] == expected, "event {number}: {found:?}");
}

/// What `adc_frontend.cxx` makes up, as an event of MIDAS.
fn look_at_samples(number: u64, found: &[u8], samples: u32) {
    let number = number as u32;
    assert_eq!((found[..4].to_vec(), word(found, 4)), (vec![1, 0, 0, 0], number + 1));
    let data = (0..samples).flat_map(|at| ((number * 3 + at * at) as u16).to_le_bytes()).collect();
    assert_eq!(banks(found), [("TRIG".to_owned(), 6, number.to_le_bytes().to_vec()), ("ADC0".to_owned(), 4, data)]);
}

/// The banks of an event of MIDAS: name, type, data.
fn banks(event: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
    assert_eq!(word(event, 12) as usize, event.len() - 16, "bytes behind the head of the event");
    assert_eq!(
        (word(event, 16) as usize, word(event, 20)),
        (event.len() - 24, 0x31),
        "bytes of the banks, of 32 bits, aligned"
    );
    let (mut banks, mut rest) = (Vec::new(), &event[24..]);
    while !rest.is_empty() {
        let len = word(rest, 8) as usize;
        let name = String::from_utf8(rest[..4].to_vec()).unwrap();
        banks.push((name, word(rest, 4), rest[16..16 + len].to_vec()));
        rest = &rest[16 + len.next_multiple_of(8)..];
    }
    banks
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

const WARNINGS: &str = "-O1 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror";
const EVENTS: u64 = 2_000;

/// Reads one event of each kind, and refuses each that was cut.
const READS: &str = r#"
import sys
from pathlib import Path
from weir import adapted

pixels, samples = (Path(name).read_bytes() for name in sys.argv[1:])
event = adapted.eudaq(pixels)
assert (event.description, event.number, event.trigger, event.tags) == ("PixelRaw", 6, 6, {"Plane ID": "3"}), event
assert event.time[1] - event.time[0] == 100 and len(event.blocks[3]) == 6 * 4, event
event = adapted.midas(samples)
assert (event.event_id, event.serial_number, list(event.banks)) == (1, 7, ["TRIG", "ADC0"]), event
assert event.banks["TRIG"].tolist() == [6] and event.banks["ADC0"].tolist() == [18, 19, 22], event
for read, data in (adapted.eudaq, pixels), (adapted.midas, samples):
    for length in range(len(data)):
        try:
            read(data[:length])
        except ValueError:
            continue
        raise AssertionError(f"{read} took {length} of {len(data)} bytes")
"#;
