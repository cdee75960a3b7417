//! The figures of ATM1997 from one file: its constants in, the points of the curves out.

use serde::Deserialize;
use thiserror::Error;

use super::occupancy::{self, Observation};
use super::{Demand, Fragments, Paths, Shaping, SwitchConfig, aal5_cells, link_bytes_per_s, pull, push, sizing};

/// A scenario file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Figure 2.
    pub sizing: Sizing,
    /// Figure 4.
    pub push: Push,
    /// Figure 5.
    pub occupancy: Occupancy,
    /// Figure 6.
    pub pull: Pull,
}

/// Figure 2: the chart of sizes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizing {
    /// Data that a link carries.
    pub link_bytes_per_s: f64,
    /// Part of it that is used.
    pub load: f64,
    /// A curve for each.
    pub trigger_hz: Vec<f64>,
    /// Points of each curve.
    pub event_bytes: Vec<f64>,
    /// One of the points, simulated.
    pub example: Example,
}

/// An event builder to be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// Size of events.
    pub event_bytes: f64,
    /// Rate of events.
    pub trigger_hz: f64,
    /// Sources, and as many destinations.
    pub ports: u16,
    /// Part of a link that rate division gives out.
    pub allotted: f64,
    /// Ports of a switching element.
    pub element_ports: u16,
    /// Cells that the buffer of an element holds.
    pub buffer_cells: u16,
    /// Slots to simulate.
    pub slots: u64,
}

/// Figure 4: the push demonstrator.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Push {
    /// Sources, and as many destinations.
    pub ports: u16,
    /// Standard deviation of sizes, as a part of the mean.
    pub sigma: f64,
    /// What a source spends on a packet.
    pub send_overhead_ns: u64,
    /// What a destination spends on a packet.
    pub receive_overhead_ns: u64,
    /// Cells that the switch holds.
    pub buffer_cells: u16,
    /// Fragments that a source or destination holds.
    pub memory_fragments: usize,
    /// Mean sizes, the points of the curves.
    pub fragment_bytes: Vec<u32>,
    /// Time to simulate at each trial.
    pub duration_ms: u64,
}

/// Figure 5: occupancy of buffers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Occupancy {
    /// Ports of the switch.
    pub ports: u16,
    /// Ports of an element.
    pub element_ports: u16,
    /// Cells that the buffer of an element holds. The simulated one has room for more, so that the tail shows.
    pub buffer_cells: u16,
    /// Mean size of fragments.
    pub fragment_bytes: f64,
    /// Their standard deviation, as a part of the mean.
    pub sigma: f64,
    /// The curves.
    pub case: Vec<Case>,
}

/// A curve of figure 5.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it is called.
    pub name: String,
    /// Part of a link that rate division gives out; all of it is used.
    pub allotted: f64,
    /// Whether all sources are at the same place of the same rotation.
    #[serde(default)]
    pub synchronised: bool,
    /// Slots to observe.
    pub slots: u64,
}

/// Figure 6: the pull demonstrator.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pull {
    /// Sources; there is one destination.
    pub sources: u16,
    /// What is spent on a packet.
    pub packet_overhead_ns: u64,
    /// What the destination spends on an answer.
    pub receive_overhead_ns: u64,
    /// Cells that the switch holds.
    pub buffer_cells: u16,
    /// Sizes, the points of the curves.
    pub fragment_bytes: Vec<u32>,
    /// Time to simulate for each.
    pub duration_ms: u64,
}

/// A point of figure 4 or 6.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Mean size of fragments.
    pub fragment_bytes: u32,
    /// Events built per second; each source sends as many fragments.
    pub built_hz: f64,
    /// Data of all built events.
    pub bytes_per_s: f64,
    /// Part of the data rate of the links into the destinations that fragments take: k of eq. 1.
    pub load: f64,
    /// Part of the slots of these links that their cells take.
    pub slots_used: f64,
    /// Most cells in the switch.
    pub buffer_cells_max: u64,
}

/// A value that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key} is {value}: expected {expected}")]
pub struct BadScenario {
    /// Table and key.
    pub key: &'static str,
    /// What it is.
    pub value: String,
    /// What it may be.
    pub expected: &'static str,
}

impl Scenario {
    /// Whether it can be simulated.
    ///
    /// # Errors
    /// The first value that makes no sense.
    pub fn check(&self) -> Result<(), BadScenario> {
        let Self { sizing, push, occupancy, pull } = self;
        let example = &sizing.example;
        for (key, ports, element_ports, buffer_cells) in [
            ("sizing.example", example.ports, example.element_ports, example.buffer_cells),
            ("push", push.ports, MOST_PORTS, push.buffer_cells),
            ("occupancy", occupancy.ports, occupancy.element_ports, occupancy.buffer_cells),
            ("pull", pull.sources, MOST_PORTS - 1, pull.buffer_cells),
        ] {
            check_switch(key, ports, element_ports, buffer_cells)?;
        }
        let sizes = push.fragment_bytes.iter().chain(&pull.fragment_bytes).map(|size| f64::from(*size));
        let sizes = sizes.chain([occupancy.fragment_bytes, example.event_bytes / f64::from(example.ports)]);
        for size in sizes {
            within("fragment_bytes, or event_bytes per port", size, 0.0, 65_535.0, "at most 65535, what AAL5 takes")?;
        }
        for part in occupancy.case.iter().map(|case| case.allotted).chain([example.allotted]) {
            within("allotted", part, 0.01, 1.0, "0.01 to 1")?;
        }
        for sigma in [push.sigma, occupancy.sigma] {
            within("sigma", sigma, 0.0, 1.0, "0 to 1")?;
        }
        for rate in sizing.trigger_hz.iter().chain([&example.trigger_hz]) {
            within("trigger_hz", *rate, 1e-3, 1e9, "0.001 to 1e9")?;
        }
        let lists = [sizing.trigger_hz.len(), sizing.event_bytes.len(), push.fragment_bytes.len()];
        for len in lists.into_iter().chain([pull.fragment_bytes.len(), occupancy.case.len()]) {
            within("a list of points", len as f64, 1.0, 1e4, "1 to 10000 points")?;
        }
        within("load", sizing.load, 1e-3, 1.0, "0.001 to 1")
    }
}

/// What [`super::Switch::new`] asks for.
fn check_switch(key: &'static str, ports: u16, element_ports: u16, buffer_cells: u16) -> Result<(), BadScenario> {
    let one_element = key == "push" || key == "pull";
    let size = if one_element { MOST_PORTS } else { element_ports };
    within(key, f64::from(size), 2.0, f64::from(MOST_PORTS), "elements of 2 to 64 ports")?;
    if !size.is_power_of_two() {
        return Err(BadScenario { key, value: size.to_string(), expected: "elements with a power of two of ports" });
    }
    let most = if one_element { element_ports } else { element_ports * element_ports };
    within(key, f64::from(ports), 1.0, f64::from(most), "ports that two stages of its elements reach, or one alone")?;
    within(key, f64::from(buffer_cells), 1.0, f64::from(u16::MAX / ROOM - 1), "buffers of 1 to 4094 cells")
}

fn within(key: &'static str, value: f64, low: f64, high: f64, expected: &'static str) -> Result<(), BadScenario> {
    if (low..=high).contains(&value) { Ok(()) } else { Err(BadScenario { key, value: value.to_string(), expected }) }
}

impl Sizing {
    /// Ports that are needed for events of each size at a rate of triggers.
    pub fn curve(&self, trigger_hz: f64) -> Vec<(f64, f64)> {
        let ports = |event_bytes| sizing::ports(event_bytes, trigger_hz, self.load, self.link_bytes_per_s);
        self.event_bytes.iter().map(|event_bytes| (*event_bytes, ports(*event_bytes))).collect()
    }
}

impl Example {
    /// Simulates it: what its buffers hold, and what waits in its sources.
    pub fn observe(&self) -> Observation {
        let fragments = Fragments { mean_bytes: self.event_bytes / f64::from(self.ports), sigma: 0.0 };
        let load = self.trigger_hz * fragments.mean_cells() / super::slots_per_s();
        occupancy::observe(&occupancy::Scenario {
            switch: SwitchConfig {
                ports: self.ports,
                element_ports: self.element_ports,
                buffer_cells: self.buffer_cells,
                paths: Paths::Multiple,
            },
            demand: Demand::Events { load },
            fragments,
            shaping: Shaping::Unsynchronised { allotted: self.allotted },
            slots: self.slots,
            warm_up_slots: WARM_UP_SLOTS,
            seed: SEED,
        })
    }
}

impl Push {
    /// What is built at the highest rate without loss.
    pub fn points(&self) -> Vec<Point> {
        let point = |fragment_bytes: &u32| {
            let fragments = Fragments { mean_bytes: f64::from(*fragment_bytes), sigma: self.sigma };
            let outcome = push::Demonstrator {
                ports: self.ports,
                buffer_cells: self.buffer_cells,
                fragments,
                send_overhead_ns: self.send_overhead_ns,
                receive_overhead_ns: self.receive_overhead_ns,
                memory_fragments: self.memory_fragments,
                duration_ms: self.duration_ms,
                seed: SEED,
            }
            .fastest();
            Point {
                fragment_bytes: *fragment_bytes,
                built_hz: outcome.built_hz,
                bytes_per_s: outcome.bytes_per_s,
                load: outcome.bytes_per_s / f64::from(self.ports) / link_bytes_per_s(),
                slots_used: outcome.built_hz * fragments.mean_cells() / super::slots_per_s(),
                buffer_cells_max: outcome.buffer_cells_max,
            }
        };
        self.fragment_bytes.iter().map(point).collect()
    }
}

impl Occupancy {
    /// Observes one curve.
    pub fn observe(&self, case: &Case) -> Observation {
        let allotted = case.allotted;
        occupancy::observe(&occupancy::Scenario {
            switch: SwitchConfig {
                ports: self.ports,
                element_ports: self.element_ports,
                buffer_cells: self.buffer_cells * ROOM,
                paths: Paths::Multiple,
            },
            demand: Demand::Saturated,
            fragments: Fragments { mean_bytes: self.fragment_bytes, sigma: self.sigma },
            shaping: match case.synchronised {
                false => Shaping::Unsynchronised { allotted },
                true => Shaping::Synchronised { allotted },
            },
            slots: case.slots,
            warm_up_slots: WARM_UP_SLOTS,
            seed: SEED,
        })
    }
}

impl Pull {
    /// What is built with fragments of each size.
    pub fn points(&self) -> Vec<Point> {
        let point = |fragment_bytes: &u32| {
            let outcome = pull::Demonstrator {
                sources: self.sources,
                buffer_cells: self.buffer_cells,
                fragments: Fragments { mean_bytes: f64::from(*fragment_bytes), sigma: 0.0 },
                packet_overhead_ns: self.packet_overhead_ns,
                receive_overhead_ns: self.receive_overhead_ns,
                duration_ms: self.duration_ms,
                seed: SEED,
            }
            .run();
            let cells_hz = outcome.built_hz * f64::from(self.sources) * f64::from(aal5_cells(*fragment_bytes));
            Point {
                fragment_bytes: *fragment_bytes,
                built_hz: outcome.built_hz,
                bytes_per_s: outcome.bytes_per_s,
                load: outcome.bytes_per_s / link_bytes_per_s(),
                slots_used: cells_hz / super::slots_per_s(),
                buffer_cells_max: outcome.buffer_cells_max,
            }
        };
        self.fragment_bytes.iter().map(point).collect()
    }
}

/// What does not change a figure.
const SEED: u64 = 1;
const WARM_UP_SLOTS: u64 = 20_000;

/// Buffers are simulated this many times larger than they are.
const ROOM: u16 = 16;

/// Of an element.
const MOST_PORTS: u16 = 64;
