//! Sequence diagrams: who does what when.

use partition::human::time;
use plotters::chart::SeriesLabelPosition;
use stamps::spans::Span;

use super::activity::{Activity, Lane};
use crate::plot::{Axis, Curve, Look, Plot, Scale};

/// Who does what in a stretch of time, from its beginning on; what the paper gives for it stands below.
pub(super) fn sequence(
    [title, below]: [&'static str; 2],
    lanes: &[Lane],
    label: fn(f64) -> String,
    activity: &Activity,
    (from_ns, to_ns): (u64, u64),
) -> Plot {
    let length_us = (to_ns - from_ns) as f64 / 1e3;
    let us = |ns: u64| (ns.clamp(from_ns, to_ns) - from_ns) as f64 / 1e3;
    let curve = |(place, lane): (usize, &Lane)| {
        let spans = activity.of_lane(lane).filter(|span| span.from_ns < to_ns && from_ns < span.to_ns);
        let bar = |span: &Span| {
            let (from, to) = (us(span.from_ns), us(span.to_ns));
            // What is too short to be seen is widened.
            [(from, place as f64), (to.max(from + SEEN * length_us).min(length_us), place as f64)]
        };
        Curve { name: lane.label.to_owned(), points: spans.flat_map(bar).collect(), look: Look::Bars }
    };
    Plot {
        title,
        x: Axis { label: below, scale: Scale::Linear, low: 0.0, high: length_us, number: |us| time(us / 1e6) },
        y: Axis { label: "", scale: Scale::Lanes, low: -0.5, high: lanes.len() as f64 - 0.5, number: label },
        curves: lanes.iter().enumerate().map(curve).collect(),
        names: SeriesLabelPosition::UpperRight,
    }
}

/// The label of a lane, at its whole number.
pub(super) fn label_of(lanes: &[Lane], place: f64) -> String {
    let is_lane = (place - place.round()).abs() < 1e-9 && place >= -0.1;
    let lane = lanes.get(place.round() as usize).filter(|_| is_lane);
    lane.map(|lane| lane.label.to_owned()).unwrap_or_default()
}

/// Of the whole, the least width of a bar.
const SEEN: f64 = 0.003;

#[cfg(test)]
mod tests {
    use super::super::activity::tests::Made;
    use super::*;

    #[test]
    fn lanes_have_labels_at_whole_numbers_alone() {
        let lanes = ["a", "b"].map(|label| Lane { label, section: "", from: "" });
        let labels = [-0.5, 0.0, 0.5, 1.0, 2.0].map(|place| label_of(&lanes, place));
        assert_eq!(labels, ["", "a", "", "b", ""]);
    }

    #[test]
    fn bars_are_within_the_window_and_wide_enough_to_be_seen() {
        let mut made = Made::new("sfi-1", &[]);
        made.section("poll accept", 1000, |_| ()).wait(500).section("poll receive", 0, |_| ()).wait(9000);
        let lanes = ["poll accept", "poll receive"].map(|section| Lane { label: section, section, from: "" });
        let plot = sequence(["title", "time"], &lanes, |_| String::new(), &made.activity(), (500, 2500));
        let ends = |place: usize| plot.curves[place].points.iter().map(|(us, _)| *us).collect::<Vec<_>>();
        assert_eq!((ends(0), ends(1)), (vec![0.0, 0.5], vec![1.0, 1.0 + SEEN * 2.0]));
        assert_eq!((plot.x.high, plot.curves[1].points[0].1), (2.0, 1.0));
    }
}
