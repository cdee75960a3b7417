//! Partitions and faults drawn from seeds.

use std::panic;
use std::path::Path;

use simulator::world::Trace;
use swarm::Plan;

use crate::arguments::SimArgs;
use terminal::Exit;

/// Runs drawn partitions, or one of them again.
pub(super) fn swarm(args: &SimArgs) -> Exit {
    let first = args.seed.unwrap_or(0);
    // The verdict tells; components that panic would say it again for each try.
    panic::set_hook(Box::new(|_| {}));
    match args.swarm {
        Some(count) => many(first, count, args.level),
        None => one(first, args),
    }
}

fn many(first: u64, count: u64, level: Option<u32>) -> Exit {
    for seed in first..first.saturating_add(count) {
        let plan = drawn(seed, level);
        if let Some(failure) = plan.verdict() {
            println(&format!("seed {seed}: {failure}\n{plan:#?}"));
            show_configuration(&plan);
            show_least(&plan);
            let level = level.map_or_else(String::new, |level| format!(" --level {level}"));
            println(&format!("again, with every message: weir sim --seed {seed}{level} --trace FILE"));
            return Exit::Aborted;
        }
    }
    println(&format!("{count} seeds from {first}: nothing lost, nothing doubled, everything home"));
    Exit::Well
}

fn one(seed: u64, args: &SimArgs) -> Exit {
    let plan = drawn(seed, args.level);
    println(&format!("{plan:#?}"));
    show_configuration(&plan);
    plan.applications().iter().for_each(|app| println(&format!("{:>4} {}", app.node.0, app.name)));
    let trace = match args.trace.as_deref().map(super::to_file).transpose() {
        Ok(trace) => trace.unwrap_or(Trace::None),
        Err(message) => {
            terminal::complain(&format!("weir sim: {message}"));
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
            let least = show_least(&plan);
            if let (Some(least), Some(path)) = (least, &args.trace) {
                trace_least(&least, path);
            }
            Exit::Aborted
        }
    }
}

fn drawn(seed: u64, level: Option<u32>) -> Plan {
    level.map_or_else(|| Plan::of_seed(seed), |level| Plan::draw(seed, level))
}

/// What a user would write to have the components of the plan.
fn show_configuration(plan: &Plan) {
    if let Some(toml) = plan.to_toml() {
        println(&format!("its configuration:\n{toml}"));
    }
}

fn show_least(plan: &Plan) -> Option<Plan> {
    let (least, failure) = plan.least()?;
    println(&format!("the least that fails: {failure}\n{least:#?}"));
    least.applications().iter().for_each(|app| println(&format!("{:>4} {}", app.node.0, app.name)));
    Some(least)
}

/// Its messages go beside those of the whole.
fn trace_least(least: &Plan, path: &Path) {
    let beside = path.with_added_extension("least");
    if let Ok(trace) = super::to_file(&beside) {
        least.verdict_traced(trace);
        println(&format!("its messages: {}", beside.display()));
    }
}

fn println(line: &str) {
    let _ = terminal::on_standard_streams(|out, _| {
        writeln!(out, "{line}")?;
        Ok(Exit::Well)
    });
}
