//! Partitions that run, process by process, and leave traces.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use base::ids::Role;
use configuration::Partition;
use driver::scratch::Scratch;
use partition::{Control, Figures, Outcome, Placement, Probe, Run, conduct};
use terminal::{ConductError, Interrupts};

use super::activity::Activity;
use crate::error::StudyError;

/// The configuration of all runs, and what became of those that are over.
pub(super) struct Live {
    path: PathBuf,
    text: String,
    scratch: Scratch,
    interrupts: Interrupts,
    now: Arc<Mutex<Option<Control>>>,
    pub(super) runs: Vec<Ran>,
}

/// How a run differs from the configuration.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) name: String,
    pub(super) keys: Vec<String>,
    /// Tables that it does not have.
    pub(super) without: &'static [&'static str],
    pub(super) in_children: fn(Role) -> bool,
}

/// A run that is over.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) name: String,
    pub(super) events: u64,
    pub(super) seconds: f64,
    pub(super) built: u64,
    pub(super) residual: u64,
    pub(super) processes: usize,
    pub(super) cores_used: f64,
    pub(super) stamps: u64,
    pub(super) overwritten: u64,
}

/// The traces of a run, as long as somebody looks at them.
pub(super) struct Traces(PathBuf);

impl Live {
    /// Of this file, or of the one that is built in.
    pub(super) fn new(path: Option<&PathBuf>) -> Result<Self, StudyError> {
        let (path, text) = match path {
            None => (PathBuf::from("partition.toml"), PARTITION.to_owned()),
            Some(path) => {
                let unread =
                    |error: std::io::Error| StudyError::Scenario { path: path.clone(), cause: error.to_string() };
                (path.clone(), fs::read_to_string(path).map_err(unread)?)
            }
        };
        let now = Arc::new(Mutex::new(None::<Control>));
        let interrupted = Arc::clone(&now);
        let interrupts = Interrupts::call(move || {
            let now = interrupted.lock().unwrap_or_else(PoisonError::into_inner);
            now.iter().for_each(Control::interrupt);
        });
        let interrupts = interrupts.map_err(StudyError::Signals)?;
        let scratch = Scratch::new().map_err(StudyError::Scratch)?;
        Ok(Self { path, text, scratch, interrupts, now, runs: Vec::new() })
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// How processes wait when they have nothing to do.
    pub(super) fn idle(&self) -> Result<configuration::Idle, StudyError> {
        Ok(self.partition(&[], &[])?.transport.idle)
    }

    /// The configuration with other keys, and without some tables.
    pub(super) fn partition(&self, keys: &[String], without: &[&str]) -> Result<Partition, StudyError> {
        if without.is_empty() {
            return Ok(Partition::parse(&self.name(), &self.text, keys)?);
        }
        let unread =
            |error: toml::de::Error| StudyError::Scenario { path: self.path.clone(), cause: error.to_string() };
        let mut tables: toml::Table = self.text.parse().map_err(unread)?;
        without.iter().for_each(|table| _ = tables.remove(*table));
        Ok(Partition::parse(&self.name(), &tables.to_string(), keys)?)
    }

    /// Runs it, each application of the children traced.
    pub(super) fn run(&mut self, setup: &Setup) -> Result<Traces, StudyError> {
        let traces = Traces(self.scratch.path().join("traces"));
        let files = self.scratch.path().join("out");
        let directory = format!("output.directory={}", serde_json::Value::from(files.display().to_string()));
        let keys = [&setup.keys[..], &[directory]].concat();
        let children = vec![format!("--trace={}", traces.0.display()), "--trace-polls".to_owned()];
        terminal::complain(&format!("run: {}", setup.name));
        let run = Run::new(self.partition(&keys, setup.without)?).place(Placement::apart(setup.in_children));
        let outcome = self.conduct(run.give_children(children).observe(Said))?;
        if files.exists() {
            fs::remove_dir_all(&files).map_err(StudyError::Scratch)?;
        }
        sound(setup, &outcome)?;
        self.runs.push(Ran::of(setup, &outcome));
        Ok(traces)
    }

    fn conduct(&self, run: Run) -> Result<Outcome, StudyError> {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.control());
        // Whoever was interrupted before has nobody to interrupt.
        self.goes_on()?;
        let outcome = conduct(run);
        // Also of a run that an interrupt has kept from beginning.
        self.goes_on()?;
        Ok(outcome.map_err(ConductError::Start)?)
    }

    /// Unless somebody wants it to end.
    pub(super) fn goes_on(&self) -> Result<(), StudyError> {
        if self.interrupts.any() { Err(StudyError::Interrupted) } else { Ok(()) }
    }

    /// What one of the applications of the last run did.
    pub(super) fn activity(&mut self, traces: &Traces, application: &str) -> Result<Activity, StudyError> {
        let file = traces.0.join(application).with_extension(stamps::file::ENDING);
        if !file.exists() {
            let cause = format!(
                "no trace of {application}: expected each role of the configuration that the study brings along"
            );
            return Err(StudyError::Scenario { path: self.path.clone(), cause });
        }
        let activity = Activity::read(&file)?;
        let run = self.runs.last_mut().expect("a run left these traces");
        let (stamps, overwritten) = activity.counts();
        run.stamps += stamps;
        run.overwritten += overwritten;
        self.goes_on()?;
        Ok(activity)
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        // What cannot be removed goes with the directory around it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Ran {
    fn of(setup: &Setup, outcome: &Outcome) -> Self {
        Self {
            name: setup.name.clone(),
            events: outcome.account.level1,
            seconds: outcome.duration.as_secs_f64(),
            built: outcome.account.built_complete + outcome.account.built_incomplete,
            residual: outcome.account.residual,
            processes: outcome.processes.len() + 1,
            cores_used: outcome.cores_used,
            stamps: 0,
            overwritten: 0,
        }
    }
}

/// A run that counts.
fn sound(setup: &Setup, outcome: &Outcome) -> Result<(), StudyError> {
    let account = &outcome.account;
    if account.residual == 0 && outcome.ending.reasons.is_empty() && account.level1 > 0 {
        return Ok(());
    }
    let reasons: Vec<String> = outcome.ending.reasons.iter().chain(&account.differences).cloned().collect();
    let reason = format!("{} events, residual {}: {}", account.level1, account.residual, reasons.join("; "));
    Err(StudyError::Unsound { sample: setup.name.clone(), reason })
}

/// Says what is said.
struct Said;

impl Probe for Said {
    fn figures(&mut self, _: &Figures) {}

    fn said(&mut self, said: &partition::Said) {
        terminal::complain(&format!("weir: {said}"));
    }
}

const PARTITION: &str = include_str!("partition.toml");
