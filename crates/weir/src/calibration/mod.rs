//! `weir calibrate`: what inputs and the driver cost on this machine, measured on the live system, for `weir sim`.
//!
//! Short runs of several shapes are metered ([`crate::host::Meter`]): each input of a component, and what its driver does
//! around it. The cost of each kind is fitted to all of its samples ([`fit`]): so much for a message, for each thing in it,
//! and for its bytes. What lives in one process is metered within one; what travels between processes, on either side of
//! connections.

mod fit;
mod machine;
mod shapes;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use configuration::{ConfigurationError, Interval, Layout, Partition, Simulation};
use dataflow::ids::Role;
use simulator::world::{Kind, Trace};

use self::fit::{Fit, Terms, fit};
use self::machine::Machine;
use self::shapes::Shape;
use crate::cli::{CalibrateArgs, Exit};
use crate::conductor::{Conducted, Run, StartError, conduct_metered};
use crate::host::{Meter, Sample, Section};
use crate::scratch::Scratch;
use crate::simulation::simulate;

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
            if costs.share < SHARE_MIN {
                let percent = costs.share * 100.0;
                let line =
                    format!("weir calibrate: others use this machine, a run had {percent:.0} % of a core at times");
                crate::complain(&format!("{line}: costs of processes may be far off, expected at least 85 %"));
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
        let of = if shape.partition.level1.is_some() { &mut metered.chain } else { &mut metered.building };
        of.meter(&shape)?;
    }
    for shape in shapes::recording(each_ms / 2, scratch.path())? {
        metered.recording.meter(&shape)?;
    }
    for shape in shapes::between(each_ms)? {
        metered.between.meter(&shape)?;
    }
    let costs = Costs { share, ..Costs::new(&machine, &metered)?.closed(&unmetered) };
    if share < SHARE_MIN {
        // What waits for cores that others have comes in larger groups, and costs less.
        return Ok(costs);
    }
    let mut apart = Vec::new();
    for shape in shapes::apart(each_ms)? {
        apart.push((shape.partition.clone(), cpu_ns_per_event_apart(&shape)?));
    }
    Ok(costs.closed_apart(&apart))
}

/// Of all processes together, without what they need to start.
fn cpu_ns_per_event_apart(shape: &Shape) -> Result<f64, CalibrationError> {
    let mut partition = shape.partition.clone();
    (partition.run.events, partition.run.duration) = (Some(1), None);
    let to_start = run(&Shape { partition, ..*shape })?.conducted.cpu;
    let Sound { conducted, .. } = run(shape)?;
    Ok(conducted.cpu.saturating_sub(to_start).as_nanos() as f64 / conducted.account.level1 as f64)
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

/// A calibration: what `[simulation]` needs.
pub(crate) struct Costs {
    cores: usize,
    /// The least part of a core that a run in one process had.
    share: f64,
    driver: Vec<(&'static str, f64)>,
    inputs: Vec<Input>,
}

/// The cost of a kind of input, and where it is that.
#[derive(Clone, Copy)]
struct Input {
    role: Role,
    kind: Kind,
    layout: Layout,
    level1: bool,
    fit: Fit,
}

impl Input {
    fn times(self, factor: f64) -> Self {
        Self { fit: self.fit.times(factor), ..self }
    }
}

impl Costs {
    fn new(machine: &Machine, metered: &Metered) -> Result<Self, CalibrationError> {
        let Metered { building, chain, recording, between } = metered;
        let pass = between.fit(Section::Pass, Terms::ALL).ok_or(CalibrationError::TooShort)?;
        let base_only = Terms { each: false, per_byte: false, ..Terms::ALL };
        let no_base = Terms { base: false, ..Terms::ALL };
        let no_count = Terms { each: false, ..Terms::ALL };
        let of = |seen: &Seen, section, terms| seen.fit(section, terms).unwrap_or_default();
        let (read, write) = (of(between, Section::Read, no_count), of(between, Section::Write, no_base));
        let driver = vec![
            ("pass", pass.base),
            ("pass_component", pass.each),
            ("pass_connection", pass.per_byte),
            ("local", of(chain, Section::Local, base_only).base),
            ("encode", of(between, Section::Encode, base_only).base),
            ("decode", of(between, Section::Decode, base_only).base),
            ("read", read.base),
            ("read_kib", read.per_byte * 1024.0),
            ("write", write.each),
            ("write_kib", write.per_byte * 1024.0),
            ("latency", machine.latency),
            ("wake", machine.wake),
            ("sleep", machine.sleep),
            ("switch", machine.switch),
        ];
        let mut inputs = Vec::new();
        for (layout, level1, best_first) in [
            (Layout::Process, false, [building, chain, between, recording]),
            (Layout::Process, true, [chain, building, between, recording]),
            (Layout::Processes, false, [between, building, chain, recording]),
            (Layout::Processes, true, [between, chain, building, recording]),
        ] {
            inputs.extend(best_of(best_first).map(|((role, kind), fit)| Input { role, kind, layout, level1, fit }));
        }
        Ok(Self { cores: machine.cores, share: 1.0, driver, inputs })
    }

    /// The same, with all costs of inputs made larger or smaller, those of chains and of building alone by themselves, until
    /// the simulation of what was metered takes as much processor time as without a meter: reading the clock so often holds
    /// a processor up by more than what it takes.
    fn closed(self, unmetered: &[(Partition, f64)]) -> Self {
        let [building, chain] = [false, true].map(|level1| {
            let of_kind = unmetered.iter().filter(|(partition, _)| partition.level1.is_some() == level1);
            self.closing_factor(of_kind, Layout::Process)
        });
        let inputs = self.inputs.into_iter().map(|input| match input.kind {
            Kind::Write => input,
            _ => input.times(if input.level1 { chain } else { building }),
        });
        Self { inputs: inputs.collect(), ..self }
    }

    /// The same for processes, with what their drivers cost: how often a process has to wait for another one on its core is
    /// not metered.
    fn closed_apart(self, apart: &[(Partition, f64)]) -> Self {
        let factor = self.closing_factor(apart.iter(), Layout::Processes);
        let inputs = self.inputs.into_iter().map(|input| match (input.layout, input.kind) {
            (Layout::Process, _) | (_, Kind::Write) => input,
            _ => input.times(factor),
        });
        let of_driver = |(key, ns)| (key, if TIMES_OF_MACHINE.contains(&key) { ns } else { ns * factor });
        Self { inputs: inputs.collect(), driver: self.driver.into_iter().map(of_driver).collect(), ..self }
    }

    /// How much more processor time live runs have taken than simulated ones.
    fn closing_factor<'a>(&self, live: impl Iterator<Item = &'a (Partition, f64)>, layout: Layout) -> f64 {
        let Some(simulation) = self.simulation() else { return 1.0 };
        let ratios = live.filter_map(|(partition, live_ns)| {
            let simulation = Some(Simulation { layout, ..simulation.clone() });
            let mut partition = Partition { simulation, ..partition.clone() };
            (partition.run.events, partition.run.duration) = (None, Some(SIMULATED));
            let simulated = simulate(partition, Trace::None);
            let simulated = simulated.inspect_err(|error| crate::complain(&format!("weir calibrate: {error}")));
            let outcomes = simulated.ok()?.outcomes;
            let simulated_ns = outcomes.cpu.as_nanos() as f64 / outcomes.account.level1.max(1) as f64;
            Some((live_ns / simulated_ns).ln())
        });
        let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
        mean.exp().clamp(1.0 / CLOSING_MAX, CLOSING_MAX)
    }

    /// As a configuration has it.
    fn simulation(&self) -> Option<Simulation> {
        let text = "partition.name = \"calibration\"\nros.count = 1\nsfi.count = 1\n";
        Partition::parse_with_costs("calibration", text, ("costs", &self.to_toml())).ok()?.simulation
    }

    /// A file for `weir sim --costs`.
    pub(crate) fn to_toml(&self) -> String {
        let (machine, share, cores) = (processor_name(), self.share * 100.0, self.cores);
        let mut text = format!(
            "# Costs on {machine}, {cores} cores, of which runs in one process had at least {share:.0} % of one.\n\n\
             [simulation]\ncores = {cores}\ncost = [\n"
        );
        for Input { role, kind, layout, level1, fit } in &self.inputs {
            let (role, kind) = (role.stem(), kind.name());
            let layout = if *layout == Layout::Process { "process" } else { "processes" };
            text += &format!("    {{ role = \"{role}\", input = \"{kind}\", layout = \"{layout}\", level1 = {level1}");
            let terms = [("message", fit.base), ("each", fit.each), ("per_kib", fit.per_byte * 1024.0)];
            for (key, ns) in terms.map(|(key, ns)| (key, ns.round())).into_iter().filter(|(_, ns)| *ns > 0.0) {
                text += &format!(", {key} = \"{ns:.0} ns\"");
            }
            text += " },\n";
        }
        text += "]\n\n[simulation.driver]\n";
        for (key, ns) in &self.driver {
            text += &format!("{key} = \"{:.0} ns\"\n", ns.max(0.0));
        }
        text + "source = \"measured by weir calibrate\"\n"
    }
}

/// Each kind of input, from the first that has seen it.
fn best_of(seen: [&Seen; 4]) -> impl Iterator<Item = ((Role, Kind), Fit)> {
    let mut best = BTreeMap::new();
    for (role, kind, fit) in seen.into_iter().flat_map(Seen::inputs) {
        best.entry((role, kind)).or_insert(fit);
    }
    best.into_iter()
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

/// The processor, as far as the kernel says.
fn processor_name() -> String {
    let text = std::fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or("an unknown processor", |(_, name)| name.trim()).to_owned()
}

/// Virtual time of a run that closes the calibration.
const SIMULATED: Interval = Interval::from_ms(50);
/// Runs of each shape without a meter.
const UNMETERED_RUNS: u32 = 3;
/// A run that has less of a core shares it with others.
const SHARE_MIN: f64 = 0.85;
/// More than this is no matter of the meter.
const CLOSING_MAX: f64 = 2.0;
/// Of a driver, what is no processor time of its own.
const TIMES_OF_MACHINE: [&str; 3] = ["latency", "wake", "switch"];
/// Runs of a calibration, and what starts and measures besides takes as much as some.
const RUNS: f64 = 30.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> Costs {
        let input = |kind, layout, base| Input {
            role: Role::Sfi,
            kind,
            layout,
            level1: false,
            fit: Fit { base, each: 0.0, per_byte: 0.5 },
        };
        let inputs = vec![input(Kind::EventReply, Layout::Process, 120.4), input(Kind::Write, Layout::Processes, 1e4)];
        Costs { cores: 3, share: 1.0, driver: vec![("pass", 700.0), ("wake", 9e3)], inputs }
    }

    #[test]
    fn what_is_written_is_read() {
        let simulation = costs().simulation().unwrap();
        assert_eq!(simulation.cores, 3);
        let driver = simulation.driver.unwrap();
        assert_eq!((driver.pass.ns(), driver.wake.ns(), driver.read.ns()), (700, 9_000, 0));
        let [reply, write] = &simulation.cost[..] else { panic!("{:?}", simulation.cost) };
        assert_eq!((reply.role.as_str(), reply.input.as_str(), reply.message.ns()), ("sfi", "event-reply", 120));
        assert_eq!((reply.each.ns(), reply.per_kib.ns(), reply.layout), (0, 512, Some(Layout::Process)));
        assert_eq!((write.input.as_str(), write.message.ns(), write.level1), ("write", 10_000, Some(false)));
    }

    #[test]
    fn the_first_that_has_seen_a_kind_tells_its_cost() {
        let seen = |section, ns| {
            let samples = vec![Sample { count: 1.0, bytes: 0.0, ns }; 100];
            Seen { samples: BTreeMap::from([(section, samples)]), writing: Vec::new() }
        };
        let build = Section::Input(Role::Sfi, Kind::Build);
        let [one, other, third] =
            [(build, 100.0), (build, 300.0), (Section::Flush(Role::Ros), 50.0)].map(|(section, ns)| seen(section, ns));
        let found: Vec<_> = best_of([&one, &other, &third, &Seen::default()])
            .map(|((role, kind), fit)| (role, kind, (fit.base + fit.each).round()))
            .collect();
        assert_eq!(found, [(Role::Sfi, Kind::Build, 100.0), (Role::Ros, Kind::Flush, 50.0)]);
    }

    #[test]
    fn writing_costs_by_event_and_by_byte() {
        let run = |events: f32, bytes: f32| Sample { count: events, bytes: events * bytes, ns: events * (2e3 + bytes) };
        let fit = fit_writing(&[run(100.0, 1e3), run(50.0, 9e3)]).unwrap();
        assert!((fit.base - 2e3).abs() < 1.0 && (fit.per_byte - 1.0).abs() < 1e-3, "{fit:?}");
        assert_eq!(fit_writing(&[]), None);
    }
}
