//! One source into one read-out system, which takes the fragments with its whole driver. The source leads: each fragment is a trigger,
//! is issued, and cleared. What level 1 and the DFM would do besides is left out ([`stand_ins`](super::stand_ins)).

use std::io;
use std::path::Path;
use std::process::{Child, Command};

use base::ids::Role;
use base::time::Time;
use configuration::Partition;
use dataflow::report::RosCounters;
use driver::scratch::Scratch;
use nix::sys::resource::UsageWho;
use partition::cpu::{cpu_seconds, cpu_seconds_of};
use partition::{LoneReadOut, Seen};

use super::super::{BenchError, PATIENCE};
use super::stand_ins::{Clearer, Issuer, Nobody};

/// What carries the fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    Shared,
    Tcp,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pushed {
    pub(super) fragments: u64,
    pub(super) seconds: f64,
    /// Processor time of the program and of the read-out system meanwhile.
    pub(super) source_cpu_s: f64,
    pub(super) readout_cpu_s: f64,
}

/// The counts at a moment.
#[derive(Clone, Copy)]
struct Mark {
    now: Time,
    fragments: u64,
    source_cpu_s: f64,
    readout_cpu_s: f64,
}

/// Measures. `source` makes the command of a source that connects to an address and proves the key of a file. It has ended when this
/// returns.
pub(super) fn run(
    carrier: Carrier,
    fragment_bytes: u32,
    seconds: f64,
    source: impl FnOnce(&str, &Path) -> Command,
) -> Result<Pushed, BenchError> {
    let failed = |what| move |error: io::Error| BenchError::System { what, error };
    let scratch = Scratch::new().map_err(failed("a temporary directory"))?;
    let key = scratch.path().join("key");
    std::fs::write(&key, KEY).map_err(failed("a temporary file"))?;
    let configuration = configuration(carrier, fragment_bytes, scratch.path());
    let partition = Partition::parse("links bench", &configuration, &[])?;
    let readout = LoneReadOut::open(partition, |assembly, role| {
        let one = |role| assembly.of(role)[0];
        match role {
            Role::Level1 => Box::new(Issuer { ros: one(Role::Ros), dfm: one(Role::Dfm), issued: 0 }),
            Role::Dfm => Box::new(Clearer::new()),
            _ => Box::new(Nobody),
        }
    });
    let readout = readout.map_err(BenchError::Run)?;
    let child = source(&readout.addresses()[0], &key).spawn().map_err(failed("the program of the source"))?;
    let mut watch = Watch { source: Running(child), seconds, marks: Vec::new(), began: None, failure: None };
    readout.run(|seen| watch.is_over(seen)).map_err(BenchError::Run)?;
    match (watch.failure, &watch.marks[..]) {
        (Some(failure), _) => Err(failure),
        (None, [first, last]) => Ok(Pushed {
            fragments: last.fragments - first.fragments,
            seconds: last.now.since(first.now).as_secs_f64(),
            source_cpu_s: last.source_cpu_s - first.source_cpu_s,
            readout_cpu_s: last.readout_cpu_s - first.readout_cpu_s,
        }),
        (None, _) => Err(BenchError::Interrupted),
    }
}

struct Watch {
    source: Running,
    seconds: f64,
    /// The first when all pages have been used, the last at the end.
    marks: Vec<Mark>,
    began: Option<Time>,
    failure: Option<BenchError>,
}

/// Ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only for a child that has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Watch {
    fn is_over(&mut self, seen: &Seen<'_>) -> bool {
        let began = *self.began.get_or_insert(seen.now);
        if let Ok(Some(status)) = self.source.0.try_wait() {
            let why = seen.notices.last().cloned().unwrap_or_default();
            self.failure = Some(BenchError::SourceEnded { status, why });
        } else if self.marks.is_empty() && seen.now.since(began) > PATIENCE {
            self.failure = Some(BenchError::SourceSilent);
        }
        let c = RosCounters::total(std::iter::once(&seen.report));
        if c.fragments_in != c.cleared + c.resident {
            self.failure = Some(BenchError::Dropped { dropped: c.fragments_in - c.cleared - c.resident });
        }
        if self.failure.is_some() {
            return true;
        }
        let is_due = match self.marks.first() {
            None => c.fragments_in >= WARM_FRAGMENTS,
            Some(first) => seen.now.since(first.now).as_secs_f64() >= self.seconds,
        };
        if is_due {
            self.marks.push(Mark {
                now: seen.now,
                fragments: c.fragments_in,
                source_cpu_s: cpu_seconds_of(self.source.0.id()).unwrap_or(f64::NAN),
                readout_cpu_s: cpu_seconds(UsageWho::RUSAGE_THREAD),
            });
        }
        self.marks.len() == 2
    }
}

fn configuration(carrier: Carrier, fragment_bytes: u32, place: &Path) -> String {
    let at = match carrier {
        Carrier::Shared => format!("shm:{}/source.sock", place.display()),
        Carrier::Tcp => "tcp://127.0.0.1:0".to_owned(),
    };
    format!(
        r#"
        partition = {{ name = "bench", key = "{KEY}" }}
        level1 = {{ source = "link", leader = "source", in_flight = 1024 }}
        ros = {{ count = 1, pages = {PAGES} }}
        source = [{{ name = "source", at = "{at}", size_max = "{fragment_bytes} B" }}]
        dfm = {{}}
        sfi = {{ count = 1 }}
        "#,
    )
}

const KEY: &str = "of a benchmark, proved to nobody else";
const PAGES: u64 = 4096;
/// The first use of a page costs more than each later one.
const WARM_FRAGMENTS: u64 = 4 * PAGES;
