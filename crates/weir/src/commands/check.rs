//! `weir check`.

use std::io::{self, Write};
use std::path::Path;

use configuration::{Application, Partition};

use crate::cli::{CheckArgs, Exit};

/// Judges a configuration: all that is wrong with it, or the applications that it asks for.
///
/// # Errors
///
/// A stream cannot be written.
pub fn check(args: &CheckArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let partition = match Partition::load(&args.config, &args.overrides.set) {
        Ok(partition) => partition,
        Err(error) => {
            writeln!(err, "{error}")?;
            return Ok(Exit::Wrong);
        }
    };
    writeln!(out, "{}: well", args.config.display())?;
    let applications = partition.applications();
    writeln!(out, "partition {}, {} applications:", partition.partition.name, applications.len())?;
    for group in applications.chunk_by(|a, b| a.role == b.role) {
        writeln!(out, "  {}", names(group))?;
    }
    writeln!(out, "{}", limits(&partition))?;
    // Data may be on another machine, so their absence is no fault of the configuration.
    for file in partition.input.files.iter().filter(|file| !Path::new(file).is_file()) {
        writeln!(out, "note: the input file {file} is not on this machine")?;
    }
    Ok(Exit::Well)
}

/// `sfi-1`, or `ros-1 … ros-8`.
fn names(group: &[Application]) -> String {
    match group {
        [] => String::new(),
        [only] => only.name.clone(),
        [first, .., last] if group.len() > 2 => format!("{} … {}", first.name, last.name),
        [first, .., last] => format!("{}, {}", first.name, last.name),
    }
}

fn limits(partition: &Partition) -> String {
    match (partition.run.events, partition.run.duration) {
        (Some(events), Some(duration)) => format!("a run ends after {events} level-1 events or {duration}"),
        (Some(events), None) => format!("a run ends after {events} level-1 events"),
        (None, Some(duration)) => format!("a run ends after {duration}"),
        (None, None) => "a run ends with its input, or when it is stopped".to_owned(),
    }
}
