//! From a plan to components: those that a live run has of its configuration.

use std::sync::Arc;
use std::time::Duration;

use assembly::{Assembly, Parameters, Scale, TriggersFrom};
use base::ids::{NodeId, Role};
use configuration::Partition;
use dataflow::building::dfm::DfmInput;
use dataflow::level1::trigger::{Trigger, TriggerSource};
use dataflow::message::Roi;
use dataflow::readout::ros::ReadOut;

use super::plan::Plan;
use super::sliced::Framed;
use simulator::world::Planted;

impl Plan {
    /// The partition with its applications numbered, on the scale of a run of few events.
    pub(super) fn assembly(&self) -> Assembly {
        self.assembly_of(self.configuration())
    }

    pub(super) fn assembly_of(&self, configuration: Partition) -> Assembly {
        let robs = (0..usize::from(self.counts.ros)).map(|ros| self.robs(ros)).collect();
        let (force_accept, veto) = (self.level2.overrides.force_accept_items, self.level2.overrides.veto_items);
        let assembly = Assembly::new(configuration, robs).with_items(force_accept, veto).on_scale(self.scale());
        if self.slicing().is_some() || self.matching().is_some() {
            assembly.framed_by(Arc::new(Framed))
        } else {
            assembly
        }
    }

    /// What a component is told at its birth; `late` if it comes into a run that has begun.
    pub(super) fn parameters(&self, assembly: &Assembly, node: NodeId, late: bool) -> Parameters {
        let mut parameters = assembly.parameters(node, late);
        if !self.is_lawful {
            self.depart(&mut parameters);
        }
        if let Parameters::Ros(ros) = &mut parameters
            && ros.read_out == ReadOut::Pushed
        {
            self.depart_links(assembly.index_in_role(node), &mut ros.links);
        }
        self.plant(&mut parameters);
        parameters
    }

    /// The triggers of level 1, unless they come from outside.
    pub(super) fn triggers(&self) -> Option<Box<dyn TriggerSource + Send>> {
        if self.triggers.credit.is_some() || self.readout.sending.is_some() { None } else { Some(Box::new(Triggers)) }
    }

    fn scale(&self) -> Scale {
        let small = Scale {
            reply_group_bytes: 1000,
            triggers_ahead: self.triggers.credit.unwrap_or(1),
            sync_group: 4,
            retry_recording_after: Duration::from_millis(20),
            ..Scale::default()
        };
        if self.is_lawful {
            return small;
        }
        Scale {
            in_flight: Some(self.triggers.in_flight),
            result_pages: Some(self.readout.pages),
            collected: self.level2.phased,
            pushed_ahead: self.building.push.map(|push| push.ahead),
            ..small
        }
    }

    /// What no configuration can say, and plans say all the same.
    fn depart(&self, parameters: &mut Parameters) {
        match parameters {
            Parameters::Level1(level1, from) => {
                level1.profile.clone_from(&self.triggers.profile);
                if let (TriggersFrom::Outside(outside), Some(ahead)) = (from, self.triggers.credit) {
                    outside.ahead = ahead;
                }
            }
            Parameters::L2sv(l2sv) => {
                l2sv.l2pus = self.of(Role::L2pu);
                l2sv.seed = self.seed;
            }
            Parameters::L2pu(l2pu) => l2pu.sink = self.level2.sink,
            Parameters::Ros(pros) if pros.read_out == ReadOut::Results => {
                (pros.busy_above, pros.busy_below) = (self.readout.pages * 2 / 3, self.readout.pages / 2);
            }
            Parameters::Dfm(dfm) => {
                if let DfmInput::SelfTrigger { spacing, .. } = &mut dfm.input {
                    *spacing = self.triggers.spacing;
                }
            }
            Parameters::Efd(efd) => efd.streams.clone_from(&self.recording.streams),
            Parameters::Ros(_) | Parameters::Sfi(_) | Parameters::Sfo(_) | Parameters::Trg(_) | Parameters::Ebif(_) => {
            }
        }
    }

    fn plant(&self, parameters: &mut Parameters) {
        match parameters {
            Parameters::Level1(_, TriggersFrom::Time { grace, .. }) if self.planted == Some(Planted::HastySlices) => {
                *grace = Duration::from_nanos(1);
            }
            Parameters::Ros(ros) if self.planted == Some(Planted::WideSlices) => {
                let timed = ros.links.each.iter_mut().filter_map(|link| link.timed.as_mut());
                timed.for_each(|timed| timed.rule.after += 1);
            }
            Parameters::Ros(ros) => self.plant_in_links(&mut ros.links),
            _ => {}
        }
        if let Parameters::Ros(ros) = parameters
            && let Some(push) = &mut ros.push
        {
            match self.planted {
                Some(Planted::Unbounded) => push.window_bytes = u64::MAX,
                Some(Planted::Unshaped) => push.bytes_per_s = None,
                _ => {}
            }
        }
    }
}

struct Triggers;

impl TriggerSource for Triggers {
    fn trigger(&mut self, ordinal: u64) -> Option<Trigger> {
        Some(trigger(ordinal))
    }
}

/// The trigger with this ordinal, wherever it comes from.
pub(super) fn trigger(ordinal: u64) -> Trigger {
    let rois = vec![Roi { kind: 0, eta: 0.5, phi: 1.0, et_mev: 25_000, thresholds: 1, ..Roi::default() }];
    Trigger { bcid: (ordinal % 3564) as u16, trigger_type: 0x84, items: 1 << (ordinal % 7), rois }
}
