//! The pull demonstrator: one destination asks several sources for the fragments of events [ATM1997 §IV, Fig. 6].

use std::collections::{BTreeMap, VecDeque};

use base::random::Random;

use super::{Cell, Fragments, Paths, SLOT_PS, Switch, SwitchConfig, aal5_cells};

/// What to simulate. A source has one request at a time, as the traffic generators of the paper. The destination sends
/// it the next when it has the answer, and so has a request at every source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demonstrator {
    /// Sources, on one switching element with the destination.
    pub sources: u16,
    /// Its buffer.
    pub buffer_cells: u16,
    /// Sizes of fragments.
    pub fragments: Fragments,
    /// The time that source and destination spend on a packet without a place in an event. Such are each request that
    /// is sent or received, and each answer that is sent.
    pub packet_overhead_ns: u64,
    /// What the destination spends on an answer and on its place in an event.
    pub receive_overhead_ns: u64,
    /// Simulated time.
    pub duration_ms: u64,
    /// Decides on sizes.
    pub seed: u64,
}

/// What a demonstrator did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Events built per second.
    pub built_hz: f64,
    /// Data in built events.
    pub bytes_per_s: f64,
    /// Cells that found no room in the switch.
    pub lost: u64,
    /// Most cells in the switch's buffer.
    pub buffer_cells_max: u64,
}

impl Demonstrator {
    /// Runs it.
    pub fn run(&self) -> Outcome {
        Run::new(*self).run()
    }
}

struct Run {
    demonstrator: Demonstrator,
    sources: Vec<Source>,
    switch: Switch,
    random: Random,
    now_ps: u64,
    /// What the destination's processor has to do, in order, and when each will be done.
    work: VecDeque<(u64, Work)>,
    processor_free_ps: u64,
    /// Request cells that are ready to go.
    requests: VecDeque<u16>,
    /// Fragments and bytes that the events have.
    events: BTreeMap<u64, (u16, u64)>,
    built: u64,
    built_bytes: u64,
}

#[derive(Clone, Copy)]
enum Work {
    Ask { source: u16 },
    Take { source: u16 },
}

#[derive(Clone, Copy, Default)]
struct Source {
    /// The event that it was asked for last, counted from 1.
    event: u64,
    len_bytes: u32,
    cells_to_go: u32,
    /// When the answer is ready to go.
    ready_ps: u64,
}

impl Run {
    fn new(demonstrator: Demonstrator) -> Self {
        let ports = demonstrator.sources + 1;
        let config = SwitchConfig {
            ports,
            element_ports: ports.next_power_of_two(),
            buffer_cells: demonstrator.buffer_cells,
            paths: Paths::Single,
        };
        Self {
            demonstrator,
            sources: vec![Source::default(); usize::from(demonstrator.sources)],
            switch: Switch::new(config, demonstrator.seed),
            random: Random::new(demonstrator.seed),
            now_ps: 0,
            work: VecDeque::new(),
            processor_free_ps: 0,
            requests: VecDeque::new(),
            events: BTreeMap::new(),
            built: 0,
            built_bytes: 0,
        }
    }

    fn run(mut self) -> Outcome {
        let slots = self.demonstrator.duration_ms * 1_000_000_000 / SLOT_PS;
        let mut buffer_cells_max = 0;
        (0..self.demonstrator.sources).for_each(|source| self.begin(Work::Ask { source }));
        for slot in 0..slots {
            self.now_ps = slot * SLOT_PS;
            self.receive();
            self.work_off();
            self.send();
            buffer_cells_max = buffer_cells_max.max(self.switch.held());
        }
        let seconds = self.now_ps as f64 * 1e-12;
        Outcome {
            built_hz: self.built as f64 / seconds,
            bytes_per_s: self.built_bytes as f64 / seconds,
            lost: self.switch.counts().2,
            buffer_cells_max,
        }
    }

    /// Gives the destination's processor something to do.
    fn begin(&mut self, work: Work) {
        let overhead_ns = match work {
            Work::Ask { .. } => self.demonstrator.packet_overhead_ns,
            Work::Take { .. } => self.demonstrator.receive_overhead_ns,
        };
        self.processor_free_ps = self.processor_free_ps.max(self.now_ps) + overhead_ns * PS_PER_NS;
        self.work.push_back((self.processor_free_ps, work));
    }

    fn receive(&mut self) {
        let mut last_cells = Vec::new();
        self.switch.step(|cell| last_cells.extend((cell.mark == 0).then_some(cell)));
        for cell in last_cells {
            if cell.destination == self.demonstrator.sources {
                self.begin(Work::Take { source: cell.source });
                continue;
            }
            let source = &mut self.sources[usize::from(cell.destination)];
            source.event += 1;
            source.len_bytes = self.demonstrator.fragments.draw_bytes(&mut self.random);
            source.cells_to_go = aal5_cells(source.len_bytes);
            source.ready_ps = self.now_ps + 2 * self.demonstrator.packet_overhead_ns * PS_PER_NS;
        }
    }

    fn work_off(&mut self) {
        while let Some((_, work)) = self.work.pop_front_if(|(at_ps, _)| *at_ps <= self.now_ps) {
            match work {
                Work::Ask { source } => self.requests.push_back(source),
                Work::Take { source } => {
                    self.begin(Work::Ask { source });
                    self.take(source);
                }
            }
        }
    }

    fn take(&mut self, source: u16) {
        let Source { event, len_bytes, .. } = self.sources[usize::from(source)];
        let (fragments, bytes) = self.events.entry(event).or_default();
        *fragments += 1;
        *bytes += u64::from(len_bytes);
        if *fragments == self.demonstrator.sources {
            self.built += 1;
            self.built_bytes += *bytes;
            self.events.remove(&event);
        }
    }

    fn send(&mut self) {
        let destination = self.demonstrator.sources;
        if let Some(source) = self.requests.pop_front() {
            self.switch.offer(Cell { destination: source, source: destination, mark: 0 });
        }
        for (number, source) in (0..).zip(&mut self.sources) {
            if source.cells_to_go > 0 && source.ready_ps <= self.now_ps {
                source.cells_to_go -= 1;
                self.switch.offer(Cell { destination, source: number, mark: source.cells_to_go });
            }
        }
    }
}

const PS_PER_NS: u64 = 1_000;
