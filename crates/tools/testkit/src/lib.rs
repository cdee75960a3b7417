//! What the tests of all crates share. A dev-dependency only; it has no dependencies itself.
//!
//! ```
//! let Some(shared) = testkit::shared("the_vectors_check", "format/vectors") else { return };
//! assert!(shared.is_dir());
//! ```
#![forbid(unsafe_code)]

mod skip;
mod temp_dir;

use std::path::{Path, PathBuf};

pub use skip::skip;
pub use temp_dir::TempDir;

/// The directory `shared` beside the checkout, which holds reference files that are not part of the project.
#[must_use]
pub fn shared_dir() -> Option<PathBuf> {
    directory(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared")))
}

fn directory(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().filter(|path| path.is_dir())
}

/// The file or directory `relative` of the [`shared_dir`]; without it the test `test` is skipped by name.
///
/// # Panics
/// With `CI=true`, if it is absent: see [`skip`].
#[must_use]
pub fn shared(test: &str, relative: &str) -> Option<PathBuf> {
    let path = shared_dir().map(|shared| shared.join(relative)).filter(|path| path.exists());
    if path.is_none() {
        skip(test, &format!("../shared/{relative} is absent"));
    }
    path
}

/// The program that tests of whole runs drive. `make test` names the one that users have, in the release build, in
/// `WEIR_PROGRAM`. Otherwise it is `built`, which cargo has built in the profile of the tests.
///
/// # Panics
/// If `WEIR_PROGRAM` names no file.
#[must_use]
pub fn program(built: &str) -> String {
    let program = std::env::var("WEIR_PROGRAM").unwrap_or_else(|_| built.to_owned());
    assert!(Path::new(&program).is_file(), "{program} is not there: run `make build`");
    program
}

/// The Python interpreter that has the packages of `tests/requirements.txt`; without it the test `test` is skipped by
/// name. `make test` prepares one and names it in `WEIR_PYTHON`.
///
/// # Panics
/// With `CI=true`, if there is none: see [`skip`].
#[must_use]
pub fn python(test: &str) -> Option<PathBuf> {
    let python = std::env::var_os("WEIR_PYTHON").map(PathBuf::from).filter(|path| path.is_file());
    if python.is_none() {
        skip(test, "no Python with the packages of tests/requirements.txt: run `make python`");
    }
    python
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_found_and_nothing_else() {
        let place = TempDir::new("testkit");
        let (file, absent) = (place.path().join("file"), place.path().join("absent"));
        std::fs::write(&file, "no directory").unwrap();
        assert_eq!(directory(&place.path().join(".")), Some(place.path().canonicalize().unwrap()));
        assert_eq!((directory(&file), directory(&absent)), (None, None));
    }
}
