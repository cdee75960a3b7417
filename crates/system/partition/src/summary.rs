//! The summary of a run (DESIGN §7), for other programs.

mod links;
mod named;
mod selection;
mod simulated;
mod verdict;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::histogram::Histogram;
use base::ids::{NodeId, Role};
use configuration::Tolerate;
use control::accounting::Accounting;
use control::controller::{Application, Ending};
use dataflow::message::FileRecord;
use dataflow::node::RUN_CONTROL;
use dataflow::report::{
    self, CarrierKind, DatagramCounts, L2puCounters, Level1Counters, Report, SfiCounters, SfoCounters,
};
use serde::{Deserialize, Serialize};

pub use links::{Clock, Damage, Device, Link, NamedSource, Withheld};
pub(crate) use links::{cause_in_words, named_sources};
pub use named::Named;
pub use selection::{Chain, Failures, Level2Data, Selection, Windows};
pub use simulated::{Frames, Messages, Simulated, StruckFault};
pub use verdict::{Losses, RunState};

use crate::keeping::Away;
use verdict::Verdict;

/// What is known of a run besides the reports and the account.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// Run number.
    pub run_number: u32,
    /// All applications of the partition.
    pub applications: Vec<Application>,
    /// Whether the run was forced to end.
    pub forced: bool,
    /// Losses with which the run is still well.
    pub tolerate: Tolerate,
    /// From the start of the run to the end of its triggers; rates refer to it.
    pub duration: Duration,
    /// From the launch until all applications ran; none if they never did, and in a simulation.
    pub starting: Option<Duration>,
    /// Processor time of all processes, user and system.
    pub cpu: Duration,
    /// Traffic of all applications.
    pub network: Network,
    /// Names of the chains of the menu.
    pub chains: Vec<String>,
    /// Whether processing tasks decide in the event filter.
    pub has_tasks: bool,
    /// Bytes of headers and trailers of each fragment of a link.
    pub fragment_overhead_bytes: u64,
    /// Applications that were started again, in order.
    pub restarts: Vec<Restarted>,
    /// When the run had no run control.
    pub away: Vec<Away>,
    /// What only a simulation knows.
    pub simulated: Option<Simulated>,
    /// The sources that send by themselves, and then level-1 processors.
    pub sources: Vec<NamedSource>,
}

/// The summary; the keys and their order are a contract, further ones follow behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of these keys.
    pub schema: u32,
    /// Run number.
    pub run_number: u32,
    /// How the run ended.
    pub state: RunState,
    /// From the start of the run to the end of its triggers, in seconds.
    pub duration_s: f64,
    /// Every event from level-1 accept to file.
    pub accounting: Account,
    /// Events per second.
    pub rates_hz: Rates,
    /// Bytes of events per second.
    pub throughput_bytes_per_s: Throughput,
    /// Latencies, in nanoseconds.
    pub latency_ns: Latencies,
    /// Processor time of all processes, in seconds.
    pub cpu_s: f64,
    /// Triggers vetoed, as a fraction of triggers offered.
    pub dead_time_fraction: f64,
    /// Who waited for whom for more than 1 % of the run; the longest first.
    pub blocked_by: Vec<BlockedBy>,
    /// Requests for data that were repeated, by SFIs and L2PUs.
    pub reasks: u64,
    /// Traffic of all applications.
    pub network: Network,
    /// All files.
    pub files: Vec<FileSummary>,
    /// What was selected, in a run with a menu or with processing tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selection>,
    /// Events that are lost, incomplete, or decided without all their data, by the key of the cause; those that are more than
    /// `run.tolerate` allows.
    #[serde(default)]
    pub degraded_by: Losses,
    /// Those that `run.tolerate` allows.
    #[serde(default, skip_serializing_if = "Losses::is_empty")]
    pub tolerated: Losses,
    /// Why the state is not `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Applications that died.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub died: Vec<String>,
    /// Applications that died and were started again, in order; what was lost with them is in the account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<Restarted>,
    /// What became of frames and messages in a simulation, and the faults that struck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    /// From the launch until all applications ran, in seconds; absent in a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_s: Option<f64>,
    /// Keys whose counts are lower bounds: nobody knows what an application has counted between its last report and its death. The
    /// account is exact all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower_bounds: Vec<String>,
    /// What came of each source that sends by itself, and of each level-1 processor, in the order of the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Events that lack a source that they shall not go on without.
    #[serde(default)]
    pub withheld: Withheld,
    /// When run control had died and nobody had taken over yet. The run went on meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_control_away: Vec<Away>,
}

/// An application that died and was started again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restarted {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub how: String,
    /// When, in seconds since the start of the run.
    pub at_s: f64,
    /// For how long it was away, in seconds; absent if the run ended before it was back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_s: Option<f64>,
}

/// The account of a run; for the meaning of each count see [`Accounting`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of `Accounting`, documented there")]
pub struct Account {
    pub level1: u64,
    pub level2_rejected: u64,
    pub level2_accepted: u64,
    pub level2_forced: u64,
    pub level2_lost: u64,
    pub built_complete: u64,
    pub built_incomplete: u64,
    pub not_built: u64,
    pub lost_after_build: u64,
    pub filter_rejected: u64,
    pub filter_accepted: u64,
    pub filter_debug: u64,
    pub lost_in_recording: u64,
    pub recorded: u64,
    pub recorded_copies: u64,
    pub duplicates: u64,
    pub residual: u64,
    #[serde(default)]
    pub level2_incomplete: u64,
}

/// Events per second at three places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Level-1 events.
    pub level1: f64,
    /// Events built, complete or not.
    pub built: f64,
    /// Distinct events recorded.
    pub recorded: f64,
}

/// Bytes of events per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Of events built.
    pub built: f64,
    /// Of events recorded.
    pub recorded: f64,
}

/// Latencies of the selection and of building.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// From the level-1 result to the level-2 decision.
    pub level2: Latency,
    /// From the assignment to the end of building.
    pub build: Latency,
}

/// A distribution of latencies, in nanoseconds; zeros if it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50: u64,
    /// 99 of 100 are below.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

/// Time that an application was held up by another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockedBy {
    /// Who waited.
    pub who: String,
    /// For whom.
    pub by: String,
    /// Why, in words.
    pub cause: String,
    /// For which part of the run.
    pub fraction: f64,
}

/// Traffic of all applications.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Messages received.
    pub messages: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
    /// Messages refused: of another run, or of a former life of a peer.
    pub stale: u64,
    /// Messages refused: not what the protocol allows.
    pub malformed: u64,
    /// Messages received, by what carried them, in a run of several processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carriers: Option<Carriers>,
    /// Bytes received by each network port of read-out systems, where these have several (`ros.ports`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u64>,
    /// Datagrams, in a run in which messages travel in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Named<DatagramCounts>>,
    /// Sum of all bytes of fragments that arrived for building, modulo 2^64, with `sfi.check = "data"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sum: Option<u64>,
    /// Messages that nobody should have sent, by sender, receiver and kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unexpected: Vec<Unexpected>,
}

/// Messages of one kind that were refused because their sender has not to say them, or not to that receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unexpected {
    /// Name of the sender.
    pub from: String,
    /// Name of the receiver.
    pub to: String,
    /// The kind of message.
    pub message: String,
    /// How many there were.
    pub count: u64,
}

/// What came over each kind of carrier, to all applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carriers {
    /// TCP connections.
    pub tcp: Carried,
    /// Shared memory.
    pub shm: Carried,
    /// Datagrams.
    pub udp: Carried,
}

/// What came over one kind of carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Messages.
    pub messages: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
}

impl From<[report::Carried; CarrierKind::COUNT]> for Carriers {
    fn from([tcp, shm, udp]: [report::Carried; CarrierKind::COUNT]) -> Self {
        let carried = |report::Carried { messages, bytes }: report::Carried| Carried { messages, bytes };
        Self { tcp: carried(tcp), shm: carried(shm), udp: carried(udp) }
    }
}

/// A recorded file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSummary {
    /// Where it is.
    pub path: String,
    /// Stream as `type_name`.
    pub stream: String,
    /// Events in it.
    pub events: u64,
    /// Its size.
    pub bytes: u64,
    /// Adler-32 of all its bytes, 8 hexadecimal digits in capitals (format note §11.8); empty of a simulated file.
    pub adler32: String,
}

impl Summary {
    /// The summary of a run that has ended.
    pub fn new(facts: &RunFacts, ending: &Ending, account: &Accounting) -> Self {
        let seconds = facts.duration.as_secs_f64();
        let per_second = |count: u64| fraction(count as f64, seconds);
        let all = ending.lives.all();
        let of = |role: Role| all.values().filter(move |report| report.role == role);
        let level1 = Level1Counters::total(of(Role::Level1));
        let (l2pu, sfi) = (L2puCounters::total(of(Role::L2pu)), SfiCounters::total(of(Role::Sfi)));
        let verdict = Verdict::new(&facts.tolerate, facts.forced, ending, account);
        Self {
            schema: SCHEMA,
            run_number: facts.run_number,
            state: verdict.state,
            duration_s: seconds,
            accounting: Account::from(account),
            rates_hz: Rates {
                level1: per_second(account.level1),
                built: per_second(account.built_complete + account.built_incomplete),
                recorded: per_second(account.recorded),
            },
            throughput_bytes_per_s: Throughput {
                built: per_second(sfi.bytes_built),
                recorded: per_second(SfoCounters::total(of(Role::Sfo)).in_files().bytes),
            },
            latency_ns: Latencies { level2: latency(of(Role::L2sv)), build: latency(of(Role::Dfm)) },
            cpu_s: facts.cpu.as_secs_f64(),
            dead_time_fraction: fraction(level1.vetoed as f64, level1.offered as f64),
            blocked_by: blocked_by(facts, ending),
            reasks: sfi.reasks + sfi.pushed_late + l2pu.reasks,
            network: Network { unexpected: unexpected(facts, ending, all.values()), ..facts.network.clone() },
            files: ending.files.iter().map(FileSummary::from).collect(),
            selection: Selection::new(facts, ending),
            degraded_by: verdict.degraded_by,
            tolerated: verdict.tolerated,
            reason: verdict.reason,
            died: ending.dead.iter().map(|&node| facts.name(node)).collect(),
            restarts: facts.restarts.clone(),
            run_control_away: facts.away.clone(),
            simulated: facts.simulated.clone(),
            start_s: facts.starting.map(|starting| starting.as_secs_f64()),
            lower_bounds: lower_bounds(facts, ending, account),
            links: links::links(&facts.sources, &all.values()),
            withheld: links::withheld(of(Role::Efd)),
        }
    }

    /// Events that were lost with applications that died, or in a forced end, and events built without all their data.
    pub fn lost_and_incomplete(&self) -> (u64, u64) {
        let a = &self.accounting;
        (a.level2_lost + a.not_built + a.lost_after_build + a.lost_in_recording, a.built_incomplete)
    }

    /// The summary as JSON, with a line feed at its end.
    ///
    /// # Panics
    ///
    /// Never: numbers, strings and lists are JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers, strings and lists are JSON") + "\n"
    }

    /// Writes the summary to a file, which is never seen half written.
    ///
    /// # Errors
    ///
    /// The file cannot be written; the message says which one, and why.
    pub fn write_to(&self, path: &Path) -> Result<(), String> {
        let json = self.to_json();
        // Such as /dev/stdout, which a rename would replace.
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return fs::write(path, json).map_err(|error| not_written(path, &error));
        }
        let temporary = temporary_beside(path)?;
        let written = File::create(&temporary)
            .and_then(|mut file| file.write_all(json.as_bytes()))
            .and_then(|()| fs::rename(&temporary, path));
        written.map_err(|error| {
            // It may not even have been made.
            let _ = fs::remove_file(&temporary);
            not_written(path, &error)
        })
    }
}

impl RunFacts {
    /// The name of an application.
    pub fn name(&self, node: NodeId) -> String {
        let application = self.applications.iter().find(|application| application.node == node);
        application.map_or_else(|| "run control".to_owned(), |application| application.name.clone())
    }
}

impl From<&Accounting> for Account {
    fn from(account: &Accounting) -> Self {
        Self {
            level1: account.level1,
            level2_rejected: account.level2_rejected,
            level2_accepted: account.level2_accepted,
            level2_forced: account.level2_forced,
            level2_lost: account.level2_lost,
            built_complete: account.built_complete,
            built_incomplete: account.built_incomplete,
            not_built: account.not_built,
            lost_after_build: account.lost_after_build,
            filter_rejected: account.filter_rejected,
            filter_accepted: account.filter_accepted,
            filter_debug: account.filter_debug,
            lost_in_recording: account.lost_in_recording,
            recorded: account.recorded,
            recorded_copies: account.recorded_copies,
            duplicates: account.duplicates,
            residual: account.residual,
            level2_incomplete: account.level2_incomplete,
        }
    }
}

impl From<&FileRecord> for FileSummary {
    fn from(file: &FileRecord) -> Self {
        Self {
            path: file.path.clone(),
            stream: file.stream.clone(),
            events: file.events,
            bytes: file.bytes,
            adler32: format!("{:08X}", file.adler32),
        }
    }
}

/// Whether all that applications of a role have counted is a lower bound.
pub fn is_lower_bound(role: Role, facts: &RunFacts, ending: &Ending, recorded: u64) -> bool {
    let of_role = facts.applications.iter().filter(|app| app.role == role);
    let is_cut_short = of_role.clone().any(|app| ending.lives.cut_short().contains(&app.node));
    let reports: Vec<Report> = of_role.filter_map(|app| ending.lives.of(app.node)).collect();
    // A recorder that returns finds in its files what its former life had counted.
    is_cut_short && (role != Role::Sfo || SfoCounters::total(reports.iter()).in_files().recorded < recorded)
}

fn lower_bounds(facts: &RunFacts, ending: &Ending, account: &Accounting) -> Vec<String> {
    let is_bound = |roles: &[Role]| roles.iter().any(|&role| is_lower_bound(role, facts, ending, account.recorded));
    let bounds: [(&str, &[Role]); 4] = [
        ("throughput_bytes_per_s.built", &[Role::Sfi]),
        ("throughput_bytes_per_s.recorded", &[Role::Sfo]),
        ("reasks", &[Role::Sfi, Role::L2pu]),
        ("selection", if facts.chains.is_empty() && !facts.has_tasks { &[] } else { &[Role::L2pu, Role::Efd] }),
    ];
    let of_roles = bounds.into_iter().filter(|(_, roles)| is_bound(roles)).map(|(key, _)| key);
    let of_all = (!ending.lives.cut_short().is_empty()).then_some("network");
    of_roles.chain(of_all).map(str::to_owned).collect()
}

fn latency<'a>(reports: impl Iterator<Item = &'a Report>) -> Latency {
    let mut sum = Histogram::default();
    reports.for_each(|report| sum.merge(&report.latency_ns));
    Latency { p50: sum.quantile(0.5), p99: sum.quantile(0.99), max: sum.max() }
}

/// What nobody should have sent, with the names of both sides.
fn unexpected<'a>(facts: &RunFacts, ending: &Ending, reports: impl Iterator<Item = &'a Report>) -> Vec<Unexpected> {
    let by_control = ending.unexpected.iter().map(|refused| (RUN_CONTROL, refused));
    let by_applications = reports.flat_map(|report| report.unexpected.iter().map(|refused| (report.node, refused)));
    let of = |(to, refused): (NodeId, &report::Unexpected)| Unexpected {
        from: facts.name(refused.from),
        to: facts.name(to),
        message: refused.message.clone(),
        count: refused.count,
    };
    by_control.chain(by_applications).map(of).collect()
}

fn blocked_by(facts: &RunFacts, ending: &Ending) -> Vec<BlockedBy> {
    let run_ns = facts.duration.as_nanos() as f64;
    let reports = ending.lives.all();
    let reports = &reports;
    let all = reports.iter().flat_map(|(&node, report)| {
        report.blocked.iter().map(move |blocked| BlockedBy {
            who: facts.name(node),
            by: facts.name(blocked.by),
            cause: cause_in_words(blocked, &facts.sources, reports.values()),
            // Who still waits while the run drains waits for longer than the run.
            fraction: fraction(blocked.time_ns as f64, run_ns).min(1.0),
        })
    });
    let mut long: Vec<BlockedBy> = all.filter(|blocked| blocked.fraction > BLOCKED_FRACTION_MIN).collect();
    long.sort_by(|a, b| b.fraction.total_cmp(&a.fraction));
    long
}

fn not_written(path: &Path, error: &io::Error) -> String {
    format!("cannot write the summary {}: {error}", path.display())
}

/// 0 of nothing.
fn fraction(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// In the same directory, since a file is renamed within a file system only.
fn temporary_beside(path: &Path) -> Result<PathBuf, String> {
    let Some(name) = path.file_name() else {
        return Err(format!("cannot write the summary {}: expected the name of a file", path.display()));
    };
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}", std::process::id()));
    Ok(path.with_file_name(temporary))
}

const SCHEMA: u32 = 1;

/// Shorter times are noise.
const BLOCKED_FRACTION_MIN: f64 = 0.01;
