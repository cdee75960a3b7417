//! `weir bench monitoring`: what pages that people have open cost a run.
//!
//! `weir serve` runs the event builder of `weir bench event-builder`, over TCP, at full rate, each application in a process. Stretches
//! of about a second with so many pages open alternate with stretches without any, in one run. Which comes first is drawn for each pair,
//! so that what else the machine does strikes both alike. Pages ask over HTTP what they ask in a browser, from this process: on a machine without
//! free cores what they cost here counts, too.
//!
//! Processor time does not depend on what else the machine does. Run control and agents do nothing but control and monitoring. What
//! applications take for it shows while the run is paused, when they have nothing else to do.

mod beats;
mod page;

use std::{fmt, thread};

use base::random::Random;
use configuration::Partition;
use driver::scratch::Scratch;
use serde::Serialize;
use serde_json::json;

use self::beats::{Beats, Stretch, Used};
use self::page::{Open, Pages};
use super::BenchError;
use super::event_builder;
use super::paired::{Comparison, Figures, RatioOf, median};
use super::served::Served;
use crate::bench::arguments::BenchArgs;

/// What was found.
#[derive(Serialize)]
pub(crate) struct Found {
    #[serde(flatten)]
    comparison: Comparison<Parameters>,
    /// What pages may take of the rate at most.
    aim_loss: f64,
    /// What they take of it.
    loss: Loss,
    /// The same by processor time: what pages and run control take more with them than without, of all processors. Where all are busy, the rate
    /// loses that. Applications hear nothing of pages.
    loss_by_cpu: Loss,
    /// In processors, while data are taken: with pages and without.
    running: [Used; 2],
    /// The same while the run is paused: control and monitoring alone.
    paused: [Used; 2],
    /// What pages have read, per second.
    pages_bytes_per_s: f64,
    /// How the run ended.
    state: String,
}

/// The median of pairs, and where the true one lies.
#[derive(Clone, Copy, Debug, Serialize)]
struct Loss {
    median: f64,
    #[serde(flatten)]
    place: Place,
}

/// Where a median lies, with a probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Place {
    between: [f64; 2],
    confidence: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    sources: u32,
    fragment_bytes: u32,
    pages: u32,
    pairs: u32,
    seconds: f64,
}

/// Measures in alternation with a run that nobody watches; each stretch takes a third of `--seconds`.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let folder = Scratch::new().map_err(|error| BenchError::System { what: "a temporary directory", error })?;
    let name = format!("bench-monitoring-{}", std::process::id());
    let building = event_builder::Parameters::new(args)?;
    let text = event_builder::configuration(&building);
    let mut partition = Partition::parse("event-builder bench", &format!("{text}\n{HOST}"), &[])?;
    partition.partition.name.clone_from(&name);
    let served = Served::start(folder.path(), &partition.to_toml(), &name)?;
    served.order("boot", &json!({}))?;
    served.order("start", &json!({ "duration": "100 h" }))?;
    let bytes_per_event = f64::from(args.fragment) * f64::from(args.sources);
    let (pairs, paused) = alternate(&served, args)?;
    let (last, _) = served.stop()?;
    served.order("shutdown", &json!({}))?;
    let figures = |of: fn(&[Stretch; 2]) -> Stretch| {
        let of_pair = move |pair: &[Stretch; 2]| of(pair).figures(bytes_per_event);
        pairs.iter().map(of_pair)
    };
    let runs: Vec<(Figures, Figures)> = figures(|[with, _]| *with).zip(figures(|[_, without]| *without)).collect();
    let cores = thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    let by_cpu = |[with, without]: &[Stretch; 2]| (with.used.control - without.used.control + with.used.pages) / cores;
    let &BenchArgs { sources, fragment: fragment_bytes, pages, pairs: count, seconds, .. } = args;
    let parameters = Parameters { sources, fragment_bytes, pages, pairs: count, seconds };
    Ok(Found {
        comparison: Comparison::of("monitoring", parameters, RatioOf::EventsPerS, &runs),
        aim_loss: AIM_LOSS,
        loss: Loss::of(runs.iter().map(|(with, without)| 1.0 - with.events_per_s / without.events_per_s)),
        loss_by_cpu: Loss::of(pairs.iter().map(by_cpu)),
        running: [0, 1].map(|side| Used::median(&pairs.iter().map(|pair| pair[side].used))),
        paused: paused.map(|stretch| stretch.used),
        pages_bytes_per_s: median(pairs.iter().map(|[with, _]| with.bytes_per_s)),
        state: last["state"].as_str().unwrap_or_default().to_owned(),
    })
}

/// Stretches with pages and without, in pairs, while data are taken, and one of each while they are not.
fn alternate(served: &Served, args: &BenchArgs) -> Result<(Vec<[Stretch; 2]>, [Stretch; 2]), BenchError> {
    let pages = Pages::new(served.control(), args.pages);
    let mut random = Random::new(std::process::id().into());
    let measured = thread::scope(|scope| {
        let mut beats = Beats::of(served, pages.bytes())?;
        let mut open: Option<Open> = None;
        let looks = ((args.seconds / 3.0).round() as usize).max(1);
        let mut stretch = |is_watched: bool, must_settle: bool, looks: usize| {
            let changes = is_watched != open.is_some();
            if changes {
                // Those that were open close.
                open = None;
                open = is_watched.then(|| pages.open(scope));
            }
            if changes || must_settle {
                beats.look()?;
            }
            beats.stretch(looks)
        };
        let mut pairs = Vec::new();
        for pair in 0..args.pairs {
            let watched_first = random.chance(0.5);
            let both = [stretch(watched_first, pair == 0, looks)?, stretch(!watched_first, false, looks)?];
            pairs.push(if watched_first { both } else { [both[1], both[0]] });
        }
        served.order("pause", &json!({}))?;
        let paused = [stretch(true, true, PAUSED_LOOKS)?, stretch(false, true, PAUSED_LOOKS)?];
        served.order("resume", &json!({}))?;
        drop(open);
        Ok::<_, BenchError>((pairs, paused))
    })?;
    pages.were_shown()?;
    Ok(measured)
}

impl Found {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        let Self { comparison, loss, loss_by_cpu, running: [with, without], paused: [paused, idle], .. } = self;
        format!(
            "{}\npages take of the rate: {loss}\nby processor time: {loss_by_cpu}\nprocessor time per second, with pages (without):\n  while data \
             are taken: run control {}, agents {}, pages {:.1} ms\n  paused: run control {}, agents {}, applications {}\npages read {:.0} kB/s",
            comparison.to_text_as(["watched", "alone"]),
            both_ms(with.control, without.control),
            both_ms(with.agents, without.agents),
            1e3 * with.pages,
            both_ms(paused.control, idle.control),
            both_ms(paused.agents, idle.agents),
            both_ms(paused.applications, idle.applications),
            self.pages_bytes_per_s / 1e3,
        )
    }
}

impl Loss {
    fn of(losses: impl Iterator<Item = f64>) -> Self {
        let losses: Vec<f64> = losses.collect();
        Self { median: median(losses.iter().copied()), place: where_median_lies(&losses) }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, place: Place { between: [low, high], confidence } } = self;
        let verdict = match () {
            () if *confidence < CONFIDENCE => "with too few pairs to say whether it is under",
            () if *high < AIM_LOSS => "under",
            () if *low > AIM_LOSS => "NOT under",
            () => "not told apart from",
        };
        let parts = [median, low, high, confidence, &AIM_LOSS];
        let [median, low, high, confidence, aim] = parts.map(|part| 1e2 * part);
        write!(f, "{median:.2} % ({low:.2} to {high:.2} % with {confidence:.0} % confidence), {verdict} {aim:.0} %")
    }
}

fn both_ms(with_s: f64, without_s: f64) -> String {
    format!("{:.1} ({:.1}) ms", 1e3 * with_s, 1e3 * without_s)
}

/// Between which of these values the median of what they are drawn from lies: the nearest ones that are sure enough, else the outermost.
fn where_median_lies(values: &[f64]) -> Place {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // That exactly so many of the values lie below the median has this probability, from none on.
    let mut exactly = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let (mut place, mut outside) = (0, 2.0 * exactly);
    while place + 1 < count / 2 {
        exactly *= (count - place) as f64 / (place + 1) as f64;
        if outside + 2.0 * exactly > 1.0 - CONFIDENCE {
            break;
        }
        outside += 2.0 * exactly;
        place += 1;
    }
    Place { between: [sorted[place], sorted[count - 1 - place]], confidence: 1.0 - outside }
}

/// Applications live below an agent, as on a farm.
const HOST: &str = "[[host]]\nname = \"here\"\n";
/// Pages take less of the rate than this.
const AIM_LOSS: f64 = 0.02;
/// How often the median has to lie where it is said to.
const CONFIDENCE: f64 = 0.95;
/// What little happens then takes a while to be seen.
const PAUSED_LOOKS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_between_values_in_the_middle() {
        let values: Vec<f64> = (1..=16).map(f64::from).collect();
        let lies = |values: &[f64]| {
            let Place { between, confidence } = where_median_lies(values);
            (between, (confidence * 1e4).round() / 1e4)
        };
        assert_eq!(lies(&values), ([4.0, 13.0], 0.9787));
        assert_eq!(lies(&values[..6]), ([1.0, 6.0], 0.9688));
        assert_eq!(lies(&values[..5]), ([1.0, 5.0], 0.9375), "too few");
        assert_eq!(lies(&[2.0, 1.0]), ([1.0, 2.0], 0.5));
        assert_eq!(lies(&[1.0]), ([1.0, 1.0], 0.0));
    }

    #[test]
    fn a_few_pairs_claim_nothing() {
        let said = |pairs| Loss::of((0..pairs).map(|_| 0.001)).to_string();
        assert_eq!(said(6), "0.10 % (0.10 to 0.10 % with 97 % confidence), under 2 %");
        let few = "0.10 % (0.10 to 0.10 % with 94 % confidence), with too few pairs to say whether it is under 2 %";
        assert_eq!(said(5), few);
    }
}
