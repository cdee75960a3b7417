//! The key of a partition, from a file: it is in no command line.

use std::path::{Path, PathBuf};
use std::{fs, io};

use link::Secret;

/// Reads a key from a file, without the blanks around it.
///
/// # Errors
/// The file cannot be read, or holds nothing.
pub fn key_of(file: &Path) -> Result<Secret, KeyError> {
    let text = fs::read_to_string(file).map_err(|error| KeyError::Unreadable { file: file.into(), error })?;
    match text.trim() {
        "" => Err(KeyError::Empty { file: file.into() }),
        key => Ok(Secret::new(key)),
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("the key file {}: {error}", file.display())]
    Unreadable {
        /// Which one.
        file: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file holds nothing.
    #[error("the key file {}: it is empty; expected the text of partition.key", file.display())]
    Empty {
        /// Which one.
        file: PathBuf,
    },
}
