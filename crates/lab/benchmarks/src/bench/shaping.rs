//! `weir bench shaping`: rate division at a link that sources share, from small fragments to large ones, with each way to be idle
//! `[ATM1997 §IV]`.
//!
//! Every ROS and the one SFI are processes of their own. The reference is the link itself: a source is to send at
//! its share although its process sleeps, and has no processor while others spin. Messages wait until their processes
//! have had their turn. So as many events are in building as the link carries in [`IN_FLIGHT`].

use std::time::Duration;

use serde::Serialize;

use super::BenchError;
use super::crossing::{self, Crossing, Fragments, Shaping};
use super::paired::{Comparison, Figures, RatioOf};
use super::points::{Point, Points};
use crate::bench::arguments::{BenchArgs, BenchBuilding, BenchIdle, BenchTransport};

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Parameters {
    transport: BenchTransport,
    sources: u32,
    fragment_bytes: u32,
    idle: BenchIdle,
    link_bytes_per_s: u64,
    events_held: u32,
    seconds: f64,
    pairs: usize,
}

/// Measures all sizes with all ways to be idle.
pub(super) fn measure(args: &BenchArgs) -> Result<Points<Parameters>, BenchError> {
    let kinds = FRAGMENT_BYTES.into_iter().flat_map(|fragment_bytes| IDLE.map(|idle| (fragment_bytes, idle)));
    let points = kinds.map(|(fragment_bytes, idle)| point(fragment_bytes, idle, args.seconds / SHARES));
    let points = points.collect::<Result<_, BenchError>>()?;
    Ok(Points::new(points, |of| (of.fragment_bytes, of.idle) == MAIN))
}

fn point(fragment_bytes: u32, idle: BenchIdle, seconds: f64) -> Result<Point<Parameters>, BenchError> {
    let parameters = Parameters {
        transport: BenchTransport::Tcp,
        sources: SOURCES,
        fragment_bytes,
        idle,
        link_bytes_per_s: LINK_BYTES_PER_S,
        events_held: events_held(fragment_bytes),
        seconds,
        pairs: PAIRS,
    };
    let pairs = (0..PAIRS).map(|_| run(&parameters)).collect::<Result<Vec<_>, BenchError>>()?;
    Ok(Point::plain(Comparison::of("shaping", parameters, RatioOf::EventsPerS, &pairs)))
}

/// A run, and what the link has room for in the same time: that takes no processor.
fn run(parameters: &Parameters) -> Result<(Figures, Figures), BenchError> {
    let Parameters { fragment_bytes, idle, link_bytes_per_s, .. } = *parameters;
    let crossed = crossing::run(&Crossing {
        sources: parameters.sources,
        links: 1,
        builders: 1,
        fragments: Fragments::Fixed(fragment_bytes),
        transport: parameters.transport,
        building: BenchBuilding::Push,
        level1: None,
        group: 1,
        group_age_ms: 0,
        events_held: parameters.events_held,
        seconds: parameters.seconds,
        shaping: Some(Shaping { link: link_bytes_per_s, idle }),
    })?;
    let events_per_s = link_bytes_per_s as f64 / crossed.link_bytes_per_event;
    let bytes = f64::from(fragment_bytes * parameters.sources);
    Ok((crossed.figures, Figures::of(events_per_s, Some(bytes), 1.0, f64::NAN)))
}

fn events_held(fragment_bytes: u32) -> u32 {
    let event_bytes = u64::from(fragment_bytes * SOURCES);
    let in_flight = LINK_BYTES_PER_S * IN_FLIGHT.as_millis() as u64 / 1000;
    u32::try_from(in_flight.div_ceil(event_bytes)).expect("some thousand events")
}

impl Points<Parameters> {
    /// Whether sources have got less of the link than rate division is for.
    pub(super) fn is_off(&self) -> bool {
        self.iter().any(|point| point.comparison.compared().ratio() < SHARE_MIN)
    }

    /// A table for people.
    pub(super) fn to_text(&self) -> String {
        let mut text = format!(
            "{SOURCES} sources at a link of {} MB/s\nfragment  idle     events/s     MB/s  µs CPU/event  of the link",
            LINK_BYTES_PER_S / 1_000_000
        );
        for Point { comparison, .. } in self.iter() {
            let (Parameters { fragment_bytes, idle, .. }, compared) = (comparison.parameters(), comparison.compared());
            let Figures { events_per_s, bytes_per_s, cpu_us_per_event, .. } = compared.result();
            text += &format!(
                "\n{fragment_bytes:>6} B  {:<6} {events_per_s:>10.0} {:>8.1} {cpu_us_per_event:>13.2}  {}",
                idle.name(),
                bytes_per_s.unwrap_or(f64::NAN) / 1e6,
                compared.ratio_text(),
            );
        }
        text
    }
}

const SOURCES: u32 = 4;
const FRAGMENT_BYTES: [u32; 4] = [1000, 9000, 37_500, 100_000];
const IDLE: [BenchIdle; 3] = [BenchIdle::Park, BenchIdle::Yield, BenchIdle::Spin];
const MAIN: (u32, BenchIdle) = (9000, BenchIdle::Park);
const LINK_BYTES_PER_S: u64 = 50_000_000;
/// A message between two of six processes that share two processors may wait for some tens of milliseconds if others compute.
const IN_FLIGHT: Duration = Duration::from_millis(100);
/// Of a link, with rate division `[ATM1997 §IV]`.
const SHARE_MIN: f64 = 0.9;
/// So many times shorter is each run: there are twelve points.
const SHARES: f64 = 3.0;
const PAIRS: usize = 3;
