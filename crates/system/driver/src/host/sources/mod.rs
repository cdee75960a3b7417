//! The links of a read-out system whose sources send by themselves, and those of level-1 processors.

mod content;
mod faults;
mod line;
mod numbers;
mod opening;
mod reception;
mod resting;
mod state;
mod succession;

use base::causes;
use base::ids::NodeId;
use base::sources::SourceNow;
use base::time::Time;
use configuration::{Partition, Processor};
use dataflow::component::{Input, LinkNews, LinkOrder};
use dataflow::message::Message;
use link::{LinkError, Secret};
use rol::Inputs;
use transport::poller::Poller;
use transport::waker::Waker;

use super::players::{Complaints, Player};
use super::{Host, awaited};
use crate::assembly::Assembly;
use line::Line;
pub(super) use opening::SourcesError;
use opening::{Opened, Opening};
use reception::{Pass, Reception};
pub use resting::RestingLinks;

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
    messages: Vec<Message>,
}

impl Sources {
    /// Waits for the sources of read-out system `ros`, or plays them.
    pub(super) fn open(
        assembly: &Assembly,
        (ros, inputs): (usize, &Inputs),
        key: Option<&Secret>,
        (resting, waker): (&RestingLinks, &Waker),
    ) -> Result<Self, SourcesError> {
        let room = room_of(&assembly.partition);
        let mut sources = Self::none(assembly.partition.run.number(), room, resting, waker);
        let complaints = &sources.complaints.clone();
        let opening = Opening { assembly, key, resting, waker, complaints, room };
        let mut are_awaited = false;
        for (place, source) in assembly.sources_of(ros) {
            let opened = opening.source(place, source, inputs)?;
            are_awaited |= opened.is_awaited;
            sources.add(opened);
        }
        sources.messages.extend(are_awaited.then(|| Message::News(awaited::PLAY.to_owned())));
        Ok(sources)
    }

    /// Waits for the level-1 processors.
    pub(super) fn open_processors(
        assembly: &Assembly,
        processors: &[Processor],
        key: Option<&Secret>,
        (resting, waker): (&RestingLinks, &Waker),
    ) -> Result<Self, LinkError> {
        let room = FRAGMENTS_PER_PASS;
        let mut sources = Self::none(assembly.partition.run.number(), room, resting, waker);
        let complaints = &sources.complaints.clone();
        let opening = Opening { assembly, key, resting, waker, complaints, room };
        for (place, processor) in processors.iter().enumerate() {
            sources.add(opening.processor(place, processor, processors.len() == 1)?);
        }
        Ok(sources)
    }

    fn none(run: u32, room: usize, resting: &RestingLinks, waker: &Waker) -> Self {
        let (lines, players, complaints) = (Vec::new(), Vec::new(), Complaints::new(waker.clone()));
        let resting = resting.clone();
        Self { lines, resting, players, complaints, run, room, is_registered: false, messages: Vec::new() }
    }

    fn add(&mut self, Opened { line, player, news, .. }: Opened) {
        self.lines.push(line);
        self.players.extend(player);
        self.messages.extend(news.map(Message::News));
    }

    /// What a source is to do.
    pub(super) fn order(&mut self, rob: u16, order: LinkOrder) {
        self.lines[usize::from(rob)].order(order, self.run);
    }

    /// The name of the source of a ROB.
    fn name_of(&self, rob: u32) -> Option<&str> {
        self.lines.iter().find(|line| line.id == rob).map(|line| line.name.as_str())
    }

    fn has_work(&self, now: Time) -> bool {
        !self.is_registered
            || !self.messages.is_empty()
            || (!self.players.is_empty() && self.complaints.are_there())
            || self.lines.iter().any(|line| line.is_ready(now, self.room))
    }

    fn next_deadline(&self) -> Option<Time> {
        self.lines.iter().filter_map(|line| line.next_deadline(self.room)).min()
    }

    /// What came since the last pass, for the read-out system and for people.
    fn take(&mut self, now: Time, poller: &mut Poller, news: &mut Vec<(u16, LinkNews)>) -> Result<(), LinkError> {
        if !core::mem::replace(&mut self.is_registered, true) {
            self.lines.iter_mut().try_for_each(|line| line.intake.register(poller))?;
        }
        self.messages.extend(self.complaints.take().into_iter().map(Message::Notice));
        let Self { lines, messages, room, .. } = self;
        let receptions = lines.iter().map(|line| &line.reception);
        let newest = receptions.filter_map(Reception::reached).max().unwrap_or_default();
        for (rob, line) in (0_u16..).zip(lines) {
            line.take(now, poller, *room, &mut Pass { rob, newest, news, messages });
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
            let mut messages = core::mem::take(&mut sources.messages);
            messages.extend(taken.err().map(|error| Message::Notice(causes::together(&error))));
            messages.into_iter().for_each(|message| self.say(node, message));
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

/// Most fragments of a link in a pass: as many as there are pages left when the read-out system says that it is full.
fn room_of(partition: &Partition) -> usize {
    let (pages, busy_above) = (partition.ros.pages as usize, partition.ros.busy_above.as_f64());
    pages.saturating_sub((busy_above * pages as f64) as usize).clamp(1, FRAGMENTS_PER_PASS)
}

/// Most fragments of a link in a pass, so that no source starves the others.
const FRAGMENTS_PER_PASS: usize = 256;
