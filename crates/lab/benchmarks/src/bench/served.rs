//! A partition under `weir serve`, in a process of its own, commanded as `weir ctl` does it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use partition::cpu::cpu_seconds_of;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use service::{RunControl, Unheard};
use transport::clock;

use super::{BenchError, PATIENCE};

/// The process. Dropping it ends it in order.
pub(super) struct Served {
    process: Child,
    control: RunControl,
}

impl Served {
    /// Serves the configuration in a file of a folder, where it works.
    pub(super) fn start(folder: &Path, configuration: &str, partition: &str) -> Result<Self, BenchError> {
        let system = |what| move |error: io::Error| BenchError::System { what, error };
        let program = std::env::current_exe().map_err(system("the program's own path"))?;
        fs::write(folder.join(CONFIGURATION), configuration).map_err(system("a temporary file"))?;
        let mut command = Command::new(program);
        command.args(["serve", CONFIGURATION, "--listen", "127.0.0.1:0"]).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // What it says is of use when it fails alone.
        let said = fs::File::create(folder.join(SAID)).map_err(system("a temporary file"))?;
        let mut process = command.stderr(said).spawn().map_err(system("weir serve"))?;
        let until = clock::now() + PATIENCE;
        loop {
            match RunControl::find(Some(partition), "bench".to_owned()) {
                Ok(control) => return Ok(Self { process, control }),
                Err(_) if process.try_wait().is_ok_and(|ended| ended.is_none()) && clock::now() < until => {
                    pass(LOOK_EVERY);
                }
                Err(error) => {
                    let _ = process.kill();
                    let _ = process.wait();
                    let said = fs::read_to_string(folder.join(SAID)).unwrap_or_default();
                    return Err(BenchError::NotServed(format!("{error}: {}", said.trim())));
                }
            }
        }
    }

    /// What speaks to it.
    pub(super) fn control(&self) -> &RunControl {
        &self.control
    }

    /// Gives an order that has to succeed; how long it took, in seconds.
    pub(super) fn order(&self, verb: &str, run: &Value) -> Result<f64, BenchError> {
        let began = clock::now();
        self.control.post(&format!("orders/{verb}"), json!({ "run": run }))?.map_err(BenchError::NotServed)?;
        Ok(clock::now().since(began).as_secs_f64())
    }

    /// The status now.
    pub(super) fn status(&self) -> Result<Value, BenchError> {
        self.control.get("status")?.map_err(BenchError::NotServed)
    }

    /// Ends the run in order and waits until it has ended; how it has, and how long that took, in seconds.
    pub(super) fn stop(&self) -> Result<(Value, f64), BenchError> {
        let began = clock::now();
        let events = self.control.events()?;
        self.order("stop", &json!({}))?;
        let statuses = events.filter(|(event, _)| event == "status").map(|(_, status)| status);
        let mut over = statuses.filter(|status| status["run"].is_null() && !status["last"].is_null());
        let status = over.next().ok_or_else(|| BenchError::NotServed("it was gone before the run ended".to_owned()))?;
        Ok((status["last"].clone(), clock::now().since(began).as_secs_f64()))
    }

    /// Its processor time so far, in seconds.
    pub(super) fn cpu_s(&self) -> f64 {
        cpu_seconds_of(self.process.id()).unwrap_or(f64::NAN)
    }

    /// What a line of `/proc/…/status` says of its memory, in bytes.
    pub(super) fn memory_bytes(&self, line: &str) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let kb = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'))?;
        Some(kb.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    }

    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(process) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(process, Signal::TERM);
        }
        let _ = self.process.wait();
    }
}

/// Lets so much time pass.
#[expect(clippy::disallowed_methods, reason = "the time itself is what is waited for")]
pub(super) fn pass(time: Duration) {
    thread::sleep(time);
}

impl From<Unheard> for BenchError {
    fn from(error: Unheard) -> Self {
        Self::NotServed(error.to_string())
    }
}

const CONFIGURATION: &str = "partition.toml";
/// Where its standard error goes.
const SAID: &str = "said";
const LOOK_EVERY: Duration = Duration::from_millis(20);
