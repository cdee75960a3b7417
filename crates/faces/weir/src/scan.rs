//! `weir scan`: a run at each point of a scan, unattended.

mod interrupted;
mod plan;
mod prepare;
mod results;

use std::io::{self, Write};
use std::path::Path;

use catalogue::{Keeper, Quality, now};
use configuration::Partition;
use partition::human::{grouped, si};
use partition::machine::{Findings, judge};
use partition::summary::Summary;
use partition::{Outcome, Placement, Run, StartError, conduct};
use terminal::{Exit, complain};

use crate::cli::ScanArgs;
use crate::commands::operator;
use crate::progress::Progress;
use interrupted::Interrupted;
use plan::{Plan, Point};
use prepare::prepare;
use results::{NoResults, Results, Try, settings};

/// Takes the points of a scan, or lists them.
pub(crate) fn scan(args: &ScanArgs) -> Exit {
    let plan = match Plan::load(&args.scan) {
        Ok(plan) => plan,
        Err(error) => return ended(Exit::Wrong, &error.to_string()),
    };
    if let Err(wrong) = judge_all(&plan) {
        return ended(Exit::Wrong, &wrong);
    }
    if args.list {
        return list(&plan);
    }
    let path = args.results.clone().unwrap_or_else(|| args.scan.with_extension("results.jsonl"));
    let results = match Results::open(&path, args.resume, &plan) {
        Ok(results) => results,
        Err(error) => return ended(Exit::NotStarted, &error.to_string()),
    };
    // As long as the second value lives.
    let (interrupted, _interrupts) = match Interrupted::caught() {
        Ok(caught) => caught,
        Err(error) => return ended(Exit::NotStarted, &format!("signals cannot be caught: {error}")),
    };
    let before = plan.points.iter().filter(|point| results.has(point)).count();
    let scan = Scan { plan, name: args.scan.display().to_string(), interrupted };
    let mut taken = Vec::new();
    let written = scan.take(results, &mut taken);
    let exit = scan.told(&taken, before, &path);
    written.map_or_else(|error| ended(Exit::NotStarted, &error.to_string()), |()| exit)
}

fn ended(exit: Exit, message: &str) -> Exit {
    complain(&format!("weir: {message}"));
    exit
}

/// Judges the configuration of every point, so that nobody finds a wrong one in the middle of the night. Warnings are said once.
fn judge_all(plan: &Plan) -> Result<(), String> {
    let mut warned = Vec::new();
    for point in &plan.points {
        let at = |wrong: String| format!("point {} ({point}):\n{wrong}", point.number);
        let (partition, places) = load(plan, point).map_err(|error| at(error.to_string()))?;
        let Findings { errors, warnings } = judge(&partition, &places, plan.processes || !partition.host.is_empty());
        if !errors.is_empty() {
            return Err(at(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")));
        }
        for warning in warnings.iter().map(ToString::to_string) {
            if !warned.contains(&warning) {
                complain(&format!("warning: {warning}"));
                warned.push(warning);
            }
        }
        if partition.run.events.is_none() && partition.run.duration.is_none() && partition.run.size.is_none() {
            return Err(at(
                "expected a limit of each run: run.events, run.duration or run.size in `set`, or in the configuration"
                    .into(),
            ));
        }
        if partition.run.number.is_some() && plan.points.len() > 1 {
            return Err(at("run.number: expected none: each run of a scan has the next free number".into()));
        }
    }
    Ok(())
}

fn load(plan: &Plan, point: &Point) -> Result<(Partition, configuration::Places), configuration::ConfigurationError> {
    let overrides: Vec<String> = plan.set.iter().cloned().chain(point.overrides()).collect();
    Partition::load_with_places(&plan.configuration, &overrides)
}

fn list(plan: &Plan) -> Exit {
    let lines: String = plan.points.iter().map(|point| format!("{:>6}  {point}\n", point.number)).collect();
    match io::stdout().write_all(lines.as_bytes()) {
        Ok(()) => Exit::Well,
        Err(error) => ended(Exit::NotStarted, &error.to_string()),
    }
}

struct Scan {
    plan: Plan,
    name: String,
    interrupted: Interrupted,
}

impl Scan {
    /// Takes all points that have no good result yet; `taken` gets what came of the last try of each.
    fn take(&self, mut results: Results, taken: &mut Vec<Try>) -> Result<(), NoResults> {
        for point in &self.plan.points {
            if self.interrupted.any() {
                break;
            }
            if !results.has(point) {
                taken.push(self.take_point(point, &mut results)?);
            }
        }
        Ok(())
    }

    fn take_point(&self, point: &Point, results: &mut Results) -> Result<Try, NoResults> {
        let mut attempt = 1;
        loop {
            complain(&format!("point {} of {}: {point}", point.number, self.plan.points.len()));
            let taken = self.attempt(point, attempt);
            results.add(&taken)?;
            if taken.is_taken(self.plan.accept) || attempt == self.plan.tries || self.interrupted.any() {
                return Ok(taken);
            }
            let reason = taken.reason.as_deref().unwrap_or("its run was not good enough");
            complain(&format!("point {}: {reason}; it is tried again", point.number));
            attempt += 1;
        }
    }

    fn attempt(&self, point: &Point, attempt: u32) -> Try {
        let common = self.plan.common.clone();
        let taken = Try { point: point.number, attempt, settings: settings(point), common, ..Try::default() };
        match self.run(point) {
            Ok(outcome) => {
                let (summary, interrupted) = (outcome.summary(), outcome.interrupted);
                let reason = if interrupted { Some("interrupted before its limit".to_owned()) } else { why(&summary) };
                let quality = Some(Quality::of(&summary, outcome.ending.forced));
                Try { quality, reason, interrupted, summary: Some(summary), ..taken }
            }
            Err(reason) => Try { reason: Some(reason), ..taken },
        }
    }

    /// One run, with its place in the catalogue if there is one.
    fn run(&self, point: &Point) -> Result<Outcome, String> {
        prepare(&self.plan, point, &self.interrupted).map_err(|error| error.to_string())?;
        let (mut partition, _) = load(&self.plan, point).map_err(|error| error.to_string())?;
        let mut keeper = Keeper::of(&partition).map_err(|error| error.to_string())?;
        if let Some(keeper) = &mut keeper {
            let (operator, remark) = (operator(), format!("{}, point {}: {point}", self.name, point.number));
            keeper.begin(&mut partition.run, &operator, now()).map_err(|error| error.to_string())?;
            if let Err(error) = keeper.remark(&operator, &remark, now()) {
                complain(&format!("weir: the catalogue takes no remark: {error}"));
            }
        }
        let outcome = self.conduct(partition);
        if let Some(Err(error)) = keeper.map(|mut keeper| keeper.end(outcome.as_ref().ok(), now())) {
            complain(&format!("weir: the run is not in the catalogue: {error}"));
        }
        outcome.map_err(|error| error.to_string())
    }

    fn conduct(&self, partition: Partition) -> Result<Outcome, StartError> {
        let progress = Progress::of(&partition.run);
        let placement = if self.plan.processes { Placement::processes() } else { Placement::local() };
        let run = Run::new(partition).place(placement).observe(progress);
        self.interrupted.end(run.control());
        conduct(run)
    }

    /// Says what came of the scan.
    fn told(&self, taken: &[Try], before: usize, results: &Path) -> Exit {
        let is_good = |taken: &&Try| taken.is_taken(self.plan.accept);
        let good = taken.iter().filter(is_good).count() + before;
        let (all, failed) = (self.plan.points.len(), taken.len() + before - good);
        let untried = all - good - failed;
        let mut text = table(&self.plan, taken);
        text += &format!("{}: {good} of {all} points are taken", self.name);
        for (count, what) in [(failed, "failed"), (untried, "not tried")] {
            text += &(if count > 0 { format!(", {count} {what}") } else { String::new() });
        }
        text += &format!("; results: {}\n", results.display());
        // The results and the exit status still tell.
        let _ = io::stdout().write_all(text.as_bytes());
        match (self.interrupted.any(), good < all) {
            (true, true) => Exit::Aborted,
            (false, true) => Exit::Degraded,
            (_, false) => Exit::Well,
        }
    }
}

/// A line for each point that was tried, with the reason of one that failed.
fn table(plan: &Plan, taken: &[Try]) -> String {
    let mut text =
        format!("{:>6}  {:>9}  {:11}  {:>12}  {:>10}  settings\n", "point", "run", "quality", "recorded", "rate");
    for taken in taken {
        let summary = taken.summary.as_ref();
        let of_run = |value: fn(&Summary) -> String| summary.map_or_else(|| "-".to_owned(), value);
        text += &format!(
            "{:>6}  {:>9}  {:11}  {:>12}  {:>10}  {}\n",
            taken.point,
            of_run(|summary| summary.run_number.to_string()),
            taken.quality.map_or("-", Quality::name),
            of_run(|summary| grouped(summary.accounting.recorded)),
            of_run(|summary| si(summary.rates_hz.recorded, "Hz")),
            plan.points[taken.point - 1],
        );
        let failed = taken.reason.iter().filter(|_| !taken.is_taken(plan.accept));
        failed.for_each(|reason| text += &format!("        {reason}\n"));
    }
    text
}

/// Why a run is not good, in words.
fn why(summary: &Summary) -> Option<String> {
    let restarted = summary.restarts.iter().map(|restarted| format!("{} died and was started again", restarted.name));
    let died = summary.died.iter().map(|name| format!("{name} died"));
    let lost: Vec<String> = died.chain(restarted).collect();
    summary.reason.clone().or_else(|| (!lost.is_empty()).then(|| lost.join(", ")))
}
