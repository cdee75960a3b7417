//! `weir file`.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use storage::{CheckLimits, Checks, DumpOptions};

use crate::cli::{DumpArgs, FileCommand, FileRecoverArgs};
use terminal::{Exit, quiet};

/// Looks at files one after the other, and changes none. A file with problems, or one that cannot be read, does not keep the others
/// from being looked at.
///
/// # Errors
///
/// A stream cannot be written.
pub fn file(command: &FileCommand, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    match command {
        FileCommand::Ls(args) => each(&args.files, |path| tell(storage::ls(path), out, err)),
        FileCommand::Recover(args) => recover(args, out, err),
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
            let mut checks = Checks::default();
            each(&args.files.files, |path| check(&mut checks, path, &limits, out, err))
        }
    }
}

/// The worst of what came of each file.
fn each(files: &[PathBuf], mut look: impl FnMut(&Path) -> io::Result<Exit>) -> io::Result<Exit> {
    let mut worst = Exit::Well;
    for path in files {
        worst = match (worst, look(path)?) {
            (worst, Exit::Well) => worst,
            (Exit::Well | Exit::Degraded, Exit::Degraded) => Exit::Degraded,
            _ => Exit::Wrong,
        };
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

fn recover(args: &FileRecoverArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let (files, output) = (&args.files.files, args.output.as_deref());
    if output.is_some() && files.len() > 1 {
        writeln!(err, "--output names one file, and {} are to be recovered: name one of them", files.len())?;
        return Ok(Exit::Wrong);
    }
    each(files, |path| {
        let outcome = storage::recover(path, output);
        let is_lossy = outcome.as_ref().is_ok_and(|recovered| !recovered.is_complete());
        let told = tell(outcome, out, err)?;
        Ok(if is_lossy { Exit::Degraded } else { told })
    })
}

fn check(
    checks: &mut Checks,
    path: &Path,
    limits: &CheckLimits,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let outcome = checks.check(path, limits);
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
