//! `weir host`: stays on a host, and starts its agent for whoever knows the key of the farm.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use transport::clock;
use transport::random::random;

use crate::call::{BETWEEN, COMPLAINED, ENDED, PATIENCE, TICK, in_time, turn};
use crate::farm_key::{FarmKey, SERVICE};
use crate::introduction::LEN_OF_AGENT;
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
        let calls = Arc::new(AtomicUsize::new(0));
        let mut strangers = VecDeque::new();
        loop {
            let Ok((stream, from)) = self.listener.accept() else {
                // No descriptor is free, or the caller is gone already.
                pause();
                continue;
            };
            let has_met = Arc::new(AtomicBool::new(false));
            admit(&mut strangers, &stream, &has_met);
            let (key, program, calls, tell_it) = (self.key.clone(), self.program.clone(), calls.clone(), tell.clone());
            let end = End { stream: stream.try_clone().ok(), has_met: Arc::clone(&has_met) };
            let answer = move || {
                let told = |words: &str| tell_it(&format!("{from}: {words}"));
                told(&answer(stream, &key, &program, (&has_met, &calls), told));
                drop(end);
            };
            if let Err(error) = thread::Builder::new().name("call".into()).spawn(answer) {
                // Its end went with the closure, so the caller is told.
                tell(&format!("{from}: refused: no thread can be begun: {error}"));
                pause();
            }
        }
    }
}

/// The end of a call, whatever else knows its connection. Dropping it tells the caller.
struct End {
    stream: Option<TcpStream>,
    has_met: Arc<AtomicBool>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.has_met.store(true, Ordering::Relaxed);
        // The caller may have ended it first.
        let _ = self.stream.as_ref().map(|stream| stream.shutdown(Shutdown::Both));
    }
}

/// Those who have proved nothing, the oldest first, and whether they have since.
type Strangers = VecDeque<(TcpStream, Arc<AtomicBool>)>;

/// Whoever is too much among those that have proved nothing is the oldest of them.
fn admit(strangers: &mut Strangers, stream: &TcpStream, has_met: &Arc<AtomicBool>) {
    strangers.retain(|(_, has_met)| !has_met.load(Ordering::Relaxed));
    if strangers.len() >= STRANGERS_MAX
        && let Some((oldest, _)) = strangers.pop_front()
    {
        // It may be gone already.
        let _ = oldest.shutdown(Shutdown::Both);
    }
    // One that cannot be shown out goes by its time.
    strangers.extend(stream.try_clone().ok().map(|stream| (stream, Arc::clone(has_met))));
}

#[derive(Debug, thiserror::Error)]
enum NotAnswered {
    #[error("it does not prove that it knows the key of the farm: {0}")]
    Gone(#[from] Gone),
    #[error("it asks for something else than an agent")]
    Other,
    #[error("{CALLS_MAX} agents run here, which is the most")]
    Full,
    #[error("the agent cannot be started: {0}")]
    NotStarted(#[from] io::Error),
}

/// One of the calls of a host.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(calls: &'a AtomicUsize) -> Result<Self, NotAnswered> {
        let place = Self(calls);
        if calls.fetch_add(1, Ordering::Relaxed) < CALLS_MAX { Ok(place) } else { Err(NotAnswered::Full) }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What became of a call.
fn answer(
    stream: TcpStream,
    key: &FarmKey,
    program: &Path,
    (has_met, calls): (&AtomicBool, &AtomicUsize),
    tell: impl Fn(&str),
) -> String {
    let nonce = match random() {
        Ok(nonce) => nonce,
        Err(error) => return format!("refused: {error}"),
    };
    let mut peer = match Peer::accepted(stream, (key.secret(), SERVICE), nonce) {
        Ok(peer) => peer,
        Err(gone) => return format!("refused: {gone}"),
    };
    let started = asked(&mut peer, has_met).and_then(|(arguments, introduction)| {
        let place = Place::take(calls)?;
        let child = start(program, &arguments, &introduction)?;
        tell(&format!("process {} is weir {arguments:?}", child.id()));
        Ok((child, place))
    });
    match started {
        Ok((child, _place)) => attend(child, peer),
        Err(error) => {
            if !peer.is_stranger() {
                let mut peer = Some(peer);
                say(&mut peer, COMPLAINED, format!("weir host: {error}\n").as_bytes());
                take_leave(peer, REFUSED);
            }
            format!("refused: {error}")
        }
    }
}

/// The arguments of an agent, and what goes to its standard input.
fn asked(peer: &mut Peer, has_met: &AtomicBool) -> Result<(Vec<String>, Vec<u8>), NotAnswered> {
    let (until, mut frames) = (clock::now() + PATIENCE, Vec::new());
    loop {
        let (heard, result) = turn(peer, Some(TICK));
        for heard in heard {
            match heard {
                Heard::Met(_) => has_met.store(true, Ordering::Relaxed),
                Heard::Frame(frame) => frames.push(frame),
            }
        }
        match &frames[..] {
            [] | [_] => {}
            [arguments, introduction] => {
                let introduction = peer.confided(introduction)?;
                let arguments = core::str::from_utf8(arguments).map_err(|_| NotAnswered::Other)?;
                let arguments: Vec<String> = arguments.split(BETWEEN).map(str::to_owned).collect();
                let is_right = is_agent(&arguments) && introduction.len() == LEN_OF_AGENT;
                return if is_right { Ok((arguments, introduction)) } else { Err(NotAnswered::Other) };
            }
            _ => return Err(NotAnswered::Other),
        }
        result?;
        in_time(until)?;
    }
}

/// Nothing else is started for anybody.
fn is_agent(arguments: &[String]) -> bool {
    let [agent, rest @ ..] = arguments else { return false };
    let names: Vec<&str> = rest.iter().step_by(2).map(String::as_str).collect();
    agent == "agent" && rest.len() == 2 * OPTIONS.len() && names == OPTIONS
}

fn start(program: &Path, arguments: &[String], introduction: &[u8]) -> io::Result<Child> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    // The pipe has room for it. A child that is gone already is found when it is reaped.
    let _ = child.stdin.take().expect("its input is a pipe").write_all(introduction);
    Ok(child)
}

/// What a process complains of, while it does.
fn complaints(mut from: ChildStderr) -> Receiver<Vec<u8>> {
    let (said, heard) = sync_channel(COMPLAINTS_MAX);
    // Without a thread nobody hears them.
    let _ = thread::Builder::new().name("complaints".into()).spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            // What nobody takes is left out: a full pipe would stop the agent.
            let _ = said.try_send(bytes[..len].to_vec());
        }
    });
    heard
}

/// Tells the caller what the agent complains of, until that has ended. An agent whose caller is gone goes on: it hears run control itself.
fn attend(mut child: Child, peer: Peer) -> String {
    let complaints = complaints(child.stderr.take().expect("its complaints go to a pipe"));
    let mut peer = Some(peer);
    let status = loop {
        if peer.as_ref().is_none_or(Peer::has_sent_all) {
            complaints.try_iter().take(COMPLAINTS_MAX).for_each(|words| say(&mut peer, COMPLAINED, &words));
        }
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
    for _ in 0..COMPLAINTS_MAX {
        let Ok(words) = complaints.recv_timeout(LAST_WORDS) else { break };
        say(&mut peer, COMPLAINED, &words);
    }
    let code = status.as_ref().ok().and_then(ExitStatus::code).map_or(1, |code| code as u8);
    let how = status.map_or_else(|error| error.to_string(), describe);
    if code != 0 {
        say(&mut peer, COMPLAINED, format!("weir agent {how}\n").as_bytes());
    }
    take_leave(peer, code);
    format!("process {}: {how}", child.id())
}

fn say(peer: &mut Option<Peer>, what: u8, words: &[u8]) {
    if let Some(caller) = peer
        && caller.say(&[&[what], words].concat()).is_err()
    {
        *peer = None;
    }
}

/// The caller ends the connection when it has heard the status.
fn take_leave(mut peer: Option<Peer>, status: u8) {
    say(&mut peer, ENDED, &[status]);
    let until = clock::now() + PATIENCE;
    while let Some(caller) = &mut peer
        && turn(caller, Some(TICK)).1.is_ok()
        && in_time(until).is_ok()
    {}
}

#[expect(clippy::disallowed_methods, reason = "nothing announces that a descriptor is free")]
fn pause() {
    thread::sleep(TICK);
}

/// Far more partitions than a host serves.
const CALLS_MAX: usize = 64;
/// Connections without a proof.
const STRANGERS_MAX: usize = 64;
const COMPLAINTS_MAX: usize = 64;
const LAST_WORDS: Duration = Duration::from_millis(100);
/// The status of a call that is refused.
const REFUSED: u8 = 2;
/// Of `weir agent`, each with a value, as run control gives them.
const OPTIONS: [&str; 5] = ["--host", "--join", "--at", "--directory", "--metrics"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::farm_key::CALLER;

    #[test]
    fn only_agents_are_started() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(is_agent(&words(
            "agent --host b --join 10.0.0.1:1 --at 10.0.0.2 --directory /data --metrics 10.0.0.2:0"
        )));
        for line in [
            "",
            "agent",
            "run --host b --join 10.0.0.1:1 --at 10.0.0.2 --directory /data --metrics 10.0.0.2:0",
            "agent --host b --join 10.0.0.1:1 --at 10.0.0.2",
            "agent --host b --join 10.0.0.1:1 --at 10.0.0.2 --directory /data --metrics 10.0.0.2:0 --help",
        ] {
            assert!(!is_agent(&words(line)), "{line}");
        }
    }

    const ARGUMENTS: &str = "agent --host b --join 127.0.0.1:1 --at 127.0.0.1 --directory / --metrics 127.0.0.1:0";

    /// A service whose program is not there, and its key.
    fn service() -> (SocketAddr, FarmKey) {
        let key = FarmKey::of("a key that the tests alone have");
        let mut service = HostService::listen("127.0.0.1:0".parse().unwrap(), key.clone()).unwrap();
        service.program = "/nowhere/weir".into();
        let address = service.address().unwrap();
        thread::spawn(move || service.serve(|_| {}));
        (address, key)
    }

    /// What somebody is told who knows the key, and says these arguments and confides this.
    fn told(address: SocketAddr, key: &FarmKey, arguments: &str, confided: &[u8]) -> String {
        let stream = TcpStream::connect(address).unwrap();
        let mut peer = Peer::connected(stream, key.secret(), (CALLER, SERVICE), [7; 32]).unwrap();
        while peer.is_stranger() {
            turn(&mut peer, Some(TICK)).1.unwrap();
        }
        peer.say(arguments.replace(' ', BETWEEN).as_bytes()).and_then(|()| peer.confide(confided)).unwrap();
        let mut words = String::new();
        loop {
            let (heard, result) = turn(&mut peer, None);
            for heard in heard {
                let Heard::Frame(frame) = heard else { panic!("met twice") };
                match frame[0] {
                    ENDED => return format!("{words}status {}", frame[1]),
                    _ => words += core::str::from_utf8(&frame[1..]).unwrap(),
                }
            }
            result.unwrap();
        }
    }

    #[test]
    fn who_is_refused_is_told_why() {
        let (address, key) = service();
        let right = [0; LEN_OF_AGENT];
        for (arguments, confided, why) in [
            ("run quickstart.toml", &right[..], "something else than an agent"),
            (ARGUMENTS, &right[1..], "something else than an agent"),
            (ARGUMENTS, &[0; 1 << 19], "something else than an agent"),
            (ARGUMENTS, &right, "the agent cannot be started: No such file"),
        ] {
            let told = told(address, &key, arguments, confided);
            assert!(told.contains(why) && told.ends_with("status 2"), "{told}");
        }
    }

    #[test]
    fn strangers_keep_nobody_out() {
        let (address, key) = service();
        let strangers: Vec<TcpStream> = (0..3 * STRANGERS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert!(told(address, &key, ARGUMENTS, &[0; LEN_OF_AGENT]).contains("cannot be started"));
        drop(strangers);
        for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64]] {
            let mut stranger = TcpStream::connect(address).unwrap();
            stranger.write_all(words).unwrap();
            // A reset ends it as well.
            let _ = stranger.read_to_end(&mut Vec::new());
        }
    }
}
