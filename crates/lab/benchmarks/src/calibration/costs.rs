//! What a calibration has found, as `[simulation]` has it.

mod closing;

use dataflow::work_kind::WorkKind;
use std::collections::BTreeMap;
use std::thread;

use base::ids::Role;
use configuration::{Interval, Layout, Partition, Simulation};
use simulator::world::Trace;

use self::closing::Closing;
use super::fit::{Fit, Terms};
use super::machine::Machine;
use super::{CalibrationError, Course, Metered, SHARE_MIN, Seen, Spread};
use driver::Section;
use simulation::{METERED, simulate};

/// A calibration: what `[simulation]` needs.
pub(crate) struct Costs {
    pub(super) cores: usize,
    /// The least part of a core that a run in one process had.
    share: f64,
    /// How far cores were from each other.
    course: Course,
    /// What was made to agree with live runs of processes.
    closed: Vec<(Way, CoreCount)>,
    /// How well it does.
    closings: Vec<Closing>,
    driver: Vec<(&'static str, f64)>,
    shared: Vec<(&'static str, f64)>,
    datagrams: Vec<(&'static str, f64)>,
    inputs: Vec<Input>,
}

/// How processes are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Tcp,
    SharedMemory,
    /// Requests and replies; all else over TCP.
    Datagrams,
}

/// What live runs of processes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoreCount {
    /// What is paid where all are on one core.
    OneCore,
    /// What is paid more where they are on two.
    TwoCores,
}

/// Costs that are made larger or smaller together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knob {
    /// All that is processor time of its own, inputs as well.
    Near,
    /// Of what is written at once for another core.
    Far,
    /// Of each kibibyte of it.
    FarBytes,
    /// All that carrying costs, or all else of it.
    Carrying,
}

impl CoreCount {
    fn knobs(self, way: Way) -> &'static [Knob] {
        match (way, self) {
            (Way::Tcp, Self::OneCore) => &[Knob::Near],
            (Way::Tcp, Self::TwoCores) => &[Knob::Far, Knob::FarBytes],
            (Way::Datagrams, _) => &[Knob::FarBytes, Knob::Carrying],
            // Of bytes, handles travel.
            (Way::SharedMemory, _) => &[Knob::Carrying],
        }
    }
}

impl Knob {
    fn turns(self, key: &str) -> bool {
        match self {
            Self::Near => !key.starts_with("far") && !TIMES_OF_MACHINE.contains(&key),
            Self::Far => key == "far",
            Self::FarBytes => key == "far_kib",
            Self::Carrying => true,
        }
    }
}

/// A partition as it is simulated, and how fast it was live.
pub(super) struct Apart {
    pub(super) partition: Partition,
    pub(super) events_per_s: Spread,
}

/// The cost of a kind of input, and where it is that.
#[derive(Clone, Copy)]
struct Input {
    role: Role,
    kind: WorkKind,
    layout: Layout,
    level2: bool,
    fit: Fit,
    /// Where it was metered, if not there.
    from: Option<&'static str>,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Tcp, Self::SharedMemory, Self::Datagrams];

    fn words(self) -> &'static str {
        match self {
            Self::Tcp => "over TCP",
            Self::SharedMemory => "in shared memory",
            Self::Datagrams => "over UDP",
        }
    }
}

impl Input {
    fn times(self, factor: f64) -> Self {
        Self { fit: self.fit.times(factor), ..self }
    }
}

impl Costs {
    pub(super) fn new(machine: &Machine, metered: &Metered, share: f64) -> Result<Self, CalibrationError> {
        let Metered { building, chain, recording, between, shared, datagrams } = metered;
        let pass = between.fit(Section::Pass, Terms::ALL).ok_or(CalibrationError::TooShort)?;
        let base_only = Terms { each: false, per_byte: false, ..Terms::ALL };
        let mut driver = vec![
            ("pass", pass.base),
            ("pass_component", pass.each),
            ("pass_connection", pass.per_byte),
            ("local", chain.fit(Section::Local, base_only).unwrap_or_default().base),
        ];
        let no_base = Terms { base: false, ..Terms::ALL };
        let by_count = Terms { per_byte: false, ..no_base };
        driver.extend(carrying(between, Section::Read, (Section::Write, no_base)));
        let of_machine = |key| (key, machine.time(key).expect("a key of the machine"));
        let far = ["far", "far_kib"].map(of_machine);
        driver.extend(far);
        driver.extend(["latency", "wake", "sleep", "switch"].map(of_machine));
        let mut inputs = Vec::new();
        let [building, chain, between] =
            [(building, "one process without level 2"), (chain, ONE_PROCESS), (between, "processes without level 2")];
        let recording = (recording, ONE_PROCESS);
        for (layout, level2, best_first) in [
            (Layout::Process, false, [building, chain, between, recording]),
            (Layout::Process, true, [chain, recording, building, between]),
            (Layout::Processes, false, [between, building, chain, recording]),
            (Layout::Processes, true, [between, chain, building, recording]),
        ] {
            let own = if (layout, level2) == (Layout::Process, true) { ONE_PROCESS } else { best_first[0].1 };
            let own = if (layout, level2) == (Layout::Processes, true) { "" } else { own };
            inputs.extend(best_of(best_first).map(|((role, kind), (fit, from))| {
                let from = Some(from).filter(|from| *from != own);
                Input { role, kind, layout, level2, fit, from }
            }));
        }
        Ok(Self {
            cores: machine.cores,
            share,
            course: 0.0..=0.0,
            closed: Vec::new(),
            closings: Vec::new(),
            driver,
            // What is written there are handles.
            shared: carrying(shared, Section::Read, (Section::Write, by_count)),
            datagrams: [&carrying(datagrams, Section::ReadDatagrams, (Section::WriteDatagrams, no_base))[..], &far]
                .concat(),
            inputs,
        })
    }

    /// The same, with costs made larger or smaller until simulations of one process are as fast as it is without a meter. Those are all
    /// costs of inputs, those of chains and of building alone by themselves. The cost of a message changes apart from each thing in it.
    /// Reading the clock so often holds a processor up by more than it takes itself, and the more, the shorter the metered sections.
    pub(super) fn closed(mut self, alone: &[Apart]) -> Self {
        for level2 in [false, true] {
            let of_kind = || alone.iter().filter(move |live| live.partition.l2pu.is_some() == level2);
            let knobs = match of_kind().count() {
                0 => continue,
                1 | 2 => 1,
                _ => 2,
            };
            let off = |logarithms: &[f64]| {
                let costs = self.times_alone(level2, &factors(logarithms));
                let all_alike = logarithms.iter().map(|logarithm| ALIKE_WEIGHT * logarithm.powi(2)).sum::<f64>();
                all_alike + costs.off(of_kind(), Layout::Process)
            };
            let found = least_near_zero(knobs, CLOSING_MAX, off);
            self = self.times_alone(level2, &factors(&found));
        }
        self.with_closings(None, alone)
    }

    /// How far simulations are from live runs: the sum of the squares of logarithms. On all cores: there are hundreds of them.
    fn off<'l>(&self, live: impl Iterator<Item = &'l Apart>, layout: Layout) -> f64 {
        let off = |live: &Apart| {
            let simulated_per_s = self.simulated(&live.partition, layout)?;
            Some((simulated_per_s / live.events_per_s.median).ln().powi(2))
        };
        thread::scope(|scope| {
            let running: Vec<_> = live.map(|live| scope.spawn(move || off(live))).collect();
            running.into_iter().filter_map(|one| one.join().expect("a simulation does not panic")).sum()
        })
    }

    /// With what a message costs and what each thing in it does so many times as large, or both the same.
    fn times_alone(&self, level2: bool, factors: &[f64]) -> Self {
        let (message, each) = (factors[0], *factors.last().expect("one factor at least"));
        let times = |fit: Fit| Fit { base: fit.base * message, each: fit.each * each, per_byte: fit.per_byte * each };
        let inputs = self.inputs.iter().map(|&input| match input.kind {
            kind if kind != WorkKind::Write && input.level2 == level2 => Input { fit: times(input.fit), ..input },
            _ => input,
        });
        let (driver, shared, datagrams) = (self.driver.clone(), self.shared.clone(), self.datagrams.clone());
        self.with(inputs.collect(), driver, shared, datagrams)
    }

    /// The same with the machine's own times in a course.
    pub(super) fn of_course(&self, course: &Course, machine: &Machine) -> Self {
        let of = |costs: &[(&'static str, f64)]| {
            costs.iter().map(|&(key, ns)| (key, machine.time(key).unwrap_or(ns))).collect::<Vec<_>>()
        };
        let (inputs, closings) = (self.inputs.clone(), self.closings.clone());
        let costs = self.with(inputs, of(&self.driver), of(&self.shared), of(&self.datagrams));
        Self { course: course.clone(), closings, ..costs }
    }

    /// Other costs of the same machine, which nothing has closed yet.
    fn with(
        &self,
        inputs: Vec<Input>,
        driver: Vec<(&'static str, f64)>,
        shared: Vec<(&'static str, f64)>,
        datagrams: Vec<(&'static str, f64)>,
    ) -> Self {
        let (cores, share, course) = (self.cores, self.share, self.course.clone());
        Self { cores, share, course, closed: Vec::new(), closings: Vec::new(), driver, shared, datagrams, inputs }
    }

    /// With what is left between simulations and live runs.
    fn with_closings(mut self, of: Option<(Way, CoreCount)>, live: &[Apart]) -> Self {
        let layout = if of.is_some() { Layout::Processes } else { Layout::Process };
        for Apart { partition, events_per_s } in live {
            let simulated_per_s = self.simulated(partition, layout).unwrap_or(0.0);
            let fragment_bytes = partition.ros.fragment.size.map_or(0, configuration::Size::bytes);
            let (fragments, level2) = (partition.ros.count * partition.ros.robs, partition.l2pu.is_some());
            let live = *events_per_s;
            self.closings.push(Closing { of, level2, fragments, fragment_bytes, live, simulated_per_s });
        }
        self
    }

    /// The same for processes, with the costs of their drivers, until the simulation is as fast as live runs. No meter
    /// shows how often a process has to wait for another one on its core, and what its caches then have lost. First
    /// come all costs of one core, by runs on one core. Then, by runs on two, those that come on top because there are
    /// two. Of shared memory and datagrams it is what carrying costs that is changed.
    pub(super) fn closed_apart(mut self, way: Way, part: CoreCount, apart: &[Apart]) -> Self {
        if apart.len() <= part.knobs(way).len() {
            // Any of them could be met.
            return self;
        }
        let off =
            |logarithms: &[f64]| self.times_apart(way, part, &factors(logarithms)).off(apart.iter(), Layout::Processes);
        let found = least_near_zero(part.knobs(way).len(), CLOSING_APART_MAX, off);
        let mut costs = self.times_apart(way, part, &factors(&found));
        costs.closed.append(&mut self.closed);
        costs.closed.push((way, part));
        costs.closings.append(&mut self.closings);
        costs.with_closings(Some((way, part)), apart)
    }

    /// With what each knob turns so many times as large.
    fn times_apart(&self, way: Way, part: CoreCount, factors: &[f64]) -> Self {
        let knobs = part.knobs(way);
        let times = |costs: &[(&'static str, f64)]| {
            let of = |key: &str| {
                let knob = knobs.iter().position(|knob| knob.turns(key));
                knob.map_or(1.0, |knob| factors[knob])
            };
            costs.iter().map(|&(key, ns)| (key, ns * of(key))).collect()
        };
        let (driver, shared, datagrams) = match way {
            Way::Tcp => (times(&self.driver), times(&self.shared), times(&self.datagrams)),
            Way::SharedMemory => (self.driver.clone(), times(&self.shared), self.datagrams.clone()),
            Way::Datagrams => (self.driver.clone(), self.shared.clone(), times(&self.datagrams)),
        };
        let inputs = self.inputs.iter().map(|&input| match (input.layout, input.kind) {
            (Layout::Processes, kind) if kind != WorkKind::Write && knobs.contains(&Knob::Near) => {
                input.times(factors[0])
            }
            _ => input,
        });
        self.with(inputs.collect(), driver, shared, datagrams)
    }

    /// Events per second.
    fn simulated(&self, partition: &Partition, layout: Layout) -> Option<f64> {
        let simulation = Some(Simulation { layout, ..self.simulation()? });
        let mut partition = Partition { simulation, ..partition.clone() };
        let duration = if layout == Layout::Process { SIMULATED_ALONE } else { SIMULATED };
        (partition.run.events, partition.run.duration) = (None, Some(duration));
        let simulated = simulate(partition, Trace::None);
        let simulated = simulated.inspect_err(|error| terminal::complain(&format!("weir calibrate: {error}"))).ok()?;
        Some(simulated.summary().rates_hz.level1).filter(|events_per_s| *events_per_s > 0.0)
    }

    /// As a configuration has it.
    fn simulation(&self) -> Option<Simulation> {
        let text = "partition.name = \"calibration\"\nros.count = 1\nsfi.count = 1\n";
        Partition::parse_with_costs("calibration", text, ("costs", &self.to_toml())).ok()?.simulation
    }

    /// Whether costs of processes that are connected in this way were made to agree with live runs.
    pub(crate) fn is_closed(&self, way: Way) -> bool {
        let needed = [(way, CoreCount::TwoCores), (Way::Tcp, CoreCount::TwoCores), (Way::Tcp, CoreCount::OneCore)];
        needed.iter().all(|part| self.closed.contains(part))
    }

    /// Whether others left a core to runs in one process.
    pub(crate) fn is_calm(&self) -> bool {
        self.share >= SHARE_MIN
    }

    /// What the machine did not let us measure well, in words.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = String> {
        let open = Way::ALL.into_iter().filter(|way| !self.is_closed(*way));
        let open: Vec<&str> = open.map(Way::words).collect();
        let percent = self.share * 100.0;
        let shared = (!self.is_calm()).then(|| {
            let expected = SHARE_MIN * 100.0;
            format!("others use this machine, runs had {percent:.0} % of a core: expected at least {expected:.0} %")
        });
        let open = (!open.is_empty()).then(|| {
            format!("processes {} never had the machine for themselves: what they cost may be far off", open.join(", "))
        });
        let uneven = self.closings.iter().filter(|closing| closing.of.is_some() && closing.is_uneven());
        let uneven = uneven.map(|closing| format!("runs of one shape differ: {}", closing.words()));
        let off = self.closings.iter().filter(|closing| closing.is_off());
        let off = off.map(|closing| format!("costs do not agree well with live runs: {}", closing.words()));
        shared.into_iter().chain(open).chain(uneven.chain(off).collect::<Vec<_>>())
    }

    /// What was metered elsewhere than where it counts, in words.
    pub(super) fn gaps(&self) -> impl Iterator<Item = String> {
        let mut gaps: BTreeMap<(bool, bool, &'static str), Vec<&'static str>> = BTreeMap::new();
        for input in &self.inputs {
            if let Some(from) = input.from {
                let roles = gaps.entry((input.layout == Layout::Processes, input.level2, from)).or_default();
                let stem = input.role.stem();
                if !roles.contains(&stem) {
                    roles.push(stem);
                }
            }
        }
        gaps.into_iter().map(|((apart, level2, from), roles)| {
            let layout = if apart { "processes" } else { "one process" };
            let with = if level2 { "with" } else { "without" };
            format!(
                "in {layout} {with} level 2, inputs of {} cost what they do in {from}, where not metered",
                roles.join(", ")
            )
        })
    }

    /// How far costs of processes agree with live runs, as comments.
    fn closings_text(&self) -> String {
        if self.closings.is_empty() {
            return String::new();
        }
        let (near, far) = (self.course.start(), self.course.end());
        let head = format!(
            "# Events per second of live runs, median (least to most), and as simulated with these costs. A cache line took {near:.0} to \
             {far:.0} ns\n# from one core to another and back.\n"
        );
        self.closings.iter().fold(head, |text, closing| text + &format!("# {}\n", closing.words()))
    }

    /// A file for `weir sim --costs`.
    pub(crate) fn to_toml(&self) -> String {
        let (machine, share, cores) = (processor_name(), self.share * 100.0, self.cores);
        let mut text = format!(
            "# Costs on {machine}, {cores} cores, of which runs in one process had at least {share:.0} % of one.\n\
             {}\n[simulation]\ncores = {cores}\ncost = [\n",
            self.closings_text()
        );
        for Input { role, kind, layout, level2, fit, from } in &self.inputs {
            let (role, kind) = (role.stem(), kind.name());
            let layout = if *layout == Layout::Process { "process" } else { "processes" };
            text += &format!("    {{ role = \"{role}\", input = \"{kind}\", layout = \"{layout}\", level2 = {level2}");
            let terms = [("message", fit.base), ("each", fit.each), ("per_kib", fit.per_byte * 1024.0)];
            for (key, ns) in terms.map(|(key, ns)| (key, ns.round())).into_iter().filter(|(_, ns)| *ns > 0.0) {
                text += &format!(", {key} = \"{ns:.0} ns\"");
            }
            if let Some(from) = from {
                text += &format!(", source = \"{METERED}{from}\"");
            }
            text += " },\n";
        }
        text += "]\n\n[simulation.driver]\n";
        let table = |costs: &[(&'static str, f64)]| -> String {
            costs.iter().map(|(key, ns)| format!("{key} = \"{:.0} ns\"\n", ns.max(0.0))).collect()
        };
        text += &table(&self.driver);
        text += "source = \"measured by weir calibrate\"\n";
        for (name, costs) in [("shm", &self.shared), ("udp", &self.datagrams)] {
            text += &format!("\n[simulation.driver.{name}]\n{}", table(costs));
        }
        text
    }
}

/// What it costs to carry messages, as it was seen.
fn carrying(seen: &Seen, read: Section, (write, of_write): (Section, Terms)) -> Vec<(&'static str, f64)> {
    let base_only = Terms { each: false, per_byte: false, ..Terms::ALL };
    let no_count = Terms { each: false, ..Terms::ALL };
    let of = |section, terms| seen.fit(section, terms).unwrap_or_default();
    let (read, write) = (of(read, no_count), of(write, of_write));
    vec![
        ("encode", of(Section::Encode, base_only).base),
        ("decode", of(Section::Decode, base_only).base),
        ("read", read.base),
        ("read_kib", read.per_byte * 1024.0),
        ("write", write.each),
        ("write_kib", write.per_byte * 1024.0),
    ]
}

/// Each kind of input, from the first that has seen it, and which that is.
fn best_of(seen: [(&Seen, &'static str); 4]) -> impl Iterator<Item = ((Role, WorkKind), (Fit, &'static str))> {
    let mut best = BTreeMap::new();
    for (seen, name) in seen {
        for (role, kind, fit) in seen.inputs() {
            best.entry((role, kind)).or_insert((fit, name));
        }
    }
    best.into_iter()
}

fn factors(logarithms: &[f64]) -> Vec<f64> {
    logarithms.iter().map(|logarithm| logarithm.exp()).collect()
}

/// Where a function of a few variables is least, by steps along each from 0 on, which become smaller. It need be
/// neither smooth nor known.
fn least_near_zero(variables: usize, factor_max: f64, of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut best = vec![0.0; variables];
    let mut least = of(&best);
    let mut step = STEP_FIRST;
    while step >= STEP_LAST {
        let mut moved = false;
        for (variable, by) in (0..variables).flat_map(|variable| [(variable, step), (variable, -step)]) {
            let mut there = best.clone();
            there[variable] = (there[variable] + by).clamp(-factor_max.ln(), factor_max.ln());
            let value = of(&there);
            if value < least {
                (best, least, moved) = (there, value, true);
            }
        }
        if !moved {
            step /= 2.0;
        }
    }
    best
}

/// The processor, as far as the kernel says.
fn processor_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or("an unknown processor", |(_, name)| name.trim()).to_owned()
}

const ONE_PROCESS: &str = "one process with level 2";
/// Virtual time of a run that closes the calibration; one process goes through all there is in less.
const SIMULATED: Interval = Interval::from_ms(30);
const SIMULATED_ALONE: Interval = Interval::from_ms(6);
/// What a factor far from 1 counts beside what simulations are off: short runs of few shapes tell no more than this.
const ALIKE_WEIGHT: f64 = 0.01;
/// More than this is no matter of the meter.
const CLOSING_MAX: f64 = 2.0;
/// Nor is more than this one of caches.
const CLOSING_APART_MAX: f64 = 8.0;
/// Steps of a closing, as logarithms of factors.
const STEP_FIRST: f64 = 0.6;
const STEP_LAST: f64 = 0.05;
/// Of a driver, what is no processor time of its own.
const TIMES_OF_MACHINE: [&str; 3] = ["latency", "wake", "switch"];

#[cfg(test)]
mod tests;
