//! `weir file`.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use storage::{CheckLimits, DumpOptions};

use super::quiet;
use crate::cli::{DumpArgs, Exit, FileCommand};

/// Looks at files one after the other. A file with problems, or one that cannot be read, does not keep the others from
/// being looked at.
///
/// # Errors
///
/// A stream cannot be written.
pub fn file(command: &FileCommand, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    match command {
        FileCommand::Ls(args) => each(&args.files, |path| tell(storage::ls(path), out, err)),
        FileCommand::Recover(args) => each(&args.files, |path| tell(storage::recover(path), out, err)),
        FileCommand::Dump(args) => {
            let several = args.files.files.len() > 1;
            each(&args.files.files, |path| {
                if several {
                    writeln!(out, "{}:", path.display())?;
                }
                dump(path, args, out, err)
            })
        }
        FileCommand::Check(args) => {
            let limits = CheckLimits { problems_max: args.problems, ..CheckLimits::default() };
            each(&args.files.files, |path| check(path, &limits, out, err))
        }
    }
}

/// The worst of what came of each file.
fn each(files: &[PathBuf], mut look: impl FnMut(&Path) -> io::Result<Exit>) -> io::Result<Exit> {
    let mut worst = Exit::Well;
    for path in files {
        if look(path)? != Exit::Well {
            worst = Exit::Wrong;
        }
    }
    Ok(worst)
}

/// Writes what a function of `storage` has to say of one file.
fn tell<T: fmt::Display, E: fmt::Display>(
    outcome: Result<T, E>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    match outcome {
        Ok(told) => {
            quiet(writeln!(out, "{told}"))?;
            Ok(Exit::Well)
        }
        Err(error) => {
            out.flush().or_else(|error| quiet(Err(error)))?;
            writeln!(err, "{error}")?;
            Ok(Exit::Wrong)
        }
    }
}

fn check(path: &Path, limits: &CheckLimits, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let outcome = storage::check(path, limits);
    let is_bad = outcome.as_ref().is_ok_and(|report| !report.is_good());
    let told = tell(outcome, out, err)?;
    Ok(if is_bad { Exit::Wrong } else { told })
}

fn dump(path: &Path, args: &DumpArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let options = DumpOptions {
        skip: args.skip,
        events_max: args.events.unwrap_or(u64::MAX),
        robs: !args.headers,
        data: args.data,
    };
    let items = match storage::dump(path, options) {
        Ok(items) => items,
        Err(error) => return tell::<&str, _>(Err(error), out, err),
    };
    for item in items {
        match item {
            Ok(item) => writeln!(out, "{item}")?,
            Err(error) => return tell::<&str, _>(Err(error), out, err),
        }
    }
    Ok(Exit::Well)
}
