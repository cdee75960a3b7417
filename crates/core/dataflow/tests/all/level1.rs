//! Level 1 by itself: its times, its dead time, and triggers from outside.

use std::time::Duration;

use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::component::{Action, Component, Input, Outbox, PeerState};
use dataflow::level1::dead_time::{DeadTimeParameters, LeakyBucket};
use dataflow::level1::kept::Keep;
use dataflow::level1::pace::Spacing;
use dataflow::level1::trigger::{Level1, Level1Parameters, Trigger, TriggerInput, TriggerSource};
use dataflow::message::{BusyCause, Command, Message};
use dataflow::report::{Counters, Level1Counters};

const DECIDER: NodeId = NodeId(2);
const START: Time = Time::from_ns(1_000_003);

struct Numbered;

impl TriggerSource for Numbered {
    fn trigger(&mut self, ordinal: u64) -> Option<Trigger> {
        Some(Trigger { bcid: ordinal as u16, ..Trigger::default() })
    }
}

pub(crate) fn parameters(spacing: Spacing, crossings: Option<DeadTimeParameters>) -> Level1Parameters {
    Level1Parameters {
        readout: Vec::new(),
        deciders: vec![DECIDER],
        keep: Keep::Nothing,
        listeners: Vec::new(),
        first: EventId(0),
        limit: None,
        spacing,
        profile: Vec::new(),
        crossings,
        in_flight: 1000,
        seed: 1,
    }
}

/// Level 1 with a decider that takes everything, started; and what it does.
struct Driver {
    level1: Level1,
    now: Time,
    /// When events were issued, after the start, and their bunch crossings.
    issued: Vec<(u64, u16)>,
}

impl Driver {
    fn new(parameters: Level1Parameters, input: TriggerInput) -> Self {
        let level1 = Level1::new(parameters, input);
        let mut driver = Self { level1, now: START, issued: Vec::new() };
        driver.input(Input::Peer { node: DECIDER, state: PeerState::Up(Incarnation(0)) });
        driver.input(Input::Command(Command::Start));
        driver
    }

    fn input(&mut self, input: Input) {
        let mut out = Outbox::new();
        self.level1.handle(self.now, input, &mut out);
        self.level1.check();
        for action in out.drain() {
            if let Action::Send { message: Message::L1Result { event, .. }, .. } = action {
                self.issued.push((self.now.as_ns() - START.as_ns(), event.bcid));
            }
        }
    }

    fn message(&mut self, message: Message) {
        self.input(Input::Message { from: DECIDER, message });
    }

    /// Until this many ns after the start, at every time that level 1 asks for.
    fn run(&mut self, ns: u64) {
        let end = START + Duration::from_nanos(ns);
        while let Some(deadline) = self.level1.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = deadline.max(self.now);
            self.input(Input::Deadline);
        }
        self.now = end;
    }

    fn times(&self) -> Vec<u64> {
        self.issued.iter().map(|(time, _)| *time).collect()
    }

    fn counters(&self) -> Level1Counters {
        Level1Counters::from_values(&self.level1.report(self.now).counters)
    }
}

fn dead_time(simple: u64, complex: &[LeakyBucket]) -> Option<DeadTimeParameters> {
    Some(DeadTimeParameters { simple, complex: complex.to_vec() })
}

#[test]
fn readout_is_told_before_deciders_and_these_before_they_hear_that_nothing_follows() {
    let readout = NodeId(7);
    let parameters = parameters(Spacing::Unlimited, None);
    let parameters = Level1Parameters { readout: vec![readout], limit: Some(3), ..parameters };
    let mut level1 = Level1::new(parameters, TriggerInput::Source(Box::new(Numbered)));
    let mut out = Outbox::new();
    let up = |node| Input::Peer { node, state: PeerState::Up(Incarnation(0)) };
    [up(readout), up(DECIDER), Input::Command(Command::Start)]
        .into_iter()
        .for_each(|input| level1.handle(START, input, &mut out));
    let told = out.drain().filter_map(|action| match action {
        Action::Send { to, message: Message::L1Accept { events, .. } } => Some((to, events.len())),
        Action::Send { to, message: Message::L1Result { event, .. } } => Some((to, usize::from(event.bcid))),
        Action::Send { to, message: Message::IssuedUpTo(last) } => Some((to, last.0 as usize)),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told, [(readout, 3), (DECIDER, 0), (DECIDER, 1), (DECIDER, 2), (DECIDER, 2)]);
}

#[test]
fn simple_dead_time_vetoes_the_crossings_after_a_trigger() {
    let parameters = parameters(Spacing::Fixed(Duration::from_nanos(100)), dead_time(9, &[]));
    let mut driver = Driver::new(parameters, TriggerInput::Source(Box::new(Numbered)));
    driver.run(1000);
    assert_eq!(driver.times(), [0, 300, 600, 900]);
    let Level1Counters { offered, vetoed, vetoed_simple, .. } = driver.counters();
    assert_eq!((offered, vetoed, vetoed_simple), (11, 7, 7));
}

#[test]
fn complex_dead_time_vetoes_bursts() {
    let bucket = LeakyBucket { size: 2, drain: 20 };
    let parameters = parameters(Spacing::Fixed(Duration::from_nanos(100)), dead_time(0, &[bucket]));
    let mut driver = Driver::new(parameters, TriggerInput::Source(Box::new(Numbered)));
    driver.run(1600);
    assert_eq!(driver.times(), [0, 100, 500, 1000, 1500], "two at once, then one per 20 crossings");
    assert_eq!((driver.counters().vetoed_complex, driver.counters().vetoed), (12, 12));
}

#[test]
fn an_offer_in_several_dead_times_counts_as_busy() {
    let parameters = parameters(Spacing::Fixed(Duration::from_nanos(100)), dead_time(9, &[]));
    let mut driver = Driver::new(parameters, TriggerInput::Source(Box::new(Numbered)));
    driver.message(Message::Busy { cause: BusyCause::Pages, on: true });
    driver.run(350);
    driver.message(Message::Busy { cause: BusyCause::Pages, on: false });
    driver.run(500);
    let Level1Counters { issued, vetoed_busy, vetoed_simple, .. } = driver.counters();
    assert_eq!((issued, vetoed_busy, vetoed_simple), (2, 3, 1), "{:?}", driver.issued);
}

#[test]
fn triggers_without_a_rate_come_after_the_dead_time_instead_of_being_vetoed() {
    let bucket = LeakyBucket { size: 3, drain: 40 };
    let parameters = parameters(Spacing::Unlimited, dead_time(3, &[bucket]));
    let mut driver = Driver::new(parameters, TriggerInput::Source(Box::new(Numbered)));
    driver.run(3000);
    assert_eq!(driver.times(), [0, 100, 200, 1000, 2000, 3000]);
    assert_eq!((driver.counters().offered, driver.counters().vetoed), (6, 0));
    assert_eq!(driver.issued[3].1, 3, "the bunch crossing is that of the source");
}

#[test]
fn after_busy_triggers_come_in_the_crossings_that_follow() {
    let parameters = parameters(Spacing::Unlimited, dead_time(399, &[]));
    let mut driver = Driver::new(parameters, TriggerInput::Source(Box::new(Numbered)));
    driver.message(Message::Busy { cause: BusyCause::Pages, on: true });
    driver.run(50_010);
    driver.message(Message::Busy { cause: BusyCause::Pages, on: false });
    driver.run(70_000);
    assert_eq!(driver.times(), [0, 50_025, 60_025], "not in crossings of the time in between");
}

/// All that was not finished went out at once, however much it was.
#[test]
fn a_dfm_that_returns_is_told_again_within_its_window() {
    let parameters = Level1Parameters { keep: Keep::Unfinished, in_flight: 10, ..parameters(Spacing::Unlimited, None) };
    let mut level1 = Level1::new(parameters, Box::new(Numbered) as Box<dyn TriggerSource + Send>);
    let mut out = Outbox::new();
    let mut input = |input: Input| {
        level1.handle(START, input, &mut out);
        level1.check();
        let told = |action: Action| match action {
            Action::Send { message: Message::L1Accept { events, .. }, .. } => {
                events.iter().map(|event| event.event.0).collect()
            }
            Action::Send { message: Message::IssuedUpTo(event), .. } => vec![1_000_000 + event.0],
            _ => Vec::new(),
        };
        out.drain().flat_map(told).collect::<Vec<u64>>()
    };
    let says = |message| Input::Message { from: DECIDER, message };
    input(Input::Peer { node: DECIDER, state: PeerState::Up(Incarnation(0)) });
    let mut sent = input(Input::Command(Command::Start));
    for _ in 0..4 {
        sent.extend(input(says(Message::Taken(sent.len() as u64))));
    }
    assert_eq!(sent, (0..50).collect::<Vec<_>>());
    input(Input::Peer { node: DECIDER, state: PeerState::Down });
    assert_eq!(input(Input::Peer { node: DECIDER, state: PeerState::Up(Incarnation(1)) }), (0..10).collect::<Vec<_>>());
    assert_eq!(input(says(Message::FinishedBelow(EventId(30)))), [], "the window is full");
    assert_eq!(input(says(Message::Taken(4))), [30, 31, 32, 33]);
    assert_eq!(input(Input::Command(Command::Pause)), []);
    assert_eq!(input(says(Message::Taken(14))), (34..44).collect::<Vec<_>>());
    assert_eq!(input(says(Message::Taken(24))), [44, 45, 46, 47, 48, 49, 1_000_049], "now it knows how far level 1 is");
    assert_eq!(input(Input::Command(Command::Resume)), [50, 51, 52, 53]);
}

const MS: u64 = 1_000_000;

/// A decider whose window holds ten, and whose driver sleeps for 50 ms at a rate of 1 kHz.
fn called_late(spacing: Spacing) -> Driver {
    let parameters = Level1Parameters { in_flight: 10, ..parameters(spacing, None) };
    let mut driver = Driver::new(parameters, TriggerInput::Source(Box::new(Numbered)));
    driver.now = START + Duration::from_nanos(50 * MS);
    driver.input(Input::Deadline);
    assert_eq!(driver.issued.len(), 10, "what the window holds");
    driver
}

#[test]
fn offers_that_level_1_is_late_with_wait_for_room() {
    let mean = Duration::from_millis(1);
    for spacing in [Spacing::Fixed(mean), Spacing::Poisson(mean)] {
        let mut driver = called_late(spacing);
        for ms in 51..200 {
            driver.run(ms * MS);
            driver.message(Message::Taken(driver.counters().issued));
        }
        let Level1Counters { offered, issued, vetoed, .. } = driver.counters();
        assert_eq!((offered, vetoed), (issued, 0), "{spacing:?}");
        assert!((160..240).contains(&issued), "{issued} in 200 ms");
    }
}

#[test]
fn offers_that_find_no_room_as_long_as_level_1_was_late_are_dead_time() {
    let mut driver = called_late(Spacing::Fixed(Duration::from_millis(1)));
    driver.run(98 * MS);
    assert_eq!(driver.counters().vetoed, 0);
    driver.run(110 * MS);
    assert_eq!((driver.counters().issued, driver.counters().vetoed_busy), (10, 101), "nothing waits any more");
    driver.message(Message::Taken(10));
    driver.run(122 * MS);
    assert_eq!((driver.counters().issued, driver.counters().vetoed_busy), (20, 103), "the window is full again");
}

/// While the room lasts they do not wait, and who comes in time finds dead time that is none of level 1's.
#[test]
fn an_offer_in_time_is_vetoed_once_level_1_has_caught_up() {
    let mut driver = called_late(Spacing::Fixed(Duration::from_millis(1)));
    for _ in 0..5 {
        driver.message(Message::Taken(driver.counters().issued));
    }
    assert_eq!((driver.counters().issued, driver.counters().vetoed), (51, 0));
    driver.run(60 * MS);
    assert_eq!((driver.counters().issued, driver.counters().vetoed), (60, 1), "the window is full at once");
}

#[test]
fn offers_that_wait_at_the_stop_are_dead_time() {
    for command in [Command::Pause, Command::Drain] {
        let mut driver = called_late(Spacing::Fixed(Duration::from_millis(1)));
        driver.input(Input::Command(command));
        let Level1Counters { offered, issued, vetoed_busy, .. } = driver.counters();
        assert_eq!((offered, issued, vetoed_busy), (51, 10, 41));
    }
}
