//! A DFM that returns within a run, alone with what the others tell it.

use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::{ClearAfter, Dfm, DfmInput, DfmParameters};
use dataflow::building::push_control::BuildingMode;
use dataflow::component::{Action, Component, Input, Note, Outbox, Outcome, PeerState, Ticket, Unfinished, Work};
use dataflow::ledger::{Finish, Ledger, Tally};
use dataflow::level1::pace::Spacing;
use dataflow::message::{
    Assignment, Attempt, BuiltEvent, Command, Decision, Ended, EventInfo, Fate, Grounds, HeldEvent, Holdings, Message,
    Recording,
};
use dataflow::recording::sfo::{Durable, Sfo, SfoParameters};
use dataflow::report::{Counters, DfmCounters, SfoCounters};

const L2SV: NodeId = NodeId(2);
const SFIS: [NodeId; 2] = [NodeId(4), NodeId(5)];
const EFD: NodeId = NodeId(6);
const BUILD_TIMEOUT: Duration = Duration::from_secs(1);

/// A DFM in its second life, and what it sends.
struct Driver {
    dfm: Dfm,
    out: Outbox,
}

impl Driver {
    fn new() -> Self {
        Self::with_daemons(Vec::new())
    }

    fn with_daemons(efds: Vec<NodeId>) -> Self {
        Self::with(efds, DfmInput::Level2 { l2svs: vec![L2SV], level1: NodeId(1) })
    }

    fn with(efds: Vec<NodeId>, input: DfmInput) -> Self {
        let dfm = Dfm::new(DfmParameters {
            supervisors_return: false,
            returns: false,
            input,
            sfis: SFIS.to_vec(),
            efds,
            building: 4,
            assignment: SfiAssignment::RoundRobin,
            run: 1,
            mode: BuildingMode::Pull,
            build_timeout: BUILD_TIMEOUT,
            clear_group: 1,
            clear_age: Duration::from_secs(1),
            clear_after: ClearAfter::Recorded,
            queue: 10,
            in_flight: 10,
            late: true,
        });
        Self { dfm, out: Outbox::new() }
    }

    fn input(&mut self, now: Time, input: Input) -> Vec<Action> {
        self.dfm.handle(now, input, &mut self.out);
        self.dfm.flush(now, &mut self.out);
        self.dfm.check();
        self.out.drain().collect()
    }

    fn up(&mut self, node: NodeId) -> Vec<Action> {
        self.input(Time::ZERO, Input::Peer { node, state: PeerState::Up(Incarnation(0)) })
    }

    fn says(&mut self, from: NodeId, message: Message) -> Vec<Action> {
        self.input(Time::ZERO, Input::Message { from, message })
    }

    fn counters(&self) -> DfmCounters {
        DfmCounters::from_values(&self.dfm.report(Time::ZERO).counters)
    }
}

fn info(event: u64) -> EventInfo {
    EventInfo { event: EventId(event), ..EventInfo::default() }
}

/// Events 1 to 4, accepted.
fn told_again() -> Message {
    let accepted = |event| Decision { event: info(event), accept: true, has_result: false, builder: None };
    Message::Decisions { sequence: 1, oldest_undecided: EventId(5), decisions: (1..=4).map(accepted).collect() }
}

fn held(event: u64, attempt: u16, granted: bool) -> HeldEvent {
    HeldEvent { assigned: Assignment { event: info(event), attempt, has_result: false }, granted, missing: 0 }
}

/// Which events are given to whom.
fn builds(actions: &[Action]) -> Vec<(NodeId, u64)> {
    let of = |action: &Action| match action {
        Action::Send { to, message: Message::Build { events, .. } } => {
            events.iter().map(|assigned| (*to, assigned.event.event.0)).collect()
        }
        _ => Vec::new(),
    };
    actions.iter().flat_map(of).collect()
}

#[test]
fn nothing_is_given_out_that_a_builder_has_or_has_finished() {
    let mut driver = Driver::new();
    for node in [L2SV, SFIS[0], SFIS[1]] {
        driver.up(node);
    }
    assert!(builds(&driver.says(L2SV, told_again())).is_empty(), "the builders have not told");
    let events = vec![held(1, 1, true), held(2, 3, false)];
    let finished = vec![finish(3, Fate::Accepted)];
    let holdings = Holdings { events, finished, last: true, ..Holdings::default() };
    assert!(builds(&driver.says(SFIS[0], Message::Held(holdings))).is_empty(), "one has not told");
    let second = Holdings { events: vec![held(2, 1, false)], last: true, ..Holdings::default() };
    let actions = driver.says(SFIS[1], Message::Held(second));
    assert_eq!(builds(&actions).iter().map(|(_, event)| *event).collect::<Vec<_>>(), [4], "{actions:?}");
    let taken = Message::DecisionsTaken { up_to: 1, oldest_unfinished: EventId(1) };
    assert!(actions.contains(&Action::Send { to: L2SV, message: taken }), "{actions:?}");
    assert_eq!((driver.counters().told_again, driver.counters().duplicates), (3, 0));

    let ended = |attempt| Message::EndOfEvent(vec![Ended { event: EventId(2), attempt, missing: 0 }]);
    let attempt = |attempt| vec![Attempt { event: EventId(2), attempt }];
    let actions = driver.says(SFIS[1], ended(1));
    assert!(actions.contains(&Action::Send { to: SFIS[1], message: Message::Revoked(attempt(1)) }), "{actions:?}");
    let actions = driver.says(SFIS[0], ended(3));
    assert!(actions.contains(&Action::Send { to: SFIS[0], message: Message::Granted(attempt(3)) }), "{actions:?}");
}

#[test]
fn numbers_that_a_builder_has_heard_of_are_not_given_to_other_events() {
    let (readout, first, spacing) = (Vec::new(), EventId(0), Spacing::Unlimited);
    let mut driver = Driver::with(Vec::new(), DfmInput::SelfTrigger { readout, first, limit: None, spacing, seed: 1 });
    driver.input(Time::ZERO, Input::Command(Command::Start));
    SFIS.into_iter().for_each(|node| _ = driver.up(node));
    let finished = (0..4).map(|event| finish(event, Fate::Accepted)).collect();
    let first = Holdings { finished, newest: Some(EventId(5)), last: true, ..Holdings::default() };
    assert_eq!(builds(&driver.says(SFIS[0], Message::Held(first))), []);
    let second = Holdings { newest: Some(EventId(3)), last: true, ..Holdings::default() };
    let actions = driver.says(SFIS[1], Message::Held(second));
    let events: Vec<u64> = builds(&actions).iter().map(|(_, event)| *event).collect();
    let sorted = std::collections::BTreeSet::from_iter(events.iter().copied());
    assert_eq!(sorted, (4..12).collect(), "4 and 5 are lost and triggered again: {actions:?}");
    let ordinals = |action: &Action| match action {
        Action::Send { message: Message::Build { events, .. }, .. } => {
            events.iter().all(|assigned| assigned.event.ordinal == assigned.event.event.0)
        }
        _ => true,
    };
    assert!(actions.iter().all(ordinals), "{actions:?}");
}

#[test]
fn until_all_is_known_nothing_is_called_too_old() {
    let mut driver = Driver::new();
    driver.up(L2SV);
    driver.says(L2SV, told_again());
    let finished = vec![finish(3, Fate::Rejected)];
    let actions = driver.says(SFIS[0], Message::Held(Holdings { finished, last: true, ..Holdings::default() }));
    let bounds: Vec<EventId> = actions
        .iter()
        .filter_map(|action| match action {
            Action::MulticastToReadout(Message::Clear { oldest_valid, .. }) => Some(*oldest_valid),
            _ => None,
        })
        .collect();
    assert_eq!(bounds, [EventId(0)], "event 3 is cleared again, and 1 may be anywhere");
}

#[test]
fn who_cannot_be_reached_is_not_waited_for_long_and_who_is_slow_is_longer() {
    let at = |timeouts: u32| Time::ZERO + BUILD_TIMEOUT * timeouts;
    for (second_is_there, until) in [(false, at(1)), (true, at(10))] {
        let mut driver = Driver::new();
        driver.up(L2SV);
        driver.up(SFIS[0]);
        if second_is_there {
            driver.up(SFIS[1]);
        }
        driver.says(L2SV, told_again());
        driver.says(SFIS[0], Message::Held(Holdings { last: true, ..Holdings::default() }));
        let early = driver.input(at(1), Input::Deadline);
        assert_eq!(builds(&early).is_empty(), second_is_there, "{early:?}");
        let actions = if second_is_there { driver.input(until, Input::Deadline) } else { early };
        assert!(builds(&actions).iter().any(|(_, event)| *event == 1), "{actions:?}");
        assert!(actions.contains(&Action::Note(Note::RecoveredWithout(SFIS[1]))), "{actions:?}");
        assert_eq!(driver.counters().recovered_without, 1);
    }
}

fn ends(event: u64, attempt: u16) -> Message {
    Message::EndOfEvent(vec![Ended { event: EventId(event), attempt, missing: 0 }])
}

fn all(events: Vec<HeldEvent>) -> Message {
    Message::Held(Holdings { events, last: true, ..Holdings::default() })
}

/// An end of event was granted at once, though another builder, not heard yet, had been granted the event.
#[test]
fn an_end_of_event_waits_until_all_builders_have_told() {
    let mut driver = Driver::new();
    for node in [L2SV, SFIS[0], SFIS[1]] {
        driver.up(node);
    }
    driver.says(SFIS[0], all(vec![held(2, 1, false)]));
    assert_eq!(driver.says(SFIS[0], ends(2, 1)), [], "the other may have it");
    let actions = driver.says(SFIS[1], all(vec![held(2, 2, true)]));
    let revoked = Message::Revoked(vec![Attempt { event: EventId(2), attempt: 1 }]);
    assert_eq!(actions, [Action::Send { to: SFIS[0], message: revoked }]);
}

/// A builder that is lost gets no grant for events that it had ended.
#[test]
fn an_end_of_event_does_not_wait_for_a_builder_that_is_lost() {
    let mut driver = Driver::new();
    for node in [L2SV, SFIS[0], SFIS[1]] {
        driver.up(node);
    }
    driver.says(SFIS[0], all(vec![held(2, 1, false)]));
    driver.says(SFIS[0], ends(2, 1));
    driver.input(Time::ZERO, Input::Peer { node: SFIS[0], state: PeerState::Down });
    let actions = driver.says(SFIS[1], all(Vec::new()));
    assert_eq!(builds(&actions), [(SFIS[1], 2)], "{actions:?}");
    assert_eq!(driver.counters().revoked, 0);
}

/// A builder that was heard too late was given an event that it had, as the attempt that it had.
#[test]
fn a_builder_that_has_not_told_gets_no_event() {
    let mut driver = Driver::new();
    driver.up(L2SV);
    driver.up(SFIS[0]);
    driver.says(L2SV, told_again());
    driver.says(SFIS[0], Message::SfiBusy(true));
    driver.says(SFIS[0], all(Vec::new()));
    driver.input(Time::ZERO + BUILD_TIMEOUT, Input::Deadline);
    assert_eq!(driver.counters().recovered_without, 1);
    assert!(builds(&driver.up(SFIS[1])).is_empty(), "it may have them all");
    let actions = driver.says(SFIS[1], all(vec![held(3, 1, false)]));
    assert_eq!(builds(&actions), [(SFIS[1], 1), (SFIS[1], 2), (SFIS[1], 4)], "{actions:?}");
    let actions = driver.says(SFIS[1], ends(3, 1));
    let granted = Message::Granted(vec![Attempt { event: EventId(3), attempt: 1 }]);
    assert!(actions.contains(&Action::Send { to: SFIS[1], message: granted }), "{actions:?}");
}

/// The fate of an event whose builder had died counted as told twice, and the event was not cleared.
#[test]
fn a_fate_that_comes_before_its_event_is_told_again_is_no_duplicate() {
    let mut driver = Driver::new();
    driver.up(L2SV);
    driver.up(SFIS[0]);
    let filter = NodeId(9);
    let actions = driver.says(filter, Message::Finished(vec![finish(3, Fate::Accepted)]));
    let clears = |action: &Action| matches!(action, Action::MulticastToReadout(Message::Clear { events, .. }) if **events == [EventId(3)]);
    assert!(actions.iter().any(clears), "{actions:?}");
    driver.says(L2SV, told_again());
    driver.says(SFIS[0], all(Vec::new()));
    driver.input(Time::ZERO + BUILD_TIMEOUT, Input::Deadline);
    let counters = driver.counters();
    assert_eq!((counters.finished_unseen, counters.finished_twice, counters.told_again), (1, 0, 1));
    assert_eq!((counters.taken_accepted, counters.accepted), (4, 1));
}

/// A builder died with the DFM to which alone it had told a fate: the event was built again, from data that had been cleared.
#[test]
fn what_only_a_filter_daemon_knows_to_be_finished_is_not_built_again() {
    let mut driver = Driver::with_daemons(vec![EFD]);
    for node in [L2SV, EFD, SFIS[0], SFIS[1]] {
        driver.up(node);
    }
    driver.says(L2SV, told_again());
    for sfi in SFIS {
        assert_eq!(builds(&driver.says(sfi, all(Vec::new()))), [], "the filter daemon has not told");
    }
    let finished = vec![finish(1, Fate::Rejected), Finish { complete: false, ..finish(2, Fate::Accepted) }];
    let actions = driver.says(EFD, Message::Held(Holdings { finished, last: true, ..Holdings::default() }));
    let built: Vec<u64> = builds(&actions).into_iter().map(|(_, event)| event).collect();
    assert!(!built.is_empty() && !built.contains(&1) && !built.contains(&2), "{built:?}");
    let c = driver.counters();
    assert_eq!((c.rejected, c.accepted, c.built_complete, c.built_incomplete), (1, 1, 1, 1));
}

/// The counts of a former life of the DFM were lost with it, and so was the fate of events of a builder that died.
#[test]
fn a_dfm_that_returns_goes_on_counting_from_the_highest_bound_that_anybody_knows() {
    let mut driver = Driver::new();
    let tally = |complete, rejected| Tally { complete, rejected, accepted: complete - rejected, ..Tally::default() };
    let ledger = |below, tally| Box::new(Ledger { below: EventId(below), tally });
    for node in [L2SV, SFIS[0], SFIS[1]] {
        driver.up(node);
    }
    let told = |ledger, finished, last| Message::Held(Holdings { ledger, finished, last, ..Holdings::default() });
    driver
        .says(SFIS[0], told(ledger(2, tally(2, 1)), vec![finish(2, Fate::Accepted), finish(3, Fate::Rejected)], true));
    assert_eq!(driver.counters().taken_accepted, 4);
    driver.says(L2SV, told(ledger(3, tally(3, 1)), Vec::new(), false));
    driver.says(SFIS[1], told(ledger(1, tally(1, 0)), Vec::new(), true));
    let c = driver.counters();
    assert_eq!(
        (c.taken_accepted, c.rejected, c.accepted, c.built_complete),
        (4, 2, 2, 4),
        "2 is among the three below 3"
    );
}

/// A supervisor and a DFM died: on what level 2 had accepted the events that were finished by then nobody knew any more.
#[test]
fn a_dfm_that_returns_learns_on_what_finished_events_had_been_accepted() {
    let mut driver = Driver::new();
    for node in [L2SV, SFIS[0], SFIS[1]] {
        driver.up(node);
    }
    let on = |event, grounds| Finish { grounds, ..finish(event, Fate::Accepted) };
    let told = |ledger, finished| Message::Held(Holdings { ledger, finished, last: true, ..Holdings::default() });
    let finished = vec![on(5, Grounds::PartOfData), on(6, Grounds::Timeout), on(7, Grounds::Timeout)];
    driver.says(SFIS[0], told(Box::default(), finished));
    let c = driver.counters();
    assert_eq!((c.taken_accepted, c.taken_incomplete, c.taken_forced), (3, 1, 2));
    let tally = Tally { complete: 6, accepted: 6, forced: 3, on_part: 2, ..Tally::default() };
    driver.says(SFIS[1], told(Box::new(Ledger { below: EventId(7), tally }), Vec::new()));
    let c = driver.counters();
    assert_eq!((c.taken_accepted, c.taken_incomplete, c.taken_forced), (7, 2, 4), "5 and 6 are among the six below 7");
}

/// Events that waited for the files of a former life were in no count where the recorder was told to give up.
#[test]
fn what_waits_for_the_files_of_a_former_life_is_counted_when_it_is_given_up() {
    let mut sfo = Sfo::new(SfoParameters { durable: Durable::Write, retry_after: BUILD_TIMEOUT, late: true });
    let mut out = Outbox::new();
    let taken_over = Outcome::TakenOver { events: Vec::new(), closed: Vec::new(), recorded: [0; 3] };
    let inputs = [
        record(1),
        Input::Command(Command::Abandon),
        record(2),
        Input::Done { ticket: Ticket(1), outcome: taken_over },
        record(3),
    ];
    for input in inputs {
        sfo.handle(Time::ZERO, input, &mut out);
        sfo.check();
    }
    let counters = SfoCounters::from_values(&sfo.report(Time::ZERO).counters);
    assert_eq!((counters.received, counters.abandoned), (3, 3));
    let writes = |action: Action| matches!(action, Action::Start { work: Work::Record(_), .. });
    assert!(!out.drain().any(writes), "nothing is written");
}

/// A message that said that all events far ahead were finished had a recorder take them for recorded, and acknowledge them unwritten.
#[test]
fn an_event_to_record_is_not_finished_whatever_its_message_says() {
    let mut sfo = Sfo::new(SfoParameters { durable: Durable::Write, retry_after: BUILD_TIMEOUT, late: false });
    let mut out = Outbox::new();
    for input in [record_below(1, 1 << 40), record(2), record(3)] {
        sfo.handle(Time::ZERO, input, &mut out);
        sfo.check();
    }
    let writes = |action: &Action| matches!(action, Action::Start { work: Work::Record(_), .. });
    assert_eq!(out.drain().filter(writes).count(), 3);
}

#[test]
fn events_of_a_file_that_could_not_be_closed_counted_as_recorded() {
    let taken_over = [(0, [0; 3]), (5, [5, 6, 70])];
    for (former, counts) in taken_over {
        let late = former > 0;
        let mut sfo = Sfo::new(SfoParameters { durable: Durable::Write, retry_after: BUILD_TIMEOUT, late });
        let mut out = Outbox::new();
        let take_over = Outcome::TakenOver { events: Vec::new(), closed: Vec::new(), recorded: counts };
        let recorded = || Outcome::Recorded { copies: 2, bytes: 10, closed: Vec::new() };
        // All of this life, and what a former one had left open.
        let unfinished = Unfinished { events: 2 + former, copies: 4 + former, bytes: 30 };
        let tickets = (u64::from(late) + 1..).map(Ticket);
        let outcomes = [recorded(), recorded(), Outcome::Closed { files: Vec::new(), unfinished }];
        let mut done = tickets.zip(outcomes).map(|(ticket, outcome)| Input::Done { ticket, outcome });
        let mut inputs = vec![record(1), record(2)];
        inputs.extend(late.then_some(Input::Done { ticket: Ticket(1), outcome: take_over }));
        inputs.extend(done.by_ref().take(2));
        inputs.push(Input::Command(Command::Drain));
        inputs.extend(done);
        for input in inputs {
            sfo.handle(Time::ZERO, input, &mut out);
            sfo.check();
        }
        let c = SfoCounters::from_values(&sfo.report(Time::ZERO).counters);
        assert_eq!((c.received, c.recorded, c.copies, c.bytes), (2, 2, 4, 20));
        assert_eq!([c.taken_over, c.taken_over_copies, c.taken_over_bytes], counts);
        assert_eq!((c.unfinished, c.unfinished_copies, c.unfinished_bytes), (2 + former, 4 + former, 30));
        assert!(sfo.is_drained());
    }
}

/// What comes to a recorder that has closed its files is answered: nobody waits for it.
#[test]
fn a_recorder_that_has_closed_refuses_what_it_has_not_recorded() {
    let mut sfo = Sfo::new(SfoParameters { durable: Durable::Write, retry_after: BUILD_TIMEOUT, late: false });
    let mut out = Outbox::new();
    let recorded = Outcome::Recorded { copies: 1, bytes: 1, closed: Vec::new() };
    let closed = Outcome::Closed { files: Vec::new(), unfinished: Unfinished::default() };
    let inputs = [
        record(1),
        Input::Done { ticket: Ticket(1), outcome: recorded },
        Input::Command(Command::Drain),
        Input::Done { ticket: Ticket(2), outcome: closed },
    ];
    for input in inputs {
        sfo.handle(Time::ZERO, input, &mut out);
    }
    assert!(sfo.is_drained());
    out.drain().for_each(drop);
    for event in [1, 2] {
        sfo.handle(Time::ZERO, record(event), &mut out);
        sfo.check();
    }
    let answers = [Message::Recorded { event: EventId(1), fresh: false, complete: true }, Message::Refused(EventId(2))];
    let answers = answers.map(|message| Action::Send { to: NodeId(9), message });
    assert_eq!(out.drain().collect::<Vec<_>>(), answers);
}

/// A recorder does not close its files while an event is in hand, and counts each attempt that failed.
#[test]
fn files_are_closed_once_nothing_is_in_hand() {
    let recorded = || Outcome::Recorded { copies: 1, bytes: 1, closed: Vec::new() };
    let done = |ticket, outcome| Input::Done { ticket: Ticket(ticket), outcome };
    let drain = || Input::Command(Command::Drain);
    let taken_over = || Outcome::TakenOver { events: Vec::new(), closed: Vec::new(), recorded: [0; 3] };
    let age = Durable::Sync { age: BUILD_TIMEOUT, events: 9 };
    // All inputs but the last one leave something in hand; counted are failures.
    let cases = [
        (Durable::Write, false, vec![record(1), drain(), done(1, recorded())], 0),
        (Durable::Write, false, vec![record(1), drain(), done(1, Outcome::RecordRefused)], 0),
        (
            Durable::Write,
            false,
            vec![
                record(1),
                record(2),
                drain(),
                done(1, Outcome::RecordFailed),
                done(2, recorded()),
                done(3, recorded()),
            ],
            1,
        ),
        (age, false, vec![record(1), done(1, recorded()), drain(), done(2, Outcome::Synced)], 0),
        (Durable::Write, true, vec![drain(), done(1, taken_over())], 0),
        (Durable::Write, true, vec![record(1), drain(), done(1, taken_over()), done(2, recorded())], 0),
    ];
    for (durable, late, inputs, failures) in cases {
        let mut sfo = Sfo::new(SfoParameters { durable, retry_after: BUILD_TIMEOUT, late });
        let (mut out, last) = (Outbox::new(), inputs.len() - 1);
        for (index, input) in inputs.into_iter().enumerate() {
            sfo.handle(Time::ZERO, input, &mut out);
            sfo.check();
            let closes = out.drain().any(|action| matches!(action, Action::Start { work: Work::Close, .. }));
            assert_eq!(closes, index == last, "after input {index} of {last}, {durable:?}, {late}");
        }
        let counters = SfoCounters::from_values(&sfo.report(Time::ZERO).counters);
        assert_eq!((counters.failures, counters.abandoned), (failures, 0));
    }
}

/// Events that a failed sync left open counted as recorded when they were given up: 136 were said, 128 were in the file. Then one that
/// was written while others were made durable counted as not recorded, and was in the file.
#[test]
fn after_a_failed_sync_the_files_tell_what_was_recorded() {
    let durable = Durable::Sync { age: BUILD_TIMEOUT, events: 2 };
    for fails in [false, true] {
        let mut sfo = Sfo::new(SfoParameters { durable, retry_after: BUILD_TIMEOUT, late: false });
        let mut out = Outbox::new();
        let written = || Outcome::Recorded { copies: 2, bytes: 10, closed: Vec::new() };
        let done = |ticket, outcome| Input::Done { ticket: Ticket(ticket), outcome };
        let mut all = |inputs: Vec<Input>| -> (Vec<Work>, usize) {
            for input in inputs {
                sfo.handle(Time::ZERO, input, &mut out);
                sfo.check();
            }
            let (mut works, mut told) = (Vec::new(), 0);
            for action in out.drain() {
                match action {
                    Action::Start { work, .. } if !matches!(work, Work::Record(_)) => works.push(work),
                    Action::Send { message: Message::Recorded { .. }, .. } => told += 1,
                    _ => {}
                }
            }
            (works, told)
        };
        let three = vec![record(1), record(2), record(3), done(1, written()), done(2, written()), done(3, written())];
        assert_eq!(all(three), (vec![Work::Sync], 0));
        assert_eq!(all(vec![done(4, Outcome::Synced)]), (vec![], 3), "the third was written before, too");
        let two = vec![record(4), record(5), done(5, written()), done(6, written())];
        assert_eq!(all(two), (vec![Work::Sync], 0));
        let given_up = vec![done(7, Outcome::SyncFailed), Input::Command(Command::Abandon)];
        assert_eq!(all(given_up), (vec![Work::Sync], 0), "closed before it is known what is durable");
        let (last, told) = if fails { (Outcome::SyncFailed, 0) } else { (Outcome::Synced, 2) };
        assert_eq!(all(vec![done(8, last)]), (vec![Work::Close], told));
        let unfinished = if fails { Unfinished { events: 2, copies: 4, bytes: 20 } } else { Unfinished::default() };
        all(vec![done(9, Outcome::Closed { files: Vec::new(), unfinished })]);
        let SfoCounters { recorded, copies, bytes, abandoned, failures, .. } =
            SfoCounters::from_values(&sfo.report(Time::ZERO).counters).in_files();
        let kept = if fails { 3 } else { 5 };
        assert_eq!((recorded, copies, bytes), (kept, 2 * kept, 10 * kept));
        assert_eq!((abandoned, failures), (0, 1 + u64::from(fails)));
    }
}

fn record(event: u64) -> Input {
    record_below(event, 0)
}

fn record_below(event: u64, oldest_unfinished: u64) -> Input {
    let (missing, bulk) = (Vec::new(), Bulk::default());
    let built = BuiltEvent { event: info(event), oldest_unfinished: EventId(oldest_unfinished), missing, bulk };
    Input::Message { from: NodeId(9), message: Message::Record(Recording { built, streams: 1, debug: None }) }
}

/// A builder told of an attempt that was void, before another told that the event was finished for all: it was granted.
#[test]
fn a_void_attempt_at_an_event_that_is_finished_for_all_is_not_granted() {
    let mut driver = Driver::new();
    for node in [L2SV, SFIS[0], SFIS[1]] {
        driver.up(node);
    }
    driver.says(SFIS[0], all(vec![held(2, 1, false)]));
    driver.says(SFIS[1], Message::Held(Holdings { ledger: below(3), last: true, ..Holdings::default() }));
    let actions = driver.says(SFIS[0], ends(2, 1));
    let revoked = Message::Revoked(vec![Attempt { event: EventId(2), attempt: 1 }]);
    assert_eq!(actions, [Action::Send { to: SFIS[0], message: revoked }]);
}

fn finish(event: u64, fate: Fate) -> Finish {
    Finish { event: EventId(event), fate, complete: true, grounds: Grounds::Data }
}

fn below(event: u64) -> Box<Ledger> {
    Box::new(Ledger { below: EventId(event), ..Ledger::default() })
}
