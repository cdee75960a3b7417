//! The push demonstrator: sources send the fragments of events, unasked, to destinations that build them
//! [ATM1997 §IV, Fig. 4].

use std::collections::{BTreeMap, VecDeque};

use base::random::Random;

use super::{Cell, Fragments, Paths, SLOT_PS, Switch, SwitchConfig, aal5_cells};

/// What to simulate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demonstrator {
    /// Sources, and as many destinations, on one switching element.
    pub ports: u16,
    /// Its buffer.
    pub buffer_cells: u16,
    /// Sizes of fragments.
    pub fragments: Fragments,
    /// What a source spends on a packet.
    pub send_overhead_ns: u64,
    /// What a destination spends on a packet and on its place in an event.
    pub receive_overhead_ns: u64,
    /// Fragments that a source or a destination can hold; one more is lost.
    pub memory_fragments: usize,
    /// Simulated time.
    pub duration_ms: u64,
    /// Decides on triggers, sizes and phases.
    pub seed: u64,
}

/// What a demonstrator did at one trigger rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Events built per second.
    pub built_hz: f64,
    /// Data in built events.
    pub bytes_per_s: f64,
    /// Fragments that found no room in a source or destination, and cells that found none in the switch.
    pub lost: u64,
    /// Most cells in the switch's buffer.
    pub buffer_cells_max: u64,
}

impl Demonstrator {
    /// The highest rate of triggers at which nothing is lost, to one part in 500, and what is built at that rate.
    pub fn fastest(&self) -> Outcome {
        let slots = self.fragments.mean_cells();
        let (mut good_hz, mut bad_hz) = (0.0, super::slots_per_s() / slots * 1.1);
        let mut best = self.run(1.0);
        while bad_hz - good_hz > bad_hz / 500.0 {
            let rate_hz = f64::midpoint(good_hz, bad_hz);
            let outcome = self.run(rate_hz);
            if outcome.lost == 0 {
                (good_hz, best) = (rate_hz, outcome);
            } else {
                bad_hz = rate_hz;
            }
        }
        best
    }

    /// Runs with triggers at random (Poisson).
    pub fn run(&self, trigger_hz: f64) -> Outcome {
        Run::new(*self, trigger_hz).run()
    }
}

struct Run {
    demonstrator: Demonstrator,
    trigger_ps: f64,
    next_trigger_ps: f64,
    next_event: u64,
    sources: Vec<Source>,
    destinations: Vec<Destination>,
    switch: Switch,
    random: Random,
    now_ps: u64,
    lost: u64,
    built: u64,
    built_bytes: u64,
}

#[derive(Default)]
struct Source {
    /// Fragments that the processor has yet to make packets of, and when it will have.
    prepared: VecDeque<(u64, Fragment)>,
    processor_free_ps: u64,
    held: usize,
    /// For each destination, fragments and cells to go of the first.
    packets: Vec<VecDeque<Fragment>>,
    /// Turn of the first destination.
    phase: u64,
}

#[derive(Clone, Copy)]
struct Fragment {
    event: u64,
    len_bytes: u32,
    cells_to_go: u32,
}

#[derive(Default)]
struct Destination {
    /// For each source, the packets that are on their way.
    coming: Vec<VecDeque<(u64, u32)>>,
    /// Packets that have come, and when the processor will be done with them.
    processed: VecDeque<(u64, u64, u32)>,
    processor_free_ps: u64,
    /// Fragments and bytes that the events have.
    events: BTreeMap<u64, (u16, u64)>,
}

impl Run {
    fn new(demonstrator: Demonstrator, trigger_hz: f64) -> Self {
        let ports = usize::from(demonstrator.ports);
        let mut random = Random::new(demonstrator.seed);
        let config = SwitchConfig {
            ports: demonstrator.ports,
            element_ports: demonstrator.ports.next_power_of_two(),
            buffer_cells: demonstrator.buffer_cells,
            paths: Paths::Single,
        };
        let source = |random: &mut Random| Source {
            packets: vec![VecDeque::new(); ports],
            phase: random.below(ports as u64),
            ..Source::default()
        };
        Self {
            demonstrator,
            trigger_ps: 1e12 / trigger_hz,
            next_trigger_ps: 0.0,
            next_event: 0,
            sources: (0..ports).map(|_| source(&mut random)).collect(),
            destinations: (0..ports)
                .map(|_| Destination { coming: vec![VecDeque::new(); ports], ..Destination::default() })
                .collect(),
            switch: Switch::new(config, demonstrator.seed),
            random,
            now_ps: 0,
            lost: 0,
            built: 0,
            built_bytes: 0,
        }
    }

    fn run(mut self) -> Outcome {
        let slots = self.demonstrator.duration_ms * 1_000_000_000 / SLOT_PS;
        let mut buffer_cells_max = 0;
        for slot in 0..slots {
            self.now_ps = slot * SLOT_PS;
            self.trigger();
            self.receive();
            self.send(slot);
            buffer_cells_max = buffer_cells_max.max(self.switch.held());
        }
        let seconds = self.now_ps as f64 * 1e-12;
        Outcome {
            built_hz: self.built as f64 / seconds,
            bytes_per_s: self.built_bytes as f64 / seconds,
            lost: self.lost + self.switch.counts().2,
            buffer_cells_max,
        }
    }

    fn trigger(&mut self) {
        while self.next_trigger_ps <= self.now_ps as f64 {
            let event = self.next_event;
            self.next_event += 1;
            let overhead_ps = self.demonstrator.send_overhead_ns * PS_PER_NS;
            for source in &mut self.sources {
                let len_bytes = self.demonstrator.fragments.draw_bytes(&mut self.random);
                if source.held == self.demonstrator.memory_fragments {
                    self.lost += 1;
                    continue;
                }
                source.held += 1;
                source.processor_free_ps = source.processor_free_ps.max(self.now_ps) + overhead_ps;
                let fragment = Fragment { event, len_bytes, cells_to_go: aal5_cells(len_bytes) };
                source.prepared.push_back((source.processor_free_ps, fragment));
            }
            self.next_trigger_ps += self.random.exponential() * self.trigger_ps;
        }
    }

    /// Sources send a cell to the destination whose turn it is: rate division.
    fn send(&mut self, slot: u64) {
        let ports = u64::from(self.demonstrator.ports);
        for (number, source) in (0..).zip(&mut self.sources) {
            while source.prepared.front().is_some_and(|(at_ps, _)| *at_ps <= self.now_ps) {
                let (_, fragment) = source.prepared.pop_front().expect("there is a first");
                source.packets[(fragment.event % ports) as usize].push_back(fragment);
            }
            let turn = ((slot + source.phase) % ports) as usize;
            let Some(fragment) = source.packets[turn].front_mut() else { continue };
            fragment.cells_to_go -= 1;
            let Fragment { event, len_bytes, cells_to_go } = *fragment;
            if cells_to_go == 0 {
                source.packets[turn].pop_front();
                source.held -= 1;
                self.destinations[turn].coming[usize::from(number)].push_back((event, len_bytes));
            }
            self.switch.offer(Cell { destination: turn as u16, source: number, mark: cells_to_go });
        }
    }

    fn receive(&mut self) {
        let overhead_ps = self.demonstrator.receive_overhead_ns * PS_PER_NS;
        let (destinations, lost, now_ps) = (&mut self.destinations, &mut self.lost, self.now_ps);
        self.switch.step(|cell| {
            if cell.mark > 0 {
                return;
            }
            let destination = &mut destinations[usize::from(cell.destination)];
            let (event, len_bytes) =
                destination.coming[usize::from(cell.source)].pop_front().expect("a packet comes after it was sent");
            if destination.processed.len() == self.demonstrator.memory_fragments {
                *lost += 1;
                return;
            }
            destination.processor_free_ps = destination.processor_free_ps.max(now_ps) + overhead_ps;
            destination.processed.push_back((destination.processor_free_ps, event, len_bytes));
        });
        for destination in &mut self.destinations {
            while destination.processed.front().is_some_and(|(at_ps, ..)| *at_ps <= self.now_ps) {
                let (_, event, len_bytes) = destination.processed.pop_front().expect("there is a first");
                let (fragments, bytes) = destination.events.entry(event).or_default();
                *fragments += 1;
                *bytes += u64::from(len_bytes);
                if *fragments == self.demonstrator.ports {
                    self.built += 1;
                    self.built_bytes += *bytes;
                    destination.events.remove(&event);
                }
            }
        }
    }
}

const PS_PER_NS: u64 = 1_000;
