//! How others hold a run up, and end it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use configuration::Stamps;
use control::states::{Illegal, State, Verb};

use crate::killing::{Kill, NotKilled};
use crate::waiting::Waiting;

/// Pauses, resumes and ends the run of a partition, from any thread. Clones control the same partition, which hears of it within
/// 20 ms. What is wanted between two runs is wanted of the next one. The control of one run alone reaches no other.
#[derive(Clone, Debug, Default)]
pub struct Control {
    shared: Arc<Mutex<Shared>>,
    /// Stays from run to run.
    stamping: Arc<Mutex<Stamping>>,
    /// The only run that it reaches; none if it reaches each.
    run: Option<u64>,
}

#[derive(Debug)]
struct Shared {
    state: State,
    /// Whom it waits for on its way to another one.
    waiting: Option<Waiting>,
    /// So many runs are over, or did not begin.
    over: u64,
    wishes: Vec<Wish>,
    /// Applications that are to end at once.
    kills: Vec<Kill>,
    interrupts: u32,
    /// Whether somebody has wanted an early end.
    ends: bool,
}

/// Time stamps of a partition: whether its applications write them, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamping {
    /// Whether they are wanted.
    pub stamps: Stamps,
    /// Applications that were told, and have not answered.
    pub awaited: usize,
    /// Files that are written, or were written last; those of applications in one process are the same.
    pub files: Vec<StampFile>,
}

/// A file of time stamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StampFile {
    /// The application that writes it.
    pub application: String,
    /// Its host, by its name in the configuration, if there are hosts.
    pub host: Option<String>,
    /// Its path there.
    pub file: String,
}

impl Stamping {
    /// How many files are where, in a line for each directory of a host.
    pub fn in_words(&self) -> Vec<String> {
        let mut places: BTreeMap<(Option<&str>, &str), Vec<&str>> = BTreeMap::new();
        for StampFile { host, file, .. } in &self.files {
            let directory = Path::new(file).parent().and_then(Path::to_str).unwrap_or_default();
            let files = places.entry((host.as_deref(), directory)).or_default();
            if !files.contains(&file.as_str()) {
                files.push(file);
            }
        }
        let line = |((host, directory), files): ((Option<&str>, &str), Vec<&str>)| {
            let host = host.map(|host| format!(" on host {host}")).unwrap_or_default();
            match files[..] {
                [file] => format!("time stamps{host}: {file}"),
                _ => format!("time stamps{host}: {} files in {directory}", files.len()),
            }
        };
        places.into_iter().map(line).collect()
    }
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
    /// Applications write time stamps, or do not.
    Stamp(Stamps),
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

    /// Has the applications write time stamps, or no more: in this run, and in those that follow.
    pub fn stamp(&self, stamps: Stamps) {
        {
            // Whoever looks now waits for what comes of it.
            let mut stamping = self.stamping_now();
            (stamping.stamps, stamping.awaited) = (stamps, stamping.awaited.max(1));
        }
        self.shared().wishes.push(Wish::Stamp(stamps));
    }

    /// What there is of time stamps.
    pub fn stamping(&self) -> Stamping {
        self.stamping_now().clone()
    }

    pub(crate) fn set_stamping(&self, stamping: Stamping) {
        *self.stamping_now() = stamping;
    }

    fn stamping_now(&self) -> MutexGuard<'_, Stamping> {
        self.stamping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends an application at once, whether a run goes on or not; waits until it is told to end. What follows is what
    /// `processes.on_loss` says of its role.
    ///
    /// # Errors
    /// It cannot be ended.
    pub fn kill(&self, name: &str) -> Result<(), NotKilled> {
        let (answer, answered) = sync_channel(1);
        self.want_kill(Kill { name: name.to_owned(), answer });
        // Nobody answers once the applications have ended.
        answered.recv_timeout(PATIENCE).unwrap_or(Err(NotKilled::Absent))
    }

    /// The state of the partition.
    pub fn state(&self) -> State {
        self.shared().state
    }

    /// Whom the partition waits for on its way to another state.
    pub fn waiting(&self) -> Option<Waiting> {
        self.shared().waiting.clone()
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
        let run = Some(self.shared().over);
        Self { shared: Arc::clone(&self.shared), stamping: Arc::clone(&self.stamping), run }
    }

    /// What is wanted since the last call; the state is what it leads to.
    pub(crate) fn take(&self) -> Vec<Wish> {
        core::mem::take(&mut self.shared().wishes)
    }

    /// An application is to end at once. Where none lives nobody hears of it.
    fn want_kill(&self, kill: Kill) {
        let mut shared = self.shared();
        if shared.state != State::Absent {
            shared.kills.push(kill);
        }
    }

    /// The applications that are to end since the last call.
    pub(crate) fn take_kills(&self) -> Vec<Kill> {
        core::mem::take(&mut self.shared().kills)
    }

    /// Says the state, unless somebody wants another one already.
    pub(crate) fn is(&self, state: State) {
        let mut shared = self.shared();
        if shared.wishes.is_empty() {
            shared.state = state;
        }
    }

    /// Says whom the partition waits for.
    pub(crate) fn waits(&self, waiting: Option<Waiting>) {
        self.shared().waiting = waiting;
    }

    /// Whether somebody has wanted an early end.
    pub(crate) fn ends(&self) -> bool {
        self.shared().ends
    }

    /// Nothing can be wanted of the run any more: this is the state of the partition now. Whether somebody has wanted an early end.
    pub(crate) fn over(&self, state: State) -> bool {
        let mut shared = self.shared();
        // What is wanted of all runs stays.
        let is_lasting = |wish: &&Wish| matches!(wish, Wish::Stamp(_));
        let wishes = shared.wishes.iter().filter(is_lasting).copied().collect();
        // Those who want an application to end mean it between two runs, too; nobody hears them once none lives.
        let kills = if state == State::Absent { Vec::new() } else { core::mem::take(&mut shared.kills) };
        let next = Shared { state, over: shared.over + 1, wishes, kills, ..Shared::default() };
        core::mem::replace(&mut *shared, next).ends
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            state: State::Absent,
            waiting: None,
            over: 0,
            wishes: Vec::new(),
            kills: Vec::new(),
            interrupts: 0,
            ends: false,
        }
    }
}

/// A partition that is conducted looks fifty times in a second.
const PATIENCE: Duration = Duration::from_secs(20);
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

    #[test]
    fn time_stamps_are_wanted_of_this_run_and_the_next() {
        let control = Control::default();
        control.is(State::Running);
        control.stamp(Stamps::On);
        assert_eq!((control.stamping().stamps, control.stamping().awaited), (Stamps::On, 1));
        control.over(State::Booted);
        assert_eq!(control.take(), [Wish::Stamp(Stamps::On)]);
    }

    #[test]
    fn files_of_stamps_are_named_by_host_and_directory() {
        let file = |application: &str, host: Option<&str>, file: &str| StampFile {
            application: application.into(),
            host: host.map(str::to_owned),
            file: file.into(),
        };
        let said = |files| Stamping { files, ..Stamping::default() }.in_words();
        let alone = vec![file("ros-1", None, "/a/weir.weirtrace"), file("sfi-1", None, "/a/weir.weirtrace")];
        assert_eq!(said(alone), ["time stamps: /a/weir.weirtrace"]);
        let hosts = ["one", "two"].map(Some);
        let two = ["ros-1", "sfi-1"].map(|name| file(name, hosts[0], &format!("/a/{name}.weirtrace")));
        let all = two.into_iter().chain([file("efd-1", hosts[1], "/a/efd-1.weirtrace")]).collect();
        assert_eq!(
            said(all),
            ["time stamps on host one: 2 files in /a", "time stamps on host two: /a/efd-1.weirtrace"]
        );
    }
}
