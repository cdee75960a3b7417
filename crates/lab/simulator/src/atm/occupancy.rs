//! How full the buffers of a switch become under event-building traffic [ATM1997 §IV, Fig. 5].

use super::{Demand, Fragments, RateDivision, Shaping, Switch, SwitchConfig, Tail};

/// What to simulate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// The switch.
    pub switch: SwitchConfig,
    /// When the sources have something to send.
    pub demand: Demand,
    /// Sizes of event fragments.
    pub fragments: Fragments,
    /// How the sources spread their cells.
    pub shaping: Shaping,
    /// Slots that are observed.
    pub slots: u64,
    /// Slots before these, from empty buffers on.
    pub warm_up_slots: u64,
    /// Decides on the times of events, sizes and places in rotations.
    pub seed: u64,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Cells in the buffer of an element, by stage, over all elements and slots.
    pub by_stage: Vec<Tail>,
    /// Cells that the sources sent.
    pub offered: u64,
    /// Cells that reached their output.
    pub delivered: u64,
    /// Cells that found a buffer full.
    pub dropped: u64,
    /// Cells that wait in the switch at the end.
    pub held: u64,
    /// Cells that wait in the sources at the end.
    pub backlog: u64,
}

impl Observation {
    /// The stage whose buffers fill most.
    ///
    /// # Panics
    /// Never: a switch has a stage.
    pub fn fullest(&self) -> &Tail {
        let by_mean = |one: &&Tail, other: &&Tail| one.mean().total_cmp(&other.mean());
        self.by_stage.iter().max_by(by_mean).expect("a switch has a stage")
    }
}

/// Runs a scenario.
pub fn observe(scenario: &Scenario) -> Observation {
    let Scenario { switch: config, demand, fragments, shaping, slots, warm_up_slots, seed } = *scenario;
    let mut switch = Switch::new(config, seed);
    let mut sources = RateDivision::new(config.ports, demand, fragments, shaping, seed ^ SOURCES);
    let mut by_stage = vec![Tail::new(config.buffer_cells.into()); switch.stages()];
    for slot in 0..warm_up_slots + slots {
        switch.step(|_| {});
        sources.step(|cell| switch.offer(cell));
        if slot >= warm_up_slots {
            switch.observe(&mut by_stage);
        }
    }
    let (offered, delivered, dropped) = switch.counts();
    Observation { by_stage, offered, delivered, dropped, held: switch.held(), backlog: sources.backlog() }
}

/// Makes the seed of the sources another than that of the switch.
const SOURCES: u64 = 0x5041_5448;
