//! `weir study atm1997`: event building over ATM, figures 2, 4, 5 and 6 of ATM1997, simulated.

mod given;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use plotters::chart::SeriesLabelPosition;
use simulator::atm::occupancy::Observation;
use simulator::atm::scenario::{Point, Scenario};

use super::error::StudyError;
use super::plot::{Axis, Curve, Look, Plot, Scale};
use super::results;
use crate::arguments::StudyArgs;
use partition::human::si;

/// Simulates the figures.
pub(super) fn study(args: &StudyArgs) -> Result<(), StudyError> {
    let scenario = scenario(args)?;
    results::prepare(args)?;
    let figures = Figures::new(&scenario);
    let plots = [sizes(&scenario), push(&figures), tails(&scenario, &figures), pull(&figures)];
    results::write(args, "atm1997", &report(&scenario, &figures), &plots)
}

fn scenario(args: &StudyArgs) -> Result<Scenario, StudyError> {
    let path = args.config.clone().unwrap_or_else(|| PathBuf::from("scenarios/atm1997.toml"));
    let bad = |cause: String| StudyError::Scenario { path: path.clone(), cause };
    let text = match &args.config {
        None => SCENARIO.to_owned(),
        Some(path) => fs::read_to_string(path).map_err(|error| bad(error.to_string()))?,
    };
    let scenario: Scenario = toml::from_str(&text).map_err(|error| bad(error.to_string()))?;
    scenario.check().map_err(|error| bad(error.to_string()))?;
    Ok(scenario)
}

struct Figures {
    example: Observation,
    push: Vec<Point>,
    tails: Vec<Observation>,
    pull: Vec<Point>,
}

impl Figures {
    /// Simulates on two processors.
    fn new(scenario: &Scenario) -> Self {
        std::thread::scope(|scope| {
            let demonstrators = scope.spawn(|| {
                terminal::complain("figure 2: the example; figures 4 and 6");
                (scenario.sizing.example.observe(), scenario.push.points(), scenario.pull.points())
            });
            let observe = |case| {
                let observation = scenario.occupancy.observe(case);
                terminal::complain(&format!("figure 5: {}, {} cells", case.name, observation.offered));
                observation
            };
            let tails = scenario.occupancy.case.iter().map(observe).collect();
            let (example, push, pull) = demonstrators.join().expect("a simulation ends");
            Self { example, push, tails, pull }
        })
    }
}

/// All tables, in Markdown.
fn report(scenario: &Scenario, figures: &Figures) -> String {
    let mut text = String::new();
    write_report(&mut text, scenario, figures).expect("a string takes all");
    text
}

fn write_report(text: &mut String, scenario: &Scenario, figures: &Figures) -> std::fmt::Result {
    writeln!(text, "# Event building over ATM\n")?;
    writeln!(text, "Simulated, cell by cell; `scenarios/atm1997.toml` has the constants and where they come from.\n")?;
    write_sizes(text, scenario, figures)?;
    writeln!(text, "\n## Figure 4: push, {0} x {0}\n", scenario.push.ports)?;
    write_points(text, &figures.push)?;
    write_tails(text, scenario, figures)?;
    writeln!(text, "\n## Figure 6: pull, {} sources and 1 destination\n", scenario.pull.sources)?;
    write_points(text, &figures.pull)?;
    results::write_given(text, "ATM1997", &given::numbers(scenario, figures), &given::DIFFERENCES)
}

fn write_sizes(text: &mut String, scenario: &Scenario, figures: &Figures) -> std::fmt::Result {
    let sizing = &scenario.sizing;
    writeln!(text, "## Figure 2: ports of an event builder, k = {}\n", sizing.load)?;
    let rates: Vec<String> = sizing.trigger_hz.iter().map(|rate| si(*rate, "Hz")).collect();
    writeln!(text, "| event size | {} |\n|---:|{}", rates.join(" | "), "---:|".repeat(rates.len()))?;
    let curves: Vec<_> = sizing.trigger_hz.iter().map(|rate| sizing.curve(*rate)).collect();
    for (place, event_bytes) in sizing.event_bytes.iter().enumerate() {
        let ports: Vec<String> = curves.iter().map(|curve| format!("{:.1}", curve[place].1)).collect();
        writeln!(text, "| {} | {} |", si(*event_bytes, "B"), ports.join(" | "))?;
    }
    let largest: Vec<String> = sizing.trigger_hz.iter().map(|rate| si(sizing.link_bytes_per_s / rate, "B")).collect();
    writeln!(text, "| largest fragment, k = 1 | {} |", largest.join(" | "))?;
    let (example, seen) = (&sizing.example, &figures.example);
    let per_source = seen.backlog as f64 / f64::from(example.ports);
    writeln!(
        text,
        "\n{} x {} at {} with events of {}, simulated: {} cells sent, {} lost. There were at most {} cells in a buffer of \
         {}; {:.0} cells wait in a source.",
        example.ports,
        example.ports,
        si(example.trigger_hz, "Hz"),
        si(example.event_bytes, "B"),
        seen.offered,
        seen.dropped,
        seen.by_stage.iter().map(simulator::atm::Tail::max).max().unwrap_or(0),
        example.buffer_cells,
        per_source,
    )
}

fn write_points(text: &mut String, points: &[Point]) -> std::fmt::Result {
    writeln!(
        text,
        "| fragment | events | throughput | k | slots used | buffer at most |\n|---:|---:|---:|---:|---:|---:|"
    )?;
    for point in points {
        writeln!(
            text,
            "| {} B | {:.2} kHz | {:.1} MB/s | {:.3} | {:.3} | {} cells |",
            point.fragment_bytes,
            point.built_hz / 1e3,
            point.bytes_per_s / 1e6,
            point.load,
            point.slots_used,
            point.buffer_cells_max
        )?;
    }
    Ok(())
}

fn write_tails(text: &mut String, scenario: &Scenario, figures: &Figures) -> std::fmt::Result {
    let occupancy = &scenario.occupancy;
    writeln!(text, "\n## Figure 5: cells in the buffer of an element, {0} x {0}\n", occupancy.ports)?;
    writeln!(
        text,
        "In the stage whose buffers fill most: the mean, and what is exceeded with a probability of …; that of more than {} \
         cells.\n",
        occupancy.buffer_cells
    )?;
    writeln!(
        text,
        "| traffic | cells | mean | 10⁻¹ | 10⁻² | 10⁻³ | 10⁻⁴ | 10⁻⁵ | 10⁻⁶ | > {} |",
        occupancy.buffer_cells
    )?;
    writeln!(text, "|---|{}", "---:|".repeat(9))?;
    for (case, seen) in occupancy.case.iter().zip(&figures.tails) {
        let tail = seen.fullest();
        let quantiles: Vec<String> = (1..=6).map(|power| tail.quantile(10_f64.powi(-power)).to_string()).collect();
        let above = match tail.above(occupancy.buffer_cells.into()) {
            0.0 => "0".to_owned(),
            above => format!("{above:.1e}"),
        };
        let cells = si(seen.offered as f64, "").replace(' ', "\u{a0}");
        writeln!(text, "| {} | {cells} | {:.1} | {} | {above} |", case.name, tail.mean(), quantiles.join(" | "))?;
    }
    Ok(())
}

fn sizes(scenario: &Scenario) -> Plot {
    let sizing = &scenario.sizing;
    let curve = |rate: &f64| Curve {
        name: format!("{} ({})", si(*rate, "Hz"), si(sizing.link_bytes_per_s / rate, "B")),
        points: sizing.curve(*rate),
        look: Look::Line,
    };
    Plot {
        title: "Fig. 2: size of the event builder, k = 0.6",
        x: Axis { label: "event size", scale: Scale::Logarithmic, low: 1e4, high: 1e8, number: |x| si(x, "B") },
        y: Axis { label: "ports", scale: Scale::Logarithmic, low: 1.0, high: 1e4, number: |y| format!("{y:.0}") },
        curves: sizing.trigger_hz.iter().map(curve).collect(),
        names: SeriesLabelPosition::LowerRight,
    }
}

fn push(figures: &Figures) -> Plot {
    Plot {
        title: "Fig. 4: push, 8 x 8",
        x: FRAGMENTS,
        y: Axis { high: 150.0, ..THROUGHPUT },
        curves: curves(&figures.push, 1e3, "kHz"),
        names: SeriesLabelPosition::MiddleRight,
    }
}

fn pull(figures: &Figures) -> Plot {
    Plot {
        title: "Fig. 6: pull, 6 sources and 1 destination",
        x: FRAGMENTS,
        y: Axis { high: 20.0, ..THROUGHPUT },
        curves: curves(&figures.pull, 1e3, "kHz"),
        names: SeriesLabelPosition::MiddleRight,
    }
}

fn curves(points: &[Point], unit_hz: f64, unit: &str) -> Vec<Curve> {
    let curve = |name: String, value: &dyn Fn(&Point) -> f64| Curve {
        name,
        points: points.iter().map(|point| (f64::from(point.fragment_bytes), value(point))).collect(),
        look: Look::Marked,
    };
    vec![
        curve("throughput [MB/s]".to_owned(), &|point| point.bytes_per_s / 1e6),
        curve(format!("events [{unit}]"), &|point| point.built_hz / unit_hz),
    ]
}

fn tails(scenario: &Scenario, figures: &Figures) -> Plot {
    let curve = |(case, seen): (&simulator::atm::scenario::Case, &Observation)| {
        let tail = seen.fullest();
        let points = (0_u32..=SHOWN_CELLS).map(|cells| (f64::from(cells), tail.above(cells as usize))).collect();
        Curve { name: case.name.clone(), points, look: Look::Line }
    };
    Plot {
        title: "Fig. 5: occupancy of a buffer, 256 x 256",
        x: Axis {
            label: "cells",
            scale: Scale::Linear,
            low: 0.0,
            high: f64::from(SHOWN_CELLS),
            number: |x| format!("{x:.0}"),
        },
        y: Axis {
            label: "probability of more",
            scale: Scale::Logarithmic,
            low: 1e-7,
            high: 1.0,
            number: |y| format!("{y:.0e}"),
        },
        curves: scenario.occupancy.case.iter().zip(&figures.tails).map(curve).collect(),
        names: SeriesLabelPosition::UpperRight,
    }
}

const SCENARIO: &str = include_str!("../../../../../scenarios/atm1997.toml");
const SHOWN_CELLS: u32 = 320;
const FRAGMENTS: Axis =
    Axis { label: "fragment [B]", scale: Scale::Linear, low: 0.0, high: 2100.0, number: |x| format!("{x:.0}") };
const THROUGHPUT: Axis = Axis { label: "", scale: Scale::Linear, low: 0.0, high: 0.0, number: |y| format!("{y:.0}") };
