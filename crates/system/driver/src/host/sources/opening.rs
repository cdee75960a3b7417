//! Opening the link of one source or level-1 processor, and playing what nobody else is to be.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use configuration::{LinkSource, Partition, Processor};
use link::{Address, Intake, IntakeParameters, LinkError, Secret};
use rol::detector::{Detector, PlayedError};
use rol::slink::{ControlMistakes, FrontEnd, from_here};
use rol::{ChunkHead, Inputs, PushedFragments, TRIGGER_BYTES_MAX, detector_of, processor_of};
use timing::handshake::Mode;
use timing::rule::Axis;
use transport::error::OsError;
use transport::random::random;
use transport::waker::Waker;

use super::super::players::{Complaints, Player};
use super::super::{awaited, frames};
use super::FRAGMENTS_PER_PASS;
use super::content::Content;
use super::line::Line;
use super::numbers::Numbers;
use super::reception::Reception;
use super::resting::RestingLinks;
use super::succession::Returning;
use crate::assembly::Assembly;

/// What the links of an application have in common.
pub(super) struct Opening<'a> {
    pub(super) assembly: &'a Assembly,
    pub(super) key: Option<&'a Secret>,
    pub(super) resting: &'a RestingLinks,
    pub(super) waker: &'a Waker,
    pub(super) complaints: &'a Complaints,
    /// Most fragments of a link in a pass.
    pub(super) room: usize,
}

/// A link that is open.
pub(super) struct Opened {
    pub(super) line: Line,
    pub(super) player: Option<Player>,
    /// What people are told of it.
    pub(super) news: Option<String>,
    /// Whether a program has to be started for it.
    pub(super) is_awaited: bool,
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

impl Opening<'_> {
    /// Waits for the source in this place of the list, or plays it.
    pub(super) fn source(&self, place: usize, source: &LinkSource, inputs: &Inputs) -> Result<Opened, SourcesError> {
        let detector = detector_of(self.partition(), place, inputs);
        let detector = detector.map_err(|error| SourcesError::played(&source.name, error))?;
        let played = detector.map(Played::new).transpose()?;
        let (id, is_played) = (source.source_id(place), played.is_some());
        let axis = self.assembly.timed(source).map(|timed| timed.rule.axis);
        let is_single = self.leads(place) && source.handshake == Some(configuration::Handshake::Eudet);
        let intake = self.link_of_source(source, id, axis.is_some(), played.as_ref())?;
        let intake = if is_single { intake.one_by_one() } else { intake };
        let (at, has_stayed) = (intake.address(), source.is_program() && intake.is_up());
        let news = match source.played().filter(|_| is_played) {
            Some(play) => Some(format!("plays source {} ({}) at {at}", source.name, play.name())),
            None if has_stayed => None,
            None => Some(awaited::notice(self.partition(), source, &at)),
        };
        let is_awaited = source.is_program() && !is_played && !has_stayed;
        let player = played.map(|played| self.play_source(source, id, at, played)).transpose()?;
        let reception = self.reception_of_source(place, source, axis, is_played);
        let line = Line { name: source.name.clone(), id, intake, reception, is_single, is_played };
        Ok(Opened { line, player, news, is_awaited })
    }

    /// Waits for the level-1 processor in this place of the list, or plays it. A lone one says which triggers there are.
    pub(super) fn processor(&self, place: usize, processor: &Processor, is_lone: bool) -> Result<Opened, LinkError> {
        let Processor { name, number_bits, .. } = processor;
        let played = processor_of(self.partition(), place).map(Played::new).transpose()?;
        let (id, is_played) = (Processor::source_id(place), played.is_some());
        let intake = self.link_of_processor(processor, id, played.as_ref())?;
        let (title, at) = (format!("level-1 processor {name}"), intake.address());
        let news = Some(format!("{} {title} at {at}", if is_played { "plays" } else { "waits for" }));
        let start =
            |Played { detector, key }| Player::start((name, &title), at, key, detector, self.complaints.clone());
        let player = played.map(start).transpose()?;
        let content = Content::Triggers { of_pushed: self.partition().ros.input == configuration::RosInput::Links };
        let returning = if is_lone { Returning::Always } else { Returning::of_bits(*number_bits) };
        let reception = Reception::new(title, content, Numbers::new(*number_bits, None), returning);
        let line = Line { name: name.clone(), id, intake, reception, is_single: false, is_played };
        Ok(Opened { line, player, news, is_awaited: false })
    }

    fn link_of_source(
        &self,
        source: &LinkSource,
        id: u32,
        is_timed: bool,
        played: Option<&Played>,
    ) -> Result<Intake, LinkError> {
        let partition = self.partition();
        let (headroom, tailroom) = if is_timed {
            (ChunkHead::BYTES, ChunkHead::TAILROOM)
        } else {
            (PushedFragments::HEADROOM, PushedFragments::TAILROOM)
        };
        let parameters = IntakeParameters {
            at: Address::of_intake(&source.address(), &partition.partition.name)?,
            name: source.name.clone(),
            id,
            key: self.key_of(played),
            size_max: size_max(source),
            headroom,
            tailroom,
            pages: partition.ros.pages as usize + self.room + self.pages_behind(source, is_timed),
            run: partition.run.number(),
            shared: partition.transport.shares_fragments(),
            frames: source.frame.as_ref().map(frames::format),
            from: comes_from(source, played.is_some()),
        };
        self.resting.open(parameters, self.waker)
    }

    fn link_of_processor(&self, processor: &Processor, id: u32, played: Option<&Played>) -> Result<Intake, LinkError> {
        let partition = self.partition();
        let parameters = IntakeParameters {
            at: Address::of_intake(&processor.address(), &partition.partition.name)?,
            name: processor.name.clone(),
            id,
            key: self.key_of(played),
            size_max: TRIGGER_BYTES_MAX,
            headroom: 0,
            tailroom: 0,
            pages: 2 * FRAGMENTS_PER_PASS,
            run: partition.run.number(),
            shared: false,
            frames: None,
            from: None,
        };
        self.resting.open(parameters, self.waker)
    }

    /// Pages for what event builders and those behind them hold.
    fn pages_behind(&self, source: &LinkSource, is_timed: bool) -> usize {
        let events = self.assembly.events_behind_ros();
        if is_timed { events.max(BEHIND_MAX.min(events * source.chunks as usize)) } else { events }
    }

    fn key_of(&self, played: Option<&Played>) -> Option<Secret> {
        played.map(|played| &played.key).or(self.key).cloned()
    }

    fn reception_of_source(&self, place: usize, source: &LinkSource, axis: Option<Axis>, is_played: bool) -> Reception {
        let partition = self.partition();
        let (source_id, run_number) = (source.source_id(place), partition.run.number());
        let adler32 = partition.ros.checksum == configuration::Checksum::Adler32;
        let fragments = PushedFragments { source_id, run_number, adler32 };
        let content = axis.map_or(Content::Numbered(fragments), Content::Matched);
        let mode = source.handshake.map(mode);
        let returning = match mode {
            _ if self.leads(place) || axis == Some(Axis::Time) => Returning::Always,
            // Its numbers are those of the trigger logic unit, however few bits they have.
            Some(mode) if mode.has_numbers() && !is_played => Returning::IfNumbered,
            Some(_) => Returning::Never,
            None => Returning::of_bits(source.bits_of_numbers()),
        };
        let numbers = Numbers::new(source.bits_of_numbers(), mode);
        Reception::new(format!("source {}", source.name), content, numbers, returning)
    }

    fn play_source(&self, source: &LinkSource, id: u32, at: String, played: Played) -> Result<Player, LinkError> {
        let (Played { detector, key }, complaints) = (played, self.complaints.clone());
        match slink_place(&at).filter(|_| source.is_slink()) {
            Some(place) => Player::start_slink(front_end(source, id), place, detector, complaints),
            None => Player::start((&source.name, &format!("source {}", source.name)), at, key, detector, complaints),
        }
    }

    /// Whether this source says which events there are.
    fn leads(&self, place: usize) -> bool {
        self.partition().leader() == Some(place)
    }

    fn partition(&self) -> &Partition {
        &self.assembly.partition
    }
}

/// What is played in the place of a source. Nobody else has its key, and so nobody else is the source.
struct Played {
    detector: Detector,
    key: Secret,
}

impl Played {
    fn new(detector: Detector) -> Result<Self, OsError> {
        Ok(Self { detector, key: Secret::of_bytes(random()?) })
    }
}

/// The host that a device sends from. An S-LINK proves no key: where it is played nobody comes from another host.
fn comes_from(source: &LinkSource, is_played: bool) -> Option<IpAddr> {
    if is_played && source.is_slink() { slink_place(&source.address()).map(|place| place.ip()) } else { source.from }
}

/// Where an S-LINK connects to that is played here.
fn slink_place(at: &str) -> Option<SocketAddr> {
    from_here(at.strip_prefix("slink://")?)
}

fn front_end(source: &LinkSource, source_id: u32) -> FrontEnd {
    let (patience, mistakes) = (Duration::ZERO, ControlMistakes::default());
    FrontEnd { name: source.name.clone(), source_id, size_max: size_max(source), patience, mistakes }
}

fn size_max(source: &LinkSource) -> usize {
    usize::try_from(source.size_max.bytes()).unwrap_or(usize::MAX)
}

fn mode(handshake: configuration::Handshake) -> Mode {
    match handshake {
        configuration::Handshake::Eudet => Mode::Eudet,
        configuration::Handshake::Aida => Mode::Aida,
        configuration::Handshake::AidaNumber => Mode::AidaNumber,
    }
}

/// Most pages for what event builders and those behind them hold: with fewer, a source waits for them.
const BEHIND_MAX: usize = 16_384;
