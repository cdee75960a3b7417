//! Children that die while the run goes on, and return.

use std::time::Duration;

use base::ids::{Incarnation, NodeId};
use base::time::Time;
use configuration::LossAction;
use dataflow::component::PeerState;
use dataflow::message::{Command, Message, PeerPlace};

use super::site::NO_RUN;
use super::{Conductor, GRACE, Phase};
use crate::host::Host;
use assembly::{recovers, returns};

/// An application that was started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// Which one.
    pub node: NodeId,
    /// How it ended.
    pub how: String,
    /// When it died.
    pub died: Time,
    /// When its next life was connected to its peers; `None` if it never was.
    pub back: Option<Time>,
}

/// What an application says against others, which a death may yet explain.
pub(super) struct Complaint {
    at: Time,
    from: NodeId,
    life: Incarnation,
    /// The peer that it has lost, in this life.
    lost: Option<(NodeId, Incarnation)>,
    text: String,
}

impl Complaint {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn from(&self) -> NodeId {
        self.from
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        now.since(self.at) > GRACE
    }
}

impl Conductor {
    pub(super) fn complain(&mut self, at: Time, from: NodeId, lost: Option<(NodeId, Incarnation)>, text: String) {
        let life = self.children.life(from);
        self.complaints.push(Complaint { at, from, life, lost, text });
    }

    /// Whether somebody has died, which explains the complaint.
    pub(super) fn is_explained(&self, complaint: &Complaint) -> bool {
        let Complaint { from, life, lost, .. } = *complaint;
        let has_died = |(node, life)| self.children.has_ended(node) || self.children.life(node) > life;
        self.children.any_ended_for_good() || has_died((from, life)) || lost.is_some_and(has_died)
    }

    /// A child has died: it is started again, where that is wanted and possible; else the run ends.
    pub(super) fn on_death_in_run(&mut self, now: Time, host: &mut Host, node: NodeId, how: &str) {
        let overdue = self.children.at(node).and_then(|child| child.ready_by).is_some_and(|by| by <= now);
        let timeout = self.assembly.partition.processes.start_timeout.duration();
        let how = if overdue { self.why_not_ready(timeout) } else { how.into() };
        let Some(role) = self.assembly.application(node).map(|app| app.role) else { return };
        let partition = &self.assembly.partition;
        if !returns(role, partition) {
            let wanted = partition.processes.on_loss.of(role) == LossAction::Restart && !recovers(role);
            let why = if wanted { format!("; a run cannot go on without {}", self.name(node)) } else { String::new() };
            return self.lose_for_good(now, host, node, &(how + &why));
        }
        match self.restarts.after_death(now, node) {
            Ok(pause) => {
                self.say(&format!("{} died: {how}; it is started again", self.name(node)));
                self.returned.push(Restart { node, how, died: now, back: None });
                if let Some(child) = self.children.at(node) {
                    (child.starts_at, child.ready_by) = (Some(now + pause), None);
                }
            }
            Err(error) => self.lose_for_good(now, host, node, &format!("{how}; {error}")),
        }
    }

    fn why_not_ready(&mut self, timeout: Duration) -> String {
        let cause = self.not_accepted.take().map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("not ready within {timeout:?} (processes.start_timeout){cause}")
    }

    /// A child will not return: the run ends.
    fn lose_for_good(&mut self, now: Time, host: &mut Host, node: NodeId, how: &str) {
        if let Some(child) = self.children.at(node) {
            (child.starts_at, child.address) = (None, None);
        }
        self.say(&format!("{} died: {how}; the run ends", self.name(node)));
        let others: Vec<NodeId> = self.children.iter().map(|child| child.node).filter(|other| *other != node).collect();
        others.into_iter().for_each(|other| host.send_from_control(other, Message::Gone(node)));
        let assembly = &self.assembly;
        host.tell_all(now, node, PeerState::Gone, |a, b| assembly.talk(a, b));
        self.with_controller(host, |controller, out| controller.on_death(now, node, how, out));
    }

    /// Starts children again whose time has come. What a former life has sent is taken first.
    pub(super) fn start_again(&mut self, now: Time, host: &mut Host) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        let is_due = |at: Time| at <= now;
        let has_links = |at: Time| now.since(at) <= GRACE;
        let due = self.children.iter().filter(|child| child.starts_at.is_some_and(is_due));
        let due = due.filter(|child| {
            let is_read = child.link.is_none() && child.data_link.is_none();
            is_read || !child.starts_at.is_some_and(has_links)
        });
        for node in due.map(|child| child.node).collect::<Vec<_>>() {
            self.start_one_again(now, host, node);
        }
        let overdue = self.children.iter().filter(|child| child.ready_by.is_some_and(is_due)).map(|child| child.node);
        overdue.collect::<Vec<_>>().into_iter().for_each(|node| self.children.kill(node));
    }

    fn start_one_again(&mut self, now: Time, host: &mut Host, node: NodeId) {
        let Some(child) = self.children.at(node) else { return };
        child.forget_life().into_iter().flatten().for_each(|link| host.links.close(link));
        let assembly = &self.assembly;
        host.tell_all(now, node, PeerState::Down, |a, b| assembly.talk(a, b));
        let address = host.links.address().expect("a process with children listens");
        let by = now + self.assembly.partition.processes.start_timeout.duration();
        if let Err(cause) = self.children.start_again(node, &address, (&self.secret, NO_RUN), by) {
            return self.lose_for_good(now, host, node, &format!("it cannot be started again: {cause}"));
        }
        host.set_life(node, self.children.life(node));
        self.with_controller(host, |controller, _| controller.on_life_over(node, None));
    }

    /// A child has joined: in the run it is told what the former life was told, and the others where it is.
    pub(super) fn introduce_again(&mut self, host: &mut Host, node: NodeId) {
        if !matches!(self.phase, Phase::Running) {
            return host.send_from_control(node, Message::Command(Command::Exit));
        }
        for command in self.commands.get(&node).cloned().unwrap_or_default() {
            host.send_from_control(node, Message::Command(command));
        }
        // It was not there when the others were told.
        for gone in self.children.iter().filter(|child| child.is_gone()) {
            host.send_from_control(node, Message::Gone(gone.node));
        }
        let (own, others): (Vec<PeerPlace>, Vec<PeerPlace>) =
            self.children.places().partition(|place| place.node == node);
        for other in &others {
            host.send_from_control(other.node, Message::Peers(own.clone()));
        }
        host.send_from_control(node, Message::Peers(others));
    }

    /// A child is connected to its peers; in the run it is one that has returned.
    pub(super) fn on_ready(&mut self, now: Time, node: NodeId) {
        let Some(child) = self.children.at(node) else { return };
        child.ready_by = None;
        let Some(restart) = self.returned.iter_mut().rfind(|restart| restart.node == node) else { return };
        restart.back.get_or_insert(now);
        let away: Duration = now.since(restart.died);
        self.say(&format!("{} is back after {:.2} s", self.name(node), away.as_secs_f64()));
    }

    /// What is said to an application is said again to its next life.
    pub(super) fn remember(&mut self, sent: &[(NodeId, Message)]) {
        for (node, message) in sent {
            if let Message::Command(command) = message
                && *command != Command::Progress
            {
                let said = self.commands.entry(*node).or_default();
                // What was lifted is not said again, so that no list grows with the run.
                if *command == Command::Resume && said.last() == Some(&Command::Pause) {
                    said.pop();
                } else {
                    said.push(*command);
                }
            }
        }
    }
}
