//! Connections on which nobody has proved yet to know the secret of the run: those that this process made, and strangers.
//!
//! A stranger costs little: a place, a small page once it has said something, and a short read when it says more. A pass
//! hears few of them. When all places are taken, one of the address that has the most is ended, the oldest first.

use core::fmt;
use std::collections::BTreeMap;
use std::time::Duration;

use base::time::Time;
use dataflow::message::{Envelope, Message};
use dataflow::wire;
use membership::challenge::{Challenge, Member, Nonce, Proven, Prover};
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
    places: usize,
    /// How long a stranger may take.
    timeout: Duration,
    /// Those that this process made.
    made: Vec<Waiting>,
    /// In the order in which they came.
    strangers: Vec<Waiting>,
    /// From which of them the next pass goes on.
    turn: usize,
    /// When one more can be taken in, if all places are taken.
    room_at: Time,
    stay: Stay,
}

/// How long a stranger keeps its place at least: a while longer than members have taken for their proof lately. Strangers that come
/// again and again soon make room then, and a member that waits behind them is heard soon.
#[derive(Clone, Copy)]
struct Stay {
    /// Of the proofs of members the slowest, former ones counting less and less.
    proof: Duration,
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
            places,
            timeout,
            made: Vec::new(),
            strangers: Vec::new(),
            turn: 0,
            room_at: Time::ZERO,
            stay: Stay::default(),
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
        let (made, strangers) = (core::mem::take(&mut self.made), core::mem::take(&mut self.strangers));
        let new = Self::new(self.prover.clone(), tcp, places, made_max, timeout)?;
        *self = Self { made, strangers, stay: self.stay, ..new };
        Ok(())
    }

    /// Proves with this from now on. Who is on the way to a former proof will not arrive.
    pub(super) fn prove_with(&mut self, prover: Prover) {
        self.prover = prover;
        self.made.clear();
        self.strangers.clear();
    }

    /// Has no place for strangers until it is renewed.
    pub(super) fn admit_nobody(&mut self) {
        self.places = 0;
    }

    /// Takes a connection in that this process has made to a member.
    pub(super) fn add_made(&mut self, link: LinkId, channel: Channel, to: Member, nonce: Nonce, now: Time) {
        let challenge = Challenge::of_connected(to, nonce);
        self.made.push(Waiting { link, channel, challenge, since: now, origin: Origin::Ours, outcome: None });
    }

    /// Takes a stranger in and challenges it. If another has to go for that, says who is there.
    pub(super) fn admit(
        &mut self,
        link: LinkId,
        channel: Channel,
        origin: Origin,
        nonce: Nonce,
        now: Time,
    ) -> Option<String> {
        let crowd = self.is_full().then(|| self.describe());
        if let Some(leaver) = self.leaver() {
            self.strangers.remove(leaver);
        }
        let (challenge, (envelope, message)) = Challenge::of_accepted(&self.prover, nonce);
        let mut stranger = Waiting { link, channel, challenge, since: now, origin, outcome: None };
        stranger.say(now, &envelope, &message);
        self.strangers.push(stranger);
        if let Some(leaver) = self.leaver() {
            self.room_at = self.strangers[leaver].since + self.stay.at_least();
        }
        crowd
    }

    /// Whether a stranger can be taken in. However many come, each has a while to prove itself.
    pub(super) fn has_room(&self, now: Time) -> bool {
        !self.is_full() || (self.places > 0 && self.room_at <= now)
    }

    /// When there is room, if there is none now.
    pub(super) fn room_at(&self) -> Option<Time> {
        (self.is_full() && self.places > 0).then_some(self.room_at)
    }

    fn is_full(&self) -> bool {
        self.strangers.len() >= self.places
    }

    /// Who goes for the next one, if all places are taken: of the address that has most of them the oldest.
    fn leaver(&self) -> Option<usize> {
        if self.is_full() { first_of_most(self.origins()) } else { None }
    }

    fn origins(&self) -> impl Iterator<Item = Origin> + Clone {
        self.strangers.iter().map(|stranger| stranger.origin)
    }

    fn describe(&self) -> String {
        let mut counts: Vec<_> = count(self.origins()).into_iter().collect();
        counts.sort_by_key(|(_, count)| core::cmp::Reverse(*count));
        let named = counts.iter().take(NAMED).map(|(origin, count)| format!("{count} from {origin}"));
        let others = if counts.len() > NAMED { ", …" } else { "" };
        let named = named.collect::<Vec<_>>().join(", ");
        format!("{} connections have not proved the key of the run: {named}{others}", self.strangers.len())
    }

    /// Whether somebody has something to say, or is gone.
    pub(super) fn is_receivable(&self, now: Time) -> bool {
        self.made.iter().chain(&self.strangers).any(|waiting| waiting.channel.link().is_receivable(now))
    }

    /// Hears those who have something to say, few strangers at a time, and hands out those that are done.
    pub(super) fn hear(&mut self, now: Time) -> Vec<Waiting> {
        let is_receivable = |waiting: &Waiting| waiting.channel.link().is_receivable(now);
        self.made.iter_mut().filter(|made| is_receivable(made)).for_each(|made| made.hear(now, &self.prover));
        let (len, turn) = (self.strangers.len(), self.turn);
        let mut heard = 0;
        for index in (0..len).map(|offset| (turn + offset) % len) {
            if heard == HEARD_PER_PASS {
                break;
            }
            let stranger = &mut self.strangers[index];
            if is_receivable(stranger) {
                stranger.hear(now, &self.prover);
                heard += 1;
                self.turn = index + 1;
            }
        }
        let is_done = |waiting: &mut Waiting| waiting.outcome.is_some();
        let done: Vec<Waiting> = self.strangers.extract_if(.., is_done).collect();
        let proven = done.iter().filter(|done| matches!(done.outcome, Some(Outcome::Proven(_))));
        proven.for_each(|member| self.stay.note_proof(now.since(member.since)));
        self.made.extract_if(.., is_done).chain(done).collect()
    }

    /// Hands over what could not be said at once.
    pub(super) fn flush(&mut self, now: Time) {
        for waiting in self.made.iter_mut().chain(&mut self.strangers) {
            if waiting.channel.link().is_flushable() {
                let _ = waiting.channel.link_mut().flush(now);
            }
        }
    }

    pub(super) fn is_flushable(&self) -> bool {
        self.made.iter().chain(&self.strangers).any(|waiting| waiting.channel.link().is_flushable())
    }

    /// Ends one.
    pub(super) fn close(&mut self, link: LinkId) {
        self.made.retain(|waiting| waiting.link != link);
        self.strangers.retain(|waiting| waiting.link != link);
    }

    /// Ends strangers whose time is over; how many.
    pub(super) fn close_late(&mut self, now: Time) -> usize {
        let late = self.strangers.iter().take_while(|stranger| now.since(stranger.since) > self.timeout).count();
        self.strangers.drain(..late).count()
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let late = self.strangers.first().map(|stranger| stranger.since + self.timeout + TICK);
        self.made.iter().map(|made| made.channel.link().next_deadline()).chain([late]).flatten().min()
    }
}

impl Default for Stay {
    fn default() -> Self {
        Self { proof: STAY_MAX / PROOFS_PER_STAY }
    }
}

impl Stay {
    fn note_proof(&mut self, took: Duration) {
        self.proof = took.max(self.proof / 2);
    }

    fn at_least(self) -> Duration {
        (self.proof * PROOFS_PER_STAY).clamp(STAY_MIN, STAY_MAX)
    }
}

/// The first of those of whose kind there are most.
fn first_of_most(origins: impl Iterator<Item = Origin> + Clone) -> Option<usize> {
    let counts = count(origins.clone());
    let most = counts.values().max()?;
    origins.into_iter().position(|origin| counts[&origin] == *most)
}

fn count(origins: impl Iterator<Item = Origin>) -> BTreeMap<Origin, usize> {
    let mut counts = BTreeMap::new();
    origins.for_each(|origin| *counts.entry(origin).or_default() += 1);
    counts
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

/// Before it is over no stranger has to go for another: a member that has just connected answers within it, on a busy machine too.
const STAY_MIN: Duration = Duration::from_millis(100);
/// Where members are slow, or none has come yet.
const STAY_MAX: Duration = Duration::from_secs(1);
const PROOFS_PER_STAY: u32 = 8;

/// So many addresses are named.
const NAMED: usize = 4;
const TICK: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn strangers_stay_no_longer_than_members_need() {
        let mut stay = Stay::default();
        assert_eq!(stay.at_least(), STAY_MAX, "nobody has proved anything yet");
        (0..5).for_each(|_| stay.note_proof(Duration::from_millis(1)));
        assert_eq!(stay.at_least(), STAY_MIN);
        stay.note_proof(Duration::from_millis(50));
        assert_eq!(stay.at_least(), Duration::from_millis(400), "one is slow");
        stay.note_proof(Duration::from_millis(1));
        assert_eq!(stay.at_least(), Duration::from_millis(200), "and is forgotten");
        stay.note_proof(Duration::from_secs(9));
        assert_eq!(stay.at_least(), STAY_MAX);
    }

    #[test]
    fn a_crowd_of_one_address_takes_no_place_of_another() {
        let [crowd, member] = [1, 2].map(|host| Origin::Address(IpAddr::from([10, 0, 0, host])));
        let mut strangers = vec![member, crowd, Origin::ThisHost, crowd, member];
        for _ in 0..1000 {
            strangers.push(crowd);
            let leaver = first_of_most(strangers.iter().copied()).unwrap();
            assert_eq!(Some(leaver), strangers.iter().position(|origin| *origin == crowd), "the oldest of the crowd");
            strangers.remove(leaver);
        }
        assert_eq!(strangers.iter().filter(|origin| **origin == member).count(), 2);
        assert_eq!(first_of_most([member, crowd].into_iter()), Some(0), "of as many the oldest of all");
        assert_eq!(first_of_most(core::iter::empty()), None);
    }
}
