//! Where the time of a driver goes, for `weir calibrate`: stretches of time, each with what there was to do in it.
//!
//! The clock is that of the wall, which costs a twentieth of the clock of the thread's processor time. Whoever
//! reads the samples finds what was interrupted: it is much longer than the others.

use std::collections::BTreeMap;

use base::ids::Role;
use dataflow::component::Input;
use dataflow::message::Message;
use dataflow::work_kind::WorkKind;
use stamps::clock;

/// What a stretch of time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// A pass that had work, without what follows. Counts components, connections.
    Pass,
    /// An input of a component, with what it sends. Counts how many of the kind, bytes.
    Input(Role, WorkKind),
    /// The end of a component's pass. Counts what it sends.
    Flush(Role),
    /// Handing over a message within the process.
    Local,
    /// A message into the queue of a connection.
    Encode,
    /// A message out of what a connection has brought.
    Decode,
    /// Taking in what a connection has brought. Counts bytes.
    Read,
    /// Writing to connections. Counts connections, bytes.
    Write,
    /// Taking in what has come in datagrams. Counts bytes.
    ReadDatagrams,
    /// Sending datagrams. Counts bytes.
    WriteDatagrams,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// How many there were.
    pub count: f32,
    /// Their bytes, or what else costs.
    pub bytes: f32,
    /// How long it took, without the metering itself.
    pub ns: f32,
}

/// All that was seen of a section: samples of the whole time, evenly spread.
#[derive(Clone, Debug)]
pub struct Samples {
    kept: Vec<Sample>,
    /// One of so many is kept.
    stride: u32,
    skipped: u32,
    /// How many there were in all.
    pub total: u64,
}

/// Meters one driver.
#[derive(Debug)]
pub struct Meter {
    open: Vec<Open>,
    last_ns: u64,
    sections: BTreeMap<Section, Samples>,
    /// What entering a section and leaving one take by themselves.
    entering_ns: f32,
    leaving_ns: f32,
    /// Whether anything but the pass was seen since its beginning.
    had_work: bool,
}

#[derive(Debug)]
struct Open {
    section: Section,
    count: f32,
    bytes: f32,
    ns: u64,
    /// Sections that were entered and left within it.
    within: u32,
}

impl Default for Meter {
    fn default() -> Self {
        Self::new()
    }
}

impl Meter {
    /// A meter that has seen nothing.
    pub fn new() -> Self {
        let mut meter = Self {
            open: Vec::with_capacity(16),
            last_ns: 0,
            sections: BTreeMap::new(),
            entering_ns: 0.0,
            leaving_ns: 0.0,
            had_work: false,
        };
        (meter.entering_ns, meter.leaving_ns) = meter.own_costs_ns();
        meter.sections.clear();
        meter
    }

    /// What was seen.
    pub fn into_sections(self) -> BTreeMap<Section, Samples> {
        self.sections
    }

    /// A pass begins; the one before is over.
    pub fn begin_pass(&mut self, components: usize, connections: usize) {
        if self.had_work {
            self.leave();
        } else {
            // Nothing was done, or it slept: that is no pass.
            self.open.clear();
            self.last_ns = clock::now().as_ns();
        }
        self.had_work = false;
        self.push(Section::Pass, components, connections);
    }

    /// From here on time goes to this section.
    pub fn enter(&mut self, section: Section, count: usize, bytes: usize) {
        self.had_work = true;
        self.stop_clock();
        self.push(section, count, bytes);
    }

    /// The section that was entered last was more than it seemed.
    pub fn add(&mut self, count: usize, bytes: usize) {
        if let Some(open) = self.open.last_mut() {
            open.count += count as f32;
            open.bytes += bytes as f32;
        }
    }

    /// A component sends a message: what is gathered for the end of a pass is what that counts.
    pub fn sends(&mut self, message: &Message) {
        if let Some(Open { section: Section::Flush(_), .. }) = self.open.last() {
            self.add(WorkKind::of(message).1, 0);
        }
    }

    /// Time goes to the section before again.
    pub fn leave(&mut self) {
        self.stop_clock();
        let Some(Open { section, count, bytes, ns, within }) = self.open.pop() else { return };
        let ns = (ns as f32 - self.entering_ns - within as f32 * self.leaving_ns).max(0.0);
        self.sections.entry(section).or_default().add(Sample { count, bytes, ns });
        if let Some(around) = self.open.last_mut() {
            around.within += 1;
        }
    }

    fn push(&mut self, section: Section, count: usize, bytes: usize) {
        self.open.push(Open { section, count: count as f32, bytes: bytes as f32, ns: 0, within: 0 });
    }

    fn stop_clock(&mut self) {
        let now = clock::now().as_ns();
        if let Some(open) = self.open.last_mut() {
            open.ns += now - self.last_ns;
        }
        self.last_ns = now;
    }

    /// Of entering a section, and of leaving one, which keeps a sample.
    fn own_costs_ns(&mut self) -> (f32, f32) {
        for _ in 0..OWN_COST_ROUNDS {
            self.enter(Section::Encode, 1, 0);
            self.enter(Section::Decode, 1, 0);
            self.leave();
            self.leave();
        }
        let (outer, inner) = (self.median_ns(Section::Encode), self.median_ns(Section::Decode));
        (inner, (outer - inner).max(0.0))
    }

    fn median_ns(&self, section: Section) -> f32 {
        let mut all: Vec<f32> = self.sections[&section].kept().map(|sample| sample.ns).collect();
        all.sort_by(f32::total_cmp);
        all[all.len() / 2]
    }
}

impl Section {
    /// That of an input, and how many there are in it.
    pub fn of_input(role: Role, input: &Input) -> (Self, usize, usize) {
        let bytes = match input {
            Input::Message { message, .. } => bulk_bytes(message),
            _ => 0,
        };
        let (kind, count) = WorkKind::of_input(input);
        (Self::Input(role, kind), count, bytes)
    }

    /// That of a message, and how many there are in it.
    pub fn of_message(role: Role, message: &Message) -> (Self, usize, usize) {
        let (kind, count) = WorkKind::of(message);
        (Self::Input(role, kind), count, bulk_bytes(message))
    }
}

fn bulk_bytes(message: &Message) -> usize {
    message.bulk().map_or(0, base::bulk::Bulk::len)
}

impl Default for Samples {
    fn default() -> Self {
        Self { kept: Vec::new(), stride: 1, skipped: 0, total: 0 }
    }
}

impl Samples {
    /// Adds one, if it is one of those that are kept.
    pub fn add(&mut self, sample: Sample) {
        self.total += 1;
        self.skipped += 1;
        if self.skipped < self.stride {
            return;
        }
        self.skipped = 0;
        if self.kept.len() == KEPT_MAX {
            let mut is_kept = false;
            self.kept.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.stride *= 2;
        }
        self.kept.push(sample);
    }

    /// Those that were kept.
    pub fn kept(&self) -> impl Iterator<Item = &Sample> {
        self.kept.iter()
    }
}

const KEPT_MAX: usize = 1 << 13;
const OWN_COST_ROUNDS: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_to_the_section_that_was_entered_last() {
        let mut meter = Meter::new();
        meter.begin_pass(3, 2);
        meter.enter(Section::Flush(Role::Dfm), 0, 0);
        meter.sends(&Message::Pull(1));
        meter.enter(Section::Encode, 1, 10);
        meter.leave();
        meter.leave();
        meter.begin_pass(3, 2);
        meter.begin_pass(3, 2);
        let sections = meter.into_sections();
        let found: Vec<_> = sections.iter().map(|(section, samples)| (*section, samples.total)).collect();
        let expected = [(Section::Pass, 1), (Section::Flush(Role::Dfm), 1), (Section::Encode, 1)];
        assert_eq!(found, expected);
        let counts: Vec<f32> = sections.values().flat_map(|of| of.kept().map(|sample| sample.count)).collect();
        assert_eq!(counts, [3.0, 1.0, 1.0]);
    }

    #[test]
    fn samples_of_the_whole_time_are_kept() {
        let mut samples = Samples::default();
        let count = 10 * KEPT_MAX;
        (0..count).for_each(|index| samples.add(Sample { count: index as f32, bytes: 0.0, ns: 0.0 }));
        assert_eq!(samples.total, count as u64);
        let kept: Vec<f32> = samples.kept().map(|sample| sample.count).collect();
        assert!(kept.len() > KEPT_MAX / 4 && kept.len() <= KEPT_MAX, "{}", kept.len());
        let late = kept.iter().filter(|index| **index > count as f32 / 2.0).count();
        assert!(late > kept.len() / 4, "{late} of {}", kept.len());
    }
}
