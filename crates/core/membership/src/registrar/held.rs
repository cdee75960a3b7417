//! Applications that somebody at their host stops: they stay away until they are wanted back there.

use alloc::format;
use alloc::vec::Vec;

use base::ids::NodeId;
use base::time::Time;
use dataflow::component::PeerState;

use super::{Entry, GRACE, Process, Registrar, RegistrarDriver};

/// What becomes of one that somebody at its host has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// What it has sent is taken, until then at most.
    Leaves { at: Time },
    /// Its peers know that it is away.
    Away,
}

impl Registrar {
    /// Somebody at its host has ended a process. What is done when it dies is done, but that it returns only when it is wanted.
    pub fn on_stopped(&mut self, driver: &mut dyn RegistrarDriver, node: NodeId, how: &str) {
        if let Some(place) = self.place(node) {
            self.entries[place].held = Some(Held::Leaves { at: driver.now() + GRACE });
            self.on_ended(driver, node, how);
        }
    }

    /// Somebody at its host wants an application back that was stopped there.
    ///
    /// # Errors
    /// It is not started, for this reason.
    pub fn on_wanted(&mut self, driver: &mut dyn RegistrarDriver, node: NodeId) -> Result<(), &'static str> {
        let (starts_again, is_in_run) = (self.starts_again(), self.run.is_some());
        let entry = self.entries.iter_mut().find(|entry| entry.node == node).ok_or("it has no process of its own")?;
        if entry.held.is_none() || entry.lives() {
            return Err("it is not away");
        }
        if is_in_run && entry.is_gone {
            return Err("the run ends without it (processes.on_loss)");
        }
        if !starts_again {
            return Err("no run goes on");
        }
        entry.starts_at = Some(driver.now());
        Ok(())
    }

    /// The run ends: those that were stopped at their hosts and are not wanted back take no part any more.
    pub fn give_up_held(&mut self, driver: &mut dyn RegistrarDriver) {
        let is_held = |entry: &Entry| entry.held.is_some() && entry.starts_at.is_none() && !entry.is_gone;
        let held: Vec<usize> = (0..self.entries.len()).filter(|place| is_held(&self.entries[*place])).collect();
        for place in held {
            if let Process::Ended(how) = &self.entries[place].process {
                let how = format!("{how}, and not started again");
                self.lose_for_good(driver, place, (&how, ""));
            }
        }
    }

    /// Peers do not wait for those that may stay away for long.
    pub(super) fn part_from_held(&mut self, driver: &mut dyn RegistrarDriver) {
        let now = driver.now();
        for place in 0..self.entries.len() {
            if self.entries[place].parts_at().is_some_and(|at| at <= now) {
                self.entries[place].held = Some(Held::Away);
                self.close(driver, place);
                driver.tell(self.entries[place].node, PeerState::Down);
            }
        }
    }
}

impl Entry {
    /// When its peers are told that it is away. What it has sent is taken first, if that does not take too long.
    pub(super) fn parts_at(&self) -> Option<Time> {
        let is_read = self.link.is_none() && self.data_link.is_none();
        match self.held {
            Some(Held::Leaves { at }) if !self.is_gone && self.starts_at.is_none() => {
                Some(if is_read { Time::ZERO } else { at })
            }
            _ => None,
        }
    }
}
