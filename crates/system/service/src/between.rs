//! What run control says while no run goes on.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use partition::{Figures, Probe, Said, Waiting};

/// Passes on what run control says between two runs. It waits for nobody: the desk may wait for its catalogue.
pub(crate) struct Between(SyncSender<Told>);

enum Told {
    Said(Said),
    /// The partition says itself for whom.
    Waits,
}

impl Between {
    /// Calls these, in a thread.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn of(
        say: impl Fn(Said) + Send + 'static,
        refresh: impl Fn() + Send + 'static,
    ) -> std::io::Result<Self> {
        let (told, heard) = sync_channel(TOLD_MAX);
        let tell = move |told| match told {
            Told::Said(said) => say(said),
            Told::Waits => refresh(),
        };
        let telling = move || heard.iter().for_each(&tell);
        thread::Builder::new().name("between runs".into()).spawn(telling)?;
        Ok(Self(told))
    }
}

impl Probe for Between {
    fn figures(&mut self, _: &Figures) {}

    /// Who follows the run tells that.
    fn said(&mut self, _: &Said) {}

    fn said_between_runs(&mut self, said: &Said) {
        // The state tells too that something is wrong.
        let _ = self.0.try_send(Told::Said(said.clone()));
    }

    fn waits(&mut self, _: &Waiting) {
        // It comes again.
        let _ = self.0.try_send(Told::Waits);
    }
}

/// So much may wait to be told.
const TOLD_MAX: usize = 64;
