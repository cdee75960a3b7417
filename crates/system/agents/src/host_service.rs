//! `weir host`: stays on a host, and starts its agent for whoever knows the key of the farm.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use transport::clock;
use transport::error::OsError;
use transport::random::random;

use crate::call::{BETWEEN, COMPLAINED, ENDED, PATIENCE, TICK, in_time, turn};
use crate::farm_key::{FarmKey, SERVICE};
use crate::peer::{Gone, Heard, Peer};
use crate::process::describe;

/// The service of a host.
pub struct HostService {
    listener: TcpListener,
    key: FarmKey,
    program: PathBuf,
}

/// Why there is no service.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum HostServiceError {
    #[error("nobody can listen on {address}: {cause}")]
    Listen { address: SocketAddr, cause: io::Error },
    #[error("this program does not know where it is: {0}")]
    Program(io::Error),
}

impl HostService {
    /// Listens at an address.
    ///
    /// # Errors
    /// Nobody can listen there.
    pub fn listen(address: SocketAddr, key: FarmKey) -> Result<Self, HostServiceError> {
        let listener = TcpListener::bind(address).map_err(|cause| HostServiceError::Listen { address, cause })?;
        let program = std::env::current_exe().map_err(HostServiceError::Program)?;
        Ok(Self { listener, key, program })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves for ever, and tells who called for what. Each call has a thread.
    pub fn serve(self, tell: impl Fn(&str) + Clone + Send + 'static) -> ! {
        let calls = Arc::new(());
        loop {
            let Ok((stream, from)) = self.listener.accept() else {
                // No descriptor is free, or the caller is gone already.
                pause();
                continue;
            };
            if Arc::strong_count(&calls) > CALLS_MAX {
                tell(&format!("{from}: refused, as {CALLS_MAX} calls are on"));
                continue;
            }
            let (key, program, tell_it, call) =
                (self.key.clone(), self.program.clone(), tell.clone(), Arc::clone(&calls));
            let answer = move || {
                let how = answer(stream, &key, &program, |words| tell_it(&format!("{from}: {words}")));
                tell_it(&format!("{from}: {}", how.unwrap_or_else(|error| format!("refused: {error}"))));
                drop(call);
            };
            if let Err(error) = thread::Builder::new().name("call".into()).spawn(answer) {
                // Its stream went with the closure, so the caller is told.
                tell(&format!("{from}: refused: no thread can be begun: {error}"));
                pause();
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum NotAnswered {
    #[error(transparent)]
    Gone(#[from] Gone),
    #[error("it asks for something else than an agent")]
    Other,
    #[error("the agent cannot be started: {0}")]
    NotStarted(#[from] io::Error),
    #[error(transparent)]
    Os(#[from] OsError),
}

/// How the agent has ended that somebody asked for.
fn answer(stream: TcpStream, key: &FarmKey, program: &Path, tell: impl Fn(&str)) -> Result<String, NotAnswered> {
    let mut peer = Peer::accepted(stream, (key.secret(), SERVICE), random()?)?;
    let (arguments, introduction) = asked(&mut peer)?;
    let mut child = Command::new(program)
        .args(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    tell(&format!("process {} is weir {}", child.id(), arguments.join(" ")));
    // A child that is gone already is found when it is reaped.
    let _ = child.stdin.take().expect("its input is a pipe").write_all(&introduction);
    let complaints = complaints(child.stderr.take().expect("its complaints go to a pipe"));
    Ok(attend(child, &complaints, peer))
}

/// The arguments of an agent, and what goes to its standard input.
fn asked(peer: &mut Peer) -> Result<(Vec<String>, Vec<u8>), NotAnswered> {
    let (until, mut frames) = (clock::now() + PATIENCE, Vec::new());
    loop {
        let (heard, result) = turn(peer, Some(TICK));
        frames.extend(heard.into_iter().filter_map(|heard| match heard {
            Heard::Frame(frame) => Some(frame),
            Heard::Met(_) => None,
        }));
        if let [arguments, introduction] = &frames[..] {
            let arguments = core::str::from_utf8(arguments).map_err(|_| NotAnswered::Other)?;
            let arguments: Vec<String> = arguments.split(BETWEEN).map(str::to_owned).collect();
            let introduction = peer.confided(introduction)?;
            return if is_agent(&arguments) { Ok((arguments, introduction)) } else { Err(NotAnswered::Other) };
        }
        result?;
        in_time(until)?;
    }
}

/// Nothing else is started for anybody.
fn is_agent(arguments: &[String]) -> bool {
    let [agent, rest @ ..] = arguments else { return false };
    let names: Vec<&str> = rest.iter().step_by(2).map(String::as_str).collect();
    agent == "agent" && rest.len() == 8 && names == ["--host", "--join", "--at", "--directory"]
}

/// What a process complains of, while it does.
fn complaints(mut from: ChildStderr) -> Receiver<Vec<u8>> {
    let (said, heard) = sync_channel(COMPLAINTS_MAX);
    // Without a thread nobody hears them, and the agent runs all the same.
    let _ = thread::Builder::new().name("complaints".into()).spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            // It goes on taking them when nobody wants to hear: a full pipe would stop the agent.
            let _ = said.send(bytes[..len].to_vec());
        }
    });
    heard
}

/// Tells the caller what the agent complains of, until that has ended. An agent whose caller is gone goes on: it hears run control itself.
fn attend(mut child: Child, complaints: &Receiver<Vec<u8>>, peer: Peer) -> String {
    let mut peer = Some(peer);
    let status = loop {
        complaints.try_iter().for_each(|words| say(&mut peer, COMPLAINED, &words));
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
        match &mut peer {
            Some(caller) => {
                if turn(caller, Some(TICK)).1.is_err() {
                    peer = None;
                }
            }
            None => complaints.recv_timeout(TICK).into_iter().for_each(drop),
        }
    };
    // Its applications may have inherited the pipe, so nobody waits for its end.
    while let Ok(words) = complaints.recv_timeout(LAST_WORDS) {
        say(&mut peer, COMPLAINED, &words);
    }
    let code = status.as_ref().ok().and_then(|status| status.code()).map_or(1, |code| code as u8);
    let how = status.map_or_else(|error| error.to_string(), describe);
    if code != 0 {
        say(&mut peer, COMPLAINED, format!("weir agent {how}\n").as_bytes());
    }
    say(&mut peer, ENDED, &[code]);
    let until = clock::now() + PATIENCE;
    // The caller ends the connection when it has heard that.
    while let Some(caller) = &mut peer
        && turn(caller, Some(TICK)).1.is_ok()
        && in_time(until).is_ok()
    {}
    format!("process {}: {how}", child.id())
}

fn say(peer: &mut Option<Peer>, what: u8, words: &[u8]) {
    if let Some(caller) = peer
        && caller.say(&[&[what], words].concat()).is_err()
    {
        *peer = None;
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing announces that a descriptor is free")]
fn pause() {
    thread::sleep(TICK);
}

/// Far more partitions than a host serves, and strangers beside them.
const CALLS_MAX: usize = 64;
const COMPLAINTS_MAX: usize = 64;
const LAST_WORDS: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_agents_are_started() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(is_agent(&words("agent --host b --join 10.0.0.1:1 --at 10.0.0.2 --directory /data")));
        for line in [
            "",
            "agent",
            "run --host b --join 10.0.0.1:1 --at 10.0.0.2 --directory /data",
            "agent --host b --join 10.0.0.1:1 --at 10.0.0.2",
            "agent --host b --join 10.0.0.1:1 --at 10.0.0.2 --directory /data --help",
        ] {
            assert!(!is_agent(&words(line)), "{line}");
        }
    }
}
