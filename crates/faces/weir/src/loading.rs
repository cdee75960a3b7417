//! The configuration that a command line asks for.

use std::path::Path;

use configuration::{ConfigurationError, Partition, Places};
use terminal::Overrides;

use crate::cli::Playing;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotLoaded {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error("weir: --play-sources: expected names of sources that are programs ({known}), found {name:?}")]
    Unknown { name: String, known: String },
    #[error("weir: --play-sources: there is nothing to play: no [[source]] is a program, with shm: or tcp:")]
    Nothing,
}

/// Reads a configuration, with what the command line changes.
pub(crate) fn load(config: &Path, overrides: &Overrides, playing: &Playing) -> Result<(Partition, Places), NotLoaded> {
    let loaded = Partition::load_with_places(config, &overrides.set)?;
    let Some(names) = &playing.play_sources else { return Ok(loaded) };
    let mut set = overrides.set.clone();
    set.extend(played(&loaded.0, names)?);
    Ok(Partition::load_with_places(config, &set)?)
}

/// The keys of the sources of these names, or of all; those that are played already stay as they are.
fn played(partition: &Partition, names: &[String]) -> Result<Vec<String>, NotLoaded> {
    let programs = || partition.source.iter().enumerate().filter(|(_, source)| source.is_program());
    let known: Vec<&str> = programs().map(|(_, source)| source.name.as_str()).collect();
    if known.is_empty() {
        return Err(NotLoaded::Nothing);
    }
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(NotLoaded::Unknown { name: name.clone(), known: known.join(", ") });
    }
    let is_meant = |name: &String| names.is_empty() || names.contains(name);
    let meant = programs().filter(|(_, source)| is_meant(&source.name) && source.play.is_none());
    Ok(meant.map(|(place, _)| format!("source.{place}.play=\"emulator\"")).collect())
}
