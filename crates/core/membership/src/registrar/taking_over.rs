//! A new life of run control takes over the members of a run from its former life.
//!
//! Agents say who lives. Those that live are called, and say that they are ready. Until all are known, nobody is told of a death or
//! started again: who is not called yet would not hear of it.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use base::ids::{Incarnation, NodeId};
use base::time::Time;
use dataflow::message::{Command, Envelope, Message};

use super::{Entry, Process, Registrar, RegistrarDriver, Restart, RunToJoin, Stage};
use crate::challenge::Member;
use crate::passage::{LinkId, Way};

/// What the next life of run control has to know of the members of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Legacy {
    /// All applications.
    pub members: Vec<MemberLeft>,
    /// What each was told, from the beginning of the run.
    pub commands: BTreeMap<NodeId, Vec<Command>>,
    /// Applications that died in this run and were started again, in order.
    pub returned: Vec<Restart>,
}

/// A member of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberLeft {
    /// Its address in the partition.
    pub node: NodeId,
    /// Its life.
    pub life: Incarnation,
    /// Where it listens, if it has joined.
    pub address: Option<String>,
    /// Whether it has died and does not return.
    pub is_gone: bool,
}

impl Registrar {
    /// What the next life of run control has to know.
    pub fn legacy(&self) -> Legacy {
        let members = self.entries.iter().map(|entry| {
            // Its next life may have been started by the time that this is read. That listens elsewhere.
            let starts = entry.starts_at.is_some() && self.run.is_some();
            MemberLeft {
                node: entry.node,
                life: if starts { next(entry.life) } else { entry.life },
                address: entry.address.clone().filter(|_| !starts),
                is_gone: entry.is_gone,
            }
        });
        Legacy { members: members.collect(), commands: self.commands.clone(), returned: self.returned.clone() }
    }

    /// Whether some member of a run is started again by [`Registrar::on_deadline`] at this time. The next life of run control has to know
    /// of it before.
    pub fn is_about_to_start(&self, now: Time) -> bool {
        let is_due = |entry: &Entry| entry.starts_again_at().is_some_and(|at| at <= now);
        self.run.is_some() && self.starts_again() && self.entries.iter().any(is_due)
    }

    /// Run control is in this life now, and takes over a run that its former life has begun.
    pub fn inherit(&mut self, control: Incarnation, run: RunToJoin, legacy: Legacy) {
        let Legacy { members, commands, returned } = legacy;
        (self.control, self.run, self.stage) = (control, Some(run), Stage::TakingOver);
        (self.commands, self.returned) = (commands, returned);
        for MemberLeft { node, life, address, is_gone } in members {
            let Some(place) = self.place(node) else { continue };
            let entry = &mut self.entries[place];
            (entry.life, entry.address, entry.is_gone) = (life, address, is_gone);
            entry.process = if is_gone { Process::Ended(String::new()) } else { Process::Lives };
        }
    }

    /// An application lives in this life, as its agent says: it is called. One that was on its way to its place has not found it.
    pub fn on_found(&mut self, driver: &mut dyn RegistrarDriver, node: NodeId, life: Incarnation) {
        let Some(place) = self.place(node) else { return };
        let start_timeout = self.parameters.start_timeout;
        let entry = &mut self.entries[place];
        let address = entry.address.clone().filter(|_| entry.life == life);
        (entry.life, entry.address) = (life, address.clone());
        driver.set_life((node, life));
        match address.map(|address| driver.call((node, life), &address)) {
            Some(Ok(link)) => (entry.link, entry.ready_by) = (Some(link), Some(driver.now() + start_timeout)),
            Some(Err(_)) | None => {
                entry.is_killed = true;
                driver.kill(node);
            }
        }
    }

    /// An application has ended in this life, as its agent says: its next one is behind that.
    pub fn on_known_life(&mut self, (node, life): Member) {
        if let Some(place) = self.place(node) {
            let entry = &mut self.entries[place];
            entry.life = entry.life.max(life);
        }
    }

    /// Members that are not back by now count as dead. When the run goes on they are started again, or are lost `for_good`.
    pub fn give_up_missing(&mut self, driver: &mut dyn RegistrarDriver, for_good: bool) {
        if self.stage != Stage::TakingOver {
            return;
        }
        let is_missing = |entry: &&Entry| !(entry.is_ready || entry.has_ended());
        let missing: Vec<NodeId> = self.entries.iter().filter(is_missing).map(|entry| entry.node).collect();
        for node in missing {
            driver.kill(node);
            self.on_ended(driver, node, NOT_BACK);
            self.given_up.extend(for_good.then_some(node));
        }
    }

    /// Both ends of a connection that was made to an application have proved who they are.
    pub fn on_proven(&mut self, driver: &mut dyn RegistrarDriver, link: LinkId) {
        let called = |place: &usize| self.entries[*place].link == Some(link) && !self.entries[*place].is_ready;
        let Some(place) = self.behind(link).filter(called) else { return };
        let member = self.entries[place].member();
        driver.open(link);
        driver.route(member.0, link, Way::All);
        let greeting = Message::Greet { part: 0, datagrams: driver.datagram_addresses().into() };
        driver.say(link, Envelope { from_incarnation: self.control, ..self.envelope(member) }, greeting);
    }

    /// Whether it is known of all members whether they are back.
    pub fn knows_all(&self) -> bool {
        self.stage == Stage::TakingOver && self.entries.iter().all(|entry| entry.is_ready || entry.has_ended())
    }

    /// The run goes on: deaths in the meantime are handled as in any run.
    pub fn go_on(&mut self, driver: &mut dyn RegistrarDriver) {
        self.stage = Stage::Running;
        let given_up = core::mem::take(&mut self.given_up);
        for place in 0..self.entries.len() {
            if let Process::Ended(how) = &self.entries[place].process
                && !self.entries[place].is_gone
            {
                let how = how.clone();
                if given_up.contains(&self.entries[place].node) {
                    self.lose_for_good(driver, place, (&how, ""));
                } else {
                    self.on_death(driver, place, &how);
                }
            }
        }
    }
}

fn next(Incarnation(life): Incarnation) -> Incarnation {
    Incarnation(life.saturating_add(1))
}

/// What is said of a member that run control has called in vain.
const NOT_BACK: &str = "did not come back";
