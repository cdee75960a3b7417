//! The secret of one run, and the keys that come from it.

/// What the members of a run know and nobody else. It does not print itself.
///
/// It comes from the partition's key, which a configuration may keep for years, and from a number that run control draws
/// for each run. Nothing that a former run has sent verifies in this one.
#[derive(Clone, PartialEq, Eq)]
pub struct RunSecret([u8; 32]);

/// The number that run control draws for a run. It is no secret, and is drawn once.
pub type RunNonce = [u8; 16];

impl RunSecret {
    /// The secret of the run that has this number.
    pub fn new(partition_key: &str, nonce: &RunNonce) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("weir 2026 the secret of a run");
        hasher.update(nonce).update(partition_key.as_bytes());
        Self(hasher.finalize().into())
    }

    /// The secret that a member was told.
    pub const fn of_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// To be told to a member, and to nobody else.
    pub const fn to_bytes(&self) -> [u8; 32] {
        self.0
    }

    /// The secret of the next run of the same members. It tells nothing of this one.
    #[must_use]
    pub fn next(&self) -> Self {
        Self(self.key_for("weir 2026 the secret of the next run"))
    }

    /// A key for one purpose: keys of different purposes tell nothing of each other, nor of the secret.
    pub fn key_for(&self, purpose: &'static str) -> [u8; 32] {
        blake3::derive_key(purpose, &self.0)
    }
}

impl core::fmt::Debug for RunSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("RunSecret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::RunSecret;
    use alloc::collections::BTreeSet;
    use alloc::format;

    #[test]
    fn each_run_partition_and_purpose_has_keys_of_its_own() {
        let secrets = [("key", [1; 16]), ("key", [2; 16]), ("yek", [1; 16]), ("", [1; 16])];
        let secrets = secrets.map(|(key, nonce)| RunSecret::new(key, &nonce));
        let keys: BTreeSet<_> = secrets.iter().flat_map(|run| ["a", "b"].map(|purpose| run.key_for(purpose))).collect();
        assert_eq!(keys.len(), 2 * secrets.len());
        assert_eq!(RunSecret::new("key", &[1; 16]).key_for("a"), secrets[0].key_for("a"));
    }

    #[test]
    fn the_next_run_has_a_secret_of_its_own() {
        let first = RunSecret::new("key", &[1; 16]);
        let secrets: BTreeSet<_> = [&first, &first.next(), &first.next().next()].map(RunSecret::to_bytes).into();
        assert_eq!((secrets.len(), first.next()), (3, first.next()));
    }

    #[test]
    fn it_does_not_print_itself() {
        assert_eq!(format!("{:?}", RunSecret::new("key", &[1; 16])), "RunSecret(..)");
    }
}
