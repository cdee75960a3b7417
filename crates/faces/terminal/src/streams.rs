//! The standard streams of a command.

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::Path;

use partition::table::Table;

use crate::Exit;

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
///
/// # Errors
/// Those of `written`, but for a reader that has left.
pub fn quiet(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints the table of a run on the standard output; in colours only on a terminal, and not if `NO_COLOR` is set. A reader that
/// left misses it.
pub fn print_table(table: Table<'_>) {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut out = io::stdout().lock();
    let written =
        if out.is_terminal() && !forbidden { write!(out, "{}", table.in_colours()) } else { write!(out, "{table}") };
    // The summary and the exit status still tell.
    let _ = written.and_then(|()| out.flush());
}

/// A line on the standard error; what nobody reads is dropped.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Whether a summary can be written there, so that a run is not made in vain.
pub fn can_hold_a_file(path: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    parent.is_dir() && !path.is_dir()
}
