//! How others hold a run up, and end it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use control::states::{Illegal, State, Verb};

/// Pauses, resumes and ends the run of a partition, from any thread. Clones control the same partition, which hears of it within
/// 20 ms. What is wanted between two runs is wanted of the next one. The control of one run alone reaches no other.
#[derive(Clone, Debug, Default)]
pub struct Control {
    shared: Arc<Mutex<Shared>>,
    /// The only run that it reaches; none if it reaches each.
    run: Option<u64>,
}

#[derive(Debug)]
struct Shared {
    state: State,
    /// So many runs are over, or did not begin.
    over: u64,
    wishes: Vec<Wish>,
    interrupts: u32,
    /// Whether somebody has wanted an early end.
    ends: bool,
}

impl Shared {
    /// Whether a control of this run reaches the one that goes on, or comes next.
    fn is_of(&self, run: Option<u64>) -> bool {
        run.is_none_or(|run| run == self.over)
    }

    fn end(&mut self, wish: Wish) {
        self.ends = true;
        self.state = self.state.after(Verb::Stop).unwrap_or(self.state);
        self.wishes.push(wish);
    }
}

/// What somebody wants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Pause,
    Resume,
    /// End in the order of the data.
    Stop,
    /// The same, by somebody who may interrupt again.
    Interrupt,
    /// What is in hand is given up, for this reason.
    Force(&'static str),
}

impl Control {
    /// Holds back triggers. What is in hand is finished, and time goes on.
    ///
    /// # Errors
    /// No run is running that could be paused.
    pub fn pause(&self) -> Result<(), Illegal> {
        self.wish(Wish::Pause, Verb::Pause)
    }

    /// Lets triggers go on.
    ///
    /// # Errors
    /// No run is paused.
    pub fn resume(&self) -> Result<(), Illegal> {
        self.wish(Wish::Resume, Verb::Resume)
    }

    /// Ends the run in the order of the data, so that nothing is lost. One that has not begun does not begin, and one that is over
    /// stays so.
    pub fn stop(&self) {
        self.end(|_| Wish::Stop);
    }

    /// Ends the run at once: what is in hand is given up, and counted.
    pub fn force(&self) {
        self.end(|_| Wish::Force("forced to stop"));
    }

    /// The first interrupt is as [`Control::stop`], further ones are as [`Control::force`].
    pub fn interrupt(&self) {
        self.end(|shared| {
            shared.interrupts += 1;
            if shared.interrupts == 1 { Wish::Interrupt } else { Wish::Force(SECOND_INTERRUPT) }
        });
    }

    /// The state of the partition.
    pub fn state(&self) -> State {
        self.shared().state
    }

    /// A verb that the state allows leads on at once for those who ask, so that pause and resume may follow one another.
    fn wish(&self, wish: Wish, verb: Verb) -> Result<(), Illegal> {
        let mut shared = self.shared();
        if !shared.is_of(self.run) {
            return Err(Illegal { state: State::Booted, verb });
        }
        shared.state = shared.state.after(verb)?;
        shared.wishes.push(wish);
        Ok(())
    }

    /// One that is over is not ended again: the next one would be.
    fn end(&self, wish: impl FnOnce(&mut Shared) -> Wish) {
        let mut shared = self.shared();
        if shared.is_of(self.run) {
            let wish = wish(&mut shared);
            shared.end(wish);
        }
    }

    /// The same for the run that goes on, or comes next, alone.
    pub(crate) fn of_this_run(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), run: Some(self.shared().over) }
    }

    /// What is wanted since the last call; the state is what it leads to.
    pub(crate) fn take(&self) -> Vec<Wish> {
        core::mem::take(&mut self.shared().wishes)
    }

    /// Says the state, unless somebody wants another one already.
    pub(crate) fn is(&self, state: State) {
        let mut shared = self.shared();
        if shared.wishes.is_empty() {
            shared.state = state;
        }
    }

    /// Whether somebody has wanted an early end.
    pub(crate) fn ends(&self) -> bool {
        self.shared().ends
    }

    /// Nothing can be wanted of the run any more: this is the state of the partition now. Whether somebody has wanted an early end.
    pub(crate) fn over(&self, state: State) -> bool {
        let mut shared = self.shared();
        let next = Shared { state, over: shared.over + 1, ..Shared::default() };
        core::mem::replace(&mut *shared, next).ends
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self { state: State::Absent, over: 0, wishes: Vec::new(), interrupts: 0, ends: false }
    }
}

const SECOND_INTERRUPT: &str = "forced to stop by a second interrupt";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_table_allows_is_wanted() {
        let control = Control::default();
        assert_eq!(control.pause().unwrap_err(), Illegal { state: State::Absent, verb: Verb::Pause });
        control.is(State::Running);
        assert_eq!((control.pause(), control.resume(), control.pause()), (Ok(()), Ok(()), Ok(())));
        assert_eq!(control.take(), [Wish::Pause, Wish::Resume, Wish::Pause]);
        assert_eq!(control.pause().unwrap_err(), Illegal { state: State::Paused, verb: Verb::Pause });
        control.is(State::Draining);
        assert_eq!(control.resume().unwrap_err(), Illegal { state: State::Draining, verb: Verb::Resume });
    }

    #[test]
    fn what_ends_cannot_be_paused() {
        let control = Control::default();
        control.is(State::Running);
        assert!(!control.ends());
        control.stop();
        assert_eq!(control.pause().unwrap_err(), Illegal { state: State::Draining, verb: Verb::Pause });
        assert!(control.ends());
    }

    #[test]
    fn what_is_wanted_of_a_run_that_is_over_does_not_reach_the_next() {
        let control = Control::default();
        let first = control.of_this_run();
        control.is(State::Running);
        first.pause().unwrap();
        assert_eq!(control.take(), [Wish::Pause]);
        assert!(!control.over(State::Booted));
        control.is(State::Running);
        assert_eq!(first.pause().unwrap_err(), Illegal { state: State::Booted, verb: Verb::Pause });
        first.stop();
        first.force();
        (0..2).for_each(|_| first.interrupt());
        assert!(!control.ends() && control.take().is_empty());
        control.interrupt();
        assert_eq!(control.take(), [Wish::Interrupt]);
    }

    #[test]
    fn the_first_interrupt_stops_and_the_next_one_forces() {
        let control = Control::default();
        (0..3).for_each(|_| control.interrupt());
        assert_eq!(control.take(), [Wish::Interrupt, Wish::Force(SECOND_INTERRUPT), Wish::Force(SECOND_INTERRUPT)]);
        assert!(control.take().is_empty());
    }
}
