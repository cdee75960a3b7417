//! The tables of a study for people, in 100 columns.

use std::fmt::Write;

use super::binomial::Estimate;
use super::report::{Efficiencies, Level, Report, Requests, SampleReport};
use partition::human::{grouped, percent, si};

/// All of it.
pub(super) fn report(report: &Report) -> String {
    let mut text = String::new();
    for sample in &report.samples {
        one_sample(&mut text, sample).expect("a string takes all");
        text.push('\n');
    }
    if report.samples.len() > 1 {
        all_samples(&mut text, &report.samples).expect("a string takes all");
    }
    text.push_str(RATES_NOTE);
    text
}

fn one_sample(text: &mut String, sample: &SampleReport) -> std::fmt::Result {
    writeln!(text, "{}: {}", sample.sample, about(sample))?;
    writeln!(text, "  {:14} {:>9} {:>24} {:>11}", "", "events", "rate", "rejection")?;
    for level in &sample.levels {
        let Level { name, accepted, rate_hz, rejection, .. } = level;
        let (events, rejection) = (grouped(*accepted), factor(*rejection));
        writeln!(text, "  {name:14} {events:>9} {:>24} {rejection:>11}", rate(*rate_hz))?;
    }
    writeln!(
        text,
        "  {:8} {:10} {:>9} {:>9} {:>9} {:>24} {:>11}",
        "chain", "item", "input", "level 2", "filter", "rate", "rejection"
    )?;
    for chain in &sample.chains {
        let counts = [chain.input, chain.level2, chain.event_filter].map(grouped);
        let [input, level2, filter] = counts;
        let (rate, rejection) = (rate(chain.event_filter_rate_hz), factor(chain.rejection));
        let (name, item) = (&chain.name, &chain.item);
        writeln!(text, "  {name:8} {item:10} {input:>9} {level2:>9} {filter:>9} {rate:>24} {rejection:>11}")?;
    }
    for efficiencies in &sample.efficiencies {
        writeln!(text, "  {}", efficiency_line(efficiencies))?;
    }
    for line in request_lines(&sample.requests) {
        writeln!(text, "  {line}")?;
    }
    for note in notes(sample) {
        writeln!(text, "  note: {note}")?;
    }
    Ok(())
}

fn all_samples(text: &mut String, samples: &[SampleReport]) -> std::fmt::Result {
    writeln!(
        text,
        "{:24} {:>8} {:>7} {:>7} {:>7} {:>14} {:>14} {:>7} {:>7}",
        "sample", "events", "level 1", "level 2", "filter", "electron %", "muon %", "bytes %", "ROBs"
    )?;
    for sample in samples {
        let [level1, level2, filter] = [0, 1, 2].map(|level| sample.levels[level].accepted);
        let [electron, muon] = ["electron", "muon"].map(|lepton| plateau(sample, lepton));
        let requests = &sample.requests;
        let bytes =
            requests.mean_fraction_of_event_bytes.map_or_else(String::new, |part| format!("{:.1}", 100.0 * part));
        let robs = requests.mean_robs_per_event.map_or_else(String::new, |robs| format!("{robs:.2}"));
        let (name, events) = (&sample.sample, sample.events);
        writeln!(
            text,
            "{name:24} {events:>8} {level1:>7} {level2:>7} {filter:>7} {electron:>14} {muon:>14} {bytes:>7} {robs:>7}"
        )?;
    }
    writeln!(text)
}

/// What the sample is.
pub(super) fn about(sample: &SampleReport) -> String {
    let pile_up = if sample.mu > 0.0 { format!(" with {} interactions of pile-up", sample.mu) } else { String::new() };
    let weighted = if sample.weighted { ", weighted" } else { "" };
    let cross_section = si_small(sample.cross_section_mb * 1e-3, "b");
    format!("{}{pile_up}, {} events{weighted}, cross section {cross_section}", sample.process, grouped(sample.events))
}

/// The efficiencies on the plateau.
pub(super) fn efficiency_line(efficiencies: &Efficiencies) -> String {
    let Efficiencies { lepton, pt_min_gev, eta_max, leptons_above, curves, .. } = efficiencies;
    let parts: Vec<String> = curves
        .iter()
        .filter_map(|curve| {
            let (value, error) = (100.0 * curve.efficiency?, 100.0 * curve.efficiency_error?);
            Some(format!("{} {value:.1} ± {error:.1} %", curve.name))
        })
        .collect();
    format!("{lepton}s, pT > {pt_min_gev} GeV, |η| < {eta_max}: {} of {leptons_above}", parts.join(", "))
}

/// What level 2 asked for, in sentences.
pub(super) fn request_lines(requests: &Requests) -> Vec<String> {
    let Some(robs) = requests.mean_robs_per_event else { return Vec::new() };
    let value = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
    let part = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), percent);
    let mut lines = vec![
        format!(
            "level 2 asked for {robs:.2} of {} ROBs per event, {} per RoI, in {} requests",
            requests.robs,
            value(requests.robs_per_roi),
            value(requests.mean_requests_per_event)
        ),
        format!(
            "it moved {} of the bytes of an event on average, {} of all bytes",
            part(requests.mean_fraction_of_event_bytes),
            part(requests.fraction_of_all_bytes)
        ),
    ];
    if !requests.rejected_after_requests.is_empty() {
        let steps = requests.rejected_after_requests.iter().enumerate().filter(|(_, events)| **events > 0);
        let steps: Vec<String> = steps.map(|(after, events)| format!("{} after {after}", grouped(*events))).collect();
        lines.push(format!("events that it rejected, by requests: {}", steps.join(", ")));
    }
    lines
}

/// What one must know to read the numbers of a sample.
pub(super) fn notes(sample: &SampleReport) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if sample.only_level1_accepted {
        notes.push("the file lacks the events that level 1 rejected: efficiencies are relative to level 1");
    }
    if sample.mu > 0.0 && sample.process != "minbias" {
        notes.push(if sample.weighted {
            "do not trust the rates: pile-up fires triggers, in events with heavy weights as in light ones"
        } else {
            "the rates count triggers that the pile-up fired as the process's"
        });
    }
    notes
}

/// A rate with its error, in the same unit and to the same digit.
pub(super) fn rate(rate: Estimate) -> String {
    if rate.value <= 0.0 {
        return "0 Hz".to_owned();
    }
    let (factor, unit) =
        RATE_UNITS.into_iter().rfind(|(factor, _)| rate.value >= 0.9995 * factor).unwrap_or(RATE_UNITS[0]);
    let (value, error) = (rate.value / factor, rate.error / factor);
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} ± {error:.digits$} {unit}")
}

/// A rejection factor.
pub(super) fn factor(rejection: Option<f64>) -> String {
    match rejection {
        None => "–".to_owned(),
        Some(factor) if factor < 99.95 => format!("{factor:.2}"),
        Some(factor) => si(factor, "").trim_end().to_owned(),
    }
}

/// The efficiency of the chain on the plateau, in percent.
fn plateau(sample: &SampleReport, lepton: &str) -> String {
    let curve = sample.efficiencies.iter().find(|efficiencies| efficiencies.lepton == lepton);
    let curve = curve.and_then(|efficiencies| efficiencies.curves.last());
    let parts = curve.and_then(|curve| curve.efficiency.zip(curve.efficiency_error));
    parts.map_or_else(String::new, |(value, error)| format!("{:.1} ± {:.1}", 100.0 * value, 100.0 * error))
}

/// With three digits and a decimal prefix, of small numbers, too.
fn si_small(value: f64, unit: &str) -> String {
    let small = [(1e-12, "p"), (1e-9, "n"), (1e-6, "µ"), (1e-3, "m")];
    let scaled = small.into_iter().rev().find(|(factor, _)| value < 0.9995 && value >= 0.9995 * factor);
    scaled.map_or_else(|| si(value, unit), |(factor, prefix)| si(value / factor, &format!("{prefix}{unit}")))
}

const RATE_UNITS: [(f64, &str); 5] = [(1e-6, "µHz"), (1e-3, "mHz"), (1.0, "Hz"), (1e3, "kHz"), (1e6, "MHz")];

pub(super) const RATES_NOTE: &str = "\
Rates are at 10³⁴ cm⁻² s⁻¹ for the process alone, after level 1, level 2 and the event filter, with statistical
errors; those of the levels leave out the random trigger L1_RD0. Errors of efficiencies are binomial.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_readable() {
        assert_eq!(rate(Estimate { value: 88_123.0, error: 19_000.0 }), "88.1 ± 19.0 kHz");
        assert_eq!(rate(Estimate { value: 0.25, error: 0.05 }), "250 ± 50 mHz");
        assert_eq!(rate(Estimate::default()), "0 Hz");
        assert_eq!([Some(1.5), Some(6543.0), None].map(factor), ["1.50", "6.54 k", "–"]);
        assert_eq!(si_small(1.55e-9, "b"), "1.55 nb");
    }
}
