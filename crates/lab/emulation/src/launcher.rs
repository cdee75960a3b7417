//! What run control launches in the place of `weir agent`: it tells the farm, and stays as long as its host is there.

use std::fs;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// An agent that run control has launched.
pub(crate) struct Launched {
    /// Where run control listens for it.
    pub(crate) join: String,
    /// What stood on its standard input.
    pub(crate) introduction: Vec<u8>,
    /// Ends the launcher when it is dropped.
    pub(crate) launcher: UnixStream,
}

impl Launched {
    /// Hears it from a launcher that has connected.
    pub(crate) fn hear(mut launcher: UnixStream) -> io::Result<Self> {
        let mut heard = Vec::new();
        launcher.read_to_end(&mut heard)?;
        let end = heard.iter().position(|byte| *byte == b'\n').ok_or(io::ErrorKind::UnexpectedEof)?;
        let introduction = heard.split_off(end + 1);
        heard.pop();
        let join = String::from_utf8(heard).map_err(io::Error::other)?;
        Ok(Self { join, introduction, launcher })
    }
}

/// A launcher's life: `arguments` are those of `weir agent`.
///
/// # Errors
/// They name no run control, or the farm is not there.
pub fn main(farm: &Path, arguments: &[String]) -> io::Result<()> {
    let join = arguments.iter().skip_while(|word| *word != "--join").nth(1);
    let join = join.ok_or_else(|| io::Error::other("expected the arguments of `weir agent`, with --join"))?;
    let mut introduction = Vec::new();
    io::stdin().lock().read_to_end(&mut introduction)?;
    let mut stream = UnixStream::connect(farm)?;
    stream.write_all(format!("{join}\n").as_bytes())?;
    stream.write_all(&introduction)?;
    stream.shutdown(Shutdown::Write)?;
    // Until its host is gone.
    stream.read(&mut [0]).map(drop)
}

/// Writes the program that run control starts as `weir agent` of an emulated host into a folder.
///
/// # Errors
/// It cannot be written.
pub fn program(folder: &Path, farm: &Path) -> io::Result<PathBuf> {
    let (program, weir) = (folder.join("agent"), std::env::current_exe()?);
    let text = format!("#!/bin/sh\nexec '{}' bench-part launcher '{}' \"$@\"\n", weir.display(), farm.display());
    fs::write(&program, text)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}
