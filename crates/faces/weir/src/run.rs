//! `weir run`: a whole partition on this machine, for one run or several.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use catalogue::{CatalogueError, Keeper, now};
use configuration::{Partition, RosInput};
use partition::machine::{Findings, judge};
use partition::table::Table;
use partition::{Keeping, Left, NotKept, Outcome, Placement, Run, RunSettings, Running, Session, StartError, conduct};
use terminal::{Exit, Interrupts, can_hold_a_file, complain, print_table};

use crate::cli::RunArgs;
use crate::commands::operator;
use crate::loading::load;
use crate::progress::Progress;
use crate::succession;
use crate::tracing::{Tracing, options};

/// Runs a partition from its configuration to its account.
pub(crate) fn run(args: &RunArgs) -> Exit {
    let (mut partition, places) = match load(&args.config, &args.overrides, &args.playing) {
        Ok(loaded) => loaded,
        Err(error) => {
            complain(&error.to_string());
            return Exit::Wrong;
        }
    };
    args.limits.apply(&mut partition);
    let Findings { errors, warnings } = judge(&partition, &places, args.processes || !partition.host.is_empty());
    warnings.iter().for_each(|warning| complain(&format!("warning: {warning}")));
    errors.iter().for_each(|error| complain(&error.to_string()));
    if !errors.is_empty() {
        return Exit::Wrong;
    }
    let summary_file = args.summary.as_deref().filter(|path| !is_standard_output(path));
    if let Some(path) = summary_file.filter(|path| !can_hold_a_file(path)) {
        complain(&format!("weir: --summary {}: expected a file in a directory that exists", path.display()));
        return Exit::NotStarted;
    }
    if args.processes && partition.l2pu.as_ref().is_some_and(|l2pu| l2pu.phased) {
        complain("weir: l2pu.phased is for units and builders in one process: run without --processes");
        return Exit::Wrong;
    }
    if args.runs > 1 && partition.ros.input == RosInput::Replay {
        complain("weir: --runs: replayed files keep their run number, which one run alone can have: leave --runs out");
        return Exit::Wrong;
    }
    let progress = Progress::of(&partition.run);
    let placement = if args.processes { Placement::processes() } else { Placement::local() };
    let mut keeper = match Keeper::of(&partition) {
        Ok(keeper) => keeper,
        Err(error) => {
            complain(&format!("weir: {error}"));
            return Exit::NotStarted;
        }
    };
    let Succession { keeping, left } = match succession(&partition) {
        Ok(succession) => succession,
        Err(error) => {
            complain(&format!("weir: {error}"));
            return Exit::NotStarted;
        }
    };
    let is_alone = args.runs == 1 && left.is_none();
    if is_alone && let Err(exit) = reserve(keeper.as_mut(), &mut partition.run) {
        return exit;
    }
    let run = Run::new(partition).place(placement).give_children(options(&args.trace)).observe(progress);
    let run = if let Some(keeping) = keeping { run.keep(keeping) } else { run };
    let _tracing = match Tracing::start(&args.trace, "weir") {
        Ok(tracing) => tracing,
        Err(error) => {
            complain(&format!("weir: {error}"));
            return Exit::NotStarted;
        }
    };
    let caught = Interrupts::end(run.control());
    let _interrupts = match caught {
        Ok(interrupts) => interrupts,
        Err(error) => {
            complain(&format!("weir: signals cannot be caught: {error}"));
            return Exit::NotStarted;
        }
    };
    if !is_alone {
        return several(args, run, keeper, left);
    }
    let outcome = conduct(run);
    keep(keeper.as_mut(), &outcome);
    reported(args, outcome)
}

/// What this process keeps for the next life of run control, and what a former one has left.
#[derive(Default)]
struct Succession {
    keeping: Option<Keeping>,
    left: Option<Left>,
}

/// Where nothing can be kept, a run can be had all the same.
fn succession(partition: &Partition) -> Result<Succession, NotKept> {
    let service::Succession { keeping, left } = match succession::begin(partition, false) {
        Ok(None) => return Ok(Succession::default()),
        Ok(Some(succession)) => succession,
        Err(error @ NotKept::File { .. }) => {
            complain(&format!("warning: nobody can take over if run control dies: {error}"));
            return Ok(Succession::default());
        }
        Err(error) => return Err(error),
    };
    Ok(Succession { keeping: Some(keeping), left })
}

/// One run after the other in the same processes, until one did not begin, has lost an application for good, or was interrupted. The
/// worst of their ends. The first one is that which goes on, if a former life of run control has left one.
fn several(args: &RunArgs, run: Run, mut keeper: Option<Keeper>, left: Option<Left>) -> Exit {
    let (mut partition, mut going) = match begun(run, left, keeper.as_mut()) {
        Ok(begun) => begun,
        Err(error) => return reported(args, Err(error)),
    };
    let mut worst = Exit::Well;
    for index in 0..args.runs {
        let outcome = match going.take() {
            Some(running) => running
                .wait()
                .inspect(|outcome| remark_absences(keeper.as_mut(), outcome))
                .inspect_err(|error| interrupted(keeper.as_mut(), error)),
            None => {
                let mut settings = settings(&partition, index);
                if let Err(exit) = reserve(keeper.as_mut(), &mut settings) {
                    worst = worst.or_worse(exit);
                    break;
                }
                partition.start(settings).and_then(Running::wait)
            }
        };
        keep(keeper.as_mut(), &outcome);
        if index > 0 && matches!(outcome, Err(StartError::Interrupted)) {
            break;
        }
        let is_last = outcome.as_ref().map_or(true, |outcome| outcome.interrupted || is_broken(&partition, outcome));
        worst = worst.or_worse(reported(args, outcome));
        if is_last {
            break;
        }
    }
    match partition.shut_down() {
        Ok(()) => worst,
        Err(error) => worst.or_worse(reported(args, Err(error))),
    }
}

/// The applications, started or taken over, and the run that goes on already.
fn begun(
    run: Run,
    left: Option<Left>,
    mut keeper: Option<&mut Keeper>,
) -> Result<(Session, Option<Running>), StartError> {
    let Some(left) = left else { return run.boot().map(|session| (session, None)) };
    if !left.goes_on() {
        complain("weir: run control has died without a run: its agents start the applications");
        return run.take_agents_over(left).map(|session| (session, None));
    }
    let number = left.run_number();
    complain(&format!("weir: run {number} goes on without run control: its applications are called"));
    let resumed = keeper.as_mut().map_or(Ok(()), |keeper| keeper.resume(number));
    resumed.unwrap_or_else(|error| not_kept(&error));
    let taken = run.take_over(left).map(|(session, running)| (session, Some(running)));
    taken.inspect_err(|error| interrupted(keeper, error))
}

/// A run that was taken over stays in the catalogue, though nobody can say how it went.
fn interrupted(keeper: Option<&mut Keeper>, error: &StartError) {
    let kept = keeper.map_or(Ok(()), |keeper| keeper.interrupt(&format!("its run control has died: {error}"), now()));
    kept.unwrap_or_else(|error| not_kept(&error));
}

fn remark_absences(keeper: Option<&mut Keeper>, outcome: &Outcome) {
    let remarked = keeper.map_or(Ok(()), |keeper| keeper.remark_absences(&outcome.away));
    remarked.unwrap_or_else(|error| not_kept(&error));
}

fn not_kept(error: &CatalogueError) {
    complain(&format!("weir: the run is not in the catalogue: {error}"));
}

/// Gives the settings of a run its number in the catalogue.
fn reserve(keeper: Option<&mut Keeper>, settings: &mut RunSettings) -> Result<(), Exit> {
    let Some(keeper) = keeper else { return Ok(()) };
    keeper.begin(settings, &operator(), now()).map_err(|error| {
        complain(&format!("weir: {error}"));
        Exit::NotStarted
    })
}

fn keep(keeper: Option<&mut Keeper>, outcome: &Result<Outcome, StartError>) {
    let kept = keeper.map_or(Ok(()), |keeper| keeper.end(outcome.as_ref().ok(), now()));
    kept.unwrap_or_else(|error| not_kept(&error));
}

/// Whether the run has ended by a death behind which no other run can begin.
fn is_broken(partition: &Session, outcome: &Outcome) -> bool {
    !outcome.ending.dead.is_empty() && partition.is_at_fault()
}

/// The first run has the number that the configuration gives, the others the next free ones.
fn settings(partition: &Session, index: u32) -> RunSettings {
    let settings = partition.settings();
    RunSettings { number: settings.number.filter(|_| index == 0), ..settings }
}

fn reported(args: &RunArgs, outcome: Result<Outcome, StartError>) -> Exit {
    match outcome {
        Ok(outcome) => report(args, &outcome),
        Err(error) => {
            complain(&format!("weir: {error}"));
            Exit::NotStarted
        }
    }
}

fn report(args: &RunArgs, outcome: &Outcome) -> Exit {
    let (facts, summary) = (outcome.facts(), outcome.summary());
    let table = Table { facts: &facts, ending: &outcome.ending, summary: &summary };
    if args.summary.as_deref().is_some_and(is_standard_output) {
        complain(table.to_string().trim_end());
        // A reader that has left still gets the exit status.
        let _ = io::stdout().write_all(summary.to_json().as_bytes());
        return summary.state.into();
    }
    print_table(table);
    let path = args
        .summary
        .as_deref()
        .map(|path| if args.runs > 1 { numbered(path, summary.run_number) } else { path.into() });
    if let Some(path) = path
        && let Err(error) = summary.write_to(&path)
    {
        complain(&format!("weir: {error}"));
    }
    summary.state.into()
}

/// Whether a summary goes where users of `-` expect it.
fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// `summary.json` of run 7 is `summary.7.json`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    match path.extension() {
        Some(ending) => path.with_extension(format!("{number}.{}", ending.display())),
        None => path.with_extension(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_summary_of_its_own() {
        assert_eq!(numbered(Path::new("out/summary.json"), 7), Path::new("out/summary.7.json"));
        assert_eq!(numbered(Path::new("out/summary"), 7), Path::new("out/summary.7"));
    }
}
