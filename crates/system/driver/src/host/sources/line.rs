//! One link with its source: what it is told, and what is taken from it.

use base::sources::SourceNow;
use base::time::Time;
use dataflow::component::LinkOrder;
use link::Intake;
use transport::poller::Poller;

use super::reception::{Pass, Reception};

/// The link of one source or level-1 processor.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) id: u32,
    pub(super) intake: Intake,
    pub(super) reception: Reception,
    /// Whether each fragment turns the link off.
    pub(super) is_single: bool,
    /// Whether a player is the source.
    pub(super) is_played: bool,
}

impl Line {
    /// What the source is to do in this run.
    pub(super) fn order(&mut self, order: LinkOrder, run: u32) {
        self.reception.state.order(order);
        self.intake.order(match order {
            LinkOrder::Start => link::LinkOrder::Start { run },
            LinkOrder::Stop => link::LinkOrder::Stop,
            LinkOrder::Off => link::LinkOrder::Off,
            LinkOrder::On => link::LinkOrder::On,
        });
    }

    /// Whether a pass with so much room may find something.
    pub(super) fn is_ready(&self, now: Time, room: usize) -> bool {
        self.intake.is_ready(now, self.room(room))
    }

    pub(super) fn next_deadline(&self, room: usize) -> Option<Time> {
        self.intake.next_deadline(self.room(room))
    }

    /// What came since the last pass, of fragments at most `room`.
    pub(super) fn take(&mut self, now: Time, poller: &mut Poller, room: usize, pass: &mut Pass<'_>) {
        let taken_before = self.intake.counters().fragments;
        let room = self.room(room);
        let Self { intake, reception, .. } = self;
        intake.poll(now, poller, room, &mut |arrival| reception.hear(arrival, pass));
        intake.let_nobody_follow(reception.succession.refusal());
        reception.state.is_off |= self.is_single && intake.counters().fragments > taken_before;
    }

    /// For those who watch the run.
    pub(super) fn now(&self) -> SourceNow {
        self.reception.state.now(self.intake.is_configured())
    }

    fn room(&self, room: usize) -> usize {
        if self.reception.state.is_off { 0 } else { room }
    }
}
