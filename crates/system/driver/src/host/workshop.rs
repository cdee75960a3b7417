//! The work that components ask for: reading links out, steering, writing files.

use std::collections::VecDeque;
use std::time::Duration;

use base::bulk::{Bulk, PageSlice};
use base::ids::{NodeId, Role};
use base::time::Time;
use dataflow::component::{Input, Outcome, Ticket, Work};
use dataflow::message::{EventInfo, Message, Recording};
use dataflow::readout::fragment::FragmentHead;
use link::{LinkError, Secret};
use rol::{Inputs, Links, LinksError, Preprocessing, ReadOutError};
use transport::page_pool::Pool;
use transport::waker::Waker;

use super::filtering::{Filtering, FilteringError};
use super::recorder::{Done, Recorder, RecorderError};
use super::sources::{RestingLinks, Sources, SourcesError};
use super::steering::{Steering, Strategy};
use super::{Host, Section};
use crate::assembly::Assembly;

/// What one component can have done.
#[derive(Default)]
pub struct Workshop {
    kind: Duty,
    /// What waits for pages to be read out.
    pub(super) stalled: VecDeque<Reading>,
    /// Fragments of the event being read out; empty between events.
    fragments: Vec<(u16, FragmentHead, Bulk)>,
    /// What is done to replies for level 2.
    preprocessing: Option<Preprocessing>,
}

/// Events to be read out.
pub(super) struct Reading {
    ticket: Ticket,
    events: Vec<EventInfo>,
    /// How many of them were read.
    done: usize,
}

#[derive(Default)]
enum Duty {
    #[default]
    None,
    Links(Box<Links>),
    Sources(Box<Sources>),
    Steering(Steering),
    Filtering(Box<Filtering>),
    Recorder(Recorder),
}

/// Why a component cannot do its work.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum WorkshopError {
    #[error(transparent)]
    Links(#[from] LinksError),
    #[error("[[level1.processor]]: {0}")]
    Processor(#[from] LinkError),
    #[error("[[source]]: {0}")]
    Source(#[from] SourcesError),
    #[error(transparent)]
    Filtering(#[from] FilteringError),
    #[error(transparent)]
    Recorder(#[from] RecorderError),
}

impl Workshop {
    /// What the application at `node` needs. `key` is what sources prove; those that have stayed after the run before are in `resting`.
    ///
    /// # Errors
    /// Files, sources, processing tasks or memory are not to be had.
    ///
    /// # Panics
    /// `node` is no application of the partition, or a ROS has no input.
    pub fn new(
        assembly: &Assembly,
        inputs: Option<&Inputs>,
        node: NodeId,
        key: Option<&Secret>,
        (resting, waker): (&RestingLinks, &Waker),
    ) -> Result<Self, WorkshopError> {
        let app = assembly.application(node).expect("an application of the partition");
        let partition = &assembly.partition;
        let kind = match app.role {
            Role::Level1 => {
                let processors = partition.level1.as_ref().map_or(&[][..], |level1| &level1.processor);
                match processors {
                    [] => Duty::None,
                    _ => {
                        Duty::Sources(Box::new(Sources::open_processors(assembly, processors, key, (resting, waker))?))
                    }
                }
            }
            Role::Ros if partition.ros.input == configuration::RosInput::Links => {
                let of_system = (assembly.index_in_role(node), inputs.expect("a ROS has an input"));
                Duty::Sources(Box::new(Sources::open(assembly, of_system, key, (resting, waker))?))
            }
            Role::Ros => {
                let inputs = inputs.expect("a ROS has an input");
                let links = inputs.links(assembly.index_in_role(node), assembly.events_behind_ros())?;
                links.wake_on_return(waker.clone());
                Duty::Links(Box::new(links))
            }
            Role::L2pu => {
                let cost = partition.l2pu.as_ref().map_or(Duration::ZERO, |l2pu| l2pu.cost.duration());
                let observer = assembly.observer();
                Duty::Steering(Steering::new(Strategy::of(assembly), cost, partition.run.number(), observer))
            }
            Role::Efd if partition.pt.is_some() => {
                Duty::Filtering(Box::new(Filtering::start(assembly, &app.name, waker.clone())?))
            }
            Role::Sfo => {
                let replay = inputs.and_then(Inputs::replay).map(rol::Replay::facts);
                Duty::Recorder(Recorder::start(assembly, &app.name, replay, waker.clone())?)
            }
            _ => Duty::None,
        };
        let preprocessing = match partition.ros.preprocessing {
            configuration::Preprocessing::ZeroSuppression if app.role == Role::Ros => {
                Some(Preprocessing { suppress_below: partition.ros.suppress_below })
            }
            _ => None,
        };
        Ok(Self { kind, preprocessing, ..Self::default() })
    }

    /// Whether work goes on while the component does something else.
    pub(super) fn has_thread(&self) -> bool {
        matches!(self.kind, Duty::Filtering(_) | Duty::Recorder(_))
    }

    /// Whether [`Workshop::has_work`] may become true by itself.
    pub(super) fn is_working(&self) -> bool {
        self.has_thread() || !self.stalled.is_empty()
    }

    /// Whether work is finished, or an event that waits for pages can be read out.
    pub(super) fn has_work(&self) -> bool {
        match &self.kind {
            Duty::Links(links) => !self.stalled.is_empty() && links.has_page(),
            Duty::Recorder(recorder) => recorder.has_done(),
            Duty::Filtering(filtering) => filtering.has_done(),
            Duty::None | Duty::Sources(_) | Duty::Steering(_) => false,
        }
    }

    /// The pages that the links of a ROS are read out to.
    pub(super) fn pool(&self) -> Option<&Pool> {
        match &self.kind {
            Duty::Links(links) => Some(links.pool()),
            _ => None,
        }
    }

    /// Sources that send by themselves.
    pub(super) fn sources(&self) -> Option<&Sources> {
        if let Duty::Sources(sources) = &self.kind { Some(sources) } else { None }
    }

    pub(super) fn sources_mut(&mut self) -> Option<&mut Sources> {
        if let Duty::Sources(sources) = &mut self.kind { Some(sources) } else { None }
    }

    pub(super) fn next_done(&mut self) -> Option<Done> {
        match &mut self.kind {
            Duty::Recorder(recorder) => recorder.next_done(),
            Duty::Filtering(filtering) => filtering.next_done(),
            Duty::None | Duty::Links(_) | Duty::Sources(_) | Duty::Steering(_) => None,
        }
    }

    /// Something that people should know of the work.
    pub(super) fn next_notice(&mut self) -> Option<String> {
        match &mut self.kind {
            Duty::Filtering(filtering) => filtering.next_notice(),
            _ => None,
        }
    }

    /// A message as it is sent: a ROS preprocesses its replies to level 2, and what is shown to those who watch is a copy.
    pub(super) fn prepared(&self, message: Message) -> Message {
        match (self.preprocessing, message) {
            (Some(preprocessing), Message::RoiReply { event, request, missing, bulk }) => {
                Message::RoiReply { event, request, missing, bulk: preprocessing.apply(bulk) }
            }
            (_, Message::Sample(recording)) => Message::Sample(Box::new(unpinned(*recording))),
            (_, message) => message,
        }
    }
}

/// A copy in memory of its own: whoever watches holds no page that data need.
pub fn unpinned(mut recording: Recording) -> Recording {
    let pieces: Vec<&[u8]> = recording.built.bulk.slices().iter().map(PageSlice::as_bytes).collect();
    recording.built.bulk = Bulk::Pages(PageSlice::from(pieces.concat()));
    recording
}

impl Host {
    pub(super) fn start(&mut self, now: Time, node: NodeId, ticket: Ticket, work: Work) {
        let workshop = &mut self.nodes[usize::from(node.0)].as_mut().expect("a component here").workshop;
        match (work, &mut workshop.kind) {
            (Work::ReadOut(events), _) => {
                let mut reading = Reading { ticket, events, done: 0 };
                if !workshop.stalled.is_empty() || !self.read_out(now, node, &mut reading) {
                    self.stall(node, reading);
                }
            }
            (Work::Steer(steer), Duty::Steering(steering)) => {
                let outcome = Outcome::Steered(steering.step(&steer));
                self.input(now, node, Input::Done { ticket, outcome });
            }
            (Work::Process(built), Duty::Filtering(filtering)) => filtering.begin(ticket, built),
            (work, Duty::Recorder(recorder)) => recorder.begin(now, ticket, work),
            (work, _) => unreachable!("{work:?} is no work of node {node:?}"),
        }
    }

    /// Reads events out of all links of a ROS, as far as there are pages; whether all were read.
    pub(super) fn read_out(&mut self, now: Time, node: NodeId, reading: &mut Reading) -> bool {
        let (ticket, before) = (reading.ticket, reading.done);
        while reading.events.get(reading.done).is_some_and(|event| self.read_out_event(now, node, event)) {
            reading.done += 1;
        }
        let (read, all) = (reading.done - before, reading.done == reading.events.len());
        if read > 0 {
            self.input(now, node, Input::Done { ticket, outcome: Outcome::ReadOut(read) });
        }
        all
    }

    fn read_out_event(&mut self, now: Time, node: NodeId, event: &EventInfo) -> bool {
        self.enter(|| (Section::Input(Role::Ros, dataflow::work_kind::WorkKind::Fragment), 0, 0));
        let is_read = self.read_out_metered(now, node, event);
        self.leave();
        is_read
    }

    fn read_out_metered(&mut self, now: Time, node: NodeId, event: &EventInfo) -> bool {
        let workshop = &mut self.nodes[usize::from(node.0)].as_mut().expect("a component here").workshop;
        let Duty::Links(links) = &mut workshop.kind else { unreachable!("only a ROS reads out") };
        let mut fragments = core::mem::take(&mut workshop.fragments);
        let read = metering::stamp_formatting(node, event.event, || {
            links.read_out(event, &mut |rob, head, bulk| fragments.push((rob, head, bulk)))
        });
        match read {
            Ok(()) => {}
            Err(ReadOutError::NoPage { .. }) => {
                workshop.fragments = fragments;
                return false;
            }
            // The event is then asked for in vain, and built incomplete.
            Err(error) => self.notice(node, error.to_string()),
        }
        if let Some(meter) = self.metering.meter() {
            let bytes = fragments.iter().map(|(_, head, _)| head.len_bytes as usize).sum();
            meter.add(fragments.len(), bytes);
        }
        for (rob, head, bulk) in fragments.drain(..) {
            self.input(now, node, Input::Fragment { rob, head, bulk });
        }
        self.nodes[usize::from(node.0)].as_mut().expect("a component here").workshop.fragments = fragments;
        true
    }

    fn stall(&mut self, node: NodeId, reading: Reading) {
        let hosted = self.nodes[usize::from(node.0)].as_mut().expect("a component here");
        hosted.workshop.stalled.push_back(reading);
        if !self.schedule.working.contains(&node) {
            self.schedule.working.push(node);
        }
    }
}
