//! Processing tasks in Python, without an installed package: `weir` is embedded in the program.
//!
//! A newcomer needs Python 3.9 or newer and numpy only. The same package can be installed by `pip install ./python`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

/// The command and the variables of a task in Python, for [`TasksOptions`](crate::TasksOptions).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonCommand {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Variables besides those of this process.
    pub environment: Vec<(OsString, OsString)>,
}

/// The files of the package `weir`: their paths and contents.
pub const PACKAGE_FILES: &[(&str, &str)] = &[
    ("weir/__init__.py", include_str!("../../../../python/weir/__init__.py")),
    ("weir/adapted.py", include_str!("../../../../python/weir/adapted.py")),
    ("weir/decision.py", include_str!("../../../../python/weir/decision.py")),
    ("weir/detector.py", include_str!("../../../../python/weir/detector.py")),
    ("weir/event.py", include_str!("../../../../python/weir/event.py")),
    ("weir/link.py", include_str!("../../../../python/weir/link.py")),
    ("weir/pt.py", include_str!("../../../../python/weir/pt.py")),
    ("weir/py.typed", include_str!("../../../../python/weir/py.typed")),
];

/// Writes the embedded package below `directory` and says how to run `algorithm` with it. `algorithm` is
/// `path/to/file.py:Class` or `package.module:Class`.
///
/// # Errors
/// A directory that cannot be made or written to.
pub fn command(interpreter: &OsStr, algorithm: &str, directory: &Path) -> io::Result<PythonCommand> {
    let directory = std::path::absolute(directory)?;
    write_package(&directory)?;
    let command = [interpreter, OsStr::new("-c"), OsStr::new(BOOTSTRAP), directory.as_os_str(), OsStr::new(algorithm)];
    Ok(PythonCommand { command: command.map(OsStr::to_owned).to_vec(), environment: environment(&directory) })
}

/// Writes the embedded package below `directory`, as `weir/`.
///
/// # Errors
/// A directory that cannot be made or written to.
pub fn write_package(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory.join("weir"))?;
    PACKAGE_FILES.iter().try_for_each(|(path, content)| std::fs::write(directory.join(path), content))
}

/// Imports the package from the directory of the first argument, whatever the working directory holds; a module of the user is
/// looked for there last.
const BOOTSTRAP: &str = "\
import sys
\
sys.path[0] = sys.argv.pop(1)
\
from weir import pt
\
sys.path.append('')
\
sys.exit(pt.main())";

fn environment(directory: &Path) -> Vec<(OsString, OsString)> {
    let mut path = directory.as_os_str().to_owned();
    if let Some(more) = std::env::var_os("PYTHONPATH").filter(|more| !more.is_empty()) {
        path.push(":");
        path.push(more);
    }
    let mut variables = vec![("PYTHONPATH".into(), path)];
    // What a task prints is seen at once, and a segmentation fault tells where it was.
    let ours = [("PYTHONUNBUFFERED", "1"), ("PYTHONFAULTHANDLER", "1"), ("PYTHONDONTWRITEBYTECODE", "1")];
    // One task per core is the way to use cores; threads of a library would only get in each other's way.
    let threads = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name, "1"));
    for (name, value) in ours.into_iter().chain(threads) {
        if std::env::var_os(name).is_none() {
            variables.push((name.into(), value.into()));
        }
    }
    variables
}
