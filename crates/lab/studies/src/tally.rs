//! From the decisions on the events of a sample to its report.

use std::collections::BTreeSet;

use configuration::Chain;
use rol::SampleRow;
use trigger::{Menu, Values};

use super::binomial::WeightSum;
use super::chain::Decided;
use super::report::{ChainReport, Level, Requests, SampleReport};
use super::sample::Sample;
use super::truth::Finder;

/// Sums up a sample. `decided` are the decisions on its accepted events, in their order.
pub(super) fn report(sample: &Sample, decided: &[Decided], chains: &[Chain], menu: &Menu) -> SampleReport {
    let detector = menu.detector();
    let random_item = detector.item(RANDOM_ITEM).map_or(0, |bit| 1_u32 << bit);
    let random_chains = set_of(chains.iter().map(|chain| chain.item == RANDOM_ITEM));
    let mut tally = Tally::new(chains.len());
    let mut finders = Finder::all(chains, detector);
    let mut sum_of_weights = 0.0;
    let mut weights = [f64::INFINITY, f64::NEG_INFINITY];
    let mut next = decided.iter();
    for row in &sample.rows {
        sum_of_weights += row.weight;
        weights = [weights[0].min(row.weight), weights[1].max(row.weight)];
        let decided = row.accepted.then(|| next.next().expect("a decision on each accepted event"));
        if let Some(decided) = decided {
            let physics = [
                row.items & !random_item != 0,
                decided.decision.passed & !random_chains != 0,
                decided.filter & !random_chains != 0,
            ];
            tally.event(row, decided, physics);
        }
        let features = decided.map_or(&[][..], |decided| &decided.features);
        finders.iter_mut().for_each(|finder| finder.event(row, features));
    }
    let scale = Scale::of(sample);
    SampleReport {
        sample: sample.name.clone(),
        process: sample.description.process.clone(),
        mu: sample.description.mu,
        only_level1_accepted: sample.description.only_level1_accepted,
        weighted: weights[0] < weights[1],
        events: sample.rows.len() as u64,
        sum_of_weights,
        sum_of_weights_generated: sample.facts.sum_of_weights_generated,
        cross_section_mb: sample.facts.cross_section_mb,
        levels: tally.levels(&scale),
        chains: tally.chain_reports(chains, &scale),
        efficiencies: finders.into_iter().filter_map(Finder::efficiencies).collect(),
        requests: tally.requests.means(),
    }
}

/// From sums of weights to fractions and rates.
struct Scale {
    fraction: f64,
    rate_hz: f64,
}

impl Scale {
    fn of(sample: &Sample) -> Self {
        let fraction = 1.0 / sample.facts.sum_of_weights_generated;
        let (process, mu) = (&sample.description.process, sample.description.mu);
        // Of these the cross section is that of one interaction, and each event is a crossing with mu of them.
        let interactions = if process == "minbias" && mu > 0.0 { mu } else { 1.0 };
        Self { fraction, rate_hz: sample.facts.cross_section_mb * HERTZ_PER_MB * fraction / interactions }
    }
}

/// Counts and sums of weights of what passed.
#[derive(Clone, Copy, Default)]
struct Passed {
    events: u64,
    weight: WeightSum,
}

impl Passed {
    fn add(&mut self, weight: f64) {
        self.events += 1;
        self.weight.add(weight);
    }
}

struct Tally {
    /// After each level: everything, and without the random trigger.
    levels: [[Passed; 2]; 3],
    /// Of each chain: its input, level 2, event filter.
    chains: Vec<[Passed; 3]>,
    requests: RequestTally,
}

impl Tally {
    fn new(chains: usize) -> Self {
        let chains = vec![[Passed::default(); 3]; chains];
        Self { levels: Default::default(), chains, requests: RequestTally::default() }
    }

    /// An accepted event; `physics` says after each level whether anything but the random trigger accepted it.
    fn event(&mut self, row: &SampleRow, decided: &Decided, physics: [bool; 3]) {
        let Decided { decision, filter, .. } = decided;
        let passed = [true, decision.passed != 0, *filter != 0];
        for ((level, passed), physics) in self.levels.iter_mut().zip(passed).zip(physics) {
            for (sum, counts) in level.iter_mut().zip([passed, physics]) {
                if counts {
                    sum.add(row.weight);
                }
            }
        }
        for (bit, levels) in self.chains.iter_mut().enumerate() {
            for (sum, set) in levels.iter_mut().zip([decision.input, decision.passed, *filter]) {
                if set >> bit & 1 == 1 {
                    sum.add(row.weight);
                }
            }
        }
        self.requests.event(row, decided);
    }

    fn levels(&self, scale: &Scale) -> [Level; 3] {
        let names = ["level 1", "level 2", "event filter"];
        let mut before = 1.0 / scale.fraction;
        core::array::from_fn(|index| {
            let [all, physics] = self.levels[index];
            let after = physics.weight.sum();
            let rejection = (after > 0.0).then(|| before / after);
            before = after;
            Level {
                name: names[index],
                accepted: all.events,
                accepted_without_random: physics.events,
                fraction: scale.fraction * all.weight.sum(),
                rate_hz: physics.weight.times(scale.rate_hz),
                rejection,
            }
        })
    }

    fn chain_reports(&self, chains: &[Chain], scale: &Scale) -> Vec<ChainReport> {
        let report = |(chain, [input, level2, filter]): (&Chain, &[Passed; 3])| ChainReport {
            name: chain.name.clone(),
            item: chain.item.clone(),
            input: input.events,
            level2: level2.events,
            event_filter: filter.events,
            event_filter_fraction: scale.fraction * filter.weight.sum(),
            input_rate_hz: input.weight.times(scale.rate_hz),
            level2_rate_hz: level2.weight.times(scale.rate_hz),
            event_filter_rate_hz: filter.weight.times(scale.rate_hz),
            rejection: (filter.weight.sum() > 0.0).then(|| input.weight.sum() / filter.weight.sum()),
        };
        chains.iter().zip(&self.chains).map(report).collect()
    }
}

#[derive(Default)]
struct RequestTally {
    events: u64,
    fractions: f64,
    bytes: u64,
    payload_bytes: u64,
    robs: u64,
    robs_of_event: u64,
    rois: u64,
    requests: u64,
    executions: [u64; 3],
    rejected_after: Vec<u64>,
}

impl RequestTally {
    fn event(&mut self, row: &SampleRow, decided: &Decided) {
        let Decided { decision, features, .. } = decided;
        let bytes = u64::from(decision.requested_payload_bytes);
        self.events += 1;
        self.fractions += if row.payload_bytes > 0 { bytes as f64 / row.payload_bytes as f64 } else { 0.0 };
        self.bytes += bytes;
        self.payload_bytes += row.payload_bytes;
        self.robs += u64::from(decision.requested_robs);
        self.robs_of_event = self.robs_of_event.max(row.fragments as u64);
        self.requests += u64::from(decision.steps);
        let looked_at: BTreeSet<u32> = features.iter().filter_map(|feature| feature.roi).collect();
        self.rois += looked_at.len() as u64;
        for feature in features {
            match feature.values {
                Values::Em(_) => self.executions[0] += 1,
                Values::Muon { .. } => self.executions[1] += 1,
                Values::Jet { .. } => self.executions[2] += 1,
                Values::MissingEt { .. } => {}
            }
        }
        if !decision.accept() {
            let after = decision.steps as usize;
            if self.rejected_after.len() <= after {
                self.rejected_after.resize(after + 1, 0);
            }
            self.rejected_after[after] += 1;
        }
    }

    fn means(self) -> Requests {
        let ratio = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        let [em_executions, muon_executions, jet_executions] = self.executions;
        Requests {
            mean_fraction_of_event_bytes: ratio(self.fractions, self.events),
            fraction_of_all_bytes: ratio(self.bytes as f64, self.payload_bytes),
            mean_robs_per_event: ratio(self.robs as f64, self.events),
            robs: self.robs_of_event,
            robs_per_roi: ratio(self.robs as f64, self.rois),
            mean_rois_per_event: ratio(self.rois as f64, self.events),
            mean_requests_per_event: ratio(self.requests as f64, self.events),
            em_executions,
            muon_executions,
            jet_executions,
            rejected_after_requests: self.rejected_after,
        }
    }
}

fn set_of(chains: impl Iterator<Item = bool>) -> u64 {
    chains.enumerate().fold(0, |set, (bit, is_in)| set | u64::from(is_in) << bit)
}

/// It fires in the same part of all crossings whatever they are, so its rate says nothing of a process.
const RANDOM_ITEM: &str = "L1_RD0";

/// Luminosity of 10³⁴ cm⁻² s⁻¹ times a millibarn.
const HERTZ_PER_MB: f64 = 1e7;
