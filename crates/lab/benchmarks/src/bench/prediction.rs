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
//! The costs come from a file, or are measured between the live runs, with the shapes of `weir calibrate`. Then the
//! machine of the costs is that of the live runs, whatever others do to it by and by.
//!
//! What is judged is an interpolation: costs are measured with other partitions of the same kind, on either side of
//! each of these. Costs within one process are fitted to event building and to chains with level 2, of three to twelve
//! fragments of 0.5 to 16 kB. Those of processes are fitted to building from two to six read-out systems with fragments
//! of 0.5 to 4 kB (`shared` is at the edge).
//!
//! Processes are bound to cores (`processes.cores`), read-out systems to one, all others to another. Where the
//! kernel places them, a run takes one of several courses, which last for its whole time.
//!
//! Bound processes still take one of two courses on a virtual machine. Its host moves the cores every few seconds,
//! and where they share no cache the same instructions take up to twice as long. So before and after each run it is
//! measured how far the two cores are from each other ([`calibration::line_ns`]). A live run is compared with a
//! simulation whose costs come from runs with cores as far apart. It is taken out if there were none, or if the
//! cores were moved while it lasted. So the time of a round is spent in runs of up to [`SLICE_SECONDS_MAX`].
//!
//! Simulations know of nobody else on the machine. A live run that had less than [`SHARE_MIN`] of the processor
//! time that it wanted is taken out, and repeated for a while. Without enough of the others there is no judgement,
//! nor where the kernel does not say what others had.

use std::time::Duration;

use base::ids::Role;
use configuration::{Interval, Layout, Partition};
use dataflow::report::SfiCounters;
use serde::Serialize;
use simulator::world::Trace;
use transport::clock;
use transport::scheduler::allowed_cpus;

use super::paired::{Comparison, Figures, RatioOf};
use super::{BenchError, sound};
use crate::bench::arguments::BenchArgs;
use crate::calibration::{self, Calibration, Costs, Course, PREDICTION_ERROR_MAX, Way, is_same_course, line_ns};
use partition::{Placement, Run};
use simulation::simulate;
use terminal::conduct;

/// All of them.
#[derive(Serialize)]
pub(crate) struct Prediction {
    /// The one that is off the most once more.
    #[serde(flatten)]
    main: Comparison<Parameters>,
    /// Whether all are; none where one cannot be judged.
    within: Option<bool>,
    /// What others on the machine did not let the calibration measure well.
    doubts: Vec<String>,
    /// How far the two cores were from each other, in ns for a cache line there and back. It is from the least to the most of each course.
    lines_ns: Vec<[f64; 2]>,
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
    /// Whether the median ratio of events per second is within [`PREDICTION_ERROR_MAX`] of 1. None with too few live
    /// runs that are known to have had the machine for themselves, or too short ones.
    within: Option<bool>,
    error_max: f64,
    /// The least part of the processor time that it wanted, of a live run that counts; none where the kernel does not say.
    share: Option<f64>,
    /// Live runs that had less than their share, or whose cores were moved, or were at a distance of which no costs are known.
    taken_out: usize,
}

/// What is predicted.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Parameters {
    processes: bool,
    /// What was asked for: those of live runs in a round are [`LIVE_PER_SECOND`] of it.
    seconds: f64,
    /// Virtual time of a simulated one.
    simulated_seconds: f64,
    pairs: usize,
}

/// Calibrates and runs in alternation, then simulates.
pub(crate) fn measure(args: &BenchArgs) -> Result<Prediction, BenchError> {
    let given = args.costs.as_deref().map(Partition::read_costs).transpose()?;
    let mut subjects = subjects()?;
    let each = Duration::from_secs_f64((args.seconds * CALIBRATION_PER_RUN).min(CALIBRATION_SECONDS_MAX));
    let mut calibration = Calibration::new(None, each)?;
    let live_seconds = args.seconds * LIVE_PER_SECOND;
    let slices = (live_seconds / SLICE_SECONDS_MAX).ceil().max(1.0);
    let began = clock::now();
    // Runs that are too short to tell anything need not be repeated.
    let is_short = args.seconds < SECONDS_MIN;
    for round in 0..if is_short { 1 } else { ROUNDS_MAX } {
        if given.is_none() && round < ROUNDS_METERED {
            calibration.meter()?;
        }
        if given.is_none() {
            calibration.run()?;
        }
        for _ in 0..slices as usize {
            subjects.iter_mut().try_for_each(|subject| subject.run(live_seconds / slices))?;
        }
        let is_enough = |subject: &Subject| subject.calm() >= ROUNDS * slices as usize / 2;
        // Where nobody is calm, more of the same tells nothing.
        let is_hopeless = |subject: &Subject| subject.calm() == 0;
        let is_late = clock::now().since(began) > MEASURED_MAX;
        if round + 1 >= ROUNDS && (is_late || subjects.iter().all(is_enough) || subjects.iter().any(is_hopeless)) {
            break;
        }
    }
    let known = match given {
        Some(costs) => Known { everywhere: Some(costs.clone()), any: costs, ..Known::default() },
        None => Known::of(&calibration, &subjects)?,
    };
    let predicted = subjects.iter().map(|subject| subject.predicted(&known, args.seconds));
    let predicted: Vec<Predicted> = predicted.collect::<Result<_, _>>()?;
    let judged = predicted.iter().map(|one| one.within).try_fold(true, |all, one| Some(all && one?));
    let off = |one: &&Predicted| (one.comparison.compared().ratio() - 1.0).abs();
    let main = predicted.iter().max_by(|one, other| off(one).total_cmp(&off(other))).expect("there are subjects");
    let main = main.comparison.clone().named("prediction");
    let [building, level2, processes, datagrams, shared] =
        predicted.try_into().unwrap_or_else(|_| unreachable!("one for each subject"));
    let lines_ns = known.courses.iter().map(|(course, _)| [*course.start(), *course.end()]).collect();
    Ok(Prediction {
        main,
        within: judged,
        doubts: known.doubts,
        lines_ns,
        building,
        level2,
        processes,
        datagrams,
        shared,
    })
}

fn subjects() -> Result<[Subject; 5], BenchError> {
    let cores = calibration::bound_to(&allowed_cpus());
    let apart = |name, bytes, way, more| Subject::new(name, building(name, bytes) + &cores + more, Some(way));
    Ok([
        Subject::new("prediction.building", building("building", 9_000), None)?,
        Subject::new("prediction.level2", LEVEL2.to_owned(), None)?,
        apart("prediction.processes", 1_000, Way::Tcp, "")?,
        apart("prediction.datagrams", 1_000, Way::Datagrams, calibration::DATAGRAMS)?,
        apart("prediction.shared", 4_000, Way::SharedMemory, calibration::SHARED)?,
    ])
}

impl Prediction {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        let doubts = self.doubts.iter().map(|doubt| format!("calibration: {doubt}"));
        let lines = self.lines_ns.iter().map(|[least, most]| {
            format!(
                "two cores were at a distance of {least:.0} to {most:.0} ns (a cache line there and back) in some runs"
            )
        });
        doubts.chain(lines).chain(self.all().map(Predicted::to_text)).collect::<Vec<_>>().join("\n\n")
    }

    /// Whether one was judged and is not within its bounds.
    pub(crate) fn is_off(&self) -> bool {
        self.all().into_iter().any(|one| one.within == Some(false))
    }

    fn all(&self) -> [&Predicted; 5] {
        [&self.building, &self.level2, &self.processes, &self.datagrams, &self.shared]
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
                format!(
                    "not judged: expected --seconds of at least {SECONDS_MIN}, and {JUDGED_MIN} live runs that nobody disturbs"
                )
            }
        };
        let out = match taken_out {
            0 => String::new(),
            count => format!(
                ", {count} taken out: with less than {:.0} %, on cores that were moved, or too few of their kind",
                SHARE_MIN * 100.0
            ),
        };
        let text = comparison.to_text_as(["simulated", "live"]);
        let had = share.map_or("a part that the kernel does not tell".to_owned(), |share| {
            format!("at least {:.0} %", share * 100.0)
        });
        format!("{text}\n{judgement}; live runs had {had} of the time that they wanted{out}")
    }
}

/// The costs that are known.
#[derive(Default)]
struct Known {
    /// For all courses.
    everywhere: Option<String>,
    /// Measured, each by itself.
    courses: Vec<(Course, Costs)>,
    /// Where nothing can be judged.
    any: String,
    doubts: Vec<String>,
}

impl Known {
    fn of(calibration: &Calibration, subjects: &[Subject]) -> Result<Self, BenchError> {
        let apart = subjects.iter().filter(|subject| subject.way.is_some());
        let lives_ns = apart.flat_map(|subject| subject.lives.iter().filter_map(|live| live.line_ns));
        let within = calibration.within_one_core()?;
        let courses = calibration.courses(lives_ns).into_iter();
        let courses = courses.map(|course| (course.clone(), calibration.of_course(&within, &course)));
        let courses: Vec<(Course, Costs)> = courses.collect();
        let mut doubts: Vec<String> = courses.iter().flat_map(|(_, costs)| costs.doubts()).collect();
        doubts.dedup();
        let any = courses.first().map_or(&within, |(_, costs)| costs).to_toml();
        Ok(Self { everywhere: None, courses, any, doubts })
    }

    /// Those that a live run is compared by.
    fn costs(&self, way: Option<Way>, live: &Live) -> Option<String> {
        let is_for = |(course, costs): &&(Course, Costs)| {
            let is_of_course = |way| live.line_ns.is_some_and(|ns| course.contains(&ns)) && costs.is_closed(way);
            costs.is_calm() && way.is_none_or(is_of_course)
        };
        let measured = || self.courses.iter().find(is_for).map(|(_, costs)| costs.to_toml());
        self.everywhere.clone().or_else(measured)
    }
}

/// A partition to be run and simulated.
struct Subject {
    name: &'static str,
    text: String,
    partition: Partition,
    /// How its processes are connected; none if there is but one.
    way: Option<Way>,
    lives: Vec<Live>,
}

/// A live run.
struct Live {
    figures: Figures,
    /// The part that it had of the processor time that it wanted; none where the kernel does not say.
    share: Option<f64>,
    /// How far its cores were from each other; none if they were moved meanwhile.
    line_ns: Option<f64>,
}

impl Live {
    fn is_calm(&self) -> bool {
        self.share.is_none_or(|share| share >= SHARE_MIN) && self.line_ns.is_some()
    }
}

impl Subject {
    fn new(name: &'static str, text: String, way: Option<Way>) -> Result<Self, BenchError> {
        let partition = Partition::parse(name, &text, &[])?;
        Ok(Self { name, text, partition, way, lives: Vec::new() })
    }

    fn calm(&self) -> usize {
        self.lives.iter().filter(|live| live.is_calm()).count()
    }

    fn predicted(&self, known: &Known, seconds: f64) -> Result<Predicted, BenchError> {
        let (mut pairs, mut shares) = (Vec::new(), Vec::new());
        let calm = self.lives.iter().filter(|live| live.is_calm());
        let counted: Vec<(&Live, String)> =
            calm.filter_map(|live| Some((live, known.costs(self.way, live)?))).collect();
        let is_enough = counted.len() >= JUDGED_MIN && seconds >= SECONDS_MIN;
        let taken_out = self.lives.len() - counted.len();
        let of_any = || self.lives.iter().map(|live| (live, known.any.clone())).collect();
        let counted = if counted.is_empty() { of_any() } else { counted };
        let mut simulated: Vec<(String, Figures)> = Vec::new();
        for (live, costs) in counted {
            let figures = match simulated.iter().find(|(of, _)| *of == costs) {
                Some((_, figures)) => *figures,
                None => self.simulated(&costs)?,
            };
            simulated.push((costs, figures));
            pairs.push((figures, live.figures));
            shares.push(live.share);
        }
        let share = least_share(shares.into_iter());
        let is_judged = is_enough && share.is_some();
        let simulated_seconds = SIMULATED.duration().as_secs_f64();
        let parameters = Parameters { processes: self.way.is_some(), seconds, simulated_seconds, pairs: pairs.len() };
        let comparison = Comparison::of(self.name, parameters, RatioOf::EventsPerS, &pairs);
        let within = is_judged.then(|| (comparison.compared().ratio() - 1.0).abs() <= PREDICTION_ERROR_MAX);
        Ok(Predicted { comparison, within, error_max: PREDICTION_ERROR_MAX, share, taken_out })
    }

    fn simulated(&self, costs: &str) -> Result<Figures, BenchError> {
        let partition = Partition::parse_with_costs(self.name, &self.text, ("costs", costs))?;
        let mut partition = calibration::as_simulated(&partition);
        let layout = if self.way.is_some() { Layout::Processes } else { Layout::Process };
        partition.simulation.as_mut().expect("costs belong to a simulation").layout = layout;
        partition.run.duration = Some(SIMULATED);
        let simulated = simulate(partition, Trace::None)?;
        let summary = simulated.summary();
        let cpu_s = simulated.outcomes.cpu.as_secs_f64() / simulated.outcomes.account.level1 as f64;
        Ok(figures(summary.rates_hz.level1, summary.throughput_bytes_per_s.built, cpu_s))
    }

    /// One live run more.
    fn run(&mut self, seconds: f64) -> Result<(), BenchError> {
        let mut partition = self.partition.clone();
        partition.run.duration = Some(Interval::from_ms((seconds * 1e3) as u64));
        let in_children: fn(Role) -> bool = if self.way.is_some() { |_| true } else { |_| false };
        let before_ns = line_ns();
        let conducted = conduct(Run::new(partition).place(Placement::apart(in_children)))?;
        let after_ns = line_ns();
        // One process does not care how far cores are from each other.
        let is_same = self.way.is_none() || is_same_course(before_ns, after_ns);
        let line_ns = is_same.then_some((before_ns + after_ns) / 2.0);
        let events = sound(&conducted)?.level1 as f64;
        let (running_s, cpu_s) = (conducted.duration.as_secs_f64(), conducted.cpu.as_secs_f64());
        // One process wants one core, which it never leaves by itself.
        let share = match self.way {
            Some(_) => conducted.left_to_us,
            None => Some(conducted.cpu_while_running.as_secs_f64() / running_s),
        };
        let bytes = SfiCounters::total(conducted.reports(Role::Sfi)).bytes_built as f64;
        let figures = figures(events / running_s, bytes / running_s, cpu_s / events);
        self.lives.push(Live { figures, share, line_ns });
        Ok(())
    }
}

/// None if one is not known.
fn least_share(shares: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    shares.reduce(|least, share| least.zip(share).map(|(least, share)| least.min(share))).flatten()
}

/// Bytes are those of built events, with all headers.
fn figures(events_per_s: f64, bytes_per_s: f64, cpu_s_per_event: f64) -> Figures {
    let bytes_per_s = Some(bytes_per_s);
    Figures { events_per_s, bytes_per_s, cpu_us_per_event: cpu_s_per_event * 1e6, ..Figures::default() }
}

/// Event building by four read-out systems, with fragments of this many bytes.
fn building(name: &str, bytes: u32) -> String {
    let name = name.trim_start_matches("prediction.");
    format!(
        r#"
partition.name = "{name}"
dfm = {{ input = "self", build_timeout = "60 s" }}
sfi = {{ count = 1, request_timeout = "60 s" }}
[ros]
count = 4
input = "emulator"
fragment = {{ kind = "fixed", size = "{bytes} B" }}
request_timeout = "60 s"
"#
    )
}

/// Rounds, at most where live runs were taken out, and those with metered runs.
const ROUNDS: usize = 4;
const ROUNDS_MAX: usize = 6;
const ROUNDS_METERED: usize = 2;
/// Cores may be moved every other second: live runs are cut into shorter ones, most of which see none of it.
const SLICE_SECONDS_MAX: f64 = 0.34;
/// Of each partition in a round, for a second of `--seconds`: with three, the benchmark takes less than 45 s.
const LIVE_PER_SECOND: f64 = 0.19;
/// After so long there is no further round.
const MEASURED_MAX: Duration = Duration::from_secs(30);
/// Live runs that are enough to tell.
const JUDGED_MIN: usize = 5;
/// With less, runs of the calibration measure how a run begins.
const SECONDS_MIN: f64 = 2.5;
/// A live run that had less of the processor time that it wanted says nothing of the system.
const SHARE_MIN: f64 = 0.9;
/// How long a run of the calibration is, for a second of `--seconds`, and at most.
const CALIBRATION_PER_RUN: f64 = 0.04;
const CALIBRATION_SECONDS_MAX: f64 = 0.4;
const SIMULATED: Interval = Interval::from_ms(100);

const LEVEL2: &str = r#"
partition.name = "level2"
level1 = { rois_per_event = 2 }
l2sv = { count = 1, timeout = "120 s" }
l2pu = { count = 2, strategy = "two-step", step_accept = "50 %", request_timeout = "60 s" }
dfm.build_timeout = "60 s"
sfi = { count = 2, request_timeout = "60 s" }
ef.policy = "accept"
[ros]
count = 8
input = "emulator"
fragment = { kind = "fixed", size = "1 kB" }
request_timeout = "60 s"
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
