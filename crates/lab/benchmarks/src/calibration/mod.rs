//! `weir calibrate`: what inputs and the driver cost on this machine, measured on the live system, for `weir sim`.
//!
//! Short runs of several shapes are metered ([`driver::Meter`]): each input of a component, and what its
//! driver does around it. The cost of each kind is fitted to all of its samples (`fit`). It is so much for a message,
//! for each thing in it, and for its bytes. What lives in one process is metered within one; what travels between
//! processes, on either side of connections.
//!
//! All shapes are run in rounds, a little of each. Costs of processes on two cores come from runs whose cores were
//! at one distance from each other (`distance`).

mod arguments;
mod costs;
mod distance;
mod fit;
mod machine;
mod shapes;

pub(crate) use arguments::seconds;
pub use arguments::{CalibrateArgs, EXAMPLES};

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use base::ids::Role;
use configuration::{ConfigurationError, Interval, Partition};
use dataflow::work_kind::WorkKind;

use self::costs::{Apart, CoreCount};
pub(crate) use self::costs::{Costs, Way};
pub(crate) use self::distance::{is_same_course, line_ns};
use self::fit::{Fit, Terms, fit, least_squares};
use self::machine::Machine;
use self::shapes::Shape;
pub(crate) use self::shapes::{DATAGRAMS, SHARED, as_simulated, bound_to};
use driver::scratch::Scratch;
use driver::{Meter, Sample, Section};
use partition::{Outcome, Placement, Run};
use terminal::Exit;
use terminal::{ConductError, conduct};

/// Why there is no calibration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CalibrationError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error("a run of the calibration: {0}")]
    Start(#[from] ConductError),
    #[error("interrupted")]
    Interrupted,
    #[error("a run of the calibration was not sound: {0}")]
    Unsound(String),
    #[error("no temporary directory for what the calibration records: {0}")]
    Scratch(io::Error),
    #[error("the loopback interface cannot be measured: {0}")]
    Machine(io::Error),
    #[error("no pass of a driver was seen: expected a longer calibration, see --seconds")]
    TooShort,
}

/// Measures, and writes the costs.
pub fn calibrate(args: &CalibrateArgs) -> Exit {
    if let Some(path) = args.output.as_deref().filter(|path| !terminal::can_hold_a_file(path)) {
        terminal::complain(&format!(
            "weir calibrate: --output {}: expected a file in a directory that exists",
            path.display()
        ));
        return Exit::NotStarted;
    }
    let text = match measured(args) {
        Ok(costs) => {
            for line in costs.doubts() {
                terminal::complain(&format!("weir calibrate: {line}"));
            }
            for line in costs.gaps() {
                terminal::complain(&format!("weir calibrate: {line}"));
            }
            costs.to_toml()
        }
        Err(CalibrationError::Configuration(error)) => {
            terminal::complain(&error.to_string());
            return Exit::Wrong;
        }
        Err(error) => {
            terminal::complain(&format!("weir calibrate: {error}"));
            return Exit::NotStarted;
        }
    };
    let Some(path) = &args.output else {
        return terminal::on_standard_streams(|out, _| out.write_all(text.as_bytes()).map(|()| Exit::Well));
    };
    match std::fs::write(path, text) {
        Ok(()) => Exit::Well,
        Err(error) => {
            terminal::complain(&format!("weir calibrate: cannot write {}: {error}", path.display()));
            Exit::NotStarted
        }
    }
}

fn measured(args: &CalibrateArgs) -> Result<Costs, CalibrationError> {
    let own = args.config.as_deref().map(|path| Partition::load(path, &args.overrides.set)).transpose()?;
    let rounds = ((args.seconds / (RUNS_PER_ROUND * RUN_SECONDS_MIN)) as u32).clamp(1, ROUNDS_MAX);
    let each = Duration::from_secs_f64(args.seconds / RUNS_PER_ROUND) / rounds;
    let mut calibration = Calibration::new(own, each)?;
    for _ in 0..rounds {
        calibration.meter()?;
        (0..RUNS_PER_METERED).try_for_each(|_| calibration.run())?;
    }
    let courses = calibration.courses(core::iter::empty());
    let most = courses.iter().max_by_key(|course| calibration.apart.iter().filter(|run| run.is_of(course)).count());
    let within = calibration.within_one_core()?;
    Ok(match most {
        Some(course) => calibration.of_course(&within, course),
        None => within,
    })
}

/// Runs from which costs are found, of all shapes, with a meter and without.
///
/// What inputs cost relative to each other is metered; how much all of it is, runs without a meter tell. They are short and
/// repeated, one shape after the other, so that what the machine does meanwhile strikes all shapes alike.
pub(crate) struct Calibration {
    within: Vec<Shape>,
    recording: Vec<Shape>,
    between: Vec<(Way, Vec<Shape>)>,
    processes: Vec<((Way, CoreCount), Vec<Shape>)>,
    metered: Metered,
    machines: Vec<Machine>,
    alone: Vec<Alone>,
    apart: Vec<ApartRun>,
    /// Where recorders write.
    _scratch: Scratch,
}

/// A run in one process, without a meter.
struct Alone {
    shape: usize,
    /// How much of a core it had.
    share: f64,
    /// Of a whole core.
    events_per_s: f64,
}

/// A run with a process for each application.
struct ApartRun {
    of: (Way, CoreCount),
    shape: usize,
    /// How far its cores were from each other; none if they were moved meanwhile.
    line_ns: Option<f64>,
    events_per_s: f64,
}

impl ApartRun {
    /// Whether it tells what costs of this course are: on one core all do.
    fn is_of(&self, course: &Course) -> bool {
        self.of.1 == CoreCount::OneCore || self.line_ns.is_some_and(|ns| course.contains(&ns))
    }
}

/// Distances between cores that go together, from the shortest to the longest, in ns.
pub(crate) type Course = RangeInclusive<f64>;

impl Calibration {
    /// For runs that take so long each; with a partition, it is what is metered within one process.
    pub(crate) fn new(own: Option<Partition>, each: Duration) -> Result<Self, CalibrationError> {
        let scratch = Scratch::new().map_err(CalibrationError::Scratch)?;
        let each_ms = (each.as_millis() as u64).max(1);
        let within = match own {
            Some(mut partition) => {
                (partition.run.events, partition.run.duration) = (None, Some(Interval::from_ms(4 * each_ms)));
                partition.output.directory = scratch.path().display().to_string();
                if let Some(l2pu) = &mut partition.l2pu {
                    // A simulation adds it to what the inputs of a unit cost.
                    l2pu.cost = Interval::default();
                }
                vec![Shape { partition, in_children: |_| false }]
            }
            None => shapes::within(each_ms)?,
        };
        let recording = shapes::recording(each_ms / 2, scratch.path())?;
        let between = Way::ALL.map(|way| Ok((way, shapes::between(way, each_ms.div_ceil(2))?)));
        let parts = [
            (Way::Tcp, CoreCount::OneCore),
            (Way::Tcp, CoreCount::TwoCores),
            (Way::SharedMemory, CoreCount::TwoCores),
            (Way::Datagrams, CoreCount::TwoCores),
        ];
        let processes = parts.map(|(way, part)| Ok(((way, part), shapes::apart(way, part, each_ms)?)));
        Ok(Self {
            within,
            recording,
            between: between.into_iter().collect::<Result<_, ConfigurationError>>()?,
            processes: processes.into_iter().collect::<Result<_, ConfigurationError>>()?,
            metered: Metered::default(),
            machines: Vec::new(),
            alone: Vec::new(),
            apart: Vec::new(),
            _scratch: scratch,
        })
    }

    /// One metered run more of each shape.
    pub(crate) fn meter(&mut self) -> Result<(), CalibrationError> {
        let Self { within, recording, between, metered, .. } = self;
        for shape in &*within {
            let of = if shape.partition.l2pu.is_some() { &mut metered.chain } else { &mut metered.building };
            of.meter(shape)?;
        }
        recording.iter().try_for_each(|shape| metered.recording.meter(shape))?;
        for (way, shapes) in between {
            let seen = match way {
                Way::Tcp => &mut metered.between,
                Way::SharedMemory => &mut metered.shared,
                Way::Datagrams => &mut metered.datagrams,
            };
            shapes.iter().try_for_each(|shape| seen.meter(shape))?;
        }
        Ok(())
    }

    /// One run more of each shape without a meter.
    pub(crate) fn run(&mut self) -> Result<(), CalibrationError> {
        let Self { within, processes, machines, alone, apart, .. } = self;
        machines.push(Machine::measure().map_err(CalibrationError::Machine)?);
        for (shape, run_as) in within.iter().enumerate() {
            let conducted = sound(of_shape(run_as))?;
            alone.push(Alone { shape, share: share(&conducted), events_per_s: 1e9 / cpu_ns_per_event(&conducted) });
        }
        let mut before_ns = line_ns();
        for (of, shapes) in processes {
            for (shape, run_as) in shapes.iter().enumerate() {
                let conducted = sound(of_shape(run_as))?;
                let after_ns = line_ns();
                let line_ns = is_same_course(before_ns, after_ns).then_some((before_ns + after_ns) / 2.0);
                before_ns = after_ns;
                // Where the kernel does not say, all runs count: a prediction of these costs is not judged there.
                let share = if of.1 == CoreCount::OneCore { Some(conducted.cores_used) } else { conducted.left_to_us };
                let is_long = run_as.partition.run.duration.is_some_and(|duration| duration >= APART_MIN);
                if is_long && share.is_none_or(|share| share >= SHARE_APART_MIN) {
                    let events_per_s = conducted.account.level1 as f64 / conducted.duration.as_secs_f64();
                    apart.push(ApartRun { of: *of, shape, line_ns, events_per_s });
                }
            }
        }
        Ok(())
    }

    /// How far from each other cores were in runs with processes of their own, and in others that were run between them.
    pub(crate) fn courses(&self, others_ns: impl Iterator<Item = f64>) -> Vec<Course> {
        distance::courses(self.apart.iter().filter_map(|run| run.line_ns).chain(others_ns))
    }

    /// What all runs together tell of costs within one process, and within one core.
    pub(crate) fn within_one_core(&self) -> Result<Costs, CalibrationError> {
        let all: Vec<&Machine> = self.machines.iter().collect();
        let (alone, share) = self.alone();
        let machine = Machine::median_of(&all).ok_or(CalibrationError::TooShort)?;
        Ok(Costs::new(&machine, &self.metered, share)?.closed(&alone))
    }

    /// With what the runs of a course tell of it.
    pub(crate) fn of_course(&self, within: &Costs, course: &Course) -> Costs {
        let machines: Vec<&Machine> = self.machines.iter().filter(|machine| course.contains(&machine.line)).collect();
        let all: Vec<&Machine> = self.machines.iter().collect();
        let machine = Machine::median_of(if machines.is_empty() { &all } else { &machines });
        let costs = within.of_course(course, &machine.expect("costs within one core are of some machine"));
        self.processes
            .iter()
            .fold(costs, |costs, (of, shapes)| costs.closed_apart(of.0, of.1, &self.apart(*of, shapes, course)))
    }

    /// How fast runs of each shape in one process were, and the least share of a core of a run that counts.
    fn alone(&self) -> (Vec<Apart>, f64) {
        let mut least = 1.0_f64;
        let of_shape = |(index, shape): (usize, &Shape)| {
            let mut runs: Vec<&Alone> = self.alone.iter().filter(|run| run.shape == index).collect();
            // Those that had most of a core, if only some of one.
            runs.sort_by(|one, other| other.share.total_cmp(&one.share));
            let calm = runs.iter().filter(|run| run.share >= SHARE_MIN).count().max(1);
            runs.truncate(calm);
            least = runs.last().map_or(least, |run| least.min(run.share));
            let events_per_s = Spread::of(runs.iter().map(|run| run.events_per_s))?;
            Some(Apart { partition: shape.partition.clone(), events_per_s })
        };
        (self.within.iter().enumerate().filter_map(of_shape).collect(), least)
    }

    /// How fast runs of shapes were in a course.
    fn apart(&self, of: (Way, CoreCount), shapes: &[Shape], course: &Course) -> Vec<Apart> {
        let of_shape = |(index, shape): (usize, &Shape)| {
            let runs = self.apart.iter().filter(|run| (run.of, run.shape) == (of, index) && run.is_of(course));
            let events_per_s = Spread::of(runs.map(|run| run.events_per_s))?;
            Some(Apart { partition: as_simulated(&shape.partition), events_per_s })
        };
        shapes.iter().enumerate().filter_map(of_shape).collect()
    }
}

/// What several runs of a kind have shown.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
    runs: usize,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut all: Vec<f64> = values.collect();
        all.sort_by(f64::total_cmp);
        let (least, most) = (*all.first()?, *all.last()?);
        let middle = all.len() / 2;
        let median = if all.len() % 2 == 1 { all[middle] } else { (all[middle - 1] + all[middle]) / 2.0 };
        Some(Self { median, least, most, runs: all.len() })
    }
}

fn of_shape(shape: &Shape) -> Run {
    Run::new(shape.partition.clone()).place(Placement::apart(shape.in_children))
}

/// How it went, if it went well.
fn sound(run: Run) -> Result<Outcome, CalibrationError> {
    let conducted = conduct(run)?;
    if conducted.interrupted {
        return Err(CalibrationError::Interrupted);
    }
    let account = &conducted.account;
    if account.residual != 0 || account.level1 == 0 || !conducted.ending.reasons.is_empty() {
        let (residual, reasons) = (account.residual, conducted.ending.reasons.join("; "));
        return Err(CalibrationError::Unsound(format!("{} events, residual {residual}, {reasons}", account.level1)));
    }
    Ok(conducted)
}

/// How much of a core the one process that does everything had, or more with threads beside it.
fn share(conducted: &Outcome) -> f64 {
    conducted.cpu_while_running.as_secs_f64() / conducted.duration.as_secs_f64()
}

/// Processor time of this process.
fn cpu_ns_per_event(conducted: &Outcome) -> f64 {
    conducted.cpu_while_running.as_nanos() as f64 / conducted.account.level1 as f64
}

/// What was metered.
#[derive(Default)]
struct Metered {
    /// Within one process, of event builders alone.
    building: Seen,
    /// The same of chains with level 1.
    chain: Seen,
    /// The same with recorders.
    recording: Seen,
    /// On either side of connections.
    between: Seen,
    /// The same through shared memory.
    shared: Seen,
    /// The same with requests and replies in datagrams.
    datagrams: Seen,
}

/// What was metered in runs of a kind.
#[derive(Default)]
struct Seen {
    samples: BTreeMap<Section, Vec<Sample>>,
    /// What threads for files took, with the events and bytes that they wrote.
    writing: Vec<Sample>,
}

impl Seen {
    fn meter(&mut self, shape: &Shape) -> Result<(), CalibrationError> {
        let fragments = shape.partition.ros.robs as f32;
        let conducted = sound(of_shape(shape).meter(Meter::new()))?;
        let account = &conducted.account;
        for (section, samples) in conducted.metered.sections {
            let fragments = if section == Section::Input(Role::Sfi, WorkKind::EventReply) { fragments } else { 1.0 };
            let counted = samples.kept().map(|sample| Sample { count: sample.count * fragments, ..*sample });
            self.samples.entry(section).or_default().extend(counted);
        }
        let bytes: u64 = conducted.ending.files.iter().map(|file| file.bytes).sum();
        if account.recorded > 0 && bytes > 0 {
            let (count, bytes) = (account.recorded as f32, bytes as f32);
            self.writing.push(Sample { count, bytes, ns: conducted.metered.beside.as_nanos() as f32 });
        }
        Ok(())
    }

    fn fit(&self, section: Section, terms: Terms) -> Option<Fit> {
        fit(self.samples.get(&section)?, terms)
    }

    /// Costs of inputs.
    fn inputs(&self) -> impl Iterator<Item = (Role, WorkKind, Fit)> {
        let writing = fit_writing(&self.writing).map(|fit| (Role::Sfo, WorkKind::Write, fit));
        writing.into_iter().chain(self.samples.iter().filter_map(|(section, samples)| {
            let (role, kind) = match section {
                Section::Input(role, kind) => (*role, *kind),
                Section::Flush(role) => (*role, WorkKind::Flush),
                _ => return None,
            };
            // Nothing looks at all bytes of an input: what costs by their number is reading, writing and recording.
            Some((role, kind, fit(samples, Terms { per_byte: false, ..Terms::ALL })?))
        }))
    }
}

/// So much for each event and byte, from whole runs with events of several sizes.
fn fit_writing(runs: &[Sample]) -> Option<Fit> {
    let per_event = |run: &Sample| Sample { count: 1.0, bytes: run.bytes / run.count, ns: run.ns / run.count };
    least_squares(&runs.iter().map(per_event).collect::<Vec<_>>(), Terms { each: false, ..Terms::ALL })
}

/// How far predictions are meant to be off at most.
pub(crate) const PREDICTION_ERROR_MAX: f64 = 0.15;

/// A run that has less of a core shares it with others.
const SHARE_MIN: f64 = 0.85;
/// Shorter ones tell nothing, however many they are.
const APART_MIN: Interval = Interval::from_ms(100);
/// The same of runs with processes of their own.
const SHARE_APART_MIN: f64 = 0.9;
/// Rounds of `weir calibrate` at most, and in each, runs without a meter for one with it.
const ROUNDS_MAX: u32 = 4;
const RUNS_PER_METERED: u32 = 2;
/// Runs of a round, those that are shorter in part; what starts and measures besides takes as much as some.
const RUNS_PER_ROUND: f64 = 76.0;
/// Rather than shorter runs there are fewer.
const RUN_SECONDS_MIN: f64 = 0.11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_on_two_cores_tell_of_their_own_course() {
        let run = |part, line_ns| ApartRun { of: (Way::Tcp, part), shape: 0, line_ns, events_per_s: 1.0 };
        let is_of = |part, line_ns| run(part, line_ns).is_of(&(50.0..=100.0));
        assert!(is_of(CoreCount::TwoCores, Some(70.0)) && is_of(CoreCount::OneCore, None));
        assert!(!is_of(CoreCount::TwoCores, Some(400.0)) && !is_of(CoreCount::TwoCores, None));
    }

    #[test]
    fn several_runs_tell_their_median_and_how_far_apart_they_are() {
        let found = Spread::of([5.0, 1.0, 3.0, 4.0].into_iter());
        assert_eq!(found, Some(Spread { median: 3.5, least: 1.0, most: 5.0, runs: 4 }));
        assert_eq!(Spread::of([2.0].into_iter()).map(|spread| spread.median), Some(2.0));
        assert_eq!(Spread::of(core::iter::empty()), None);
    }

    #[test]
    fn writing_costs_by_event_and_by_byte() {
        let run = |events: f32, bytes: f32| Sample { count: events, bytes: events * bytes, ns: events * (2e3 + bytes) };
        for rounds in 1..5 {
            let fit = fit_writing(&[run(100.0, 1e3), run(50.0, 9e3)].repeat(rounds)).unwrap();
            assert!((fit.base - 2e3).abs() < 1.0 && (fit.per_byte - 1.0).abs() < 1e-3, "{fit:?} of {rounds} rounds");
        }
        assert_eq!(fit_writing(&[]), None);
    }
}
