//! What the text of EB2007 says, beside what was simulated. Scenarios know nothing of this.

use super::sweep::{Point, Sweep};
use super::{BUILDERS_MAX, Figures};
use crate::results::Given;

/// All numbers that can be compared.
pub(super) fn numbers(figures: &Figures) -> Vec<Given> {
    let mut numbers = of_builders(figures);
    numbers.extend(of_serving(&figures.filter));
    numbers.extend(of_read_out(figures));
    numbers.extend(of_credits(figures));
    numbers
}

fn of_builders(figures: &Figures) -> Vec<Given> {
    let [udp, tcp] = [&figures.builders[0], &figures.builders[1]];
    let builders = f64::from(BUILDERS_MAX);
    vec![
        Given::predicted("rate of one event builder", "§IV-B, Fig. 4", "Hz", 78.0, udp.points[0].built_hz),
        Given::predicted("bandwidth of one event builder", "§IV-B, Fig. 4", "MB/s", 114.2, udp.points[0].mib_per_s()),
        Given::predicted(
            "bandwidth that each adds, UDP",
            "§IV-B, Fig. 4",
            "MB/s",
            114.2,
            last(udp).mib_per_s() / builders,
        ),
        Given::predicted(
            "bandwidth that each adds, TCP",
            "§IV-B, Fig. 4",
            "MB/s",
            114.2,
            last(tcp).mib_per_s() / builders,
        ),
        Given::predicted("bandwidth of 29", "§IV-B, §V", "MB/s", 3300.0, last(udp).mib_per_s()),
        Given::predicted("rate of 29", "§V", "Hz", 2200.0, last(udp).built_hz),
    ]
}

/// The middle of the range from 103 to 109 MB/s.
fn of_serving(filter: &Sweep) -> Vec<Given> {
    let (alone, serving) = (filter.points[0].mib_per_s(), &filter.points[1..]);
    let row = |point: &Point| {
        let nodes = if point.value == 1 { "node" } else { "nodes" };
        let what = format!("one that serves {} event-filter {nodes}", point.value);
        Given::predicted(what, "§IV-C, Fig. 5", "MB/s", 106.0, point.mib_per_s()).fitted()
    };
    let left = serving.iter().map(Point::mib_per_s).sum::<f64>() / serving.len() as f64 / alone;
    let mut rows: Vec<Given> = serving.iter().map(row).collect();
    rows.push(Given::predicted("part of its bandwidth that serving leaves", "§IV-C, §V", "", 0.9, left).fitted());
    rows
}

fn of_read_out(figures: &Figures) -> Vec<Given> {
    let small = &figures.small;
    let each_hz = last(&figures.builders[0]).built_hz / f64::from(BUILDERS_MAX);
    let limit = last(&figures.more).built_hz / each_hz;
    vec![
        Given::predicted("rate with events of 54 kB", "§IV-D, Fig. 6", "Hz", 17_500.0, last(small).built_hz).fitted(),
        Given::predicted("event builders that saturate it", "§IV-D, Fig. 6", "", 15.0, saturation(small)),
        Given::predicted("event builders that read-out can feed, 1505 kB", "§IV-D", "", 40.0, limit),
    ]
}

fn of_credits(figures: &Figures) -> Vec<Given> {
    let part = |sweep: &Sweep, requests| at(sweep, requests) / best(sweep);
    let [.., large, udp, tcp] = &figures.credits[..] else { unreachable!("five curves") };
    vec![
        Given::predicted("TCP, 120 requests to the best", "§IV-A, Fig. 3", "", 1.0, part(tcp, 120)),
        Given::predicted("834 kB, 120 requests to the best", "§IV-A, Fig. 3", "", 1.0, part(large, 120)).fitted(),
        Given::predicted("1505 kB by UDP, 20 requests to the best", "§IV-A, Fig. 3", "", 1.0, part(udp, 20)),
    ]
}

/// Why numbers differ, and what the paper says without a number.
pub(super) const DIFFERENCES: [&str; 8] = [
    "The paper's megabytes are of 2²⁰ bytes and its events of 1505 · 2¹⁰. 78 Hz of these are 114.5 MB/s, and 114.1 \
     MB/s are all that Gigabit Ethernet carries in datagrams of 1472 bytes.",
    "Figures 2 and 3: only events of 1505 kB by UDP lose replies with many requests, as in the paper. 120 requests \
     bring more at once than an output of the switch holds. The paper gives no number for that. Here it depends on \
     the time-out, of 100 ms, and on how many read-out systems share cables between switches.",
    "With 120 requests, runs with events of 1505 kB last 2 s. In one of 1 s, in which the beginning and the end weigh more, TCP reaches \
     0.93 of the best. Between 4 and 16 events in building, TCP and events of 834 kB then reach 0.92 or more; with 32, TCP 0.73.",
    "Figure 5: the range in the paper is 103 to 109 MB/s; its middle is compared at each number of nodes. What an \
     event builder sends to the event filter has a network of its own here; the paper does not say. On one port, one \
     node gets 62 to 83 MB/s (windows of TCP from 131 kB to 4 MB). Requests wait behind the event that is being sent, \
     or acknowledgements behind 20 replies. Five nodes and more get 97 to 107 MB/s. With its own network nothing but \
     the processor limits, whatever the number of nodes.",
    "Figure 6: saturation is where the rate is within 3 % of that of 29; the paper has a point at each five.",
    "The processor time of a frame, inferred from Figure 5, is used in all figures. It predicts how many event builders saturate \
     Figure 6, together with the 45 µs of a request: with twice that time 20 would not. In Figures 2 to 4 it limits nothing, as in the paper.",
    "The 45 µs of a request, inferred from Figure 6, predict that links alone limit read-out systems with large \
     events. So 40 of them can feed 40 event builders, as the paper says. They also predict the rate of 210 kB in \
     Figure 2, which the text does not give.",
    "The 3 MB that an output of a switch holds follow from the effect of 120 requests on large events by UDP. \
     They predict that nothing is lost with 20, and that TCP does well with 120.",
];

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
