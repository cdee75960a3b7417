//! Level 1 with processors outside: armed last, vetoed first, held back, lost and found.

use std::time::Duration;

use base::ids::{EventId, Incarnation, NodeId};
use base::losses::Losses;
use base::time::Time;
use dataflow::component::{Action, Component, Input, LinkNews, LinkOrder, Outbox, PeerState};
use dataflow::level1::dead_time::DeadTimeParameters;
use dataflow::level1::external::{External, ExternalParameters, ProcessorLoss, ProcessorParameters};
use dataflow::level1::pace::Spacing;
use dataflow::level1::roib::TriggerRecord;
use dataflow::level1::trigger::{Level1, Level1Parameters, TriggerInput};
use dataflow::message::{BusyCause, Command, Message};
use dataflow::node::RUN_CONTROL;
use dataflow::report::{Counters, Level1Counters, LinkReport, LinkState};

use super::level1::parameters;

const DECIDER: NodeId = NodeId(2);
const READOUT: NodeId = NodeId(7);
const CALO: u16 = 0;
const MUON: u16 = 1;
const GRACE: Duration = Duration::from_secs(1);
const JOIN_TIMEOUT: Duration = Duration::from_millis(100);

/// Level 1 with two processors, and what it does.
struct Driver {
    level1: Level1,
    now: Time,
    /// Numbers of events, each with its regions of interest.
    issued: Vec<(u64, usize)>,
    orders: Vec<(u16, LinkOrder)>,
    is_exhausted: bool,
}

impl Driver {
    fn new(on_loss: [ProcessorLoss; 2]) -> Self {
        Self::with(on_loss, parameters(Spacing::Unlimited, None))
    }

    fn with(on_loss: [ProcessorLoss; 2], parameters: Level1Parameters) -> Self {
        let processors = [(1, on_loss[0]), (2, on_loss[1])];
        let external = External::new(ExternalParameters {
            processors: processors.map(|(id, on_loss)| ProcessorParameters { id, on_loss }).to_vec(),
            join_timeout: JOIN_TIMEOUT,
            ahead: 4,
            grace: GRACE,
            after_sources: true,
        });
        let parameters = Level1Parameters { readout: vec![READOUT], ..parameters };
        let level1 = Level1::new(parameters, TriggerInput::External(Box::new(external)));
        let now = Time::from_ns(1_000_003);
        let mut driver = Self { level1, now, issued: Vec::new(), orders: Vec::new(), is_exhausted: false };
        for node in [DECIDER, READOUT] {
            driver.input(Input::Peer { node, state: PeerState::Up(Incarnation(0)) });
        }
        driver
    }

    /// With processors that were told to send.
    fn started(on_loss: [ProcessorLoss; 2]) -> Self {
        let mut driver = Self::new(on_loss);
        driver.start();
        driver
    }

    fn start(&mut self) {
        self.input(Input::Command(Command::Start));
        self.sources_are_there();
        [CALO, MUON].into_iter().for_each(|at| self.link(at, LinkNews::Up));
        assert_eq!(self.orders(), [(CALO, LinkOrder::Start), (MUON, LinkOrder::Start)]);
    }

    fn sources_are_there(&mut self) {
        self.busy(READOUT, BusyCause::Source, false);
    }

    fn input(&mut self, input: Input) {
        let mut out = Outbox::new();
        self.level1.handle(self.now, input, &mut out);
        self.level1.check();
        for action in out.drain() {
            match action {
                Action::Send { message: Message::L1Result { event, rois }, .. } => {
                    self.issued.push((event.event.0, rois.len()));
                }
                Action::Send { to: RUN_CONTROL, message: Message::Exhausted } => self.is_exhausted = true,
                Action::Link { rob, order } => self.orders.push((rob, order)),
                _ => {}
            }
        }
    }

    fn link(&mut self, at: u16, news: LinkNews) {
        self.input(Input::Link { rob: at, news });
    }

    fn record(&mut self, at: u16, event: u64) {
        let record =
            TriggerRecord { event: EventId(event), rois: vec![Default::default()], ..TriggerRecord::default() };
        self.link(at, LinkNews::Trigger(Box::new(record)));
    }

    fn busy(&mut self, from: NodeId, cause: BusyCause, on: bool) {
        self.input(Input::Message { from, message: Message::Busy { cause, on } });
    }

    /// So long, with a call at every time that level 1 asks for.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(deadline) = self.level1.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = deadline.max(self.now);
            self.input(Input::Deadline);
        }
        self.now = end;
    }

    fn orders(&mut self) -> Vec<(u16, LinkOrder)> {
        core::mem::take(&mut self.orders)
    }

    fn counters(&self) -> Level1Counters {
        Level1Counters::from_values(&self.level1.report(self.now).counters)
    }

    fn of(&self, at: u16) -> LinkReport {
        self.level1.report(self.now).links[usize::from(at)]
    }
}

const STOP: [ProcessorLoss; 2] = [ProcessorLoss::Stop; 2];

#[test]
fn they_are_armed_last_and_vetoed_first() {
    let mut driver = Driver::new(STOP);
    driver.link(CALO, LinkNews::Up);
    driver.input(Input::Command(Command::Start));
    driver.link(MUON, LinkNews::Up);
    assert_eq!(driver.orders(), [], "the sources of the read-out system are not there");
    driver.sources_are_there();
    assert_eq!(driver.orders(), [(CALO, LinkOrder::Start), (MUON, LinkOrder::Start)]);
    [CALO, MUON].into_iter().for_each(|at| driver.record(at, 12));
    assert_eq!(driver.issued, [(12, 2)]);
    driver.input(Input::Command(Command::Drain));
    assert_eq!(driver.orders(), [(CALO, LinkOrder::Stop), (MUON, LinkOrder::Stop)]);
    assert!(!driver.level1.is_drained(), "what they have still to send is issued");
    driver.record(MUON, 20);
    driver.link(CALO, LinkNews::Ended { sent: 1 });
    driver.link(MUON, LinkNews::Ended { sent: 2 });
    assert_eq!((driver.issued.len(), driver.issued[1], driver.level1.is_drained()), (2, (20, 1), true));
    assert_eq!((driver.of(CALO).counters.absent, driver.of(MUON).counters.cleared), (1, 2));
}

#[test]
fn they_send_nothing_while_somebody_is_busy_and_say_what_they_vetoed() {
    let mut driver = Driver::started(STOP);
    driver.busy(READOUT, BusyCause::Pages, true);
    assert_eq!(driver.orders(), [(CALO, LinkOrder::Off), (MUON, LinkOrder::Off)]);
    [CALO, MUON].into_iter().for_each(|at| driver.record(at, 3));
    assert_eq!(driver.issued, [], "what was under way is kept");
    driver.busy(READOUT, BusyCause::Pages, false);
    assert_eq!(driver.issued, [(3, 2)]);
    assert_eq!(driver.orders(), [(CALO, LinkOrder::On), (MUON, LinkOrder::On)]);
    let record = |vetoed| Box::new(TriggerRecord { event: EventId(4), vetoed, ..TriggerRecord::default() });
    driver.link(CALO, LinkNews::Trigger(record(5)));
    driver.link(MUON, LinkNews::Trigger(record(7)));
    let Level1Counters { offered, issued, vetoed, vetoed_busy, .. } = driver.counters();
    assert_eq!((offered, issued, vetoed, vetoed_busy), (9, 2, 7, 7), "both mean the same triggers");
    driver.input(Input::Command(Command::Pause));
    assert_eq!(driver.orders(), [(CALO, LinkOrder::Off), (MUON, LinkOrder::Off)]);
    driver.input(Input::Command(Command::Resume));
    assert_eq!(driver.orders(), [(CALO, LinkOrder::On), (MUON, LinkOrder::On)]);
}

#[test]
fn the_fast_one_waits_for_the_slow_one() {
    let mut driver = Driver::started(STOP);
    (0..4).for_each(|event| driver.record(CALO, event));
    assert_eq!(driver.orders(), [(CALO, LinkOrder::Off)]);
    (0..2).for_each(|event| driver.record(MUON, event));
    assert_eq!((driver.issued.len(), driver.orders()), (2, vec![]));
    driver.record(MUON, 2);
    assert_eq!(driver.orders(), [(CALO, LinkOrder::On)]);
    driver.pass(JOIN_TIMEOUT);
    assert_eq!((driver.issued.len(), driver.of(MUON).counters.absent), (4, 1), "it says nothing for too long");
    driver.record(MUON, 3);
    assert_eq!(driver.of(MUON).counters.dropped_old, 1);
}

#[test]
fn dead_time_holds_triggers_from_outside_back() {
    let dead_time = Some(DeadTimeParameters { simple: 9, complex: Vec::new() });
    let mut driver = Driver::with(STOP, parameters(Spacing::Unlimited, dead_time));
    driver.start();
    driver.pass(Duration::from_nanos(10_010));
    for event in 0..2 {
        [CALO, MUON].into_iter().for_each(|at| driver.record(at, event));
    }
    driver.pass(Duration::from_nanos(15));
    assert_eq!(driver.issued.len(), 1);
    driver.pass(Duration::from_nanos(250));
    assert_eq!((driver.issued.len(), driver.counters().vetoed), (2, 0));
}

#[test]
fn what_comes_after_the_limit_is_counted() {
    let mut driver = Driver::with(STOP, Level1Parameters { limit: Some(2), ..parameters(Spacing::Unlimited, None) });
    driver.start();
    for event in 0..4 {
        [CALO, MUON].into_iter().for_each(|at| driver.record(at, event));
    }
    driver.input(Input::Command(Command::Drain));
    assert!(driver.is_exhausted && !driver.level1.is_drained());
    driver.link(CALO, LinkNews::Ended { sent: 4 });
    driver.record(MUON, 4);
    driver.link(MUON, LinkNews::Ended { sent: 5 });
    assert!(driver.level1.is_drained());
    assert_eq!((driver.counters().issued, driver.counters().unused), (2, 3));
    assert_eq!(driver.orders(), [(CALO, LinkOrder::Stop), (MUON, LinkOrder::Stop)]);
    assert_eq!((driver.of(CALO).counters.never_triggered, driver.of(MUON).counters.never_triggered), (2, 3));
}

/// The network triggers of before hung now and then when a run was stopped.
#[test]
fn a_stop_ends_whatever_the_processors_do() {
    for (held, died, ends) in [(true, false, false), (false, false, false), (true, true, false), (false, true, true)] {
        let mut driver = Driver::started(STOP);
        [CALO, MUON].into_iter().for_each(|at| driver.record(at, 1));
        if held {
            driver.busy(READOUT, BusyCause::Pages, true);
        }
        [CALO, MUON].into_iter().for_each(|at| driver.record(at, 2));
        driver.record(CALO, 3);
        if died {
            driver.link(MUON, LinkNews::Down);
        }
        driver.input(Input::Command(Command::Drain));
        if ends {
            driver.link(CALO, LinkNews::Ended { sent: 3 });
        }
        driver.pass(GRACE * 2);
        assert!(driver.level1.is_drained(), "held {held}, died {died}, ends {ends}");
        assert_eq!((driver.counters().issued, driver.counters().unused), if held { (1, 2) } else { (3, 0) });
        let offs = driver.orders().iter().filter(|(_, order)| *order == LinkOrder::On).count();
        assert_eq!(offs, if held { 2 } else { 0 }, "what waits on a link that is off would never end");
    }
}

#[test]
fn one_that_is_lost_ends_the_run_or_is_waited_for_or_not() {
    use ProcessorLoss::{GoOn, Stop, Wait};
    for on_loss in [Stop, Wait, GoOn] {
        let mut driver = Driver::started([Stop, on_loss]);
        driver.link(MUON, LinkNews::Down);
        driver.record(CALO, 5);
        driver.pass(JOIN_TIMEOUT * 2);
        assert_eq!(driver.issued.len(), usize::from(on_loss != Wait), "{on_loss:?}");
        driver.orders();
        driver.pass(GRACE);
        let state = if on_loss == Wait { LinkState::Down } else { LinkState::Lost };
        assert_eq!((driver.of(MUON).state, driver.of(MUON).counters.sources_lost), (state, 1));
        let stopped = if on_loss == Stop { vec![(CALO, LinkOrder::Stop)] } else { vec![] };
        assert_eq!(driver.orders(), stopped, "{on_loss:?}");
        driver.link(MUON, LinkNews::Up);
        match on_loss {
            Stop => {
                [CALO, MUON].into_iter().for_each(|at| driver.link(at, LinkNews::Ended { sent: 1 }));
                assert!(driver.is_exhausted);
            }
            Wait | GoOn => {
                assert_eq!(driver.orders(), [(MUON, LinkOrder::Start)]);
                [CALO, MUON].into_iter().for_each(|at| driver.record(at, 6));
                assert_eq!(driver.issued.last(), Some(&(6, 2)), "{on_loss:?}");
            }
        }
    }
}

#[test]
fn processors_that_end_by_themselves_end_the_run() {
    let mut driver = Driver::started(STOP);
    driver.record(CALO, 1);
    driver.link(CALO, LinkNews::Ended { sent: 1 });
    assert_eq!((driver.issued.len(), driver.is_exhausted), (0, false));
    driver.link(MUON, LinkNews::Idle(EventId(9)));
    assert_eq!(driver.issued, [(1, 1)], "the other one has gone past it");
    driver.link(MUON, LinkNews::Ended { sent: 0 });
    assert!(driver.is_exhausted);
}

#[test]
fn what_is_no_trigger_is_counted_by_cause() {
    let mut driver = Driver::started(STOP);
    for event in [7, 7, 3, 1 << 40] {
        driver.record(CALO, event);
    }
    driver.link(CALO, LinkNews::Lost(Losses { malformed: 2, ..Losses::default() }));
    let c = driver.of(CALO).counters;
    let dropped = (c.dropped_duplicate, c.dropped_old, c.dropped_unplaced, c.frames_malformed);
    assert_eq!((c.fragments_in, dropped, c.resident), (4, (1, 1, 1, 2), 1));
}
