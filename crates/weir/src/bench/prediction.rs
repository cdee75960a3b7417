//! `weir bench prediction`: what `weir sim` says of three partitions, beside live runs of the same in alternation.
//!
//! | name | partition | where |
//! |---|---|---|
//! | `building` | four read-out systems with fragments of 9 kB, one event builder, self-triggered | one process |
//! | `level2` | level 1, two-step selection on eight read-out systems, two event builders, event filter | one process |
//! | `processes` | four read-out systems with fragments of 1 kB, one event builder, self-triggered | a process for each, TCP |
//!
//! The costs come from a file, or are measured first, by `weir calibrate`; none of the partitions is one of those that are
//! metered for it.

use configuration::{Interval, Layout, Partition};
use dataflow::ids::Role;
use serde::Serialize;
use simulator::world::Trace;

use super::paired::{Comparison, Figures, RatioOf};
use super::{BenchError, sound};
use crate::calibration;
use crate::cli::BenchArgs;
use crate::conductor::{Run, conduct};
use crate::simulation::simulate;

/// All three.
#[derive(Serialize)]
pub(crate) struct Prediction {
    building: Comparison<Parameters>,
    level2: Comparison<Parameters>,
    processes: Comparison<Parameters>,
}

/// What is predicted.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Parameters {
    processes: bool,
    /// Of a live run.
    seconds: f64,
    /// Virtual time of a simulated one.
    simulated_seconds: f64,
    pairs: usize,
}

/// Simulates and runs in alternation.
pub(crate) fn measure(args: &BenchArgs) -> Result<Prediction, BenchError> {
    let costs = match &args.costs {
        Some(path) => (path.display().to_string(), Partition::read_costs(path)?),
        None => (
            "costs".to_owned(),
            calibration::measure(None, (args.seconds * CALIBRATION_PER_RUN).clamp(1.0, CALIBRATION_SECONDS))?.to_toml(),
        ),
    };
    let of = |name, text: &str, layout| compare(name, text, layout, &costs, args.seconds);
    Ok(Prediction {
        building: of("prediction.building", &building("building", 9_000), Layout::Process)?,
        level2: of("prediction.level2", LEVEL2, Layout::Process)?,
        processes: of("prediction.processes", &building("processes", 1_000), Layout::Processes)?,
    })
}

impl Prediction {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        [&self.building, &self.level2, &self.processes].map(|one| one.to_text_as(["simulated", "live"])).join("\n\n")
    }
}

fn compare(
    name: &'static str,
    text: &str,
    layout: Layout,
    (costs_name, costs): &(String, String),
    seconds: f64,
) -> Result<Comparison<Parameters>, BenchError> {
    let mut partition = Partition::parse_with_costs(name, text, (costs_name, costs))?;
    let simulation = partition.simulation.as_mut().expect("costs belong to a simulation");
    simulation.layout = layout;
    let processes = layout == Layout::Processes;
    let parameters =
        Parameters { processes, seconds, simulated_seconds: SIMULATED.duration().as_secs_f64(), pairs: PAIRS };
    let mut seed = partition.run.seed;
    let mut next_seed = || {
        seed += 1;
        seed
    };
    let simulated = || simulated(&partition, next_seed());
    let live = || live(&partition, processes, seconds);
    Comparison::measure(name, parameters, (PAIRS, RatioOf::EventsPerS), simulated, live)
}

fn simulated(partition: &Partition, seed: u64) -> Result<Figures, BenchError> {
    let mut partition = partition.clone();
    partition.run.seed = seed;
    partition.run.duration = Some(SIMULATED);
    let simulated = simulate(partition, Trace::None)?;
    let summary = simulated.summary();
    Ok(figures(
        summary.rates_hz.level1,
        simulated.outcomes.cpu.as_secs_f64() / simulated.outcomes.account.level1 as f64,
    ))
}

fn live(partition: &Partition, processes: bool, seconds: f64) -> Result<Figures, BenchError> {
    let mut partition = Partition { simulation: None, ..partition.clone() };
    partition.run.duration = Some(Interval::from_ms((seconds * 1e3) as u64));
    let in_children: fn(Role) -> bool = if processes { |_| true } else { |_| false };
    let conducted = conduct(Run { partition, in_children, progress: None, observer: None })?;
    let events = sound(&conducted)?.level1 as f64;
    Ok(figures(events / conducted.duration.as_secs_f64(), conducted.cpu.as_secs_f64() / events))
}

fn figures(events_per_s: f64, cpu_s_per_event: f64) -> Figures {
    Figures { events_per_s, bytes_per_s: None, cpu_us_per_event: cpu_s_per_event * 1e6, round_trip_ns: None }
}

/// Event building by four read-out systems, with fragments of this many bytes.
fn building(name: &str, bytes: u32) -> String {
    format!(
        r#"
partition.name = "{name}"
dfm.input = "self"
sfi.count = 1
[ros]
count = 4
input = "emulator"
fragment = {{ kind = "fixed", size = "{bytes} B" }}
request_timeout = "2 s"
"#
    )
}

const PAIRS: usize = 5;
/// How long to calibrate, for a second of each live run, and at most.
const CALIBRATION_PER_RUN: f64 = 6.0;
const CALIBRATION_SECONDS: f64 = 18.0;
const SIMULATED: Interval = Interval::from_ms(100);

const LEVEL2: &str = r#"
partition.name = "level2"
level1 = { rois_per_event = 2 }
l2sv.count = 1
l2pu = { count = 2, strategy = "two-step", step_accept = "50 %" }
sfi.count = 2
ef.policy = "accept"
[ros]
count = 8
input = "emulator"
fragment = { kind = "fixed", size = "1 kB" }
request_timeout = "2 s"
"#;
