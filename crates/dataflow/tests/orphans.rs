//! Events that were built and cleared when their builder was lost: the bound of unfinished events moves on.

use std::time::Duration;

use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::{ClearAfter, Dfm, DfmInput, DfmParameters};
use dataflow::building::push_control::BuildingMode;
use dataflow::bulk::Bulk;
use dataflow::component::{Action, Component, Input, Outbox, PeerState};
use dataflow::filter::efd::{Decider, Efd, EfdParameters};
use dataflow::ids::{EventId, Incarnation, NodeId};
use dataflow::message::{BuiltEvent, Ended, EventInfo, Fate, Message};
use dataflow::report::DfmCounters;
use dataflow::time::Time;

const LEVEL1: NodeId = NodeId(1);
const DFM: NodeId = NodeId(3);
const SFI: NodeId = NodeId(4);
const EFDS: [NodeId; 2] = [NodeId(6), NodeId(7)];
const FIRST: Incarnation = Incarnation(0);

struct Driver<C> {
    component: C,
    out: Outbox,
}

impl<C: Component> Driver<C> {
    fn input(&mut self, input: Input) -> Vec<Action> {
        self.component.handle(Time::ZERO, input, &mut self.out);
        self.component.flush(Time::ZERO, &mut self.out);
        self.component.check();
        self.out.drain().collect()
    }

    fn peer(&mut self, node: NodeId, state: PeerState) -> Vec<Action> {
        self.input(Input::Peer { node, state })
    }

    fn says(&mut self, from: NodeId, message: Message) -> Vec<Action> {
        self.input(Input::Message { from, message })
    }
}

impl Driver<Dfm> {
    /// Three events are built by the SFI and cleared.
    fn new() -> Self {
        let dfm = Dfm::new(DfmParameters {
            supervisors_return: false,
            input: DfmInput::Level1(LEVEL1),
            sfis: vec![SFI],
            efds: EFDS.to_vec(),
            building: 8,
            assignment: SfiAssignment::RoundRobin,
            run: 1,
            mode: BuildingMode::Pull,
            build_timeout: Duration::from_secs(1),
            clear_group: 1,
            clear_age: Duration::from_secs(1),
            clear_after: ClearAfter::Built,
            queue: 10,
            in_flight: 10,
            late: false,
        });
        let mut driver = Self { component: dfm, out: Outbox::new() };
        for node in [LEVEL1, SFI, EFDS[0], EFDS[1]] {
            driver.peer(node, PeerState::Up(FIRST));
        }
        (0..3).for_each(|event| driver.build(event));
        driver
    }

    fn build(&mut self, event: u64) {
        self.says(LEVEL1, Message::L1Result { event: info(event), rois: Vec::new() });
        self.says(SFI, Message::EndOfEvent(vec![Ended { event: EventId(event), attempt: 1, missing: 0 }]));
    }

    fn has(&mut self, efd: NodeId, events: &[u64], last: bool) -> Vec<Action> {
        let events = events.iter().map(|event| EventId(*event)).collect();
        self.says(efd, Message::Orphans { sfi: SFI, life: FIRST, events, last })
    }

    /// The bound that level 1 is told, as one more event is built by the next life of the SFI.
    fn bound(&mut self) -> EventId {
        self.peer(SFI, PeerState::Up(Incarnation(1)));
        self.says(LEVEL1, Message::L1Result { event: info(9), rois: Vec::new() });
        let actions = self.says(SFI, Message::EndOfEvent(vec![Ended { event: EventId(9), attempt: 1, missing: 0 }]));
        let told = |action: &Action| match action {
            Action::Send { message: Message::FinishedBelow(bound), .. } => Some(*bound),
            _ => None,
        };
        actions.iter().find_map(told).unwrap_or_else(|| panic!("{actions:?}"))
    }

    fn lost(&self) -> u64 {
        DfmCounters::from_values(&self.component.report(Time::ZERO).counters).lost_built
    }
}

fn info(event: u64) -> EventInfo {
    EventInfo { event: EventId(event), ..EventInfo::default() }
}

fn asks(actions: &[Action]) -> Vec<NodeId> {
    let asked = |action: &Action| match action {
        Action::Send { to, message: Message::Orphaned { sfi: SFI, .. } } => Some(*to),
        _ => None,
    };
    actions.iter().filter_map(asked).collect()
}

#[test]
fn what_no_daemon_has_is_lost_and_bounds_nothing() {
    let mut driver = Driver::new();
    assert_eq!(asks(&driver.peer(SFI, PeerState::Down)), EFDS);
    driver.has(EFDS[0], &[], true);
    assert_eq!(driver.lost(), 0, "the other has not answered");
    driver.has(EFDS[1], &[], false);
    driver.has(EFDS[1], &[2], true);
    assert_eq!(driver.lost(), 2);
    assert_eq!(driver.bound(), EventId(2), "somebody has it");
    driver.says(EFDS[1], Message::Finished(vec![(EventId(2), Fate::Accepted)]));
    let counters = DfmCounters::from_values(&driver.component.report(Time::ZERO).counters);
    assert_eq!((counters.accepted, counters.finished_twice, counters.lost_built), (1, 0, 2));
}

#[test]
fn a_daemon_that_is_away_is_asked_when_it_is_back_and_one_that_is_gone_has_nothing() {
    let mut driver = Driver::new();
    driver.peer(EFDS[0], PeerState::Down);
    assert_eq!(asks(&driver.peer(SFI, PeerState::Gone)), [EFDS[1]]);
    driver.has(EFDS[1], &[0], true);
    assert_eq!(driver.lost(), 0, "the one that is away may have the others");
    assert_eq!(asks(&driver.peer(EFDS[0], PeerState::Up(Incarnation(1)))), [EFDS[0]]);
    driver.has(EFDS[0], &[], true);
    assert_eq!(driver.lost(), 2);
    driver.peer(EFDS[1], PeerState::Down);
    assert_eq!(driver.lost(), 2, "it may come back as it was");
    driver.peer(EFDS[1], PeerState::Gone);
    assert_eq!(driver.lost(), 3);
}

#[test]
fn an_answer_about_an_earlier_life_is_no_answer() {
    let mut driver = Driver::new();
    driver.peer(SFI, PeerState::Down);
    driver.bound();
    assert_eq!(asks(&driver.peer(SFI, PeerState::Down)), EFDS, "asked again, about all that it had");
    EFDS.into_iter().for_each(|efd| _ = driver.has(efd, &[], true));
    assert_eq!(driver.lost(), 0);
    for efd in EFDS {
        driver.says(efd, Message::Orphans { sfi: SFI, life: Incarnation(1), events: Vec::new(), last: true });
    }
    assert_eq!(driver.lost(), 4);
}

#[test]
fn a_daemon_answers_when_it_has_seen_the_loss_itself() {
    let parameters = EfdParameters {
        sfis: vec![SFI],
        sfos: Vec::new(),
        dfm: DFM,
        slots: 4,
        decider: Decider::Tasks,
        streams: Vec::new(),
    };
    let mut driver = Driver { component: Efd::new(parameters), out: Outbox::new() };
    driver.peer(DFM, PeerState::Up(FIRST));
    driver.peer(SFI, PeerState::Up(FIRST));
    let question = Message::Orphaned { sfi: SFI, life: FIRST };
    assert_eq!(driver.says(DFM, question.clone()), [], "more may be on the way");
    let built = |event| {
        let (oldest_unfinished, missing, bulk) = (EventId(0), Vec::new(), Bulk::default());
        Message::BuiltEvent(BuiltEvent { event: info(event), oldest_unfinished, missing, bulk })
    };
    driver.says(SFI, built(5));
    let answer = |events: &[u64], last| {
        let events = events.iter().map(|event| EventId(*event)).collect();
        Action::Send { to: DFM, message: Message::Orphans { sfi: SFI, life: FIRST, events, last } }
    };
    assert_eq!(driver.peer(SFI, PeerState::Down), [answer(&[5], false), answer(&[], true)]);
    driver.peer(SFI, PeerState::Up(Incarnation(1)));
    driver.says(SFI, built(6));
    assert_eq!(driver.says(DFM, question), [answer(&[5], false), answer(&[], true)], "6 is of the next life");
}
