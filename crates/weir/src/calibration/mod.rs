//! `weir calibrate`: what inputs and the driver cost on this machine, measured on the live system, for `weir sim`.
//!
//! Short runs of several shapes are metered ([`crate::host::Meter`]): each input of a component, and what its driver does
//! around it. The cost of each kind is fitted to all of its samples ([`fit`]): so much for a message, for each thing in it,
//! and for its bytes. What lives in one process is metered within one; what travels between processes, on either side of
//! connections.

mod costs;
mod fit;
mod machine;
mod shapes;

use std::collections::BTreeMap;
use std::io;

use configuration::{ConfigurationError, Interval, Partition};
use dataflow::ids::Role;
use simulator::world::Kind;

use self::costs::{Apart, Costs, Part, Way};
use self::fit::{Fit, Terms, fit};
use self::machine::Machine;
use self::shapes::Shape;
pub(crate) use self::shapes::{DATAGRAMS, SHARED, as_simulated, bound_to};
use crate::cli::{CalibrateArgs, Exit};
use crate::conductor::{Conducted, Run, StartError, conduct_metered};
use crate::host::{Meter, Sample, Section};
use crate::scratch::Scratch;

/// Why there is no calibration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CalibrationError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error("a run of the calibration: {0}")]
    Start(#[from] StartError),
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
pub(crate) fn calibrate(args: &CalibrateArgs) -> Exit {
    if let Some(path) = args.output.as_deref().filter(|path| !crate::run::can_hold_a_file(path)) {
        crate::complain(&format!(
            "weir calibrate: --output {}: expected a file in a directory that exists",
            path.display()
        ));
        return Exit::NotStarted;
    }
    let text = match measured(args) {
        Ok(costs) => {
            for line in costs.doubts() {
                crate::complain(&format!("weir calibrate: {line}"));
            }
            for line in costs.gaps() {
                crate::complain(&format!("weir calibrate: {line}"));
            }
            costs.to_toml()
        }
        Err(CalibrationError::Configuration(error)) => {
            crate::complain(&error.to_string());
            return Exit::Wrong;
        }
        Err(error) => {
            crate::complain(&format!("weir calibrate: {error}"));
            return Exit::NotStarted;
        }
    };
    let Some(path) = &args.output else {
        return crate::commands::on_standard_streams(|out, _| out.write_all(text.as_bytes()).map(|()| Exit::Well));
    };
    match std::fs::write(path, text) {
        Ok(()) => Exit::Well,
        Err(error) => {
            crate::complain(&format!("weir calibrate: cannot write {}: {error}", path.display()));
            Exit::NotStarted
        }
    }
}

fn measured(args: &CalibrateArgs) -> Result<Costs, CalibrationError> {
    let own = args.config.as_deref().map(|path| Partition::load(path, &args.overrides.set)).transpose()?;
    measure(own, args.seconds)
}

/// Measures with runs that take about so long in all; with a partition, it is what is metered within one process.
pub(crate) fn measure(own: Option<Partition>, seconds: f64) -> Result<Costs, CalibrationError> {
    let scratch = Scratch::new().map_err(CalibrationError::Scratch)?;
    let each_ms = (seconds * 1e3 / RUNS) as u64;
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
    let machine = Machine::measure().map_err(CalibrationError::Machine)?;
    let mut metered = Metered::default();
    let (mut unmetered, mut share) = (Vec::new(), 1.0_f64);
    for shape in within {
        // What others do on the machine only adds to the processor time of an event.
        let mut least_ns = f64::INFINITY;
        for _ in 0..UNMETERED_RUNS {
            let sound = run(&shape)?;
            share = share.min(sound.share());
            least_ns = least_ns.min(sound.cpu_ns_per_event());
        }
        unmetered.push((shape.partition.clone(), least_ns));
        let of = if shape.partition.l2pu.is_some() { &mut metered.chain } else { &mut metered.building };
        of.meter(&shape)?;
    }
    for shape in shapes::recording(each_ms / 2, scratch.path())? {
        metered.recording.meter(&shape)?;
    }
    for (way, seen) in [
        (Way::Tcp, &mut metered.between),
        (Way::SharedMemory, &mut metered.shared),
        (Way::Datagrams, &mut metered.datagrams),
    ] {
        for shape in shapes::between(way, each_ms)? {
            seen.meter(&shape)?;
        }
    }
    let mut costs = Costs::new(&machine, &metered, share)?.closed(&unmetered);
    if share < SHARE_MIN {
        // What waits for cores that others have comes in larger groups, and costs less.
        return Ok(costs);
    }
    for (way, part) in [
        (Way::Tcp, Part::OneCore),
        (Way::Tcp, Part::TwoCores),
        (Way::SharedMemory, Part::TwoCores),
        (Way::Datagrams, Part::TwoCores),
    ] {
        let mut apart = Vec::new();
        for shape in shapes::apart(way, part, each_ms)? {
            let partition = as_simulated(&shape.partition);
            apart.extend(events_per_s(&shape, part)?.map(|events_per_s| Apart { partition, events_per_s }));
        }
        costs = costs.closed_apart(way, part, &apart);
    }
    Ok(costs)
}

/// The median of some runs that had the machine for themselves; `None` if there are none.
fn events_per_s(shape: &Shape, part: Part) -> Result<Option<f64>, CalibrationError> {
    let mut calm = Vec::new();
    let is_short = shape.partition.run.duration.is_none_or(|duration| duration < APART_MIN);
    for _ in 0..if is_short { 1 } else { APART_RUNS_MAX } {
        let Sound { conducted, .. } = run(shape)?;
        // Where the kernel does not say, all runs count: a prediction of these costs is not judged there.
        let share = if part == Part::OneCore { Some(conducted.cores_used) } else { conducted.left_to_us };
        if share.is_none_or(|share| share >= SHARE_APART_MIN) {
            calm.push(conducted.account.level1 as f64 / conducted.duration.as_secs_f64());
        }
        if calm.len() == APART_RUNS {
            break;
        }
    }
    calm.sort_by(f64::total_cmp);
    Ok(calm.get(calm.len() / 2).copied())
}

/// A run of a shape that went well.
struct Sound {
    conducted: Conducted,
    metered: crate::conductor::Metered,
}

fn run(shape: &Shape) -> Result<Sound, CalibrationError> {
    run_with(shape, None)
}

fn run_with(shape: &Shape, meter: Option<Meter>) -> Result<Sound, CalibrationError> {
    let (partition, in_children) = (shape.partition.clone(), shape.in_children);
    let (conducted, metered) = conduct_metered(Run { partition, in_children, progress: None, observer: None }, meter)?;
    let account = &conducted.account;
    if account.residual != 0 || account.level1 == 0 || !conducted.ending.reasons.is_empty() {
        let (residual, reasons) = (account.residual, conducted.ending.reasons.join("; "));
        return Err(CalibrationError::Unsound(format!("{} events, residual {residual}, {reasons}", account.level1)));
    }
    Ok(Sound { conducted, metered })
}

impl Sound {
    /// How much of a core the one process that does everything had, or more with threads beside it.
    fn share(&self) -> f64 {
        self.conducted.cpu_while_running.as_secs_f64() / self.conducted.duration.as_secs_f64()
    }

    /// Processor time of this process.
    fn cpu_ns_per_event(&self) -> f64 {
        self.conducted.cpu_while_running.as_nanos() as f64 / self.conducted.account.level1 as f64
    }
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
        let Sound { conducted, metered } = run_with(shape, Some(Meter::new()))?;
        let account = &conducted.account;
        for (section, samples) in metered.sections {
            let fragments = if section == Section::Input(Role::Sfi, Kind::EventReply) { fragments } else { 1.0 };
            let counted = samples.kept().map(|sample| Sample { count: sample.count * fragments, ..*sample });
            self.samples.entry(section).or_default().extend(counted);
        }
        let bytes: u64 = conducted.ending.files.iter().map(|file| file.bytes).sum();
        if account.recorded > 0 && bytes > 0 {
            let (count, bytes) = (account.recorded as f32, bytes as f32);
            self.writing.push(Sample { count, bytes, ns: metered.beside.as_nanos() as f32 });
        }
        Ok(())
    }

    fn fit(&self, section: Section, terms: Terms) -> Option<Fit> {
        fit(self.samples.get(&section)?, terms)
    }

    /// Costs of inputs.
    fn inputs(&self) -> impl Iterator<Item = (Role, Kind, Fit)> {
        let writing = fit_writing(&self.writing).map(|fit| (Role::Sfo, Kind::Write, fit));
        writing.into_iter().chain(self.samples.iter().filter_map(|(section, samples)| {
            let (role, kind) = match section {
                Section::Input(role, kind) => (*role, *kind),
                Section::Flush(role) => (*role, Kind::Flush),
                _ => return None,
            };
            // Nothing looks at all bytes of an input: what costs by their number is reading, writing and recording.
            Some((role, kind, fit(samples, Terms { per_byte: false, ..Terms::ALL })?))
        }))
    }
}

/// So much for each event and byte, from whole runs.
fn fit_writing(runs: &[Sample]) -> Option<Fit> {
    let bytes: f64 = runs.iter().map(|run| f64::from(run.bytes)).sum();
    let ns: f64 = runs.iter().map(|run| f64::from(run.ns)).sum();
    let events: f64 = runs.iter().map(|run| f64::from(run.count)).sum();
    if events == 0.0 {
        return None;
    }
    if let [one, other] = runs {
        let per_event = |run: &Sample| (f64::from(run.ns / run.count), f64::from(run.bytes / run.count));
        let ((ns_a, bytes_a), (ns_b, bytes_b)) = (per_event(one), per_event(other));
        let per_byte = (ns_b - ns_a) / (bytes_b - bytes_a);
        let base = ns_a - per_byte * bytes_a;
        if per_byte >= 0.0 && base >= 0.0 && per_byte.is_finite() {
            return Some(Fit { base, each: 0.0, per_byte });
        }
    }
    Some(Fit { base: 0.0, each: 0.0, per_byte: ns / bytes })
}

/// Runs of each shape without a meter.
const UNMETERED_RUNS: u32 = 3;
/// Runs of each shape with processes of their own that count, and at most.
const APART_RUNS: usize = 2;
const APART_RUNS_MAX: usize = 4;
/// A run that has less of a core shares it with others.
const SHARE_MIN: f64 = 0.85;
/// Shorter ones tell nothing, however many they are.
const APART_MIN: Interval = Interval::from_ms(100);
/// The same of runs with processes of their own.
const SHARE_APART_MIN: f64 = 0.9;
/// Runs of a calibration, and what starts and measures besides takes as much as some.
const RUNS: f64 = 80.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_costs_by_event_and_by_byte() {
        let run = |events: f32, bytes: f32| Sample { count: events, bytes: events * bytes, ns: events * (2e3 + bytes) };
        let fit = fit_writing(&[run(100.0, 1e3), run(50.0, 9e3)]).unwrap();
        assert!((fit.base - 2e3).abs() < 1.0 && (fit.per_byte - 1.0).abs() < 1e-3, "{fit:?}");
        assert_eq!(fit_writing(&[]), None);
    }
}
