//! A run as run control tells it, once per second, with the processor time that all had by then.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::time::Time;
use nix::sys::resource::UsageWho;
use partition::cpu::{cpu_seconds, cpu_seconds_of};
use serde::Serialize;
use service::Events;
use transport::clock;

use super::super::BenchError;
use super::super::paired::{Figures, median};
use super::super::served::Served;

/// The statuses of a run. What they tell is of the moment when applications were asked before: each is as old as the others.
pub(super) struct Beats<'a> {
    served: &'a Served,
    events: Events,
    /// What pages have read.
    bytes: Arc<AtomicU64>,
    last: Option<Look>,
}

/// What was seen at one of them.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Time,
    built: f64,
    elapsed_s: f64,
    used_s: Used,
    bytes: f64,
}

/// Processor time: in seconds, or in processors.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Used {
    pub(super) control: f64,
    pub(super) agents: f64,
    pub(super) applications: f64,
    /// Of this process.
    pub(super) pages: f64,
}

/// A part of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    events: f64,
    seconds: f64,
    /// In processors.
    pub(super) used: Used,
    pub(super) bytes_per_s: f64,
}

impl<'a> Beats<'a> {
    pub(super) fn of(served: &'a Served, bytes: Arc<AtomicU64>) -> Result<Self, BenchError> {
        Ok(Self { served, events: served.control().events()?, bytes, last: None })
    }

    /// Waits for the next one.
    pub(super) fn look(&mut self) -> Result<(), BenchError> {
        let ended = || BenchError::NotServed("no run goes on any more".to_owned());
        let whole_s = self.last.map_or(0.0, |last| last.elapsed_s.floor());
        loop {
            let (event, status) = self.events.next().ok_or_else(ended)?;
            if event != "status" {
                continue;
            }
            let run = &status["run"];
            let (built, elapsed_s) = run["built"].as_f64().zip(run["elapsed_s"].as_f64()).ok_or_else(ended)?;
            if elapsed_s >= whole_s + 1.0 {
                let bytes = self.bytes.load(Ordering::Relaxed) as f64;
                let process_ended = || BenchError::NotServed("a process of the run has ended".to_owned());
                let used_s = Used::until_now(self.served).ok_or_else(process_ended)?;
                self.last = Some(Look { at: clock::now(), built, elapsed_s, used_s, bytes });
                return Ok(());
            }
        }
    }

    /// The run until so many further ones have come.
    pub(super) fn stretch(&mut self, looks: usize) -> Result<Stretch, BenchError> {
        let before = self.last.expect("it was looked at before anything was measured");
        (0..looks).try_for_each(|_| self.look())?;
        let after = self.last.expect("it was just looked at");
        let wall_s = after.at.since(before.at).as_secs_f64();
        Ok(Stretch {
            events: after.built - before.built,
            seconds: after.elapsed_s - before.elapsed_s,
            used: after.used_s.since(before.used_s, wall_s),
            bytes_per_s: (after.bytes - before.bytes) / wall_s,
        })
    }
}

impl Stretch {
    pub(super) fn figures(&self, bytes_per_event: f64) -> Figures {
        let Self { events, seconds, used, .. } = *self;
        let cores = used.control + used.agents + used.applications;
        Figures::of(events, Some(bytes_per_event), seconds, cores * seconds)
    }
}

impl Used {
    /// None if a process of the run has ended.
    fn until_now(served: &Served) -> Option<Self> {
        let agents = children_of(served.id());
        let mut applications = Vec::new();
        let mut parents = agents.clone();
        while let Some(parent) = parents.pop() {
            let children = children_of(parent);
            applications.extend(&children);
            parents.extend(children);
        }
        let sum = |processes: &[u32]| processes.iter().map(|process| cpu_seconds_of(*process)).sum::<Option<f64>>();
        Some(Self {
            control: served.cpu_s(),
            agents: sum(&agents)?,
            applications: sum(&applications)?,
            pages: cpu_seconds(UsageWho::RUSAGE_SELF),
        })
    }

    fn since(self, before: Self, seconds: f64) -> Self {
        Self::of(|used| (used(&self) - used(&before)) / seconds)
    }

    pub(super) fn median(all: &(impl Iterator<Item = Self> + Clone)) -> Self {
        Self::of(|used| median(all.clone().map(|one| used(&one))))
    }

    fn of(value: impl Fn(fn(&Self) -> f64) -> f64) -> Self {
        Self {
            control: value(|used| used.control),
            agents: value(|used| used.agents),
            applications: value(|used| used.applications),
            pages: value(|used| used.pages),
        }
    }
}

fn children_of(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let lines = tasks.filter_map(|task: io::Result<_>| fs::read_to_string(task.ok()?.path().join("children")).ok());
    lines.flat_map(|line| line.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}
