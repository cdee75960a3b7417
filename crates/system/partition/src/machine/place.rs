//! The directory of a run's files, before it is there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

/// Whether files can be written to a directory, or to one that can be made there.
///
/// # Errors
///
/// Why not.
pub(super) fn can_be_written(directory: &Path) -> Result<(), String> {
    let there = nearest(directory);
    let said = |cause: &str| {
        let place = there.display();
        if there == directory {
            format!("{place}: {cause}")
        } else {
            format!("{}: {place}: {cause}", directory.display())
        }
    };
    if !there.is_dir() {
        return Err(said("it is a file"));
    }
    // The rights of the superuser say nothing of a file system that takes nothing: only trying does.
    let trial = there.join(format!(".weir-check-{}", std::process::id()));
    match fs::create_dir(&trial) {
        Ok(()) => {
            // One that cannot be removed is empty and harms nobody.
            let _ = fs::remove_dir(&trial);
            Ok(())
        }
        // Room comes and goes; a run waits for it.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(()),
        Err(error) => Err(said(&error.to_string())),
    }
}

/// Bytes that are free for files in a directory; `None` where the kernel does not say.
pub(super) fn free_bytes(directory: &Path) -> Option<u64> {
    let about = statvfs(nearest(directory).as_path()).ok()?;
    Some(about.f_bavail.saturating_mul(about.f_frsize))
}

/// The directory, or what of its path is there.
fn nearest(directory: &Path) -> PathBuf {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let mut ancestors = directory.ancestors().filter(|path| path.symlink_metadata().is_ok());
    ancestors.next().unwrap_or(Path::new(".")).to_owned()
}

#[cfg(test)]
mod tests {
    use testkit::TempDir;

    use super::*;

    #[test]
    fn a_directory_that_is_to_be_made_is_judged_by_what_is_there() {
        let directory = TempDir::new("place");
        let deep = directory.join("a/b/c");
        assert_eq!(can_be_written(&deep), Ok(()));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
        assert_eq!(free_bytes(&deep), free_bytes(directory.path()));
        fs::write(directory.join("a"), "").unwrap();
        let refused = can_be_written(&deep).unwrap_err();
        assert!(refused.ends_with("a: it is a file"), "{refused}");
        assert!(can_be_written(Path::new("/proc/out")).is_err());
    }
}
