//! The commands that need no run: each writes its results to one stream and what is wrong to another.

mod check;
mod file;
mod init;
mod pt;
mod schema;

use std::io::{self, BufWriter, ErrorKind, Write};

pub use check::check;
pub use file::file;
pub use init::init;
pub(crate) use pt::{decide, pt};
pub use schema::schema;

use crate::cli::Exit;

/// Runs a command on the standard output and the standard error.
///
/// A reader of the output that leaves (`weir file dump … | head`) ends the command silently.
pub fn on_standard_streams(command: impl FnOnce(&mut dyn Write, &mut dyn Write) -> io::Result<Exit>) -> Exit {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut err = io::stderr().lock();
    let ended = command(&mut out, &mut err).and_then(|exit| {
        quiet(out.flush())?;
        Ok(exit)
    });
    match ended {
        Ok(exit) => exit,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Exit::Well,
        Err(error) => {
            // Nobody is left to be told if this fails.
            let _ = writeln!(err, "cannot write the output: {error}");
            Exit::NotStarted
        }
    }
}

/// Goes on as if written where the reader has left: the exit status still says what the command found.
pub(crate) fn quiet(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
