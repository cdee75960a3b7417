//! What the text of ATM1997 says, beside what was simulated. Scenarios know nothing of this.

use simulator::atm::scenario::{Point, Scenario};
use simulator::atm::{link_bytes_per_s, sizing, slots_per_s};

use super::Figures;
use crate::results::Given;

/// All numbers that can be compared.
pub(super) fn numbers(scenario: &Scenario, figures: &Figures) -> Vec<Given> {
    let sizing = &scenario.sizing;
    let example = &sizing.example;
    let ports = sizing::ports(example.event_bytes, example.trigger_hz, sizing.load, sizing.link_bytes_per_s);
    let fragment = sizing::fragment_bytes(example.trigger_hz, sizing.load, sizing.link_bytes_per_s);
    let end = end_bytes_per_s(&figures.push);
    let at_700 = at(&figures.push, 700);
    let links = f64::from(scenario.push.ports) * link_bytes_per_s();
    vec![
        Given::predicted("user data on a link", "§I", "B/s", 16.8e6, link_bytes_per_s()),
        Given::predicted("single cells on a link", "§I", "Hz", 370e3, slots_per_s()),
        Given::predicted("ports for 1 MB at 1 kHz", "§II-A, Fig. 2", "", 100.0, ports),
        Given::predicted("fragments of these", "§II-A", "B", 10e3, fragment),
        Given::predicted("small fragments, with event building", "§III", "Hz", 40e3, figures.push[0].built_hz).fitted(),
        Given::predicted(
            "push 8 x 8: rate with fragments of 512 B",
            "§IV, Fig. 4",
            "Hz",
            30e3,
            at(&figures.push, 512).built_hz,
        ),
        Given::predicted("push 8 x 8: throughput with 700 B", "§IV, Fig. 4", "B/s", 120e6, at_700.bytes_per_s),
        Given::predicted("push 8 x 8: throughput with large fragments", "§IV, Fig. 4", "B/s", 120e6, end),
        Given::predicted("push 8 x 8: part of the links' user data", "§IV, Fig. 4", "", 0.9, end / links),
        Given::predicted(
            "push 8 x 8: fragments that saturate it",
            "§IV, Fig. 4",
            "B",
            700.0,
            saturation_bytes(&figures.push),
        )
        .fitted(),
    ]
}

/// Why numbers differ, and what the paper says without a number.
pub(super) const DIFFERENCES: [&str; 6] = [
    "Single cells: the paper divides 155 Mb/s by the 53 bytes of a cell; SDH leaves 149.76 Mb/s for cells.",
    "Small fragments: 40 kHz is what the 25 µs that the paper gives for each packet with event building come to: no evidence.",
    "Saturation is where throughput stays within 2 % of that with large fragments. That was chosen: with 3 % it is at 512 B, with \
     1.5 % at 704 B, as it sets in softly. Padding to whole cells costs 5 % at 700 B, and less of larger fragments.",
    "Beyond saturation links carry all that they can, less the padding of their cells, and nothing else limits them. \
     Four times the memory of sources and destinations changes throughput by less than 0.3 %. The paper has 6 to 8 % \
     less and does not say what limited its generators.",
    "Figure 5: the paper gives no number but says that overflow is very unlikely. More than 256 cells were never seen at \
     70 % load. They are what there is with sources in step, the case that the paper excludes.",
    "Figure 6: the paper gives no number but calls its values a lower limit, as sources have one request at a time. Below 700 B \
     the destination's processor limits the rate, above it the destination's link.",
];

/// The point of this size, or the next larger one.
fn at(points: &[Point], fragment_bytes: u32) -> &Point {
    points.iter().find(|point| point.fragment_bytes >= fragment_bytes).unwrap_or(&points[points.len() - 1])
}

fn end_bytes_per_s(points: &[Point]) -> f64 {
    let last = &points[points.len().saturating_sub(3)..];
    last.iter().map(|point| point.bytes_per_s).sum::<f64>() / last.len() as f64
}

fn saturation_bytes(points: &[Point]) -> f64 {
    let saturated = 0.98 * end_bytes_per_s(points);
    let below = points.iter().rposition(|point| point.bytes_per_s < saturated);
    f64::from(points[below.map_or(0, |below| below + 1).min(points.len() - 1)].fragment_bytes)
}
