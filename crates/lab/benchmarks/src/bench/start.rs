//! `weir bench start`: how long the largest example takes until all its applications run, and until all have ended.
//!
//! That is `examples/full-size.toml`, each of its applications a process: 1,600 links in 160 read-out systems, 100
//! event builders. It starts when the first process is launched. It runs when all are connected and ready and are
//! told to. It has stopped when the last has ended and been waited for; triggers in between do not count.
//!
//! The reference is as many processes of the same program, which connect and say who they are. Processor time is
//! that of the start on both sides: until all run, or have connected.

use configuration::Partition;
use nix::sys::resource::UsageWho;
use serde::Serialize;
use transport::clock;

use super::exchange::LargeReplies;
use super::paired::{Comparison, Figures, RatioOf, Unit, median};
use super::service::{self, Service, ServiceTalk};
use super::{BenchError, PATIENCE, sound};
use crate::bench::arguments::{BenchArgs, BenchIdle};
use partition::cpu::cpu_seconds;
use partition::{Placement, Run};
use terminal::conduct;

/// What was found.
#[derive(Serialize)]
pub(crate) struct Found {
    #[serde(flatten)]
    comparison: Comparison<Parameters>,
    /// Of each run, in seconds.
    start_s: [f64; PAIRS],
    stop_s: [f64; PAIRS],
    /// How long a start may take.
    aim_s: f64,
    /// Whether all starts took less.
    within: bool,
}

/// What is started.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    example: &'static str,
    processes: u32,
    pairs: usize,
}

/// Starts and stops in alternation with the reference; `--seconds` is how long the largest example runs in between, at most
/// [`RUN_S_MAX`].
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let run_s = args.seconds.min(RUN_S_MAX);
    let text = configuration::template(EXAMPLE).expect("the example is one of the templates");
    let settings = [
        format!("run.duration={} ms", (run_s * 1e3).round()),
        format!("processes.start_timeout={START_S_MAX} s"),
        "run.stop_timeout=60 s".to_owned(),
    ];
    let partition = Partition::parse(EXAMPLE, text, &settings)?;
    let (mut runs, mut start_s, mut stop_s) = (Vec::new(), [0.0; PAIRS], [0.0; PAIRS]);
    let mut processes = 0;
    for (start_s, stop_s) in start_s.iter_mut().zip(&mut stop_s) {
        let began = clock::now();
        let partition = partition.clone();
        let conducted = conduct(Run::new(partition).place(Placement::processes()))?;
        sound(&conducted)?;
        processes = conducted.assembly.applications.len() as u32;
        *start_s = conducted.starting.as_secs_f64();
        *stop_s = clock::now().since(began).as_secs_f64() - *start_s - run_s;
        let cpu_starting = conducted.cpu_starting.map(|cpu| cpu.as_secs_f64());
        runs.push((figures(processes, *start_s, cpu_starting), bare(processes)?));
    }
    let parameters = Parameters { example: EXAMPLE, processes, pairs: PAIRS };
    let comparison = Comparison::of("start", parameters, RatioOf::EventsPerS, &runs);
    Ok(Found { comparison, start_s, stop_s, aim_s: AIM_S, within: start_s.iter().all(|&start_s| start_s < AIM_S) })
}

impl Found {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        let Self { comparison, start_s, stop_s, aim_s, within } = self;
        let seconds = |of: &[f64; PAIRS]| {
            let most = of.iter().copied().fold(0.0, f64::max);
            format!("{:.2} s, at most {most:.2} s", median(of.iter().copied()))
        };
        let verdict = if *within { "within" } else { "NOT within" };
        format!("{}\nstart {}: {verdict} {aim_s} s; stop {}", comparison.to_text(), seconds(start_s), seconds(stop_s))
    }
}

/// Processes that connect, say who they are and end.
fn bare(processes: u32) -> Result<Figures, BenchError> {
    let own_cpu_before = cpu_seconds(UsageWho::RUSAGE_SELF);
    let began = clock::now();
    let talk = ServiceTalk {
        request_bytes: MESSAGE_BYTES,
        reply_bytes: MESSAGE_BYTES,
        large: LargeReplies::default(),
        in_flight: 1,
        idle: BenchIdle::Park,
    };
    let service = Service { clients: processes, talk, fragment_bytes: MESSAGE_BYTES, fragments: 1, seconds: 0.0 };
    let served = service::run(&service)?;
    let own_cpu = cpu_seconds(UsageWho::RUSAGE_SELF) - own_cpu_before;
    let cpu = served.clients_cpu_seconds.map(|of_clients| of_clients + own_cpu);
    Ok(figures(processes, served.began.since(began).as_secs_f64(), cpu))
}

/// Without a processor time where the kernel does not say it: null in JSON.
fn figures(processes: u32, seconds: f64, cpu_seconds: Option<f64>) -> Figures {
    let cpu_seconds = cpu_seconds.unwrap_or(f64::NAN);
    Figures { unit: Unit::Process, ..Figures::of(f64::from(processes), None, seconds, cpu_seconds) }
}

const EXAMPLE: &str = "full-size";
const PAIRS: usize = 3;
const AIM_S: f64 = 10.0;
/// A start that takes longer than it should is measured, too.
const START_S_MAX: u64 = PATIENCE.as_secs();
const RUN_S_MAX: f64 = 1.0;
const MESSAGE_BYTES: u32 = 8;
