//! The links of a read-out system whose sources send by themselves.

use base::bulk::Bulk;
use base::ids::{EventId, NodeId};
use base::losses::Losses;
use base::time::Time;
use dataflow::component::{Input, LinkNews, LinkOrder};
use dataflow::report::LinkClock;
use eformat::{GenericStatus, RobStatus, StatusWord};
use link::{Address, Arrival, Faults, Flags, Head, Intake, IntakeParameters, LinkError, Secret};
use rol::{ChunkHead, Pushed, PushedFragments};
use timing::Interval;
use timing::unwrap::Unwrap;
use transport::page_pool::Page;
use transport::poller::Poller;
use transport::waker::Waker;

use super::Host;
use super::clocks::Clocks;
use crate::assembly::Assembly;

/// The sources of one read-out system.
pub(super) struct Sources {
    lines: Vec<Line>,
    clocks: Clocks,
    run: u32,
    /// Most fragments of a link in a pass: so many fit when the read-out system has not said that it is full.
    room: usize,
    is_registered: bool,
    /// For people, to be told with the next pass.
    notices: Vec<String>,
}

struct Line {
    name: String,
    intake: Intake,
    fragments: PushedFragments,
    /// Makes numbers of few bits whole.
    unwrap: Option<Unwrap>,
    /// Of a fragment that says none.
    next_number: u64,
    /// Whether its data belong to events by their time.
    is_timed: bool,
    is_off: bool,
    /// What of a device did not become fragments, since the last run.
    losses: Losses,
    /// Fragments that something is wrong with, by cause, in the order of [`CAUSES`]; since the last run.
    marked: [u64; CAUSES.len()],
}

impl Sources {
    /// Waits for the sources of read-out system `ros`.
    pub(super) fn open(
        assembly: &Assembly,
        ros: usize,
        key: Option<&Secret>,
        waker: &Waker,
    ) -> Result<Self, LinkError> {
        let partition = &assembly.partition;
        let (pages, busy_above) = (partition.ros.pages as usize, partition.ros.busy_above.as_f64());
        let room = pages.saturating_sub((busy_above * pages as f64) as usize).clamp(1, FRAGMENTS_PER_PASS);
        let adler32 = partition.ros.checksum == configuration::Checksum::Adler32;
        let (mut lines, mut notices) = (Vec::new(), Vec::new());
        for (place, source) in assembly.sources_of(ros) {
            let id = source.source_id(place);
            let is_timed = assembly.timed(source).is_some();
            let (headroom, tailroom) = if is_timed {
                (ChunkHead::BYTES, ChunkHead::TAILROOM)
            } else {
                (PushedFragments::HEADROOM, PushedFragments::TAILROOM)
            };
            let behind = assembly.events_behind_ros();
            let behind = if is_timed { behind.max(BEHIND_MAX.min(behind * source.chunks as usize)) } else { behind };
            let intake = Intake::open(
                IntakeParameters {
                    at: Address::of_intake(&source.address(), &partition.partition.name)?,
                    name: source.name.clone(),
                    id,
                    key: key.cloned(),
                    size_max: usize::try_from(source.size_max.bytes()).unwrap_or(usize::MAX),
                    headroom,
                    tailroom,
                    pages: pages + room + behind,
                    run: partition.run.number(),
                    shared: partition.transport.shares_fragments(),
                    frames: source.frame.as_ref().map(super::frames::format),
                    from: source.from,
                },
                waker.clone(),
            )?;
            notices.push(format!("waits for source {} at {}", source.name, intake.address()));
            let fragments = PushedFragments { source_id: id, run_number: partition.run.number(), adler32 };
            lines.push(Line {
                name: source.name.clone(),
                intake,
                fragments,
                unwrap: source.number_bits.map(Unwrap::of_bits),
                next_number: 0,
                is_timed,
                is_off: false,
                losses: Losses::default(),
                marked: [0; CAUSES.len()],
            });
        }
        let leader = partition.leader().map(|place| partition.source[place].name.as_str());
        let clocks = Clocks::new(assembly.sources_of(ros).map(|(_, source)| source), leader);
        Ok(Self { lines, clocks, run: partition.run.number(), room, is_registered: false, notices })
    }

    /// What a source is to do.
    pub(super) fn order(&mut self, rob: u16, order: LinkOrder) {
        let line = &mut self.lines[usize::from(rob)];
        match order {
            LinkOrder::Start => line.intake.order(link::LinkOrder::Start { run: self.run }),
            LinkOrder::Stop => line.intake.order(link::LinkOrder::Stop),
            LinkOrder::Off => line.intake.order(link::LinkOrder::Off),
            LinkOrder::On => line.intake.order(link::LinkOrder::On),
        }
        match order {
            LinkOrder::Off => line.is_off = true,
            LinkOrder::On => line.is_off = false,
            LinkOrder::Start | LinkOrder::Stop => {}
        }
    }

    /// The clock of the source of a ROB, if it is known.
    pub(super) fn clock_of(&self, rob: u32) -> Option<LinkClock> {
        self.clocks.of(self.lines.iter().position(|line| line.fragments.source_id == rob)?)
    }

    fn has_work(&self, now: Time) -> bool {
        !self.is_registered
            || !self.notices.is_empty()
            || self.lines.iter().any(|line| line.intake.is_ready(now, self.room_of(line)))
    }

    fn next_deadline(&self) -> Option<Time> {
        self.lines.iter().filter_map(|line| line.intake.next_deadline(self.room_of(line))).min()
    }

    fn room_of(&self, line: &Line) -> usize {
        if line.is_off { 0 } else { self.room }
    }

    /// What came since the last pass, for the read-out system and for people.
    fn take(&mut self, now: Time, poller: &mut Poller, news: &mut Vec<(u16, LinkNews)>) -> Result<(), LinkError> {
        if !core::mem::replace(&mut self.is_registered, true) {
            self.lines.iter_mut().try_for_each(|line| line.intake.register(poller))?;
        }
        let Self { lines, clocks, notices, .. } = self;
        for (rob, line) in (0_u16..).zip(&mut *lines) {
            let room = if line.is_off { 0 } else { self.room };
            let Line { name, intake, fragments, unwrap, next_number, is_timed, losses, marked, .. } = line;
            let mut whole = |number: u64| unwrap.as_mut().map_or(number, |unwrap| unwrap.whole(number));
            intake.poll(now, poller, room, &mut |arrival| {
                let text = match arrival {
                    Arrival::Fragment { head, page, len, faults } if *is_timed => {
                        let status = status_of(&head, faults, marked);
                        return news.push((rob, chunk(&head, page, len, status)));
                    }
                    Arrival::Idle { time, .. } if *is_timed => return news.push((rob, LinkNews::Passed(time))),
                    Arrival::Fragment { head, page, len, faults } => {
                        let number = head.number.map_or(*next_number, &mut whole);
                        *next_number = number.wrapping_add(1);
                        if let Some((begin, _)) = head.time {
                            clocks.observe(rob.into(), number, begin);
                        }
                        let (event, status) = (EventId(number), status_of(&head, faults, marked));
                        let pushed = Pushed { event, trigger_type: head.trigger_type, status };
                        let (head, slice) = fragments.frame(page, len, &pushed);
                        let (trigger_type, bulk) = (pushed.trigger_type, Bulk::Pages(slice));
                        return news.push((rob, LinkNews::Fragment { head, trigger_type, bulk }));
                    }
                    Arrival::Idle { number, .. } => return news.push((rob, LinkNews::Idle(EventId(whole(number))))),
                    Arrival::Lost(lost) => {
                        *losses += lost;
                        return news.push((rob, LinkNews::Lost(lost)));
                    }
                    Arrival::Ended { sent, received } => {
                        news.push((rob, LinkNews::Ended { sent }));
                        let losses = core::mem::take(losses);
                        if !losses.are_none() {
                            notices.push(format!("source {name}, beside {received} fragments: {losses}"));
                        }
                        let marked = core::mem::take(marked);
                        if marked != [0; CAUSES.len()] {
                            notices.push(format!("source {name}, of {received} fragments: {}", in_words(&marked)));
                        }
                        if sent == received {
                            return;
                        }
                        format!("source {name} says that it has sent {sent} fragments; {received} have come")
                    }
                    Arrival::Up { .. } => {
                        news.push((rob, LinkNews::Up));
                        format!("source {name} is there")
                    }
                    Arrival::Down { reason } => {
                        news.push((rob, LinkNews::Down));
                        format!("source {name} is lost: {reason}")
                    }
                    Arrival::TurnedAway { why } => format!("source {name}: a visitor was turned away: {why}"),
                    Arrival::Status(text) => format!("source {name}: {text}"),
                };
                notices.push(text);
            });
        }
        clocks.judge(|link| lines[link].name.clone(), notices);
        Ok(())
    }
}

impl Host {
    /// Whether the sources of a read-out system here have something.
    pub(super) fn have_sources_work(&self, now: Time) -> bool {
        self.sources().any(|sources| sources.has_work(now))
    }

    /// When sources may have something, though nothing comes.
    pub(super) fn next_deadline_of_sources(&self) -> Option<Time> {
        self.sources().filter_map(Sources::next_deadline).min()
    }

    /// Where the sources of read-out systems here connect to.
    pub fn addresses_of_sources(&self) -> Vec<String> {
        self.sources().flat_map(|sources| &sources.lines).map(|line| line.intake.address()).collect()
    }

    fn sources(&self) -> impl Iterator<Item = &Sources> {
        let sourced = self.sourced.iter().filter_map(|node| self.nodes[usize::from(node.0)].as_ref());
        sourced.filter_map(|hosted| hosted.workshop.sources())
    }

    /// Hands what sources have sent to their read-out systems.
    pub(super) fn take_from_sources(&mut self, now: Time, poller: &mut Poller) {
        for index in 0..self.sourced.len() {
            let node = self.sourced[index];
            let mut news = core::mem::take(&mut self.news);
            let hosted = self.nodes[usize::from(node.0)].as_mut();
            let Some(sources) = hosted.and_then(|hosted| hosted.workshop.sources_mut()) else { continue };
            let taken = sources.take(now, poller, &mut news);
            let mut notices = core::mem::take(&mut sources.notices);
            notices.extend(taken.err().map(|error| error.to_string()));
            notices.into_iter().for_each(|text| self.notice(node, text));
            for (rob, news) in news.drain(..) {
                self.input(now, node, Input::Link { rob, news });
            }
            self.news = news;
        }
    }

    /// A read-out system has something to say to a source.
    pub(super) fn order_source(&mut self, node: NodeId, rob: u16, order: LinkOrder) {
        let hosted = self.nodes[usize::from(node.0)].as_mut().expect("a component here");
        hosted.workshop.sources_mut().expect("a read-out system with sources").order(rob, order);
    }
}

/// Data that belong to events by their time. Those without a time belong to none.
fn chunk(head: &Head, page: Page, len: usize, status: StatusWord) -> LinkNews {
    let (begin, end) = head.time.unwrap_or((u64::MAX, u64::MAX));
    let chunk = ChunkHead { begin, end, len: len as u32, status };
    let bulk = Bulk::Pages(chunk.put(page));
    LinkNews::Chunk { interval: Interval::new(begin, end), status: status.0, bulk }
}

/// What is wrong with a fragment, as far as its source, its link or its checksum says; counted.
fn status_of(head: &Head, faults: Faults, marked: &mut [u64; CAUSES.len()]) -> StatusWord {
    if faults.is_empty() && !head.flags.intersects(Flags::TRANSMISSION_ERROR | Flags::CUT) {
        return StatusWord::GOOD;
    }
    let mut status = (GenericStatus::default(), RobStatus::default());
    for (Cause { flag, fault, generic, rob, .. }, count) in CAUSES.iter().zip(marked) {
        if head.flags.intersects(*flag) || faults.intersects(*fault) {
            *count += 1;
            status = (status.0 | *generic, status.1 | *rob);
        }
    }
    StatusWord::rob(status.0, status.1)
}

fn in_words(marked: &[u64; CAUSES.len()]) -> String {
    let counted = CAUSES.iter().zip(marked).filter(|(_, count)| **count > 0);
    counted.map(|(cause, count)| format!("{count} {}", cause.words)).collect::<Vec<_>>().join(", ")
}

/// What may be wrong with a fragment, and what is said of it.
struct Cause {
    flag: Flags,
    fault: Faults,
    generic: GenericStatus,
    rob: RobStatus,
    words: &'static str,
}

impl Cause {
    const fn of_link(fault: Faults, rob: RobStatus, words: &'static str) -> Self {
        let rob = rob.union(RobStatus::LINK_ERROR);
        Self { flag: Flags::empty(), fault, generic: GenericStatus::empty(), rob, words }
    }
}

const CAUSES: [Cause; 6] = [
    Cause {
        generic: GenericStatus::DATA_CORRUPTION,
        ..Cause::of_link(Faults::CHECKSUM, RobStatus::LINK_ERROR, "with a wrong checksum")
    },
    Cause {
        flag: Flags::TRANSMISSION_ERROR,
        ..Cause::of_link(Faults::empty(), RobStatus::LINK_DATA_ERROR, "with a transmission error")
    },
    Cause::of_link(Faults::CONTROL_WORD, RobStatus::LINK_CONTROL_ERROR, "with a damaged control word"),
    Cause::of_link(Faults::NO_BEGIN, RobStatus::NO_BOF, "without a begin"),
    Cause::of_link(Faults::NO_END, RobStatus::NO_EOF, "without an end"),
    Cause {
        flag: Flags::CUT,
        fault: Faults::empty(),
        generic: GenericStatus::empty(),
        rob: RobStatus::TRUNCATED,
        words: "cut",
    },
];

/// Most fragments of a link in a pass, so that no source starves the others.
const FRAGMENTS_PER_PASS: usize = 256;

/// Most pages for what event builders and those behind them hold: with fewer, a source waits for them.
const BEHIND_MAX: usize = 16_384;
