//! Proof of the partition's key at both ends of a link. The key itself never travels.
//!
//! The ideas are those of joining (`membership::challenge`): a keyed hash over the direction, who the source is, and a number
//! that each end has drawn. Who connected proves first: a stranger gets no proof to work on.

/// Length of a number drawn once, in bytes.
pub const NONCE_BYTES: usize = 32;

/// A number that was not used before, and that nobody can foretell.
pub type Nonce = [u8; NONCE_BYTES];

/// A proof.
pub type Hash = [u8; 32];

/// What both ends of a link know and nobody else. It does not print itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

/// Who proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prover {
    /// The source, which has connected.
    Source = 1,
    /// The intake.
    Intake = 2,
}

impl Secret {
    /// From the partition's key.
    pub fn new(partition_key: &str) -> Self {
        Self(blake3::derive_key("weir 2026 proofs on links", partition_key.as_bytes()))
    }

    /// From the bytes that [`Secret::to_bytes`] gave, for a child process of the same partition.
    pub const fn of_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// What a child process of the same partition needs.
    pub const fn to_bytes(&self) -> [u8; 32] {
        self.0
    }

    /// The proof of this end, over the record of the greeting and the number of the intake.
    pub fn proof(&self, prover: Prover, greeting: &[u8], challenge: &Nonce) -> Hash {
        *self.hash(prover, greeting, challenge).as_bytes()
    }

    /// Whether the proof is right. Takes as long whatever is wrong with it.
    pub fn verifies(&self, prover: Prover, greeting: &[u8], challenge: &Nonce, proof: &Hash) -> bool {
        self.hash(prover, greeting, challenge) == blake3::Hash::from_bytes(*proof)
    }

    fn hash(&self, prover: Prover, greeting: &[u8], challenge: &Nonce) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[prover as u8]).update(challenge).update(greeting).finalize()
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::{Prover, Secret};
    use crate::greeting::Greeting;
    use crate::record::VERSION;

    #[test]
    fn a_proof_is_of_one_key_direction_source_and_connection() {
        let greeting = Greeting { version: VERSION, id: None, nonce: [1; 32], name: "tlu".into() };
        let said = greeting.encode();
        let secret = Secret::new("key");
        let proof = secret.proof(Prover::Source, &said, &[2; 32]);
        assert!(secret.verifies(Prover::Source, &said, &[2; 32], &proof));
        assert!(!secret.verifies(Prover::Intake, &said, &[2; 32], &proof));
        assert!(!secret.verifies(Prover::Source, &said, &[3; 32], &proof));
        assert!(!Secret::new("yek").verifies(Prover::Source, &said, &[2; 32], &proof));
        for other in [
            Greeting { name: "tlv".into(), ..greeting.clone() },
            Greeting { id: Some(1), ..greeting.clone() },
            Greeting { nonce: [3; 32], ..greeting.clone() },
        ] {
            assert!(!secret.verifies(Prover::Source, &other.encode(), &[2; 32], &proof), "{other:?}");
        }
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
