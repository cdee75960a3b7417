//! Time stamps of the applications: who writes them where.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::ids::NodeId;
use configuration::Stamps;
use dataflow::message::{Command, Message};
use driver::Host;

use super::{Conductor, Phase};
use crate::control::{StampFile, Stamping};
use crate::said::Said;

/// What applications were told, and what they have answered.
#[derive(Default)]
pub(super) struct Stamped {
    /// Whether stamps are wanted, in this run and in those that follow.
    wanted: Stamps,
    /// Whether applications were told to write them.
    is_on: bool,
    /// How many answers of each are still to come.
    awaited: BTreeMap<NodeId, usize>,
    files: BTreeMap<NodeId, String>,
}

impl Conductor {
    /// Somebody wants stamps, or none any more.
    pub(super) fn want_stamps(&mut self, host: &mut Host, wanted: Stamps) {
        let before = core::mem::replace(&mut self.stamped.wanted, wanted);
        if matches!(self.phase, Phase::Running) {
            // Applications that were told by a former life of run control are on, too.
            if wanted == Stamps::Off || before != wanted {
                self.end_stamps(host);
            }
            self.begin_stamps(host);
        }
        self.tell_stamps();
    }

    /// A run begins.
    pub(super) fn stamp_from_start(&mut self, host: &mut Host) {
        let of_run = self.assembly.partition.run.stamps;
        if of_run != Stamps::Off {
            self.stamped.wanted = of_run;
        }
        self.begin_stamps(host);
        self.tell_stamps();
    }

    /// A former life of run control may have had applications write them.
    pub(super) fn take_over_stamps(&mut self, said: &BTreeMap<NodeId, Vec<Command>>) {
        let wanted = |commands: &Vec<Command>| {
            commands.iter().rev().find_map(|command| match command {
                Command::Stamps => Some(Stamps::On),
                Command::StampPolls => Some(Stamps::Polls),
                Command::NoStamps => Some(Stamps::Off),
                _ => None,
            })
        };
        let Some(wanted) = said.values().find_map(wanted).filter(|wanted| *wanted != Stamps::Off) else { return };
        (self.stamped.wanted, self.stamped.is_on) = (wanted, true);
        self.tell_stamps();
    }

    /// A run is over: files are whole before its applications leave it. Those of these `dead` ones are not waited for.
    pub(super) fn end_stamps_of_run(&mut self, host: &mut Host, dead: &[NodeId]) {
        if self.stamped.is_on {
            self.end_stamps(host);
        }
        dead.iter().for_each(|node| _ = self.stamped.awaited.remove(node));
        if self.assembly.partition.run.stamps != Stamps::Off {
            self.stamped.wanted = Stamps::Off;
        }
        self.tell_stamps();
    }

    /// Those who have not answered yet.
    pub(super) fn stamping_nodes(&self) -> Vec<NodeId> {
        self.stamped.awaited.keys().copied().collect()
    }

    /// Whether all have answered.
    pub(super) fn have_stamps_ended(&self) -> bool {
        self.stamped.awaited.is_empty()
    }

    pub(super) fn on_stamped(&mut self, from: NodeId, file: String) {
        match self.stamped.awaited.get_mut(&from) {
            Some(answers) if *answers > 1 => *answers -= 1,
            _ => _ = self.stamped.awaited.remove(&from),
        }
        if !file.is_empty() {
            self.stamped.files.insert(from, file);
        }
        self.tell_stamps();
    }

    /// Who has died answers no more.
    pub(super) fn await_no_stamps_of(&mut self, node: NodeId) {
        if self.stamped.awaited.remove(&node).is_some() {
            self.tell_stamps();
        }
    }

    /// Says where the files of a run are that has ended.
    pub(super) fn say_where_stamps_are(&mut self) {
        if !core::mem::take(&mut self.stamped.is_on) {
            return;
        }
        self.stamped.awaited.clear();
        self.tell_stamps();
        let lines = self.control.stamping().in_words();
        lines.into_iter().for_each(|line| self.say(Said::notice(line)));
    }

    fn begin_stamps(&mut self, host: &mut Host) {
        let command = match self.stamped.wanted {
            Stamps::Off => return,
            Stamps::On => Command::Stamps,
            Stamps::Polls => Command::StampPolls,
        };
        self.stamped.is_on = true;
        self.stamped.files.clear();
        self.command_all(host, command);
    }

    fn end_stamps(&mut self, host: &mut Host) {
        self.command_all(host, Command::NoStamps);
    }

    fn command_all(&mut self, host: &mut Host, command: Command) {
        // Who is not there is told when it joins.
        let absent = self.registrar.members().filter_map(|((node, _), link)| link.is_none().then_some(node));
        let absent: BTreeSet<NodeId> = absent.collect();
        let message = Message::Command(command);
        self.assembly.applications.iter().for_each(|app| self.registrar.remember(app.node, &message));
        // The next life has to know what may have been heard: that stamps are on before anybody hears it, and off when all were told.
        if command != Command::NoStamps {
            self.keep();
        }
        for app in &self.assembly.applications {
            host.send_from_control(app.node, message.clone());
            if !absent.contains(&app.node) {
                *self.stamped.awaited.entry(app.node).or_default() += 1;
            }
        }
    }

    /// Lets others see it.
    fn tell_stamps(&self) {
        let Stamped { wanted, awaited, files, .. } = &self.stamped;
        let hosts = &self.assembly.partition.host;
        let file = |(node, file): (&NodeId, &String)| StampFile {
            application: self.assembly.name(*node),
            host: self.assembly.host_of(*node).and_then(|host| hosts.get(host)).map(|host| host.name.clone()),
            file: file.clone(),
        };
        let files = files.iter().map(file).collect();
        self.control.set_stamping(Stamping { stamps: *wanted, awaited: awaited.values().sum(), files });
    }
}

/// A disk takes the rest of a trace in less, unless something is wrong with it.
pub(super) const STAMPS_END_WITHIN: Duration = Duration::from_secs(5);
