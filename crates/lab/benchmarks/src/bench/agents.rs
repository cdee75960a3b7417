//! `weir bench agents`: what run control of a farm costs, with hosts that are emulated.
//!
//! `weir serve` runs in a process of its own, with a real configuration: so many `[[host]]`s and applications. A second process
//! [emulates](emulation) the hosts. Whatever run control does is real: it launches, proves, beats, welcomes, asks for reports, shows them.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use driver::scratch::Scratch;
use emulation::farm::Seen;
use emulation::launcher;
use serde::Serialize;
use serde_json::json;
use transport::clock;

use super::BenchError;
use super::served::{Served, pass};
use crate::bench::arguments::BenchArgs;

/// What was found.
#[derive(Serialize)]
pub(crate) struct Found {
    bench: &'static str,
    agents: u32,
    /// Of all agents.
    applications: u32,
    /// Those of them whose counters run control shows while they run.
    reported: u32,
    /// What the emulated hosts have seen.
    seen: Seen,
    boot_s: f64,
    start_s: f64,
    /// Processors that run control uses while the run goes on.
    cores: f64,
    aim_cores: f64,
    /// The same while the applications wait for a run.
    cores_booted: f64,
    stop_s: f64,
    shutdown_s: f64,
    /// Resident, most of all.
    memory_bytes: Option<u64>,
    /// How the run ended.
    state: String,
    /// Why not well.
    reason: Option<String>,
}

/// Boots, runs for `--seconds`, stops and shuts down.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let system = |what| move |error: io::Error| BenchError::System { what, error };
    let folder = Scratch::new().map_err(system("a temporary directory"))?;
    let farm = Farm::start(folder.path()).map_err(system("the process of emulated hosts"))?;
    let program = launcher::program(folder.path(), &folder.path().join(SOCKET)).map_err(system("a launcher"))?;
    let partition = format!("bench-agents-{}", std::process::id());
    let text = configuration(&partition, args, &program);
    let served = Served::start(folder.path(), &text, &partition)?;
    let boot_s = served.order("boot", &json!({}))?;
    let cores_booted = cores(&served, args.seconds);
    let start_s = served.order("start", &json!({}))?;
    pass(SETTLE);
    let cores = cores(&served, args.seconds);
    let reported = reported(&served)?;
    let state = served.status()?["state"].clone();
    if state != "running" {
        return Err(BenchError::NotServed(format!("the partition is {state} in the middle of the run")));
    }
    let (last, stop_s) = served.stop()?;
    let shutdown_s = served.order("shutdown", &json!({}))?;
    let memory_bytes = served.memory_bytes("VmHWM");
    drop(served);
    Ok(Found {
        bench: "agents",
        agents: args.agents,
        applications: args.agents * args.applications,
        reported,
        seen: farm.end().map_err(system("the process of emulated hosts"))?,
        boot_s,
        start_s,
        cores,
        aim_cores: AIM_CORES,
        cores_booted,
        stop_s,
        shutdown_s,
        memory_bytes,
        state: last["state"].as_str().unwrap_or_default().to_owned(),
        reason: last["reason"].as_str().map(str::to_owned),
    })
}

impl Found {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        let Self { agents, applications, boot_s, start_s, cores, cores_booted, stop_s, shutdown_s, state, .. } = self;
        let verdict = if *cores < self.aim_cores { "under" } else { "NOT under" };
        let memory = self.memory_bytes.map_or(String::new(), |bytes| format!(", {} MB", bytes >> 20));
        format!(
            "agents: {agents} with {applications} applications; run control uses {cores:.3} cores while they run, {verdict} {}; \
             {cores_booted:.3} while they wait{memory}\nboot {boot_s:.2} s, start {start_s:.2} s, stop {stop_s:.2} s ({state}), \
             shutdown {shutdown_s:.2} s",
            self.aim_cores
        )
    }
}

/// The processors that a process uses in so many seconds.
fn cores(served: &Served, seconds: f64) -> f64 {
    let (began, before) = (clock::now(), served.cpu_s());
    pass(Duration::from_secs_f64(seconds));
    (served.cpu_s() - before) / clock::now().since(began).as_secs_f64()
}

/// How many applications have told what they have counted.
fn reported(served: &Served) -> Result<u32, BenchError> {
    let dataflow = served.control().get("dataflow")?.map_err(BenchError::NotServed)?;
    let stages = dataflow["stages"].as_array().into_iter().flatten();
    let all = stages.flat_map(|stage| stage["applications"].as_array().into_iter().flatten());
    Ok(all.filter(|application| application["counts"].as_object().is_some_and(|counts| !counts.is_empty())).count()
        as u32)
}

/// Hosts that share applications in the proportions of a large experiment: read-out systems and builders by the hundred, processors
/// by the thousand.
fn configuration(partition: &str, args: &BenchArgs, program: &Path) -> String {
    let all = args.agents * args.applications;
    let part = |of: u32| (all / of).max(1);
    let (ros, sfi, sfo, l2sv, ef) = (part(30), part(50), part(1000), part(500), part(3));
    // Beside these there are level 1, the pROS and the DFM.
    let l2pu = all.saturating_sub(ros + sfi + sfo + l2sv + ef + 3).max(1);
    let mut text = format!(
        "partition.name = \"{partition}\"\nlevel1.rate = \"1 kHz\"\nl2sv.count = {l2sv}\nl2pu.count = {l2pu}\nros.count = {ros}\n\
         sfi.count = {sfi}\nsfi.max_event_size = \"2 MB\"\nef.count = {ef}\nsfo.count = {sfo}\noutput.directory = \"data\"\nprocesses.start_timeout = \"300 s\"\n"
    );
    for host in 1..=args.agents {
        let program = program.display();
        writeln!(text, "[[host]]\nname = \"host-{host}\"\nprogram = \"{program}\"").expect("a string takes text");
    }
    text
}

/// The process that emulates hosts.
struct Farm {
    process: Child,
    says: BufReader<ChildStdout>,
}

impl Farm {
    fn start(folder: &Path) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench-part", "farm"]).arg(folder.join(SOCKET));
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut says = BufReader::new(process.stdout.take().expect("its output is a pipe"));
        // Launchers find it from here on.
        says.read_line(&mut String::new())?;
        Ok(Self { process, says })
    }

    fn end(mut self) -> io::Result<Seen> {
        drop(self.process.stdin.take());
        let mut line = String::new();
        self.says.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(io::Error::other)
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// For 500 agents with ten applications each.
const AIM_CORES: f64 = 0.3;
const SOCKET: &str = "farm";
/// Until what a start has left behind is done.
const SETTLE: Duration = Duration::from_secs(2);
