//! `weir study eb2007`: one third of the ATLAS event builder, figures 2 to 6 of EB2007, simulated.

mod given;
mod sweep;

use std::fmt::Write;
use std::path::PathBuf;

use plotters::chart::SeriesLabelPosition;

use super::error::StudyError;
use super::plot::{Axis, Curve, Look, Plot, Scale};
use super::results;
use crate::arguments::StudyArgs;
use sweep::{Point, Scenario, Sweep};

/// Simulates the figures.
pub(super) fn study(args: &StudyArgs) -> Result<(), StudyError> {
    let scenario = Scenario::open(args.config.as_ref())?;
    results::prepare(args)?;
    let figures = Figures::new(&scenario)?;
    let text = report(&scenario, &figures);
    let plots = [rates(&figures), bandwidths(&figures), scaling(&figures), filter(&figures), small(&figures)];
    results::write(args, "eb2007", &text, &plots)
}

/// What was simulated: by request credits, fixed and adaptive, by event builders, by event-filter nodes. Also by
/// builders with small events, and by more builders than the paper had.
struct Figures {
    credits: Vec<Sweep>,
    adaptive: Sweep,
    builders: Vec<Sweep>,
    filter: Sweep,
    small: Sweep,
    more: Sweep,
}

impl Figures {
    fn new(scenario: &Scenario) -> Result<Self, StudyError> {
        let mut sweeps = Vec::new();
        let by_credits = |name: String, event_kib| {
            let lasts = if event_kib == FULL_KIB { settling_ms_full } else { settling_ms };
            Sweep::new(name, event_kib, &CREDITS, credits).lasting(lasts)
        };
        for event_kib in EVENTS_KIB {
            sweeps.push(by_credits(format!("{event_kib} kB, UDP"), event_kib));
        }
        sweeps.push(by_credits(format!("{FULL_KIB} kB, TCP"), FULL_KIB).by_tcp());
        sweeps.push(Sweep::new("UDP".to_owned(), FULL_KIB, &BUILDERS, builders));
        sweeps.push(Sweep::new("TCP".to_owned(), FULL_KIB, &BUILDERS, builders).by_tcp());
        let filter = Sweep::new("one event builder".to_owned(), FULL_KIB, &FILTER_NODES, filter_nodes);
        sweeps.push(filter.lasting(|_| 4_000));
        let small = Sweep::new(format!("{SMALL_KIB} kB, UDP"), SMALL_KIB, &BUILDERS, builders);
        sweeps.push(small.lasting(|_| 100));
        let adaptive = Sweep::new("adaptive".to_owned(), FULL_KIB, &CREDITS, adaptive_credits);
        sweeps.push(adaptive.lasting(settling_ms_full));
        sweeps.push(Sweep::new("UDP".to_owned(), FULL_KIB, &MORE_BUILDERS, builders));
        sweep::run(scenario, &mut sweeps)?;
        let more = sweeps.pop().expect("seven figures");
        let adaptive = sweeps.pop().expect("six figures");
        let small = sweeps.pop().expect("five figures");
        let filter = sweeps.pop().expect("five figures");
        let builders = sweeps.split_off(EVENTS_KIB.len() + 1);
        Ok(Self { credits: sweeps, adaptive, builders, filter, small, more })
    }
}

fn credits(credits: u32) -> Vec<String> {
    vec![format!("sfi.outstanding_requests={credits}")]
}

fn adaptive_credits(most: u32) -> Vec<String> {
    [credits(most), vec!["sfi.credits=\"adaptive\"".to_owned()]].concat()
}

/// With many requests out it takes longer until event builders are out of step, and at the end until all are done.
fn settling_ms(credits: u32) -> u32 {
    if credits < 60 { 150 } else { 500 }
}

/// By TCP, after losses at the beginning, most of a second.
fn settling_ms_full(credits: u32) -> u32 {
    if credits < 60 { 150 } else { 2_000 }
}

fn builders(builders: u32) -> Vec<String> {
    vec![format!("sfi.count={builders}")]
}

fn filter_nodes(nodes: u32) -> Vec<String> {
    let mut keys = builders(1);
    if nodes > 0 {
        keys.push(format!("ef.count={nodes}"));
    }
    keys
}

/// All tables, in Markdown.
fn report(scenario: &Scenario, figures: &Figures) -> String {
    let mut text = String::new();
    write_report(&mut text, scenario, figures).expect("a string takes all");
    text
}

fn write_report(text: &mut String, scenario: &Scenario, figures: &Figures) -> std::fmt::Result {
    writeln!(text, "# One third of the ATLAS event builder\n")?;
    writeln!(
        text,
        "Simulated with the components that run live; `{}` has the constants and where they come from.",
        scenario.name()
    )?;
    writeln!(text, "\n## Figure 2: rate of {BUILDERS_MAX} event builders, by outstanding requests of each\n")?;
    table(text, "requests", &figures.credits, |point| format!("{:.2} kHz", point.built_hz / 1e3))?;
    writeln!(text, "\n## Figure 3: bandwidth of {BUILDERS_MAX} event builders, by outstanding requests of each\n")?;
    table(text, "requests", &figures.credits, |point| format!("{:.2} GB/s", point.mib_per_s() / 1e3))?;
    writeln!(text, "\nEvents of {FULL_KIB} kB, time-outs per event:\n")?;
    let full = &figures.credits[EVENTS_KIB.len() - 1..];
    table(text, "requests", full, |point| format!("{:.2}", point.reasks_per_event))?;
    writeln!(text, "\n## Figure 4: scaling with event builders, {FULL_KIB} kB\n")?;
    table(text, "builders", &figures.builders, in_hz)?;
    writeln!(text, "\n## Figure 5: one event builder that is read out by an event filter\n")?;
    let filter = std::slice::from_ref(&figures.filter);
    table(text, "nodes", filter, in_hz)?;
    writeln!(text, "\n## Figure 6: events of {SMALL_KIB} kB\n")?;
    let small = std::slice::from_ref(&figures.small);
    table(text, "builders", small, in_khz)?;
    writeln!(text, "\n## §IV-D: more event builders, {FULL_KIB} kB\n")?;
    let more = std::slice::from_ref(&figures.more);
    table(text, "builders", more, in_khz)?;
    write_adaptive(text, &figures.credits[EVENTS_KIB.len() - 1], &figures.adaptive)?;
    results::write_given(text, "EB2007", &given::numbers(figures), &given::DIFFERENCES)
}

fn in_hz(point: &Point) -> String {
    format!("{:.1} Hz, {:.1} MB/s", point.built_hz, point.mib_per_s())
}

fn in_khz(point: &Point) -> String {
    format!("{:.2} kHz, {:.0} MB/s", point.built_hz / 1e3, point.mib_per_s())
}

/// What the paper did not have.
fn write_adaptive(text: &mut String, fixed: &Sweep, adaptive: &Sweep) -> std::fmt::Result {
    writeln!(text, "\n## Beyond the paper: credits that adapt, {FULL_KIB} kB by UDP\n")?;
    writeln!(text, "| most requests | fixed | time-outs per event | adaptive | time-outs per event |")?;
    writeln!(text, "|---:|---:|---:|---:|---:|")?;
    for (fixed, adaptive) in fixed.points.iter().zip(&adaptive.points) {
        let cells = |point: &Point| format!("{:.2} GB/s | {:.2}", point.mib_per_s() / 1e3, point.reasks_per_event);
        writeln!(text, "| {} | {} | {} |", fixed.value, cells(fixed), cells(adaptive))?;
    }
    Ok(())
}

/// A row for each value, a column for each sweep.
fn table(text: &mut String, value: &str, sweeps: &[Sweep], cell: impl Fn(&Point) -> String) -> std::fmt::Result {
    let names: Vec<&str> = sweeps.iter().map(|sweep| &*sweep.name).collect();
    writeln!(text, "| {value} | {} |\n|---:|{}", names.join(" | "), "---:|".repeat(names.len()))?;
    for row in 0..sweeps[0].points.len() {
        let cells: Vec<String> = sweeps.iter().map(|sweep| cell(&sweep.points[row])).collect();
        writeln!(text, "| {} | {} |", sweeps[0].points[row].value, cells.join(" | "))?;
    }
    Ok(())
}

fn rates(figures: &Figures) -> Plot {
    Plot {
        title: "Fig. 2: rate, 29 event builders",
        x: REQUESTS,
        y: Axis { label: "events [kHz]", high: 18.0, ..FROM_0 },
        curves: figures.credits.iter().map(|sweep| curve(sweep, |point| point.built_hz / 1e3)).collect(),
        names: SeriesLabelPosition::MiddleRight,
    }
}

fn bandwidths(figures: &Figures) -> Plot {
    Plot {
        title: "Fig. 3: bandwidth, 29 event builders",
        x: REQUESTS,
        y: Axis { label: "[MB/s], 2²⁰ bytes", high: 4000.0, ..FROM_0 },
        curves: figures.credits.iter().map(|sweep| curve(sweep, Point::mib_per_s)).collect(),
        names: SeriesLabelPosition::LowerRight,
    }
}

fn scaling(figures: &Figures) -> Plot {
    Plot {
        title: "Fig. 4: scaling, events of 1505 kB",
        x: SFIS,
        y: Axis { label: "[MB/s], 2²⁰ bytes", high: 4000.0, ..FROM_0 },
        curves: figures.builders.iter().map(|sweep| curve(sweep, Point::mib_per_s)).collect(),
        names: SeriesLabelPosition::LowerRight,
    }
}

fn filter(figures: &Figures) -> Plot {
    Plot {
        title: "Fig. 5: one event builder with an event filter",
        x: Axis { label: "event-filter nodes", high: 21.0, ..FROM_0 },
        y: Axis { label: "[MB/s], 2²⁰ bytes", high: 130.0, ..FROM_0 },
        curves: vec![curve(&figures.filter, Point::mib_per_s)],
        names: SeriesLabelPosition::LowerRight,
    }
}

fn small(figures: &Figures) -> Plot {
    Plot {
        title: "Fig. 6: events of 54 kB",
        x: SFIS,
        y: Axis { label: "events [kHz]", high: 20.0, ..FROM_0 },
        curves: vec![curve(&figures.small, |point| point.built_hz / 1e3)],
        names: SeriesLabelPosition::LowerRight,
    }
}

fn curve(sweep: &Sweep, y: impl Fn(&Point) -> f64) -> Curve {
    let points = sweep.points.iter().map(|point| (f64::from(point.value), y(point))).collect();
    Curve { name: sweep.name.clone(), points, look: Look::Marked }
}

/// [EB2007 §IV-A].
const EVENTS_KIB: [u32; 4] = [210, 418, 834, FULL_KIB];
const FULL_KIB: u32 = 1505;
const CREDITS: [u32; 7] = [1, 2, 5, 10, 20, 40, 120];

/// [EB2007 §IV-B, §IV-C, §IV-D].
const BUILDERS: [u32; 7] = [1, 5, 10, 15, 20, 25, BUILDERS_MAX];
const BUILDERS_MAX: u32 = 29;
const MORE_BUILDERS: [u32; 4] = [35, 40, 45, 60];
const FILTER_NODES: [u32; 7] = [0, 1, 2, 5, 10, 15, 20];
const SMALL_KIB: u32 = 54;

const FROM_0: Axis =
    Axis { label: "", scale: Scale::Linear, low: 0.0, high: 1.0, number: |number| format!("{number:.0}") };
const REQUESTS: Axis = Axis { label: "outstanding requests of each event builder", high: 125.0, ..FROM_0 };
const SFIS: Axis = Axis { label: "event builders", high: 30.0, ..FROM_0 };

/// The scenario that is built in.
fn built_in() -> (PathBuf, &'static str) {
    (PathBuf::from("scenarios/eb2007-third.toml"), include_str!("../../../../../scenarios/eb2007-third.toml"))
}
