//! What the text of EB2007 says, beside what was simulated. Scenarios know nothing of this.

use super::sweep::{Point, Sweep};
use super::{BUILDERS_MAX, EVENTS_KIB, Figures};
use crate::study::results::Given;

/// All numbers that can be compared.
pub(super) fn numbers(figures: &Figures) -> Vec<Given> {
    let [udp, tcp] = [&figures.builders[0], &figures.builders[1]];
    let builders = f64::from(BUILDERS_MAX);
    let filter = &figures.filter.points;
    let many = &filter[3..];
    let served_mib = many.iter().map(Point::mib_per_s).sum::<f64>() / many.len() as f64;
    let [full_udp, full_tcp] = [&figures.credits[EVENTS_KIB.len() - 1], &figures.credits[EVENTS_KIB.len()]];
    vec![
        given("rate of one event builder", "§IV-B, Fig. 4", "Hz", 78.0, udp.points[0].built_hz),
        given("bandwidth of one event builder", "§IV-B, Fig. 4", "MB/s", 114.2, udp.points[0].mib_per_s()),
        given("bandwidth that each adds, UDP", "§IV-B, Fig. 4", "MB/s", 114.2, last(udp).mib_per_s() / builders),
        given("bandwidth that each adds, TCP", "§IV-B, Fig. 4", "MB/s", 114.2, last(tcp).mib_per_s() / builders),
        given("bandwidth of 29", "§IV-B, §V", "MB/s", 3300.0, last(udp).mib_per_s()),
        given("rate of 29", "§V", "Hz", 2200.0, last(udp).built_hz),
        given("one that serves an event filter", "§IV-C, Fig. 5", "MB/s", 106.0, served_mib),
        given("rate with events of 54 kB", "§IV-D, Fig. 6", "Hz", 17_500.0, last(&figures.small).built_hz),
        given("event builders that saturate it", "§IV-D, Fig. 6", "", 15.0, saturation(&figures.small)),
        given("TCP, 120 requests to the best", "§IV-A, Fig. 3", "", 1.0, last(full_tcp).built_hz / best(full_tcp)),
        given("834 kB, 120 requests to the best", "§IV-A, Fig. 3", "", 1.0, {
            let sweep = &figures.credits[EVENTS_KIB.len() - 2];
            last(sweep).built_hz / best(sweep)
        }),
        given("1505 kB by UDP, 20 requests to the best", "§IV-A, Fig. 3", "", 1.0, at(full_udp, 20) / best(full_udp)),
    ]
}

/// Why numbers differ, and what the paper says without a number.
pub(super) const DIFFERENCES: [&str; 5] = [
    "The paper's megabytes are of 2²⁰ bytes and its events of 1505 · 2¹⁰: 78 Hz of these are 114.5 MB/s, and 114.1 MB/s are all \
     that Gigabit Ethernet carries in datagrams of 1472 bytes.",
    "Figures 2 and 3: only events of 1505 kB by UDP lose replies with many requests, as in the paper, since what 120 requests \
     bring at once is more than an output of the switch holds.",
    "Figure 5: the range in the paper is 103 to 109 MB/s; its middle is compared with the mean from five nodes on. One or two \
     nodes get less than in the paper: their acknowledgements wait behind 20 replies on the builder's link, so that the window of \
     one connection limits what it carries; the paper does not say how its windows were set.",
    "Figure 6: saturation is where the rate is within 3 % of that of 29.",
    "The paper gives neither the events in building, which are 6, twice what 120 requests are spread over, nor the time-out, which \
     is 100 ms. With 4 events in building, events of 834 kB with 120 requests reach 0.91 of the best; with 32, TCP with 120 requests \
     reaches 0.80. The row of TCP in Figure 3 is therefore no prediction.",
];

fn given(what: &'static str, place: &'static str, unit: &'static str, given: f64, simulated: f64) -> Given {
    Given { what, place, unit, given, simulated }
}

fn last(sweep: &Sweep) -> &Point {
    &sweep.points[sweep.points.len() - 1]
}

fn best(sweep: &Sweep) -> f64 {
    sweep.points.iter().map(|point| point.built_hz).fold(0.0, f64::max)
}

fn at(sweep: &Sweep, value: u32) -> f64 {
    sweep.points.iter().find(|point| point.value == value).map_or(0.0, |point| point.built_hz)
}

fn saturation(sweep: &Sweep) -> f64 {
    let saturated = 0.97 * last(sweep).built_hz;
    let first = sweep.points.iter().find(|point| point.built_hz >= saturated);
    first.map_or(0.0, |point| f64::from(point.value))
}
