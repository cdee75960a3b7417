//! What a configuration with some keys changed would do: what the check says, and a simulation by `weir sim`.

use core::fmt::Display;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{self, Stdio};
use std::time::Duration;
use std::{env, io};

use configuration::Partition;
use partition::machine::{Findings, judge};
use rustix::process::{Pid, Resource, Rlimit, prlimit, setpriority_process};
use serde::Serialize;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::answer::Refused;
use crate::whereabouts::directory;

/// A configuration with some keys changed, and what the check says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Checked {
    /// The whole configuration, without secrets.
    toml: String,
    /// What keeps this machine from running it.
    errors: Vec<String>,
    /// What may not be as it was meant.
    warnings: Vec<String>,
}

/// What a run would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Forecast {
    /// The configuration that was simulated.
    checked: Checked,
    /// The summary of the simulated run.
    summary: Value,
    /// What the simulation does not know, and whose costs it has.
    notes: Vec<String>,
}

/// Changes keys of a configuration and checks it.
pub(crate) fn check(partition: &Partition, set: &[String]) -> Result<(Partition, Checked), Refused> {
    let text = partition.to_toml();
    let changed = Partition::parse_with_places("the configuration", &text, set);
    let (changed, places) = changed.map_err(|error| Refused::Settings(error.to_string()))?;
    let Findings { errors, warnings } = judge(&changed, &places, true);
    let words = |problems: Vec<_>| problems.iter().map(ToString::to_string).collect();
    let checked =
        Checked { toml: changed.without_secrets().to_toml(), errors: words(errors), warnings: words(warnings) };
    Ok((changed, checked))
}

/// Simulates a run of a bounded number of events, in a process of its own: whatever it takes, run control goes on.
pub(crate) async fn forecast(partition: &Partition, set: &[String]) -> Result<Forecast, Refused> {
    let (changed, checked) = check(partition, set)?;
    let place = Place::make()?;
    let (configuration, summary) = (place.0.join("partition.toml"), place.0.join("summary.json"));
    let written = fs::write(&configuration, changed.to_toml());
    let failed = |error: io::Error| Refused::Failed(format!("nothing is simulated: {error}"));
    written.map_err(failed)?;
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    command.arg("sim").arg(&configuration).args(["--events", EVENTS, "--summary"]).arg(&summary);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn().map_err(failed)?;
    // The run that goes on comes first.
    child.id().and_then(|id| Pid::from_raw(id as i32)).map(hold_back).transpose().map_err(failed)?;
    let Ok(output) = timeout(PATIENCE, child.wait_with_output()).await else {
        let limit = PATIENCE.as_secs();
        return Err(Refused::Failed(format!("the simulation takes more than {limit} s: run `weir sim` at a terminal")));
    };
    let said = String::from_utf8_lossy(&output.map_err(failed)?.stderr).into_owned();
    let told = fs::read(&summary).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let Some(summary) = told else { return Err(Refused::Settings(said.trim().to_owned())) };
    let notes = said.lines().filter(|line| !line.contains("of processor time"));
    let notes = notes.map(|line| line.trim_start_matches("weir sim: ").to_owned()).collect();
    Ok(Forecast { checked, summary, notes })
}

/// Leaves cores and memory to others.
fn hold_back(process: Pid) -> io::Result<()> {
    let memory = Rlimit { current: Some(MEMORY_MAX), maximum: Some(MEMORY_MAX) };
    prlimit(Some(process), Resource::As, memory)?;
    Ok(setpriority_process(Some(process), LAST)?)
}

/// A folder beside the whereabouts, as long as it is needed. One simulation goes on at a time.
struct Place(PathBuf);

impl Place {
    fn make() -> Result<Self, Refused> {
        let failed = |error: &dyn Display| Refused::Failed(format!("no place for a simulation: {error}"));
        let beside = directory().map_err(|error| failed(&error))?;
        let place = Self(beside.join(format!(".forecast.{}", process::id())));
        // A former process of this number may have been killed.
        let _ = fs::remove_dir_all(&place.0);
        DirBuilder::new().mode(0o700).create(&place.0).map_err(|error| failed(&error))?;
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What is left is removed by the next one.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// So many level-1 events settle the rates, and take seconds.
const EVENTS: &str = "5000";
const PATIENCE: Duration = Duration::from_secs(60);
/// Addresses, of which a simulation uses a part.
const MEMORY_MAX: u64 = 8 << 30;
/// The niceness of what runs when nothing else wants to.
const LAST: i32 = 19;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_changed_and_checked() {
        let partition = Partition::parse(
            "p",
            "partition = { name = \"p\", key = \"a secret of some length\" }\nros.count = 2\nsfi.count = 1\n",
            &[],
        )
        .unwrap();
        let (changed, checked) = check(&partition, &["sfi.count=3".to_owned()]).unwrap();
        assert_eq!(checked.errors, Vec::<String>::new());
        assert_eq!((changed.sfi.count, Partition::parse("p", &checked.toml, &[]).unwrap().sfi.count), (3, 3));
        assert!(!checked.toml.contains("a secret"), "{}", checked.toml);
        let error = check(&partition, &["sfi.count=many".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("sfi.count"), "{error}");
    }
}
