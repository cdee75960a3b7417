//! `weir bench prediction`: what `weir sim` says of partitions, beside live runs of the same in alternation.
//!
//! | name | partition | where |
//! |---|---|---|
//! | `building` | four read-out systems with fragments of 9 kB, one event builder, self-triggered | one process |
//! | `level2` | level 1, two-step selection on eight read-out systems, two event builders, event filter | one process |
//! | `processes` | four read-out systems with fragments of 1 kB, one event builder, self-triggered | a process for each, TCP |
//! | `datagrams` | the same | data requests and replies over UDP |
//! | `shared` | the same with fragments of 4 kB | shared memory |
//!
//! The costs come from a file, or are measured first, by `weir calibrate`; none of the partitions is one of those that are
//! metered for it. But `processes`, `datagrams` and `shared` are of the one family that costs of processes are fitted to: event
//! building by two to six read-out systems with fragments of 0.5 to 4 kB and one event builder. They lie between its shapes, `shared` at
//! the edge in fragment size: what is judged there is an interpolation. Processes are bound to cores (`processes.cores`), read-out systems to one,
//! all others to another: where the kernel places them, a run takes one of several courses, which last for its whole time.
//!
//! Simulations know of nobody else on the machine. A live run that had less than [`SHARE_MIN`] of the processor time that it
//! wanted is taken out, and repeated for a while; without enough of the others there is no judgement, nor where the kernel does not say
//! what others had.

use configuration::{Interval, Layout, Partition};
use dataflow::ids::Role;
use serde::Serialize;
use simulator::world::Trace;
use transport::scheduler::allowed_cpus;

use super::paired::{Comparison, Figures, RatioOf};
use super::{BenchError, sound};
use crate::calibration;
use crate::cli::BenchArgs;
use crate::conductor::{Run, conduct};
use crate::simulation::simulate;

/// All of them.
#[derive(Serialize)]
pub(crate) struct Prediction {
    /// Whether all are; none where one cannot be judged.
    within: Option<bool>,
    /// What others on the machine did not let the calibration measure: then nothing is judged.
    doubts: Vec<String>,
    building: Predicted,
    level2: Predicted,
    processes: Predicted,
    datagrams: Predicted,
    shared: Predicted,
}

/// One partition.
#[derive(Serialize)]
struct Predicted {
    #[serde(flatten)]
    comparison: Comparison<Parameters>,
    /// Whether the median ratio of events per second is within [`ERROR_MAX`] of 1; none with too few live runs that are known to have
    /// had the machine for themselves, or too short ones.
    within: Option<bool>,
    error_max: f64,
    /// The least part of the processor time that it wanted, of a live run that counts; none where the kernel does not say.
    share: Option<f64>,
    /// Pairs whose live run had less than its share.
    taken_out: usize,
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
    let (name, costs, doubts) = match &args.costs {
        Some(path) => (path.display().to_string(), Partition::read_costs(path)?, Vec::new()),
        None => {
            let seconds = (args.seconds * CALIBRATION_PER_RUN).clamp(1.0, CALIBRATION_SECONDS);
            let costs = calibration::measure(None, seconds)?;
            ("costs".to_owned(), costs.to_toml(), costs.doubts().collect())
        }
    };
    let (costs, is_sound) = ((name, costs), doubts.is_empty());
    let within = |name, text: &str| Subject::new(name, text, Layout::Process, &costs)?.compare(args.seconds, is_sound);
    let apart = |name, bytes, more| {
        let text = building(name, bytes) + &calibration::bound_to(&allowed_cpus()) + more;
        Subject::new(name, &text, Layout::Processes, &costs)?.compare(args.seconds, is_sound)
    };
    let building = within("prediction.building", &building("building", 9_000))?;
    let level2 = within("prediction.level2", LEVEL2)?;
    let processes = apart("prediction.processes", 1_000, "")?;
    let datagrams = apart("prediction.datagrams", 1_000, calibration::DATAGRAMS)?;
    let shared = apart("prediction.shared", 4_000, calibration::SHARED)?;
    let judged = [&building, &level2, &processes, &datagrams, &shared].map(|one| one.within);
    let within = judged.into_iter().try_fold(true, |all, one| Some(all && one?));
    Ok(Prediction { within, doubts, building, level2, processes, datagrams, shared })
}

impl Prediction {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        let all = [&self.building, &self.level2, &self.processes, &self.datagrams, &self.shared];
        let doubts = self.doubts.iter().map(|doubt| format!("not judged: {doubt}"));
        doubts.chain(all.map(Predicted::to_text)).collect::<Vec<_>>().join("\n\n")
    }

    /// Whether one was judged and is not within its bounds.
    pub(crate) fn is_off(&self) -> bool {
        let all = [&self.building, &self.level2, &self.processes, &self.datagrams, &self.shared];
        all.into_iter().any(|one| one.within == Some(false))
    }
}

impl Predicted {
    fn to_text(&self) -> String {
        let Self { comparison, within, error_max, share, taken_out } = self;
        let percent = error_max * 100.0;
        let judgement = match within {
            Some(true) => format!("within {percent:.0} %"),
            Some(false) => format!("NOT within {percent:.0} %"),
            None => {
                format!("not judged: expected {JUDGED_MIN} live runs of at least {SECONDS_MIN} s that nobody disturbs")
            }
        };
        let out = match taken_out {
            0 => String::new(),
            count => format!(", {count} taken out with less than {:.0} %", SHARE_MIN * 100.0),
        };
        let text = comparison.to_text_as(["simulated", "live"]);
        let had = share.map_or("a part that the kernel does not tell".to_owned(), |share| {
            format!("at least {:.0} %", share * 100.0)
        });
        format!("{text}\n{judgement}; live runs had {had} of the time that they wanted{out}")
    }
}

/// A partition to be simulated and run.
struct Subject {
    name: &'static str,
    live: Partition,
    simulated: Partition,
    processes: bool,
}

/// A live run, with the part that it had of the processor time that it wanted.
struct Live {
    figures: Figures,
    /// None where the kernel does not say.
    share: Option<f64>,
}

impl Subject {
    fn new(
        name: &'static str,
        text: &str,
        layout: Layout,
        (costs_name, costs): &(String, String),
    ) -> Result<Self, BenchError> {
        let live = Partition::parse(name, text, &[])?;
        let mut simulated = calibration::as_simulated(&Partition::parse_with_costs(name, text, (costs_name, costs))?);
        simulated.simulation.as_mut().expect("costs belong to a simulation").layout = layout;
        Ok(Self { name, live, simulated, processes: layout == Layout::Processes })
    }

    fn compare(&self, seconds: f64, is_sound: bool) -> Result<Predicted, BenchError> {
        let (mut calm, mut disturbed) = (Vec::new(), Vec::new());
        // Runs that are too short to tell anything need not be repeated.
        let wanted = if seconds < SECONDS_MIN { 1 } else { PAIRS };
        for pair in 0..PAIRS_MAX {
            let simulated = self.simulated(pair as u64)?;
            let live = self.live(seconds)?;
            let runs = if live.share.is_some_and(|share| share < SHARE_MIN) { &mut disturbed } else { &mut calm };
            runs.push((simulated, live));
            // Where nobody is calm, more of the same tells nothing.
            if calm.len() == wanted || (calm.is_empty() && disturbed.len() == wanted) {
                break;
            }
        }
        let taken_out = disturbed.len();
        let is_enough = is_sound && calm.len() >= JUDGED_MIN && seconds >= SECONDS_MIN;
        let counted = if calm.is_empty() { disturbed } else { calm };
        let share = least_share(counted.iter().map(|(_, live)| live.share));
        let is_judged = is_enough && share.is_some();
        let pairs: Vec<(Figures, Figures)> =
            counted.iter().map(|(simulated, live)| (*simulated, live.figures)).collect();
        let simulated_seconds = SIMULATED.duration().as_secs_f64();
        let parameters = Parameters { processes: self.processes, seconds, simulated_seconds, pairs: pairs.len() };
        let comparison = Comparison::of(self.name, parameters, RatioOf::EventsPerS, &pairs);
        let within = is_judged.then(|| (comparison.ratio() - 1.0).abs() <= ERROR_MAX);
        Ok(Predicted { comparison, within, error_max: ERROR_MAX, share, taken_out })
    }

    fn simulated(&self, pair: u64) -> Result<Figures, BenchError> {
        let mut partition = self.simulated.clone();
        partition.run.seed += 1 + pair;
        partition.run.duration = Some(SIMULATED);
        let simulated = simulate(partition, Trace::None)?;
        let summary = simulated.summary();
        Ok(figures(
            summary.rates_hz.level1,
            simulated.outcomes.cpu.as_secs_f64() / simulated.outcomes.account.level1 as f64,
        ))
    }

    fn live(&self, seconds: f64) -> Result<Live, BenchError> {
        let mut partition = self.live.clone();
        partition.run.duration = Some(Interval::from_ms((seconds * 1e3) as u64));
        let in_children: fn(Role) -> bool = if self.processes { |_| true } else { |_| false };
        let conducted = conduct(Run { partition, in_children, progress: None, observer: None })?;
        let events = sound(&conducted)?.level1 as f64;
        let (running_s, cpu_s) = (conducted.duration.as_secs_f64(), conducted.cpu.as_secs_f64());
        // One process wants one core, which it never leaves by itself.
        let share = if self.processes {
            conducted.left_to_us
        } else {
            Some(conducted.cpu_while_running.as_secs_f64() / running_s)
        };
        Ok(Live { figures: figures(events / running_s, cpu_s / events), share })
    }
}

/// None if one is not known.
fn least_share(shares: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    shares.reduce(|least, share| least.zip(share).map(|(least, share)| least.min(share))).flatten()
}

fn figures(events_per_s: f64, cpu_s_per_event: f64) -> Figures {
    Figures { events_per_s, bytes_per_s: None, cpu_us_per_event: cpu_s_per_event * 1e6, round_trip_ns: None }
}

/// Event building by four read-out systems, with fragments of this many bytes.
fn building(name: &str, bytes: u32) -> String {
    let name = name.trim_start_matches("prediction.");
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

/// Pairs that count.
const PAIRS: usize = 5;
/// Pairs at most, with those that are taken out.
const PAIRS_MAX: usize = 10;
/// So many are enough to tell.
const JUDGED_MIN: usize = 3;
/// Shorter runs measure how a run begins.
const SECONDS_MIN: f64 = 0.5;
/// A live run that had less of the processor time that it wanted says nothing of the system.
const SHARE_MIN: f64 = 0.95;
/// How far a prediction may be off.
const ERROR_MAX: f64 = 0.15;
/// How long to calibrate, for a second of each live run, and at most.
const CALIBRATION_PER_RUN: f64 = 12.0;
const CALIBRATION_SECONDS: f64 = 30.0;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_not_known_leaves_the_least_unknown() {
        assert_eq!(least_share([Some(0.99), Some(0.97)].into_iter()), Some(0.97));
        assert_eq!(least_share([Some(0.99), None].into_iter()), None);
        assert_eq!(least_share([None, Some(0.99)].into_iter()), None);
        assert_eq!(least_share([].into_iter()), None);
    }
}
