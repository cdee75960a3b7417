//! What read-out links send in a simulation.

use std::collections::BTreeMap;

use base::bulk::{Bulk, PageSlice};
use base::ids::{NodeId, Role};
use configuration::RosInput;
use dataflow::message::EventInfo;
use eformat::WORD_BYTES;
use rol::{FragmentSizes, Inputs, Links};

use super::SimulationError;
use super::sources::Payloads;
use partition::Assembly;
use partition::fragment_overhead_bytes;

/// The fragments of each read-out system.
pub(super) enum Content {
    /// Lengths alone, so that systems of any size fit one machine.
    Lengths {
        /// By node and link.
        sizes: BTreeMap<NodeId, Vec<FragmentSizes>>,
        /// Bytes around the data of a fragment.
        overhead_bytes: usize,
    },
    /// The data of a sample or of recorded files, on which level 2 decides as in a live run.
    Data(BTreeMap<NodeId, Reading>),
    /// Lengths of what sources send by themselves.
    Pushed(Payloads),
}

/// The links of one read-out system.
pub(super) struct Reading {
    links: Links,
    /// The fragments of the event that is being read, by link.
    event: Vec<Bulk>,
}

impl Content {
    /// What the links of a partition send.
    pub(super) fn new(assembly: &Assembly, inputs: &Inputs) -> Result<Self, SimulationError> {
        let partition = &assembly.partition;
        if partition.ros.input == RosInput::Links {
            return Ok(Self::Pushed(Payloads::new(assembly)));
        }
        let systems = assembly.of(Role::Ros).into_iter();
        if partition.ros.input != RosInput::Emulator {
            let reading = |(index, node)| Ok((node, Reading { links: inputs.links(index, 0)?, event: Vec::new() }));
            return Ok(Self::Data(systems.enumerate().map(reading).collect::<Result<_, SimulationError>>()?));
        }
        let distribution = partition.ros.fragment.distribution().expect("checked: emulated fragments have sizes");
        let of_link = |link: &u32| FragmentSizes::new(&distribution, partition.run.seed, *link);
        let sizes = systems.zip(&assembly.robs).map(|(node, links)| (node, links.iter().map(of_link).collect()));
        Ok(Self::Lengths { sizes: sizes.collect(), overhead_bytes: fragment_overhead_bytes(partition) })
    }

    pub(super) fn links(&self, node: NodeId) -> u16 {
        let links = match self {
            Self::Lengths { sizes, .. } => sizes.get(&node).map_or(0, Vec::len),
            Self::Data(reading) => reading.get(&node).map_or(0, |reading| reading.links.source_ids().len()),
            Self::Pushed(payloads) => return payloads.links(node),
        };
        links as u16
    }

    /// What sources send by themselves.
    ///
    /// # Panics
    /// If they do not.
    pub(super) fn pushed(&self) -> &Payloads {
        let Self::Pushed(payloads) = self else { panic!("only sources send by themselves") };
        payloads
    }

    pub(super) fn fragment(&mut self, node: NodeId, rob: u16, event: &EventInfo) -> Bulk {
        let rob = usize::from(rob);
        match self {
            Self::Lengths { sizes, overhead_bytes } => {
                let data = sizes[&node][rob].data_bytes(event.event);
                let len_bytes = (data / WORD_BYTES * WORD_BYTES + *overhead_bytes) as u32;
                Bulk::Modelled { len_bytes, seed: event.ordinal as u32 }
            }
            Self::Data(systems) => {
                let reading = systems.get_mut(&node).expect("a read-out system of the partition");
                if rob == 0 {
                    reading.read(event);
                }
                core::mem::replace(&mut reading.event[rob], Bulk::empty())
            }
            Self::Pushed(_) => unreachable!("no read-out system asks a source for a fragment"),
        }
    }
}

impl Reading {
    /// Pages come back at once: what is on its way in virtual time is not bounded by the pages of one process.
    fn read(&mut self, event: &EventInfo) {
        let Self { links, event: fragments } = self;
        fragments.clear();
        if let Err(error) = links.read_out(event, &mut |_, _, bulk| fragments.push(copy(&bulk))) {
            terminal::complain(&format!("weir sim: {error}; its fragments are empty"));
            fragments.resize_with(links.source_ids().len(), Bulk::empty);
        }
    }
}

fn copy(bulk: &Bulk) -> Bulk {
    let mut bytes = Vec::with_capacity(bulk.len());
    bulk.slices().iter().for_each(|slice| bytes.extend_from_slice(slice.as_bytes()));
    Bulk::Pages(PageSlice::from(bytes))
}
