//! The key of a farm: who has it may start applications on its hosts.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base::ids::{Incarnation, NodeId};
use membership::challenge::Member;
use membership::run_secret::RunSecret;
use rustix::fs::OFlags;
use rustix::process::geteuid;

/// What `weir host` and those who call it know, and nobody else.
#[derive(Clone, Debug)]
pub struct FarmKey(RunSecret);

/// Why a file has no key.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum FarmKeyError {
    #[error("the key of the farm, {}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error(
        "the key of the farm, {}: others can read it: expected a file of this user with the mode 600, found the mode {mode:o} and the owner {owner}",
        path.display()
    )]
    Open { path: PathBuf, mode: u32, owner: u32 },
    #[error(
        "the key of the farm, {}: expected {KEY_MIN} to {KEY_MAX} characters, as of `openssl rand -hex 32`, found {found}",
        path.display()
    )]
    Length { path: PathBuf, found: usize },
}

impl FarmKey {
    /// The key in a file, which its owner alone can read.
    ///
    /// # Errors
    /// The file cannot be read, or others can read it, or it holds too little.
    pub fn read(path: &Path) -> Result<Self, FarmKeyError> {
        let failed = |cause| FarmKeyError::File { path: path.to_owned(), cause };
        // Nobody waits for a writer of a pipe.
        let options = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
        let file = options.map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        let (mode, owner) = (about.mode() & 0o777, about.uid());
        if mode & 0o077 != 0 || ![0, geteuid().as_raw()].contains(&owner) {
            return Err(FarmKeyError::Open { path: path.to_owned(), mode, owner });
        }
        let mut text = String::new();
        file.take(KEY_MAX as u64 + 1).read_to_string(&mut text).map_err(failed)?;
        let key = text.trim();
        if !(KEY_MIN..=KEY_MAX).contains(&key.len()) {
            return Err(FarmKeyError::Length { path: path.to_owned(), found: key.len() });
        }
        Ok(Self::of(key))
    }

    pub(crate) fn of(text: &str) -> Self {
        Self(RunSecret::new(text, b"hosts of a farm "))
    }

    pub(crate) fn secret(&self) -> &RunSecret {
        &self.0
    }
}

/// Who calls.
pub(crate) const CALLER: Member = (NodeId(1), Incarnation::FIRST);
/// Who is called.
pub(crate) const SERVICE: Member = (NodeId(0), Incarnation::FIRST);
const KEY_MIN: usize = 32;
const KEY_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use testkit::TempDir;

    use super::*;

    #[test]
    fn a_file_that_holds_none_or_tells_it_to_others_is_refused() {
        let directory = TempDir::new("farm-key");
        let path = directory.join("farm.key");
        let read = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            FarmKey::read(&path).map_err(|error| error.to_string())
        };
        let key = "0123456789abcdef0123456789abcdef\n";
        assert_eq!(read(key, 0o600).unwrap().secret(), read(key.trim(), 0o400).unwrap().secret());
        assert!(read(key, 0o640).unwrap_err().contains("found the mode 640"));
        assert!(read(&key[2..], 0o600).unwrap_err().contains("found 30"));
        assert!(read(&key.trim().repeat(200), 0o600).unwrap_err().contains("found 4097"));
        let absent = FarmKey::read(&directory.join("absent")).unwrap_err().to_string();
        assert!(absent.contains("absent: No such file"), "{absent}");
    }
}
