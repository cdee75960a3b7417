//! `weir bench memory`: whether a long run holds on to memory.
//!
//! Ten million small events go through the complete building path: ROSs in processes of their own, DFM and SFI in another,
//! TCP between them. Meanwhile the resident set of all processes is sampled from `/proc`. It must be as large at the end as
//! it was soon after the start: what the configuration bounds does not grow with the events. How fast that is, one shorter run of
//! the bare builder of [`reference`](super::reference) says, fragment by fragment.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use base::ids::Role;
use configuration::Partition;
use serde::Serialize;
use transport::clock;

use super::paired::{Comparison, Figures, RatioOf};
use super::{BenchError, reference};
use crate::bench::arguments::BenchArgs;
use partition::{Placement, Run};
use terminal::conduct;

/// What was found.
#[derive(Serialize)]
pub(crate) struct Memory {
    #[serde(flatten)]
    comparison: Comparison<Parameters>,
    events: u64,
    seconds: f64,
    /// Of all processes together, in bytes: medians of the samples of each tenth of the run.
    resident_bytes: Vec<f64>,
    resident_bytes_max: u64,
    /// The last tenth less the second: the first one fills what is bounded.
    growth_bytes: f64,
    growth_bytes_per_event: f64,
    /// Whether it grew by less than a page per thousand events and a hundredth of itself.
    flat: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    sources: u32,
    fragment_bytes: u32,
    transport: &'static str,
    events: u64,
}

/// Runs and samples.
pub(crate) fn measure(args: &BenchArgs) -> Result<Memory, BenchError> {
    let parameters =
        Parameters { sources: SOURCES, fragment_bytes: FRAGMENT_BYTES, transport: "tcp", events: args.events };
    let partition = Partition::parse("memory bench", &configuration(&parameters), &[])?;
    let sampler = Sampler::start();
    let conducted = conduct(Run::new(partition).place(Placement::apart(|role| role == Role::Ros)));
    let samples = sampler.stop();
    let conducted = conducted?;
    let events = super::sound(&conducted)?.built_complete;
    let seconds = conducted.duration.as_secs_f64();
    let (tenths, max) = (tenths(&samples), samples.iter().copied().max().unwrap_or(0));
    let growth = tenths.last().zip(tenths.get(1)).map_or(0.0, |(last, second)| last - second);
    let per_event = growth / events as f64;
    let result = parameters.figures(events, seconds, conducted.cpu.as_secs_f64());
    let pair = (result, bare(&parameters, args.seconds)?);
    Ok(Memory {
        comparison: Comparison::of("memory", parameters, RatioOf::EventsPerS, &[pair]),
        events,
        seconds,
        growth_bytes: growth,
        growth_bytes_per_event: per_event,
        flat: per_event < FLAT_BYTES_PER_EVENT && growth < FLAT_PART * max as f64,
        resident_bytes: tenths,
        resident_bytes_max: max,
    })
}

impl Memory {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        let Self { comparison, events, seconds, growth_bytes, growth_bytes_per_event, flat, .. } = self;
        let megabytes = |bytes: f64| format!("{:.2}", bytes / 1e6);
        let tenths: Vec<String> = self.resident_bytes.iter().map(|bytes| megabytes(*bytes)).collect();
        format!(
            "{}\n{events} events in {seconds:.1} s; resident set of all processes by tenths of the run, in MB: {}\n\
             largest {} MB; from the second tenth to the last {} MB, {growth_bytes_per_event:.4} bytes per event: {}",
            comparison.to_text(),
            tenths.join(" "),
            megabytes(self.resident_bytes_max as f64),
            megabytes(*growth_bytes),
            if *flat { "flat" } else { "it grows" }
        )
    }
}

fn bare(parameters: &Parameters, seconds: f64) -> Result<Figures, BenchError> {
    let &Parameters { sources, fragment_bytes, .. } = parameters;
    let (batch, events_held, written, summed) = (1, EVENTS_HELD, false, false);
    let bare = reference::Parameters { sources, fragment_bytes, seconds, batch, events_held, written, summed };
    let measured = reference::run(&bare, reference::spawn_source)?;
    Ok(parameters.figures(measured.events, measured.seconds, measured.cpu_seconds))
}

impl Parameters {
    fn figures(&self, events: u64, seconds: f64, cpu_seconds: f64) -> Figures {
        let bytes = f64::from(self.sources) * f64::from(self.fragment_bytes);
        Figures::of(events as f64, Some(bytes), seconds, cpu_seconds)
    }
}

/// Samples in a thread of its own.
struct Sampler {
    end: SyncSender<()>,
    thread: JoinHandle<Vec<u64>>,
}

impl Sampler {
    fn start() -> Self {
        let (end, ended) = mpsc::sync_channel(1);
        let thread = std::thread::spawn(move || {
            let (mut samples, mut interval) = (Vec::new(), SAMPLE_INTERVAL_MIN);
            let mut next = clock::now();
            loop {
                samples.push(resident_bytes());
                if samples.len() == SAMPLES_MAX {
                    samples = samples.into_iter().step_by(2).collect();
                    interval *= 2;
                }
                next = next + interval;
                match ended.recv_timeout(next.since(clock::now())) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return samples,
                }
            }
        });
        Self { end, thread }
    }

    fn stop(self) -> Vec<u64> {
        // The thread takes this one at its next look.
        let _ = self.end.try_send(());
        self.thread.join().expect("the sampler does not panic")
    }
}

/// Resident set of this process and its children, in bytes. A process that ends meanwhile has none.
fn resident_bytes() -> u64 {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let ours = pid == own || number("PPid:") == Some(u64::from(own));
        ours.then(|| number("VmRSS:").map(|kilobytes| kilobytes << 10)).flatten()
    })
    .sum()
}

/// The median of each tenth; fewer of fewer than ten samples.
fn tenths(samples: &[u64]) -> Vec<f64> {
    let parts = samples.len().min(10);
    let part = |index: usize| &samples[index * samples.len() / parts..(index + 1) * samples.len() / parts];
    (0..parts).map(|index| super::paired::median(part(index).iter().map(|bytes| *bytes as f64))).collect()
}

fn configuration(parameters: &Parameters) -> String {
    let Parameters { sources, fragment_bytes, events, .. } = parameters;
    format!(
        r#"
        partition.name = "bench"
        run.events = {events}
        dfm = {{ input = "self" }}
        sfi = {{ count = 1, events = 128, building = {EVENTS_HELD}, outstanding_requests = {requests}, max_event_size = "4 kB", request_timeout = "60 s" }}
        [ros]
        count = {sources}
        input = "emulator"
        fragment = {{ kind = "fixed", size = "{fragment_bytes} B" }}
        page_size = "512 B"
        pages = 1024
        request_timeout = "60 s"
        "#,
        requests = EVENTS_HELD * sources,
    )
}

const SOURCES: u32 = 2;
const FRAGMENT_BYTES: u32 = 64;
const EVENTS_HELD: u32 = 64;
const SAMPLE_INTERVAL_MIN: Duration = Duration::from_millis(5);
/// Then every second one is dropped.
const SAMPLES_MAX: usize = 1000;
const FLAT_BYTES_PER_EVENT: f64 = 4.096;
const FLAT_PART: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_set_of_this_process_is_seen() {
        let before = resident_bytes();
        let memory = core::hint::black_box(vec![1_u8; 64 << 20]);
        let grown = resident_bytes() - before;
        assert!(grown >= 32 << 20, "{grown} bytes for {}", memory.len());
    }

    #[test]
    fn a_tenth_is_a_median() {
        let samples: Vec<u64> = (0..100).collect();
        assert_eq!(tenths(&samples)[..2], [4.5, 14.5]);
        assert_eq!(tenths(&samples[..3]), [0.0, 1.0, 2.0]);
        assert!(tenths(&[]).is_empty());
    }
}
