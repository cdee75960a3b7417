//! `weir sim`: a configuration in virtual time, and drawn partitions.

mod compare;
mod content;
mod outside;
mod setup;
mod swarm;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::time::Duration;

use configuration::{BadMenu, ConfigurationError, Partition};
use dataflow::control::controller::Ending;
use rol::{InputError, Inputs, LinksError};
use simulator::network::TopologyError;
use simulator::world::{Outcomes, Trace, World};

use crate::assembly::Assembly;
use crate::cli::{Exit, SimArgs};
use crate::run::{can_hold_a_file, facts_of};
use crate::summary::{Network, RunFacts, Summary};
use crate::table::Table;

/// Why a configuration is not simulated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimulationError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Menu(#[from] BadMenu),
    #[error("the network of [simulation]: {0}")]
    Topology(#[from] TopologyError),
    #[error(transparent)]
    Links(#[from] LinksError),
    #[error("[[simulation.cost]] input: expected one of {expected}, found {found:?}")]
    Cost { found: String, expected: String },
}

/// Simulates what the arguments ask for.
pub(crate) fn sim(args: &SimArgs) -> Exit {
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
    if let Some(seed) = args.seed {
        partition.run.seed = seed;
    }
    let live = match args.compare.as_deref().map(compare::read).transpose() {
        Ok(live) => live,
        Err(message) => {
            crate::complain(&format!("weir sim: {message}"));
            return Exit::Wrong;
        }
    };
    if let Some(path) = args.summary.as_deref().filter(|path| !can_hold_a_file(path)) {
        crate::complain(&format!("weir: --summary {}: expected a file in a directory that exists", path.display()));
        return Exit::NotStarted;
    }
    let trace = match args.trace.as_deref().map(to_file).transpose() {
        Ok(trace) => trace.unwrap_or_default(),
        Err(message) => {
            crate::complain(&format!("weir sim: {message}"));
            return Exit::NotStarted;
        }
    };
    let simulated = match simulate(partition, trace) {
        Ok(simulated) => simulated,
        Err(error) => {
            crate::complain(&format!("weir sim: {error}"));
            return Exit::Wrong;
        }
    };
    let summary = simulated.summary();
    // A reader that left misses the table; the summary and the exit status still tell.
    let _ = Table { facts: &simulated.facts, ending: &simulated.ending, summary: &summary }.print();
    if let Some(live) = live {
        let _ = crate::commands::on_standard_streams(|out, _| {
            compare::print(out, &summary, &live)?;
            Ok(Exit::Well)
        });
    }
    if let Some(path) = &args.summary
        && let Err(error) = summary.write_to(path)
    {
        crate::complain(&format!("weir: {error}"));
    }
    summary.exit()
}

fn wrong(error: &ConfigurationError) -> Exit {
    crate::complain(&error.to_string());
    Exit::Wrong
}

/// A run in virtual time that has ended.
pub(crate) struct Simulated {
    pub(crate) facts: RunFacts,
    pub(crate) ending: Ending,
    pub(crate) outcomes: Outcomes,
}

impl Simulated {
    /// The same summary as of a live run.
    pub(crate) fn summary(&self) -> Summary {
        Summary::new(&self.facts, &self.ending, &self.outcomes.account)
    }
}

/// Runs a partition in virtual time.
pub(crate) fn simulate(partition: Partition, trace: Trace) -> Result<Simulated, SimulationError> {
    let inputs = Inputs::open(&partition)?;
    let assembly = Assembly::new(partition, inputs.shares().to_vec())?;
    let facts = facts_of(&assembly);
    let setup = setup::setup(assembly, inputs)?;
    let outcomes = World::new(setup).traced(trace).run();
    let stale = outcomes.ending.reports.values().map(|report| report.stale).sum();
    let began = outcomes.ending.began.unwrap_or(outcomes.began);
    let duration = outcomes.ended.since(began);
    let network = outcomes.network;
    Ok(Simulated {
        facts: RunFacts {
            forced: outcomes.forced || outcomes.ending.forced,
            duration: if duration.is_zero() { Duration::from_nanos(1) } else { duration },
            cpu: outcomes.cpu,
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
    })
}

fn to_file(path: &Path) -> Result<Trace, String> {
    let file = File::create(path).map_err(|error| format!("cannot write the trace {}: {error}", path.display()))?;
    Ok(Trace::Text(Box::new(BufWriter::new(file))))
}

/// The whole of a text file.
fn read_text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
