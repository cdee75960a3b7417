//! The work that components ask for: reading links out, steering, writing files.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use dataflow::bulk::{Bulk, PageSlice};
use dataflow::component::{Input, Outcome, Selection, Steer, Steered, Ticket, Work};
use dataflow::ids::{NodeId, Role};
use dataflow::level2::steering::Skeleton;
use dataflow::message::EventInfo;
use dataflow::readout::fragment::FragmentHead;
use dataflow::time::Time;
use eformat::{Bcid, RobParams, RodHeader, SourceId, rob_prefix, rob_suffix};
use rol::{Inputs, Links, LinksError, ReadOutError};
use transport::clock;
use transport::waker::Waker;

use super::Host;
use super::recorder::{Done, Recorder, RecorderError};
use crate::assembly::{Assembly, RESULT_SOURCE_ID};

/// What one component can have done.
#[derive(Default)]
pub(crate) struct Workshop {
    kind: Kind,
    /// Events that wait for pages to be read out.
    pub(super) stalled: VecDeque<(Ticket, EventInfo)>,
    /// Fragments of the event being read out; empty between events.
    fragments: Vec<(u16, FragmentHead, Bulk)>,
}

#[derive(Default)]
enum Kind {
    #[default]
    None,
    Links(Box<Links>),
    Steering(Steering),
    Recorder(Recorder),
}

struct Steering {
    skeleton: Skeleton,
    cost: Duration,
    run_number: u32,
}

/// Why a component cannot do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkshopError {
    #[error(transparent)]
    Links(#[from] LinksError),
    #[error(transparent)]
    Recorder(#[from] RecorderError),
}

impl Workshop {
    /// What the application at `node` needs.
    pub(crate) fn new(
        assembly: &Assembly,
        inputs: Option<&Inputs>,
        node: NodeId,
        waker: &Waker,
    ) -> Result<Self, WorkshopError> {
        let app = assembly.application(node).expect("an application of the partition");
        let partition = &assembly.partition;
        let kind = match app.role {
            Role::Ros => {
                let inputs = inputs.expect("a ROS has an input");
                let links = inputs.links(assembly.index_in_role(node), assembly.events_behind_ros())?;
                links.wake_on_return(waker.clone());
                Kind::Links(Box::new(links))
            }
            Role::L2pu => Kind::Steering(Steering {
                skeleton: assembly.skeleton(),
                cost: partition.l2pu.as_ref().map_or(Duration::ZERO, |l2pu| l2pu.cost.duration()),
                run_number: partition.run.number,
            }),
            Role::Sfo => {
                let replay = inputs.and_then(Inputs::replay).map(rol::Replay::facts);
                Kind::Recorder(Recorder::start(partition, &app.name, replay, waker.clone())?)
            }
            _ => Kind::None,
        };
        Ok(Self { kind, ..Self::default() })
    }

    /// Whether work is finished, or an event that waits for pages can be read out.
    pub(super) fn has_work(&self) -> bool {
        match &self.kind {
            Kind::Links(links) => !self.stalled.is_empty() && links.has_page(),
            Kind::Recorder(recorder) => recorder.has_done(),
            Kind::None | Kind::Steering(_) => false,
        }
    }

    pub(super) fn next_done(&mut self) -> Option<Done> {
        if let Kind::Recorder(recorder) = &self.kind { recorder.next_done() } else { None }
    }
}

impl Host {
    pub(super) fn start(&mut self, now: Time, node: NodeId, ticket: Ticket, work: Work) {
        let workshop = &mut self.nodes[usize::from(node.0)].as_mut().expect("a component here").workshop;
        match (work, &workshop.kind) {
            (Work::ReadOut(event), _) => {
                if !workshop.stalled.is_empty() || !self.read_out(now, node, ticket, &event) {
                    self.stall(node, ticket, event);
                }
            }
            (Work::Steer(steer), Kind::Steering(steering)) => {
                let outcome = Outcome::Steered(steering.step(&steer));
                self.input(now, node, Input::Done { ticket, outcome });
            }
            (work, Kind::Recorder(recorder)) => recorder.begin(ticket, work),
            (work, _) => unreachable!("{work:?} is no work of node {node:?}"),
        }
    }

    /// Reads an event out of all links of a ROS; false if pages are missing.
    pub(super) fn read_out(&mut self, now: Time, node: NodeId, ticket: Ticket, event: &EventInfo) -> bool {
        let workshop = &mut self.nodes[usize::from(node.0)].as_mut().expect("a component here").workshop;
        let Kind::Links(links) = &mut workshop.kind else { unreachable!("only a ROS reads out") };
        let mut fragments = core::mem::take(&mut workshop.fragments);
        let read = links.read_out(event, &mut |rob, head, bulk| fragments.push((rob, head, bulk)));
        match read {
            Ok(()) => {}
            Err(ReadOutError::NoPage { .. }) => {
                workshop.fragments = fragments;
                return false;
            }
            // The event is then asked for in vain, and built incomplete.
            Err(error) => self.notice(node, error.to_string()),
        }
        for (rob, head, bulk) in fragments.drain(..) {
            self.input(now, node, Input::Fragment { rob, head, bulk });
        }
        self.nodes[usize::from(node.0)].as_mut().expect("a component here").workshop.fragments = fragments;
        self.input(now, node, Input::Done { ticket, outcome: Outcome::ReadOut });
        true
    }

    fn stall(&mut self, node: NodeId, ticket: Ticket, event: EventInfo) {
        let hosted = self.nodes[usize::from(node.0)].as_mut().expect("a component here");
        hosted.workshop.stalled.push_back((ticket, event));
    }
}

impl Steering {
    fn step(&self, steer: &Steer) -> Steered {
        self.burn();
        match self.skeleton.step(steer) {
            Steered::Decide(selection) if selection.accept => {
                Steered::Decide(Selection { result: self.result(steer), ..selection })
            }
            other => other,
        }
    }

    /// Spends the configured processor time, to emulate heavy algorithms.
    fn burn(&self) {
        if !self.cost.is_zero() {
            let end = clock::now() + self.cost;
            while clock::now() < end {
                core::hint::spin_loop();
            }
        }
    }

    /// The level-2 result as a ROB fragment: the number of steps, and of ROBs that sent nothing.
    fn result(&self, steer: &Steer) -> Bulk {
        let EventInfo { event, bcid, trigger_type, .. } = steer.event;
        let rod = RodHeader {
            source_id: SourceId(RESULT_SOURCE_ID),
            run_number: self.run_number,
            lvl1_id: event.lvl1_id().0,
            bcid: Bcid::new(bcid).unwrap_or_default(),
            trigger_type,
            ..RodHeader::default()
        };
        let params = RobParams { rod, ..RobParams::default() };
        let data: Vec<u8> = [steer.step, steer.missing].iter().flat_map(|word| word.to_le_bytes()).collect();
        let rob =
            [rob_prefix(&params, data.len()).as_slice(), &data, rob_suffix(&params, data.len()).as_ref()].concat();
        Bulk::Pages(PageSlice::new(Bytes::from(rob)))
    }
}
