//! Where somebody at a host asks its agent: a socket that the agent's user alone can open, and what is said over it.
//!
//! A question is a line of words. The answer begins with `ok` or `no`, and ends with the connection. A status has a line for the host and
//! one for each application, with tabs between the columns.

use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, str};

use base::time::Time;
use control::states::State;
use membership::agents::NotDone;

use crate::visit::hear;

/// The agent's side. Dropping it removes the socket.
pub(crate) struct Desk {
    listener: UnixListener,
    path: PathBuf,
    /// Those who have not said all, the oldest first.
    visitors: Vec<Visitor>,
}

struct Visitor {
    stream: UnixStream,
    said: Vec<u8>,
    until: Time,
}

/// What somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Status,
    /// These applications, or all.
    Stop(Vec<String>),
    /// The same.
    Start(Vec<String>),
}

/// What an agent says of its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The name of the host in the configuration.
    pub host: String,
    /// What it does.
    pub state: State,
    /// Those that live, and those that have ended and were not started again.
    pub applications: Vec<Local>,
}

/// An application of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// `ros-1`.
    pub name: String,
    /// The id of its process, while it lives.
    pub process: Option<u32>,
    /// Processor time of its process.
    pub cpu: Duration,
    /// Whether run control does not start it, though somebody here wants it back.
    pub is_refused: bool,
    /// How it has ended, and what came of a wish to have it back.
    pub words: String,
}

/// Where the sockets of agents are.
pub(crate) const FOLDER: &str = "agents";
/// What the names of these sockets end with.
pub(crate) const ENDING: &str = "agent";

impl Desk {
    /// For the agent of a host: `HOST.PROCESS.agent`.
    pub(crate) fn open(host: &str) -> io::Result<Self> {
        let path = link::runtime_folder(FOLDER).join(format!("{host}.{}.{ENDING}", std::process::id()));
        let listener = bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path, visitors: Vec::new() })
    }

    /// Answers those who have asked; waits for nobody.
    pub(crate) fn serve(&mut self, now: Time, mut answer: impl FnMut(&Asked) -> Result<Status, NotDone>) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.visitors.push(Visitor { stream, said: Vec::new(), until: now + PATIENCE });
            }
        }
        let too_many = self.visitors.len().saturating_sub(VISITORS_MAX);
        self.visitors.drain(..too_many);
        self.visitors.retain_mut(|visitor| {
            let stays = now < visitor.until && visitor.hear();
            if let Some(line) = visitor.line() {
                let text = match Asked::from_line(line) {
                    Some(asked) => answer(&asked).map_or_else(|why| format!("no\n{why}\n"), |status| status.to_text()),
                    None => "no\nexpected: status, stop or start\n".to_owned(),
                };
                // Whoever takes nothing loses the answer.
                let _ = visitor.stream.write_all(text.as_bytes());
                return false;
            }
            stays
        });
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Somebody may have tidied it away.
        let _ = fs::remove_file(&self.path);
        link::remove_folder(&self.path);
    }
}

/// Another agent that ends removes the folder if it is empty just now: it is made again.
fn bind(path: &std::path::Path) -> io::Result<UnixListener> {
    let mut tries = 0..FOLDER_TRIES;
    loop {
        link::make_folder(path).map_err(io::Error::other)?;
        match UnixListener::bind(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && tries.next().is_some() => {}
            // A former process had the same number, and was killed.
            Err(error) if error.kind() == ErrorKind::AddrInUse && tries.next().is_some() => fs::remove_file(path)?,
            bound => return bound,
        }
    }
}

impl Visitor {
    /// Whether it may say more.
    fn hear(&mut self) -> bool {
        hear(&mut self.stream, &mut self.said, LINE_MAX)
    }

    fn line(&self) -> Option<&str> {
        let end = self.said.iter().position(|byte| *byte == b'\n')?;
        str::from_utf8(&self.said[..end]).ok()
    }
}

impl Asked {
    fn from_line(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let verb = words.next()?;
        let names = words.map(str::to_owned).collect();
        match verb {
            "status" => Some(Self::Status),
            "stop" => Some(Self::Stop(names)),
            "start" => Some(Self::Start(names)),
            _ => None,
        }
    }

    pub(crate) fn to_line(&self) -> String {
        match self {
            Self::Status => "status\n".to_owned(),
            Self::Stop(names) => format!("stop {}\n", names.join(" ")),
            Self::Start(names) => format!("start {}\n", names.join(" ")),
        }
    }
}

impl Status {
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("ok\n{}\t{}\n", self.host, self.state.name());
        for Local { name, process, cpu, is_refused, words } in &self.applications {
            let process = process.unwrap_or_default();
            let words = words.replace(char::is_control, " ");
            text += &format!("{name}\t{process}\t{}\t{}\t{words}\n", cpu.as_micros(), u8::from(*is_refused));
        }
        text
    }

    /// From the answer of an agent behind `ok`.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (host, state) = lines.next()?.split_once('\t')?;
        let application = |line: &str| {
            let mut columns = line.splitn(5, '\t');
            let mut next = || columns.next();
            let (name, process, cpu, is_refused, words) = (next()?, next()?, next()?, next()?, next()?);
            let process = process.parse().ok().filter(|process| *process != 0);
            let cpu = Duration::from_micros(cpu.parse().ok()?);
            let is_refused = is_refused == "1";
            Some(Local { name: name.to_owned(), process, cpu, is_refused, words: words.to_owned() })
        };
        let state = State::ALL.into_iter().find(|other| other.name() == state)?;
        let applications = lines.map(application).collect::<Option<_>>()?;
        Some(Self { host: host.to_owned(), state, applications })
    }
}

/// Whoever asks says a line, and not more.
const LINE_MAX: usize = 64 << 10;
const VISITORS_MAX: usize = 16;
const PATIENCE: Duration = Duration::from_secs(5);
const FOLDER_TRIES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_as_it_is_told() {
        let local = |name: &str, process, words: &str| Local {
            name: name.to_owned(),
            process,
            cpu: Duration::from_micros(7),
            is_refused: process.is_none(),
            words: words.to_owned(),
        };
        let applications = vec![local("ros-1", Some(70), ""), local("sfi-1", None, "killed by SIGKILL")];
        let status = Status { host: "b".to_owned(), state: State::Running, applications };
        let text = status.to_text();
        assert_eq!(Status::from_text(text.strip_prefix("ok\n").unwrap()), Some(status));
        assert_eq!(Status::from_text("b\tflying\n"), None);
        assert_eq!(Status::from_text("b\trunning\nros-1\t70\n"), None);
    }

    #[test]
    fn a_question_is_a_line_of_words() {
        for asked in [Asked::Status, Asked::Stop(vec![]), Asked::Start(vec!["ros-1".to_owned(), "sfi-1".to_owned()])] {
            assert_eq!(Asked::from_line(asked.to_line().trim_end()), Some(asked));
        }
        assert_eq!((Asked::from_line(""), Asked::from_line("dance")), (None, None));
    }
}
