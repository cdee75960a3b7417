//! How run control is known to the bus.

use std::path::{Path, PathBuf};

use crate::secret_file::{self, SecretFileError};

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum LoginError {
    #[error(transparent)]
    File(#[from] SecretFileError),
    #[error("control.bus_login, {}: expected one line, USER:PASSWORD", path.display())]
    Form { path: PathBuf },
}

impl Login {
    /// The login in a file, which its owner alone can read.
    ///
    /// # Errors
    /// The file cannot be read, or others can read it, or it holds something else.
    pub(super) fn read(path: &Path) -> Result<Self, LoginError> {
        let text = secret_file::read("control.bus_login", path)?;
        Self::of(&text).ok_or_else(|| LoginError::Form { path: path.to_owned() })
    }

    fn of(text: &str) -> Option<Self> {
        let (user, password) = text.trim_end().split_once(':')?;
        let is_right = !user.is_empty() && !password.is_empty() && !text.trim_end().contains('\n');
        is_right.then(|| Self { user: user.to_owned(), password: password.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use testkit::TempDir;

    use super::*;

    #[test]
    fn a_file_that_holds_none_or_tells_it_to_others_is_refused() {
        let directory = TempDir::new("bus-login");
        let path = directory.join("login");
        let read = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Login::read(&path).map(|login| (login.user, login.password)).map_err(|error| error.to_string())
        };
        let pair = ("weir".to_owned(), "a:b".to_owned());
        assert_eq!(read("weir:a:b\n", 0o600), Ok(pair));
        assert!(read("weir:a", 0o640).unwrap_err().contains("found 640"));
        for text in ["", "weir", "weir:", ":a", "weir:a\nb"] {
            assert!(read(text, 0o600).unwrap_err().contains("USER:PASSWORD"), "{text}");
        }
        let absent = Login::read(&directory.join("absent")).err().unwrap().to_string();
        assert!(absent.contains("absent: expected a file that can be read, found No such file"), "{absent}");
    }
}
