//! Files that are not what they should be: a clear error that names the file; never a panic, a hang or a huge allocation.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use eformat::marker;
use testkit::TempDir;

use crate::running::{Ended, Job, examples, program, within_deadline};

#[test]
fn as_a_sample() {
    let damaged = Damaged::of(&examples().join("data/zee_mu0.parquet"), &PARQUET_PLACES);
    for bad in &damaged.files {
        check_run("quickstart", bad);
    }
}

#[test]
fn as_a_replayed_file() {
    let damaged = Damaged::of(&examples().join("data/replay.data"), &RAW_PLACES);
    for bad in &damaged.files {
        check_run("replay", bad);
    }
}

#[test]
fn as_an_old_replayed_file() {
    let Some(input) = testkit::shared("as_an_old_replayed_file", "rawdata/bes3_run0091668_SFO-1_10events.raw") else {
        return;
    };
    for bad in &Damaged::of(&input, &RAW_PLACES).files {
        check_run("replay", bad);
    }
}

#[test]
fn in_the_hands_of_the_file_commands() {
    let input = examples().join("data/replay.data");
    for verb in ["check", "ls", "dump", "recover"] {
        for bad in &Damaged::of(&input, &RAW_PLACES).files {
            let ended = Job::command(&["file".as_ref(), verb.as_ref(), bad.path.as_os_str()], 1 << 30).run();
            check_words(&ended, bad, verb);
            assert!(verb != "check" || !bad.certain || ended.status.code() == Some(1), "{}", bad.what);
            let recovered = bad.path.with_extension("recovered.data");
            if verb == "recover" && recovered.exists() {
                let check = Job::command(&["file".as_ref(), "check".as_ref(), recovered.as_os_str()], 1 << 30).run();
                assert_eq!(check.status.code(), Some(0), "{}: {}", bad.what, check.stdout);
            }
        }
    }
}

#[test]
fn where_there_is_no_readable_file() {
    let directory = TempDir::new("no-file");
    let folder = directory.join("folder.data");
    fs::create_dir(&folder).unwrap();
    for path in [folder, directory.join("missing.data")] {
        let bad = Bad { what: "no file".into(), path, certain: true };
        check_run("quickstart", &bad);
        check_run("replay", &bad);
        for verb in ["check", "ls", "dump", "recover"] {
            let ended = Job::command(&["file".as_ref(), verb.as_ref(), bad.path.as_os_str()], 1 << 30).run();
            check_words(&ended, &bad, verb);
            assert_eq!(ended.status.code(), Some(1), "{verb}: {}", ended.stderr);
        }
    }
}

#[test]
fn without_permission_to_read() {
    let directory = TempDir::new("forbidden");
    let Some(user) = User::new("without_permission_to_read", &directory) else { return };
    for (example, name) in [("quickstart", "zee_mu0.parquet"), ("replay", "replay.data")] {
        let path = directory.join(name);
        fs::copy(examples().join("data").join(name), &path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
        let configuration = user.example(example);
        let files = format!("input.files={}", list(&path));
        let (status, said) = user.run(&["run".as_ref(), configuration.as_ref(), "--set".as_ref(), files.as_ref()]);
        assert!(matches!(status, Some(1 | 2)) && said.contains(name) && !said.contains("panicked"), "{said}");
        for verb in ["check", "ls", "dump", "recover"] {
            let (status, said) = user.run(&["file".as_ref(), verb.as_ref(), path.as_ref()]);
            assert!(status == Some(1) && said.contains(name) && !said.contains("panicked"), "{said}");
        }
    }
}

#[test]
fn where_nothing_can_be_written() {
    let directory = TempDir::new("not-writable");
    let Some(user) = User::new("where_nothing_can_be_written", &directory) else { return };
    let output = directory.join("locked");
    fs::create_dir(&output).unwrap();
    fs::set_permissions(&output, Permissions::from_mode(0o555)).unwrap();
    for (processes, output) in [(false, output.clone()), (true, output.clone()), (false, output.join("deeper"))] {
        let configuration = user.example("quickstart");
        let set = format!("output.directory={:?}", output.display().to_string());
        let mut arguments: Vec<&OsStr> = vec![
            "run".as_ref(),
            configuration.as_ref(),
            "--set".as_ref(),
            set.as_ref(),
            "--events".as_ref(),
            "50".as_ref(),
        ];
        arguments.extend(processes.then_some(OsStr::new("--processes")));
        let (status, said) = user.run(&arguments);
        assert_eq!(status, Some(1), "{said}");
        assert!(
            said.contains("--set output.directory: expected a directory")
                && said.contains("locked")
                && !said.contains("panicked"),
            "{said}"
        );
    }
}

#[test]
fn where_the_output_directory_is_a_file() {
    let directory = TempDir::new("output-file");
    let file = directory.join("occupied");
    fs::write(&file, "").unwrap();
    for processes in [false, true] {
        let ended = Job::example("quickstart").recording_into(file.clone()).events(50).processes(processes).run();
        let ended = ended.expect(1);
        assert!(ended.stderr.contains("occupied: it is a file"), "{}", ended.stderr);
    }
}

/// One process is enough: the input is opened before any other is started.
fn check_run(example: &str, bad: &Bad) {
    let job = Job::example(example)
        .set("input.files", &list(&bad.path))
        .set("ros.pages", "64")
        .events(20)
        .with_memory(4 << 30);
    let ended = job.run();
    check_words(&ended, bad, example);
    assert!(!bad.certain || !ended.status.success(), "{example} takes {}\n{}", bad.what, ended.stdout);
}

/// If it failed, it said why.
fn check_words(ended: &Ended, bad: &Bad, place: &str) {
    let (status, what) = (ended.status.code(), &bad.what);
    assert!(matches!(status, Some(0..=2 | 4)), "{place}, {what}: {:?}\n{}", ended.status, ended.stderr);
    let name = bad.path.file_name().unwrap().to_str().unwrap();
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(status == Some(0) || said.contains(name), "{place}, {what}: {said}");
}

fn list(path: &Path) -> String {
    format!("[{:?}]", path.display().to_string())
}

/// Files made of a good one.
struct Damaged {
    files: Vec<Bad>,
    _directory: TempDir,
}

struct Bad {
    what: String,
    path: PathBuf,
    /// Whether nobody can take it for a good file.
    certain: bool,
}

impl Damaged {
    fn of(good: &Path, places: &[Place]) -> Self {
        let directory = TempDir::new("bad-files");
        let bytes = fs::read(good).unwrap();
        let extension = good.extension().unwrap().to_str().unwrap();
        let mut files = Vec::new();
        let mut add = |what: &str, certain: bool, bytes: &[u8]| {
            let path = directory.join(format!("{}.{extension}", what.replace(' ', "-")));
            fs::write(&path, bytes).unwrap();
            files.push(Bad { what: what.into(), path, certain });
        };
        let (half, last) = (bytes.len() / 2, bytes.len() - 1);
        add("empty", true, &[]);
        add("one byte", true, &bytes[..1]);
        add("truncated early", true, &bytes[..100]);
        add("truncated half way", true, &bytes[..half]);
        add("truncated at the end", true, &bytes[..last]);
        add("random", true, &noise(10_000));
        add("zeros", true, &[0; 10_000]);
        add("good and then random", false, &[&bytes[..half], &noise(half)[..]].concat());
        for place in places {
            let mut changed = bytes.clone();
            let at = place.offset(&bytes);
            changed[at..at + place.bytes.len()].copy_from_slice(place.bytes);
            add(place.what, true, &changed);
        }
        for eighth in 1..8 {
            let mut flipped = bytes.clone();
            flipped[bytes.len() * eighth / 8] ^= 1 << eighth;
            add(&format!("bit flipped at {eighth} of 8"), false, &flipped);
        }
        Self { files, _directory: directory }
    }
}

/// A change that no file survives.
struct Place {
    what: &'static str,
    near: Near,
    /// Offset from there.
    at: usize,
    bytes: &'static [u8],
}

enum Near {
    Start,
    End,
    /// The first word of this value.
    Word(u32),
}

impl Place {
    fn offset(&self, good: &[u8]) -> usize {
        match self.near {
            Near::Start => self.at,
            Near::End => good.len() - self.at,
            Near::Word(word) => {
                let is_it = |bytes: &[u8]| bytes == word.to_le_bytes();
                good.chunks_exact(4).position(is_it).expect("every file has one") * 4 + self.at
            }
        }
    }
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// A user who may not do everything: the one who runs the tests, or, if that is root, another one. The program and the
/// examples are in a directory of their own, as that user may not reach those that were built.
struct User {
    id: Option<u32>,
    program: PathBuf,
    examples: PathBuf,
}

impl User {
    /// `directory` is theirs. `None`, and the test is skipped, if the other user cannot run the program even there.
    fn new(test: &str, directory: &TempDir) -> Option<Self> {
        let built = PathBuf::from(program());
        if fs::metadata("/proc/self").unwrap().uid() != 0 {
            return Some(Self { id: None, program: built, examples: examples() });
        }
        let user = Self { id: Some(NOBODY), program: directory.join("weir"), examples: directory.join("examples") };
        fs::copy(built, &user.program).unwrap();
        fs::create_dir_all(user.examples.join("data")).unwrap();
        for file in ["quickstart.toml", "replay.toml", "data/zee_mu0.parquet", "data/replay.data"] {
            fs::copy(examples().join(file), user.examples.join(file)).unwrap();
        }
        chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let mut answer = None;
        // A process that another test starts meanwhile holds the copied program open for writing until it executes its own.
        within_deadline("the program is closed", || {
            let tried = user.command().arg("--version").output();
            let is_busy = tried.as_ref().is_err_and(|error| error.kind() == ErrorKind::ExecutableFileBusy);
            answer = (!is_busy).then_some(tried);
            !is_busy
        });
        if answer.expect("tried").is_ok_and(|output| output.status.success()) {
            return Some(user);
        }
        testkit::skip(test, "root may do everything, and no other user can run a program in the temporary directory");
        None
    }

    fn example(&self, name: &str) -> PathBuf {
        self.examples.join(name).with_extension("toml")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir("/");
        if let Some(id) = self.id {
            command.uid(id).gid(id);
        }
        command
    }

    /// Status and everything said.
    fn run(&self, arguments: &[&OsStr]) -> (Option<i32>, String) {
        let output = self.command().args(arguments).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }
}

const NOBODY: u32 = 65534;

/// The magic at the end, and the length of the metadata in front of it.
const PARQUET_PLACES: [Place; 2] = [
    Place { what: "wrong marker", near: Near::End, at: 4, bytes: b"PARX" },
    Place { what: "oversized length", near: Near::End, at: 8, bytes: &[0xff, 0xff, 0xff, 0x7f] },
];

/// Marker, size in words and version, of the file, of an event and of a fragment (format note §2, §11).
const RAW_PLACES: [Place; 9] = [
    Place { what: "wrong marker", near: Near::Start, at: 0, bytes: &[0xab] },
    Place { what: "oversized length", near: Near::Start, at: 4, bytes: &[0xff; 4] },
    Place { what: "wrong version", near: Near::Start, at: 8, bytes: &[0x63, 0] },
    Place { what: "wrong marker of an event", near: Near::Word(marker::FULL_EVENT), at: 0, bytes: &[0xab] },
    Place { what: "oversized length of an event", near: Near::Word(marker::FULL_EVENT), at: 4, bytes: &[0xff; 4] },
    Place { what: "wrong version of an event", near: Near::Word(marker::FULL_EVENT), at: 12, bytes: &[0, 0, 0x63, 0] },
    Place { what: "wrong marker of a fragment", near: Near::Word(marker::ROB), at: 0, bytes: &[0xab] },
    Place { what: "oversized length of a fragment", near: Near::Word(marker::ROB), at: 4, bytes: &[0xff; 4] },
    Place { what: "wrong version of a fragment", near: Near::Word(marker::ROB), at: 12, bytes: &[0, 0, 0x63, 0] },
];
