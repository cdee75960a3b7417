//! The task that receives and joins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use base::time::Time;
use dataflow::level1::roib::{Roib, RoibCounters, RoibParameters, SourceRecord, Taken};
use dataflow::level1::trigger::Trigger;
use transport::link::{Filled, Link, Lost};
use transport::page_pool::Pool;
use transport::poller::Poller;
use transport::scheduler::{Context, Task};
use transport::tcp::{Connection, Listener, TcpOptions};
use transport::waker::Waker;

use super::{Incoming, Level1Frame, NOTICES_MAX};

/// Receives from all processors, joins their records, and hands the events out as far as there is room.
pub(super) struct Receive {
    listener: Listener,
    options: TcpOptions,
    pool: Pool,
    limits: Limits,
    connections: BTreeMap<u64, Processor>,
    next_connection: u64,
    roib: Roib,
    outlet: Outlet,
    sources: usize,
    /// Sources that have said that they have ended.
    ended: u64,
    told_end: bool,
    told_counts: bool,
    /// Kinds of trouble that were told of, in the order of [`troubles`].
    told: [bool; TROUBLES],
    refused: Arc<AtomicU64>,
}

struct Processor {
    connection: Connection,
    /// Which source it is, once it has said so.
    source: Option<u32>,
    accepted_at: Time,
    heard_at: Time,
    /// What the joiner has no room for; nothing is read until it has.
    held: Option<SourceRecord>,
}

/// The way out, of bounded room.
pub(super) struct Outlet {
    sender: SyncSender<Incoming>,
    waiting: Arc<AtomicUsize>,
    room: usize,
    waker: Waker,
    /// Whether something had to wait for room.
    was_full: bool,
}

/// What connections may do.
pub(super) struct Limits {
    pub(super) connections_max: usize,
    /// How long a source says nothing before another connection may take its place.
    pub(super) silence: Duration,
}

impl Receive {
    pub(super) fn new(
        listener: Listener,
        options: TcpOptions,
        pool: Pool,
        limits: Limits,
        roib: RoibParameters,
        mut outlet: Outlet,
        refused: Arc<AtomicU64>,
    ) -> Self {
        let sources = roib.sources;
        outlet.notice(format!("waits for {sources} level-1 processors at {}", listener.local_address()));
        Self {
            listener,
            options,
            pool,
            limits,
            connections: BTreeMap::new(),
            next_connection: 0,
            roib: Roib::new(roib),
            outlet,
            sources,
            ended: 0,
            told_end: false,
            told_counts: false,
            told: [false; TROUBLES],
            refused,
        }
    }

    fn accept(&mut self, now: Time, poller: &mut Poller) {
        // An error is the host's lack of descriptors or memory: the processor that waits is served later.
        while let Ok(Some(mut connection)) = self.listener.accept(&self.options, &self.pool) {
            if self.connections.len() >= self.limits.connections_max || connection.register(poller).is_err() {
                self.refuse("more connections than level-1 processors");
                continue;
            }
            let processor = Processor { connection, source: None, accepted_at: now, heard_at: now, held: None };
            self.connections.insert(self.next_connection, processor);
            self.next_connection += 1;
        }
    }

    fn refuse(&mut self, why: &str) {
        let count = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        self.outlet.notice(format!("a level-1 connection was closed, number {count}: {why}"));
    }

    fn receive_all(&mut self, now: Time) {
        let ready: Vec<u64> =
            self.connections.iter().filter(|(_, one)| one.is_receivable(now)).map(|(id, _)| *id).collect();
        for id in ready {
            if !self.connections.contains_key(&id) {
                continue;
            }
            if let Err(why) = self.receive(now, id) {
                let gone = self.connections.remove(&id).expect("it was received from");
                match (why, gone.source) {
                    (Gone::Bad(why), _) => self.refuse(&why),
                    (Gone::Closed(_), Some(source)) if self.has_ended(source) => {}
                    (Gone::Closed(why), Some(source)) => {
                        self.outlet.notice(format!("level-1 processor {source} is gone: {why}"));
                    }
                    (Gone::Closed(_), None) => {}
                }
            }
        }
    }

    /// A bounded amount: what one read brings.
    fn receive(&mut self, now: Time, id: u64) -> Result<(), Gone> {
        for _ in 0..FILLS_PER_PASS {
            loop {
                let processor = self.connections.get_mut(&id).expect("a connection that is there");
                if processor.held.is_some() {
                    return Ok(());
                }
                let Some(frame) = processor.connection.next_slice() else { break };
                let frame = Level1Frame::decode(frame.as_bytes()).map_err(|bad| Gone::Bad(bad.to_string()))?;
                self.on_frame(now, id, frame)?;
            }
            let processor = self.connections.get_mut(&id).expect("a connection that is there");
            match processor.connection.fill(now) {
                Ok(Filled::Some | Filled::FramesWaiting) => processor.heard_at = now,
                Ok(Filled::WouldBlock | Filled::PoolEmpty) => return Ok(()),
                Err(lost @ (Lost::Malformed(_) | Lost::ClosedWithinFrame { .. })) => {
                    return Err(Gone::Bad(lost.to_string()));
                }
                Err(lost) => return Err(Gone::Closed(lost.to_string())),
            }
        }
        Ok(())
    }

    fn on_frame(&mut self, now: Time, id: u64, frame: Level1Frame) -> Result<(), Gone> {
        let source = frame.source;
        self.identify(now, id, source)?;
        let Some(record) = frame.record else {
            self.ended |= 1 << source;
            return Ok(());
        };
        if self.has_ended(source) {
            return Err(Gone::Bad(format!("source {source} sends, but has said that it has ended")));
        }
        if let Taken::Full(record) = self.roib.take(now, source as usize, record) {
            let processor = self.connections.get_mut(&id).expect("a connection that is there");
            processor.held = Some(record);
        }
        Ok(())
    }

    fn identify(&mut self, now: Time, id: u64, source: u32) -> Result<(), Gone> {
        match self.connections[&id].source {
            Some(known) if known == source => return Ok(()),
            Some(known) => return Err(Gone::Bad(format!("source {known} calls itself {source}"))),
            None => {}
        }
        if source as usize >= self.sources {
            return Err(Gone::Bad(format!(
                "source {source}: expected one below level1.sources, which is {}",
                self.sources
            )));
        }
        if let Some((&old, other)) = self.connections.iter().find(|(_, other)| other.source == Some(source)) {
            // One that is held back cannot be heard.
            if other.held.is_some() || now < other.heard_at + self.limits.silence {
                return Err(Gone::Bad(format!("source {source} is connected already")));
            }
            self.connections.remove(&old);
            self.outlet
                .notice(format!("level-1 processor {source} has connected again; its silent connection is closed"));
        }
        self.connections.get_mut(&id).expect("a connection that is there").source = Some(source);
        Ok(())
    }

    fn has_ended(&self, source: u32) -> bool {
        self.ended >> source & 1 == 1
    }

    /// Ends connections whose peers do not say who they are.
    fn close_silent(&mut self, now: Time) {
        let silent = |one: &Processor| one.silent_until().is_some_and(|until| until <= now);
        let before = self.connections.len();
        self.connections.retain(|_, one| !silent(one));
        for _ in self.connections.len()..before {
            self.refuse("it sent nothing");
        }
    }

    /// Hands out joined events; those that wait for their place with the joiner get it.
    fn join(&mut self, now: Time) {
        if self.ended.count_ones() as usize == self.sources && self.connections.values().all(|one| one.held.is_none()) {
            self.roib.end();
        }
        while self.outlet.has_room() {
            let Some(joined) = self.roib.next(now) else { break };
            self.outlet.trigger(joined.trigger);
        }
        self.outlet.was_full = !self.outlet.has_room();
        for processor in self.connections.values_mut() {
            let (Some(record), Some(source)) = (processor.held.take(), processor.source) else { continue };
            if let Taken::Full(record) = self.roib.take(now, source as usize, record) {
                processor.held = Some(record);
            }
        }
    }

    fn tell_end(&mut self) {
        let all_ended = self.ended.count_ones() as usize == self.sources;
        let none_held = self.connections.values().all(|one| one.held.is_none());
        if self.told_end || !all_ended || !none_held || self.roib.next_deadline().is_some() || !self.outlet.has_room() {
            return;
        }
        self.told_end = true;
        self.tell_counts();
        self.outlet.end();
    }

    /// Everything that was counted, once.
    fn tell_counts(&mut self) {
        if core::mem::replace(&mut self.told_counts, true) {
            return;
        }
        let counters = self.roib.counters();
        let text = format!(
            "level-1 processors: {} events complete, {} incomplete (records missing by source {:?}), {} records twice, {} late, \
             {} of wild ids, {} of other bunch crossings, {} regions of interest dropped, {} connections closed",
            counters.complete,
            counters.incomplete,
            counters.missing,
            counters.duplicates,
            counters.late,
            counters.unplaced,
            counters.bcid_mismatches,
            counters.rois_dropped,
            self.refused.load(Ordering::Relaxed)
        );
        self.outlet.send(Incoming::Notice(text));
    }

    /// The first of each kind of trouble is told at once.
    fn tell_troubles(&mut self) {
        for (told, (count, what)) in self.told.iter_mut().zip(troubles(self.roib.counters())) {
            if count > 0 && !core::mem::replace(told, true) {
                self.outlet.notice(format!("level-1 processors: {what}, for the first time; the end tells how often"));
            }
        }
    }

    fn can_join(&self, now: Time) -> bool {
        self.outlet.has_room() && self.roib.next_deadline().is_some_and(|due| due <= now)
    }
}

impl Task for Receive {
    fn poll(&mut self, context: &mut Context<'_, ()>) -> bool {
        let now = context.now;
        self.outlet.was_full && self.outlet.has_room()
            || self.listener.is_acceptable()
            || self.connections.values().any(|one| one.is_receivable(now))
            || self.can_join(now)
            || self.connections.values().filter_map(Processor::silent_until).any(|until| until <= now)
    }

    fn action(&mut self, context: &mut Context<'_, ()>) {
        let now = context.now;
        self.accept(now, context.poller);
        self.receive_all(now);
        self.close_silent(now);
        // Room for a record that was held lets more records in, and these more events out.
        self.join(now);
        self.join(now);
        self.tell_troubles();
        self.tell_end();
    }

    fn next_deadline(&self) -> Option<Time> {
        let join = self.roib.next_deadline().filter(|_| self.outlet.has_room());
        let silent = self.connections.values().filter_map(Processor::silent_until).min();
        [join, silent].into_iter().flatten().min()
    }
}

/// Also a stop ends the reader.
impl Drop for Receive {
    fn drop(&mut self) {
        self.tell_counts();
    }
}

fn troubles(counters: &RoibCounters) -> [(u64, &'static str); TROUBLES] {
    [
        (counters.incomplete, "an event went out without the records of all sources"),
        (counters.duplicates, "a source sent two records of an event"),
        (counters.late, "a record came after its event had gone out"),
        (counters.unplaced, "a record had an id far from those of all others"),
        (counters.bcid_mismatches, "sources named different bunch crossings for an event"),
        (counters.rois_dropped, "an event had more regions of interest than a message holds"),
    ]
}

const TROUBLES: usize = 6;

/// Why a connection ends.
enum Gone {
    Closed(String),
    Bad(String),
}

impl Processor {
    fn is_receivable(&self, now: Time) -> bool {
        self.held.is_none() && self.connection.is_receivable(now)
    }

    fn silent_until(&self) -> Option<Time> {
        self.source.is_none().then(|| self.accepted_at + SILENT_MAX)
    }
}

impl Outlet {
    /// A way out with this room for triggers; the channel has more, for notices.
    pub(super) fn new(sender: SyncSender<Incoming>, waiting: Arc<AtomicUsize>, room: usize, waker: Waker) -> Self {
        Self { sender, waiting, room, waker, was_full: false }
    }

    fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Acquire) < self.room
    }

    fn trigger(&mut self, trigger: Trigger) {
        self.send(Incoming::Trigger(trigger));
    }

    fn end(&mut self) {
        self.send(Incoming::Ended);
    }

    /// It is dropped if too many wait.
    fn notice(&mut self, text: String) {
        if self.waiting.load(Ordering::Acquire) < self.room + NOTICES_MAX {
            self.send(Incoming::Notice(text));
        }
    }

    /// Counted first: what is taken was counted before.
    fn send(&mut self, incoming: Incoming) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        if self.sender.try_send(incoming).is_err() {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
        }
        self.waker.wake();
    }
}

const FILLS_PER_PASS: usize = 4;
/// A connection that does not say within this time which source it is, is closed.
const SILENT_MAX: Duration = Duration::from_secs(5);
