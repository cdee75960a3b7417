//! How run control and an agent prove to each other who they are, and keep others from speaking for them.
//!
//! The proofs are those of [`challenge`](crate::challenge), with a secret that agents alone have. Behind them every frame has a tag: BLAKE3, keyed
//! for this connection and direction, over its number and its bytes. Who changes a frame, leaves one out, says one again or
//! puts one in ends the connection.

use alloc::vec::Vec;

use base::bulk::PageSlice;
use dataflow::message::Message;
use dataflow::wire;

use crate::NO_RUN;
use crate::challenge::{Challenge, Member, Nonce, Prover, Unproven};
use crate::run_secret::RunSecret;

/// What agents prove with: it follows from the secret of the first run.
pub fn secret_of_agents(secret: &RunSecret) -> RunSecret {
    RunSecret::of_bytes(secret.key_for("weir 2026 the secret of agents"))
}

/// A connection on the way to its proof.
#[derive(Debug)]
pub struct Handshake {
    prover: Prover,
    challenge: Challenge,
    secret: RunSecret,
    nonce: Nonce,
    has_accepted: bool,
    /// The nonce of the other, once it has said it.
    theirs: Nonce,
}

/// How it goes on.
#[derive(Debug)]
pub struct Step {
    /// What is to be said now.
    pub say: Option<Vec<u8>>,
    /// The other, once it has proved who it is.
    pub met: Option<Met>,
}

/// Somebody who has proved who it is.
#[derive(Debug)]
pub struct Met {
    /// Who it is.
    pub peer: Member,
    /// For what is said to it.
    pub to_peer: Seal,
    /// For what it says.
    pub from_peer: Seal,
}

/// What comes is not from the one who has proved who it is, or not in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame was forged, lost or said again")]
pub struct Forged;

/// Tags of the frames of one direction of a connection.
pub struct Seal {
    key: [u8; 32],
    number: u64,
}

impl Handshake {
    /// Of the member `here`, who has accepted a connection, and what it says first.
    pub fn of_accepted(secret: &RunSecret, here: Member, nonce: Nonce) -> (Self, Vec<u8>) {
        let prover = Prover::new(secret, NO_RUN, here);
        let (challenge, (envelope, message)) = Challenge::of_accepted(&prover, nonce);
        let mut bytes = Vec::new();
        wire::encode(&envelope, &message, &mut bytes);
        (Self { prover, challenge, secret: secret.clone(), nonce, has_accepted: true, theirs: [0; 32] }, bytes)
    }

    /// Of the member `here`, who has connected to another.
    pub fn of_connected(secret: &RunSecret, (here, to): (Member, Member), nonce: Nonce) -> Self {
        let prover = Prover::new(secret, NO_RUN, here);
        let challenge = Challenge::of_connected(to, nonce);
        Self { prover, challenge, secret: secret.clone(), nonce, has_accepted: false, theirs: [0; 32] }
    }

    /// Takes in what the other says.
    ///
    /// # Errors
    /// What it has to be turned away for.
    pub fn on_frame(&mut self, frame: &[u8]) -> Result<Step, Unproven> {
        let (envelope, message) = wire::decode(&PageSlice::copy_of(frame)).map_err(|_| Unproven::OutOfTurn)?;
        if let Message::Challenge { nonce } | Message::Response { nonce, .. } = &message {
            self.theirs = *nonce;
        }
        let step = self.challenge.on_message(&self.prover, &envelope, &message)?;
        let say = step.say.map(|(envelope, message)| {
            let mut bytes = Vec::new();
            wire::encode(&envelope, &message, &mut bytes);
            bytes
        });
        let met = step.proven.map(|proven| {
            let [of_connected, of_accepted] = ["of who has connected", "of who has accepted"].map(|by| self.seal(by));
            let (to_peer, from_peer) =
                if self.has_accepted { (of_accepted, of_connected) } else { (of_connected, of_accepted) };
            Met { peer: proven.peer, to_peer, from_peer }
        });
        Ok(Step { say, met })
    }

    fn seal(&self, by: &str) -> Seal {
        let (challenge, response) =
            if self.has_accepted { (self.nonce, self.theirs) } else { (self.theirs, self.nonce) };
        let mut hasher = blake3::Hasher::new_keyed(&self.secret.key_for("weir 2026 tags of agents' frames"));
        hasher.update(&challenge).update(&response).update(by.as_bytes());
        Seal { key: hasher.finalize().into(), number: 0 }
    }
}

impl Seal {
    /// Length of a tag in bytes.
    pub const LEN: usize = 16;

    /// The tag of the next frame.
    pub fn tag(&mut self, bytes: &[u8]) -> [u8; Self::LEN] {
        let hash = self.hash(bytes);
        self.number += 1;
        let mut tag = [0; Self::LEN];
        tag.copy_from_slice(&hash.as_bytes()[..Self::LEN]);
        tag
    }

    /// The next frame without its tag.
    ///
    /// # Errors
    /// It has not the tag that it has to have.
    pub fn open<'a>(&mut self, frame: &'a [u8]) -> Result<&'a [u8], Forged> {
        let (bytes, tag) = frame.split_last_chunk::<{ Self::LEN }>().ok_or(Forged)?;
        let mut expected = [0; 32];
        expected[..Self::LEN].copy_from_slice(&self.tag(bytes));
        let mut found = [0; 32];
        found[..Self::LEN].copy_from_slice(tag);
        // Takes as long whatever is wrong with it.
        let is_right = blake3::Hash::from_bytes(expected) == blake3::Hash::from_bytes(found);
        if is_right { Ok(bytes) } else { Err(Forged) }
    }

    /// A key of this connection and direction, for another purpose than tags.
    pub fn key_for(&self, purpose: &'static str) -> [u8; 32] {
        blake3::derive_key(purpose, &self.key)
    }

    fn hash(&self, bytes: &[u8]) -> blake3::Hash {
        blake3::Hasher::new_keyed(&self.key).update(&self.number.to_le_bytes()).update(bytes).finalize()
    }
}

impl core::fmt::Debug for Seal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Seal({})", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ids::{Incarnation, NodeId};

    const CONTROL: Member = (NodeId(0), Incarnation::FIRST);
    const AGENT: Member = (NodeId(2), Incarnation(1));

    fn secret(key: &str) -> RunSecret {
        secret_of_agents(&RunSecret::new(key, &[1; 16]))
    }

    fn meet(of_agent: &RunSecret, of_control: &RunSecret) -> Result<(Met, Met), Unproven> {
        let (mut accepted, first) = Handshake::of_accepted(of_control, CONTROL, [1; 32]);
        let mut connected = Handshake::of_connected(of_agent, (AGENT, CONTROL), [2; 32]);
        let response = connected.on_frame(&first)?.say.unwrap();
        let step = accepted.on_frame(&response)?;
        let at_agent = connected.on_frame(&step.say.unwrap())?.met.unwrap();
        Ok((at_agent, step.met.unwrap()))
    }

    fn sealed(seal: &mut Seal, bytes: &[u8]) -> Vec<u8> {
        [bytes, &seal.tag(bytes)[..]].concat()
    }

    #[test]
    fn who_has_proved_who_it_is_is_understood_in_order_and_nobody_else() {
        let (mut agent, mut control) = meet(&secret("key"), &secret("key")).unwrap();
        assert_eq!((agent.peer, control.peer), (CONTROL, AGENT));
        let keys = [&agent.to_peer, &control.from_peer, &control.to_peer].map(|seal| seal.key_for("a purpose"));
        assert!(keys[0] == keys[1] && keys[0] != keys[2]);
        let order = sealed(&mut control.to_peer, b"start");
        assert_eq!(agent.from_peer.open(&order), Ok(&b"start"[..]));
        assert_eq!(agent.from_peer.open(&order), Err(Forged), "said again");
        let (mut agent, mut control) = meet(&secret("key"), &secret("key")).unwrap();
        let mut word = sealed(&mut agent.to_peer, b"ended");
        assert_eq!(agent.from_peer.open(&word), Err(Forged), "sent back");
        word[0] ^= 1;
        assert_eq!(control.from_peer.open(&word), Err(Forged), "changed");
        assert_eq!(control.from_peer.open(&word[..Seal::LEN - 1]), Err(Forged), "too short");
        let (mut agent, mut control) = meet(&secret("key"), &secret("key")).unwrap();
        let _lost = sealed(&mut agent.to_peer, b"first");
        assert_eq!(control.from_peer.open(&sealed(&mut agent.to_peer, b"second")), Err(Forged));
    }

    #[test]
    fn who_does_not_know_the_secret_is_turned_away() {
        assert_eq!(meet(&secret("another"), &secret("key")).unwrap_err(), Unproven::WrongProof);
        let of_applications = RunSecret::new("key", &[1; 16]);
        assert_eq!(meet(&of_applications, &secret("key")).unwrap_err(), Unproven::WrongProof);
        let (mut accepted, _) = Handshake::of_accepted(&secret("key"), CONTROL, [1; 32]);
        assert_eq!(accepted.on_frame(b"GET / HTTP/1.1").unwrap_err(), Unproven::OutOfTurn);
    }
}
