//! Tables 1 and 3 as figures: the platforms of the paper beside this machine.

use ::semaphores::Family;
use plotters::chart::SeriesLabelPosition;

use super::Found;
use super::given::BOARDS;
use super::machine::Class;
use crate::plot::{Axis, Curve, Look, Plot, Scale};
use partition::human::si;

/// Table 1.
pub(super) fn processors(found: &Found) -> Plot {
    let boards = BOARDS.iter().map(|board| (board.name.to_owned(), board.dhrystones_hz));
    let all = boards.chain([("here, one core".to_owned(), found.speed.integer_hz)]);
    Plot {
        title: "Table 1: processors",
        x: Axis { label: "Dhrystones/s", scale: Scale::Logarithmic, low: 1e4, high: 1e9, number: |hz| si(hz, "") },
        y: lanes(BOARDS.len(), processor),
        curves: curves((0..).zip(all)),
        names: SeriesLabelPosition::UpperRight,
    }
}

/// Table 3. What a busy machine has not let us measure has no point.
pub(super) fn context_switches(found: &Found) -> Plot {
    let boards = BOARDS.iter().map(|board| (board.name.to_owned(), board.context_switch_us));
    let here = found.cycles.iter().filter_map(|cycle| {
        let place = BOARDS.len() + place_of(cycle.kind, cycle.class);
        Some((place, (format!("here, {}", cycle.name()), cycle.context_switch_us()?)))
    });
    Plot {
        title: "Table 3: context switch",
        x: Axis { label: "[µs]", scale: Scale::Logarithmic, low: 0.1, high: 100.0, number: |us| format!("{us}") },
        y: lanes(BOARDS.len() + 2 * Family::ALL.len() - 1, switching),
        curves: curves((0..).zip(boards).chain(here)),
        names: SeriesLabelPosition::UpperRight,
    }
}

fn lanes(last: usize, number: fn(f64) -> String) -> Axis {
    Axis { label: "", scale: Scale::Lanes, low: -0.5, high: last as f64 + 0.5, number }
}

/// A point for each platform.
fn curves(all: impl Iterator<Item = (usize, (String, f64))>) -> Vec<Curve> {
    all.map(|(place, (name, value))| Curve { name, points: vec![(value, place as f64)], look: Look::Marked }).collect()
}

fn place_of(kind: Family, class: Class) -> usize {
    let kind = Family::ALL.iter().position(|each| *each == kind).unwrap_or_default();
    kind + if class == Class::RealTime { Family::ALL.len() } else { 0 }
}

/// A board goes by its operating system.
fn board(place: f64) -> Option<&'static str> {
    let is_lane = (place - place.round()).abs() < 1e-9 && place > -0.5;
    BOARDS.get(place.round() as usize).filter(|_| is_lane)?.name.rsplit(", ").next()
}

fn processor(place: f64) -> String {
    let is_here = (place - BOARDS.len() as f64).abs() < 1e-9;
    board(place).map_or_else(|| if is_here { "here" } else { "" }.to_owned(), str::to_owned)
}

fn switching(place: f64) -> String {
    let lane = |kind, class| (BOARDS.len() + place_of(kind, class)) as f64;
    let here = Family::ALL.iter().flat_map(|kind| [(*kind, Class::Normal), (*kind, Class::RealTime)]);
    let mut here = here.filter(|(kind, class)| (place - lane(*kind, *class)).abs() < 1e-9);
    let words = |(kind, class)| if class == Class::Normal { format!("{kind}") } else { format!("{kind}, {class}") };
    board(place).map(str::to_owned).or_else(|| here.next().map(words)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_named_after_platforms() {
        let names = |number: fn(f64) -> String, last: usize| -> Vec<String> {
            (0..=last).map(|place| number(place as f64)).collect()
        };
        assert_eq!(names(processor, 4), ["LynxOS", "Windows NT", "EP/LX", "here", ""]);
        let all = names(switching, 8);
        assert_eq!(
            all[3..],
            ["System V", "POSIX", "futex", "System V, real time", "POSIX, real time", "futex, real time"]
        );
        assert_eq!((processor(-1.0), switching(0.5)), (String::new(), String::new()));
    }
}
