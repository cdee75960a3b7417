//! `weir bench simulation`: how many inputs of components the simulator takes in a second of processor time.
//!
//! The partition is that of `scenarios/eb2007-full.toml`, one second of which makes some seven million inputs. The
//! reference is the event queue alone, with as many events as inputs. Each is taken out and another one put in, with
//! ten thousand in it. How often an input costs what an event of the queue does depends little on the machine.

use base::random::Random;
use configuration::Partition;
use nix::sys::resource::UsageWho;
use serde::Serialize;
use simulator::engine::Queue;
use simulator::world::Trace;

use super::BenchError;
use super::paired::{Comparison, Figures, RatioOf, Unit};
use crate::bench::arguments::BenchArgs;
use partition::cpu::cpu_seconds;
use simulation::simulate;

/// What is simulated.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Parameters {
    scenario: &'static str,
    /// Virtual time of each run.
    simulated_seconds: f64,
    pairs: usize,
    /// What the reference has in its queue.
    queued: usize,
}

/// Simulates and queues in alternation.
pub(crate) fn measure(args: &BenchArgs) -> Result<Comparison<Parameters>, BenchError> {
    let simulated_seconds = args.seconds * SIMULATED_PER_SECOND;
    let duration = format!("run.duration={} us", (simulated_seconds * 1e6).ceil() as u64);
    let partition = Partition::parse(SCENARIO_NAME, SCENARIO, &[duration])?;
    let parameters = Parameters { scenario: SCENARIO_NAME, simulated_seconds, pairs: PAIRS, queued: QUEUED };
    let runs = (0..PAIRS).map(|_| {
        let simulated = simulate(partition.clone(), Trace::None)?;
        let inputs = simulated.outcomes.inputs;
        Ok((figures(inputs, simulated.own_cpu_s), queue(inputs)))
    });
    let runs = runs.collect::<Result<Vec<_>, BenchError>>()?;
    Ok(Comparison::of("simulation", parameters, RatioOf::EventsPerS, &runs))
}

/// The "hold" model of event queues.
fn queue(events: u64) -> Figures {
    let (mut queue, mut random) = (Queue::new(), Random::new(1));
    (0..QUEUED as u32).for_each(|event| queue.after(random.below(AHEAD_PS), event));
    let before = cpu_seconds(UsageWho::RUSAGE_SELF);
    for _ in 0..events {
        let event = queue.pop().expect("the queue is never empty");
        queue.after(random.below(AHEAD_PS), event);
    }
    figures(events, cpu_seconds(UsageWho::RUSAGE_SELF) - before)
}

fn figures(events: u64, cpu_s: f64) -> Figures {
    // Too few take no time that the kernel would tell.
    let cpu_s = cpu_s.max(1e-6);
    Figures { unit: Unit::Input, ..Figures::of(events as f64, None, cpu_s, cpu_s) }
}

const SCENARIO_NAME: &str = "eb2007-full.toml";
const SCENARIO: &str = include_str!("../../../../../scenarios/eb2007-full.toml");
const PAIRS: usize = 5;
/// A measurement of the usual length then takes about a second.
const SIMULATED_PER_SECOND: f64 = 0.1;
const QUEUED: usize = 10_000;
const AHEAD_PS: u64 = 20_000_000;
