//! What a configuration says of the frames of a device, for its link.

use configuration::{ByteOrder, FrameDescription, FrameField, FrameTicks, Interval};
use link::{Counter, Extent, Field, FrameFormat, Ticks};

/// A checked description, for the link.
pub(super) fn format(frame: &FrameDescription) -> FrameFormat {
    let field = |field| field_of(field, frame.order);
    let extent = match (&frame.length, frame.size) {
        (Some(length), _) => {
            Extent::Said { field: field(length.field()), unit: length.unit.into(), plus: length.plus.into() }
        }
        (None, Some(size)) => Extent::Fixed(usize::try_from(size.bytes()).unwrap_or(usize::MAX)),
        (None, None) => Extent::Whole,
    };
    FrameFormat {
        header: frame.header as usize,
        strip: frame.strip,
        extent,
        counter: frame.counter.map(|counter| Counter { field: field(counter.field()), modulus: counter.modulus }),
        time: frame.time.iter().map(|ticks| ticks_of(ticks, frame.order)).collect(),
    }
}

fn ticks_of(ticks: &FrameTicks, order: ByteOrder) -> Ticks {
    let field = field_of(ticks.field(), order);
    match (ticks.clock, ticks.unit) {
        // So many ticks in a million seconds.
        (Some(clock), _) => Ticks { field, ns: 1_000_000_000_000, per: clock.millihertz() },
        (None, unit) => Ticks { field, ns: unit.map_or(1, Interval::ns), per: 1 },
    }
}

fn field_of(field: FrameField, order: ByteOrder) -> Field {
    let order = match field.order.unwrap_or(order) {
        ByteOrder::Big => link::ByteOrder::Big,
        ByteOrder::Little => link::ByteOrder::Little,
    };
    Field { at: field.at as usize, width: field.width as usize, order }
}
