//! Files of this process alone, for as long as it needs them.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory that only this user can look into, removed when it is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A directory under a name that nobody can foresee: what lies there already is never used.
    ///
    /// # Errors
    /// No directory can be made where temporary files go.
    #[expect(clippy::disallowed_methods, reason = "files that no user looks for; the name is random and made anew")]
    pub fn new() -> io::Result<Self> {
        loop {
            let mut bytes = [0; 12];
            File::open("/dev/urandom")?.read_exact(&mut bytes)?;
            let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let path = std::env::temp_dir().join(format!("weir-{name}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean up.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
