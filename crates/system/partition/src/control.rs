//! How others hold a run up, and end it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dataflow::control::states::{Illegal, State, Verb};

/// Pauses, resumes and ends the run of a partition, from any thread. Clones control the same partition, which hears of it within
/// 20 ms. What is wanted between two runs is wanted of the next one.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    state: State,
    wishes: Vec<Wish>,
    interrupts: u32,
    /// Whether somebody has wanted an early end.
    ends: bool,
}

impl Shared {
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
        self.shared().end(Wish::Stop);
    }

    /// Ends the run at once: what is in hand is given up, and counted.
    pub fn force(&self) {
        self.shared().end(Wish::Force("forced to stop"));
    }

    /// The first interrupt is as [`Control::stop`], further ones are as [`Control::force`].
    pub fn interrupt(&self) {
        let mut shared = self.shared();
        shared.interrupts += 1;
        let wish = if shared.interrupts == 1 { Wish::Interrupt } else { Wish::Force(SECOND_INTERRUPT) };
        shared.end(wish);
    }

    /// The state of the partition.
    pub fn state(&self) -> State {
        self.shared().state
    }

    /// A verb that the state allows leads on at once for those who ask, so that pause and resume may follow one another.
    fn wish(&self, wish: Wish, verb: Verb) -> Result<(), Illegal> {
        let mut shared = self.shared();
        shared.state = shared.state.after(verb)?;
        shared.wishes.push(wish);
        Ok(())
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
        core::mem::replace(&mut *self.shared(), Shared { state, ..Shared::default() }).ends
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self { state: State::Absent, wishes: Vec::new(), interrupts: 0, ends: false }
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
    fn the_first_interrupt_stops_and_the_next_one_forces() {
        let control = Control::default();
        (0..3).for_each(|_| control.interrupt());
        assert_eq!(control.take(), [Wish::Interrupt, Wish::Force(SECOND_INTERRUPT), Wish::Force(SECOND_INTERRUPT)]);
        assert!(control.take().is_empty());
    }
}
