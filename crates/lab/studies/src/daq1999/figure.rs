//! A figure of the paper: what it shows here, beside the numbers of the paper, and whether its conclusion holds.

use partition::human::time;
use plotters::chart::SeriesLabelPosition;

use super::times::Times;
use crate::plot::{Axis, Curve, Look, Plot, Scale};

pub(super) struct Figure {
    /// As the paper numbers it.
    pub(super) number: u32,
    /// What it is of, and what stands for that here.
    pub(super) about: &'static str,
    pub(super) plots: Vec<Plot>,
    pub(super) rows: Vec<Row>,
    pub(super) conclusion: Conclusion,
}

/// What was measured, beside what the paper gives for it.
pub(super) struct Row {
    pub(super) what: String,
    pub(super) given: String,
    /// Median, mean, 99.9 % and how many there are; of a single number the first cell alone.
    pub(super) here: [String; 4],
}

/// A conclusion of the paper, and what is so here.
pub(super) struct Conclusion {
    pub(super) of_the_paper: &'static str,
    /// None where the paper draws none.
    pub(super) holds: Option<bool>,
    pub(super) because: String,
}

/// One distribution of a figure.
pub(super) struct Distribution<'a> {
    pub(super) what: &'a str,
    /// Peaks or averages of the paper.
    pub(super) given_us: &'a [f64],
    pub(super) times: &'a Times,
}

impl Distribution<'_> {
    pub(super) fn row(&self) -> Row {
        let Self { what, given_us, times } = self;
        let [median, mean, tail] = [times.median(), times.mean(), times.at(0.999)].map(time_of);
        let here = [median, mean, tail, times.count().to_string()];
        Row { what: (*what).to_owned(), given: given(given_us), here }
    }
}

impl Row {
    /// A single number.
    pub(super) fn number(what: impl Into<String>, given: impl Into<String>, here: String) -> Self {
        let none = || "–".to_owned();
        Self { what: what.into(), given: given.into(), here: [here, none(), none(), none()] }
    }

    /// A single time.
    pub(super) fn time(what: impl Into<String>, given_us: &[f64], ns: f64) -> Self {
        Self::number(what, given(given_us), time_of(ns))
    }
}

/// What was measured, its aim, and whether it is met.
pub(super) fn aimed(what: &str, aim_ns: f64, ns: f64) -> String {
    let verdict = if ns <= aim_ns { "met" } else { "missed" };
    format!("{what} (aim: at most {}, {verdict})", time_of(aim_ns))
}

/// A time for people, with its sign if it is less than none.
pub(super) fn time_of(ns: f64) -> String {
    let sign = if ns < 0.0 { "−" } else { "" };
    if ns.abs() < SHOWN_NS { "0 ns".to_owned() } else { format!("{sign}{}", time(ns.abs() / 1e9)) }
}

/// What the paper gives, in words.
fn given(us: &[f64]) -> String {
    let words: Vec<String> = us.iter().map(|us| time(us / 1e6)).collect();
    if words.is_empty() { "–".to_owned() } else { words.join(", ") }
}

/// Distributions over the logarithm of time, with thin lines where the paper has its numbers.
pub(super) fn histogram(title: &'static str, distributions: &[Distribution<'_>]) -> Plot {
    let ground: Vec<Curve> = distributions.iter().map(|of| of.times.stairs(of.what.to_owned())).collect();
    let points = || ground.iter().flat_map(|curve| &curve.points);
    let high = points().map(|(_, part)| *part).fold(0.0, f64::max) * ROOM_ABOVE;
    let given = distributions.iter().flat_map(|of| of.given_us).copied();
    let us = || points().map(|(us, _)| *us).chain(given.clone());
    let (first, last) = (us().fold(f64::INFINITY, f64::min), us().fold(0.0, f64::max));
    let line = |us: f64| Curve {
        name: format!("paper {}", time(us / 1e6)),
        points: vec![(us, 0.0), (us, high)],
        look: Look::Beside,
    };
    let named = |(mut curve, of): (Curve, &Distribution<'_>)| {
        if !of.given_us.is_empty() {
            curve.name = format!("{}; paper {}", curve.name, self::given(of.given_us));
        }
        [curve].into_iter().chain(of.given_us.iter().map(|us| line(*us))).collect::<Vec<_>>()
    };
    Plot {
        title,
        x: Axis {
            label: "time",
            scale: Scale::Logarithmic,
            low: 10_f64.powf(first.log10().floor()),
            high: 10_f64.powf((last * ROOM_RIGHT).log10().ceil()),
            number: |us| time(us / 1e6),
        },
        y: part_axis(high),
        curves: ground.into_iter().zip(distributions).flat_map(named).collect(),
        names: SeriesLabelPosition::UpperRight,
    }
}

/// The axis of what part of all is in each bin.
pub(super) fn part_axis(high: f64) -> Axis {
    Axis { label: "part of all in each bin", scale: Scale::Linear, low: 0.0, high, number: |part| format!("{part:.2}") }
}

/// With two digits behind the point.
const SHOWN_NS: f64 = 0.005;
/// Above the stairs, for names.
const ROOM_ABOVE: f64 = 1.6;
const ROOM_RIGHT: f64 = 1.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aim_is_met_or_missed() {
        assert_eq!(aimed("stamp", 25.0, 25.0), "stamp (aim: at most 25 ns, met)");
        assert_eq!(aimed("stamp", 25.0, 26.0), "stamp (aim: at most 25 ns, missed)");
    }

    #[test]
    fn a_time_has_its_sign() {
        assert_eq!([-1500.0, -0.001, 0.0, 1500.0].map(time_of), ["−1.50 µs", "0 ns", "0 ns", "1.50 µs"]);
    }

    #[test]
    fn a_histogram_has_the_numbers_of_the_paper_in_the_same_plot() {
        let times = Times::of([900.0, 1000.0, 1100.0]).unwrap();
        let of = Distribution { what: "Poll", given_us: &[0.3, 20.0], times: &times };
        let plot = histogram("title", std::slice::from_ref(&of));
        let names: Vec<&str> = plot.curves.iter().map(|curve| &*curve.name).collect();
        assert_eq!(names, ["Poll; paper 300 ns, 20 µs", "paper 300 ns", "paper 20 µs"]);
        assert_eq!(plot.curves[2].points.iter().map(|(us, _)| *us).collect::<Vec<_>>(), [20.0, 20.0]);
        assert!(plot.x.low <= 0.3 && plot.x.high >= 20.0 && plot.y.high.is_finite());
        assert_eq!(of.row().here, ["1 µs", "1 µs", "1.10 µs", "3"]);
        assert_eq!(of.row().given, "300 ns, 20 µs");
    }
}
