//! Why something could not be written.

use std::io;
use std::path::{Path, PathBuf};

use eformat::BadFileName;

/// Why an event or file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A part of the configuration that cannot be in a file name.
    #[error(transparent)]
    Name(BadFileName),
    /// The file system refused.
    #[error("cannot {action} {}: {source}{}", path.display(), remedy(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The final name was taken by another program while the file was written; the file stays `.writing`.
    #[error("cannot rename to {}: it exists; move it away, then close again", path.display())]
    Exists {
        /// The name.
        path: PathBuf,
    },
    /// What is given is not one full event.
    #[error("not an event: {given_bytes} bytes are given, the event header says {claimed_bytes:?}")]
    NotAnEvent {
        /// Sum of the pieces.
        given_bytes: u64,
        /// Size in the header; `None` without an event marker in the first piece.
        claimed_bytes: Option<u64>,
    },
}

impl WriteError {
    /// Whether it is for want of space, or of a file size that is allowed; the same call may succeed when there is some.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge))
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::FileTooLarge => {
            ": raise the limit of file sizes (`ulimit -f`, `prlimit --fsize`), or begin new files earlier (`sfo.max_file_size`)"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, StorageFull};

    use super::*;

    #[test]
    fn a_disk_is_full_for_want_of_space_only() {
        let is_full = |kind: io::ErrorKind| WriteError::io("write", Path::new("a"), kind.into()).is_full();
        assert_eq!(
            [StorageFull, QuotaExceeded, FileTooLarge, PermissionDenied].map(is_full),
            [true, true, true, false]
        );
        assert!(!WriteError::Exists { path: "a".into() }.is_full());
    }

    #[test]
    fn a_limit_of_file_sizes_is_told_with_its_remedy() {
        let text = |kind: io::ErrorKind| WriteError::io("write", Path::new("a"), kind.into()).to_string();
        let remedy = "raise the limit of file sizes (`ulimit -f`, `prlimit --fsize`), or begin new files earlier (`sfo.max_file_size`)";
        assert_eq!(text(FileTooLarge), format!("cannot write a: {FileTooLarge}: {remedy}"));
        assert_eq!(text(StorageFull), format!("cannot write a: {StorageFull}"));
    }
}
