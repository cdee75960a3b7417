//! Another configuration in the place of the one that is in force.

use std::path::PathBuf;
use std::sync::Arc;

use control::states::{Illegal, State, Verb};
use partition::{Control, Session};

use super::{Desk, Work, Worker, in_background};
use crate::answer::Refused;
use crate::configured::{Configured, changes, fixed};
use crate::dataflow::Dataflow;

impl Desk {
    /// Puts another configuration into force, which is as it was read: what is wrong with it, or cannot change, is said before.
    pub(super) async fn configure(&self, name: &str, file: Option<PathBuf>) -> Result<String, Refused> {
        self.may_configure()?;
        let desk = self.clone();
        let read = in_background(move || desk.0.reader.read(file.as_deref())).await?.map_err(Refused::Settings)?;
        let before = self.configured();
        if let Some(key) = fixed(&before.partition, &read.partition) {
            let why = format!("{key} cannot change while the service lives: start another `weir serve` with it");
            return Err(Refused::Settings(why));
        }
        let changes = changes(&before.partition, &read.partition);
        // A run may have begun while the file was read.
        self.may_configure()?;
        let done = self.work(|answer| Work::Configure(Box::new(read), answer)).await;
        // It is in force, even if the applications cannot be started with it.
        if !Arc::ptr_eq(&before, &self.configured()) {
            self.say(format!("{name} has given another configuration: {changes}"));
        }
        done.map(|done| format!("{done}: {changes}"))
    }

    /// Whether no run goes on, nor begins.
    fn may_configure(&self) -> Result<(), Refused> {
        let kept = self.kept();
        let state = kept.control.as_ref().map_or(State::Absent, Control::state);
        if !matches!(state, State::Absent | State::Booted | State::Fault) {
            return Err(Illegal { state, verb: Verb::Configure }.into());
        }
        if kept.follow.is_some() || kept.begins { Err(Refused::Busy) } else { Ok(()) }
    }

    /// The configuration that is in force from now on.
    fn adopt(&self, configured: Configured) {
        {
            let mut kept = self.kept();
            let partition = &configured.partition;
            kept.dataflow = Dataflow::of(partition);
            kept.messages.rename(partition.applications().into_iter().map(|application| application.name));
            kept.keeper.configure(partition);
            kept.configured = Arc::new(configured);
        }
        self.tell(|status| status.configured += 1);
    }
}

impl Worker {
    /// Applications live on if they need not know of it, and else start anew.
    pub(super) fn configure(&mut self, configured: Configured) -> Result<String, Refused> {
        let changes = |session: &Session| session.settings_of(&configured.partition).is_err();
        let starts_anew = self.session.as_ref().is_some_and(changes);
        if starts_anew {
            self.end()?;
        }
        self.desk.adopt(configured);
        if !starts_anew {
            return Ok("it is in force".to_owned());
        }
        self.boot().map(|()| "it is in force, and the applications run anew".to_owned())
    }
}
