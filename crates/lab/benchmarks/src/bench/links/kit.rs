//! Sources in C and Python, built with an installed Weir as those of users are.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use driver::scratch::Scratch;

use super::super::BenchError;

/// What a source is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    C,
    /// Python, with many fragments in one call.
    PythonInGroups,
    /// Python, a generator that the library calls for each fragment.
    PythonOneByOne,
}

/// Built sources.
pub(super) struct Kit {
    prefix: PathBuf,
    python: PathBuf,
    folder: Scratch,
}

impl Kit {
    /// With the Weir that is installed below the prefix; by default that which this program belongs to.
    pub(super) fn make(prefix: Option<&Path>, python: &Path) -> Result<Self, BenchError> {
        let failed = |what| move |error: io::Error| BenchError::System { what, error };
        let own = std::env::current_exe().map_err(failed("the program's own path"))?;
        let own = own.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned();
        let prefix = prefix.map_or(own, Path::to_owned);
        if !prefix.join("include/weir.h").is_file() {
            return Err(BenchError::NotInstalled { prefix: prefix.display().to_string() });
        }
        let folder = Scratch::new().map_err(failed("a temporary directory"))?;
        for (name, text) in [(C_SOURCE, include_str!("source.c")), (PYTHON_SOURCE, include_str!("source.py"))] {
            std::fs::write(folder.path().join(name), text).map_err(failed("a temporary file"))?;
        }
        let kit = Self { prefix, python: python.to_owned(), folder };
        kit.compile()?;
        Ok(kit)
    }

    fn compile(&self) -> Result<(), BenchError> {
        let compiler = std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
        let library = self.prefix.join("lib");
        let mut command = Command::new(&compiler);
        command.args(["-O2", "-std=c11", "-o"]).arg(self.c_program()).arg(self.folder.path().join(C_SOURCE));
        command.arg("-I").arg(self.prefix.join("include")).arg("-L").arg(&library).arg("-lweir");
        command.arg(format!("-Wl,-rpath,{}", library.display()));
        let program = || compiler.to_string_lossy().into_owned();
        let failed = |reason: String| BenchError::Program { program: program(), reason };
        let output = command.output().map_err(|error| failed(error.to_string()))?;
        let says = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(failed(format!("{}: {says}", output.status))) }
    }

    /// A source that connects to `at`, proves the key, and sends fragments of so many bytes.
    pub(super) fn command(&self, language: Language, at: &str, key: &Path, bytes: u32) -> Command {
        let way = match language {
            Language::C => {
                let mut command = Command::new(self.c_program());
                command.arg(at).arg(key).arg(bytes.to_string());
                return command;
            }
            Language::PythonInGroups => "send-many",
            Language::PythonOneByOne => "generator",
        };
        let mut command = Command::new(&self.python);
        command.arg(self.folder.path().join(PYTHON_SOURCE)).arg(at).arg(key).arg(bytes.to_string()).arg(way);
        command.env("PYTHONPATH", self.prefix.join("lib/weir/python"));
        command
    }

    fn c_program(&self) -> PathBuf {
        self.folder.path().join("source")
    }
}

const C_SOURCE: &str = "source.c";
const PYTHON_SOURCE: &str = "source.py";
