//! Finding a partition, and proving to each other who one is.

use std::time::Duration;

use base::time::Time;
use rustix::fd::{AsFd, OwnedFd};
use transport::clock;
use transport::random::random;

use super::Settings;
use super::connecting::connect;
use crate::address::Address;
use crate::error::{LinkError, Violation};
use crate::greeting::{Greeting, Welcome, record, text};
use crate::inbox::Inbox;
use crate::kind::Kind;
use crate::proof::{Nonce, Prover};
use crate::record::{TEXT_BYTES_MAX, VERSION};
use crate::socket::{Lost, read_with_descriptors, sleep, write};

/// A connection over which fragments may go.
pub(super) struct Opened {
    pub(super) socket: OwnedFd,
    pub(super) welcome: Welcome,
    pub(super) descriptors: Vec<OwnedFd>,
}

/// Why a try came to nothing.
enum Failed {
    /// Another may succeed.
    ForNow(String),
    /// Likewise, after an answer.
    Taken(String),
    Lastingly(LinkError),
}

/// Tries until it succeeds, fails for good, or patience is at its end. With what came behind the welcome.
pub(super) fn open(at: &str, settings: &Settings) -> Result<(Opened, Inbox), LinkError> {
    let until = clock::now() + settings.patience;
    loop {
        let (last, is_taken) = match try_once(at, settings, until.max(clock::now() + ANSWER_MIN)) {
            Ok(opened) => return Ok(opened),
            Err(Failed::Lastingly(error)) => return Err(error),
            Err(Failed::ForNow(last)) => (last, false),
            Err(Failed::Taken(why)) => (why, true),
        };
        let left = until.since(clock::now());
        if left.is_zero() {
            let (at, patience) = (at.to_owned(), settings.patience);
            return Err(if is_taken {
                LinkError::Taken { at, patience, why: last }
            } else {
                LinkError::NoPartition { at, patience, last }
            });
        }
        // Nothing says when somebody will listen there.
        sleep(&[], false, left.min(BETWEEN_TRIES))?;
    }
}

fn try_once(at: &str, settings: &Settings, until: Time) -> Result<(Opened, Inbox), Failed> {
    let address = Address::of_source(at).map_err(Failed::Lastingly)?;
    let Some(address) = address else { return Err(Failed::ForNow("no partition has a source of this name".into())) };
    if matches!(address, Address::Tcp(_)) && settings.key.is_none() {
        return Err(Failed::Lastingly(LinkError::KeyMissing { at: at.to_owned() }));
    }
    let socket = connect(&address, until).map_err(|error| Failed::ForNow(error.to_string()))?;
    let meeting = Meeting { at, settings, socket, inbox: Inbox::new(INBOX_BYTES), descriptors: Vec::new(), until };
    meeting.run()
}

/// The exchange on a new connection.
struct Meeting<'a> {
    at: &'a str,
    settings: &'a Settings,
    socket: OwnedFd,
    inbox: Inbox,
    descriptors: Vec<OwnedFd>,
    until: Time,
}

impl Meeting<'_> {
    fn run(mut self) -> Result<(Opened, Inbox), Failed> {
        let nonce = random().map_err(|error| Failed::Lastingly(error.into()))?;
        let Settings { name, id, .. } = self.settings;
        let greeting = Greeting { version: VERSION, id: *id, nonce, name: name.clone() };
        self.say(&greeting.encode())?;
        let mut challenge = None;
        loop {
            match self.hear()? {
                Said::Challenge(nonce) if challenge.is_none() => {
                    let Some(key) = &self.settings.key else { return Err(self.unproven()) };
                    let proof = key.proof(Prover::Source, &greeting.encode(), &nonce);
                    self.say(&record(Kind::Proof, 0, &proof))?;
                    challenge = Some(nonce);
                }
                Said::Challenge(_) => {
                    return Err(Failed::Lastingly(Violation::OutOfTurn { kind: Kind::Challenge }.into()));
                }
                Said::Welcome(welcome) => {
                    self.check(&greeting, challenge.as_ref(), &welcome)?;
                    let Self { socket, inbox, descriptors, .. } = self;
                    return Ok((Opened { socket, welcome, descriptors }, inbox));
                }
                Said::Refused { why, again: true } => return Err(Failed::Taken(why)),
                Said::Refused { why, again: false } => {
                    return Err(Failed::Lastingly(LinkError::Refused { at: self.at.to_owned(), why }));
                }
            }
        }
    }

    /// Who has a key takes fragments nowhere where it is not known.
    fn check(&self, greeting: &Greeting, challenge: Option<&Nonce>, welcome: &Welcome) -> Result<(), Failed> {
        let Some(key) = &self.settings.key else { return Ok(()) };
        let is_proven = challenge
            .zip(welcome.proof)
            .is_some_and(|(challenge, proof)| key.verifies(Prover::Intake, &greeting.encode(), challenge, &proof));
        if is_proven { Ok(()) } else { Err(self.unproven()) }
    }

    fn unproven(&self) -> Failed {
        Failed::Lastingly(LinkError::Unproven { at: self.at.to_owned() })
    }

    /// What is said here is short: it fits into the socket.
    fn say(&self, bytes: &[u8]) -> Result<(), Failed> {
        match write(&self.socket, bytes) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(Failed::ForNow(Lost::Deaf.to_string())),
            // It may have said why before it closed.
            Err(Lost::Closed) => Ok(()),
            Err(lost) => Err(Failed::ForNow(lost.to_string())),
        }
    }

    fn hear(&mut self) -> Result<Said, Failed> {
        let broken = |violation: Violation| Failed::Lastingly(violation.into());
        loop {
            if let Some((head, body)) = self.inbox.record(TEXT_BYTES_MAX).map_err(broken)? {
                let length = Violation::Length { kind: head.kind, len: head.len.into(), expected: "32" };
                return match head.kind {
                    Kind::Challenge => Ok(Said::Challenge(body.try_into().map_err(|_| broken(length))?)),
                    Kind::Welcome => Ok(Said::Welcome(Welcome::decode(&head, body).map_err(broken)?)),
                    Kind::Refused => {
                        let why = text(Kind::Refused, body).map_err(broken)?;
                        Ok(Said::Refused { why, again: head.aux == 1 })
                    }
                    kind => Err(broken(Violation::OutOfTurn { kind })),
                };
            }
            let read = read_with_descriptors(&self.socket, self.inbox.room(), &mut self.descriptors);
            match read.map_err(|lost| Failed::ForNow(lost.to_string()))? {
                Some(len) => self.inbox.filled(len),
                None => {
                    let left = self.until.since(clock::now());
                    if left.is_zero() {
                        return Err(Failed::ForNow("it does not answer".into()));
                    }
                    let slept = sleep(&[self.socket.as_fd()], false, left);
                    slept.map_err(|error| Failed::Lastingly(error.into()))?;
                }
            }
        }
    }
}

/// What the other end says before fragments may go.
enum Said {
    Challenge(Nonce),
    Welcome(Welcome),
    Refused { why: String, again: bool },
}

/// More than the longest refusal.
const INBOX_BYTES: usize = 16 << 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);
/// Who listens gets at least so long to answer, however short patience is.
const ANSWER_MIN: Duration = Duration::from_secs(1);
