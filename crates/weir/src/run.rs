//! `weir run`: a whole partition on this machine.

use configuration::Partition;
use dataflow::ids::Role;

use crate::cli::{Exit, RunArgs};
use crate::conductor::{Conducted, Run, conduct};
use crate::progress::Progress;
use crate::summary::{Network, RunFacts, Summary};
use crate::table::Table;

/// Runs a partition from its configuration to its account.
pub(crate) fn run(args: &RunArgs) -> Exit {
    let mut partition = match Partition::load(&args.config, &args.overrides.set) {
        Ok(partition) => partition,
        Err(error) => {
            eprintln!("{error}");
            return Exit::Wrong;
        }
    };
    args.limits.apply(&mut partition);
    let limits = (partition.run.events, partition.run.duration.map(configuration::Interval::duration));
    let progress = Some(Progress::new(limits.0, limits.1));
    let in_children: fn(Role) -> bool = if args.processes { |_| true } else { |_| false };
    match conduct(Run { partition, in_children, progress }) {
        Ok(conducted) => report(args, &conducted),
        Err(error) => {
            eprintln!("weir: {error}");
            Exit::NotStarted
        }
    }
}

fn report(args: &RunArgs, conducted: &Conducted) -> Exit {
    let facts = facts(conducted);
    let summary = Summary::new(&facts, &conducted.ending, &conducted.account);
    let table = Table { facts: &facts, ending: &conducted.ending, summary: &summary };
    // A reader that left misses the table; the summary and the exit status still tell.
    let _ = table.print();
    if let Some(path) = &args.summary
        && let Err(error) = summary.write_to(path)
    {
        eprintln!("weir: {error}");
        return Exit::NotStarted;
    }
    summary.exit()
}

/// What the summary needs to know of a run.
pub(crate) fn facts(conducted: &Conducted) -> RunFacts {
    let network = conducted.network;
    RunFacts {
        run_number: conducted.assembly.partition.run.number,
        applications: conducted.assembly.applications.clone(),
        forced: conducted.forced,
        duration: conducted.duration,
        cpu: conducted.cpu,
        network: Network {
            messages: network.messages,
            bytes: network.bytes,
            stale: conducted.stale,
            malformed: network.malformed,
        },
    }
}
