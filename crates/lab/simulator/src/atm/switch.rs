//! A self-routing network of switching elements, each with one buffer that its outputs share.

use base::random::Random;

use super::Tail;

/// The size and shape of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Inputs, and as many outputs: at most the square of `element_ports`.
    pub ports: u16,
    /// Inputs and outputs of an element: a power of two, at most 64. 16 in [ATM1997 §IV].
    pub element_ports: u16,
    /// Cells that the buffer of an element holds.
    pub buffer_cells: u16,
    /// Ways through a switch of more than one element.
    pub paths: Paths,
}

/// Ways through a switch of more than one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// Two stages: one way from each input to each output, on which cells keep their order.
    Single,
    /// Three stages: the first spreads cells at random, the others route them, as in the multi-path self-routing switch of
    /// [ATM1997 §IV, ref. 8]. Cells may overtake each other; the switch puts them in order again at its outputs, by a delay
    /// that is not part of the model.
    Multiple,
}

/// A cell. Its data stay with its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The output that it goes to.
    pub destination: u16,
    /// The input that it came from.
    pub source: u16,
    /// What the source gave it: a sequence number, or the mark of the end of a packet.
    pub mark: u32,
}

/// A switch, stepped slot by slot. In a slot each output of each element sends one cell; those that come in the same slot
/// find its room free.
#[derive(Debug)]
pub struct Switch {
    config: SwitchConfig,
    stages: usize,
    elements: usize,
    element_bits: u32,
    /// Element `e` of stage `s` is `pools[s * elements + e]`.
    pools: Vec<Element>,
    /// Queue `o` of pool `p` is `queues[p * element_ports + o]`.
    queues: Vec<Fifo>,
    /// Place `i` of pool `p` is `places[p * buffer_cells + i]`.
    places: Vec<Place>,
    random: Random,
    /// Random bits that are left over.
    bits: u64,
    dropped: Vec<u64>,
    offered: u64,
    delivered: u64,
}

#[derive(Clone, Copy, Debug)]
struct Element {
    /// A bit for each output that has a cell.
    waiting: u64,
    used: u16,
    /// Chain of places that were freed; then those from `fresh` on have never been used.
    free: u16,
    fresh: u16,
}

#[derive(Clone, Copy, Debug)]
struct Fifo {
    head: u16,
    tail: u16,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    cell: Cell,
    next: u16,
}

impl Switch {
    /// An empty switch. The seed decides on which ways cells are spread.
    ///
    /// # Panics
    /// If elements have not a power of two of ports, if there are more ports than two stages reach, or no buffer.
    pub fn new(config: SwitchConfig, seed: u64) -> Self {
        let SwitchConfig { ports, element_ports, buffer_cells, paths } = config;
        assert!(
            element_ports.is_power_of_two() && element_ports <= 64,
            "{config:?} has elements of 1, 2, 4 … 64 ports"
        );
        assert!(
            ports > 0 && u32::from(ports) <= u32::from(element_ports).pow(2),
            "{config:?} has two stages of routing"
        );
        assert!((1..NONE).contains(&buffer_cells), "{config:?} has buffers");
        let (stages, elements) = match paths {
            _ if ports <= element_ports => (1, 1),
            Paths::Single => (2, element_ports.into()),
            Paths::Multiple => (3, element_ports.into()),
        };
        let empty = Cell { destination: 0, source: 0, mark: 0 };
        let pools = stages * elements;
        Self {
            config,
            stages,
            elements,
            element_bits: element_ports.trailing_zeros(),
            pools: vec![Element { waiting: 0, used: 0, free: NONE, fresh: 0 }; pools],
            queues: vec![Fifo { head: NONE, tail: NONE }; pools * usize::from(element_ports)],
            places: vec![Place { cell: empty, next: NONE }; pools * usize::from(buffer_cells)],
            random: Random::new(seed),
            bits: 0,
            dropped: vec![0; stages],
            offered: 0,
            delivered: 0,
        }
    }

    /// Elements that a cell passes.
    pub const fn stages(&self) -> usize {
        self.stages
    }

    /// Sends what waits one stage further; what leaves the switch goes to `deliver`. To be called once in each slot, before
    /// the cells of the slot are offered.
    pub fn step(&mut self, mut deliver: impl FnMut(Cell)) {
        for stage in (0..self.stages).rev() {
            for element in 0..self.elements {
                let pool = stage * self.elements + element;
                let mut waiting = self.pools[pool].waiting;
                while waiting != 0 {
                    let output = waiting.trailing_zeros() as usize;
                    waiting &= waiting - 1;
                    let cell = self.pop(pool, output);
                    if stage + 1 == self.stages {
                        self.delivered += 1;
                        deliver(cell);
                    } else {
                        // Output `o` of each element leads to element `o` of the next stage.
                        self.push(stage + 1, output, cell);
                    }
                }
            }
        }
    }

    /// A cell comes in at the input that is its source.
    ///
    /// # Panics
    /// If an input or output does not exist.
    pub fn offer(&mut self, cell: Cell) {
        assert!(cell.source < self.config.ports && cell.destination < self.config.ports, "{cell:?} has ports");
        self.offered += 1;
        let element = if self.stages == 1 { 0 } else { usize::from(cell.source >> self.element_bits) };
        self.push(0, element, cell);
    }

    /// Cells that came in, left and were dropped so far.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.offered, self.delivered, self.dropped.iter().sum())
    }

    /// Cells dropped so far in each stage, for want of room in a buffer.
    pub fn dropped(&self) -> &[u64] {
        &self.dropped
    }

    /// Cells in the switch.
    pub fn held(&self) -> u64 {
        self.pools.iter().map(|element| u64::from(element.used)).sum()
    }

    /// Counts the cells in each buffer, by stage.
    pub fn observe(&self, tails: &mut [Tail]) {
        for (elements, tail) in self.pools.chunks(self.elements).zip(tails) {
            for element in elements {
                tail.add(element.used.into());
            }
        }
    }

    fn push(&mut self, stage: usize, element: usize, cell: Cell) {
        let output = self.output(stage, cell.destination);
        let pool = stage * self.elements + element;
        let base = pool * usize::from(self.config.buffer_cells);
        let state = &mut self.pools[pool];
        let place = if state.free != NONE {
            let place = state.free;
            state.free = self.places[base + usize::from(place)].next;
            place
        } else if state.fresh < self.config.buffer_cells {
            state.fresh += 1;
            state.fresh - 1
        } else {
            self.dropped[stage] += 1;
            return;
        };
        state.used += 1;
        self.places[base + usize::from(place)] = Place { cell, next: NONE };
        let queue = &mut self.queues[pool * usize::from(self.config.element_ports) + output];
        if state.waiting & (1 << output) == 0 {
            state.waiting |= 1 << output;
            queue.head = place;
        } else {
            self.places[base + usize::from(queue.tail)].next = place;
        }
        queue.tail = place;
    }

    fn pop(&mut self, pool: usize, output: usize) -> Cell {
        let base = pool * usize::from(self.config.buffer_cells);
        let queue = &mut self.queues[pool * usize::from(self.config.element_ports) + output];
        let state = &mut self.pools[pool];
        let place = queue.head;
        let Place { cell, next } = self.places[base + usize::from(place)];
        queue.head = next;
        if next == NONE {
            state.waiting &= !(1 << output);
        }
        self.places[base + usize::from(place)].next = state.free;
        state.free = place;
        state.used -= 1;
        cell
    }

    /// The output of an element of this stage that a cell takes. The last stage looks at the low digit of its
    /// destination, the one before at the high digit, a first of three at none.
    fn output(&mut self, stage: usize, destination: u16) -> usize {
        let mask = self.config.element_ports - 1;
        usize::from(match self.stages - stage {
            1 => destination & mask,
            2 => destination >> self.element_bits,
            _ => {
                // A leading one marks how many bits are left.
                if self.bits <= u64::from(mask) {
                    self.bits = self.random.next_u64() | 1 << 63;
                }
                let drawn = self.bits as u16 & mask;
                self.bits >>= self.element_bits;
                drawn
            }
        })
    }
}

const NONE: u16 = u16::MAX;
