//! Where the time of a driver goes. The meter of a calibration and time stamps are told at the same places.
#![forbid(unsafe_code)]

pub mod cpu;
mod events;
mod meter;
mod names;

pub use meter::{Meter, Sample, Samples, Section};

use base::ids::{EventId, NodeId, Role};
use dataflow::component::Input;
use dataflow::message::{Envelope, Message};
use stamps::NOWHERE;

use events::each_event;
use names::{of_format, of_kind, of_section};

/// Tells where the time of one driver goes, if anybody wants to know.
#[derive(Debug, Default)]
pub struct Metering {
    meter: Option<Box<Meter>>,
}

impl Metering {
    /// Meters from now on.
    pub fn set_meter(&mut self, meter: Meter) {
        self.meter = Some(Box::new(meter));
    }

    /// What a meter has seen.
    pub fn take_meter(&mut self) -> Option<Meter> {
        self.meter.take().map(|meter| *meter)
    }

    /// The meter, if there is one.
    pub fn meter(&mut self) -> Option<&mut Meter> {
        self.meter.as_deref_mut()
    }

    /// A pass begins, with so many components and connections.
    pub fn begin_pass(&mut self, counts: impl FnOnce() -> (usize, usize)) {
        if let Some(meter) = &mut self.meter {
            let (components, connections) = counts();
            meter.begin_pass(components, connections);
        }
    }

    /// From here on time goes to this section, in which there are so many, with so many bytes.
    #[inline]
    pub fn enter(&mut self, section: impl FnOnce() -> (Section, usize, usize)) {
        if self.is_on() {
            let (section, count, bytes) = section();
            stamps::enter(of_section(section), NOWHERE, NOWHERE, None);
            self.enter_meter(section, count, bytes);
        }
    }

    /// From here on time goes to what a component makes of an input.
    #[inline]
    pub fn enter_input(&mut self, node: NodeId, role: Role, input: &Input) {
        if self.is_on() {
            let (section, count, bytes) = Section::of_input(role, input);
            stamps::enter(of_section(section), node.0, NOWHERE, None);
            self.enter_meter(section, count, bytes);
        }
    }

    /// From here on time goes to what a component makes of a message.
    #[inline]
    pub fn enter_message(&mut self, role: Role, envelope: &Envelope, message: &Message) {
        if self.is_on() {
            let (section, count, bytes) = Section::of_message(role, message);
            stamp_handling(section, envelope, message);
            self.enter_meter(section, count, bytes);
        }
    }

    /// The section that was entered last was more than it seemed.
    pub fn add(&mut self, count: usize, bytes: usize) {
        if let Some(meter) = &mut self.meter {
            meter.add(count, bytes);
        }
    }

    /// A component sends a message.
    pub fn sends(&mut self, message: &Message) {
        if let Some(meter) = &mut self.meter {
            meter.sends(message);
        }
    }

    /// Time goes to the section before again.
    #[inline]
    pub fn leave(&mut self) {
        stamps::leave();
        if let Some(meter) = &mut self.meter {
            meter.leave();
        }
    }

    fn is_on(&self) -> bool {
        self.meter.is_some() || stamps::is_armed()
    }

    fn enter_meter(&mut self, section: Section, count: usize, bytes: usize) {
        if let Some(meter) = &mut self.meter {
            meter.enter(section, count, bytes);
        }
    }
}

/// The stamps of a message that leaves: one for each event in it.
#[inline]
pub fn stamp_sending(envelope: &Envelope, message: &Message) {
    if stamps::is_armed() {
        let section = of_kind(message);
        each_event(message, |event| stamps::sends(section, envelope.from.0, envelope.to.0, Some(event.0)));
    }
}

/// The stamps of an event that a read-out system takes from its links, page and format included, without what its component makes
/// of it.
#[inline]
pub fn stamp_formatting<T>(node: NodeId, event: EventId, format: impl FnOnce() -> T) -> T {
    if stamps::is_armed() {
        stamps::enter(of_format(), node.0, NOWHERE, Some(event.0));
    }
    let formatted = format();
    stamps::leave();
    formatted
}

fn stamp_handling(section: Section, envelope: &Envelope, message: &Message) {
    if !stamps::is_armed() {
        return;
    }
    let mut is_first = true;
    each_event(message, |event| {
        if is_first {
            stamps::enter(of_section(section), envelope.to.0, envelope.from.0, Some(event.0));
        } else {
            stamps::serves(event.0);
        }
        is_first = false;
    });
    if is_first {
        stamps::enter(of_section(section), envelope.to.0, envelope.from.0, None);
    }
}
