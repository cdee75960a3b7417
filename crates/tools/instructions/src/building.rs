//! Event building: a DFM that triggers itself or follows level 1, one SFI, ROSs with one ROB each.

use base::ids::Role;
use configuration::{BuildingMode, Dfm, Interval, Level1, Partition as Configuration, Push, Ros, Run, Sfi, Size};
use dataflow::report::{Counters, DfmCounters, Report};

use crate::partition::Partition;

/// Events of four fragments of 1 kB.
pub(crate) fn one_kilobyte(events: u64) {
    build(&Shape::new(4, 1000), events);
}

/// Events of forty small fragments.
pub(crate) fn many_sources(events: u64) {
    build(&Shape::new(40, 64), events);
}

/// Events of 1,600 small fragments, few at a time.
pub(crate) fn full_size(events: u64) {
    build(&Shape { in_hand: 4, pages_per_rob: 32, ..Shape::new(1600, 64) }, events);
}

/// Events of four fragments of 1 kB, which sources send to the builder that is assigned.
pub(crate) fn pushed(events: u64) {
    build(&Shape { mode: BuildingMode::Push, ..Shape::new(4, 1000) }, events);
}

/// The same by the number of the event: level 1 triggers sources and DFM.
pub(crate) fn pushed_by_number(events: u64) {
    build(&Shape { mode: BuildingMode::PushByNumber, ..Shape::new(4, 1000) }, events);
}

/// What is built.
struct Shape {
    sources: u32,
    data_bytes: usize,
    /// Events in building.
    in_hand: u32,
    pages_per_rob: u32,
    mode: BuildingMode,
}

impl Shape {
    /// Pulled, with as many events in hand as the benchmark `event-builder` has.
    fn new(sources: u32, data_bytes: usize) -> Self {
        Self { sources, data_bytes, in_hand: BUILDING, pages_per_rob: PAGES_PER_ROB, mode: BuildingMode::Pull }
    }
}

fn build(shape: &Shape, events: u64) {
    let &Shape { sources, data_bytes, in_hand, pages_per_rob, mode } = shape;
    let plain = configuration(sources, data_bytes);
    let pushes = mode != BuildingMode::Pull;
    let push = Push { window: Some(Size::from_bytes(WINDOW_BYTES)), ..Push::default() };
    let configuration = Configuration {
        run: Run { events: Some(events), ..plain.run },
        // By number, level 1 triggers sources and DFM.
        level1: (mode == BuildingMode::PushByNumber).then(|| Level1 { in_flight: IN_FLIGHT, ..Level1::default() }),
        ros: Ros { pages: pages_per_rob, push: pushes.then_some(push), ..plain.ros },
        dfm: Dfm { building: mode, clear_group: CLEAR_GROUP.min(2 * in_hand), ..plain.dfm },
        sfi: Sfi { building: in_hand, events: 2 * in_hand, outstanding_requests: in_hand * sources, ..plain.sfi },
        ..plain
    };
    let mut partition = Partition::new(follow_level1(configuration), 0, data_bytes);
    partition.start();
    partition.run_until(Role::Dfm, |report| finished(report) >= events);
}

/// Events whose fate a DFM knows.
pub(crate) fn finished(dfm: &Report) -> u64 {
    let counters = DfmCounters::from_values(&dfm.counters);
    counters.accepted + counters.abandoned + counters.unrecorded
}

/// A DFM that triggers itself, one SFI, and so many sources with one ROB each; nothing ends it.
pub(crate) fn configuration(sources: u32, data_bytes: usize) -> Configuration {
    let timeout = Interval::from_ms(2000);
    Configuration {
        ros: Ros { count: sources, pages: PAGES_PER_ROB, request_timeout: timeout, ..Ros::default() },
        dfm: Dfm { clear_group: CLEAR_GROUP, ..Dfm::default() },
        sfi: Sfi {
            events: 2 * BUILDING,
            building: BUILDING,
            outstanding_requests: BUILDING * sources,
            max_event_size: Size::from_bytes(u64::from(sources) * (data_bytes as u64 + 128)),
            request_timeout: timeout,
            ..Sfi::default()
        },
        ..Configuration::default()
    }
}

/// With a level 1, the DFM takes its events.
fn follow_level1(mut configuration: Configuration) -> Configuration {
    if configuration.level1.is_some() {
        configuration.dfm.input = configuration::DfmInput::Level1;
    }
    configuration
}

/// More than there are events in hand.
const PAGES_PER_ROB: u32 = 1024;
const CLEAR_GROUP: u32 = 100;
/// Events between level 1 and those that follow it.
const IN_FLIGHT: u32 = 128;
/// As the benchmark `event-builder` has it.
const BUILDING: u32 = 64;
/// Of each source: more than all its fragments of events in building.
const WINDOW_BYTES: u64 = 1 << 20;
