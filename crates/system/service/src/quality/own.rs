//! The histograms that the system fills by itself, of sampled events.

use base::ids::Role;
use eformat::Event;

use super::OF_SYSTEM;
use super::histogram::Histogram;

/// Of one run.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// Sizes of events, by who has shown them.
    sizes: [Counts; 2],
    types: Counts,
    crossings: Counts,
}

/// Counts in bins, and outside of them.
#[derive(Clone, Debug, Default)]
struct Counts {
    bins: Vec<f64>,
    outside: [f64; 2],
}

impl Own {
    /// Takes an event as it was built or, of an EFD, as it is to be recorded. A part of the read-out shows the same events.
    pub(crate) fn fill(&mut self, stage: Role, event: &[u8]) {
        if !matches!(stage, Role::Sfi | Role::Efd) {
            return;
        }
        let is_filtered = stage == Role::Efd;
        self.sizes[usize::from(is_filtered)].fill(event.len() as f64, &size_edges());
        if let Some(event) = Event::parse(event).ok().filter(|_| !is_filtered) {
            self.types.fill(f64::from(event.trigger_type()), &type_edges());
            self.crossings.fill(f64::from(event.bcid()), &crossing_edges());
        }
    }

    /// Those with entries.
    pub(crate) fn histograms(&self) -> impl Iterator<Item = Histogram> + '_ {
        let [built, filtered] = &self.sizes;
        let all = [
            built.histogram(("event-size.sfi", "Size of built events", "bytes"), size_edges()),
            filtered.histogram(("event-size.efd", "Size of accepted events", "bytes"), size_edges()),
            self.types.histogram(("trigger-type", "Level-1 trigger type of built events", "type"), type_edges()),
            self.crossings.histogram(("bunch-crossing", "Bunch crossing of built events", "number"), crossing_edges()),
        ];
        all.into_iter().filter(|histogram| histogram.entries() > 0.0)
    }
}

impl Counts {
    fn fill(&mut self, value: f64, edges: &[f64]) {
        self.bins.resize(edges.len() - 1, 0.0);
        match edges.partition_point(|edge| *edge <= value) {
            0 => self.outside[0] += 1.0,
            above if above == edges.len() => self.outside[1] += 1.0,
            bin => self.bins[bin - 1] += 1.0,
        }
    }

    fn histogram(&self, (name, title, axis): (&str, &str, &str), edges: Vec<f64>) -> Histogram {
        Histogram::of((&format!("{OF_SYSTEM}{name}"), title, axis), edges, self.bins.clone(), self.outside)
    }
}

/// From 64 B to 64 MiB, 32 bins for each factor of two.
fn size_edges() -> Vec<f64> {
    (6 * 32..=26 * 32).map(|step| (f64::from(step) / 32.0).exp2().round()).collect()
}

fn type_edges() -> Vec<f64> {
    (0..=256).map(f64::from).collect()
}

/// An orbit of the LHC, 12 crossings in a bin.
fn crossing_edges() -> Vec<f64> {
    (0..=297).map(|bin| f64::from(12 * bin)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_its_bin_or_outside() {
        let mut own = Own::default();
        own.fill(Role::Ros, &[0; 64]);
        [63, 64, 64, 65, 1 << 20, (64 << 20) + 1].iter().for_each(|len| own.fill(Role::Efd, &vec![0; *len]));
        let histograms: Vec<Histogram> = own.histograms().collect();
        let [sizes] = histograms.try_into().unwrap();
        assert_eq!(sizes.name, "system.event-size.efd");
        assert_eq!((sizes.counts[0], sizes.counts[1], sizes.outside, sizes.entries()), (2.0, 1.0, [1.0, 1.0], 6.0));
        assert!(sizes.checked().is_ok());
    }
}
