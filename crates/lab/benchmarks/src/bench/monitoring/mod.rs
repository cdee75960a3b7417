//! `weir bench monitoring`: what pages that people have open cost a run.
//!
//! `weir serve` runs the event builder of `weir bench event-builder`, over TCP, at full rate, each application in a process. In
//! one stretch of the run so many pages are open, and in another one none; which comes first alternates. Pages ask over HTTP what
//! they ask in a browser, from this process: on a machine without free cores what they cost here counts, too.

mod page;

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use configuration::Partition;
use driver::scratch::Scratch;
use nix::sys::resource::UsageWho;
use partition::cpu::{cpu_seconds, cpu_seconds_of};
use serde::Serialize;
use serde_json::json;
use service::Unheard;
use transport::clock;

use self::page::{Pages, VIEWS};
use super::BenchError;
use super::event_builder;
use super::paired::{Comparison, Figures, RatioOf, median};
use super::served::{Served, pass};
use crate::bench::arguments::BenchArgs;

/// What was found.
#[derive(Serialize)]
pub(crate) struct Found {
    #[serde(flatten)]
    comparison: Comparison<Parameters>,
    /// What pages may take of the rate at most.
    aim_loss: f64,
    /// Of run control, in processors: with pages and without.
    control_cores: [f64; 2],
    /// Of all pages together, in processors.
    pages_cores: f64,
    /// What pages and run control take more with them than without, of all processors: where all are busy, the rate loses that.
    processor_share: f64,
    /// What they have read, per second.
    pages_bytes_per_s: f64,
    /// How the run ended.
    state: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    sources: u32,
    fragment_bytes: u32,
    pages: u32,
    pairs: u32,
    seconds: f64,
}

/// A part of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    figures: Figures,
    control_cores: f64,
    /// Of this process.
    pages_cores: f64,
    pages_bytes_per_s: f64,
}

/// Measures in alternation with a run that nobody watches; each stretch takes `--seconds`.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let folder = Scratch::new().map_err(|error| BenchError::System { what: "a temporary directory", error })?;
    let name = format!("bench-monitoring-{}", std::process::id());
    let building = event_builder::Parameters::new(args)?;
    let mut partition = Partition::parse("event-builder bench", &event_builder::configuration(&building), &[])?;
    partition.partition.name.clone_from(&name);
    let served = Served::start(folder.path(), &partition.to_toml(), &name)?;
    served.order("boot", &json!({}))?;
    served.order("start", &json!({ "duration": "100 h" }))?;
    pass(SETTLE);
    let (bytes_per_event, mut pairs) = (f64::from(args.fragment) * f64::from(args.sources), Vec::new());
    for pair in 0..args.pairs {
        let watched = |pages| watched(&served, pages, args.seconds, bytes_per_event);
        let both = if pair % 2 == 0 {
            let with = watched(args.pages)?;
            (with, watched(0)?)
        } else {
            let without = watched(0)?;
            (watched(args.pages)?, without)
        };
        pairs.push(both);
    }
    let (last, _) = served.stop()?;
    served.order("shutdown", &json!({}))?;
    let &BenchArgs { sources, fragment: fragment_bytes, pages, pairs: count, seconds, .. } = args;
    let parameters = Parameters { sources, fragment_bytes, pages, pairs: count, seconds };
    let runs: Vec<(Figures, Figures)> = pairs.iter().map(|(with, without)| (with.figures, without.figures)).collect();
    let more_cores =
        |(with, without): &(Stretch, Stretch)| with.control_cores - without.control_cores + with.pages_cores;
    let cores = thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    Ok(Found {
        comparison: Comparison::of("monitoring", parameters, RatioOf::EventsPerS, &runs),
        processor_share: median(pairs.iter().map(more_cores)) / cores,
        aim_loss: AIM_LOSS,
        control_cores: [
            median(pairs.iter().map(|(with, _)| with.control_cores)),
            median(pairs.iter().map(|(_, without)| without.control_cores)),
        ],
        pages_cores: median(pairs.iter().map(|(with, _)| with.pages_cores)),
        pages_bytes_per_s: median(pairs.iter().map(|(with, _)| with.pages_bytes_per_s)),
        state: last["state"].as_str().unwrap_or_default().to_owned(),
    })
}

impl Found {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        let Self { comparison, aim_loss, control_cores: [with, without], pages_cores, pages_bytes_per_s, .. } = self;
        let loss = 1.0 - comparison.compared().ratio();
        let verdict = if loss < *aim_loss { "under" } else { "NOT under" };
        format!(
            "{}\npages take {:.2} % of the rate, {verdict} {:.0} %, and {:.2} % of all processors; run control uses {with:.3} cores with \
             them, {without:.3} without; they use {pages_cores:.3} and read {:.0} kB/s",
            comparison.to_text_as(["watched", "alone"]),
            1e2 * loss,
            1e2 * aim_loss,
            1e2 * self.processor_share,
            pages_bytes_per_s / 1e3
        )
    }
}

/// A stretch with so many pages.
fn watched(served: &Served, pages: u32, seconds: f64, bytes_per_event: f64) -> Result<Stretch, BenchError> {
    let (are_open, bytes) = (AtomicBool::new(true), AtomicU64::new(0));
    let all = Pages { control: served.control(), are_open: &are_open, bytes: &bytes };
    thread::scope(|scope| {
        let views = VIEWS.into_iter().cycle().take(pages as usize);
        let open: Vec<_> = views
            .map(|view| {
                scope.spawn({
                    let all = &all;
                    move || all.show(view)
                })
            })
            .collect();
        pass(SETTLE);
        let stretch = stretch(served, &bytes, seconds, bytes_per_event);
        are_open.store(false, Ordering::Relaxed);
        let shown: Result<(), Unheard> =
            open.into_iter().try_for_each(|page| page.join().expect("a page does not panic"));
        shown?;
        stretch
    })
}

fn stretch(served: &Served, bytes: &AtomicU64, seconds: f64, bytes_per_event: f64) -> Result<Stretch, BenchError> {
    let look = || -> Result<[f64; 6], BenchError> {
        let (built, elapsed_s) = progress(served)?;
        let (control_s, own_s) = (served.cpu_s(), cpu_seconds(UsageWho::RUSAGE_SELF));
        let read = bytes.load(Ordering::Relaxed) as f64;
        Ok([built, elapsed_s, control_s + children_cpu_s(served.id()), control_s, own_s, read])
    };
    let (began, before) = (clock::now(), look()?);
    pass(Duration::from_secs_f64(seconds));
    let (mut after, mut wall_s) = (look()?, clock::now().since(began).as_secs_f64());
    // A status stays for a second.
    while after[1] <= before[1] {
        pass(LOOK_EVERY);
        (after, wall_s) = (look()?, clock::now().since(began).as_secs_f64());
    }
    let [events, run_s, all_s, control_s, own_s, read] = core::array::from_fn(|place| after[place] - before[place]);
    // The status is of some moment of the last second, processor times are of now.
    let events_by_wall = events / run_s * wall_s;
    let figures = Figures::of(events_by_wall, Some(bytes_per_event), wall_s, all_s);
    let [control_cores, pages_cores, pages_bytes_per_s] = [control_s, own_s, read].map(|count| count / wall_s);
    Ok(Stretch { figures, control_cores, pages_cores, pages_bytes_per_s })
}

/// Events built, and for how long the run went on by then.
fn progress(served: &Served) -> Result<(f64, f64), BenchError> {
    let run = served.status()?["run"].take();
    let found = run["built"].as_f64().zip(run["elapsed_s"].as_f64());
    found.ok_or_else(|| BenchError::NotServed("no run goes on any more".to_owned()))
}

/// Processor time of the applications, in seconds.
fn children_cpu_s(process: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let children = tasks.filter_map(|task: io::Result<_>| fs::read_to_string(task.ok()?.path().join("children")).ok());
    children
        .flat_map(|line| line.split_whitespace().filter_map(|id| cpu_seconds_of(id.parse().ok()?)).collect::<Vec<_>>())
        .sum()
}

/// Pages take less of the rate than this.
const AIM_LOSS: f64 = 0.02;
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Until a page that is opened or closed has done so.
const SETTLE: Duration = Duration::from_secs(1);
