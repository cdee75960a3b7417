//! How long things take: median, tail, histogram.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::error::{TracesError, write};
use crate::merged::Merged;
use crate::svg::{Svg, time};
use crate::{DistributionArgs, Done};

pub(crate) fn distribution(args: &DistributionArgs) -> Done {
    let merged = Merged::read(&args.files)?;
    let Some((what, times)) = asked(&merged, args)? else { return Ok(merged.remarks() + &table(&merged)) };
    let distribution = Distribution::of(times).ok_or_else(|| TracesError::NothingSeen(what.clone()))?;
    if let Some(path) = &args.svg {
        write(path, &distribution.svg(&what))?;
    }
    Ok(format!("{}{what}\n{}", merged.remarks(), distribution.text()))
}

/// What was asked for, in words, and its times.
fn asked(merged: &Merged, args: &DistributionArgs) -> Result<Option<(String, Vec<u64>)>, TracesError> {
    if let Some(name) = &args.section {
        let section = merged.section(name)?;
        let spans = merged.spans().filter(|(_, span)| span.section == section && span.is_whole);
        return Ok(Some((format!("section {name}"), spans.map(|(_, span)| span.to_ns - span.from_ns).collect())));
    }
    if let Some(name) = &args.message {
        let section = merged.section(name)?;
        let arrows = merged.arrows().into_iter().filter(|arrow| arrow.sent.section == section);
        let times = arrows.map(|arrow| arrow.handled_ns - arrow.sent.at_ns).collect();
        return Ok(Some((format!("message {name}, from sending to handling"), times)));
    }
    let (Some(begin), Some(end)) = (&args.begin, &args.end) else { return Ok(None) };
    Ok(Some((format!("from {begin} to {end} of an event"), between(merged, begin, end)?)))
}

/// From the first beginning of a section for each event to the next one of another.
fn between(merged: &Merged, begin: &str, end: &str) -> Result<Vec<u64>, TracesError> {
    let (begin, end) = (merged.section(begin)?, merged.section(end)?);
    let mut begun: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, span) in merged.spans().filter(|(_, span)| span.section == begin) {
        for event in &span.events {
            begun.entry(*event).and_modify(|at| *at = span.from_ns.min(*at)).or_insert(span.from_ns);
        }
    }
    let mut ended: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, span) in merged.spans().filter(|(_, span)| span.section == end) {
        for event in &span.events {
            if begun.get(event).is_some_and(|at| *at < span.from_ns) {
                ended.entry(*event).and_modify(|at| *at = span.from_ns.min(*at)).or_insert(span.from_ns);
            }
        }
    }
    Ok(ended.into_iter().map(|(event, at)| at - begun[&event]).collect())
}

fn table(merged: &Merged) -> String {
    let mut times: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    for (_, span) in merged.spans().filter(|(_, span)| span.is_whole) {
        times.entry(span.section.0).or_default().push(span.to_ns - span.from_ns);
    }
    let mut text = format!("{:24}{:>10}{:>12}{:>12}{:>12}\n", "section", "count", "median", "99.9 %", "maximum");
    let mut rows: Vec<_> = times
        .into_iter()
        .filter_map(|(section, times)| Some((merged.name(stamps::Section(section)), Distribution::of(times)?)))
        .collect();
    rows.sort_by_key(|(name, _)| *name);
    for (name, of) in rows {
        let [median, tail, most] = [of.at(0.5), of.at(0.999), of.at(1.0)].map(time);
        let _ = writeln!(text, "{name:24}{:>10}{median:>12}{tail:>12}{most:>12}", of.sorted.len());
    }
    text
}

/// Times in nanoseconds; at least one.
struct Distribution {
    sorted: Vec<u64>,
}

impl Distribution {
    fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        (!times.is_empty()).then_some(Self { sorted: times })
    }

    /// The time that this part of all does not exceed.
    fn at(&self, part: f64) -> u64 {
        let last = self.sorted.len() - 1;
        self.sorted[((last as f64 * part).ceil() as usize).min(last)]
    }

    /// Where bins begin, and how many times are in each: eight bins for each factor of ten.
    fn bins(&self) -> Vec<(f64, usize)> {
        let bin = |ns: u64| ((ns.max(1) as f64).log10() * BINS_PER_DECADE).floor() as i32;
        let (first, last) = (bin(self.sorted[0]), bin(self.at(1.0)));
        let mut counts = vec![0; (last - first) as usize + 1];
        self.sorted.iter().for_each(|ns| counts[(bin(*ns) - first) as usize] += 1);
        let begin = |index: usize| 10_f64.powf(f64::from(first + index as i32) / BINS_PER_DECADE);
        counts.into_iter().enumerate().map(|(index, count)| (begin(index), count)).collect()
    }

    fn summary(&self) -> String {
        let [median, tail, most] = [self.at(0.5), self.at(0.999), self.at(1.0)].map(time);
        format!("{} times: median {median}, 99.9 % {tail}, maximum {most}", self.sorted.len())
    }

    fn text(&self) -> String {
        let bins = self.bins();
        let most = bins.iter().map(|(_, count)| *count).max().unwrap_or(1);
        let mut text = self.summary() + "\n";
        for (begin, count) in bins {
            let bar = "#".repeat((count * BAR_MAX).div_ceil(most));
            let _ = writeln!(text, "{:>10} {count:>9} {bar}", time(begin.round() as u64));
        }
        text
    }

    /// Counts over the logarithm of time.
    fn svg(&self, what: &str) -> String {
        let bins = self.bins();
        let most = bins.iter().map(|(_, count)| *count).max().unwrap_or(1) as f64;
        let mut svg = Svg::new(WIDTH, HEIGHT);
        let (left, bottom) = (70.0, HEIGHT - 60.0);
        let (across, up) = (WIDTH - left - 40.0, bottom - 60.0);
        svg.text(left, 24.0, what);
        svg.text(left, 44.0, &self.summary());
        let width = across / bins.len() as f64;
        for (index, (begin, count)) in bins.iter().enumerate() {
            let (x, height) = (left + index as f64 * width, *count as f64 / most * up);
            svg.rect(
                (x, bottom - height),
                (width - 1.0, height),
                0,
                &format!("{} from {}", count, time(*begin as u64)),
            );
            if index % bins.len().div_ceil(10) == 0 {
                svg.line((x, bottom), (x, bottom + 5.0), false);
                svg.text(x - 8.0, bottom + 20.0, &time(begin.round() as u64));
            }
        }
        for part in 0..=4 {
            let y = bottom - up * f64::from(part) / 4.0;
            svg.line((left - 5.0, y), (left, y), false);
            svg.text(8.0, y + 4.0, &format!("{:.0}", most * f64::from(part) / 4.0));
        }
        svg.line((left, bottom), (left + across, bottom), false);
        svg.line((left, bottom), (left, bottom - up), false);
        svg.text(left + across / 2.0 - 20.0, HEIGHT - 14.0, "time");
        svg.finish()
    }
}

const BINS_PER_DECADE: f64 = 8.0;
const BAR_MAX: usize = 50;
const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_tail_are_those_of_the_times() {
        let distribution = Distribution::of((1..=2001).rev().collect()).unwrap();
        assert_eq!(distribution.summary(), "2001 times: median 1001 ns, 99.9 % 1999 ns, maximum 2001 ns");
        assert_eq!(distribution.bins().iter().map(|(_, count)| count).sum::<usize>(), 2001);
        assert!(Distribution::of(Vec::new()).is_none());
    }

    #[test]
    fn a_bin_holds_what_begins_in_it() {
        let bins = Distribution::of(vec![0, 1, 1, 10, 99]).unwrap().bins();
        assert_eq!((bins[0], bins[8]), ((1.0, 3), (10.0, 1)));
        assert_eq!(bins.last().map(|(_, count)| *count), Some(1));
    }
}
