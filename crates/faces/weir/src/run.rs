//! `weir run`: a whole partition on this machine.

use configuration::Partition;
use partition::machine::{Findings, judge};
use partition::table::Table;
use partition::{Outcome, Placement, Run, conduct};
use terminal::{Exit, Interrupts, can_hold_a_file, complain, print_table};

use crate::cli::RunArgs;
use crate::progress::Progress;

/// Runs a partition from its configuration to its account.
pub(crate) fn run(args: &RunArgs) -> Exit {
    let (mut partition, places) = match Partition::load_with_places(&args.config, &args.overrides.set) {
        Ok(loaded) => loaded,
        Err(error) => {
            complain(&error.to_string());
            return Exit::Wrong;
        }
    };
    args.limits.apply(&mut partition);
    let Findings { errors, warnings } = judge(&partition, &places, args.processes);
    warnings.iter().for_each(|warning| complain(&format!("warning: {warning}")));
    errors.iter().for_each(|error| complain(&error.to_string()));
    if !errors.is_empty() {
        return Exit::Wrong;
    }
    if let Some(path) = args.summary.as_deref().filter(|path| !can_hold_a_file(path)) {
        complain(&format!("weir: --summary {}: expected a file in a directory that exists", path.display()));
        return Exit::NotStarted;
    }
    if args.processes && partition.l2pu.as_ref().is_some_and(|l2pu| l2pu.phased) {
        complain("weir: l2pu.phased is for units and builders in one process: run without --processes");
        return Exit::Wrong;
    }
    let limits = (partition.run.events, partition.run.duration.map(configuration::Interval::duration));
    let placement = if args.processes { Placement::processes() } else { Placement::local() };
    let run = Run::new(partition).place(placement).observe(Progress::new(limits.0, limits.1));
    let caught = Interrupts::end(run.control());
    let conducted = caught.map_err(|error| format!("signals cannot be caught: {error}"));
    match conducted.and_then(|_interrupts| conduct(run).map_err(|error| error.to_string())) {
        Ok(outcome) => report(args, &outcome),
        Err(error) => {
            complain(&format!("weir: {error}"));
            Exit::NotStarted
        }
    }
}

fn report(args: &RunArgs, outcome: &Outcome) -> Exit {
    let (facts, summary) = (outcome.facts(), outcome.summary());
    print_table(Table { facts: &facts, ending: &outcome.ending, summary: &summary });
    if let Some(path) = &args.summary
        && let Err(error) = summary.write_to(path)
    {
        complain(&format!("weir: {error}"));
    }
    summary.state.into()
}
