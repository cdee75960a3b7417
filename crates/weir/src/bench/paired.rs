//! A measurement and its reference, in alternation, so that a change of the machine's mood strikes both.

use serde::Serialize;

/// One run of either side.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) events_per_s: f64,
    /// Payload, without any header.
    pub(crate) bytes_per_s: f64,
    /// All processes together.
    pub(crate) cpu_us_per_event: f64,
}

/// Runs of both sides, taken in pairs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison<P> {
    bench: &'static str,
    parameters: P,
    /// Medians over the pairs.
    result: Figures,
    reference: Figures,
    /// Median over the pairs of result / reference, in events per second.
    ratio: f64,
    /// Smallest and largest ratio of a pair.
    spread: [f64; 2],
    /// The same for the processor time per event.
    cpu_ratio: f64,
}

impl<P: Serialize> Comparison<P> {
    /// Measures `pairs` times result and reference.
    pub(crate) fn measure<E>(
        bench: &'static str,
        parameters: P,
        pairs: usize,
        mut result: impl FnMut() -> Result<Figures, E>,
        mut reference: impl FnMut() -> Result<Figures, E>,
    ) -> Result<Self, E> {
        let runs = (0..pairs).map(|_| Ok((result()?, reference()?))).collect::<Result<Vec<_>, E>>()?;
        let ratios: Vec<f64> = runs.iter().map(|(ours, bare)| ours.events_per_s / bare.events_per_s).collect();
        let cpu_ratios = runs.iter().map(|(ours, bare)| ours.cpu_us_per_event / bare.cpu_us_per_event);
        let extreme = |pick: fn(f64, f64) -> f64, start: f64| ratios.iter().copied().fold(start, pick);
        Ok(Self {
            bench,
            parameters,
            result: Figures::median(runs.iter().map(|(ours, _)| *ours)),
            reference: Figures::median(runs.iter().map(|(_, bare)| *bare)),
            ratio: median(ratios.iter().copied()),
            spread: [extreme(f64::min, f64::INFINITY), extreme(f64::max, 0.0)],
            cpu_ratio: median(cpu_ratios),
        })
    }

    /// One JSON object.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain numbers and texts make JSON")
    }

    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        let line = |name: &str, figures: &Figures| {
            let Figures { events_per_s, bytes_per_s, cpu_us_per_event } = figures;
            let gigabytes = bytes_per_s / 1e9;
            format!(
                "{name:<10} {events_per_s:>12.0} events/s {gigabytes:>8.2} GB/s {cpu_us_per_event:>8.2} µs CPU/event"
            )
        };
        let Self { bench, ratio, spread: [low, high], cpu_ratio, .. } = self;
        format!(
            "{bench}, medians of pairs\n{}\n{}\nratio {ratio:.2} ({low:.2} to {high:.2}), CPU per event {cpu_ratio:.2} times the reference's",
            line("weir", &self.result),
            line("bare", &self.reference)
        )
    }
}

impl Figures {
    fn median(runs: impl Iterator<Item = Self> + Clone) -> Self {
        Self {
            events_per_s: median(runs.clone().map(|run| run.events_per_s)),
            bytes_per_s: median(runs.clone().map(|run| run.bytes_per_s)),
            cpu_us_per_event: median(runs.map(|run| run.cpu_us_per_event)),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
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
        let run = |events_per_s: f64| Figures { events_per_s, bytes_per_s: 1.0, cpu_us_per_event: 2.0 };
        let (mut ours, mut bare) = ([10.0, 30.0, 20.0].into_iter(), [10.0, 10.0, 40.0].into_iter());
        let next = |values: &mut dyn Iterator<Item = f64>| Ok::<_, ()>(run(values.next().unwrap()));
        let comparison = Comparison::measure("test", (), 3, || next(&mut ours), || next(&mut bare)).unwrap();
        assert_eq!((comparison.ratio, comparison.spread), (1.0, [0.5, 3.0]));
        assert_eq!(comparison.result.events_per_s, 20.0);
    }
}
