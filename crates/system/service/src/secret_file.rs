//! A file with a secret, which its owner alone can read.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Why nothing is read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum SecretFileError {
    #[error("{key}, {}: expected a file that can be read, found {cause}", path.display())]
    File { key: &'static str, path: PathBuf, cause: io::Error },
    #[error("{key}, {}: others can read it: expected the mode 600, found {mode:o}", path.display())]
    Open { key: &'static str, path: PathBuf, mode: u32 },
    #[error("{key}, {}: expected at most {LENGTH_MAX} bytes, found more", path.display())]
    Long { key: &'static str, path: PathBuf },
}

/// The text of a file that this key of the configuration names.
///
/// # Errors
/// It cannot be read, others can read it, or it is longer than any secret.
pub(crate) fn read(key: &'static str, path: &Path) -> Result<String, SecretFileError> {
    let failed = |cause| SecretFileError::File { key, path: path.to_owned(), cause };
    // Nobody waits for a writer of a pipe.
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path);
    let file = file.map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(SecretFileError::Open { key, path: path.to_owned(), mode });
    }
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that is too long, also where the bound divides a character.
    file.take(LENGTH_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LENGTH_MAX {
        return Err(SecretFileError::Long { key, path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))
}

const LENGTH_MAX: u64 = 16 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_read_whole_or_refused() {
        let directory = testkit::TempDir::new("secret-file");
        let path = directory.path().join("secret");
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        let longest = "s".repeat(LENGTH_MAX as usize);
        file.write_all(longest.as_bytes()).unwrap();
        assert_eq!(read("a.key", &path).unwrap(), longest);

        file.write_all("é".as_bytes()).unwrap();
        let error = read("a.key", &path).unwrap_err();
        assert!(matches!(error, SecretFileError::Long { .. }), "{error}");
        assert_eq!(error.to_string(), format!("a.key, {}: expected at most 16384 bytes, found more", path.display()));
    }
}
