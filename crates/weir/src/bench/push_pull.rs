//! `weir bench push-pull`: eight sources and eight builders, building by requests and by pushing, from small fragments to
//! large ones, whose lengths vary by 30 % `[ATM1997 §IV]`.
//!
//! Every ROS and every SFI is a process of its own. Each mean is measured with one kind of building after the other, and
//! again, so that what else the machine does strikes all of them; the table says how far each is from the best. Where
//! data are pushed by number, level 1 tells every ROS of every event; in the others the DFM triggers itself.

use serde::Serialize;

use super::BenchError;
use super::crossing::{self, Crossing, Fragments};
use super::paired::Figures;
use crate::cli::{BenchArgs, BenchBuilding, BenchTransport};

/// What was found.
#[derive(Serialize)]
pub(crate) struct Found {
    bench: &'static str,
    parameters: Parameters,
    points: Vec<Point>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    transport: BenchTransport,
    sources: u32,
    builders: u32,
    events_held: u32,
    seconds: f64,
    runs: usize,
}

/// One size of fragments.
#[derive(Clone, Debug, Serialize)]
struct Point {
    /// Of the lengths of its fragments.
    mean_bytes: u32,
    buildings: Vec<Built>,
}

/// One kind of building.
#[derive(Clone, Copy, Debug, Serialize)]
struct Built {
    building: BenchBuilding,
    /// Medians of some runs.
    #[serde(flatten)]
    figures: Figures,
    /// Events per second by those of the best kind of building.
    of_best: f64,
}

/// Measures all sizes with the kinds of building that are asked for, or all that there are.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let kinds = args.building.map_or(BenchBuilding::ALL.to_vec(), |building| vec![building]);
    let (transport, seconds) = (BenchTransport::Tcp, args.seconds / 4.0);
    let parameters =
        Parameters { transport, sources: SIDE, builders: SIDE, events_held: EVENTS_HELD, seconds, runs: RUNS };
    let points = FRAGMENT_BYTES.map(|mean_bytes| point(&parameters, mean_bytes, &kinds));
    Ok(Found { bench: "push-pull", parameters, points: points.into_iter().collect::<Result<_, _>>()? })
}

fn point(parameters: &Parameters, mean_bytes: u32, kinds: &[BenchBuilding]) -> Result<Point, BenchError> {
    let mut runs = vec![Vec::new(); kinds.len()];
    for _ in 0..parameters.runs {
        for (runs, building) in runs.iter_mut().zip(kinds) {
            runs.push(run(parameters, Fragments::Gaussian(mean_bytes), *building)?);
        }
    }
    let figures: Vec<Figures> = runs.iter().map(|runs| Figures::median(runs.iter().copied())).collect();
    let best = figures.iter().map(|figures| figures.events_per_s).fold(0.0, f64::max);
    let built = |(&building, figures): (&BenchBuilding, Figures)| Built {
        building,
        figures,
        of_best: figures.events_per_s / best,
    };
    Ok(Point { mean_bytes, buildings: kinds.iter().zip(figures).map(built).collect() })
}

impl Found {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "{SIDE} sources, {SIDE} builders\nmean      building           events/s     GB/s  µs CPU/event  of the best"
        );
        for Point { mean_bytes, buildings } in &self.points {
            for Built { building, figures, of_best } in buildings {
                let Figures { events_per_s, bytes_per_s, cpu_us_per_event, .. } = figures;
                text += &format!(
                    "\n{mean_bytes:>6} B  {:<14} {events_per_s:>12.0} {:>8.3} {cpu_us_per_event:>13.2} {of_best:>12.2}",
                    building.name(),
                    bytes_per_s.unwrap_or(f64::NAN) / 1e9
                );
            }
        }
        text
    }
}

fn run(parameters: &Parameters, fragments: Fragments, building: BenchBuilding) -> Result<Figures, BenchError> {
    let &Parameters { transport, sources, builders, events_held, seconds, .. } = parameters;
    let (links, group) = (1, 1);
    let crossing = Crossing { sources, links, builders, fragments, transport, building, group, events_held, seconds };
    crossing::run(&crossing).map(|crossed| crossed.figures)
}

const SIDE: u32 = 8;
const FRAGMENT_BYTES: [u32; 6] = [48, 256, 1024, 4096, 16_384, 65_536];
const EVENTS_HELD: u32 = 16;
const RUNS: usize = 2;
