//! `weir sim`: a configuration in virtual time, and drawn partitions.
#![forbid(unsafe_code)]

mod arguments;
mod compare;
mod content;
mod outside;
mod setup;
mod sources;
mod struck;
mod swarm;
mod tasks;

pub use arguments::{EXAMPLES, SimArgs};

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::time::Duration;

use configuration::{
    BadMenu, ConfigurationError, InputCost, Interval, Layout, Level1Source, MessageType, Partition, Play, RosInput,
    Simulation, Strategy, Way,
};
use control::controller::Ending;
use nix::sys::resource::UsageWho;
use rol::{InputError, Inputs, LinksError, Replay};
use simulator::network::TopologyError;
use simulator::world::{Outcomes, Trace, World};

use partition::Assembly;
use partition::cpu::cpu_seconds;
use partition::facts_of;
use partition::human::si;
use partition::summary::{Network, RunFacts, Summary};
use partition::table::Table;
use terminal::Exit;
use terminal::can_hold_a_file;

/// Why a configuration is not simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// What the sources read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The menu of the trigger.
    #[error(transparent)]
    Menu(#[from] BadMenu),
    /// The network.
    #[error("the network of [simulation]: {0}")]
    Topology(#[from] TopologyError),
    /// A driver where there are many machines.
    #[error(
        "[simulation.driver] holds what processes on one machine cost: expected simulation.layout = \"process\" or \"processes\", \
         or no driver and no --costs, found \"farm\""
    )]
    DriverOnFarm,
    /// A core that the simulated machine does not have.
    #[error("{key}: expected cores below simulation.cores, which is {cores}, found {core}")]
    Core {
        /// What names it.
        key: String,
        /// The core.
        core: u32,
        /// How many there are.
        cores: u32,
    },
    /// Links of sources.
    #[error(transparent)]
    Links(#[from] LinksError),
    /// Level 2 that looks at data.
    #[error(
        "l2pu.strategy = \"menu\" decides on data, and simulated sources send lengths alone: expected \"none\", \"generate\" or \"two-step\""
    )]
    NoData,
    /// Level-1 processors.
    #[error(
        "level1.source = \"external\": expected triggers that a simulation makes itself, as with \"emulator\" or \"link\""
    )]
    Processors,
    /// A cost of an input that does not exist.
    #[error("[[simulation.cost]] input: expected one of {expected}, found {found:?}")]
    Cost {
        /// The name that the configuration gives.
        found: String,
        /// The names of inputs.
        expected: String,
    },
}

/// Simulates what the arguments ask for.
pub fn sim(args: &SimArgs) -> Exit {
    let Some(config) = &args.config else { return swarm::swarm(args) };
    let costs = args.costs.as_deref().map(|path| Ok((path.display().to_string(), Partition::read_costs(path)?)));
    let costs: Option<(String, String)> = match costs.transpose() {
        Ok(costs) => costs,
        Err(error) => return wrong(&error),
    };
    let costs = costs.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
    let mut partition = match Partition::load_with_costs(config, costs, &args.overrides.set) {
        Ok(partition) => partition,
        Err(error) => return wrong(&error),
    };
    args.limits.apply(&mut partition);
    if partition.run.size.is_some() && partition.run.events.is_none() && partition.run.duration.is_none() {
        terminal::complain(
            "weir sim: run.size: expected run.events or run.duration as well: a simulation records no bytes",
        );
        return Exit::Wrong;
    }
    limit(&mut partition);
    use_hosts(&mut partition);
    use_built_in_costs(&mut partition);
    let notes = [
        borrowed_costs(&partition),
        not_simulated(&partition),
        sources::not_simulated(&partition),
        tasks::not_simulated(&partition),
    ];
    for note in notes.concat() {
        terminal::complain(&format!("weir sim: {note}"));
    }
    if let Some(seed) = args.seed {
        partition.run.seed = seed;
    }
    let live = match args.compare.as_deref().map(compare::read).transpose() {
        Ok(live) => live,
        Err(message) => {
            terminal::complain(&format!("weir sim: {message}"));
            return Exit::Wrong;
        }
    };
    if let Some(path) = args.summary.as_deref().filter(|path| !can_hold_a_file(path)) {
        terminal::complain(&format!("weir: --summary {}: expected a file in a directory that exists", path.display()));
        return Exit::NotStarted;
    }
    let trace = match args.trace.as_deref().map(to_file).transpose() {
        Ok(trace) => trace.unwrap_or_default(),
        Err(message) => {
            terminal::complain(&format!("weir sim: {message}"));
            return Exit::NotStarted;
        }
    };
    let simulated = match simulate(partition, trace) {
        Ok(simulated) => {
            let inputs = simulated.outcomes.inputs as f64;
            terminal::complain(&format!("weir sim: {}", speed(inputs, simulated.own_cpu_s)));
            if let Some(note) = too_late(&simulated.outcomes) {
                terminal::complain(&format!("weir sim: {note}"));
            }
            simulated
        }
        Err(error) => {
            terminal::complain(&format!("weir sim: {error}"));
            return Exit::Wrong;
        }
    };
    let summary = simulated.summary();
    // A reader that left misses the table; the summary and the exit status still tell.
    terminal::print_table(Table { facts: &simulated.facts, ending: &simulated.ending, summary: &summary });
    if let Some(live) = live {
        let _ = terminal::on_standard_streams(|out, _| {
            compare::print(out, &summary, &live)?;
            Ok(Exit::Well)
        });
    }
    if let Some(path) = &args.summary
        && let Err(error) = summary.write_to(path)
    {
        terminal::complain(&format!("weir: {error}"));
    }
    summary.state.into()
}

/// Faults that never struck, in words.
fn too_late(outcomes: &Outcomes) -> Option<String> {
    let (wanted, struck) = (outcomes.setup.course.faults.len(), outcomes.struck.len());
    (struck < wanted).then(|| format!("{} of {wanted} faults did not strike: the run had ended", wanted - struck))
}

/// How fast a simulation was, in words.
fn speed(inputs: f64, cpu_s: f64) -> String {
    let per_s = si(inputs / cpu_s.max(1e-6), "/s");
    format!("{} inputs of components in {} of processor time, {per_s}", si(inputs, ""), si(cpu_s, "s"))
}

/// Live, sources end a run when they have no more; simulated ones always have.
fn limit(partition: &mut Partition) {
    let run = &mut partition.run;
    if partition.ros.input == RosInput::Links && run.events.is_none() && run.duration.is_none() {
        run.duration = Some(LIMIT);
        terminal::complain(&format!(
            "weir sim: sources send without end, and the configuration has no limit: the run takes {LIMIT}; --duration or \
             --events says otherwise"
        ));
    }
}

/// Where there are hosts no two applications share a process.
fn use_hosts(partition: &mut Partition) {
    let has_hosts = !partition.host.is_empty();
    let simulation = partition.simulation.get_or_insert_default();
    if has_hosts && simulation.layout == Layout::Process {
        simulation.layout = Layout::Hosts;
    }
}

/// A partition on one machine that says nothing of costs has those that were measured on another one.
fn use_built_in_costs(partition: &mut Partition) {
    let simulation = partition.simulation.get_or_insert_default();
    if simulation.layout == Layout::Farm || simulation.driver.is_some() || !simulation.cost.is_empty() {
        return;
    }
    let least = "partition.name = \"any\"\nros.count = 1\nsfi.count = 1\n";
    let measured = Partition::parse_with_costs("any", least, ("costs.toml", BUILT_IN_COSTS));
    let measured = measured.ok().and_then(|partition| partition.simulation).expect("a test reads the built-in costs");
    (simulation.driver, simulation.cost) = (measured.driver, measured.cost);
    terminal::complain(
        "weir sim: built-in costs, of another machine: `weir calibrate` measures those of this one, for --costs",
    );
}

/// Costs that were metered in other circumstances than those of a partition, in words.
fn borrowed_costs(partition: &Partition) -> Vec<String> {
    let Some((simulation, driver)) = partition.simulation.as_ref().and_then(|all| Some((all, all.driver.as_ref()?)))
    else {
        return Vec::new();
    };
    let transport = &partition.transport;
    let mut notes = Vec::new();
    if matches!(simulation.layout, Layout::Processes | Layout::Hosts) {
        let default = transport.connections.way();
        if default == Way::Shm && driver.shm.is_none() {
            notes.push("no costs of shared memory: messages cost what they do over TCP".to_owned());
        }
        if transport.has_datagrams() && driver.udp.is_none() {
            notes.push("no costs of datagrams: messages cost what they do over TCP".to_owned());
        }
        let of_another_kind = |of| matches!(transport.way(of), Way::Tcp | Way::Shm) && transport.way(of) != default;
        if MessageType::ALL.into_iter().any(of_another_kind) {
            notes.push(
                "connections of a kind of their own are not simulated: messages cost what they do over transport.connections"
                    .to_owned(),
            );
        }
    }
    let roles: Vec<&str> = partition.applications().iter().map(|app| app.role.stem()).collect();
    let mut metered: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let with_level2 = partition.l2pu.is_some();
    let is_used = |cost: &&InputCost| {
        let here = cost.layout == Some(setup::metered_as(simulation.layout)) && cost.level2 == Some(with_level2);
        here && roles.contains(&cost.role.as_str()) && cost.source.starts_with(METERED)
    };
    for cost in simulation.cost.iter().filter(is_used) {
        let roles = metered.entry(&cost.source).or_default();
        if !roles.contains(&cost.role.as_str()) {
            roles.push(&cost.role);
        }
    }
    notes.extend(metered.into_iter().map(|(source, roles)| format!("costs of {} were {source}", roles.join(", "))));
    notes
}

/// What a partition sets for its datagrams that has no effect here, in words.
fn not_simulated(partition: &Partition) -> Vec<String> {
    let transport = &partition.transport;
    if !transport.has_datagrams() {
        return Vec::new();
    }
    let mut notes = Vec::new();
    if transport.udp.window.is_some() {
        notes.push("transport.udp.window is not simulated: nothing is acknowledged or sent again".to_owned());
    }
    // On one machine nothing is lost.
    let has_network = |simulation: &Simulation| matches!(simulation.layout, Layout::Farm | Layout::Hosts);
    let may_lose = partition.simulation.as_ref().is_some_and(has_network);
    if may_lose && !transport.udp.ask_after.duration().is_zero() {
        notes.push(
            "transport.udp.ask_after is not simulated: a message that lacks a datagram is lost whole, and requested again \
             after its time-out"
                .to_owned(),
        );
    }
    notes
}

/// Of a run that nothing ends.
const LIMIT: Interval = Interval::from_ms(1_000);

/// How `weir calibrate` says where a cost comes from that it has not metered where it counts.
pub const METERED: &str = "metered in ";

/// Of two cores of an AMD EPYC (Zen 5) under KVM.
const BUILT_IN_COSTS: &str = include_str!("costs.toml");

fn wrong(error: &ConfigurationError) -> Exit {
    terminal::complain(&error.to_string());
    Exit::Wrong
}

/// A run in virtual time that has ended.
pub struct Simulated {
    /// What the summary says of the partition and its machines.
    pub facts: RunFacts,
    /// What the controller knew at the end.
    pub ending: Ending,
    /// What the world saw.
    pub outcomes: Outcomes,
    /// Names of the streams, in the order of their numbers.
    streams: Vec<String>,
    /// Processor time that simulating took, without loading samples.
    pub own_cpu_s: f64,
}

impl Simulated {
    /// The same summary as of a live run.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::new(&self.facts, &self.ending, &self.outcomes.account);
        // There are no bytes to sum.
        summary.files.iter_mut().for_each(|file| file.adler32.clear());
        summary.files.iter_mut().for_each(|file| file.stream = self.stream_name(&file.stream));
        summary
    }

    /// The world knows streams by their numbers: the first one is `physics_Main`, the next `physics_1`.
    fn stream_name(&self, of_world: &str) -> String {
        let number = if of_world == "physics_Main" { Some("0") } else { of_world.strip_prefix("physics_") };
        let name = number.and_then(|number| self.streams.get(number.parse::<usize>().ok()?));
        name.map_or_else(|| of_world.to_owned(), String::clone)
    }
}

/// Runs a partition in virtual time.
///
/// # Errors
///
/// Why the configuration cannot be simulated.
pub fn simulate(mut partition: Partition, trace: Trace) -> Result<Simulated, SimulationError> {
    // Whoever sends is emulated here.
    partition.source.iter_mut().for_each(|source| source.play = Play::None);
    let inputs = Inputs::open(&partition)?;
    // There are no files that it could meet.
    partition.run.number = inputs.replay().map(Replay::run_number).or(partition.run.number);
    check(&partition)?;
    let assembly = Assembly::new(partition, inputs.shares().to_vec())?;
    let has_data = assembly.partition.ros.input != RosInput::Links;
    let assembly = if has_data { assembly } else { assembly.without_data() };
    let facts = facts_of(&assembly);
    let streams = streams(&assembly.partition);
    let bounds = assembly.bounds();
    let setup = setup::setup(assembly, inputs)?;
    let cpu_before = cpu_seconds(UsageWho::RUSAGE_SELF);
    let outcomes = World::new(setup).bounded(bounds).traced(trace).run();
    let own_cpu_s = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_before;
    let stale = outcomes.ending.lives.all().values().map(|report| report.stale).sum();
    let began = outcomes.ending.began.unwrap_or(outcomes.began);
    let duration = outcomes.ended.since(began);
    let network = outcomes.network;
    let seen = struck::Seen { outcomes: &outcomes, began, facts: &facts };
    let (restarts, simulated) = (seen.restarts(), Some(seen.simulated()));
    Ok(Simulated {
        facts: RunFacts {
            forced: outcomes.forced || outcomes.ending.forced,
            duration: if duration.is_zero() { Duration::from_nanos(1) } else { duration },
            cpu: outcomes.cpu,
            restarts,
            simulated,
            network: Network {
                messages: network.messages,
                bytes: network.bytes,
                stale,
                malformed: network.malformed,
                ..Network::default()
            },
            ..facts
        },
        ending: outcomes.ending.clone(),
        outcomes,
        streams,
        own_cpu_s,
    })
}

/// Who is outside has to be simulated, too.
fn check(partition: &Partition) -> Result<(), SimulationError> {
    let of_level1 = partition.level1.as_ref().map(|level1| level1.source);
    let of_level2 = partition.l2pu.as_ref().map(|l2pu| l2pu.strategy);
    if of_level1 == Some(Level1Source::External) {
        return Err(SimulationError::Processors);
    }
    if partition.ros.input == RosInput::Links && of_level2 == Some(Strategy::Menu) {
        return Err(SimulationError::NoData);
    }
    Ok(())
}

fn streams(partition: &Partition) -> Vec<String> {
    match &partition.sfo {
        Some(sfo) if partition.stream.is_empty() => vec![sfo.stream().to_owned()],
        _ => partition.stream_names(),
    }
}

fn to_file(path: &Path) -> Result<Trace, String> {
    let file = File::create(path).map_err(|error| format!("cannot write the trace {}: {error}", path.display()))?;
    Ok(Trace::Text(Box::new(BufWriter::new(file))))
}

/// The whole of a text file.
fn read_text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use configuration::Partition;
    use simulator::world::Trace;

    use super::{BUILT_IN_COSTS, Simulated, simulate};

    fn simulated(costs: &str, layout: &str, cores: u32, more: &str) -> Simulated {
        let text = format!(
            "partition.name = \"p\"\nrun.duration = \"20 ms\"\ndfm.input = \"self\"\nros.count = 3\nsfi.count = 1\n\
             simulation = {{ layout = \"{layout}\", cores = {cores} }}\n{more}"
        );
        let partition = Partition::parse_with_costs("p", &text, ("costs", costs)).unwrap();
        simulate(partition, Trace::None).unwrap()
    }

    fn rate_hz(simulated: &Simulated) -> f64 {
        let summary = simulated.summary();
        assert_eq!(simulated.outcomes.account.residual, 0);
        summary.rates_hz.built
    }

    fn cpu_ns_per_event(simulated: &Simulated) -> f64 {
        simulated.outcomes.cpu.as_nanos() as f64 / simulated.outcomes.account.level1 as f64
    }

    #[test]
    fn the_built_in_costs_simulate_both_layouts() {
        for layout in ["process", "processes"] {
            let rate = rate_hz(&simulated(BUILT_IN_COSTS, layout, 2, ""));
            assert!((1e4..1e7).contains(&rate), "{layout}: {rate}");
        }
    }

    /// Who is on another host is reached through the network alone, whose links all that is on a host shares.
    #[test]
    fn applications_of_a_host_share_its_cores_and_its_link() {
        let hosts = |of_ros: u32, of_sfi: u32, link: u32| {
            let host = |name: &str, ros: u32, sfi: u32| {
                format!("[[host]]\nname = \"{name}\"\nroles = {{ ros = {ros}, sfi = {sfi}, dfm = {sfi} }}\n")
            };
            let (one, other) = (host("one", of_ros, of_sfi), host("other", 3 - of_ros, 1 - of_sfi));
            let text = format!(
                "partition.name = \"p\"\nrun.duration = \"50 ms\"\ndfm.input = \"self\"\nros.count = 3\nsfi.count = 1\n\
                 simulation = {{ layout = \"hosts\", link_mbit_per_s = {link} }}\n{one}{other}"
            );
            let partition = Partition::parse_with_costs("p", &text, ("costs", BUILT_IN_COSTS)).unwrap();
            rate_hz(&simulate(partition, Trace::None).unwrap())
        };
        let (together, apart) = (hosts(3, 1, 100), hosts(3, 0, 100));
        assert!(together > 2.0 * apart, "{together} {apart}: 100 Mbit/s hold up what is apart");
        let fast = hosts(3, 0, 10_000);
        assert!(fast > 2.0 * apart, "{fast} {apart}: and only they do");
    }

    #[test]
    fn processes_share_cores() {
        let costs = "[simulation.driver]\nread = \"1 us\"\nwrite = \"2 us\"\n[[simulation.cost]]\neach = \"1 us\"\n";
        let [one, two, many] = [1, 2, 8].map(|cores| rate_hz(&simulated(costs, "processes", cores, "")));
        assert!(one < two && two < many, "{one} {two} {many}");
        // What goes to another core costs more.
        let bound = |costs: &str, sfi: u32| {
            let cores = format!("processes.cores = {{ ros = [0], dfm = [0], sfi = [{sfi}] }}\n");
            cpu_ns_per_event(&simulated(costs, "processes", 2, &cores))
        };
        let far = costs.replace("read =", "far = \"8 us\"\nread =");
        let of_far = [0, 1].map(|sfi| bound(&far, sfi) / bound(costs, sfi));
        assert!((0.99..1.01).contains(&of_far[0]) && of_far[1] > 1.1, "{of_far:?}");
        let costs = "[simulation.driver]\n[[simulation.cost]]\neach = \"1 us\"\n";
        let [one, many] = [1, 8].map(|cores| rate_hz(&simulated(costs, "process", cores, "")));
        assert_eq!(one, many, "a process has one thread");
    }

    #[test]
    fn shared_memory_and_datagrams_have_costs_of_their_own() {
        let costs = "[simulation.driver]\nwrite = \"1 us\"\n[simulation.driver.shm]\nwrite = \"4 us\"\n\
                     [simulation.driver.udp]\nwrite = \"9 us\"\n";
        let cpu_ns = |more: &str| cpu_ns_per_event(&simulated(costs, "processes", 2, more));
        let ways =
            ["[transport]\nconnections = \"shm\"\n", "[transport]\nevent_request = \"udp\"\nevent_reply = \"udp\"\n"];
        let [shm, udp] = ways.map(cpu_ns);
        let over_tcp = cpu_ns("");
        assert!(over_tcp < shm && over_tcp < udp, "{over_tcp} {shm} {udp}");
        assert!(super::borrowed_costs(&partition(costs, ways[0])).is_empty());
        let without = "[simulation.driver]\nwrite = \"1 us\"\n";
        assert!(super::borrowed_costs(&partition(without, ways[0]))[0].contains("no costs of shared memory"));
        assert!(super::borrowed_costs(&partition(without, ways[1]))[0].contains("no costs of datagrams"));
    }

    fn partition(costs: &str, more: &str) -> Partition {
        let text =
            format!("partition.name = \"p\"\nros.count = 3\nsfi.count = 1\nsimulation.layout = \"processes\"\n{more}");
        Partition::parse_with_costs("p", &text, ("costs", costs)).unwrap()
    }

    #[test]
    fn what_is_not_simulated_of_datagrams_is_said() {
        let notes = |layout: &str, transport: &str| {
            let text = format!(
                "partition.name = \"p\"\nros.count = 3\nsfi.count = 1\nsimulation.layout = \"{layout}\"\n[transport]\n{transport}"
            );
            super::not_simulated(&Partition::parse("p", &text, &[]).unwrap())
        };
        let udp = "event_reply = \"udp\"\n";
        let with = |more: &str| format!("{udp}udp = {{ {more} }}\n");
        assert!(notes("farm", "").is_empty() && notes("processes", udp).is_empty());
        assert!(notes("farm", &with("ask_after = \"0 s\"")).is_empty());
        assert!(notes("farm", udp)[0].contains("lost whole"));
        let window = notes("processes", &with("window = \"1 MB\""));
        assert!(window.len() == 1 && window[0].contains("transport.udp.window"), "{window:?}");
    }

    #[test]
    fn the_more_is_there_the_less_an_event_costs() {
        let costs = "[simulation.driver]\nread = \"2 us\"\nwrite = \"2 us\"\nencode = \"500 ns\"\n";
        let few = simulated(costs, "processes", 2, "sfi.building = 1\n");
        let many = simulated(costs, "processes", 2, "sfi.building = 64\n");
        let (few, many) = (cpu_ns_per_event(&few), cpu_ns_per_event(&many));
        assert!(many < few / 4.0, "{few} {many}");
    }

    #[test]
    fn what_is_long_is_read_while_the_rest_is_written() {
        let costs = "[simulation.driver]\nread_kib = \"1 us\"\nwrite_kib = \"1 us\"\n";
        let more = "ros.fragment = { kind = \"fixed\", size = \"4096 B\" }\nros.input = \"emulator\"\n\
                    processes.cores = { ros = [0], dfm = [1], sfi = [1] }\n";
        let text = format!(
            "partition.name = \"p\"\nrun.duration = \"20 ms\"\ndfm.input = \"self\"\nros.count = 1\nsfi.count = 1\n\
             simulation = {{ layout = \"processes\", cores = 2 }}\n{more}"
        );
        let partition = Partition::parse_with_costs("p", &text, ("costs", costs)).unwrap();
        let rate = rate_hz(&simulate(partition, Trace::None).unwrap());
        let one_after_the_other = 1e6 / (4.0 + 4.0);
        assert!((1.2..2.0).contains(&(rate / one_after_the_other)), "{rate}");
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let [one, other] = [(); 2].map(|()| simulated(BUILT_IN_COSTS, "processes", 2, ""));
        assert_eq!(one.outcomes.inputs, other.outcomes.inputs);
        assert_eq!(one.outcomes.ended, other.outcomes.ended);
    }

    /// Otherwise requests of the event filter would come to event builders that do not know of it yet, and be lost.
    #[test]
    fn connections_on_a_farm_stand_for_both_ends_at_once() {
        let text = "partition.name = \"p\"\nrun.duration = \"20 ms\"\nros.count = 3\nsfi.count = 4\nef.count = 4\nsfo = {}\n\
                    dfm = { input = \"self\", rate = \"1 kHz\" }\nsimulation.layout = \"farm\"\n";
        for seed in 1..20 {
            let seed = format!("run.seed = {seed}\n");
            let partition = Partition::parse("p", &(seed + text), &[]).unwrap();
            let simulated = simulate(partition, Trace::None).unwrap();
            assert_eq!((simulated.facts.network.stale, simulated.outcomes.account.residual), (0, 0));
        }
    }

    #[test]
    fn a_whole_chain_survives_deaths_and_splits_with_drivers() {
        let chain = "level1 = { rate = \"20 kHz\" }\nl2sv = { timeout = \"5 ms\" }\n[l2pu]\ncount = 2\nstrategy = \"two-step\"\n\
                     [processes]\non_loss = \"restart\"\n\
                     [[simulation.fault]]\nat = \"8 ms\"\nkind = \"restart\"\napplication = \"l2pu-2\"\nlasts = \"3 ms\"\n";
        let cut_off =
            "[[simulation.fault]]\nat = \"5 ms\"\nkind = \"cut-off\"\napplication = \"l2pu-1\"\nlasts = \"3 ms\"\n";
        for (layout, cut_off) in [("process", ""), ("processes", cut_off)] {
            let text = format!(
                "partition.name = \"p\"\nrun.duration = \"30 ms\"\nros.count = 3\nsfi.count = 1\nsimulation.layout = \"{layout}\"\n{chain}{cut_off}"
            );
            let partition = Partition::parse_with_costs("p", &text, ("costs", BUILT_IN_COSTS)).unwrap();
            let simulated = simulate(partition, Trace::None).unwrap();
            assert_eq!(simulated.outcomes.account.residual, 0, "{layout}: {:#?}", simulated.outcomes.account);
            assert!(simulated.outcomes.account.level1 > 400, "{layout}: {:#?}", simulated.outcomes.account);
        }
    }
}
