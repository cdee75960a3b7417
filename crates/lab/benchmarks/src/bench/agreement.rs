//! `weir bench reference`: the bare machine of event building over TCP, [`reference`](super::reference), beside another
//! program that does the same, such as one in C. What all ratios of `event-builder` rest on should not be slower than others' loops.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::resource::UsageWho;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

use super::paired::{Comparison, Figures, RatioOf};
use super::points::{Point, Points};
use super::reference::{self, Measurement};
use super::{BenchError, PATIENCE, event_builder};
use crate::bench::arguments::BenchArgs;
use partition::cpu::cpu_seconds;

/// All points; the first stands for all.
#[derive(Serialize)]
pub(crate) struct Found {
    #[serde(flatten)]
    points: Points<Parameters, Judged>,
    /// How far a ratio may be from 1.
    difference_max: f64,
}

/// What is measured.
#[derive(Clone, Debug, Serialize)]
struct Parameters {
    against: String,
    sources: u32,
    fragment_bytes: u32,
    /// Fragments that a source writes at a time.
    batch: u32,
    events_held: u32,
    seconds: f64,
    pairs: usize,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Judged {
    /// Whether the median ratio is within the bounds.
    within: bool,
}

/// What the other program prints; more keys do not matter.
#[derive(Deserialize)]
struct Printed {
    events_per_s: f64,
    cpu_us_per_event: f64,
}

/// Measures all points in alternation with the program.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let program = args.against.as_deref().ok_or(BenchError::NoProgram)?;
    let points = POINTS.into_iter().map(|(sources, fragment_bytes, batch)| {
        let parameters = Parameters {
            against: program.display().to_string(),
            sources,
            fragment_bytes,
            batch,
            events_held: event_builder::events_held_tcp(fragment_bytes),
            seconds: args.seconds / 5.0,
            pairs: PAIRS,
        };
        let pairs = (PAIRS, RatioOf::EventsPerS);
        let (ours, theirs) = (|| ours(&parameters), || theirs(program, &parameters));
        let comparison = Comparison::measure("reference", parameters.clone(), pairs, ours, theirs)?;
        let within = (comparison.compared().ratio() - 1.0).abs() <= DIFFERENCE_MAX;
        Ok(Point { comparison, more: Judged { within } })
    });
    let points = Points::new(points.collect::<Result<_, BenchError>>()?, |_| true);
    Ok(Found { points, difference_max: DIFFERENCE_MAX })
}

impl Found {
    /// Whether they differ by more than they may anywhere.
    pub(crate) fn is_off(&self) -> bool {
        self.points.iter().any(|point| !point.more.within)
    }

    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = "sources  fragment  batch  ours: events/s  theirs   ratio             CPU".to_owned();
        for Point { comparison, more: Judged { within } } in self.points.iter() {
            let (of, compared) = (comparison.parameters(), comparison.compared());
            let verdict = if *within { "within" } else { "NOT within" };
            text += &format!(
                "\n{:>7} {:>7} B {:>6} {:>15.0} {:>9.0}  {:<16} {:>5.2}  {verdict} {:.0} %",
                of.sources,
                of.fragment_bytes,
                of.batch,
                compared.result().events_per_s,
                compared.reference().events_per_s,
                compared.ratio_text(),
                compared.cpu_ratio(),
                self.difference_max * 100.0,
            );
        }
        text
    }
}

fn ours(parameters: &Parameters) -> Result<Figures, BenchError> {
    let &Parameters { sources, fragment_bytes, seconds, batch, events_held, .. } = parameters;
    let bare =
        reference::Parameters { sources, fragment_bytes, seconds, batch, events_held, written: false, summed: false };
    let cpu = || cpu_seconds(UsageWho::RUSAGE_SELF) + cpu_seconds(UsageWho::RUSAGE_CHILDREN);
    // As the other program: all of it, its buffers included.
    let cpu_before = cpu();
    let Measurement { events, seconds, .. } = reference::run(&bare, reference::spawn_source)?;
    Ok(Figures::of(events as f64, Some(parameters.event_bytes()), seconds, cpu() - cpu_before))
}

fn theirs(program: &Path, parameters: &Parameters) -> Result<Figures, BenchError> {
    let failed = |reason| BenchError::Program { program: program.display().to_string(), reason };
    let Parameters { sources, fragment_bytes, seconds, batch, events_held, .. } = parameters;
    let child = Command::new(program)
        .args([sources.to_string(), fragment_bytes.to_string(), seconds.to_string()])
        .args([batch.to_string(), events_held.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| failed(error.to_string()))?;
    let limit = Duration::from_secs_f64(10.0 * seconds) + START_MAX;
    let ended = ends_within(&child, limit);
    if !matches!(ended, Ok(true)) {
        // Both fail only for a child that has been waited for.
        let _ = child.kill();
        let _ = child.wait();
        let reason =
            ended.err().map_or_else(|| format!("not ended within {limit:?}: killed"), |error| error.to_string());
        return Err(failed(reason));
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())));
    }
    let Printed { events_per_s, cpu_us_per_event } =
        serde_json::from_slice(&output.stdout).map_err(|error| failed(format!("what it prints: {error}")))?;
    let bytes_per_s = Some(events_per_s * parameters.event_bytes());
    Ok(Figures { events_per_s, bytes_per_s, cpu_us_per_event, ..Figures::default() })
}

/// Waits for the end of a process that writes no more than a pipe holds.
fn ends_within(child: &Child, limit: Duration) -> io::Result<bool> {
    let child = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    let mut polled = [PollFd::new(&child, PollFlags::IN)];
    Ok(retry_on_intr(|| poll(&mut polled, Some(&limit)))? > 0)
}

impl Parameters {
    fn event_bytes(&self) -> f64 {
        f64::from(self.sources) * f64::from(self.fragment_bytes)
    }
}

/// Sources, bytes of a fragment, fragments written at a time: with 1 the references of event building, and one with more.
const POINTS: [(u32, u32, u32); 5] = [(4, 9000, 1), (4, 1000, 1), (4, 1000, 64), (4, 37_500, 1), (40, 37_500, 1)];
const PAIRS: usize = 7;
/// For the start of a program, besides what it measures.
const START_MAX: Duration = PATIENCE;
const DIFFERENCE_MAX: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_seen() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        assert!(!ends_within(&child, Duration::ZERO).unwrap());
        drop(child.stdin.take());
        assert!(ends_within(&child, Duration::from_secs(300)).unwrap());
        assert!(child.wait().unwrap().success());
    }
}
