//! Who may command: the key of the session, and who holds the lock. Both may outlive the service, in a file that its user alone can read.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::key::SessionKey;
use crate::operator::Operator;
use crate::secret_file::{self, SecretFileError};

/// The key of a service, and who commands when it begins.
#[derive(Debug)]
pub struct Authority {
    key: SessionKey,
    holder: Option<Operator>,
    file: Option<KeyFile>,
}

/// Where a service keeps both: a line with the key, and one with the client and the name of who commands, if somebody does.
#[derive(Clone, Debug)]
pub(crate) struct KeyFile {
    path: PathBuf,
    key: SessionKey,
    /// Whether the key is of one service alone.
    is_passing: bool,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum AuthorityError {
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    #[error("{KEY_FILE}, {}: expected a line with a key of 64 hexadecimal digits: remove the file to have one drawn", path.display())]
    NoKey { path: PathBuf },
    #[error("{KEY_FILE}, {}: expected a file that can be written: {cause}", path.display())]
    Unwritten { path: PathBuf, cause: io::Error },
    #[error("no key can be drawn: {0}")]
    Drawn(io::Error),
}

impl Authority {
    /// A key of this service alone.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn drawn() -> Result<Self, AuthorityError> {
        let key = SessionKey::draw().map_err(AuthorityError::Drawn)?;
        Ok(Self { key, holder: None, file: None })
    }

    /// What is kept in a file; without it, a key that is drawn and kept there.
    ///
    /// # Errors
    /// Others can read the file, it holds no key, or it cannot be written.
    pub fn kept_in(path: &Path) -> Result<Self, AuthorityError> {
        Self::found(path, false)?.map_or_else(|| Self::begun(path, false), Ok)
    }

    /// What a former service has kept in a file for the one that takes over from it. Without that, or where nothing is taken over, a key is
    /// drawn and kept there until this service ends in order.
    ///
    /// # Errors
    /// As [`Authority::kept_in`].
    pub fn passed_on_in(path: &Path, takes_over: bool) -> Result<Self, AuthorityError> {
        let found = if takes_over { Self::found(path, true)? } else { None };
        found.map_or_else(|| Self::begun(path, true), Ok)
    }

    fn found(path: &Path, is_passing: bool) -> Result<Option<Self>, AuthorityError> {
        let text = match secret_file::read(KEY_FILE, path) {
            Ok(text) => text,
            Err(SecretFileError::File { cause, .. }) if cause.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut lines = text.lines();
        let key = lines.next().and_then(|line| SessionKey::of_text(line.trim()));
        let key = key.ok_or_else(|| AuthorityError::NoKey { path: path.to_owned() })?;
        let holder = lines.next().and_then(|line| line.split_once('\t'));
        let holder = holder.map(|(client, name)| Operator { name: name.to_owned(), client: client.to_owned() });
        let file = KeyFile { path: path.to_owned(), key: key.clone(), is_passing };
        Ok(Some(Self { key, holder, file: Some(file) }))
    }

    fn begun(path: &Path, is_passing: bool) -> Result<Self, AuthorityError> {
        let Self { key, .. } = Self::drawn()?;
        let file = KeyFile { path: path.to_owned(), key: key.clone(), is_passing };
        file.keep(None)?;
        Ok(Self { key, holder: None, file: Some(file) })
    }

    /// The key.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// The key in a file of a service, for those who command it.
    ///
    /// # Errors
    /// It cannot be read, others can read it, or it holds none.
    pub fn key_in(path: &Path) -> Result<SessionKey, AuthorityError> {
        let text = secret_file::read(KEY_FILE, path)?;
        let key = text.lines().next().and_then(|line| SessionKey::of_text(line.trim()));
        key.ok_or_else(|| AuthorityError::NoKey { path: path.to_owned() })
    }

    /// Who commands when the service begins, and where it keeps who does.
    pub(crate) fn into_parts(self) -> (Option<Operator>, Option<KeyFile>) {
        (self.holder, self.file)
    }
}

impl KeyFile {
    /// Keeps who commands, for the next life.
    pub(crate) fn keep(&self, holder: Option<&Operator>) -> Result<(), AuthorityError> {
        let holder = holder.map(|Operator { name, client }| format!("{client}\t{name}\n")).unwrap_or_default();
        let text = format!("{}\n{holder}", self.key.text());
        let mut beside = self.path.clone().into_os_string();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        // What a former process of this number has left may have any mode.
        let _ = fs::remove_file(&beside);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
        let written =
            file.and_then(|mut file| file.write_all(text.as_bytes())).and_then(|()| fs::rename(&beside, &self.path));
        written.map_err(|cause| AuthorityError::Unwritten { path: self.path.clone(), cause })
    }

    /// The service has ended in order: nobody commands, and nobody takes over.
    pub(crate) fn end(&self) {
        // Somebody may have removed it.
        let _ = if self.is_passing { fs::remove_file(&self.path).map_err(drop) } else { self.keep(None).map_err(drop) };
    }
}

const KEY_FILE: &str = "--key-file";

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use testkit::TempDir;

    use super::*;

    fn anna() -> Operator {
        Operator { name: "anna b".into(), client: "terminal of anna".into() }
    }

    #[test]
    fn key_and_holder_outlive_the_service_in_a_file_of_its_user() {
        let directory = TempDir::new("authority");
        let path = directory.join("session.key");
        let first = Authority::kept_in(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let (key, (holder, file)) = (first.key().clone(), first.into_parts());
        assert_eq!(holder, None);
        file.unwrap().keep(Some(&anna())).unwrap();
        let second = Authority::kept_in(&path).unwrap();
        assert_eq!((second.key(), &second.holder), (&key, &Some(anna())));
        assert_eq!(Authority::key_in(&path).unwrap(), key);
        second.into_parts().1.unwrap().end();
        assert_eq!(Authority::kept_in(&path).unwrap().holder, None, "it has ended in order");
    }

    #[test]
    fn a_file_that_is_no_secret_or_no_key_is_refused() {
        let directory = TempDir::new("authority");
        let path = directory.join("session.key");
        fs::write(&path, "a short key\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let error = Authority::kept_in(&path).unwrap_err();
        assert!(error.to_string().contains("others can read it: expected the mode 600, found 640"), "{error}");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let error = Authority::kept_in(&path).unwrap_err();
        assert!(matches!(error, AuthorityError::NoKey { .. }), "{error}");
        assert!(matches!(Authority::key_in(&directory.join("absent")), Err(AuthorityError::Secret(_))));
    }

    #[test]
    fn only_who_takes_over_has_what_was_passed_on() {
        let directory = TempDir::new("authority");
        let path = directory.join("runs.key");
        let first = Authority::passed_on_in(&path, true).unwrap();
        let key = first.key().clone();
        assert_eq!(Authority::passed_on_in(&path, true).unwrap().key(), &key);
        let other = Authority::passed_on_in(&path, false).unwrap();
        assert_ne!(other.key(), &key);
        other.into_parts().1.unwrap().end();
        assert!(!fs::exists(&path).unwrap());
    }
}
