//! What a calibration has found, as `[simulation]` has it.

use std::collections::BTreeMap;

use configuration::{Interval, Layout, Partition, Simulation};
use dataflow::ids::Role;
use simulator::world::{Kind, Trace};

use super::fit::{Fit, Terms};
use super::machine::Machine;
use super::{CalibrationError, Course, Metered, SHARE_MIN, Seen, Spread};
use crate::host::Section;
use crate::simulation::{METERED, simulate};

/// A calibration: what `[simulation]` needs.
pub(crate) struct Costs {
    pub(super) cores: usize,
    /// The least part of a core that a run in one process had.
    share: f64,
    /// How far cores were from each other.
    course: Course,
    /// What was made to agree with live runs of processes.
    closed: Vec<(Way, Part)>,
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
pub(super) enum Part {
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
    /// All that carrying costs.
    Carrying,
}

impl Part {
    fn knobs(self, way: Way) -> &'static [Knob] {
        match (way, self) {
            (Way::Tcp, Self::OneCore) => &[Knob::Near],
            (Way::Tcp, Self::TwoCores) => &[Knob::Far, Knob::FarBytes],
            _ => &[Knob::Carrying],
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

/// What is left between the simulation of a shape and its live runs, after the costs were made to agree with all shapes.
#[derive(Clone, Debug)]
struct Closing {
    /// With processes of their own.
    of: Option<(Way, Part)>,
    level2: bool,
    fragments: u32,
    fragment_bytes: u64,
    live: Spread,
    simulated_per_s: f64,
}

/// The cost of a kind of input, and where it is that.
#[derive(Clone, Copy)]
struct Input {
    role: Role,
    kind: Kind,
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

impl Closing {
    fn words(&self) -> String {
        let Self { of, level2, fragments, fragment_bytes, live, simulated_per_s } = self;
        let Spread { median, least, most, runs } = live;
        let (way, on) = match of {
            None => ("in one process", ""),
            Some((way, Part::OneCore)) => (way.words(), ", on one core"),
            Some((way, Part::TwoCores)) => (way.words(), ", on two cores"),
        };
        let with = if *level2 { ", level 2" } else { "" };
        format!(
            "{way}{on}{with}, {fragments} fragments of {fragment_bytes} B: {median:.0} ({least:.0} to {most:.0}, {runs} runs), \
             {simulated_per_s:.0}"
        )
    }

    fn is_uneven(&self) -> bool {
        self.live.most > self.live.least * UNEVEN_MIN
    }
}

impl Input {
    fn times(self, factor: f64) -> Self {
        Self { fit: self.fit.times(factor), ..self }
    }
}

impl Costs {
    pub(super) fn new(
        machine: &Machine,
        metered: &Metered,
        (share, course): (f64, &Course),
    ) -> Result<Self, CalibrationError> {
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
        let far = [("far", machine.far), ("far_kib", machine.far_kib)];
        driver.extend(far);
        driver.extend([
            ("latency", machine.latency),
            ("wake", machine.wake),
            ("sleep", machine.sleep),
            ("switch", machine.switch),
        ]);
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
            course: course.clone(),
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

    /// The same, with all costs of inputs made larger or smaller, those of chains and of building alone by themselves, until
    /// the simulation of what was metered takes as much processor time as without a meter: reading the clock so often holds
    /// a processor up by more than what it takes.
    pub(super) fn closed(self, alone: &[Apart]) -> Self {
        let [building, chain] = [false, true].map(|level2| {
            let of_kind = alone.iter().filter(|live| live.partition.l2pu.is_some() == level2);
            let ratios = of_kind.filter_map(|live| {
                let (simulated_per_s, _) = self.simulated(&live.partition, Layout::Process)?;
                Some(simulated_per_s / live.events_per_s.median)
            });
            mean(ratios).clamp(1.0 / CLOSING_MAX, CLOSING_MAX)
        });
        let inputs = self.inputs.into_iter().map(|input| match input.kind {
            Kind::Write => input,
            _ => input.times(if input.level2 { chain } else { building }),
        });
        Self { inputs: inputs.collect(), ..self }.with_closings(None, alone)
    }

    /// With what is left between simulations and live runs.
    fn with_closings(mut self, of: Option<(Way, Part)>, live: &[Apart]) -> Self {
        let layout = if of.is_some() { Layout::Processes } else { Layout::Process };
        for Apart { partition, events_per_s } in live {
            let simulated_per_s = self.simulated(partition, layout).map_or(0.0, |(per_s, _)| per_s);
            let fragment_bytes = partition.ros.fragment.size.map_or(0, configuration::Size::bytes);
            let (fragments, level2) = (partition.ros.count * partition.ros.robs, partition.l2pu.is_some());
            let live = *events_per_s;
            self.closings.push(Closing { of, level2, fragments, fragment_bytes, live, simulated_per_s });
        }
        self
    }

    /// The same for processes, with what their drivers cost, until the simulation is as fast as live runs: how often a process
    /// has to wait for another one on its core, and what its caches then have lost, is not metered. First all that is paid on
    /// one core, by runs on one core; then, by runs on two, what is paid more because there are two. Of shared memory and
    /// datagrams it is what carrying costs that is changed.
    pub(super) fn closed_apart(mut self, way: Way, part: Part, apart: &[Apart]) -> Self {
        if apart.len() <= part.knobs(way).len() {
            // Any of them could be met.
            return self;
        }
        let off = |logarithms: &[f64]| {
            let costs = self.times_apart(way, part, &factors(logarithms));
            let ratios = apart.iter().filter_map(|live| {
                let (simulated_per_s, _) = costs.simulated(&live.partition, Layout::Processes)?;
                Some((simulated_per_s / live.events_per_s.median).ln().powi(2))
            });
            ratios.sum::<f64>()
        };
        let found = least_near_zero(part.knobs(way).len(), off);
        let mut costs = self.times_apart(way, part, &factors(&found));
        costs.closed.append(&mut self.closed);
        costs.closed.push((way, part));
        costs.closings.append(&mut self.closings);
        costs.with_closings(Some((way, part)), apart)
    }

    /// With what each knob turns so many times as large.
    fn times_apart(&self, way: Way, part: Part, factors: &[f64]) -> Self {
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
            (Layout::Processes, kind) if kind != Kind::Write && knobs.contains(&Knob::Near) => input.times(factors[0]),
            _ => input,
        });
        let (course, cores) = (self.course.clone(), self.cores);
        let (closed, closings) = (Vec::new(), Vec::new());
        Self { cores, share: self.share, course, closed, closings, inputs: inputs.collect(), driver, shared, datagrams }
    }

    /// Events per second and processor time of an event, in ns.
    fn simulated(&self, partition: &Partition, layout: Layout) -> Option<(f64, f64)> {
        let simulation = Some(Simulation { layout, ..self.simulation()? });
        let mut partition = Partition { simulation, ..partition.clone() };
        (partition.run.events, partition.run.duration) = (None, Some(SIMULATED));
        let simulated = simulate(partition, Trace::None);
        let simulated = simulated.inspect_err(|error| crate::complain(&format!("weir calibrate: {error}"))).ok()?;
        let (summary, outcomes) = (simulated.summary(), &simulated.outcomes);
        let cpu_ns = outcomes.cpu.as_nanos() as f64 / outcomes.account.level1.max(1) as f64;
        Some((summary.rates_hz.level1, cpu_ns)).filter(|(events_per_s, _)| *events_per_s > 0.0)
    }

    /// As a configuration has it.
    fn simulation(&self) -> Option<Simulation> {
        let text = "partition.name = \"calibration\"\nros.count = 1\nsfi.count = 1\n";
        Partition::parse_with_costs("calibration", text, ("costs", &self.to_toml())).ok()?.simulation
    }

    /// Whether costs of processes that are connected in this way were made to agree with live runs.
    pub(crate) fn is_closed(&self, way: Way) -> bool {
        [way, Way::Tcp].iter().all(|way| self.closed.contains(&(*way, Part::TwoCores)))
    }

    /// Whether others left a core to runs in one process.
    pub(crate) fn is_calm(&self) -> bool {
        self.share >= SHARE_MIN
    }

    /// What the machine did not let us measure well, in words.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = String> {
        let closed = self.closed.clone();
        let open = Way::ALL.into_iter().filter(move |way| !closed.contains(&(*way, Part::TwoCores)));
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
        shared.into_iter().chain(open).chain(uneven.collect::<Vec<_>>())
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
fn best_of(seen: [(&Seen, &'static str); 4]) -> impl Iterator<Item = ((Role, Kind), (Fit, &'static str))> {
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

/// Where a function of a few variables is least, by steps along each from 0 on, which become smaller: it need be neither smooth
/// nor known.
fn least_near_zero(variables: usize, of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut best = vec![0.0; variables];
    let mut least = of(&best);
    let mut step = STEP_FIRST;
    while step >= STEP_LAST {
        let mut moved = false;
        for (variable, by) in (0..variables).flat_map(|variable| [(variable, step), (variable, -step)]) {
            let mut there = best.clone();
            there[variable] = (there[variable] + by).clamp(-CLOSING_APART_MAX.ln(), CLOSING_APART_MAX.ln());
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

/// The geometric mean; 1 of nothing.
fn mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = ratios.map(f64::ln).filter(|ratio| ratio.is_finite()).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
}

/// The processor, as far as the kernel says.
fn processor_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or("an unknown processor", |(_, name)| name.trim()).to_owned()
}

const ONE_PROCESS: &str = "one process with level 2";
/// Runs of one shape whose cores were as far from each other differ less if nobody disturbs them.
const UNEVEN_MIN: f64 = 1.5;
/// Virtual time of a run that closes the calibration.
const SIMULATED: Interval = Interval::from_ms(30);
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
mod tests {
    use super::*;
    use crate::host::Sample;

    fn costs() -> Costs {
        let input = |kind, layout, base| Input {
            role: Role::Sfi,
            kind,
            layout,
            level2: false,
            fit: Fit { base, each: 0.0, per_byte: 0.5 },
            from: (layout == Layout::Processes).then_some("one process"),
        };
        let inputs = vec![input(Kind::EventReply, Layout::Process, 120.4), input(Kind::Write, Layout::Processes, 1e4)];
        Costs {
            cores: 3,
            share: 1.0,
            course: 100.0..=140.0,
            closings: Vec::new(),
            closed: vec![(Way::Tcp, Part::TwoCores)],
            driver: vec![("pass", 700.0), ("wake", 9e3), ("read", 500.0), ("far", 300.0)],
            shared: vec![("write", 80.0)],
            datagrams: vec![("write", 90.0)],
            inputs,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let simulation = costs().simulation().unwrap();
        assert_eq!(simulation.cores, 3);
        let driver = simulation.driver.unwrap();
        assert_eq!((driver.pass.ns(), driver.wake.ns(), driver.encode.ns()), (700, 9_000, 0));
        assert_eq!([driver.shm, driver.udp].map(|carrying| carrying.unwrap().write.ns()), [80, 90]);
        let [reply, write] = &simulation.cost[..] else { panic!("{:?}", simulation.cost) };
        assert_eq!((reply.role.as_str(), reply.input.as_str(), reply.message.ns()), ("sfi", "event-reply", 120));
        assert_eq!((reply.each.ns(), reply.per_kib.ns(), reply.layout), (0, 512, Some(Layout::Process)));
        assert_eq!((write.input.as_str(), write.message.ns(), write.level2), ("write", 10_000, Some(false)));
        assert_eq!((reply.source.as_str(), write.source.as_str()), ("", "metered in one process"));
    }

    #[test]
    fn gaps_are_told() {
        let gaps: Vec<String> = costs().gaps().collect();
        let expected =
            "in processes without level 2, inputs of sfi cost what they do in one process, where not metered";
        assert_eq!(gaps, [expected]);
    }

    #[test]
    fn what_could_not_be_closed_is_told() {
        let doubts: Vec<String> = Costs { share: 0.5, ..costs() }.doubts().collect();
        assert!(doubts[0].contains("runs had 50 %") && doubts[1].contains("in shared memory, over UDP"), "{doubts:?}");
    }

    #[test]
    fn as_many_shapes_as_factors_close_nothing() {
        let partition = Partition::parse("calibration", "partition.name = \"a\"\nros.count = 1\nsfi.count = 1\n", &[]);
        let spread = Spread::of([1e5, 2e5].into_iter()).unwrap();
        let live = [Apart { partition: partition.unwrap(), events_per_s: spread }];
        assert!(!costs().closed_apart(Way::Datagrams, Part::TwoCores, &live).is_closed(Way::Datagrams));
        assert!(costs().is_closed(Way::Tcp) && !costs().is_closed(Way::SharedMemory));
    }

    #[test]
    fn runs_of_a_shape_that_differ_are_told() {
        let live = Spread::of([1e5, 2e5].into_iter()).unwrap();
        let of = Some((Way::SharedMemory, Part::TwoCores));
        let closing = Closing { of, level2: false, fragments: 3, fragment_bytes: 500, live, simulated_per_s: 1.4e5 };
        let doubts: Vec<String> = Costs { closings: vec![closing], ..costs() }.doubts().collect();
        let words = "in shared memory, on two cores, 3 fragments of 500 B: 150000 (100000 to 200000, 2 runs), 140000";
        assert!(doubts.iter().any(|doubt| doubt.ends_with(words)), "{doubts:?}");
    }

    #[test]
    fn each_way_and_part_is_closed_by_itself() {
        let all = |costs: &Costs| -> Vec<f64> {
            [&costs.driver, &costs.shared, &costs.datagrams].into_iter().flatten().map(|(_, ns)| *ns).collect()
        };
        let closed = |way, part, factors: &[f64]| all(&costs().times_apart(way, part, factors));
        assert_eq!(closed(Way::Tcp, Part::OneCore, &[2.0]), [1_400.0, 9e3, 1_000.0, 300.0, 160.0, 180.0]);
        assert_eq!(closed(Way::Tcp, Part::TwoCores, &[2.0, 3.0]), [700.0, 9e3, 500.0, 600.0, 80.0, 90.0]);
        assert_eq!(closed(Way::SharedMemory, Part::TwoCores, &[2.0]), [700.0, 9e3, 500.0, 300.0, 160.0, 90.0]);
        assert_eq!(closed(Way::Datagrams, Part::TwoCores, &[2.0]), [700.0, 9e3, 500.0, 300.0, 80.0, 180.0]);
    }

    #[test]
    fn the_least_is_found() {
        let found =
            least_near_zero(2, |at| (at[0] - 1.0).powi(2) + (at[1] + 0.5).powi(2) + (at[0] * at[1]).abs() / 10.0);
        assert!((found[0] - 1.0).abs() < 0.15 && (found[1] + 0.5).abs() < 0.15, "{found:?}");
        assert_eq!(least_near_zero(1, |_| 0.0), [0.0]);
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
        let found: Vec<_> = best_of([(&one, "a"), (&other, "b"), (&third, "c"), (&Seen::default(), "d")])
            .map(|((role, kind), (fit, from))| (role, kind, (fit.base + fit.each).round(), from))
            .collect();
        assert_eq!(found, [(Role::Sfi, Kind::Build, 100.0, "a"), (Role::Ros, Kind::Flush, 50.0, "c")]);
    }

    #[test]
    fn the_mean_is_that_of_ratios() {
        assert!((mean([0.5, 2.0].into_iter()) - 1.0).abs() < 1e-12);
        assert_eq!(mean(core::iter::empty()), 1.0);
    }
}
