//! What run control keeps in a file, so that its next life can take over its agents, and the run that goes on below them.
//!
//! Each life has a file of its own, which is never older than a second or so while that life lives. Who takes over says so in the file that it has locked, writes its own and takes the former one away.
//! That tells a former life that still lives to keep its hands off. With a key in the configuration the file holds no secret: who takes over has to know the key.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use agents::Fence;
use base::ids::Incarnation;
use configuration::Partition;
use membership::agents::Leases;
use membership::agents::words::fingerprint;
use membership::run_secret::RunSecret;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use stamps::clock::TimeOfDay;
use transport::clock;
use transport::random::random;

use crate::differences::first_difference;

/// Where run control keeps what its next life has to know. Only one process at a time has it. Clones are the same.
#[derive(Clone, Debug)]
pub struct Keeping(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    /// Locked as long as this process lives. It says who may conduct.
    lock: File,
    lock_path: PathBuf,
    /// What stands there if that is this process.
    words: String,
    /// What this process does when another one has taken over.
    on_taken: fn(),
}

/// What a former life of run control has left: a run, or agents without one.
#[derive(Clone, Debug)]
pub struct Left {
    /// Its life.
    pub(crate) life: Incarnation,
    pub(crate) partition: Partition,
    /// The first secret, from which the others follow.
    pub(crate) secret: RunSecret,
    pub(crate) content: Content,
    /// Whether nothing of it can live any more.
    is_over: bool,
}

/// What is in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Content {
    pub(crate) version: u32,
    /// The configuration that run control was started with.
    pub(crate) configuration: String,
    /// Whether a run goes on.
    pub(crate) goes_on: bool,
    /// The configuration of the run, or of the last one.
    pub(crate) run: String,
    pub(crate) origin: Origin,
    /// Which of the secrets that follow from the first one members and agents have.
    pub(crate) members_secret: String,
    pub(crate) agents_secret: String,
    /// Life and address of the agent of each host.
    pub(crate) agents: Vec<(u32, Option<String>)>,
    pub(crate) began_ms: u64,
    pub(crate) is_paused: bool,
    pub(crate) members: Vec<Member>,
    pub(crate) returned: Vec<Returned>,
    pub(crate) dead: Vec<u16>,
    pub(crate) reasons: Vec<String>,
    pub(crate) away: Vec<Away>,
}

/// Where the first secret comes from: the key of the configuration and this number, or else it is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    Nonce(String),
    Secret(String),
}

/// An application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) node: u16,
    pub(crate) life: u32,
    pub(crate) address: Option<String>,
    pub(crate) is_gone: bool,
    /// Messages, as they travel.
    pub(crate) commands: Vec<String>,
    pub(crate) newest: Option<String>,
    pub(crate) former: Option<String>,
    pub(crate) is_cut_short: bool,
}

/// An application that was started again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Returned {
    pub(crate) node: u16,
    pub(crate) how: String,
    pub(crate) died_ns: u64,
    pub(crate) back_ns: Option<u64>,
}

/// A time during which a run had no run control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Away {
    /// In milliseconds since 1970.
    pub from_ms: u64,
    /// Likewise.
    pub to_ms: u64,
}

/// Why nothing is kept or taken over.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum NotKept {
    #[error(
        "{}: another process is run control of this partition: end it, or take over what it conducts with --take-over", path.display()
    )]
    InUse { path: PathBuf },
    #[error("{}: {cause}: expected a place for what run control has to find again", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error(
        "{}: {cause}: it is removed when no application of its run is left: try again in {} s", path.display(), whole_seconds(*.wait)
    )]
    Damaged { path: PathBuf, cause: String, wait: Duration },
    #[error(
        "{} is of a run with another {key}: start with the configuration of that run to take it over, or try again in {} s, when no \
         application of the run is left",
        path.display(), whole_seconds(*.wait)
    )]
    Another { path: PathBuf, key: String, wait: Duration },
}

impl NotKept {
    /// Why what was left cannot be taken over.
    fn why_not(&self) -> String {
        match self {
            Self::Another { key, .. } => format!("was kept by run control with another {key}"),
            Self::Damaged { cause, .. } => format!("cannot be read ({cause})"),
            error => error.to_string(),
        }
    }
}

impl Keeping {
    /// Makes this process run control, which keeps files with the beginning `path`. Where another one is, it `takes_over` all the same or
    /// not. If another one takes over from this process, it calls `on_taken`, which should end it.
    ///
    /// # Errors
    /// Another process is run control, or no file can be written.
    pub fn begin(path: &Path, takes_over: bool, on_taken: fn()) -> Result<Self, NotKept> {
        let lock_path = with_ending(path, "lock");
        let failed = |cause| NotKept::File { path: lock_path.clone(), cause };
        let in_use = || NotKept::InUse { path: lock_path.clone() };
        let mut lock = open_lock(&lock_path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
            Err(TryLockError::WouldBlock) if takes_over => {
                lock = take_lock(&lock_path).map_err(failed)?.ok_or_else(in_use)?;
            }
            Err(TryLockError::WouldBlock) => return Err(in_use()),
        }
        // Another one may have put its own there meanwhile.
        if !is_at(&lock, &lock_path).map_err(failed)? {
            return Err(in_use());
        }
        let words = text(&random::<16>().map_err(|error| failed(io::Error::other(error)))?);
        Ok(Self(Arc::new(Kept { path: path.to_owned(), lock, lock_path, words, on_taken })))
    }

    /// What a former life has left, if there is something. What cannot be taken over is removed when nothing of it can live any more:
    /// `say` is told so.
    ///
    /// # Errors
    /// It is of another configuration or key, or cannot be read, and applications may live.
    pub fn left(&self, partition: &Partition, say: impl FnOnce(&str)) -> Result<Option<Left>, NotKept> {
        let Some((life, path)) = self.newest()? else { return Ok(None) };
        let failed = |cause| NotKept::File { path: path.clone(), cause };
        let text = fs::read_to_string(&path).map_err(failed)?;
        let lease = serde_json::from_str(&text).ok().and_then(|content: Content| {
            let was = Partition::parse("what run control kept", &content.configuration, &[]).ok()?;
            Some(was.processes.lease.duration())
        });
        let lease = lease.unwrap_or(partition.processes.lease.duration());
        // One that was written in the future was written by another clock, just now perhaps.
        let age = fs::metadata(&path).and_then(|metadata| metadata.modified()).map_err(failed)?.elapsed();
        let wait = (Leases::new(lease).until_empty() + WRITE_EVERY).saturating_sub(age.unwrap_or_default());
        match self.read(partition, (life, &path, &text), wait) {
            Err(error @ (NotKept::Damaged { .. } | NotKept::Another { .. })) if wait.is_zero() => {
                // Its lock is ours: no run control has it.
                gone(fs::remove_file(&path)).map_err(failed)?;
                let why = error.why_not();
                say(&format!("{} is removed: it {why}, and nothing of its run can live any more", path.display()));
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    fn read(
        &self,
        partition: &Partition,
        (life, path, text): (Incarnation, &Path, &str),
        wait: Duration,
    ) -> Result<Left, NotKept> {
        let damaged = |cause: String| NotKept::Damaged { path: path.to_owned(), cause, wait };
        let content: Content = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        if content.version != VERSION {
            return Err(damaged(format!("version {}, expected {VERSION}", content.version)));
        }
        let another = |key: String| NotKept::Another { path: path.to_owned(), key, wait };
        let parsed = |text: &str| Partition::parse("what run control kept", text, &[]);
        let was = parsed(&content.configuration).map_err(|error| damaged(error.to_string()))?;
        if let Some(key) = first_difference(&was, &partition.without_secrets()) {
            return Err(another(key));
        }
        let key = partition.partition.key.as_ref();
        let secret = match &content.origin {
            Origin::Nonce(nonce) => key.zip(bytes(nonce)).map(|(key, nonce)| RunSecret::new(&key.0, &nonce)),
            Origin::Secret(secret) => bytes(secret).filter(|_| key.is_none()).map(RunSecret::of_bytes),
        };
        let follows = |secret: &RunSecret| follower(secret, &content.members_secret).is_some();
        let secret = secret.filter(follows).ok_or_else(|| another("partition.key".into()))?;
        let mut run = parsed(&content.run).map_err(|error| damaged(error.to_string()))?;
        run.partition.key = partition.partition.key.clone();
        check(&content, &run, partition).map_err(|cause| damaged(cause.to_owned()))?;
        let left = Left { life, partition: run, secret, content, is_over: wait.is_zero() };
        left.secrets().ok_or_else(|| damaged("the secret of agents does not follow from the first one".into()))?;
        Ok(left)
    }

    /// From now on this process may conduct, and no other. The fence tells when that is over.
    pub(crate) fn claim(&self, fence: &Fence) -> io::Result<()> {
        let Kept { lock, lock_path, words, .. } = &*self.0;
        if !is_at(lock, lock_path)? {
            // Nobody has taken over where the file is gone.
            fs::symlink_metadata(lock_path)?;
            self.taken();
            return Err(io::Error::other("another process has become run control"));
        }
        // Not by its path: another one may put its own file there meanwhile.
        lock.set_len(0)?;
        lock.write_all_at(words.as_bytes(), 0)?;
        fence.raise(lock_path.clone(), words.clone());
        Ok(())
    }

    /// The file of a life.
    pub(crate) fn file(&self, Incarnation(life): Incarnation) -> PathBuf {
        with_ending(&self.0.path, &life.to_string())
    }

    /// Another run control has taken over.
    pub(crate) fn taken(&self) {
        (self.0.on_taken)();
    }

    /// Writes the file of a life anew.
    pub(crate) fn write(&self, life: Incarnation, content: &Content) -> io::Result<()> {
        let (new, path) = (self.new_file(life, content)?, self.file(life));
        fs::rename(new, path)
    }

    /// What was written last for a life holds.
    pub(crate) fn confirm(&self, life: Incarnation) -> io::Result<()> {
        let now = UNIX_EPOCH + TimeOfDay::look().at(clock::now());
        File::options().write(true).custom_flags(no_follow()).open(self.file(life))?.set_modified(now)
    }

    /// Takes over from the former life, unless somebody has done so.
    pub(crate) fn succeed(&self, former: Incarnation, life: Incarnation, content: &Content) -> io::Result<()> {
        let new = self.new_file(life, content)?;
        let linked = fs::hard_link(&new, self.file(life));
        let removed = fs::remove_file(new);
        linked?;
        let succeeded = removed.and_then(|()| gone(fs::remove_file(self.file(former))));
        succeeded.inspect_err(|_| self.remove(life))
    }

    /// Only this life goes on: what others have left is of runs that are over. One that died while it wrote has left a part of a file.
    pub(crate) fn remove_others(&self, life: Incarnation) -> Result<(), NotKept> {
        let others = self.files()?.into_iter().filter(|(other, _, _)| *other != life);
        others.into_iter().try_for_each(|(_, path, _)| {
            gone(fs::remove_file(&path)).map_err(|cause| NotKept::File { path: path.clone(), cause })
        })
    }

    /// Nothing can be taken over any more.
    pub(crate) fn remove(&self, life: Incarnation) {
        // One that is gone already is no worse.
        let _ = fs::remove_file(self.file(life));
    }

    fn new_file(&self, life: Incarnation, content: &Content) -> io::Result<PathBuf> {
        let path = with_ending(&self.file(life), "new");
        let text = serde_json::to_vec(content).expect("numbers and texts are JSON");
        gone(fs::remove_file(&path))?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(MODE).custom_flags(no_follow()).open(&path)?;
        let written = file.write_all(&text).and_then(|()| file.sync_data());
        // What was not written is of no use.
        written.inspect_err(|_| _ = fs::remove_file(&path))?;
        Ok(path)
    }

    /// The newest life that has left a file.
    fn newest(&self) -> Result<Option<(Incarnation, PathBuf)>, NotKept> {
        let whole = self.files()?.into_iter().filter(|(_, _, is_whole)| *is_whole);
        Ok(whole.map(|(life, path, _)| (life, path)).max())
    }

    /// The lives that have left files, and whether these were written to their ends.
    fn files(&self) -> Result<Vec<(Incarnation, PathBuf, bool)>, NotKept> {
        let path = &self.0.path;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let failed = |cause| NotKept::File { path: directory.to_owned(), cause };
        let prefix = format!("{}.", path.file_name().unwrap_or_default().to_string_lossy());
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let Some(ending) = name.to_str().and_then(|name| name.strip_prefix(&prefix)) else { continue };
            let life = ending.strip_suffix(NEW).unwrap_or(ending).parse().ok();
            // Another one has to follow.
            let life = life.filter(|life| *life < u32::MAX);
            files.extend(life.map(|life| (Incarnation(life), directory.join(&name), !ending.ends_with(NEW))));
        }
        Ok(files)
    }
}

impl Left {
    /// Whether a run goes on, as far as its run control knew.
    pub fn goes_on(&self) -> bool {
        self.content.goes_on
    }

    /// Whether nothing of it can live any more: its run control was gone for longer than its agents wait.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The number of the run.
    pub fn run_number(&self) -> u32 {
        self.partition.run.number()
    }

    /// The secret that members have, and that of agents.
    pub(crate) fn secrets(&self) -> Option<(RunSecret, RunSecret)> {
        let of = |told: &str| follower(&self.secret, told);
        of(&self.content.members_secret).zip(of(&self.content.agents_secret))
    }
}

/// Whether what was kept fits this partition, whose hosts are counted in the same way.
fn check(content: &Content, run: &Partition, partition: &Partition) -> Result<(), &'static str> {
    let hosts = partition.host.len();
    if content.agents.len() != hosts || run.host.len() != hosts {
        return Err("it has not one agent for each host");
    }
    let is_last = |member: &Member| member.life == u32::MAX;
    if content.members.iter().any(is_last) { Err("no life follows that of a member") } else { Ok(()) }
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(MODE).custom_flags(no_follow()).open(path)
}

/// Puts a lock of this process in the place of another one's; none if a third process does the same. The other one keeps what it has
/// locked, which nobody finds any more. It may act until this one claims the run.
fn take_lock(path: &Path) -> io::Result<Option<File>> {
    let (words, new) = (fs::read(path)?, with_ending(path, "new"));
    let lock = open_lock(&new)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(cause)) => return Err(cause),
        Err(TryLockError::WouldBlock) => return Ok(None),
    }
    if !is_at(&lock, &new)? {
        return Ok(None);
    }
    lock.set_len(0)?;
    lock.write_all_at(&words, 0)?;
    fs::rename(&new, path)?;
    Ok(Some(lock))
}

/// Whether this file is the one that is found there.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// What was gone before is as good as removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn no_follow() -> i32 {
    OFlags::NOFOLLOW.bits().cast_signed()
}

/// The secret that follows from this one, and of which this is the fingerprint.
fn follower(first: &RunSecret, told: &str) -> Option<RunSecret> {
    let told: [u8; 16] = bytes(told)?;
    let all = core::iter::successors(Some(first.clone()), |secret| Some(secret.next()));
    all.take(RUNS_MAX).find(|secret| fingerprint(secret) == told)
}

/// Bytes as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Text as bytes, if it is of any.
pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok();
    let is_plain = rest.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| pairs.iter().map(byte).collect()).flatten()
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    bytes_of(text)?.try_into().ok()
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

pub(crate) const VERSION: u32 = 2;
/// What the name of a file ends with that is not written to its end.
const NEW: &str = ".new";
/// How often a life writes its file, or says that it holds.
pub(crate) const WRITE_EVERY: Duration = Duration::from_secs(1);
/// For this user alone.
const MODE: u32 = 0o600;
/// Far more runs than the same processes have.
const RUNS_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use testkit::TempDir;

    use super::*;

    fn never() {
        panic!("nobody has taken over");
    }

    fn content(secret: &RunSecret, origin: Origin, partition: &Partition) -> Content {
        let configuration = partition.without_secrets().to_toml();
        let told = text(&fingerprint(&secret.next()));
        Content {
            version: VERSION,
            run: configuration.clone(),
            configuration,
            goes_on: true,
            origin,
            members_secret: told.clone(),
            agents_secret: told,
            agents: Vec::new(),
            began_ms: 0,
            is_paused: false,
            members: Vec::new(),
            returned: Vec::new(),
            dead: Vec::new(),
            reasons: Vec::new(),
            away: Vec::new(),
        }
    }

    fn partition(key: Option<&str>) -> Partition {
        let key = key.map_or(String::new(), |key| format!("partition.key = {key:?}\n"));
        Partition::parse(
            "p",
            &format!("{key}partition.name = \"p\"\nros.count = 2\nsfi.count = 1\nrun.number = 7"),
            &[],
        )
        .unwrap()
    }

    #[test]
    fn one_process_at_a_time_is_run_control_unless_another_takes_over() {
        let directory = TempDir::new("keeping");
        let path = directory.join("runs.sqlite.control");
        let first = Keeping::begin(&path, false, || {}).unwrap();
        assert!(matches!(Keeping::begin(&path, false, never), Err(NotKept::InUse { .. })));
        let fence = Fence::default();
        first.claim(&fence).unwrap();
        assert!(!fence.is_passed());
        let second = Keeping::begin(&path, true, never).unwrap();
        assert!(!fence.is_passed(), "it has not taken over yet");
        second.claim(&Fence::default()).unwrap();
        assert!(fence.is_passed());
        let words = fs::read(directory.join("runs.sqlite.control.lock")).unwrap();
        assert!(first.claim(&Fence::default()).is_err(), "it wakes too late");
        assert_eq!(fs::read(directory.join("runs.sqlite.control.lock")).unwrap(), words);
        drop(first);
        assert!(matches!(Keeping::begin(&path, false, never), Err(NotKept::InUse { .. })), "the second one is there");
        drop(second);
        Keeping::begin(&path, false, never).unwrap();
    }

    #[test]
    fn what_is_left_is_taken_over_once_and_for_this_user_alone() {
        let directory = TempDir::new("keeping");
        let keeping = Keeping::begin(&directory.join("control"), false, never).unwrap();
        let (secret, partition) = (RunSecret::of_bytes([7; 32]), partition(None));
        assert!(keeping.left(&partition, silent).unwrap().is_none());
        let content = content(&secret, Origin::Secret(text(&[7; 32])), &partition);
        keeping.write(Incarnation(3), &content).unwrap();
        let mode = fs::metadata(keeping.file(Incarnation(3))).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let left = keeping.left(&partition, silent).unwrap().unwrap();
        assert_eq!(
            (left.life, left.run_number(), left.secrets()),
            (Incarnation(3), 7, Some((secret.next(), secret.next())))
        );
        keeping.succeed(Incarnation(3), Incarnation(4), &content).unwrap();
        assert!(keeping.succeed(Incarnation(3), Incarnation(4), &content).is_err(), "somebody has done so");
        assert_eq!(keeping.left(&partition, silent).unwrap().unwrap().life, Incarnation(4));
        keeping.write(Incarnation(5), &content).unwrap();
        let [part, other] = ["control.3.new", "control.other"].map(|name| directory.join(name));
        fs::write(&part, "half a fi").unwrap();
        fs::write(&other, "of somebody else").unwrap();
        keeping.remove_others(Incarnation(4)).unwrap();
        assert!(!part.exists() && other.exists());
        assert_eq!(keeping.left(&partition, silent).unwrap().unwrap().life, Incarnation(4));
        keeping.remove(Incarnation(4));
        assert!(keeping.left(&partition, silent).unwrap().is_none());
    }

    #[test]
    fn a_file_that_does_not_fit_the_partition_is_damaged() {
        let directory = TempDir::new("keeping");
        let keeping = Keeping::begin(&directory.join("control"), false, never).unwrap();
        let (secret, partition) = (RunSecret::of_bytes([7; 32]), partition(None));
        let whole = content(&secret, Origin::Secret(text(&[7; 32])), &partition);
        let agents = Content { agents: vec![(1, None)], ..whole.clone() };
        let of_agents = Content { agents_secret: text(&[0; 16]), ..whole };
        for content in [agents, of_agents] {
            keeping.write(Incarnation(3), &content).unwrap();
            assert!(matches!(keeping.left(&partition, silent), Err(NotKept::Damaged { .. })));
        }
    }

    #[test]
    fn what_an_interrupted_write_has_left_is_written_anew_and_no_link_is_followed() {
        let directory = TempDir::new("keeping");
        let keeping = Keeping::begin(&directory.join("control"), false, never).unwrap();
        let content = content(&RunSecret::of_bytes([7; 32]), Origin::Secret(text(&[7; 32])), &partition(None));
        let (other, new) = (directory.join("other"), directory.join("control.3.new"));
        fs::write(&other, "another file").unwrap();
        std::os::unix::fs::symlink(&other, &new).unwrap();
        keeping.write(Incarnation(3), &content).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "another file");
        assert!(!new.exists());
    }

    #[test]
    fn another_configuration_or_key_and_a_damaged_file_are_refused() {
        let directory = TempDir::new("keeping");
        let keeping = Keeping::begin(&directory.join("control"), false, never).unwrap();
        let (key, ours) =
            ("a key of at least sixteen characters", partition(Some("a key of at least sixteen characters")));
        let content = content(&RunSecret::new(key, &[1; 16]), Origin::Nonce(text(&[1; 16])), &ours);
        keeping.write(Incarnation::FIRST, &content).unwrap();
        assert!(keeping.left(&ours, silent).unwrap().is_some());
        let refused = |partition: &Partition| match keeping.left(partition, silent) {
            Err(NotKept::Another { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(&partition(Some("another key of sixteen characters or more"))), "partition.key");
        assert_eq!(refused(&partition(None)), "partition.key");
        let mut other = ours.clone();
        other.ros.count += 1;
        assert_eq!(refused(&other), "ros.count");
        let file = keeping.file(Incarnation::FIRST);
        let whole = fs::read(&file).unwrap();
        for bytes in [&whole[..whole.len() / 2], b"", b"{}"] {
            fs::write(&file, bytes).unwrap();
            assert!(matches!(keeping.left(&ours, silent), Err(NotKept::Damaged { .. })));
        }
    }

    #[test]
    fn what_nobody_can_take_over_is_removed_when_nothing_of_it_can_live() {
        let directory = TempDir::new("keeping");
        let keeping = Keeping::begin(&directory.join("control"), false, never).unwrap();
        let (secret, ours) = (RunSecret::of_bytes([7; 32]), partition(None));
        let content = content(&secret, Origin::Secret(text(&[7; 32])), &ours);
        let file = keeping.file(Incarnation(3));
        let age = |s| {
            let file = File::options().write(true).open(&file).unwrap();
            let written = file.metadata().unwrap().modified().unwrap();
            file.set_modified(written - Duration::from_secs(s)).unwrap();
        };
        let mut other = ours.clone();
        other.ros.count += 1;
        keeping.write(Incarnation(3), &content).unwrap();
        age(3);
        assert!(matches!(keeping.left(&other, silent), Err(NotKept::Another { .. })), "its lease is a second");
        age(60);
        assert!(keeping.left(&ours, silent).unwrap().unwrap().is_over());
        keeping.confirm(Incarnation(3)).unwrap();
        assert!(!keeping.left(&ours, silent).unwrap().unwrap().is_over());
        // In each of these ways it cannot be taken over.
        for (partition, bytes) in [(&other, None), (&ours, Some("{}"))] {
            keeping.write(Incarnation(3), &content).unwrap();
            bytes.into_iter().for_each(|bytes| fs::write(&file, bytes).unwrap());
            assert!(keeping.left(partition, silent).is_err() && file.exists());
            age(60);
            let mut said = String::new();
            assert!(keeping.left(partition, |text| text.clone_into(&mut said)).unwrap().is_none());
            assert!(said.contains("control.3") && said.contains("is removed") && !file.exists(), "{said}");
        }
    }

    fn silent(text: &str) {
        panic!("{text}");
    }

    #[test]
    fn bytes_are_read_as_they_are_written() {
        assert_eq!(bytes_of(&text(&[0, 0x7f, 0xff])), Some(vec![0, 0x7f, 0xff]));
        assert!(["0", "0g", "é0", "+1"].iter().all(|text| bytes_of(text).is_none()));
    }
}
