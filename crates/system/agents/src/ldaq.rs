//! `weir ldaq`: asks the agent of the host that somebody is logged in to.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use transport::clock;

use crate::desk::{Asked, ENDING, FOLDER, Local, Status};
use crate::window::{View, Wanted};

/// An agent of this user on this machine.
#[derive(Clone, Debug)]
pub struct Ldaq {
    path: PathBuf,
}

/// Why an agent does not do what is wanted.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum LdaqError {
    #[error("no agent of yours{} runs on this machine", of(name))]
    None { name: Option<String> },
    #[error("several agents of yours run on this machine: name one of {0} with --agent")]
    Several(String),
    #[error("{}: expected a folder that is yours alone", folder.display())]
    Folder { folder: PathBuf },
    #[error("{0}")]
    Refused(String),
    #[error("the agent does not answer: {0}")]
    Silent(#[from] io::Error),
    #[error("{found} of {wanted} events came: {why}")]
    Few { found: usize, wanted: usize, why: String },
    #[error("{name} is not started within {WAIT:?}{}", said(words))]
    Late { name: String, words: String },
}

fn of(name: &Option<String>) -> String {
    name.as_ref().map_or(String::new(), |name| format!(" with the name {name}"))
}

fn said(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

impl LdaqError {
    /// Whether an agent was there, and refused.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Late { .. } | Self::Few { .. })
    }
}

impl Ldaq {
    /// The agent of this name, or the only one there is. Its name is that of its host, or `HOST.PROCESS`.
    ///
    /// # Errors
    /// There is none, there are several, or their folder is not ours alone.
    pub fn find(name: Option<&str>) -> Result<Self, LdaqError> {
        let folder = link::runtime_folder(FOLDER);
        check_owner(&folder)?;
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<(String, PathBuf)> = Vec::new();
        for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == ENDING)) {
            let its = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let host = its.rsplit_once('.').map_or(its.as_str(), |(host, _)| host);
            if name.is_none_or(|name| name == its || name == host) && lives(&path) {
                found.push((its, path));
            }
        }
        found.sort();
        match found.as_slice() {
            [] => Err(LdaqError::None { name: name.map(str::to_owned) }),
            [(_, path)] => Ok(Self { path: path.clone() }),
            several => {
                Err(LdaqError::Several(several.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")))
            }
        }
    }

    /// What it says of its host.
    ///
    /// # Errors
    /// It does not answer.
    pub fn status(&self) -> Result<Status, LdaqError> {
        self.ask(&Asked::Status)
    }

    /// Stops applications, or all of its host, and waits until they have ended; their names.
    ///
    /// # Errors
    /// It refuses, or does not answer.
    pub fn stop(&self, names: &[String]) -> Result<Vec<String>, LdaqError> {
        let meant = self.meant(names, |local| local.process.is_some())?;
        self.ask(&Asked::Stop(names.to_vec()))?;
        match self.wait(&meant, |before, now| now.is_none_or(|now| now.process != before.process)) {
            Ok(_) => Ok(names_of(&meant)),
            // The run has ended without them, and the agent with it.
            Err(LdaqError::Silent(error)) if self.is_gone(&error) => Ok(names_of(&meant)),
            Err(error) => Err(error),
        }
    }

    /// Has run control start applications that were stopped here, or all of them, and waits until it does or refuses; their names.
    ///
    /// # Errors
    /// The agent or run control refuses, or does not answer.
    pub fn start(&self, names: &[String]) -> Result<Vec<String>, LdaqError> {
        let meant = self.meant(names, |local| local.process.is_none())?;
        self.ask(&Asked::Start(names.to_vec()))?;
        let status = self.wait(&meant, |_, now| now.is_some_and(|now| now.process.is_some() || now.is_refused))?;
        let refused = |local: &&Local| local.is_refused && meant.iter().any(|other| other.name == local.name);
        match status.applications.iter().find(refused) {
            Some(local) => Err(LdaqError::Refused(format!("{}: {}", local.name, local.words))),
            None => Ok(names_of(&meant)),
        }
    }

    /// Whole events as applications of a host have them: those of a role such as `ros`, or the one of this name. Each of the `count` goes
    /// to `take` when it comes.
    ///
    /// # Errors
    /// No such application lives here, none of them shows its events, or too few come.
    pub fn sample(
        &self,
        of: &str,
        wanted: Wanted,
        count: usize,
        mut take: impl FnMut(Vec<u8>),
    ) -> Result<(), LdaqError> {
        let (mut views, mut hidden) = (Vec::new(), BTreeMap::new());
        for (name, process) in self.showing(of)? {
            match View::open(process, wanted).and_then(|view| Ok((view.handle()?, view))) {
                Ok((handle, view)) => views.push((name, handle, view)),
                Err(cause) => _ = hidden.insert(name, in_words(cause)),
            }
        }
        let (mut found, mut is_silent) = (0, false);
        thread::scope(|scope| {
            let (shows, shown) = sync_channel(1);
            let mut handles = Vec::new();
            for (name, handle, view) in views {
                let shows = shows.clone();
                scope.spawn(move || show(&name, view, &shows));
                handles.push(handle);
            }
            drop(shows);
            while found < count && !is_silent {
                match shown.recv_timeout(SHOWN_IN) {
                    Ok((_, Ok(event))) => {
                        take(event);
                        found += 1;
                    }
                    Ok((name, Err(cause))) => _ = hidden.insert(name, in_words(cause)),
                    Err(RecvTimeoutError::Timeout) => is_silent = true,
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            handles.iter().for_each(|handle| _ = handle.shutdown(Shutdown::Both));
        });
        if found < count { Err(few((found, count), is_silent, &hidden)) } else { Ok(()) }
    }

    /// The names and processes of those that are meant and live.
    fn showing(&self, of: &str) -> Result<Vec<(String, u32)>, LdaqError> {
        let Status { applications, host, .. } = self.status()?;
        let role = |local: &Local| local.name.split('-').next().unwrap_or_default().to_owned();
        let show: Vec<&Local> = applications.iter().filter(|local| SHOWING.contains(&&*role(local))).collect();
        let meant = show.iter().filter(|local| local.name == of || role(local) == of);
        let living: Vec<_> = meant.filter_map(|local| Some((local.name.clone(), local.process?))).collect();
        if living.is_empty() {
            let all = show.iter().map(|local| local.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(LdaqError::Refused(format!(
                "no {of} on {host} has events: expected one of {all}, or its role"
            )));
        }
        Ok(living)
    }

    /// Those that are named, or else those that can be meant.
    fn meant(&self, names: &[String], can_be: impl Fn(&Local) -> bool) -> Result<Vec<Local>, LdaqError> {
        let all = self.status()?.applications.into_iter();
        Ok(all.filter(|local| if names.is_empty() { can_be(local) } else { names.contains(&local.name) }).collect())
    }

    /// Looks again and again, until all are as they should be: how each was, and is.
    #[expect(
        clippy::disallowed_methods,
        reason = "an agent of another process tells nobody that something has changed"
    )]
    fn wait(&self, meant: &[Local], is_done: impl Fn(&Local, Option<&Local>) -> bool) -> Result<Status, LdaqError> {
        let until = clock::now() + WAIT;
        loop {
            let status = self.status()?;
            let now = |before: &Local| status.applications.iter().find(|local| local.name == before.name);
            let Some(late) = meant.iter().find(|before| !is_done(before, now(before))) else { return Ok(status) };
            if until <= clock::now() {
                let words = now(late).map_or(String::new(), |local| local.words.clone());
                return Err(LdaqError::Late { name: late.name.clone(), words });
            }
            thread::sleep(LOOK);
        }
    }

    /// Whether no agent is there any more.
    fn is_gone(&self, error: &io::Error) -> bool {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => true,
            // It has left in between, or had no place for one more.
            ErrorKind::BrokenPipe => !lives(&self.path),
            _ => false,
        }
    }

    fn ask(&self, asked: &Asked) -> Result<Status, LdaqError> {
        let mut stream = UnixStream::connect(&self.path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(asked.to_line().as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(in_words)?;
        match answer.split_once('\n') {
            Some(("ok", status)) => Ok(Status::from_text(status).ok_or_else(not_understood)?),
            Some(("no", why)) => Err(LdaqError::Refused(why.trim_end().to_owned())),
            _ => Err(not_understood().into()),
        }
    }
}

/// Has one that shows events say all of them, and at the end why there are no more.
fn show(name: &str, mut view: View, shows: &SyncSender<(String, io::Result<Vec<u8>>)>) {
    loop {
        let event = view.next();
        let is_last = event.is_err();
        if shows.send((name.to_owned(), event)).is_err() || is_last {
            return;
        }
    }
}

/// Why fewer events came than were wanted.
fn few((found, wanted): (usize, usize), is_silent: bool, hidden: &BTreeMap<String, io::Error>) -> LdaqError {
    let silence = format!("then none for {SHOWN_IN:?}: expected a run that goes on, and a trigger type that it has");
    let silence = is_silent.then_some(silence);
    let hidden = hidden.iter().map(|(name, cause)| format!("{name} shows none: {cause}"));
    let why = silence.into_iter().chain(hidden).collect::<Vec<_>>().join("; ");
    LdaqError::Few { found, wanted, why }
}

fn names_of(meant: &[Local]) -> Vec<String> {
    meant.iter().map(|local| local.name.clone()).collect()
}

/// A time-out says how long that was.
fn in_words(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, format!("it has said nothing for {PATIENCE:?}"))
        }
        ErrorKind::UnexpectedEof => io::Error::new(ErrorKind::UnexpectedEof, "it has ended, or left the run"),
        _ => error,
    }
}

/// A folder in the temporary folder of all users may be somebody else's, who would answer for our agents.
#[expect(clippy::disallowed_methods, reason = "nothing is made there: the owner of what lies there is looked at")]
fn check_owner(folder: &Path) -> Result<(), LdaqError> {
    let shared = std::env::temp_dir();
    let is_in = |folder: &&Path| folder.starts_with("/tmp") || folder.starts_with(&shared);
    for folder in [Some(folder), folder.parent()].into_iter().flatten().filter(is_in) {
        if folder == shared || folder == Path::new("/tmp") {
            continue;
        }
        match fs::symlink_metadata(folder) {
            Ok(found) if found.is_dir() && found.uid() == user() && found.mode() & 0o077 == 0 => {}
            // Then no agent is there.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            _ => return Err(LdaqError::Folder { folder: folder.to_owned() }),
        }
    }
    Ok(())
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn not_understood() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "what it says is not understood: is it of another version?")
}

/// Whether an agent listens there. What one has left that was killed is removed.
fn lives(path: &PathBuf) -> bool {
    let refused = |error: &io::Error| error.kind() == ErrorKind::ConnectionRefused;
    let connected = UnixStream::connect(path);
    if connected.as_ref().is_err_and(refused) {
        // Somebody else may remove it as well.
        let _ = fs::remove_file(path);
    }
    connected.is_ok()
}

const WAIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(5);
/// The next event.
const SHOWN_IN: Duration = Duration::from_secs(30);
/// Roles that have events in hand.
const SHOWING: [&str; 4] = ["ros", "ebif", "sfi", "efd"];

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;

    use control::states::State;
    use testkit::TempDir;
    use transport::poller::Poller;

    use super::*;
    use crate::window::Window;
    use crate::window::tests::made_up;

    /// One application shows two events and ends, another one is not there any more.
    #[test]
    fn what_came_is_taken_also_where_it_is_too_little() {
        let folder = TempDir::new("ldaq");
        let path = folder.join("a.1.agent");
        let desk = UnixListener::bind(&path).unwrap();
        let mut poller = Poller::new().unwrap();
        let mut window = Window::of(made_up(3), &mut poller).unwrap();
        let sampling = thread::spawn(move || {
            let (wanted, mut taken) = (Wanted { trigger_types: [0; 4], prescale: 1 }, Vec::new());
            let sampled = Ldaq { path }.sample("ros", wanted, 3, |event| taken.push(event));
            (sampled.unwrap_err(), taken)
        });
        let local = |name: &str, process| Local {
            name: name.to_owned(),
            process: Some(process),
            cpu: Duration::ZERO,
            is_refused: false,
            words: String::new(),
        };
        let applications = vec![local("ros-1", made_up(3)), local("ros-2", made_up(4)), local("sfi-1", made_up(5))];
        let status = Status { host: "a".to_owned(), state: State::Running, applications };
        let (mut asked, _) = desk.accept().unwrap();
        BufReader::new(&asked).read_line(&mut String::new()).unwrap();
        asked.write_all(status.to_text().as_bytes()).unwrap();
        drop(asked);
        while window.serve(clock::now(), &mut poller).is_none() {}
        window.show(b"one");
        window.show(b"another");
        window.serve(clock::now(), &mut poller);
        drop(window);

        let (error, taken) = sampling.join().unwrap();
        assert_eq!(taken, [b"one".to_vec(), b"another".to_vec()]);
        assert!(error.is_refusal());
        let said = error.to_string();
        assert!(
            said.starts_with("2 of 3 events came: ros-1 shows none: it has ended, or left the run; ros-2 shows none: "),
            "{said}"
        );
    }
}
