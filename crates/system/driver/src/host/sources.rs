//! The links of a read-out system whose sources send by themselves, and those of level-1 processors.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::bulk::Bulk;
use base::causes;
use base::ids::{EventId, NodeId};
use base::losses::Losses;
use base::sources::{SourceNow, SourcePhase};
use base::time::Time;
use dataflow::component::{Input, LinkNews, LinkOrder};
use dataflow::level1::roib::TriggerRecord;
use dataflow::message::Message;
use eformat::{GenericStatus, RobStatus, StatusWord};
use link::{Address, Arrival, Faults, Flags, Head, Intake, IntakeParameters, LinkError, Secret};
use rol::detector::PlayedError;
use rol::slink::{ControlMistakes, FrontEnd, from_here};
use rol::{ChunkHead, Inputs, Pushed, PushedFragments, TRIGGER_BYTES_MAX, decode_trigger, detector_of, processor_of};
use timing::Interval;
use timing::handshake::{Breach, Handshake, Mode};
use timing::rule::Axis;
use timing::unwrap::Unwrap;
use transport::error::OsError;
use transport::page_pool::Page;
use transport::poller::Poller;
use transport::random::random;
use transport::waker::Waker;

use configuration::Processor;

use super::players::{Complaints, Player};
use super::{Host, awaited};
use crate::assembly::Assembly;

/// The links between two runs of a process: their sources stay.
#[derive(Clone, Default)]
pub struct RestingLinks(Arc<Mutex<Vec<Intake>>>);

impl RestingLinks {
    /// No further run comes: the sources learn that their links end.
    pub fn end(&self) {
        self.lock().clear();
    }

    /// The link of these parameters: the one of the run before, or a new one.
    fn open(&self, parameters: IntakeParameters, waker: &Waker) -> Result<Intake, LinkError> {
        let mut resting = self.lock();
        match resting.iter().position(|intake| intake.suits(&parameters)) {
            Some(place) => Ok(resting.swap_remove(place).resume(parameters.run)),
            None => Intake::open(parameters, waker.clone()),
        }
    }

    fn keep(&self, intake: Intake) {
        self.lock().extend(intake.rest());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Intake>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sources of one read-out system, or the level-1 processors.
pub(super) struct Sources {
    lines: Vec<Line>,
    /// Where links of programs go with the end of the run.
    resting: RestingLinks,
    /// Each ends with its line.
    players: Vec<Player>,
    complaints: Complaints,
    run: u32,
    /// Most fragments of a link in a pass: so many fit when the read-out system has not said that it is full.
    room: usize,
    is_registered: bool,
    /// For people, to be told with the next pass.
    notices: Vec<Message>,
}

/// Why there are no sources.
#[derive(Debug, thiserror::Error)]
pub enum SourcesError {
    /// Their links.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The input has nothing to play in the place of one.
    #[error("source {name}: id = {error}; give it the id of one of these")]
    Unknown {
        /// Of the source.
        name: String,
        /// Which ones there are.
        error: PlayedError,
    },
    /// What is played in the place of one.
    #[error("source {name}: {error}")]
    Played {
        /// Of the source.
        name: String,
        /// Why it cannot be.
        error: PlayedError,
    },
}

impl SourcesError {
    fn played(name: &str, error: PlayedError) -> Self {
        let name = name.to_owned();
        match error {
            PlayedError::Unknown { .. } => Self::Unknown { name, error },
            PlayedError::Links(_) => Self::Played { name, error },
        }
    }
}

impl From<OsError> for SourcesError {
    fn from(error: OsError) -> Self {
        Self::Link(error.into())
    }
}

struct Line {
    name: String,
    /// As people know it: with what it is.
    title: String,
    id: u32,
    intake: Intake,
    content: Content,
    /// Makes numbers of few bits whole.
    unwrap: Option<Unwrap>,
    /// Of a fragment that says none.
    next_number: u64,
    /// With a trigger logic unit, and how often it was broken.
    handshake: Option<Handshake>,
    breaches: u64,
    returning: Returning,
    /// Nobody may follow it in this run, since it has sent fragments that only it counts.
    is_last: bool,
    /// It was told to stop: what follows it waits for the next run.
    is_stopped: bool,
    /// Whether each fragment turns the link off.
    is_single: bool,
    /// Whether a player is the source.
    is_played: bool,
    is_off: bool,
    /// Whether it is there, and whether it was told of a run.
    is_there: bool,
    is_started: bool,
    /// What it has said last; what it is doing is in the fields above.
    now: SourceNow,
    /// What of a device did not become fragments, since the last run.
    losses: Losses,
    /// Fragments that something is wrong with, by cause, in the order of [`CAUSES`]; since the last run.
    marked: [u64; CAUSES.len()],
}

/// Whether a source that was lost may go on with the run. One that counts by itself does not know what it has missed: its fragments would
/// get the numbers of other events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Returning {
    Always,
    IfNumbered,
    Never,
}

impl Returning {
    /// Of a source with numbers of its own, of so many bits if they are few.
    fn of_bits(bits: Option<u32>) -> Self {
        if bits.is_some() { Self::Never } else { Self::IfNumbered }
    }
}

/// What fragments of a link are.
#[derive(Clone, Copy)]
enum Content {
    /// Of the event whose number they have.
    Numbered(PushedFragments),
    /// Data that belong to events by their time, or their count.
    Matched(Axis),
    /// Triggers. Where fragments are pushed, they were made without bunch crossing and trigger type of the event, which says neither then.
    Triggers { of_pushed: bool },
}

impl Sources {
    /// Waits for the sources of read-out system `ros`, or plays them.
    pub(super) fn open(
        assembly: &Assembly,
        (ros, inputs): (usize, &Inputs),
        key: Option<&Secret>,
        (resting, waker): (&RestingLinks, &Waker),
    ) -> Result<Self, SourcesError> {
        let partition = &assembly.partition;
        let (pages, busy_above) = (partition.ros.pages as usize, partition.ros.busy_above.as_f64());
        let room = pages.saturating_sub((busy_above * pages as f64) as usize).clamp(1, FRAGMENTS_PER_PASS);
        let adler32 = partition.ros.checksum == configuration::Checksum::Adler32;
        let mut sources = Self::none(partition.run.number(), room, resting, waker);
        let mut are_awaited = false;
        for (place, source) in assembly.sources_of(ros) {
            let id = source.source_id(place);
            let detector = detector_of(partition, place, inputs);
            let detector = detector.map_err(|error| SourcesError::played(&source.name, error))?;
            // Nobody else is the source then.
            let own_key = detector.as_ref().map(|_| random().map(Secret::of_bytes)).transpose()?;
            let axis = assembly.timed(source).map(|timed| timed.rule.axis);
            let is_timed = axis.is_some();
            let (headroom, tailroom) = if is_timed {
                (ChunkHead::BYTES, ChunkHead::TAILROOM)
            } else {
                (PushedFragments::HEADROOM, PushedFragments::TAILROOM)
            };
            let behind = assembly.events_behind_ros();
            let behind = if is_timed { behind.max(BEHIND_MAX.min(behind * source.chunks as usize)) } else { behind };
            let size_max = usize::try_from(source.size_max.bytes()).unwrap_or(usize::MAX);
            // An S-LINK proves no key: where it is played nobody comes from another host.
            let from_here_alone = || Some(slink_place(&source.address())?.ip());
            let from = if detector.is_some() && source.is_slink() { from_here_alone() } else { source.from };
            let intake = resting.open(
                IntakeParameters {
                    at: Address::of_intake(&source.address(), &partition.partition.name)?,
                    name: source.name.clone(),
                    id,
                    key: own_key.clone().or(key.cloned()),
                    size_max,
                    headroom,
                    tailroom,
                    pages: pages + room + behind,
                    run: partition.run.number(),
                    shared: partition.transport.shares_fragments(),
                    frames: source.frame.as_ref().map(super::frames::format),
                    from,
                },
                waker,
            )?;
            let (name, at, is_up) = (&source.name, intake.address(), intake.is_up());
            let fragments = PushedFragments { source_id: id, run_number: partition.run.number(), adler32 };
            let content = axis.map_or(Content::Numbered(fragments), Content::Matched);
            let bits = source.bits_of_numbers();
            let leads = partition.leader() == Some(place);
            let is_single = leads && source.handshake == Some(configuration::Handshake::Eudet);
            let intake = if is_single { intake.one_by_one() } else { intake };
            let handshake =
                source.handshake.map(|handshake| Handshake::new(mode(handshake), bits.unwrap_or(u64::BITS)));
            let returning = match source.handshake {
                _ if leads || axis == Some(Axis::Time) => Returning::Always,
                // Its numbers are those of the trigger logic unit, however few bits they have.
                Some(handshake) if mode(handshake).has_numbers() && detector.is_none() => Returning::IfNumbered,
                Some(_) => Returning::Never,
                None => Returning::of_bits(bits),
            };
            let is_played = detector.is_some();
            let line = Line::new(name, id, intake, content, bits);
            sources.lines.push(Line { handshake, is_single, returning, is_played, ..line });
            match (detector, own_key, source.played()) {
                (Some(detector), Some(key), Some(play)) => {
                    sources.notices.push(Message::News(format!("plays source {name} ({}) at {at}", play.name())));
                    let complaints = sources.complaints.clone();
                    let player = match slink_place(&at).filter(|_| source.is_slink()) {
                        Some(place) => {
                            Player::start_slink(front_end(name, (id, size_max)), place, detector, complaints)?
                        }
                        None => Player::start((name, &format!("source {name}")), at, key, detector, complaints)?,
                    };
                    sources.players.push(player);
                }
                // It has stayed since the run before.
                _ if source.is_program() && is_up => {}
                _ => {
                    are_awaited |= source.is_program();
                    sources.notices.push(Message::News(awaited::notice(partition, source, &at)));
                }
            }
        }
        sources.notices.extend(are_awaited.then(|| Message::News(awaited::PLAY.to_owned())));
        Ok(sources)
    }

    /// Waits for the level-1 processors.
    pub(super) fn open_processors(
        assembly: &Assembly,
        processors: &[Processor],
        key: Option<&Secret>,
        (resting, waker): (&RestingLinks, &Waker),
    ) -> Result<Self, LinkError> {
        let partition = &assembly.partition;
        let content = Content::Triggers { of_pushed: partition.ros.input == configuration::RosInput::Links };
        let mut sources = Self::none(partition.run.number(), FRAGMENTS_PER_PASS, resting, waker);
        for (place, processor) in processors.iter().enumerate() {
            let (id, detector) = (Processor::source_id(place), processor_of(partition, place));
            let own_key = detector.as_ref().map(|_| random().map(Secret::of_bytes)).transpose()?;
            let parameters = IntakeParameters {
                at: Address::of_intake(&processor.address(), &partition.partition.name)?,
                name: processor.name.clone(),
                id,
                key: own_key.clone().or(key.cloned()),
                size_max: TRIGGER_BYTES_MAX,
                headroom: 0,
                tailroom: 0,
                pages: 2 * FRAGMENTS_PER_PASS,
                run: partition.run.number(),
                shared: false,
                frames: None,
                from: None,
            };
            let intake = resting.open(parameters, waker)?;
            let (title, at) = (format!("level-1 processor {}", processor.name), intake.address());
            let is_played = detector.is_some();
            let what = if is_played { "plays" } else { "waits for" };
            sources.notices.push(Message::News(format!("{what} {title} at {at}")));
            let line = Line::new(&processor.name, id, intake, content, processor.number_bits);
            // A lone one says which triggers there are.
            let is_lone = processors.len() == 1;
            let returning = if is_lone { Returning::Always } else { Returning::of_bits(processor.number_bits) };
            sources.lines.push(Line { returning, is_played, ..line });
            if let (Some(detector), Some(key)) = (detector, own_key) {
                let complaints = sources.complaints.clone();
                sources.players.push(Player::start((&processor.name, &title), at, key, detector, complaints)?);
            }
        }
        Ok(sources)
    }

    fn none(run: u32, room: usize, resting: &RestingLinks, waker: &Waker) -> Self {
        let (lines, players, complaints) = (Vec::new(), Vec::new(), Complaints::new(waker.clone()));
        let resting = resting.clone();
        Self { lines, resting, players, complaints, run, room, is_registered: false, notices: Vec::new() }
    }

    /// What a source is to do.
    pub(super) fn order(&mut self, rob: u16, order: LinkOrder) {
        let line = &mut self.lines[usize::from(rob)];
        let (state, is_so, told) = match order {
            LinkOrder::Start => (&mut line.is_stopped, false, link::LinkOrder::Start { run: self.run }),
            LinkOrder::Stop => (&mut line.is_stopped, true, link::LinkOrder::Stop),
            LinkOrder::Off => (&mut line.is_off, true, link::LinkOrder::Off),
            LinkOrder::On => (&mut line.is_off, false, link::LinkOrder::On),
        };
        *state = is_so;
        line.is_started |= order == LinkOrder::Start;
        line.intake.order(told);
    }

    /// The name of the source of a ROB.
    fn name_of(&self, rob: u32) -> Option<&str> {
        self.lines.iter().find(|line| line.id == rob).map(|line| line.name.as_str())
    }

    fn has_work(&self, now: Time) -> bool {
        !self.is_registered
            || !self.notices.is_empty()
            || (!self.players.is_empty() && self.complaints.are_there())
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
        self.notices.extend(self.complaints.take().into_iter().map(Message::Notice));
        let Self { lines, notices, .. } = self;
        let numbered = lines.iter().filter(|line| matches!(line.content, Content::Numbered(_)));
        let newest = numbered.map(|line| line.next_number).max().unwrap_or_default();
        for (rob, line) in (0_u16..).zip(&mut *lines) {
            let taken_before = line.intake.counters().fragments;
            let room = if line.is_off { 0 } else { self.room };
            let Line { title, intake, content, unwrap, next_number, handshake, breaches, losses, marked, .. } = line;
            let (seen, is_there) = (&mut line.now, &mut line.is_there);
            let (returning, is_stopped, is_last) = (line.returning, line.is_stopped, &mut line.is_last);
            let mut breach = |breach: Breach, event: u64, notices: &mut Vec<Message>| {
                *breaches += 1;
                match *breaches {
                    1..=BREACHES_TOLD => notices.push(Message::Notice(format!("{title}, event {event}: {breach}"))),
                    _ if *breaches == BREACHES_TOLD + 1 => {
                        let more = format!("{title}: more breaches of the hand-shake are only counted");
                        notices.push(Message::Notice(more));
                    }
                    _ => {}
                }
            };
            intake.poll(now, poller, room, &mut |arrival| {
                let text = match arrival {
                    Arrival::Idle { number: 0, time: 0 } if handshake.as_ref().is_some_and(Handshake::has_t0) => {
                        let broken = handshake.as_mut().and_then(|handshake| handshake.t0().err());
                        return broken.into_iter().for_each(|broken| breach(broken, *next_number, notices));
                    }
                    Arrival::Idle { time, .. } if matches!(content, Content::Matched(Axis::Time)) => {
                        return news.push((rob, LinkNews::Passed(time)));
                    }
                    Arrival::Fragment { head, page, len, faults } => {
                        *is_last |= match returning {
                            Returning::Always => false,
                            Returning::IfNumbered => head.number.is_none(),
                            Returning::Never => true,
                        };
                        let number = match handshake {
                            None => head.number.map_or(*next_number, |number| whole(unwrap, number)),
                            Some(handshake) => {
                                // By these, idle marks are made whole.
                                let _ = head.number.map(|number| whole(unwrap, number));
                                let (number, broken) =
                                    handshake.fragment(head.number, head.time.map(|(begin, _)| begin));
                                let event = number.unwrap_or(*next_number);
                                broken.into_iter().for_each(|broken| breach(broken, event, notices));
                                let Some(number) = number else {
                                    let lost = Losses { outside: 1, ..Losses::default() };
                                    *losses += lost;
                                    return news.push((rob, LinkNews::Lost(lost)));
                                };
                                number
                            }
                        };
                        *next_number = number.wrapping_add(1);
                        seen.number = number;
                        seen.time_ns = head.time.map_or(seen.time_ns, |(_, end)| end);
                        let time = head.time.map_or(Interval::default(), |(begin, end)| Interval::new(begin, end));
                        if let Content::Matched(_) = content {
                            let status = status_of(&head, faults, marked);
                            return news.push((rob, chunk(time, number, &head, page, len, status)));
                        }
                        let event = EventId(number);
                        let Content::Numbered(fragments) = content else {
                            let (mut record, why) = trigger(event, &head, &page.bytes()[..len], !faults.is_empty());
                            if matches!(content, Content::Triggers { of_pushed: true }) {
                                (record.bcid, record.trigger_type) = (None, None);
                            }
                            news.push((rob, LinkNews::Trigger(Box::new(record))));
                            let Some(why) = why else { return };
                            news.push((rob, LinkNews::Lost(Losses { malformed: 1, ..Losses::default() })));
                            losses.malformed += 1;
                            // The count says how many there were; the first one says what is wrong with them.
                            if losses.malformed == 1 {
                                let text = format!("{title}, event {number}: no record of a trigger: {why}");
                                notices.push(Message::Notice(text));
                            }
                            return;
                        };
                        let status = status_of(&head, faults, marked);
                        let pushed = Pushed { event, trigger_type: head.trigger_type, status };
                        let (head, slice) = fragments.frame(page, len, &pushed);
                        let (trigger_type, bulk) = (pushed.trigger_type, Bulk::Pages(slice));
                        return news.push((rob, LinkNews::Fragment { head, trigger_type, time, bulk }));
                    }
                    Arrival::Idle { number, .. } if matches!(content, Content::Matched(Axis::Count)) => {
                        return news.push((rob, LinkNews::Passed(whole(unwrap, number))));
                    }
                    Arrival::Idle { number, .. } => {
                        return news.push((rob, LinkNews::Idle(EventId(whole(unwrap, number)))));
                    }
                    Arrival::Lost(lost) => {
                        *losses += lost;
                        return news.push((rob, LinkNews::Lost(lost)));
                    }
                    Arrival::Ended { sent, received } => {
                        *is_last &= !is_stopped;
                        news.push((rob, LinkNews::Ended { sent }));
                        let losses = core::mem::take(losses);
                        if !losses.are_none() {
                            let text = format!("{title}, beside {received} fragments: {losses}");
                            notices.push(Message::Notice(text));
                        }
                        let marked = core::mem::take(marked);
                        if marked != [0; CAUSES.len()] {
                            let text = format!("{title}, of {received} fragments: {}", in_words(&marked));
                            notices.push(Message::Notice(text));
                        }
                        if sent == received {
                            return;
                        }
                        format!("{title} says that it has sent {sent} fragments; {received} have come")
                    }
                    Arrival::Up { .. } => {
                        if *next_number > 0 {
                            unwrap.iter_mut().for_each(|unwrap| unwrap.pass(newest));
                            handshake.iter_mut().for_each(|handshake| handshake.pass(newest));
                        }
                        *is_there = true;
                        seen.say("");
                        news.push((rob, LinkNews::Up));
                        return notices.push(Message::News(format!("{title} is there")));
                    }
                    Arrival::Down { reason } => {
                        *is_there = false;
                        seen.say(&reason.to_string());
                        news.push((rob, LinkNews::Down));
                        format!("{title} is lost: {reason}")
                    }
                    Arrival::TurnedAway { why } => format!("{title}: a visitor was turned away: {why}"),
                    Arrival::Status(text) => {
                        let before = core::mem::take(&mut seen.status);
                        seen.say(&text);
                        if !differ_by_numbers_alone(&before, &seen.status) {
                            notices.push(Message::News(format!("{title}: {text}")));
                        }
                        return;
                    }
                };
                notices.push(Message::Notice(text));
            });
            line.intake.let_nobody_follow(line.is_last.then_some(COUNTS_ITSELF));
            line.is_off |= line.is_single && line.intake.counters().fragments > taken_before;
        }
        Ok(())
    }
}

impl Drop for Sources {
    /// Programs stay. A player whose link is open would be waited for without end.
    fn drop(&mut self) {
        let (played, staying): (Vec<_>, Vec<_>) = self.lines.drain(..).partition(|line| line.is_played);
        staying.into_iter().for_each(|line| self.resting.keep(line.intake));
        drop(played);
        self.players.clear();
    }
}

impl Line {
    fn new(name: &str, id: u32, intake: Intake, content: Content, number_bits: Option<u32>) -> Self {
        let is = if let Content::Triggers { .. } = content { "level-1 processor" } else { "source" };
        let (name, title) = (name.to_owned(), format!("{is} {name}"));
        let unwrap = number_bits.map(Unwrap::of_bits);
        Self {
            name,
            title,
            id,
            intake,
            content,
            unwrap,
            next_number: 0,
            handshake: None,
            breaches: 0,
            returning: Returning::Always,
            is_last: false,
            is_stopped: false,
            is_single: false,
            is_played: false,
            is_off: false,
            is_there: false,
            is_started: false,
            now: SourceNow::default(),
            losses: Losses::default(),
            marked: [0; CAUSES.len()],
        }
    }

    /// For those who watch the run.
    fn now(&self) -> SourceNow {
        let phase = match self {
            _ if !self.is_there => SourcePhase::Absent,
            _ if self.is_stopped => SourcePhase::Stopped,
            _ if self.is_started => SourcePhase::Started,
            _ if self.intake.is_configured() => SourcePhase::Configured,
            _ => SourcePhase::Connected,
        };
        SourceNow { phase, is_off: self.is_off, ..self.now.clone() }
    }
}

impl Host {
    /// The sources of an application here as they are now, in the order of its links.
    pub(super) fn sources_now(&self, node: NodeId) -> Vec<SourceNow> {
        let sources = self.nodes[usize::from(node.0)].as_ref().and_then(|hosted| hosted.workshop.sources());
        sources.map_or_else(Vec::new, |sources| sources.lines.iter().map(Line::now).collect())
    }

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
        let sourced = self.schedule.sourced.iter().filter_map(|node| self.nodes[usize::from(node.0)].as_ref());
        sourced.filter_map(|hosted| hosted.workshop.sources())
    }

    /// Hands what sources have sent to their read-out systems.
    pub(super) fn take_from_sources(&mut self, now: Time, poller: &mut Poller) {
        for index in 0..self.schedule.sourced.len() {
            let node = self.schedule.sourced[index];
            let mut news = core::mem::take(&mut self.news);
            let hosted = self.nodes[usize::from(node.0)].as_mut();
            let Some(sources) = hosted.and_then(|hosted| hosted.workshop.sources_mut()) else { continue };
            let taken = sources.take(now, poller, &mut news);
            let mut notices = core::mem::take(&mut sources.notices);
            notices.extend(taken.err().map(|error| Message::Notice(causes::together(&error))));
            notices.into_iter().for_each(|notice| self.say(node, notice));
            for (rob, news) in news.drain(..) {
                self.input(now, node, Input::Link { rob, news });
            }
            self.news = news;
        }
    }

    /// The name of a source of the read-out system at a node.
    pub(super) fn name_of_source(&self, node: NodeId, rob: u32) -> String {
        let hosted = self.nodes[usize::from(node.0)].as_ref();
        let name = hosted.and_then(|hosted| hosted.workshop.sources()).and_then(|sources| sources.name_of(rob));
        name.unwrap_or_default().to_owned()
    }

    /// A read-out system has something to say to a source.
    pub(super) fn order_source(&mut self, node: NodeId, rob: u16, order: LinkOrder) {
        let hosted = self.nodes[usize::from(node.0)].as_mut().expect("a component here");
        hosted.workshop.sources_mut().expect("a read-out system with sources").order(rob, order);
    }
}

/// Where an S-LINK connects to that is played here.
fn slink_place(at: &str) -> Option<SocketAddr> {
    from_here(at.strip_prefix("slink://")?)
}

fn front_end(name: &str, (source_id, size_max): (u32, usize)) -> FrontEnd {
    let (name, patience, mistakes) = (name.to_owned(), Duration::ZERO, ControlMistakes::default());
    FrontEnd { name, source_id, size_max, patience, mistakes }
}

/// What a number of few bits is.
fn whole(unwrap: &mut Option<Unwrap>, number: u64) -> u64 {
    unwrap.as_mut().map_or(number, |unwrap| unwrap.whole(number))
}

fn mode(handshake: configuration::Handshake) -> Mode {
    match handshake {
        configuration::Handshake::Eudet => Mode::Eudet,
        configuration::Handshake::Aida => Mode::Aida,
        configuration::Handshake::AidaNumber => Mode::AidaNumber,
    }
}

/// A source tells every second how far it is: that is in the view of sources, and no message.
fn differ_by_numbers_alone(before: &str, now: &str) -> bool {
    let words = |text: &str| text.replace(|c: char| c.is_ascii_digit() || "+-.".contains(c), "");
    !before.is_empty() && words(before) == words(now)
}

/// Data that belong to events by their time, or their count.
fn chunk(time: Interval, count: u64, head: &Head, page: Page, len: usize, status: StatusWord) -> LinkNews {
    let (begin, end) = head.time.unwrap_or_default();
    let chunk = ChunkHead { begin, end, len: len as u32, status };
    let bulk = Bulk::Pages(chunk.put(page));
    LinkNews::Chunk { time, count, status: status.0, bulk }
}

/// What a level-1 processor says of an event, and what is wrong with that. Detectors have seen the trigger: it stands, with nothing more
/// known of it.
fn trigger(event: EventId, head: &Head, payload: &[u8], damaged: bool) -> (TriggerRecord, Option<String>) {
    let decoded = match decode_trigger(event, head.trigger_type, payload) {
        _ if damaged => Err("its checksum does not fit".to_owned()),
        _ if head.flags.intersects(Flags::TRANSMISSION_ERROR | Flags::CUT) => {
            Err("the processor says that it is damaged".to_owned())
        }
        decoded => decoded.map_err(|bad| bad.to_string()),
    };
    match decoded {
        Ok(record) => (record, None),
        Err(why) => (TriggerRecord { event, ..TriggerRecord::default() }, Some(why)),
    }
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

/// Why a source may not return.
const COUNTS_ITSELF: &str =
    "it counts by itself, so nobody knows to which events it would go on; it may return with the next run";

/// So many breaches of a hand-shake by a source are told.
const BREACHES_TOLD: u64 = 8;

/// Most fragments of a link in a pass, so that no source starves the others.
const FRAGMENTS_PER_PASS: usize = 256;

/// Most pages for what event builders and those behind them hold: with fewer, a source waits for them.
const BEHIND_MAX: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_message_when_its_words_change() {
        let counts = ["event 12", "event 2041"];
        assert!(differ_by_numbers_alone(counts[0], counts[1]) && differ_by_numbers_alone("9.5 V, -3 A", "10 V, 3 A"));
        assert!(!differ_by_numbers_alone("", counts[0]) && !differ_by_numbers_alone(counts[1], "event 2041, armed"));
    }
}
