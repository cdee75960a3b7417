//! A ROB in one process under the scheduler, without input or output of the operating system \[DAQ1999 §4.6\].
//!
//! The read-out system has its whole driver: the gate before its component, queues of messages, an emulated link that frames each fragment in
//! a page. TRG and EBIF stand in the same thread ([`front`](super::front)), and their time counts. In the paper's words: IN reads
//! events out, TRG takes accepts, regions of interest and rejects by tens, DC gives out what is accepted.

use std::collections::VecDeque;
use std::time::Duration;

use base::ids::Role;
use base::time::Time;
use configuration::Partition;
use dataflow::report::RosCounters;
use eformat::{RobParams, rob_prefix, rob_suffix};
use nix::sys::resource::UsageWho;
use partition::cpu::cpu_seconds;
use partition::{LoneReadOut, Seen};
use transport::clock;

use super::front::{Front, HELD, IN_FLIGHT, StandIn};
use super::{BLOCK_EVENTS, BLOCK_ROIS, FRAGMENT_BYTES, Facts, More, Parameters};
use crate::bench::arguments::{BenchArgs, BenchCratePart};
use crate::bench::paired::Figures;
use crate::bench::points::Point;
use crate::bench::{BenchError, PATIENCE};

pub(super) fn measure(args: &BenchArgs) -> Result<Point<Parameters, More>, BenchError> {
    let parameters = Parameters::new(args, BenchCratePart::Rob);
    let run = |_| {
        let ours = run(&parameters)?;
        Ok((ours, bare(parameters.seconds), Facts::from([("whole_core_per_s", 1e6 / ours.cpu_us_per_event)])))
    };
    let runs = (0..parameters.pairs).map(run).collect::<Result<_, BenchError>>()?;
    Ok(parameters.compared([5.8; 2], Some(3e6), runs))
}

fn run(parameters: &Parameters) -> Result<Figures, BenchError> {
    let partition = Partition::parse("crate bench", &configuration(), &[])?;
    let readout = LoneReadOut::open(partition, |assembly, role| {
        let one = |role| assembly.of(role)[0];
        let (ros, rob) = (one(Role::Ros), assembly.robs[0][0]);
        Box::new(match role {
            Role::Trg => StandIn::Trg(Front::new(ros, one(Role::Ebif), rob)),
            Role::Ebif => StandIn::Ebif { ros, asked: 0 },
            _ => StandIn::Nobody,
        })
    });
    let mut marks = Vec::new();
    let mut began = None;
    readout
        .map_err(BenchError::Run)?
        .run(|seen| {
            let began = *began.get_or_insert(seen.now);
            marks.extend(Mark::due(seen, marks.first(), parameters.seconds));
            marks.len() == 2 || seen.now.since(began) > PATIENCE
        })
        .map_err(BenchError::Run)?;
    let [first, last] = &marks[..] else { return Err(BenchError::SourceSilent) };
    last.check()?;
    let events = (last.counts.fragments_in - first.counts.fragments_in) as f64;
    Ok(Figures::of(events, None, last.now.since(first.now).as_secs_f64(), last.cpu_s - first.cpu_s))
}

/// The counts at a moment.
struct Mark {
    now: Time,
    counts: RosCounters,
    cpu_s: f64,
}

impl Mark {
    /// The first one when all pages have been used, the second one so many seconds later.
    fn due(seen: &Seen<'_>, first: Option<&Self>, seconds: f64) -> Option<Self> {
        let counts = RosCounters::total(std::iter::once(&seen.report));
        let is_due = match first {
            None => counts.fragments_in >= 4 * PAGES,
            Some(first) => seen.now.since(first.now).as_secs_f64() >= seconds,
        };
        is_due.then(|| Self { now: seen.now, counts, cpu_s: cpu_seconds(UsageWho::RUSAGE_THREAD) })
    }

    /// No fragment was dropped, and as many were asked for as in the paper.
    fn check(&self) -> Result<(), BenchError> {
        let RosCounters { fragments_in, cleared, resident, roi_requests, event_requests, .. } = self.counts;
        let dropped = fragments_in - cleared - resident;
        if dropped > 0 {
            return Err(BenchError::Dropped { dropped });
        }
        let blocks = fragments_in.saturating_sub(HELD) / BLOCK_EVENTS;
        assert!(roi_requests >= blocks * BLOCK_ROIS && event_requests >= blocks, "{:?}", self.counts);
        Ok(())
    }
}

/// The least that a ROB could do. It is a free page, its header and trailer, an entry in a table in the order of
/// events, and later a look at it.
fn bare(seconds: f64) -> Figures {
    let params = RobParams::default();
    let (prefix, suffix) = (rob_prefix(&params, FRAGMENT_BYTES as usize), rob_suffix(&params, FRAGMENT_BYTES as usize));
    let end = prefix.len() + FRAGMENT_BYTES as usize;
    let mut pages = vec![[0_u8; PAGE_BYTES]; PAGES as usize];
    let mut free: Vec<usize> = (0..pages.len()).collect();
    let mut held: VecDeque<(u64, usize)> = VecDeque::new();
    let (began, cpu) = (clock::now(), cpu_seconds(UsageWho::RUSAGE_SELF));
    let (end_time, mut events, mut looked) = (began + Duration::from_secs_f64(seconds), 0_u64, 0_u64);
    while events == 0 || clock::now() < end_time {
        for _ in 0..IN_FLIGHT {
            let page = free.pop().expect("a page for each event that is held");
            pages[page][..prefix.len()].copy_from_slice(&prefix);
            pages[page][end..end + suffix.as_ref().len()].copy_from_slice(suffix.as_ref());
            held.push_back((events, page));
            events += 1;
        }
        while held.len() as u64 > HELD {
            let (event, page) = held.pop_front().expect("some are held");
            if (event % BLOCK_EVENTS).is_multiple_of(BLOCK_ROIS) {
                looked += u64::from(std::hint::black_box(&pages[page])[0]);
            }
            free.push(page);
        }
    }
    std::hint::black_box(looked);
    let cpu_s = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu;
    Figures::of(events as f64, None, clock::now().since(began).as_secs_f64(), cpu_s)
}

fn configuration() -> String {
    format!(
        r#"
        partition.name = "bench"
        level1 = {{ in_flight = {IN_FLIGHT} }}
        l2sv = {{}}
        l2pu = {{}}
        roc = {{ count = 1, ros = 1 }}
        dfm = {{ input = "level2" }}
        sfi.count = 1
        [ros]
        count = 1
        pages = {PAGES}
        page_size = "{PAGE_BYTES} B"
        fragment = {{ kind = "fixed", size = "{FRAGMENT_BYTES} B" }}
        "#
    )
}

const PAGES: u64 = 1024;
const PAGE_BYTES: usize = 1024;
