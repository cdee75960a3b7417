//! What users are told when something fails stays: exit status and words.
//!
//! `tests/golden/failures.txt` has each command with its status, all that it says on the error output, and its last line of output.
//! `UPDATE_GOLDEN=1` writes it anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use testkit::TempDir;

use crate::frozen::without_digits;
use crate::running::{examples, program};
use crate::simulation::scenario;

#[test]
fn what_fails_ends_with_its_status_and_its_words() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/failures.txt");
    let told: String = FAILURES.iter().map(|command| told(command)).collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return fs::write(&path, told).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    for status in 1..=4 {
        assert!(golden.contains(&format!("\nstatus {status}\n")), "all statuses that there are: {golden}");
    }
    let (mut expected, mut found) = (golden.split("$ "), told.split("$ "));
    for command in 0..=FAILURES.len() {
        assert_eq!(found.next(), expected.next(), "command {command}");
    }
    assert_eq!(expected.next(), None, "the file has more");
}

/// The command, and what became of it.
fn told(command: &str) -> String {
    let directory = TempDir::new("failures");
    fs::write(directory.join("a-file"), "").unwrap();
    fs::write(directory.join("a-text"), "no events\n".repeat(10)).unwrap();
    let places = [
        ("EXAMPLES", examples().display().to_string()),
        ("FAULTS", scenario("faults/crash").parent().unwrap().display().to_string()),
        ("HERE", directory.path().display().to_string()),
    ];
    let words =
        command.split(' ').map(|word| places.iter().fold(word.to_owned(), |word, (name, is)| word.replace(name, is)));
    let ended = Command::new(program())
        .args(words)
        .current_dir(directory.path())
        // Where commands look for a service.
        .env("XDG_RUNTIME_DIR", directory.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let plain = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        places.iter().fold(text, |text, (name, is)| text.replace(is, name))
    };
    let status = ended.status.code().unwrap();
    // How much a run has lost is nobody's promise.
    let plain = |bytes: &[u8]| if status < 3 { plain(bytes) } else { without_digits(&plain(bytes)) };
    let mut told = format!("$ weir {command}\nstatus {status}\n");
    for line in plain(&ended.stderr).lines().filter(|line| !line.contains(" of processor time, ")) {
        writeln!(told, "error {line}").unwrap();
    }
    if let Some(last) = plain(&ended.stdout).lines().last() {
        writeln!(told, "ends {last}").unwrap();
    }
    told
}

const FAILURES: &[&str] = &[
    // Wrong usage.
    "frob",
    "run",
    "run EXAMPLES/quickstart.toml --bad",
    "run EXAMPLES/quickstart.toml --events many",
    "run EXAMPLES/quickstart.toml --set level1",
    "file dump",
    "runs show 7",
    // A wrong configuration.
    "run absent.toml",
    "run a-file",
    "check EXAMPLES/quickstart.toml --set ros.cuont=3",
    "check EXAMPLES/quickstart.toml --set level1.rate=fast",
    "check EXAMPLES/quickstart.toml --set sfi.count=-1",
    "check EXAMPLES/quickstart.toml --set sfo.stream=physics",
    "check EXAMPLES/quickstart.toml --set control.otlp=collector:4318",
    "run EXAMPLES/quickstart.toml --set output.directory=HERE/a-file/out",
    "run EXAMPLES/replay.toml --set input.files=[\"HERE/absent.data\"]",
    "sim EXAMPLES/quickstart.toml --set level1.rate=0",
    "serve EXAMPLES/quickstart.toml --set run.events=0",
    "scan absent.toml",
    // A file that cannot be read, or is none.
    "file check absent.data",
    "file dump a-file",
    "file dump a-text",
    // What cannot start.
    "ctl status",
    "top",
    "serve EXAMPLES/quickstart.toml --listen 203.0.113.1:1",
    "serve EXAMPLES/quickstart.toml --listen 127.0.0.1:0 --set control.references=\"HERE/absent.json\"",
    // A run that is cut short, and one that loses something.
    "sim FAULTS/crash.toml --set simulation.fault.0.application=sfi-1",
    "sim FAULTS/hang.toml --set simulation.fault.0.application=dfm-1",
    "sim FAULTS/full-buffers.toml",
    "sim FAULTS/network-partition.toml",
    "sim FAULTS/slow.toml",
];
