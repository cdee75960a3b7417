//! A measurement and its reference, in alternation, so that a change of the machine's mood strikes both.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// One run of either side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// What is called an event here.
    pub(crate) unit: Unit,
    pub(crate) events_per_s: f64,
    /// Payload, without any header; none where only handles move.
    pub(crate) bytes_per_s: Option<f64>,
    /// All processes together.
    pub(crate) cpu_us_per_event: f64,
    /// Median time of one event there and back, where only one is on its way.
    pub(crate) round_trip_ns: Option<f64>,
}

/// What a benchmark counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    #[default]
    Event,
    /// Of a link, one way or there and back.
    Frame,
    /// Of a component in a simulation.
    Input,
    /// Of one source and one event.
    Fragment,
    /// Of control: no data.
    Message,
    /// That is started.
    Process,
}

/// What the ratio of two runs is taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RatioOf {
    /// More is better.
    EventsPerS,
    /// Less is better.
    RoundTripNs,
}

/// Runs of both sides, taken in pairs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison<P> {
    bench: &'static str,
    parameters: P,
    #[serde(flatten)]
    compared: Compared,
}

/// What such runs have shown.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Compared {
    /// Medians over the pairs.
    result: Figures,
    reference: Figures,
    ratio_of: RatioOf,
    /// Median over the pairs of result / reference.
    ratio: f64,
    /// Smallest and largest ratio of a pair.
    spread: [f64; 2],
    /// The same for the processor time per event.
    cpu_ratio: f64,
}

impl<P> Comparison<P> {
    /// Measures `pairs` times result and reference.
    pub(crate) fn measure<E>(
        bench: &'static str,
        parameters: P,
        (pairs, ratio_of): (usize, RatioOf),
        mut result: impl FnMut() -> Result<Figures, E>,
        mut reference: impl FnMut() -> Result<Figures, E>,
    ) -> Result<Self, E> {
        let runs = (0..pairs).map(|_| Ok((result()?, reference()?))).collect::<Result<Vec<_>, E>>()?;
        Ok(Self::of(bench, parameters, ratio_of, &runs))
    }

    /// What runs in pairs have shown.
    pub(crate) fn of(bench: &'static str, parameters: P, ratio_of: RatioOf, runs: &[(Figures, Figures)]) -> Self {
        Self { bench, parameters, compared: Compared::of(ratio_of, runs) }
    }

    /// What was measured.
    pub(crate) fn parameters(&self) -> &P {
        &self.parameters
    }

    /// What was found.
    pub(crate) fn compared(&self) -> &Compared {
        &self.compared
    }

    /// The same under another name.
    pub(crate) fn named(self, bench: &'static str) -> Self {
        Self { bench, ..self }
    }

    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        self.to_text_as(["weir", "bare"])
    }

    /// The same with other names of the two sides.
    pub(crate) fn to_text_as(&self, [result, reference]: [&str; 2]) -> String {
        let Self { bench, compared, .. } = self;
        let Compared { ratio_of, ratio, spread: [low, high], cpu_ratio, .. } = compared;
        format!(
            "{bench}, medians of pairs\n{}\n{}\nratio of {} {ratio:.2} ({low:.2} to {high:.2}), CPU per event \
             {cpu_ratio:.2} times the reference's",
            compared.result.to_line(result),
            compared.reference.to_line(reference),
            ratio_of.words()
        )
    }
}

impl Compared {
    /// What runs in pairs have shown.
    pub(crate) fn of(ratio_of: RatioOf, runs: &[(Figures, Figures)]) -> Self {
        let ratios: Vec<f64> = runs.iter().map(|(ours, bare)| ratio_of.value(ours) / ratio_of.value(bare)).collect();
        let cpu_ratios = runs.iter().map(|(ours, bare)| ours.cpu_us_per_event / bare.cpu_us_per_event);
        let extreme = |pick: fn(f64, f64) -> f64, start: f64| ratios.iter().copied().fold(start, pick);
        Self {
            result: Figures::median(runs.iter().map(|(ours, _)| *ours)),
            reference: Figures::median(runs.iter().map(|(_, bare)| *bare)),
            ratio_of,
            ratio: median(ratios.iter().copied()),
            spread: [extreme(f64::min, f64::INFINITY), extreme(f64::max, 0.0)],
            cpu_ratio: median(cpu_ratios),
        }
    }

    /// Median ratio.
    pub(crate) fn ratio(&self) -> f64 {
        self.ratio
    }

    /// Medians of the result.
    pub(crate) fn result(&self) -> Figures {
        self.result
    }

    /// Medians of the reference.
    pub(crate) fn reference(&self) -> Figures {
        self.reference
    }

    /// Median ratio of the processor times per event.
    pub(crate) fn cpu_ratio(&self) -> f64 {
        self.cpu_ratio
    }

    /// The ratio with its spread, for a table.
    pub(crate) fn ratio_text(&self) -> String {
        let Self { ratio, spread: [low, high], .. } = self;
        format!("{ratio:.2} ({low:.2}–{high:.2})")
    }
}

/// As one JSON object.
pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain numbers and texts make JSON")
}

impl RatioOf {
    fn value(self, figures: &Figures) -> f64 {
        match self {
            Self::EventsPerS => figures.events_per_s,
            Self::RoundTripNs => figures.round_trip_ns.unwrap_or(f64::NAN),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::EventsPerS => "events per second",
            Self::RoundTripNs => "round-trip times",
        }
    }
}

impl Figures {
    /// Of a run with so many events; bytes are those of each.
    pub(crate) fn of(events: f64, bytes: Option<f64>, seconds: f64, cpu_seconds: f64) -> Self {
        Self {
            events_per_s: events / seconds,
            bytes_per_s: bytes.map(|bytes| events / seconds * bytes),
            cpu_us_per_event: cpu_seconds / events * 1e6,
            ..Self::default()
        }
    }

    pub(super) fn median(runs: impl Iterator<Item = Self> + Clone) -> Self {
        Self {
            unit: runs.clone().next().map(|run| run.unit).unwrap_or_default(),
            events_per_s: median(runs.clone().map(|run| run.events_per_s)),
            bytes_per_s: median_of_some(runs.clone().map(|run| run.bytes_per_s)),
            cpu_us_per_event: median(runs.clone().map(|run| run.cpu_us_per_event)),
            round_trip_ns: median_of_some(runs.map(|run| run.round_trip_ns)),
        }
    }

    pub(crate) fn to_line(self, name: &str) -> String {
        let Self { unit, events_per_s, bytes_per_s, cpu_us_per_event, round_trip_ns } = self;
        let bytes = bytes_per_s.map_or(String::new(), |bytes| format!(" {:>8.3} GB/s", bytes / 1e9));
        let round_trip = round_trip_ns.map_or(String::new(), |ns| format!(" {:>8.2} µs there and back", ns / 1e3));
        let units = unit.names();
        let unit = unit.name();
        format!("{name:<10} {events_per_s:>12.0} {units}/s{bytes} {cpu_us_per_event:>8.2} µs CPU/{unit}{round_trip}")
    }
}

/// The unit stands in the names of the keys.
impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { unit, events_per_s, bytes_per_s, cpu_us_per_event, round_trip_ns } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(&format!("{}_per_s", unit.names()), events_per_s)?;
        for (key, figure) in [("bytes_per_s", bytes_per_s), ("round_trip_ns", round_trip_ns)] {
            if let Some(figure) = figure {
                map.serialize_entry(key, figure)?;
            }
        }
        map.serialize_entry(&format!("cpu_us_per_{}", unit.name()), cpu_us_per_event)?;
        map.end()
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Frame => "frame",
            Self::Input => "input",
            Self::Fragment => "fragment",
            Self::Message => "message",
            Self::Process => "process",
        }
    }

    fn names(self) -> String {
        if self == Self::Process { "processes".to_owned() } else { format!("{}s", self.name()) }
    }
}

fn median_of_some(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    Some(median(values.flatten())).filter(|median| !median.is_nan())
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_the_median_of_the_pairs() {
        let run = |events_per_s: f64| Figures {
            unit: Unit::Event,
            events_per_s,
            bytes_per_s: Some(1.0),
            cpu_us_per_event: 10.0 * events_per_s,
            round_trip_ns: Some(1e9 / events_per_s),
        };
        let next = |values: &mut dyn Iterator<Item = f64>| Ok::<_, ()>(run(values.next().unwrap()));
        let measure = |ratio_of| {
            let (mut ours, mut bare) = ([10.0, 30.0, 20.0].into_iter(), [10.0, 10.0, 40.0].into_iter());
            Comparison::measure("test", (), (3, ratio_of), || next(&mut ours), || next(&mut bare)).unwrap()
        };
        let compared = measure(RatioOf::EventsPerS).compared;
        assert_eq!((compared.ratio, compared.spread), (1.0, [0.5, 3.0]));
        let round_trips = measure(RatioOf::RoundTripNs).compared;
        assert_eq!(round_trips.spread, [1.0 / 3.0, 2.0]);
        assert_eq!((compared.result.events_per_s, compared.reference.events_per_s), (20.0, 10.0));
        assert_eq!(compared.result.bytes_per_s, Some(1.0));
        assert_eq!((compared.cpu_ratio, round_trips.cpu_ratio), (1.0, 1.0));
    }

    #[test]
    fn the_ratio_is_that_of_the_result_to_its_reference() {
        let [ours, bare] = [(30.0, 2.0), (10.0, 8.0)].map(|(events_per_s, cpu_us_per_event)| Figures {
            events_per_s,
            cpu_us_per_event,
            ..Figures::default()
        });
        let compared = Compared::of(RatioOf::EventsPerS, &[(ours, bare)]);
        assert_eq!((compared.ratio, compared.spread, compared.cpu_ratio), (3.0, [3.0; 2], 0.25));
    }

    #[test]
    fn figures_are_of_the_events_that_were_counted() {
        let figures = Figures::of(10.0, Some(3.0), 2.0, 0.5);
        assert_eq!((figures.events_per_s, figures.bytes_per_s, figures.cpu_us_per_event), (5.0, Some(15.0), 50_000.0));
        assert_eq!((figures.unit, figures.round_trip_ns), (Unit::Event, None));
        assert_eq!(Figures::of(10.0, None, 2.0, 0.5).bytes_per_s, None);
    }
}
