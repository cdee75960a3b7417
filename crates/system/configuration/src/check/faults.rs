//! What the faults of `[simulation]` demand: each can do what it says.

use base::ids::Role;

use super::Checker;
use crate::problem::did_you_mean;
use crate::tables::{FaultKind, Layout, LossAction, SimulatedFault, Simulation};
use crate::units::{Fraction, Interval};

impl Checker<'_> {
    pub(super) fn faults(&mut self) {
        let Some(simulation) = self.partition.simulation.clone() else { return };
        self.faults_of_frames(&simulation);
        let applications: Vec<(String, Role)> =
            self.partition.applications().into_iter().map(|app| (app.name, app.role)).collect();
        for (index, fault) in simulation.fault.iter().enumerate() {
            let key = format!("simulation.fault.{index}");
            let wrong = self.wrong_with(&simulation, fault, &applications);
            wrong.into_iter().for_each(|message| self.problem(&[&key], message));
        }
    }

    fn faults_of_frames(&mut self, simulation: &Simulation) {
        let of_messages = [
            ("simulation.message_stale", simulation.message_stale),
            ("simulation.message_wrong_run", simulation.message_wrong_run),
        ];
        let of_frames = [
            ("simulation.frame_loss", simulation.frame_loss),
            ("simulation.frame_corruption", simulation.frame_corruption),
            ("simulation.frame_duplication", simulation.frame_duplication),
            ("simulation.frame_delay", simulation.frame_delay),
        ];
        let some = |(_, fraction): &(&str, Fraction)| *fraction != Fraction::default();
        let jitter = (simulation.frame_jitter != Interval::default()).then_some("simulation.frame_jitter");
        let fractions = of_frames.iter().chain(&of_messages).filter(|of| some(of)).map(|(key, _)| *key);
        if simulation.layout != Layout::Farm {
            for key in fractions.chain(jitter) {
                self.problem(&[key], format!("expected simulation.layout = \"farm\": {NO_NETWORK}"));
            }
        }
        if !self.partition.transport.has_datagrams() {
            for (key, _) in of_messages.iter().filter(|of| some(of)) {
                let message = "expected messages that travel in datagrams, as with transport.event_reply = \"udp\"";
                self.problem(&[key], message.to_owned());
            }
        }
        if some(&of_frames[3]) && simulation.frame_delay_max == Interval::default() {
            self.problem(&["simulation.frame_delay_max"], "expected a time above 0, found 0 s".to_owned());
        }
    }

    /// What is wrong with a fault, in words.
    fn wrong_with(
        &self,
        simulation: &Simulation,
        fault: &SimulatedFault,
        applications: &[(String, Role)],
    ) -> Vec<String> {
        let names: Vec<&str> = applications.iter().map(|(name, _)| name.as_str()).collect();
        let unknown = |found: &&str| !names.contains(found);
        let expected = |found: &str| format!("expected an application, found {found:?}{}", did_you_mean(found, &names));
        let mut wrong: Vec<String> = fault.struck().filter(unknown).map(expected).collect();
        if fault.struck().next().is_none() {
            wrong.push(format!("expected an application, such as application = \"{}\"", names[0]));
        }
        let kind = fault.kind.name();
        let takes_time = !matches!(fault.kind, FaultKind::Kill | FaultKind::Restart | FaultKind::Hang);
        if takes_time && fault.lasts == Interval::default() {
            wrong.push(format!("{kind} takes its time: expected lasts, such as lasts = \"100 ms\""));
        }
        if fault.kind == FaultKind::Slow && fault.each == Interval::default() {
            wrong.push("slow makes each input longer: expected each, such as each = \"1 ms\"".to_owned());
        }
        let of_network = matches!(fault.kind, FaultKind::CutOff | FaultKind::NetworkPartition);
        if of_network && simulation.layout == Layout::Process {
            wrong.push(format!("{kind}: expected simulation.layout = \"farm\" or \"processes\", found \"process\""));
        }
        if of_network && names.iter().all(|name| fault.struck().any(|struck| struck == *name)) {
            wrong.push(format!("{kind}: expected some applications on the other side, found all on one"));
        }
        let struck = applications.iter().filter(|(name, _)| fault.struck().any(|struck| struck == *name));
        for (name, role) in struck {
            wrong.extend(self.wrong_for(fault.kind, name, *role));
        }
        wrong
    }

    fn wrong_for(&self, kind: FaultKind, name: &str, role: Role) -> Option<String> {
        let returns = self.partition.processes.on_loss.of(role) == LossAction::Restart;
        match (kind, role) {
            (FaultKind::FullDisk, Role::Sfo) => None,
            (FaultKind::FullDisk, _) => Some(format!("{name} has no disk: expected a recorder, such as \"sfo-1\"")),
            (FaultKind::Restart, Role::Level1) => {
                Some(format!("{name} does not return, and without it the run ends: expected kind = \"kill\""))
            }
            (FaultKind::Restart, _) if !returns => Some(format!(
                "{name} is not started again: expected kind = \"kill\", or processes.on_loss = \"restart\""
            )),
            _ => None,
        }
    }
}

const NO_NETWORK: &str = "applications that share a host have no network between them";
