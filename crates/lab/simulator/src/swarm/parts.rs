//! From a plan to components.

use std::time::Duration;

use base::ids::{EventId, Incarnation, NodeId, Role};
use dataflow::building::dfm::{Dfm, DfmInput, DfmParameters};
use dataflow::building::push_control::BuildingMode;
use dataflow::building::pushed::PushedParameters;
use dataflow::building::sfi::{Sfi, SfiParameters, Source};
use dataflow::component::Component;
use dataflow::filter::efd::{Decider, Efd, EfdParameters};
use dataflow::level1::external::External;
use dataflow::level1::kept::Keep;
use dataflow::level1::trigger::{Level1, Level1Parameters, Trigger, TriggerInput, TriggerSource};
use dataflow::level2::l2pu::{L2pu, L2puParameters};
use dataflow::level2::l2sv::{L2sv, L2svParameters};
use dataflow::message::Roi;
use dataflow::readout::pusher::{Destination, PushParameters};
use dataflow::readout::ros::{ReadOut, Ros, RosParameters};
use dataflow::recording::sfo::{Sfo, SfoParameters};

use super::plan::{InputKind, Plan, Push};
use crate::world::Planted;

impl Plan {
    /// The component of an application, in one of its lives.
    pub(super) fn component(&self, role: Role, index: usize, incarnation: Incarnation) -> Box<dyn Component + Send> {
        let clears = self.one(Role::Dfm).or(self.one(Role::L2sv)).expect("somebody clears");
        let dfm = self.one(Role::Dfm);
        let ros = |robs, read_out| {
            Box::new(Ros::new(RosParameters {
                robs,
                pages_per_rob: self.pages,
                busy_above: self.pages * 2 / 3,
                busy_below: self.pages / 2,
                request_timeout: Duration::from_millis(10),
                group_bytes_max: 1000,
                push: self.push.filter(|_| read_out != ReadOut::Results).map(|push| self.push(push, index)),
                read_out,
                level1: self.one(Role::Level1).filter(|_| read_out == ReadOut::OnTrigger),
                in_flight: self.in_flight,
                dfm: clears,
                late: incarnation.0 > 0,
            }))
        };
        match role {
            Role::Level1 => Box::new(Level1::new(
                Level1Parameters {
                    readout: self.of(Role::Ros),
                    deciders: if self.has_level2() { self.of(Role::L2sv) } else { dfm.into_iter().collect() },
                    keep: if self.has_level2() { Keep::Unsettled } else { Keep::Unfinished },
                    listeners: if self.has_level2() { dfm.into_iter().collect() } else { Vec::new() },
                    first: EventId(self.first),
                    limit: self.limited.then_some(self.events),
                    spacing: self.spacing,
                    profile: self.profile.clone(),
                    crossings: self.crossings.clone(),
                    in_flight: self.in_flight,
                    seed: self.seed,
                },
                match self.credit {
                    Some(credit) => TriggerInput::External(External::new(credit)),
                    None => TriggerInput::Source(Box::new(Triggers)),
                },
            )),
            Role::L2sv => Box::new(L2sv::new(L2svParameters {
                level1: self.one(Role::Level1).expect("level 2 needs level 1"),
                l2pus: self.of(Role::L2pu),
                share: self.workers.div_ceil(usize::from(self.counts.l2sv)),
                dfm,
                supervisors: usize::from(self.counts.l2sv),
                overrides: self.overrides,
                assignment: self.assignment,
                events_in_system: self.events_in_system,
                timeout: self.l2_timeout,
                forced_limit: self.forced_limit,
                group: self.clear_group,
                group_age: Duration::from_millis(2),
                in_flight: self.in_flight,
                returns: true,
                seed: self.seed,
            })),
            Role::L2pu => Box::new(L2pu::new(L2puParameters {
                workers: self.workers,
                ros_of_rob: self.ros_of_rob(),
                pros: self.one(Role::Pros),
                overrides: self.overrides,
                sink: self.sink,
                builder: self.phased.map(|_| self.of(Role::Sfi)[index % usize::from(self.counts.sfi)]),
                request_timeout: self.request_timeout,
                retries: 2,
            })),
            Role::Pros => ros(vec![0x7c_0000], ReadOut::Results),
            Role::Ros => {
                let on_trigger = self.input != InputKind::SelfTrigger;
                ros(self.robs(index), if on_trigger { ReadOut::OnTrigger } else { ReadOut::OnRequest })
            }
            Role::Dfm => Box::new(Dfm::new(DfmParameters { late: incarnation.0 > 0, ..self.dfm() })),
            Role::Sfi => Box::new(Sfi::new(SfiParameters {
                sources: self.sources(),
                dfm: clears,
                efds: self.of(Role::Efd),
                events: self.sfi_events,
                event_bytes_max: 1 << 20,
                building: self.building,
                collected: self.phased.unwrap_or(0),
                outstanding_requests: self.requests,
                credits: self.credits,
                request_order: self.request_order,
                push: self.push.map(|push| PushedParameters {
                    window_bytes: push.window_bytes,
                    timeout: self.request_timeout,
                    ahead: push.ahead,
                }),
                request_timeout: self.request_timeout,
                retries: 3,
                in_order: self.in_order,
                seed: self.seed + index as u64,
            })),
            Role::Efd => Box::new(Efd::new(EfdParameters {
                sfis: self.of(Role::Sfi),
                sfos: self.of(Role::Sfo),
                dfm: clears,
                dfm_returns: true,
                slots: self.efd_slots,
                decider: if self.filter_tasks { Decider::Tasks } else { Decider::Policy(self.policy) },
                streams: self.streams.clone(),
            })),
            Role::Sfo => {
                let (durable, late) = (self.durable, incarnation.0 > 0);
                Box::new(Sfo::new(SfoParameters { durable, retry_after: Duration::from_millis(20), late }))
            }
            Role::RunControl => unreachable!("run control is no component"),
        }
    }

    fn dfm(&self) -> DfmParameters {
        let input = match self.input {
            InputKind::Level2 | InputKind::Level2Only => DfmInput::Level2 {
                l2svs: self.of(Role::L2sv),
                level1: self.one(Role::Level1).expect("level 2 needs level 1"),
            },
            InputKind::Level1 => DfmInput::Level1(self.one(Role::Level1).expect("there is a level 1")),
            InputKind::SelfTrigger => DfmInput::SelfTrigger {
                readout: self.of(Role::Ros),
                first: EventId(self.first),
                limit: Some(self.events),
                spacing: self.spacing,
                seed: self.seed,
            },
        };
        DfmParameters {
            input,
            sfis: self.of(Role::Sfi),
            efds: self.of(Role::Efd),
            building: self.building,
            assignment: self.sfi_assignment,
            run: self.push.map_or(1, |push| push.group),
            mode: match self.push {
                None => BuildingMode::Pull,
                Some(Push { destination: Destination::Assigned, .. }) => BuildingMode::PushAssigned,
                Some(Push { group, .. }) => {
                    BuildingMode::PushByTable { readout: self.of(Role::Ros), run: group as u32 }
                }
            },
            build_timeout: self.build_timeout,
            clear_group: self.clear_group,
            clear_age: Duration::from_millis(5),
            clear_after: self.clear_after,
            supervisors_return: true,
            returns: true,
            queue: self.dfm_queue,
            in_flight: self.in_flight,
            late: false,
        }
    }

    fn push(&self, push: Push, index: usize) -> PushParameters {
        PushParameters {
            destination: push.destination,
            sfis: self.of(Role::Sfi),
            window_bytes: if self.planted == Some(Planted::Unbounded) { u64::MAX } else { push.window_bytes },
            bytes_per_s: push.bytes_per_s.filter(|_| self.planted != Some(Planted::Unshaped)),
            burst_bytes: push.burst_bytes,
            group: push.group,
            group_age: Duration::from_millis(2),
            seed: self.seed + index as u64,
        }
    }

    fn ros_of_rob(&self) -> Vec<(u32, NodeId)> {
        let ros = self.of(Role::Ros).into_iter().enumerate();
        ros.flat_map(|(index, node)| self.robs(index).into_iter().map(move |rob| (rob, node))).collect()
    }

    fn sources(&self) -> Vec<Source> {
        let ros = self.of(Role::Ros).into_iter().enumerate();
        let ros = ros.map(|(index, node)| Source { node, robs: self.robs(index), results: false });
        let pros = self.one(Role::Pros).map(|node| Source { node, robs: vec![0x7c_0000], results: true });
        ros.chain(pros).collect()
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
