//! Partitions and faults drawn from seeds.

use std::panic;

use simulator::swarm::{Plan, shrink};
use simulator::world::Trace;

use crate::cli::{Exit, SimArgs};

/// Runs drawn partitions, or one of them again.
pub(super) fn swarm(args: &SimArgs) -> Exit {
    let first = args.seed.unwrap_or(0);
    // The verdict tells; components that panic would say it again for each try.
    panic::set_hook(Box::new(|_| {}));
    match args.swarm {
        Some(count) => many(first, count),
        None => one(first, args),
    }
}

fn many(first: u64, count: u64) -> Exit {
    for seed in first..first.saturating_add(count) {
        let plan = Plan::of_seed(seed);
        if let Some(failure) = plan.verdict() {
            println(&format!("seed {seed}: {failure}\n{plan:#?}"));
            show_least(&plan);
            println(&format!("again, with every message: weir sim --seed {seed} --trace FILE"));
            return Exit::Aborted;
        }
    }
    println(&format!("{count} seeds from {first}: nothing lost, nothing doubled, everything home"));
    Exit::Well
}

fn one(seed: u64, args: &SimArgs) -> Exit {
    let plan = Plan::of_seed(seed);
    println(&format!("{plan:#?}"));
    plan.applications().iter().for_each(|app| println(&format!("{:>4} {}", app.node.0, app.name)));
    let trace = match args.trace.as_deref().map(super::to_file).transpose() {
        Ok(trace) => trace.unwrap_or(Trace::None),
        Err(message) => {
            crate::complain(&format!("weir sim: {message}"));
            return Exit::NotStarted;
        }
    };
    match plan.verdict_traced(trace) {
        None => {
            println(&format!("seed {seed}: nothing lost, nothing doubled, everything home"));
            Exit::Well
        }
        Some(failure) => {
            println(&format!("seed {seed}: {failure}"));
            show_least(&plan);
            Exit::Aborted
        }
    }
}

fn show_least(plan: &Plan) {
    let least = shrink(plan, |plan| plan.verdict().is_some());
    println(&format!("the least that fails: {}\n{least:#?}", least.verdict().unwrap_or_default()));
}

fn println(line: &str) {
    let _ = crate::commands::on_standard_streams(|out, _| {
        writeln!(out, "{line}")?;
        Ok(Exit::Well)
    });
}
