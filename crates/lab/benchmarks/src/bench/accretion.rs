//! `weir bench accretion`: a read-out system sends the data of several links as one message, from a page for each
//! `[ATM1997 §V]`. How much more does that cost than one link with as many data?
//!
//! Four read-out systems, each a process, and one builder. Data are written for every event, so that reading and sending share
//! the processor as they do behind real links.

use serde::Serialize;

use super::BenchError;
use super::crossing::{self, Crossing, Fragments};
use super::paired::{Comparison, Figures, RatioOf};
use super::points::{Point, Points};
use crate::bench::arguments::{BenchArgs, BenchBuilding, BenchTransport};

/// All numbers of links; the most stand for all.
#[derive(Serialize)]
pub(crate) struct Found(Points<Parameters>);

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    sources: u32,
    /// Of the data of a source, by all its links.
    bytes: u32,
    links: u32,
    /// Of the same in the reference.
    links_of_reference: u32,
    seconds: f64,
    pairs: usize,
}

/// Measures all numbers of links in pairs with one link.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let compare = |links| {
        let (sources, bytes, seconds, pairs) = (SOURCES, BYTES, args.seconds / 3.0, PAIRS);
        let parameters = Parameters { sources, bytes, links, links_of_reference: 1, seconds, pairs };
        let run = |links| run(&parameters, links);
        Comparison::measure("accretion", parameters, (pairs, RatioOf::EventsPerS), || run(links), || run(1))
    };
    let points = LINKS.into_iter().map(|links| compare(links).map(Point::plain)).collect::<Result<_, BenchError>>()?;
    Ok(Found(Points::new(points, |of: &Parameters| of.links == LINKS_MOST)))
}

impl Found {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "{SOURCES} sources with {BYTES} B of data each, one builder; events per second and processor time beside one link\n\
             links     events/s  µs CPU/event            of one link   CPU of it"
        );
        for Point { comparison, .. } in self.0.iter() {
            let (Parameters { links, .. }, compared) = (comparison.parameters(), comparison.compared());
            let Figures { events_per_s, cpu_us_per_event, .. } = compared.result();
            let (ratio, cpu_ratio) = (compared.ratio_text(), compared.cpu_ratio());
            text +=
                &format!("\n{links:>5} {events_per_s:>12.0} {cpu_us_per_event:>13.2} {ratio:>22} {cpu_ratio:>11.2}");
        }
        text
    }
}

fn run(parameters: &Parameters, links: u32) -> Result<Figures, BenchError> {
    let crossing = Crossing {
        sources: parameters.sources,
        links,
        builders: 1,
        fragments: Fragments::Written(parameters.bytes / links),
        transport: BenchTransport::Tcp,
        building: BenchBuilding::Pull,
        level1: None,
        group: 1,
        group_age_ms: 0,
        events_held: EVENTS_HELD,
        seconds: parameters.seconds,
        shaping: None,
    };
    crossing::run(&crossing).map(|crossed| crossed.figures)
}

const SOURCES: u32 = 4;
const BYTES: u32 = 12 << 10;
const LINKS: [u32; 3] = [2, 4, LINKS_MOST];
const LINKS_MOST: u32 = 12;
const EVENTS_HELD: u32 = 64;
const PAIRS: usize = 5;
