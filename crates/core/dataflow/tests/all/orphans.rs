//! Events that were built and cleared when their builder was lost: the bound of unfinished events moves on.

use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::{ClearAfter, Dfm, DfmInput, DfmParameters};
use dataflow::building::push_control::BuildingMode;
use dataflow::component::{Action, Component, Input, Note, Outbox, Outcome, PeerState, Processed, Ticket};
use dataflow::filter::efd::{Decider, Efd};
use dataflow::filter::policy::FilterPolicy;
use dataflow::ledger::Finish;
use dataflow::message::{BuiltEvent, Command, DebugReason, Ended, EventInfo, Fate, Grounds, Message};
use dataflow::report::{Counters, DfmCounters, Report};

use crate::filter_daemon;
use crate::pass::accept;

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
        Self::clearing_after(ClearAfter::Built)
    }

    /// Three events are built by the SFI.
    fn clearing_after(clear_after: ClearAfter) -> Self {
        let dfm = Dfm::new(DfmParameters {
            supervisors_return: false,
            returns: false,
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
            clear_after,
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
        self.says(LEVEL1, accept(vec![info(event)]));
        self.says(SFI, Message::EndOfEvent(vec![Ended { event: EventId(event), attempt: 1, missing: 0 }]));
    }

    fn has(&mut self, efd: NodeId, events: &[u64], last: bool) -> Vec<Action> {
        let events = events.iter().map(|event| EventId(*event)).collect();
        self.says(efd, Message::Orphans { sfi: SFI, life: FIRST, events, finished: Vec::new(), last })
    }

    fn has_told(&mut self, efd: NodeId, finished: Vec<Finish>) -> Vec<Action> {
        self.says(efd, Message::Orphans { sfi: SFI, life: FIRST, events: Vec::new(), finished, last: true })
    }

    /// The bound that level 1 is told, as one more event is built by the next life of the SFI.
    fn bound(&mut self) -> EventId {
        self.peer(SFI, PeerState::Up(Incarnation(1)));
        self.says(LEVEL1, accept(vec![info(9)]));
        let actions = self.says(SFI, Message::EndOfEvent(vec![Ended { event: EventId(9), attempt: 1, missing: 0 }]));
        let told = |action: &Action| match action {
            Action::Send { message: Message::FinishedBelow(bound), .. } => Some(*bound),
            _ => None,
        };
        actions.iter().find_map(told).unwrap_or_else(|| panic!("{actions:?}"))
    }

    fn lost(&self) -> u64 {
        self.counters().lost_built
    }

    fn counters(&self) -> DfmCounters {
        DfmCounters::from_values(&self.component.report(Time::ZERO).counters)
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
fn a_dfm_is_settled_once_all_that_is_built_is_finished() {
    let mut driver = Driver::new();
    assert!(driver.component.is_settled(), "the run goes on");
    driver.says(LEVEL1, Message::NoMore);
    driver.input(Input::Command(Command::Drain));
    driver.says(SFI, Message::NoMore);
    assert!(!driver.component.is_settled(), "three events are with the event filter");
    driver.says(SFI, Message::Finished((0..3).map(|event| finish(event, Fate::Accepted)).collect()));
    assert!(driver.component.is_settled());
}

#[test]
fn what_is_given_up_is_not_waited_for() {
    let mut driver = Driver::new();
    driver.input(Input::Command(Command::Abandon));
    assert!(driver.component.is_settled());
}

#[test]
fn a_finished_event_is_cleared_once() {
    let clears = |actions: &[Action]| actions.iter().filter(|a| matches!(a, Action::MulticastToReadout(_))).count();
    for (clear_after, expected) in [(ClearAfter::Built, 0), (ClearAfter::Recorded, 1)] {
        let mut driver = Driver::clearing_after(clear_after);
        let actions = driver.says(SFI, Message::Finished(vec![finish(0, Fate::Accepted)]));
        assert_eq!(clears(&actions), expected, "{actions:?}");
    }
    let unknown =
        Driver::new().says(SFI, Message::Finished(vec![finish(0, Fate::Accepted), finish(0, Fate::Accepted)]));
    assert_eq!(clears(&unknown), 0, "{unknown:?}");
}

#[test]
fn the_report_of_a_dfm_names_what_each_builder_has_built_and_who_has_no_room() {
    let mut driver = Driver::new();
    driver.says(SFI, Message::Finished(vec![finish(0, Fate::Accepted)]));
    let second = Time::from_ns(1_000_000_000);
    let of_sfi = |report: &Report| report.peers.iter().find(|peer| peer.node == SFI).map(|peer| peer.counts);
    let report = driver.component.report(second);
    assert_eq!((of_sfi(&report), report.blocked.len()), (Some([3, 0, 1]), 0));
    driver.says(LEVEL1, accept((10..19).map(info).collect()));
    let blocked = driver.component.report(second).blocked;
    assert!(matches!(&blocked[..], [one] if one.by == SFI && one.time_ns == second.as_ns()), "{blocked:?}");
}

#[test]
fn what_no_daemon_has_is_lost_and_bounds_nothing() {
    let mut driver = Driver::new();
    assert_eq!(asks(&driver.peer(SFI, PeerState::Up(Incarnation(1)))), EFDS);
    driver.has(EFDS[0], &[], true);
    assert_eq!(driver.lost(), 0, "the other has not answered");
    driver.has(EFDS[1], &[], false);
    let actions = driver.has(EFDS[1], &[2], true);
    assert_eq!(actions, [0, 1].map(|event| Action::Note(Note::LostBuilt(EventId(event)))));
    assert_eq!(driver.lost(), 2);
    assert_eq!(driver.bound(), EventId(2), "somebody has it");
    driver.says(EFDS[1], Message::Finished(vec![finish(2, Fate::Accepted)]));
    let counters = driver.counters();
    assert_eq!((counters.accepted, counters.finished_twice, counters.lost_built), (1, 0, 2));
}

#[test]
fn what_a_daemon_had_told_the_builder_is_not_lost_and_counts_once() {
    let mut driver = Driver::new();
    driver.says(SFI, Message::Finished(vec![finish(0, Fate::Accepted)]));
    driver.peer(SFI, PeerState::Gone);
    driver.has_told(EFDS[0], vec![finish(0, Fate::Accepted), finish(1, Fate::Rejected)]);
    driver.has_told(EFDS[1], Vec::new());
    let counters = driver.counters();
    assert_eq!((counters.accepted, counters.rejected, counters.finished_twice, counters.lost_built), (1, 1, 0, 1));
}

/// What is kept to be built again is not, where no builder is left.
#[test]
fn what_the_last_builder_was_told_is_asked_for_where_nothing_is_cleared() {
    let mut driver = Driver::clearing_after(ClearAfter::Recorded);
    driver.says(LEVEL1, accept(vec![info(3)]));
    assert_eq!(asks(&driver.peer(SFI, PeerState::Down)), [], "it may come back, and builds them again");
    let actions = driver.peer(SFI, PeerState::Gone);
    assert_eq!(asks(&actions), EFDS);
    let not_built = actions.into_iter().filter(|action| matches!(action, Action::Note(Note::NotBuilt(_))));
    assert_eq!(not_built.collect::<Vec<_>>(), [Action::Note(Note::NotBuilt(EventId(3)))]);
    driver.input(Input::Command(Command::Drain));
    driver.has_told(EFDS[0], vec![finish(0, Fate::Accepted), finish(1, Fate::Rejected)]);
    assert!(!driver.component.is_settled(), "one has not said what it has");
    driver.has_told(EFDS[1], Vec::new());
    assert!(driver.component.is_settled());
    let counters = driver.counters();
    assert_eq!((counters.built_complete, counters.not_built), (3, 1));
    assert_eq!((counters.accepted, counters.rejected, counters.finished_twice, counters.lost_built), (1, 1, 0, 1));
}

#[test]
fn a_builder_that_is_only_out_of_reach_loses_nothing() {
    let mut driver = Driver::new();
    assert_eq!(asks(&driver.peer(SFI, PeerState::Down)), []);
    EFDS.into_iter().for_each(|efd| _ = driver.has(efd, &[], true));
    assert_eq!(asks(&driver.peer(SFI, PeerState::Up(FIRST))), [], "it is back as it was");
    let fates = (0..3).map(|event| finish(event, Fate::Accepted)).collect();
    driver.says(SFI, Message::Finished(fates));
    let counters = driver.counters();
    assert_eq!((counters.accepted, counters.finished_twice, counters.lost_built), (3, 0, 0));
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
    driver.bound();
    let next = PeerState::Up(Incarnation(2));
    assert_eq!(asks(&driver.peer(SFI, next)), EFDS, "asked again, about all that it had");
    EFDS.into_iter().for_each(|efd| _ = driver.has(efd, &[], true));
    assert_eq!(driver.lost(), 0);
    for efd in EFDS {
        let (life, events, finished) = (Incarnation(1), Vec::new(), Vec::new());
        driver.says(efd, Message::Orphans { sfi: SFI, life, events, finished, last: true });
    }
    assert_eq!(driver.lost(), 4);
}

#[test]
fn a_daemon_answers_when_it_has_seen_the_loss_itself() {
    let mut driver = daemon(Decider::Tasks);
    driver.peer(DFM, PeerState::Up(FIRST));
    driver.peer(SFI, PeerState::Up(FIRST));
    let question = Message::Orphaned { sfi: SFI, life: FIRST };
    assert_eq!(driver.says(DFM, question.clone()), [], "more may be on the way");
    driver.says(SFI, built(5, 0));
    let answer = |events: &[u64], last| {
        let events = events.iter().map(|event| EventId(*event)).collect();
        Action::Send {
            to: DFM,
            message: Message::Orphans { sfi: SFI, life: FIRST, events, finished: Vec::new(), last },
        }
    };
    assert_eq!(driver.peer(SFI, PeerState::Down), [], "it may come back as it was");
    let actions = driver.peer(SFI, PeerState::Up(Incarnation(1)));
    assert_eq!(orphans(actions), [answer(&[5], false), answer(&[], true)]);
    driver.says(SFI, built(6, 0));
    assert_eq!(driver.says(DFM, question), [answer(&[5], false), answer(&[], true)], "6 is of the next life");
}

/// What a daemon has told a builder it says again, until the event is finished for all.
#[test]
fn a_daemon_remembers_what_it_has_told_a_builder_while_that_can_be_lost() {
    let policy = FilterPolicy::Prescale { factor: 2 };
    let mut driver = daemon(Decider::Policy(policy));
    driver.peer(DFM, PeerState::Up(FIRST));
    driver.peer(SFI, PeerState::Up(FIRST));
    let finished = |driver: &mut Driver<Efd>, life: u32| {
        let question = Message::Orphaned { sfi: SFI, life: Incarnation(life) };
        let told = driver.says(DFM, question).into_iter().filter_map(|action| match action {
            Action::Send { message: Message::Orphans { finished, .. }, .. } => Some(finished),
            _ => None,
        });
        told.flatten().map(|finish| (finish.event.0, finish.fate)).collect::<Vec<_>>()
    };
    for event in 0..4 {
        driver.says(SFI, built(event, 0));
    }
    driver.peer(SFI, PeerState::Up(Incarnation(1)));
    let all = [(0, Fate::Accepted), (1, Fate::Rejected), (2, Fate::Accepted), (3, Fate::Rejected)];
    assert_eq!(finished(&mut driver, 0), all);
    driver.says(SFI, built(7, 3));
    assert_eq!(finished(&mut driver, 0), all[3..], "what is finished for all is forgotten, and 7 is of the next life");
    driver.peer(SFI, PeerState::Gone);
    assert_eq!(finished(&mut driver, 1), [(3, Fate::Rejected), (7, Fate::Rejected)]);
}

/// The DFM died with what a daemon had told it in place of a builder that had died before, and had the event built again.
#[test]
fn a_daemon_remembers_what_it_has_told_the_dfm_in_place_of_a_lost_builder() {
    for dfm_is_away in [false, true] {
        let mut driver = daemon(Decider::Tasks);
        driver.peer(DFM, PeerState::Up(FIRST));
        driver.peer(SFI, PeerState::Up(FIRST));
        driver.says(SFI, built(5, 0));
        driver.peer(SFI, PeerState::Down);
        if dfm_is_away {
            driver.peer(DFM, PeerState::Down);
        }
        let failed = Processed::Fail { reason: DebugReason::Crash, result: Bulk::default() };
        driver.input(Input::Done { ticket: Ticket(5), outcome: Outcome::Processed(failed) });
        for life in 1..3 {
            let told = driver.peer(DFM, PeerState::Up(Incarnation(life))).into_iter().flat_map(|action| match action {
                Action::Send { message: Message::Held(holdings), .. } => holdings.finished,
                other => panic!("{other:?}"),
            });
            assert_eq!(told.collect::<Vec<_>>(), [finish(5, Fate::Debug)]);
        }
    }
}

fn daemon(decider: Decider) -> Driver<Efd> {
    Driver { component: Efd::new(filter_daemon::parameters(&[SFI], DFM, decider)), out: Outbox::new() }
}

fn built(event: u64, oldest_unfinished: u64) -> Message {
    let (missing, bulk) = (Vec::new(), Bulk::default());
    let event = EventInfo { ordinal: event, ..info(event) };
    Message::BuiltEvent(BuiltEvent { event, oldest_unfinished: EventId(oldest_unfinished), missing, bulk })
}

fn orphans(mut actions: Vec<Action>) -> Vec<Action> {
    actions.retain(|action| matches!(action, Action::Send { message: Message::Orphans { .. }, .. }));
    actions
}

fn finish(event: u64, fate: Fate) -> Finish {
    Finish { event: EventId(event), fate, complete: true, grounds: Grounds::Data }
}
