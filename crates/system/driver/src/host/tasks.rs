//! The tasks of a process, in the order in which a pass runs them.

use std::time::Duration;

use base::time::Time;
use transport::error::OsError;
use transport::scheduler::{Context, Scheduler, Task};
use transport::waker::Waker;

use super::{Host, LinkEvent, Section};

impl Host {
    /// Runs until `conductor`, which conducts the process, stops the scheduler. It acts behind finished work and before what
    /// a pass has produced is sent.
    ///
    /// # Errors
    /// The system cannot wait for connections.
    pub fn run<'t>(
        &mut self,
        mut scheduler: Scheduler<'t, Self>,
        conductor: impl Task<Self> + 't,
    ) -> Result<(), OsError> {
        let waker = scheduler.waker();
        scheduler.add("accept", Accept { waker, not_before: None, told: None });
        scheduler.add("receive", Receive::default());
        scheduler.add("sources", TakeFromSources::default());
        scheduler.add("local", Local);
        scheduler.add("deadlines", Deadlines::default());
        scheduler.add("work", Work::default());
        scheduler.add("conduct", conductor);
        scheduler.add("groups", Groups);
        scheduler.add("flush", Flush);
        scheduler.run(self)
    }
}

struct Accept {
    waker: Waker,
    /// The host was out of descriptors or memory.
    not_before: Option<Time>,
    /// When it was last told who takes the places of others.
    told: Option<Time>,
}

impl Task<Host> for Accept {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        context.shared.begin_metering();
        self.not_before.is_none_or(|time| time <= context.now) && context.shared.links.is_acceptable(context.now)
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        let host = &mut *context.shared;
        self.not_before = None;
        for _ in 0..ACCEPTED_PER_PASS {
            match host.links.accept(context.now, context.poller, &self.waker) {
                Ok(Some(accepted)) => {
                    if !accepted.in_a_crowd {
                        continue;
                    }
                    host.network.malformed += 1;
                    if self.told.is_none_or(|told| context.now.since(told) > BETWEEN_CROWDS) {
                        self.told = Some(context.now);
                        let who = host.links.crowd();
                        host.link_events.push_back(LinkEvent::Crowd { who });
                    }
                }
                Ok(None) => return,
                // The host's lack of descriptors or memory: the peer waits, and is accepted when there is some.
                Err(error) => {
                    self.not_before = Some(context.now + ACCEPT_AGAIN);
                    return host.link_events.push_back(LinkEvent::NotAccepted { reason: error.to_string() });
                }
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.not_before
    }
}

#[derive(Default)]
struct Receive {
    ready: Vec<super::LinkId>,
}

impl Task<Host> for Receive {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        self.ready.clear();
        self.ready.extend(context.shared.links.receivable(context.now));
        let links = &context.shared.links;
        !self.ready.is_empty() || links.has_unproven(context.now) || context.shared.has_datagrams(context.now)
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        for link in self.ready.drain(..) {
            context.shared.receive(context.now, link);
        }
        context.shared.hear_unproven(context.now);
        if context.shared.has_datagrams(context.now) {
            context.shared.receive_datagrams(context.now);
        }
        context.shared.serve_building(context.now);
        context.shared.flush_components(context.now);
    }
}

#[derive(Default)]
struct TakeFromSources {
    next: Option<Time>,
}

impl Task<Host> for TakeFromSources {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        let has_work = context.shared.have_sources_work(context.now);
        // With work there is no sleep before the next look.
        self.next = if has_work { None } else { context.shared.next_deadline_of_sources() };
        has_work
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        context.shared.take_from_sources(context.now, context.poller);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next
    }
}

struct Local;

impl Task<Host> for Local {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        context.shared.has_local_work()
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        context.shared.deliver_local();
    }
}

#[derive(Default)]
struct Deadlines {
    next: Option<Time>,
}

impl Task<Host> for Deadlines {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        let host = &mut *context.shared;
        self.next = [host.next_deadline(), host.links.next_deadline()].into_iter().flatten().min();
        self.next.is_some_and(|next| next <= context.now)
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        let host = &mut *context.shared;
        host.run_deadlines(context.now);
        host.network.malformed += host.links.close_silent(context.now) as u64;
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next
    }
}

#[derive(Default)]
struct Work {
    next: Option<Time>,
}

impl Task<Host> for Work {
    /// Finished work and pages that come back wake the scheduler, but for ends of traces.
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        context.shared.tell_stamps();
        self.next = context.shared.stamping.next_look(context.now);
        context.shared.has_work()
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        context.shared.collect_work(context.now);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next
    }
}

struct Groups;

impl Task<Host> for Groups {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        context.shared.has_touched()
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        context.shared.flush_components(context.now);
    }
}

struct Flush;

impl Task<Host> for Flush {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        context.shared.links.is_flushable()
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        let host = &mut *context.shared;
        host.metering.enter(|| {
            let (connections, bytes) = host.links.flushable_bytes();
            (Section::Write, connections, bytes)
        });
        host.links.flush(context.now);
        host.leave();
        if host.links.datagrams.is_some() {
            host.enter(|| (Section::WriteDatagrams, 1, 0));
            let bytes = host.links.flush_datagrams(context.now);
            host.metering.add(0, bytes);
            host.leave();
        }
    }
}

/// Further peers wait until the next pass.
const ACCEPTED_PER_PASS: usize = 16;

/// How often it is told who takes the places of others.
const BETWEEN_CROWDS: Duration = Duration::from_secs(10);

/// Descriptors come back when somebody else lets go of some.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);
