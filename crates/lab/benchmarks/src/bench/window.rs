//! `weir bench window`: what acknowledgements cost event building in datagrams, from small fragments to large ones, in
//! datagrams of an Ethernet and in the longest `[ATM1997 §III]`.
//!
//! Each point is `weir bench event-builder --transport udp --window`: with a window and acknowledgements, beside the same
//! without them, in alternation. Both ask for what is missing.

use serde::Serialize;
use transport::udp::{DATAGRAM_LEN_ETHERNET, DATAGRAM_LEN_LOOPBACK};

use super::BenchError;
use super::event_builder::{self, Parameters};
use super::paired::Figures;
use super::points::{Point, Points};
use crate::bench::arguments::{BenchArgs, BenchTransport};

/// All lengths; fragments of 9 kB in datagrams of an Ethernet stand for all.
#[derive(Serialize)]
pub(crate) struct Found(Points<Parameters>);

/// Measures all lengths.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let compare = |(fragment, datagram)| {
        let args = BenchArgs {
            transport: BenchTransport::Udp,
            fragment,
            datagram,
            window: Some(args.window.unwrap_or(WINDOW_BYTES)),
            seconds: args.seconds / SHARES,
            ..args.clone()
        };
        event_builder::compare("window", Parameters::new(&args)?).map(Point::plain)
    };
    let lengths = FRAGMENT_BYTES.into_iter().flat_map(|fragment| DATAGRAM_BYTES.map(|datagram| (fragment, datagram)));
    let points = lengths.map(compare).collect::<Result<_, BenchError>>()?;
    Ok(Found(Points::new(points, |of: &Parameters| of.lengths() == MAIN)))
}

impl Found {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = "Acknowledged datagrams, beside the same without acknowledgements\n\
             fragment  datagram     events/s  µs CPU/event  of unacknowledged   CPU of it"
            .to_owned();
        for Point { comparison, .. } in self.0.iter() {
            let ((fragment, datagram), compared) = (comparison.parameters().lengths(), comparison.compared());
            let Figures { events_per_s, cpu_us_per_event, .. } = compared.result();
            let (ratio, cpu_ratio) = (compared.ratio_text(), compared.cpu_ratio());
            text += &format!(
                "\n{fragment:>6} B  {datagram:>6} B {events_per_s:>12.0} {cpu_us_per_event:>13.2} {ratio:>18} {cpu_ratio:>11.2}"
            );
        }
        text
    }
}

const FRAGMENT_BYTES: [u32; 3] = [1000, 9000, 37_500];
const DATAGRAM_BYTES: [u32; 2] = [DATAGRAM_LEN_ETHERNET as u32, DATAGRAM_LEN_LOOPBACK as u32];
const MAIN: (u32, u32) = (9000, DATAGRAM_LEN_ETHERNET as u32);
/// Less than what the builder has asked for.
const WINDOW_BYTES: u32 = 1_000_000;
/// So many times shorter is each run: there are six points.
const SHARES: f64 = 6.0;
