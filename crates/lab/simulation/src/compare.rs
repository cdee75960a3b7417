//! A prediction beside what was measured.

use std::io::{self, Write};
use std::path::Path;

use partition::human::si;
use partition::summary::Summary;

/// The summary of a live run.
pub(super) fn read(path: &Path) -> Result<Summary, String> {
    let text = super::read_text(path)?;
    serde_json::from_str(&text).map_err(|error| {
        format!("{}: {error}: expected a summary that `weir run --summary` has written", path.display())
    })
}

/// Prints both, and their ratio.
pub(super) fn print(out: &mut dyn Write, simulated: &Summary, live: &Summary) -> io::Result<()> {
    writeln!(out, "\n{:<28}{:>12}{:>12}{:>9}", "", "simulated", "live", "ratio")?;
    for (name, of) in ROWS {
        let (one, other) = (of(simulated), of(live));
        let ratio = if other == 0.0 { "–".to_owned() } else { format!("{:.3}", one / other) };
        writeln!(out, "{name:<28}{:>12}{:>12}{ratio:>9}", si(one, ""), si(other, ""))?;
    }
    Ok(())
}

type Quantity = fn(&Summary) -> f64;

const ROWS: [(&str, Quantity); 10] = [
    ("level-1 events / s", |summary| summary.rates_hz.level1),
    ("events built / s", |summary| summary.rates_hz.built),
    ("events recorded / s", |summary| summary.rates_hz.recorded),
    ("bytes built / s", |summary| summary.throughput_bytes_per_s.built),
    ("level-2 latency p50 / s", |summary| summary.latency_ns.level2.p50 as f64 * 1e-9),
    ("level-2 latency p99 / s", |summary| summary.latency_ns.level2.p99 as f64 * 1e-9),
    ("build latency p50 / s", |summary| summary.latency_ns.build.p50 as f64 * 1e-9),
    ("build latency p99 / s", |summary| summary.latency_ns.build.p99 as f64 * 1e-9),
    ("processor time / s", |summary| summary.cpu_s),
    ("dead time", |summary| summary.dead_time_fraction),
];
