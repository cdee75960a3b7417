//! A run of the program under watch.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use benchmarks::lossy;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::TempDir;
use transport::clock;

use crate::children;

/// A run that is put together: its configuration, changes of keys, further arguments.
pub(crate) struct Job {
    directory: TempDir,
    arguments: Vec<OsString>,
    output: PathBuf,
    /// Arguments of the shell's `ulimit`.
    limit: Option<String>,
    /// Commands of a shell in a network of its own.
    network: Option<String>,
    /// A command, and its arguments, that starts the program given after them.
    launcher: Vec<String>,
    environment: Vec<(String, OsString)>,
}

impl Job {
    /// A run of an example of the project.
    pub(crate) fn example(name: &str) -> Self {
        Self::of(&examples().join(name).with_extension("toml"))
    }

    /// A run of any configuration; it records into a directory of its own.
    pub(crate) fn of(configuration: &Path) -> Self {
        let directory = TempDir::new("end-to-end");
        let output = directory.join("out");
        let summary = directory.join("summary.json").into();
        let arguments = vec!["run".into(), configuration.into(), "--summary".into(), summary];
        let job = Self { arguments, output: output.clone(), ..Self::in_directory(directory) };
        // Whatever waits here is waited for by a busy machine, too; and there level 2 may decide late.
        let job = job.recording_into(output).set("processes.start_timeout", "240 s").set("run.stop_timeout", "60 s");
        let job = job.set("processes.hang_timeout", "240 s");
        job.set("run.tolerate.level2_forced", "100 %").set("run.tolerate.level2_incomplete", "100 %")
    }

    /// Any other command of the program, which may use this much memory.
    pub(crate) fn command(arguments: &[&OsStr], memory_bytes_max: u64) -> Self {
        let arguments = arguments.iter().map(Into::into).collect();
        Self { arguments, ..Self::in_directory(TempDir::new("end-to-end")) }.with_memory(memory_bytes_max)
    }

    /// `weir scan` of a plan, whose text gets the directory of the job for `{here}` and that of the examples for `{examples}`.
    pub(crate) fn scan(plan: &str) -> Self {
        let job = Self::in_directory(TempDir::new("end-to-end"));
        let (here, examples) = (job.directory().display().to_string(), examples().display().to_string());
        let (path, text) = (job.directory().join("scan.toml"), plan.replace("{here}", &here));
        fs::write(&path, text.replace("{examples}", &examples)).unwrap();
        Self { arguments: vec!["scan".into(), path.into()], ..job }
    }

    fn in_directory(directory: TempDir) -> Self {
        let (output, arguments, environment) = (directory.join("out"), Vec::new(), Vec::new());
        Self { directory, arguments, output, limit: None, network: None, launcher: Vec::new(), environment }
    }

    /// Where it is to run.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Lets each process use this much address space: an allocation by what a file claims fails.
    pub(crate) fn with_memory(self, memory_bytes_max: u64) -> Self {
        self.limited(format!("-v {}", memory_bytes_max >> 10))
    }

    /// Under a limit, as arguments of the shell's `ulimit` name it.
    pub(crate) fn limited(self, limit: String) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// With a variable of the environment.
    pub(crate) fn environment(mut self, name: &str, value: &Path) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// In a network of its own that drops so many in 100 of the datagrams.
    pub(crate) fn losing(self, percent: u32) -> Self {
        self.in_network(lossy::network(percent) + "exec \"$0\" \"$@\"")
    }

    /// In a network of its own, run by these commands of a shell as `"$0" "$@"`.
    pub(crate) fn in_network(self, commands: String) -> Self {
        Self { network: Some(commands), ..self }
    }

    /// In a network namespace that has a name.
    pub(crate) fn in_namespace(self, name: &str) -> Self {
        self.launched_by(&["ip", "netns", "exec", name])
    }

    /// Started by a command that gets the program after these arguments; within what it is launched by already.
    pub(crate) fn launched_by(mut self, command: &[&str]) -> Self {
        self.launcher.extend(command.iter().map(|&word| word.to_owned()));
        self
    }

    /// Records into this directory.
    pub(crate) fn recording_into(mut self, output: PathBuf) -> Self {
        let directory = format!("{:?}", output.display().to_string());
        self.output = output;
        self.set("output.directory", &directory)
    }

    /// `--set key=value`.
    pub(crate) fn set(self, key: &str, value: &str) -> Self {
        self.with(&["--set", &format!("{key}={value}")])
    }

    /// Further arguments.
    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(Into::into));
        self
    }

    /// Without deadlines that a busy machine may miss. With them data that are only late would be given up or asked for
    /// again, and level 2 would decide without some of them.
    pub(crate) fn patient(self) -> Self {
        let timeouts = ["l2sv.timeout", "l2pu.request_timeout", "ros.request_timeout", "sfi.request_timeout"];
        let keys = timeouts.into_iter().chain(["dfm.build_timeout", "pt.timeout"]);
        let text = fs::read_to_string(&self.arguments[1]).unwrap();
        let lines: Vec<&str> = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).collect();
        let has_table = |key: &&str| lines.contains(&&*format!("[{}]", key.split_once('.').unwrap().0));
        let keys: Vec<&str> = keys.filter(has_table).collect();
        assert!(!keys.is_empty(), "a table for each part: {text}");
        keys.into_iter().fold(self, |job, key| job.set(key, "60 s"))
    }

    /// With a key of its partition, which only a file may hold.
    pub(crate) fn with_key(mut self, key: &str) -> Self {
        let text = fs::read_to_string(&self.arguments[1]).unwrap();
        let with_key = text.replacen("[partition]", &format!("[partition]\nkey = {key:?}"), 1);
        assert_ne!(text, with_key);
        let path = self.directory.join("with-key.toml");
        fs::write(&path, with_key.replace("\"data/", &format!("\"{}/data/", examples().display()))).unwrap();
        self.arguments[1] = path.into();
        self
    }

    /// Until it is stopped; it goes on for as long as a test may take.
    pub(crate) fn endless(self) -> Self {
        self.with(&["--duration", "1h"])
    }

    /// `--events`.
    pub(crate) fn events(self, events: u64) -> Self {
        self.with(&["--events", &events.to_string()])
    }

    /// With a process for each application, or all in one.
    pub(crate) fn processes(self, yes: bool) -> Self {
        if yes { self.with(&["--processes"]) } else { self }
    }

    /// `weir check` of the same.
    pub(crate) fn checked(self) -> Self {
        self.instead("check")
    }

    /// `weir serve` of the same at a free port; commands of this test alone find it.
    pub(crate) fn served(self) -> Self {
        self.served_at("127.0.0.1:0")
    }

    pub(crate) fn served_at(self, address: &str) -> Self {
        let here = self.directory.path().to_owned();
        self.instead("serve").with(&["--listen", address]).environment("XDG_RUNTIME_DIR", &here)
    }

    /// Another command that writes no summary.
    fn instead(mut self, command: &str) -> Self {
        self.arguments[0] = command.into();
        self.arguments.retain(|argument| argument != "--summary" && !Path::new(argument).ends_with("summary.json"));
        self
    }

    /// Starts it.
    pub(crate) fn start(self) -> Running {
        let child = spawn(self.program().args(&self.arguments), &self.directory, &self.environment);
        let Self { directory, output, launcher, arguments, environment, .. } = self;
        Running { directory: Some(directory), output, child, launcher, arguments, environment, former: Vec::new() }
    }

    fn program(&self) -> Command {
        let program = program();
        if let Some(commands) = &self.network {
            return lossy::in_network(commands, program.as_ref());
        }
        if !self.launcher.is_empty() {
            return launched(&self.launcher);
        }
        let Some(limit) = &self.limit else { return Command::new(program) };
        let mut shell = Command::new("sh");
        let limited = format!("ulimit {limit} && exec \"$0\" \"$@\"");
        shell.args(["-c", &limited, &program]);
        shell
    }

    /// Starts it and waits for its end.
    pub(crate) fn run(self) -> Ended {
        self.start().end()
    }
}

/// The program, by a command that starts it, if there is one.
fn launched(launcher: &[String]) -> Command {
    let Some((launcher, arguments)) = launcher.split_first() else { return Command::new(program()) };
    let mut command = Command::new(launcher);
    command.args(arguments).arg(program());
    command
}

/// Starts a program in the directory of a test.
fn spawn(command: &mut Command, directory: &TempDir, environment: &[(String, OsString)]) -> Child {
    let open = |name: &str| File::create(directory.join(name)).unwrap();
    command
        .current_dir(directory.path())
        .env(children::MARK, directory.path())
        // What those that are killed leave goes with the test.
        .env("TMPDIR", directory.path())
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(open("stdout"))
        .stderr(open("stderr"))
        .spawn()
        .unwrap()
}

/// A run that goes on. Dropping it ends all its processes.
pub(crate) struct Running {
    directory: Option<TempDir>,
    output: PathBuf,
    child: Child,
    launcher: Vec<String>,
    arguments: Vec<OsString>,
    environment: Vec<(String, OsString)>,
    /// Those in whose place others have come.
    former: Vec<Child>,
}

impl Running {
    /// The same command once more in the same directory, with further arguments, in the place of the process that was started before. That
    /// one has ended, or is left to itself.
    pub(crate) fn again(&mut self, further: &[&str]) {
        let directory = self.directory.as_ref().expect("there until the end");
        fs::rename(directory.join("stderr"), directory.join("stderr.former")).unwrap();
        let mut command = self.program();
        let child = spawn(command.args(&self.arguments).args(further), directory, &self.environment);
        self.former.push(core::mem::replace(&mut self.child, child));
    }

    /// The program, in the same network.
    pub(crate) fn program(&self) -> Command {
        launched(&self.launcher)
    }

    /// The network that the process is in, if it may be another one than that of the test.
    pub(crate) fn network(&self) -> Option<PathBuf> {
        (!self.launcher.is_empty()).then(|| format!("/proc/{}/ns/net", self.pid()).into())
    }

    /// How the first process has ended, in whose place others have come.
    pub(crate) fn end_of_first(&mut self) -> ExitStatus {
        self.former.first_mut().expect("another one has come").wait().unwrap()
    }

    /// How the process has ended that was started last, while others of it live on.
    pub(crate) fn end_of_last(&mut self) -> ExitStatus {
        self.status()
    }

    /// The process that was started.
    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Its directory.
    pub(crate) fn directory(&self) -> &TempDir {
        self.directory.as_ref().expect("there until the end")
    }

    /// Where it records.
    pub(crate) fn output(&self) -> PathBuf {
        self.output.clone()
    }

    /// What it has written to its error output so far.
    pub(crate) fn error_output(&self) -> String {
        fs::read_to_string(self.directory().join("stderr")).unwrap()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// The process of an application, by its command line.
    pub(crate) fn child(&self, name: &str) -> i32 {
        let found = children::of(self.pid()).into_iter().find(|pid| children::name(*pid).as_deref() == Some(name));
        found.unwrap_or_else(|| panic!("no child {name}\n{}", self.error_output()))
    }

    /// Waits until events have reached the disk.
    pub(crate) fn until_recording(&mut self) {
        let output = self.output();
        self.until("events are recorded", |_| recorded_bytes(&output) > RECORDED_BYTES);
    }

    /// Waits until the run has visibly gone on.
    pub(crate) fn until_more_is_recorded(&mut self) {
        let output = self.output();
        let before = recorded_bytes(&output);
        self.until("more is recorded", |_| recorded_bytes(&output) > before + 10 * RECORDED_BYTES);
    }

    /// Waits for a condition while the run goes on.
    pub(crate) fn until(&mut self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        within_deadline(what, || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("ended with {status} before this: {what}\n{}", self.error_output());
            }
            condition(self)
        });
    }

    /// Waits for the end of the run; nothing of it may be left.
    pub(crate) fn end(mut self) -> Ended {
        let status = self.status();
        let directory = self.directory().path();
        let text = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        let (stdout, stderr) = (text("stdout"), text("stderr"));
        let left: Vec<String> = children::marked(directory).into_iter().filter_map(children::name).collect();
        assert!(left.is_empty(), "processes left: {left:?}\n{stderr}");
        // The tasks of a daemon that was killed are ended by the kernel, which takes its time.
        within_deadline("processing tasks end", || children::marked(directory).is_empty());
        assert!(!stderr.contains("panicked"), "{stderr}");
        let directory = self.directory.take().expect("there until the end");
        let output = core::mem::take(&mut self.output);
        Ended { status, stdout, stderr, directory, output }
    }

    fn status(&mut self) -> ExitStatus {
        let mut status = None;
        let error = self.directory().join("stderr");
        let what = || format!("the run ends; so far: {}", fs::read_to_string(&error).unwrap_or_default());
        if !is_within_deadline(|| {
            status = self.child.try_wait().unwrap();
            status.is_some()
        }) {
            panic!("not within {DEADLINE:?}: {}", what());
        }
        status.expect("waited for")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What has been waited for is not signalled again: its id may be another's by now.
        for child in self.former.iter_mut().chain([&mut self.child]) {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(directory) = &self.directory {
            children::marked(directory.path()).into_iter().for_each(|pid| {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            });
        }
    }
}

/// A run that has ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) directory: TempDir,
    output: PathBuf,
}

impl Ended {
    /// Where it recorded.
    pub(crate) fn output(&self) -> &Path {
        &self.output
    }

    /// The same command in the same directory, with further arguments.
    pub(crate) fn again(self, arguments: &[&str]) -> Job {
        let path = self.directory.join("scan.toml").into();
        let job = Job::in_directory(self.directory);
        Job { arguments: vec!["scan".into(), path], ..job }.with(arguments)
    }

    /// Asserts how it ended.
    pub(crate) fn expect(self, status: i32) -> Self {
        let Self { stdout, stderr, .. } = &self;
        assert_eq!(self.status.code(), Some(status), "\n{stdout}\n{stderr}");
        self
    }
}

/// Sends a signal to a process of a test.
pub(crate) fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap();
}

/// Waits for a condition that nothing announces.
pub(crate) fn within_deadline(what: &str, condition: impl FnMut() -> bool) {
    assert!(is_within_deadline(condition), "not within {DEADLINE:?}: {what}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "nothing wakes a test when a file of another process grows or a process further down ends"
)]
pub(crate) fn is_within_deadline(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = clock::now() + DEADLINE;
    while !condition() {
        if clock::now() > deadline {
            return false;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    true
}

/// The program that is tested.
pub(crate) fn program() -> String {
    testkit::program(env!("CARGO_BIN_EXE_weir"))
}

/// The example of a test beam, which waits for sources that all say numbers.
pub(crate) fn test_beam_by_number() -> String {
    let text = fs::read_to_string(examples().join("test-beam.toml")).unwrap();
    let text = text.replace("events = 10_000\n", "").replace("play = \"emulator\"\n", "");
    let (before, by_time) = text.split_once("match = \"time\"").unwrap();
    before.to_owned() + by_time.split_once("offset = \"0 s\"").unwrap().1
}

/// The examples of the project.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").canonicalize().unwrap()
}

/// Bytes in the files of a directory, finished or not; 0 if there is no directory yet.
pub(crate) fn recorded_bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    // A file may be renamed while it is looked at.
    entries.flatten().filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

/// Far above what any run here takes, so that only a run that hangs meets it.
const DEADLINE: Duration = Duration::from_secs(900);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// A few events of the sample.
const RECORDED_BYTES: u64 = 200_000;
