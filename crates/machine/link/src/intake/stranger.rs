//! Visitors until they have proved who they are.

use core::time::Duration;

use base::time::Time;
use rustix::fd::OwnedFd;
use transport::poller::Readiness;
use transport::random::random;

use super::IntakeParameters;
use crate::greeting::{Greeting, record};
use crate::inbox::Inbox;
use crate::kind::Kind;
use crate::proof::{Hash, Nonce, Prover};
use crate::socket::{Lost, read, write};

use crate::error::Violation;

/// A visitor.
pub(super) struct Stranger {
    pub(super) socket: OwnedFd,
    pub(super) readiness: Readiness,
    pub(super) inbox: Inbox,
    since: Time,
    challenged: Option<(Greeting, Nonce)>,
}

/// What becomes of a visitor.
pub(super) enum Step {
    /// It has not said enough.
    Wait,
    /// It is the source that is waited for; our proof for it.
    Proven { greeting: Greeting, proof: Option<Hash> },
    /// It is not.
    TurnAway { why: String },
}

impl Stranger {
    pub(super) fn new(socket: OwnedFd, readiness: Readiness, since: Time) -> Self {
        Self { socket, readiness, inbox: Inbox::new(INBOX_BYTES), since, challenged: None }
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(super) fn is_ready(&self) -> bool {
        self.readiness.is_readable()
    }

    pub(super) fn is_overdue(&self, now: Time) -> bool {
        now.since(self.since) > PATIENCE
    }

    pub(super) fn step(&mut self, parameters: &IntakeParameters) -> Step {
        self.hear(parameters).unwrap_or_else(|lost| Step::TurnAway { why: lost.to_string() })
    }

    fn hear(&mut self, parameters: &IntakeParameters) -> Result<Step, Lost> {
        loop {
            while let Some((head, body)) = self.inbox.record(BODY_BYTES_MAX)? {
                match (head.kind, self.challenged.take()) {
                    (Kind::Greeting, None) => {
                        let greeting = Greeting::decode(body)?;
                        if let Some(why) = objection(&greeting, parameters) {
                            return Ok(Step::TurnAway { why });
                        }
                        if parameters.key.is_none() {
                            return Ok(Step::Proven { greeting, proof: None });
                        }
                        let nonce = random()?;
                        say(&self.socket, &record(Kind::Challenge, 0, &nonce))?;
                        self.challenged = Some((greeting, nonce));
                    }
                    (Kind::Proof, Some((greeting, nonce))) => return prove(greeting, &nonce, body, parameters),
                    (kind, _) => return Err(Violation::OutOfTurn { kind }.into()),
                }
            }
            self.readiness.clear_readable();
            let Some(len) = read(&self.socket, self.inbox.room())? else { return Ok(Step::Wait) };
            self.readiness.set_readable();
            self.inbox.filled(len);
        }
    }
}

fn prove(greeting: Greeting, nonce: &Nonce, body: &[u8], parameters: &IntakeParameters) -> Result<Step, Lost> {
    let length = Violation::Length { kind: Kind::Proof, len: body.len() as u64, expected: "32" };
    let proof: &Hash = body.try_into().map_err(|_| length)?;
    let key = parameters.key.as_ref().expect("who has no key challenges nobody");
    if !key.verifies(Prover::Source, &greeting.encode(), nonce, proof) {
        let why = format!("{} does not know the key of the partition", greeting.name);
        return Ok(Step::TurnAway { why });
    }
    let proof = Some(key.proof(Prover::Intake, &greeting.encode(), nonce));
    Ok(Step::Proven { greeting, proof })
}

fn objection(greeting: &Greeting, parameters: &IntakeParameters) -> Option<String> {
    let Greeting { name, id, .. } = greeting;
    if *name != parameters.name {
        return Some(format!("this is the link of {}, not of {name}", parameters.name));
    }
    let other = id.filter(|id| *id != parameters.id)?;
    Some(format!("{name} has source id {:#010x} here, and says {other:#010x}", parameters.id))
}

/// A stranger is told little: it must fit into the socket.
fn say(socket: &OwnedFd, bytes: &[u8]) -> Result<(), Lost> {
    if write(socket, bytes)? == bytes.len() { Ok(()) } else { Err(Lost::Deaf) }
}

/// Longer than a greeting with the longest name.
const BODY_BYTES_MAX: usize = 128;
const INBOX_BYTES: usize = 512;
/// Many times what a source on a busy host takes.
const PATIENCE: Duration = Duration::from_secs(5);
