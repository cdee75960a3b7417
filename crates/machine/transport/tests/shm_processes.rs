//! Links through shared memory between real processes, some of which are killed: this program runs itself again.
#![cfg(target_os = "linux")]

use base::bulk::{Bulk, PageSlice};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use transport::clock;
use transport::frame::FrameLimits;
use transport::idle::IdleStrategy;
use transport::link::{Link, Lost, SendError};
use transport::page_pool::{Pool, PoolOptions};
use transport::scheduler::{Context, Scheduler, Task};
use transport::shm::{Process, ShmLink, ShmListener, ShmOptions};

const CHILD: &str = "WEIR_TEST_SHM_CHILD";
const LEN_MIN: usize = 8;
const PAGE_LEN: usize = 16 << 10;
const PAGES: usize = 64;

/// What a process uses: pages of its own, and others to receive into.
struct Parts {
    process: Process,
    receive: Pool,
    copies: Pool,
    lent: Pool,
}

impl Parts {
    fn new() -> Self {
        let pool = |name: &str| PoolOptions { name: name.into(), page_len: PAGE_LEN, pages: PAGES, prefault: false };
        let mut options = ShmOptions::new(FrameLimits::new(LEN_MIN, PAGE_LEN).unwrap());
        options.ring_bytes = 16 << 10;
        options.tickets_max = 64;
        let (copies, lent) = (Pool::shared(&pool("copies")).unwrap(), Pool::shared(&pool("lent")).unwrap());
        let process = Process::new(&options, copies.clone(), vec![lent.clone()]).unwrap();
        Self { process, receive: Pool::new(&pool("receive")).unwrap(), copies, lent }
    }

    fn in_use(&self) -> [usize; 3] {
        [&self.receive, &self.copies, &self.lent].map(|pool| pool.counters().in_use)
    }
}

fn len_of(index: u32) -> usize {
    LEN_MIN + (index as usize * 397) % (PAGE_LEN - LEN_MIN)
}

fn head(index: u32) -> [u8; LEN_MIN] {
    let mut head = [0; LEN_MIN];
    head[..4].copy_from_slice(&(len_of(index) as u32).to_le_bytes());
    head[4..].copy_from_slice(&index.to_le_bytes());
    head
}

/// Frame `index`: every other one lies in pages that are handed over.
fn bulk(parts: &Parts, index: u32) -> Option<Bulk> {
    let len = len_of(index) - LEN_MIN;
    if index.is_multiple_of(2) {
        return Some(Bulk::Pages(PageSlice::from(vec![index as u8; len])));
    }
    let mut page = parts.lent.take()?;
    page.bytes_mut()[..len].fill(index as u8);
    Some(Bulk::Pages(page.freeze(len)))
}

/// Sends all frames that there is room for.
fn send(link: &mut ShmLink, parts: &Parts, next: &mut u32, end: u32) -> Result<(), Lost> {
    while *next < end {
        let Some(bulk) = bulk(parts, *next) else { break };
        match link.send(&head(*next), &bulk) {
            Ok(()) => *next += 1,
            Err(SendError::Full) => break,
            Err(SendError::Lost(lost)) => return Err(lost),
        }
    }
    link.flush(clock::now()).map(drop)
}

/// Takes in frames, checks them, and keeps some of the last slices.
fn receive(link: &mut ShmLink, next: &mut u32, kept: &mut Vec<(u8, PageSlice)>) -> Result<(), Lost> {
    link.fill(clock::now())?;
    while let Some(frame) = link.next_frame() {
        let (head, bulk) = frame.split(LEN_MIN).unwrap();
        assert_eq!(head.as_bytes(), crate::head(*next), "frame {next}");
        for slice in bulk.slices() {
            assert!(slice.as_bytes().iter().all(|byte| *byte == *next as u8), "contents of frame {next}");
            kept.push((*next as u8, slice.clone()));
        }
        *next += 1;
    }
    let surplus = kept.len().saturating_sub(10);
    kept.drain(..surplus);
    Ok(())
}

/// Sends and receives for ever, as a task.
struct Exchange {
    link: ShmLink,
    parts: Parts,
    sent: u32,
    received: u32,
    kept: Vec<(u8, PageSlice)>,
    /// Ends after as many frames in each direction.
    end: u32,
}

impl Exchange {
    fn new(link: ShmLink, parts: Parts, end: u32) -> Self {
        Self { link, parts, sent: 0, received: 0, kept: Vec::new(), end }
    }

    fn run(&mut self) {
        let mut scheduler = Scheduler::new(IdleStrategy::default()).unwrap();
        let waker = scheduler.waker();
        self.parts.lent.wake_on_return(waker.clone());
        self.parts.copies.wake_on_return(waker.clone());
        self.parts.receive.wake_on_return(waker.clone());
        self.link.register(scheduler.poller(), &waker).unwrap();
        scheduler.add("exchange", self);
        scheduler.run(&mut ()).unwrap();
    }

    fn is_done(&self) -> bool {
        self.sent >= self.end && self.received >= self.end && self.link.queued_bytes() == 0
    }
}

impl Task for &mut Exchange {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let can_send = self.sent < self.end && self.parts.lent.has_free() && self.link.queued_bytes() < PAGE_LEN;
        can_send || self.link.is_flushable() || self.link.is_receivable(context.now)
    }

    fn action(&mut self, context: &mut Context<'_>) {
        let sent = send(&mut self.link, &self.parts, &mut self.sent, self.end);
        let received = receive(&mut self.link, &mut self.received, &mut self.kept);
        if self.is_done() || (sent.is_err() && received.is_err()) {
            context.stop();
        }
    }
}

/// The other process: not a test, unless it is started by one.
#[test]
fn child() {
    let Ok(address) = std::env::var(CHILD) else { return };
    let (address, end) = address.split_once(' ').unwrap();
    let parts = Parts::new();
    let deadline = clock::now() + Duration::from_secs(600);
    let link = ShmLink::connect(&address.parse().unwrap(), &parts.process, &parts.receive, deadline).unwrap();
    Exchange::new(link, parts, end.parse().unwrap()).run();
}

fn spawn(listener: &ShmListener, end: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--quiet"])
        .env(CHILD, format!("{} {end}", listener.address()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn accept(listener: &ShmListener, parts: &Parts) -> ShmLink {
    let started = clock::now();
    loop {
        if let Some(link) = listener.accept(&parts.process, &parts.receive).unwrap() {
            return link;
        }
        assert!(clock::now().since(started) < Duration::from_secs(600), "nobody comes");
        std::thread::yield_now();
    }
}

/// Mappings and descriptors of this process that belong to links.
fn left() -> (usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    (
        maps.lines().filter(|line| line.contains("memfd:weir-")).count(),
        std::fs::read_dir("/proc/self/fd").unwrap().count(),
    )
}

#[test]
fn two_processes_exchange_frames_of_all_lengths() {
    let parts = Parts::new();
    let listener = ShmListener::bind().unwrap();
    let mut child = spawn(&listener, 20_000);
    let link = accept(&listener, &parts);
    let mut exchange = Exchange::new(link, parts, 20_000);
    exchange.run();
    assert_eq!((exchange.sent, exchange.received), (20_000, 20_000));
    exchange.kept.clear();
    // The child ends when it has everything, with slices in hand.
    assert!(child.wait().unwrap().success());
    let lost = loop {
        match exchange.link.fill(clock::now()) {
            Ok(_) => assert!(exchange.link.next_frame().is_none()),
            Err(lost) => break lost,
        }
    };
    assert_eq!(lost, Lost::Closed);
    drop(exchange.link);
    assert_eq!(exchange.parts.in_use(), [0; 3]);
}

/// In a process of its own, where nothing else changes descriptors and mappings.
#[test]
fn a_peer_that_is_killed_leaves_nothing_behind_and_disturbs_nobody() {
    const ALONE: &str = "WEIR_TEST_SHM_ALONE";
    if std::env::var(ALONE).is_err() {
        let alone = ["--exact", "a_peer_that_is_killed_leaves_nothing_behind_and_disturbs_nobody", "--test-threads=1"];
        let status = Command::new(std::env::current_exe().unwrap()).args(alone).env(ALONE, "1").status().unwrap();
        return assert!(status.success());
    }
    let (parts, bystander_parts) = (Parts::new(), Parts::new());
    let listener = ShmListener::bind().unwrap();
    let other_listener = ShmListener::bind().unwrap();
    let mut bystander = spawn(&other_listener, u32::MAX);
    let mut unharmed = accept(&other_listener, &bystander_parts);
    let (mut unharmed_sent, mut unharmed_received, mut unharmed_kept) = (0, 0, Vec::new());
    let mut seed = 1_u32;
    while !unharmed.is_connected() {
        unharmed.fill(clock::now()).unwrap();
        std::thread::yield_now();
    }
    let before = left();
    for _ in 0..25 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let kill_at = (seed >> 16) % 400;
        let mut child = spawn(&listener, u32::MAX);
        let mut link = accept(&listener, &parts);
        let (mut sent, mut received, mut kept) = (0, 0, Vec::new());
        let mut is_alive = true;
        let mut lost = None;
        while lost.is_none() {
            let _ = send(&mut link, &parts, &mut sent, u32::MAX);
            lost = receive(&mut link, &mut received, &mut kept).err();
            send(&mut unharmed, &bystander_parts, &mut unharmed_sent, u32::MAX).unwrap();
            receive(&mut unharmed, &mut unharmed_received, &mut unharmed_kept).unwrap();
            if is_alive && received >= kill_at {
                kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
                is_alive = false;
            }
        }
        assert_eq!(lost, Some(Lost::Reset));
        child.wait().unwrap();
        for (byte, slice) in &kept {
            assert!(slice.as_bytes().iter().all(|found| found == byte), "what was received stays");
        }
        assert!(link.flush(clock::now()).is_err());
        drop(link);
        drop(kept);
        assert_eq!(parts.in_use(), [0; 3]);
        assert_eq!(left(), before);
    }
    assert!(unharmed_received > 25, "{unharmed_received}");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}
