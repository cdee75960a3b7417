//! `weir run`: a whole partition on this machine.

use std::path::Path;

use base::ids::Role;
use base::time::Time;
use configuration::{Checksum, FragmentCheck, Partition};
use dataflow::report::{Carried, CarrierKind, DatagramCounts};
use eformat::{ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, WORD_BYTES};

use crate::assembly::Assembly;
use crate::cli::{Exit, RunArgs};
use crate::conductor::{Conducted, Restart, Run, conduct};
use crate::machine::{Findings, judge};
use crate::progress::Progress;
use crate::summary::{Network, Restarted, RunFacts, Summary};
use crate::table::Table;

/// Runs a partition from its configuration to its account.
pub(crate) fn run(args: &RunArgs) -> Exit {
    let (mut partition, places) = match Partition::load_with_places(&args.config, &args.overrides.set) {
        Ok(loaded) => loaded,
        Err(error) => {
            crate::complain(&error.to_string());
            return Exit::Wrong;
        }
    };
    args.limits.apply(&mut partition);
    let Findings { errors, warnings } = judge(&partition, &places, args.processes);
    warnings.iter().for_each(|warning| crate::complain(&format!("warning: {warning}")));
    errors.iter().for_each(|error| crate::complain(&error.to_string()));
    if !errors.is_empty() {
        return Exit::Wrong;
    }
    if let Some(path) = args.summary.as_deref().filter(|path| !can_hold_a_file(path)) {
        crate::complain(&format!("weir: --summary {}: expected a file in a directory that exists", path.display()));
        return Exit::NotStarted;
    }
    if args.processes && partition.l2pu.as_ref().is_some_and(|l2pu| l2pu.phased) {
        crate::complain("weir: l2pu.phased is for units and builders in one process: run without --processes");
        return Exit::Wrong;
    }
    let limits = (partition.run.events, partition.run.duration.map(configuration::Interval::duration));
    let progress = Some(Progress::new(limits.0, limits.1));
    let in_children: fn(Role) -> bool = if args.processes { |_| true } else { |_| false };
    match conduct(Run { partition, in_children, progress, observer: None }) {
        Ok(conducted) => report(args, &conducted),
        Err(error) => {
            crate::complain(&format!("weir: {error}"));
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
        crate::complain(&format!("weir: {error}"));
    }
    summary.exit()
}

/// Whether a summary can be written there, so that a run is not made in vain.
pub(crate) fn can_hold_a_file(path: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    parent.is_dir() && !path.is_dir()
}

/// What the summary needs to know of a run.
pub(crate) fn facts(conducted: &Conducted) -> RunFacts {
    let network = conducted.network;
    let since = |at: Time| at.since(conducted.began).as_secs_f64();
    let restarted = |restart: &Restart| Restarted {
        name: conducted.assembly.application(restart.node).map_or_else(String::new, |app| app.name.clone()),
        how: restart.how.clone(),
        at_s: since(restart.died),
        away_s: restart.back.map(|back| back.since(restart.died).as_secs_f64()),
    };
    RunFacts {
        restarts: conducted.restarts.iter().map(restarted).collect(),
        forced: conducted.ending.forced,
        duration: conducted.duration,
        starting: Some(conducted.starting),
        cpu: conducted.cpu,
        network: Network {
            messages: network.messages,
            bytes: network.bytes,
            stale: conducted.stale,
            malformed: network.malformed,
            carriers: (network.carried != [Carried::default(); CarrierKind::COUNT]).then(|| network.carried.into()),
            ports: network.ports.into_iter().take(conducted.assembly.partition.ros.ports.len()).collect(),
            datagrams: (network.datagrams != DatagramCounts::default()).then(|| network.datagrams.into()),
            data_sum: (conducted.assembly.partition.sfi.check == FragmentCheck::Data).then_some(network.data_sum),
        },
        ..facts_of(&conducted.assembly)
    }
}

/// Bytes around the data of a fragment.
pub(crate) fn fragment_overhead_bytes(partition: &Partition) -> usize {
    let checksum = if partition.ros.checksum == Checksum::Adler32 { WORD_BYTES } else { 0 };
    ROB_PREFIX_BYTES + ROB_SUFFIX_BYTES + checksum
}

/// What is known of a run before it begins.
pub(crate) fn facts_of(assembly: &Assembly) -> RunFacts {
    let partition = &assembly.partition;
    let chains = partition.menu.iter().flat_map(|menu| &menu.chain).map(|chain| chain.name.clone()).collect();
    RunFacts {
        run_number: partition.run.number(),
        tolerate: partition.run.tolerate,
        applications: assembly.applications.clone(),
        chains,
        has_tasks: partition.pt.is_some(),
        fragment_overhead_bytes: fragment_overhead_bytes(partition) as u64,
        ..RunFacts::default()
    }
}
