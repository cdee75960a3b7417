use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A new directory of its own for one test, removed with everything in it when dropped.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Makes a directory below the system's directory for temporary files; `label` is part of its name.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new(label: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        #[expect(clippy::disallowed_methods, reason = "the one place where tests get temporary directories from")]
        let parent = std::env::temp_dir();
        loop {
            let serial = MADE.fetch_add(1, Ordering::Relaxed);
            // The letter at the end keeps each path from being the beginning of another: tests look for it in command lines.
            let path = parent.join(format!("weir-{label}-{}-{serial}d", process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Self { path },
                // Left by a killed process that had the same id.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => panic!("cannot make the temporary directory {}: {error}", path.display()),
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of `name` in it; nothing is made.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }
}

impl AsRef<Path> for TempDir {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A test may have removed it; one that fails already is not to abort here.
        if let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != ErrorKind::NotFound
            && !std::thread::panicking()
        {
            panic!("cannot remove {}: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_differ_and_are_removed() {
        let (first, second) = (TempDir::new("testkit"), TempDir::new("testkit"));
        assert_ne!(first.path(), second.path());
        fs::write(first.join("file"), "x").unwrap();
        let path = first.path().to_path_buf();
        drop(first);
        assert!(!path.exists());
        assert!(second.path().is_dir());
    }
}
