//! Proof of a run's secret on a new connection, in both directions. The secret itself never travels.
//!
//! | | who connected | who accepted |
//! |---|---|---|
//! | 1 | | `Challenge`: a nonce |
//! | 2 | `Response`: a nonce of its own, and a proof | |
//! | 3 | | `Confirm`: a proof |
//!
//! A proof is BLAKE3, keyed with a key of the run, over the direction, the run number, both applications in their lives, and
//! both nonces. One of another run, of another pair or life, of another connection, or sent back to its maker, verifies nowhere.
//! Who connected proves first: a stranger at the door gets no proof to work on. From the same both derive where the frames that
//! follow begin to count.
//!
//! All here is pure: nonces are arguments, messages go in and out.

use crate::frame_numbers::FrameNumbers;
use crate::run_secret::RunSecret;
use base::ids::{Incarnation, NodeId, RunNumber};
use dataflow::message::{Envelope, Message};

/// A number that was not used before, and that nobody can foretell.
pub type Nonce = [u8; 32];

/// An application in one of its lives.
pub type Member = (NodeId, Incarnation);

/// What a member of a run proves with.
#[derive(Clone, PartialEq, Eq)]
pub struct Prover {
    key: [u8; 32],
    run: RunNumber,
    here: Member,
}

/// A connection on the way to its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    nonce: Nonce,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// We accepted it, and have said our nonce.
    Accepted,
    /// We connected to this member.
    Connected { to: Member },
    /// We connected, and have proved; the peer has this nonce.
    Responded { to: Member, theirs: Nonce },
}

/// How it goes on after a message of the peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What is to be said now.
    pub say: Option<(Envelope, Message)>,
    /// The peer, once it has proved who it is.
    pub proven: Option<Proven>,
}

/// A peer that has proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proven {
    /// Who it is.
    pub peer: Member,
    /// The numbers of all frames that follow, of both.
    pub numbers: FrameNumbers,
}

/// Why a peer is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unproven {
    /// It says what is not its turn.
    #[error("said something else before it proved the key of the run")]
    OutOfTurn,
    /// It takes us, itself or the run for another: it belongs to a former life or run.
    #[error("takes this process for one of another run or life")]
    AnotherPair,
    /// The proof is wrong.
    #[error("does not know the key of the run")]
    WrongProof,
}

impl Prover {
    /// For the member `here` of a run.
    pub fn new(secret: &RunSecret, run: RunNumber, here: Member) -> Self {
        Self { key: secret.key_for("weir 2026 proofs on connections"), run, here }
    }

    fn envelope(&self, to: Member) -> Envelope {
        let (from, from_incarnation) = self.here;
        let (to, to_incarnation) = to;
        Envelope { from, to, run: self.run, from_incarnation, to_incarnation }
    }

    fn proof(&self, direction: Direction, pair: &Pair) -> blake3::Hash {
        self.hash(direction as u8, pair)
    }

    /// What the frames to the one who has connected and to the one who has accepted begin to count with.
    fn numbers(&self, pair: &Pair) -> ([u8; 4], [u8; 4]) {
        let [a, b, c, d, e, f, g, h, ..] = *self.hash(NUMBERS, pair).as_bytes();
        ([a, b, c, d], [e, f, g, h])
    }

    fn hash(&self, purpose: u8, pair: &Pair) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[purpose]).update(&self.run.0.to_le_bytes());
        for (node, life) in [pair.connected, pair.accepted] {
            hasher.update(&node.0.to_le_bytes()).update(&life.0.to_le_bytes());
        }
        hasher.update(&pair.challenge).update(&pair.response).finalize()
    }

    /// Takes as long whatever is wrong with it.
    fn verify(&self, direction: Direction, pair: &Pair, proof: &[u8; 32]) -> Result<(), Unproven> {
        let is_right = self.proof(direction, pair) == blake3::Hash::from_bytes(*proof);
        if is_right { Ok(()) } else { Err(Unproven::WrongProof) }
    }
}

impl core::fmt::Debug for Prover {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Prover({:?} {:?})", self.run, self.here)
    }
}

/// What a proof speaks of.
struct Pair {
    connected: Member,
    accepted: Member,
    challenge: Nonce,
    response: Nonce,
}

#[derive(Clone, Copy)]
enum Direction {
    ToAccepted = 1,
    ToConnected = 2,
}

/// Beside the directions.
const NUMBERS: u8 = 3;

impl Challenge {
    /// For a connection that was accepted, and what is said first. The peer is not known, and the envelope names nobody else.
    pub fn of_accepted(prover: &Prover, nonce: Nonce) -> (Self, (Envelope, Message)) {
        let word = (prover.envelope(prover.here), Message::Challenge { nonce });
        (Self { nonce, stage: Stage::Accepted }, word)
    }

    /// For a connection that was made to a member.
    pub fn of_connected(to: Member, nonce: Nonce) -> Self {
        Self { nonce, stage: Stage::Connected { to } }
    }

    /// Takes in what the peer says.
    ///
    /// # Errors
    /// What the peer has to be turned away for.
    pub fn on_message(&mut self, prover: &Prover, envelope: &Envelope, message: &Message) -> Result<Step, Unproven> {
        match (self.stage, message) {
            (Stage::Accepted, Message::Response { nonce, proof }) => {
                let peer = (envelope.from, envelope.from_incarnation);
                if *envelope != (Envelope { from: peer.0, from_incarnation: peer.1, ..prover.envelope(prover.here) }) {
                    return Err(Unproven::AnotherPair);
                }
                let pair = Pair { connected: peer, accepted: prover.here, challenge: self.nonce, response: *nonce };
                prover.verify(Direction::ToAccepted, &pair, proof)?;
                let proof = *prover.proof(Direction::ToConnected, &pair).as_bytes();
                let say = Some((prover.envelope(peer), Message::Confirm { proof }));
                let (to_connected, to_accepted) = prover.numbers(&pair);
                let numbers = FrameNumbers::new(to_connected, to_accepted);
                Ok(Step { say, proven: Some(Proven { peer, numbers }) })
            }
            (Stage::Connected { to }, Message::Challenge { nonce }) => {
                let pair = Pair { connected: prover.here, accepted: to, challenge: *nonce, response: self.nonce };
                let proof = *prover.proof(Direction::ToAccepted, &pair).as_bytes();
                self.stage = Stage::Responded { to, theirs: *nonce };
                let response = Message::Response { nonce: self.nonce, proof };
                Ok(Step { say: Some((prover.envelope(to), response)), proven: None })
            }
            (Stage::Responded { to, theirs }, Message::Confirm { proof }) => {
                let pair = Pair { connected: prover.here, accepted: to, challenge: theirs, response: self.nonce };
                prover.verify(Direction::ToConnected, &pair, proof)?;
                let (to_connected, to_accepted) = prover.numbers(&pair);
                let numbers = FrameNumbers::new(to_accepted, to_connected);
                Ok(Step { say: None, proven: Some(Proven { peer: to, numbers }) })
            }
            _ => Err(Unproven::OutOfTurn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const FIRST: Member = (NodeId(3), Incarnation(0));
    const SECOND: Member = (NodeId(7), Incarnation(2));

    fn secret(nonce: u8) -> RunSecret {
        RunSecret::new("the key of the partition", &[nonce; 16])
    }

    fn prover(here: Member) -> Prover {
        Prover::new(&secret(1), RunNumber(5), here)
    }

    /// All that two say to each other; the first connects.
    fn talk(first: &Prover, second: &Prover, to: Member) -> Result<[(Envelope, Message); 3], Unproven> {
        let mut connected = Challenge::of_connected(to, [1; 32]);
        let (mut accepted, challenge) = Challenge::of_accepted(second, [2; 32]);
        let step = connected.on_message(first, &challenge.0, &challenge.1)?;
        assert_eq!(step.proven, None);
        let response = step.say.unwrap();
        let step = accepted.on_message(second, &response.0, &response.1)?;
        let of_first = step.proven.unwrap();
        assert_eq!(of_first.peer, first.here);
        let confirm = step.say.unwrap();
        let step = connected.on_message(first, &confirm.0, &confirm.1)?;
        let of_second = step.proven.unwrap();
        assert_eq!((step.say, of_second.peer), (None, to));
        let (mut here, mut there) = (of_second.numbers, of_first.numbers);
        for _ in 0..3 {
            assert_eq!((here.next_sent(), there.next_sent()), (there.next_received(), here.next_received()));
        }
        Ok([challenge, response, confirm])
    }

    /// The first numbers of the connection that the first one makes with these nonces.
    fn numbers(first: &Prover, second: &Prover, nonces: [Nonce; 2]) -> [u32; 2] {
        let mut connected = Challenge::of_connected(second.here, nonces[0]);
        let (mut accepted, challenge) = Challenge::of_accepted(second, nonces[1]);
        let (envelope, response) = connected.on_message(first, &challenge.0, &challenge.1).unwrap().say.unwrap();
        let mut numbers = accepted.on_message(second, &envelope, &response).unwrap().proven.unwrap().numbers;
        [numbers.next_sent(), numbers.next_received()]
    }

    #[test]
    fn each_connection_and_direction_counts_from_elsewhere() {
        let (first, second) = (prover(FIRST), prover(SECOND));
        let other = |here| Prover::new(&secret(2), RunNumber(5), here);
        let all = [
            numbers(&first, &second, [[1; 32], [2; 32]]),
            numbers(&first, &second, [[1; 32], [3; 32]]),
            numbers(&first, &second, [[3; 32], [2; 32]]),
            numbers(&second, &first, [[1; 32], [2; 32]]),
            numbers(&other(FIRST), &other(SECOND), [[1; 32], [2; 32]]),
        ];
        let distinct: alloc::collections::BTreeSet<u32> = all.into_iter().flatten().collect();
        assert_eq!(distinct.len(), 10, "{all:x?}");
    }

    #[test]
    fn two_members_prove_to_each_other_who_they_are_and_say_no_secret() {
        let said = talk(&prover(FIRST), &prover(SECOND), SECOND).unwrap();
        let key = prover(FIRST).key;
        for (envelope, message) in said {
            let mut bytes = Vec::new();
            dataflow::wire::encode(&envelope, &message, &mut bytes);
            assert!(!bytes.windows(16).any(|window| key.windows(16).any(|part| part == window)));
        }
    }

    #[test]
    fn a_member_of_another_run_life_or_place_is_turned_away() {
        let (first, second) = (prover(FIRST), prover(SECOND));
        let with = |secret: &RunSecret, run, here| Prover::new(secret, RunNumber(run), here);
        let later = (SECOND.0, Incarnation(3));
        for (other, expected) in [
            (with(&secret(2), 5, SECOND), Unproven::WrongProof),
            (with(&RunSecret::new("another key", &[1; 16]), 5, SECOND), Unproven::WrongProof),
            (with(&secret(1), 6, SECOND), Unproven::AnotherPair),
            (with(&secret(1), 5, later), Unproven::AnotherPair),
            (with(&secret(1), 5, FIRST), Unproven::AnotherPair),
        ] {
            assert_eq!(talk(&first, &other, SECOND), Err(expected), "{other:?}");
        }
        assert!(talk(&first, &second, SECOND).is_ok());
    }

    /// What was said between the two before, with any one thing changed, opens nothing.
    #[test]
    fn what_was_said_before_verifies_nowhere_else() {
        let (first, second) = (prover(FIRST), prover(SECOND));
        let [challenge, response, confirm] = talk(&first, &second, SECOND).unwrap();
        let Message::Response { proof, nonce } = response.1 else { unreachable!() };
        let fresh = || Challenge::of_accepted(&second, [3; 32]).0;
        assert_eq!(fresh().on_message(&second, &response.0, &response.1), Err(Unproven::WrongProof), "replayed");
        let same = || Challenge::of_accepted(&second, [2; 32]).0;
        assert!(same().on_message(&second, &response.0, &response.1).is_ok());
        let as_another = Envelope { from: NodeId(4), ..response.0 };
        assert_eq!(same().on_message(&second, &as_another, &response.1), Err(Unproven::WrongProof));
        let of_another_life = Envelope { from_incarnation: Incarnation(9), ..response.0 };
        assert_eq!(same().on_message(&second, &of_another_life, &response.1), Err(Unproven::WrongProof));
        let with_another_nonce = Message::Response { nonce: [9; 32], proof };
        assert_eq!(same().on_message(&second, &response.0, &with_another_nonce), Err(Unproven::WrongProof));
        for bit in [0, 100, 255] {
            let mut proof = proof;
            proof[bit / 8] ^= 1 << (bit % 8);
            let message = Message::Response { nonce, proof };
            assert_eq!(same().on_message(&second, &response.0, &message), Err(Unproven::WrongProof));
        }
        // The proof of one direction is none of the other.
        let mut connected = Challenge::of_connected(SECOND, [1; 32]);
        connected.on_message(&first, &challenge.0, &challenge.1).unwrap();
        let reflected = Message::Confirm { proof };
        assert_eq!(connected.on_message(&first, &confirm.0, &reflected), Err(Unproven::WrongProof));
    }

    /// Who plays our own challenge back to us, as if we had connected to it, gets a proof that says so.
    #[test]
    fn a_reflected_challenge_is_of_no_use() {
        let second = prover(SECOND);
        let (mut accepted, challenge) = Challenge::of_accepted(&second, [2; 32]);
        let mut connected = Challenge::of_connected(FIRST, [1; 32]);
        let step = connected.on_message(&second, &challenge.0, &challenge.1).unwrap();
        let (envelope, response) = step.say.unwrap();
        assert_eq!(accepted.on_message(&second, &envelope, &response), Err(Unproven::AnotherPair));
        let forged = second.envelope(second.here);
        assert_eq!(accepted.on_message(&second, &forged, &response), Err(Unproven::WrongProof));
    }

    #[test]
    fn nothing_is_taken_out_of_turn() {
        let first = prover(FIRST);
        let envelope = first.envelope(FIRST);
        let all = [
            Message::Challenge { nonce: [0; 32] },
            Message::Response { nonce: [0; 32], proof: [0; 32] },
            Message::Confirm { proof: [0; 32] },
            Message::NoMore,
        ];
        let mut responded = Challenge::of_connected(SECOND, [1; 32]);
        responded.on_message(&first, &envelope, &all[0]).unwrap();
        let accepted = Challenge::of_accepted(&first, [2; 32]).0;
        let connected = Challenge::of_connected(SECOND, [1; 32]);
        for (of, turn) in [(connected, 0), (accepted, 1), (responded, 2)] {
            for (index, message) in all.iter().enumerate() {
                let taken = of.clone().on_message(&first, &envelope, message);
                assert_eq!(taken == Err(Unproven::OutOfTurn), index != turn, "{of:?} {message:?}");
            }
        }
    }
}
