//! Connections on which nobody has proved yet to know the secret of the run: those that this process made, and strangers.
//!
//! A stranger costs little: a place, a small page once it has said something, and a short read when it says more. A pass
//! hears few of them. The [`Door`] says who has to go for others.

use core::fmt;
use std::collections::BTreeMap;
use std::time::Duration;

use base::ids::NodeId;
use base::time::Time;
use dataflow::message::{Envelope, Message};
use dataflow::wire;
use membership::challenge::{Challenge, Member, Nonce, Proven, Prover};
use membership::door::Door;
use membership::passage::LinkId;
use transport::frame::{Frame, FrameLimits};
use transport::link::{Lost, SendError};
use transport::page_pool::{Pool, PoolError, PoolOptions};
use transport::tcp::TcpOptions;

use super::channel::{Channel, Origin};

/// The connections of a process that are on the way to their proof.
pub(super) struct Unproven {
    prover: Prover,
    /// How TCP connections are set up until then.
    pub(super) tcp: TcpOptions,
    pub(super) pool: Pool,
    /// Those that this process made.
    made: Vec<Waiting>,
    /// The others, as the door has them.
    strangers: BTreeMap<LinkId, Waiting>,
    door: Door<Origin>,
    /// With which of them the next pass goes on.
    turn: LinkId,
}

/// One of them.
pub(super) struct Waiting {
    pub(super) link: LinkId,
    pub(super) channel: Channel,
    challenge: Challenge,
    /// When it came.
    pub(super) since: Time,
    origin: Origin,
    outcome: Option<Outcome>,
}

/// What became of one.
pub(super) enum Outcome {
    Proven(Proven),
    Refused(String),
    Lost(Lost),
}

impl Waiting {
    pub(super) fn is_ours(&self) -> bool {
        self.origin == Origin::Ours
    }

    /// What became of it; to be asked once it is done.
    pub(super) fn outcome(&mut self) -> Outcome {
        self.outcome.take().expect("only those that are done are handed out")
    }

    /// Takes in what it says, little at a time.
    fn hear(&mut self, now: Time, prover: &Prover) {
        let filled = self.channel.link_mut().fill(now);
        while let Some(frame) = self.channel.next_frame() {
            self.outcome = self.on_frame(now, prover, frame);
            if self.outcome.is_some() {
                return;
            }
        }
        self.outcome = filled.err().map(Outcome::Lost);
    }

    fn on_frame(&mut self, now: Time, prover: &Prover, frame: Frame) -> Option<Outcome> {
        let refused = |reason: &dyn fmt::Display| Some(Outcome::Refused(reason.to_string()));
        let (envelope, message) = match wire::decode_parts(&frame.head, frame.rest) {
            Ok(decoded) => decoded,
            Err(error) => return refused(&error),
        };
        match self.challenge.on_message(prover, &envelope, &message) {
            Ok(step) => {
                if let Some((envelope, message)) = step.say {
                    self.say(now, &envelope, &message);
                }
                let proven = step.proven?;
                // What follows is read by other settings.
                let is_at_end = self.channel.is_between_frames();
                if is_at_end { Some(Outcome::Proven(proven)) } else { refused(&"said more than its proof at once") }
            }
            Err(unproven) => refused(&unproven),
        }
    }

    fn say(&mut self, now: Time, envelope: &Envelope, message: &Message) {
        let mut encoded = Vec::new();
        wire::encode(envelope, message, &mut encoded);
        match self.channel.link_mut().send(&encoded, &base::bulk::Bulk::empty()) {
            // A loss is reported when the last frames have been received.
            Ok(()) => _ = self.channel.link_mut().flush(now),
            Err(SendError::Lost(_)) => {}
            Err(SendError::Full) => panic!("a connection holds two short frames"),
        }
    }
}

impl Unproven {
    /// For connections that have the settings `tcp` later, with places for so many strangers.
    pub(super) fn new(
        prover: Prover,
        tcp: &TcpOptions,
        places: usize,
        made_max: usize,
        timeout: Duration,
    ) -> Result<Self, PoolError> {
        let limits = FrameLimits::new(wire::HEADER_LEN, FRAME_MAX).expect("a header is shorter than a proof");
        let tcp = TcpOptions { limits, read_budget_bytes: FRAME_MAX, ..tcp.clone() };
        let pages = places + made_max + 1;
        let pool = Pool::new(&PoolOptions { name: "strangers".into(), page_len: PAGE_LEN, pages, prefault: false })?;
        Ok(Self {
            prover,
            tcp,
            pool,
            made: Vec::new(),
            strangers: BTreeMap::new(),
            door: Door::new(places, timeout),
            turn: LinkId(0),
        })
    }

    /// The same connections with the settings of a partition.
    pub(super) fn renew(
        &mut self,
        tcp: &TcpOptions,
        places: usize,
        made_max: usize,
        timeout: Duration,
    ) -> Result<(), PoolError> {
        let Self { tcp, pool, .. } = Self::new(self.prover.clone(), tcp, places, made_max, timeout)?;
        (self.tcp, self.pool) = (tcp, pool);
        self.door.renew(places, timeout);
        Ok(())
    }

    /// Proves with this from now on. Who is on the way to a former proof will not arrive.
    pub(super) fn prove_with(&mut self, prover: Prover) {
        self.prover = prover;
        self.made.clear();
        self.strangers.clear();
        self.door.clear();
    }

    /// Has no place for strangers until it is renewed.
    pub(super) fn admit_nobody(&mut self) {
        self.door.close();
    }

    /// Takes a connection in that this process has made to a member.
    pub(super) fn add_made(&mut self, link: LinkId, channel: Channel, to: Member, nonce: Nonce, now: Time) {
        let challenge = Challenge::of_connected(to, nonce);
        self.made.push(Waiting { link, channel, challenge, since: now, origin: Origin::Ours, outcome: None });
    }

    /// Takes a stranger in and challenges it; whether another had to go for that.
    pub(super) fn admit(&mut self, link: LinkId, channel: Channel, origin: Origin, nonce: Nonce, now: Time) -> bool {
        let leaver = self.door.admit(link, origin, now);
        leaver.iter().for_each(|leaver| _ = self.strangers.remove(leaver));
        let (challenge, (envelope, message)) = Challenge::of_accepted(&self.prover, nonce);
        let mut stranger = Waiting { link, channel, challenge, since: now, origin, outcome: None };
        stranger.say(now, &envelope, &message);
        self.strangers.insert(link, stranger);
        leaver.is_some()
    }

    /// The connection of a member that had proved itself here is gone.
    pub(super) fn miss(&mut self, member: NodeId, now: Time) {
        self.door.miss(member, now);
    }

    /// Whether a stranger can be taken in.
    pub(super) fn has_room(&self, now: Time) -> bool {
        self.door.has_room(now)
    }

    /// When there is room, if there is none now.
    pub(super) fn room_at(&self) -> Option<Time> {
        self.door.room_at()
    }

    /// Who is there, in words.
    pub(super) fn describe(&self) -> String {
        let crowd = self.door.crowd();
        let named = crowd.iter().take(NAMED).map(|(origin, count)| format!("{count} from {origin}"));
        let others = if crowd.len() > NAMED { ", …" } else { "" };
        let named = named.collect::<Vec<_>>().join(", ");
        format!("{} connections have not proved the key of the run: {named}{others}", self.strangers.len())
    }

    /// Whether somebody has something to say, or is gone.
    pub(super) fn is_receivable(&self, now: Time) -> bool {
        self.made.iter().chain(self.strangers.values()).any(|waiting| waiting.channel.link().is_receivable(now))
    }

    /// Hears those who have something to say, few strangers at a time, and hands out those that are done.
    pub(super) fn hear(&mut self, now: Time) -> Vec<Waiting> {
        let is_receivable = |waiting: &Waiting| waiting.channel.link().is_receivable(now);
        self.made.iter_mut().filter(|made| is_receivable(made)).for_each(|made| made.hear(now, &self.prover));
        let mut heard = Vec::new();
        for range in [self.turn..LinkId(usize::MAX), LinkId(0)..self.turn] {
            let receivable = self.strangers.range_mut(range).filter(|(_, stranger)| is_receivable(stranger));
            for (link, stranger) in receivable.take(HEARD_PER_PASS - heard.len()) {
                stranger.hear(now, &self.prover);
                heard.push(*link);
            }
        }
        self.turn = heard.last().map_or(self.turn, |LinkId(last)| LinkId(last + 1));
        heard.retain(|link| self.strangers[link].outcome.is_some());
        let done = heard.iter().filter_map(|link| self.strangers.remove(link)).inspect(|done| match &done.outcome {
            Some(Outcome::Proven(Proven { peer, .. })) => self.door.prove(done.link, peer.0, now),
            _ => self.door.leave(done.link),
        });
        self.made.extract_if(.., |made| made.outcome.is_some()).chain(done).collect()
    }

    /// Hands over what could not be said at once.
    pub(super) fn flush(&mut self, now: Time) {
        for waiting in self.made.iter_mut().chain(self.strangers.values_mut()) {
            if waiting.channel.link().is_flushable() {
                let _ = waiting.channel.link_mut().flush(now);
            }
        }
    }

    pub(super) fn is_flushable(&self) -> bool {
        self.made.iter().chain(self.strangers.values()).any(|waiting| waiting.channel.link().is_flushable())
    }

    /// Ends one.
    pub(super) fn close(&mut self, link: LinkId) {
        self.made.retain(|waiting| waiting.link != link);
        self.strangers.remove(&link);
        self.door.leave(link);
    }

    /// Ends strangers whose time is over; how many.
    pub(super) fn close_late(&mut self, now: Time) -> usize {
        let before = self.strangers.len();
        while let Some(link) = self.door.next_late(now) {
            self.strangers.remove(&link);
        }
        before - self.strangers.len()
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let late = self.door.next_deadline();
        self.made.iter().map(|made| made.channel.link().next_deadline()).chain([late]).flatten().min()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Ours | Self::ThisHost => f.write_str("this host"),
        }
    }
}

/// The longest message of a challenge, and some.
const FRAME_MAX: usize = 128;
const PAGE_LEN: usize = 4096;

/// So many strangers are heard in a pass.
const HEARD_PER_PASS: usize = 16;

/// So many addresses are named.
const NAMED: usize = 4;
