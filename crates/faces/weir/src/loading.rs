//! The configuration that a command line asks for.

use std::path::Path;

use configuration::{ConfigurationError, LinkSource, Partition, Places, Play};
use partition::machine::{Findings, judge};
use terminal::Overrides;

use crate::cli::Playing;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotLoaded {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error("weir: {flag}: expected names of sources that are programs ({known}), found {name:?}")]
    Unknown { flag: &'static str, name: String, known: String },
    #[error("weir: {flag}: there is no such source: no [[source]] is a program, with shm: or tcp:")]
    Nothing { flag: &'static str },
}

/// Reads a configuration and judges whether this machine can run it, as `weir check` does: with what it warns of, or all that is wrong.
pub(crate) fn load_well(
    config: &Path,
    (overrides, playing): (&Overrides, &Playing),
    in_processes: bool,
) -> Result<(Partition, Vec<String>), String> {
    let (partition, places) = load(config, overrides, playing).map_err(|error| error.to_string())?;
    let Findings { errors, warnings } = judge(&partition, &places, in_processes || !partition.host.is_empty());
    let words = |found: Vec<_>| found.iter().map(ToString::to_string).collect::<Vec<_>>();
    if errors.is_empty() { Ok((partition, words(warnings))) } else { Err(words(errors).join("\n")) }
}

/// Reads a configuration, with what the command line changes.
pub(crate) fn load(config: &Path, overrides: &Overrides, playing: &Playing) -> Result<(Partition, Places), NotLoaded> {
    let loaded = Partition::load_with_places(config, &overrides.set)?;
    let keys = match (&playing.play_sources, &playing.await_sources) {
        (Some(names), _) => keys_of(&loaded.0, names, "--play-sources", Play::Emulator)?,
        (None, Some(names)) => keys_of(&loaded.0, names, "--await-sources", Play::None)?,
        (None, None) => return Ok(loaded),
    };
    let set: Vec<String> = overrides.set.iter().cloned().chain(keys).collect();
    Ok(Partition::load_with_places(config, &set)?)
}

/// The keys that have the sources of these names, or all, played or not; those that are played already stay as they are.
fn keys_of(partition: &Partition, names: &[String], flag: &'static str, play: Play) -> Result<Vec<String>, NotLoaded> {
    let programs = || partition.source.iter().enumerate().filter(|(_, source)| source.is_program());
    let known: Vec<&str> = programs().map(|(_, source)| source.name.as_str()).collect();
    if known.is_empty() {
        return Err(NotLoaded::Nothing { flag });
    }
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(NotLoaded::Unknown { flag, name: name.clone(), known: known.join(", ") });
    }
    let is_meant = |name: &String| names.is_empty() || names.contains(name);
    let changes = |source: &LinkSource| (source.play == Play::None) != (play == Play::None);
    let meant = programs().filter(|(_, source)| is_meant(&source.name) && changes(source));
    Ok(meant.map(|(place, _)| format!("source.{place}.play=\"{}\"", play.name())).collect())
}
