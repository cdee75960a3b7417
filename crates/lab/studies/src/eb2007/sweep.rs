//! A scenario run again and again with one key changed.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use configuration::Partition;
use simulator::world::Trace;

use super::super::error::StudyError;
use simulation::simulate;

/// The configuration that is varied.
pub(super) struct Scenario {
    path: PathBuf,
    text: String,
}

/// One curve: what is changed for each value, and what came of it.
pub(super) struct Sweep {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
    values: Vec<u32>,
    event_kib: u32,
    tcp: bool,
    keys: fn(u32) -> Vec<String>,
    duration_ms: fn(u32) -> u32,
}

/// One run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Point {
    pub(super) value: u32,
    pub(super) built_hz: f64,
    pub(super) bytes_per_s: f64,
    pub(super) reasks_per_event: f64,
}

impl Point {
    /// The paper's megabytes: 114.2 of 2²⁰ bytes per second are what Gigabit Ethernet carries in datagrams of 1472 bytes.
    pub(super) fn mib_per_s(&self) -> f64 {
        self.bytes_per_s / f64::from(1 << 20)
    }
}

impl Scenario {
    /// The file, or the one that is built in.
    pub(super) fn open(path: Option<&PathBuf>) -> Result<Self, StudyError> {
        let Some(path) = path else {
            let (path, text) = super::built_in();
            return Ok(Self { path, text: text.to_owned() });
        };
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| StudyError::Scenario { path: path.clone(), cause: error.to_string() })?;
        Ok(Self { path: path.clone(), text })
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn run(&self, value: u32, keys: &[String]) -> Result<Point, StudyError> {
        let partition = Partition::parse(&self.name(), &self.text, keys)?;
        let bad = |cause: String| StudyError::Scenario { path: self.path.clone(), cause };
        let simulated = simulate(partition, Trace::default()).map_err(|error| bad(error.to_string()))?;
        let summary = simulated.summary();
        let account = &summary.accounting;
        if account.residual != 0 {
            return Err(bad(format!("{keys:?} leave a residual of {}", account.residual)));
        }
        let built = account.built_complete + account.built_incomplete;
        Ok(Point {
            value,
            built_hz: summary.rates_hz.built,
            bytes_per_s: summary.throughput_bytes_per_s.built,
            reasks_per_event: summary.reasks as f64 / built.max(1) as f64,
        })
    }
}

impl Sweep {
    /// By datagrams, in runs of a quarter of a second.
    pub(super) fn new(name: String, event_kib: u32, values: &[u32], keys: fn(u32) -> Vec<String>) -> Self {
        Self {
            name,
            points: vec![Point::default(); values.len()],
            values: values.to_vec(),
            event_kib,
            tcp: false,
            keys,
            duration_ms: |_| 250,
        }
    }

    pub(super) fn by_tcp(self) -> Self {
        Self { tcp: true, ..self }
    }

    pub(super) fn lasting(self, duration_ms: fn(u32) -> u32) -> Self {
        Self { duration_ms, ..self }
    }

    /// All that is changed for a value.
    fn keys(&self, value: u32) -> Vec<String> {
        let fragment_bytes = self.event_kib * 1024 / SOURCES - FRAGMENT_OVERHEAD_BYTES;
        let mut keys = (self.keys)(value);
        keys.push(format!("ros.fragment={{ kind = \"fixed\", size = \"{fragment_bytes} B\" }}"));
        keys.push(format!("run.duration=\"{} ms\"", (self.duration_ms)(value)));
        if self.tcp {
            keys.extend(["event_request", "event_reply"].map(|message| format!("transport.{message}=\"connection\"")));
        }
        keys
    }
}

/// Runs all sweeps on two processors.
pub(super) fn run(scenario: &Scenario, sweeps: &mut [Sweep]) -> Result<(), StudyError> {
    let jobs = sweeps.iter().enumerate().flat_map(|(sweep, it)| (0..it.values.len()).map(move |place| (sweep, place)));
    let jobs = Mutex::new(jobs.collect::<Vec<_>>().into_iter());
    let planned = &*sweeps;
    let work = || {
        let mut done = Vec::new();
        loop {
            let next = jobs.lock().expect("no run panics").next();
            let Some((sweep, place)) = next else { return Ok(done) };
            let value = planned[sweep].values[place];
            let point = scenario.run(value, &planned[sweep].keys(value))?;
            terminal::complain(&format!("{}, {value}: {:.0} Hz", planned[sweep].name, point.built_hz));
            done.push((sweep, place, point));
        }
    };
    let (mine, others) = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mine: Result<Vec<_>, StudyError> = work();
        (mine, other.join().expect("no run panics"))
    });
    for (sweep, place, point) in mine?.into_iter().chain(others?) {
        sweeps[sweep].points[place] = point;
    }
    Ok(())
}

/// [EB2007 §IV].
const SOURCES: u32 = 40;

/// What the header of a fragment adds to its data.
const FRAGMENT_OVERHEAD_BYTES: u32 = 52;
