//! Who computes when: processes on the cores of their hosts.

use std::time::Duration;

use base::time::Time;

use super::hosts::Hosts;

/// Processes, each with one thread for all of its components, on hosts with cores.
///
/// A process takes its inputs in the order of their arrival. Where a host has fewer cores than processes, an input also
/// waits for a core. It is given the one that is free first when it arrives.
pub(super) struct Processors {
    /// The process of each application.
    of: Vec<usize>,
    processes: Vec<Process>,
    /// When each core of each host is free, where cores are scarce.
    cores: Vec<Vec<Time>>,
}

struct Process {
    host: usize,
    bound: Option<usize>,
    free_at: Time,
    /// When the thread beside it, for files, is free.
    aside_free_at: Time,
    busy: Duration,
}

impl Processors {
    pub(super) fn new(hosts: &Hosts) -> Self {
        let process = |(host, bound): (&usize, &Option<u32>)| Process {
            host: *host,
            bound: bound.map(|core| core as usize),
            free_at: Time::ZERO,
            aside_free_at: Time::ZERO,
            busy: Duration::ZERO,
        };
        let on = |host: usize| hosts.processes.iter().filter(|process| **process == host).count();
        let is_bound =
            |host: usize| hosts.processes.iter().zip(&hosts.bound).any(|(on, to)| *on == host && to.is_some());
        let scarce = hosts.cores.iter().enumerate().map(|(host, &cores)| {
            let cores = cores as usize;
            if cores < on(host) || is_bound(host) { vec![Time::ZERO; cores] } else { Vec::new() }
        });
        Self {
            of: hosts.applications.clone(),
            cores: scarce.collect(),
            processes: hosts.processes.iter().zip(&hosts.bound).map(process).collect(),
        }
    }

    /// Takes processor time for an application; returns when it has had it, or `None` if at once.
    pub(super) fn take(&mut self, application: usize, now: Time, cost: Duration) -> Option<Time> {
        let process = &mut self.processes[self.of[application]];
        // What waits for this very moment goes first.
        if process.free_at < now && cost.is_zero() {
            return None;
        }
        let mut start = process.free_at.max(now);
        if !cost.is_zero()
            && let Some(core) = match process.bound {
                Some(bound) => self.cores[process.host].get_mut(bound),
                None => self.cores[process.host].iter_mut().min(),
            }
        {
            start = start.max(*core);
            *core = start + cost;
        }
        process.free_at = start + cost;
        process.busy += cost;
        Some(process.free_at)
    }

    /// When an application's process has done all that has arrived.
    pub(super) fn free_at(&self, application: usize) -> Time {
        self.processes[self.of[application]].free_at
    }

    /// The same in the thread beside, which always takes a message there and back.
    pub(super) fn take_aside(&mut self, application: usize, now: Time, cost: Duration) -> Time {
        let process = &mut self.processes[self.of[application]];
        process.aside_free_at = process.aside_free_at.max(now) + cost;
        process.busy += cost;
        process.aside_free_at
    }

    /// Processor time that was taken in all.
    pub(super) fn busy(&self) -> Duration {
        self.processes.iter().map(|process| process.busy).sum()
    }
}
