//! `weir bench credits`: how many requests should an event builder have on their way? The replies meet at one
//! output port of a network, as in `[EB2007 §II-B.3, §IV]`. With too few requests the port is idle, with too many
//! its buffer overflows.
//!
//! For each run the sources and the builder are processes in a network of its own ([`super::network`]). All traffic
//! passes through one port of a given rate and buffer, and travels in datagrams that an Ethernet carries. Each run
//! of a round is compared with the best number of fixed credits. An adaptive builder may have as many as the most
//! of these, and does not know which is best.

use configuration::RequestCredits;
use serde::Serialize;

use super::BenchError;
use super::event_builder::{Asking, InNetwork};
use super::network::Run;
use super::paired::{Comparison, Figures, RatioOf, median};
use super::points::{Point, Points};
use crate::bench::arguments::BenchArgs;
use crate::lossy;

/// All numbers of fixed credits, and those that adapt.
#[derive(Serialize)]
pub(crate) struct Found(Points<Parameters, Repeated>);

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    sources: u32,
    fragment_bytes: u32,
    datagram_bytes: u32,
    /// The output port.
    megabits_per_s: u32,
    buffer_bytes: u32,
    #[serde(flatten)]
    asking: Asking,
    /// The best number of fixed credits.
    reference: u32,
    seconds: f64,
    pairs: usize,
}

/// What was sent more than once; medians over the runs.
#[derive(Clone, Copy, Debug, Serialize)]
struct Repeated {
    /// Datagrams for each event, because they were asked for.
    segments_repeated_per_event: f64,
    /// Requests as a whole.
    requests_repeated: f64,
}

/// Measures all in rounds.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    lossy::check_port().map_err(BenchError::Network)?;
    let port = lossy::port(MEGABITS_PER_S, BUFFER_BYTES);
    let building = |asking| InNetwork {
        sources: SOURCES,
        fragment_bytes: FRAGMENT_BYTES,
        datagram_bytes: DATAGRAM_BYTES,
        asking: Some(asking),
        seconds: args.seconds / 2.5,
    };
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); ASKING.len()];
    for round in 0..PAIRS {
        for kind in (0..ASKING.len()).map(|turn| (round + turn) % ASKING.len()) {
            runs[kind].push(building(ASKING[kind]).run(&port)?);
        }
    }
    let figures = |kind: usize| runs[kind].iter().map(move |run| building(ASKING[kind]).figures(run));
    let rate = |kind: &usize| median(figures(*kind).map(|figures| figures.events_per_s));
    let fixed = (0..ASKING.len()).filter(|kind| ASKING[*kind].credits == RequestCredits::Fixed);
    let best = fixed.max_by(|one, other| rate(one).total_cmp(&rate(other))).expect("some are fixed");
    let point = |kind: usize| {
        let parameters = Parameters {
            sources: SOURCES,
            fragment_bytes: FRAGMENT_BYTES,
            datagram_bytes: DATAGRAM_BYTES,
            megabits_per_s: MEGABITS_PER_S,
            buffer_bytes: BUFFER_BYTES,
            asking: ASKING[kind],
            reference: ASKING[best].outstanding_requests,
            seconds: building(ASKING[kind]).seconds,
            pairs: PAIRS,
        };
        let pairs: Vec<(Figures, Figures)> = figures(kind).zip(figures(best)).collect();
        let comparison = Comparison::of("credits", parameters, RatioOf::EventsPerS, &pairs);
        Point { comparison, more: Repeated::median(&runs[kind]) }
    };
    let points = (0..ASKING.len()).map(point).collect();
    Ok(Found(Points::new(points, |of| of.asking.credits == RequestCredits::Adaptive)))
}

impl Repeated {
    fn median(of: &[Run]) -> Self {
        Self {
            segments_repeated_per_event: median(of.iter().map(|run| run.repeated as f64 / run.events as f64)),
            requests_repeated: median(of.iter().map(|run| run.reasks as f64)),
        }
    }
}

impl Found {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "{SOURCES} sources of {FRAGMENT_BYTES} B, datagrams of {DATAGRAM_BYTES} B, a port of {MEGABITS_PER_S} Mbit/s that holds \
             {BUFFER_BYTES} B; every event is complete\n\
             requests       events/s     MB/s  segments again/event  requests again  of the best fixed"
        );
        for Point { comparison, more } in self.0.iter() {
            let Figures { events_per_s, bytes_per_s, .. } = comparison.compared().result();
            let Asking { credits, outstanding_requests } = comparison.parameters().asking;
            let up_to = if credits == RequestCredits::Adaptive { "up to " } else { "" };
            text += &format!(
                "\n{:<12} {events_per_s:>10.0} {:>8.1} {:>21.2} {:>15.0}  {}",
                format!("{up_to}{outstanding_requests}"),
                bytes_per_s.unwrap_or(f64::NAN) / 1e6,
                more.segments_repeated_per_event,
                more.requests_repeated,
                comparison.compared().ratio_text(),
            );
        }
        text
    }
}

const SOURCES: u32 = 8;
const FRAGMENT_BYTES: u32 = 9000;
/// What an Ethernet carries.
const DATAGRAM_BYTES: u32 = 1472;
const MEGABITS_PER_S: u32 = 1000;
/// Thirty-three fragments.
const BUFFER_BYTES: u32 = 300_000;
const PAIRS: usize = 3;
const ASKING: [Asking; 6] = [fixed(1), fixed(4), fixed(16), fixed(64), fixed(MOST), adaptive(MOST)];
const MOST: u32 = 256;

const fn fixed(outstanding_requests: u32) -> Asking {
    Asking { credits: RequestCredits::Fixed, outstanding_requests }
}

const fn adaptive(outstanding_requests: u32) -> Asking {
    Asking { credits: RequestCredits::Adaptive, outstanding_requests }
}
