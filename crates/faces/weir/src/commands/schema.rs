//! `weir schema`.

use std::io::{self, Write};

use terminal::Exit;

/// Writes the JSON schema of configurations.
///
/// # Errors
///
/// The output cannot be written.
pub fn schema(out: &mut dyn Write) -> io::Result<Exit> {
    serde_json::to_writer_pretty(&mut *out, &configuration::schema())?;
    writeln!(out)?;
    Ok(Exit::Well)
}
