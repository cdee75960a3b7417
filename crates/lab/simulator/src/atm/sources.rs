//! The sources of a push event builder: each sends its fragment of every event to the event's destination.

use std::collections::VecDeque;

use base::random::Random;

use super::{Cell, aal5_cells};

/// How sources spread their cells in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shaping {
    /// Rate division [ATM1997 §III, §IV]: the part `allotted` of a link is divided between the N destinations. Each has
    /// one slot in N / `allotted`, at a place in the rotation that is drawn when a packet starts. The draw stands for
    /// the drift of clocks, for which no simulation is long enough.
    Unsynchronised {
        /// Part of the link's slots.
        allotted: f64,
    },
    /// Rate division with all sources in the same place of the same rotation: what [ATM1997 §IV] assumes away.
    Synchronised {
        /// Part of the link's slots.
        allotted: f64,
    },
    /// No shaping: packets one after the other, at the full rate of the link.
    Bursts,
}

/// When sources have something to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// Always, for every destination: shaping alone makes the load.
    Saturated,
    /// When there are events: at random (Poisson), for the destinations in turn, at all sources at once.
    Events {
        /// Part of the link's slots that the cells of all fragments take.
        load: f64,
    },
}

/// The sources of a push event builder, with shaped traffic.
#[derive(Debug)]
pub struct RateDivision {
    ports: u16,
    shaping: Shaping,
    fragments: Fragments,
    /// 0 for saturated sources.
    events_per_slot: f64,
    next_event_slots: f64,
    next_destination: u16,
    turns: u16,
    /// Destination that has slot `t` of the rotation of source `s`: `rotation[t * ports + s]`.
    rotation: Vec<u16>,
    /// The inverse: `place[d * ports + s]` is the slot that destination `d` has at source `s`.
    place: Vec<u16>,
    /// Cells that wait at source `s` for destination `d`: `waiting[d * ports + s]`.
    waiting: Vec<u32>,
    /// Without shaping: destinations and cells of the packets that wait at each source.
    bursts: Vec<VecDeque<(u16, u32)>>,
    slot: u64,
    backlog: u64,
    random: Random,
}

/// Sizes of fragments: a Gaussian, cut off at 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fragments {
    /// The mean.
    pub mean_bytes: f64,
    /// The standard deviation as a part of the mean.
    pub sigma: f64,
}

impl Fragments {
    /// Draws a size.
    pub fn draw_bytes(&self, random: &mut Random) -> u32 {
        if self.sigma == 0.0 {
            return self.mean_bytes as u32;
        }
        // The sum of twelve uniform numbers has variance 1, and is the same on all machines.
        let gaussian = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        (self.mean_bytes * (1.0 + self.sigma * gaussian)).max(0.0).round() as u32
    }

    /// Mean number of cells, by a fixed sequence of draws.
    pub fn mean_cells(&self) -> f64 {
        let mut random = Random::new(0);
        let draws = if self.sigma == 0.0 { 1 } else { 100_000 };
        let cells: u64 = (0..draws).map(|_| u64::from(aal5_cells(self.draw_bytes(&mut random)))).sum();
        cells as f64 / f64::from(draws)
    }
}

impl RateDivision {
    /// Sources at the ports of a switch.
    ///
    /// # Panics
    /// Without ports, or if saturated sources have no shaping. If none or more than all of a link is divided, or into
    /// more than 65,534 slots.
    pub fn new(ports: u16, demand: Demand, fragments: Fragments, shaping: Shaping, seed: u64) -> Self {
        assert!(ports > 0, "there are sources");
        let allotted = match shaping {
            Shaping::Unsynchronised { allotted } | Shaping::Synchronised { allotted } => allotted,
            Shaping::Bursts => 1.0,
        };
        let turns = (f64::from(ports) / allotted).round();
        assert!(turns >= f64::from(ports) && turns < f64::from(NOBODY), "{shaping:?} divides a link");
        assert!((demand, shaping) != (Demand::Saturated, Shaping::Bursts), "a saturated source sends in turn");
        let size = usize::from(ports);
        let mut sources = Self {
            ports,
            shaping,
            fragments,
            events_per_slot: match demand {
                Demand::Saturated => 0.0,
                Demand::Events { load } => load / fragments.mean_cells(),
            },
            next_event_slots: 0.0,
            next_destination: 0,
            turns: turns as u16,
            rotation: Vec::new(),
            place: vec![0; size * size],
            waiting: vec![0; size * size],
            bursts: vec![VecDeque::new(); if shaping == Shaping::Bursts { size } else { 0 }],
            slot: 0,
            backlog: 0,
            random: Random::new(seed),
        };
        sources.lay_out();
        if demand == Demand::Saturated {
            sources.next_event_slots = f64::INFINITY;
            sources.fill();
        }
        sources
    }

    /// Gives each destination of each source a turn.
    fn lay_out(&mut self) {
        let ports = usize::from(self.ports);
        self.rotation = vec![NOBODY; usize::from(self.turns) * ports];
        for source in 0..ports {
            let mut turns: Vec<u16> = (0..self.turns).collect();
            if matches!(self.shaping, Shaping::Unsynchronised { .. }) {
                self.random.shuffle(&mut turns);
            }
            for (destination, turn) in (0..self.ports).zip(turns) {
                self.rotation[usize::from(turn) * ports + source] = destination;
                self.place[usize::from(destination) * ports + source] = turn;
            }
        }
    }

    /// Puts saturated sources into the midst of packets.
    fn fill(&mut self) {
        for place in 0..self.waiting.len() {
            let cells = aal5_cells(self.fragments.draw_bytes(&mut self.random));
            self.waiting[place] = self.random.below(cells.into()) as u32 + 1;
        }
    }

    /// Cells that wait in all sources together; 0 if they are saturated.
    pub const fn backlog(&self) -> u64 {
        self.backlog
    }

    /// What the sources send in the next slot: at most a cell each.
    pub fn step(&mut self, send: impl FnMut(Cell)) {
        while self.next_event_slots < self.slot as f64 {
            self.on_event();
            self.next_event_slots += self.random.exponential() / self.events_per_slot;
        }
        if self.shaping == Shaping::Bursts {
            self.send_bursts(send);
        } else {
            self.send_in_turn(send);
        }
        self.slot += 1;
    }

    fn on_event(&mut self) {
        let (ports, destination) = (usize::from(self.ports), self.next_destination);
        self.next_destination = (destination + 1) % self.ports;
        for source in 0..ports {
            let cells = aal5_cells(self.fragments.draw_bytes(&mut self.random));
            self.backlog += u64::from(cells);
            if self.shaping == Shaping::Bursts {
                self.bursts[source].push_back((destination, cells));
                continue;
            }
            let waiting = &mut self.waiting[usize::from(destination) * ports + source];
            let starts = *waiting == 0;
            *waiting += cells;
            if starts {
                self.draw_place(source, destination);
            }
        }
    }

    fn send_in_turn(&mut self, mut send: impl FnMut(Cell)) {
        let ports = usize::from(self.ports);
        let turn = (self.slot % u64::from(self.turns)) as usize;
        for source in 0..self.ports {
            let destination = self.rotation[turn * ports + usize::from(source)];
            if destination == NOBODY {
                continue;
            }
            let waiting = &mut self.waiting[usize::from(destination) * ports + usize::from(source)];
            if *waiting == 0 {
                continue;
            }
            *waiting -= 1;
            let mark = *waiting;
            send(Cell { destination, source, mark });
            if self.events_per_slot > 0.0 {
                self.backlog -= 1;
            } else if mark == 0 {
                *waiting = aal5_cells(self.fragments.draw_bytes(&mut self.random));
                self.draw_place(source.into(), destination);
            }
        }
    }

    /// Exchanges the turn of a destination with a random one.
    fn draw_place(&mut self, source: usize, destination: u16) {
        if !matches!(self.shaping, Shaping::Unsynchronised { .. }) {
            return;
        }
        let ports = usize::from(self.ports);
        let turn = self.random.below(self.turns.into()) as u16;
        let other = self.rotation[usize::from(turn) * ports + source];
        let own = std::mem::replace(&mut self.place[usize::from(destination) * ports + source], turn);
        self.rotation[usize::from(own) * ports + source] = other;
        self.rotation[usize::from(turn) * ports + source] = destination;
        if other != NOBODY && other != destination {
            self.place[usize::from(other) * ports + source] = own;
        }
    }

    fn send_bursts(&mut self, mut send: impl FnMut(Cell)) {
        for (source, packets) in (0..).zip(&mut self.bursts) {
            if let Some((destination, cells)) = packets.front_mut() {
                *cells -= 1;
                self.backlog -= 1;
                send(Cell { destination: *destination, source, mark: *cells });
                if *cells == 0 {
                    packets.pop_front();
                }
            }
        }
    }
}

/// An empty place of a rotation.
const NOBODY: u16 = u16::MAX;
