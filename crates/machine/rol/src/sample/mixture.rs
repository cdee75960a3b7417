//! Events of several files drawn by their cross sections, or from all files equally often.

use base::random::Random;

use super::facts::SampleFacts;
use super::{Sample, SampleError, SampleFile};

/// Draws events of a sample with probabilities proportional to their cross sections, or files equally often and in them
/// events by their weights. Both are times what the prescales of their level-1 items let pass.
#[derive(Clone, Debug)]
pub struct Mixture {
    cells: Vec<Cell>,
    key: u64,
    cross_section_mb: Option<f64>,
}

/// One of as many equal parts of the whole probability. The event of the same index has the lower part of it, and
/// `other` the rest (Walker 1977, the alias method).
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// In units of 2⁻³² of the cell.
    own: u32,
    other: u32,
}

impl Mixture {
    /// Reads the descriptions beside the files of the sample. `prescales` are bit numbers of level-1 items with their
    /// prescales, from 1. An event that has another item, or none, is not prescaled.
    ///
    /// # Errors
    /// A description that is absent, is not one, or is of a file with another number of events; weights below 0, or 0
    /// alone.
    pub fn new(sample: &Sample, prescales: &[(u8, u32)], seed: u64) -> Result<Self, SampleError> {
        let mut weights = vec![0.0; sample.events()];
        for file in sample.files() {
            let facts = SampleFacts::beside(&file.path)?;
            let rows = (file.events.len() + file.rejected.len()) as u64;
            if facts.events != rows {
                return Err(SampleError::Fact {
                    path: file.path.with_extension("json"),
                    key: "events_stored",
                    expected: format!("{rows}, as many as there are rows in {}", file.path.display()),
                    found: facts.events.to_string(),
                });
            }
            let per_weight = facts.cross_section_mb / facts.sum_of_weights_generated;
            fill(&mut weights, sample, file, prescales)?;
            weights[file.events.clone()].iter_mut().for_each(|weight| *weight *= per_weight);
        }
        let cross_section_mb: f64 = weights.iter().sum();
        if cross_section_mb <= 0.0 || !cross_section_mb.is_finite() {
            return Err(SampleError::NoWeight { path: sample.files()[0].path.clone() });
        }
        Ok(Self {
            cells: cells(&weights, cross_section_mb),
            key: Random::new(seed ^ SALT).next_u64(),
            cross_section_mb: Some(cross_section_mb),
        })
    }

    /// Draws every file equally often, whatever its prescales, and the events within a file by their weights. No descriptions
    /// are read.
    ///
    /// # Errors
    /// Weights below 0, or 0 alone in a file.
    pub fn equal(sample: &Sample, prescales: &[(u8, u32)], seed: u64) -> Result<Self, SampleError> {
        let mut weights = vec![0.0; sample.events()];
        for file in sample.files() {
            fill(&mut weights, sample, file, prescales)?;
            let of_file = &mut weights[file.events.clone()];
            let sum: f64 = of_file.iter().sum();
            if sum <= 0.0 || !sum.is_finite() {
                return Err(SampleError::NoWeight { path: file.path.clone() });
            }
            of_file.iter_mut().for_each(|weight| *weight /= sum);
        }
        let cells = cells(&weights, sample.files().len() as f64);
        Ok(Self { cells, key: Random::new(seed ^ SALT).next_u64(), cross_section_mb: None })
    }

    /// Index of the event that is drawn for this ordinal.
    pub fn event(&self, ordinal: u64) -> usize {
        let mut random = Random::new(self.key ^ Random::new(ordinal).next_u64());
        let index = random.below(self.cells.len() as u64) as usize;
        let Cell { own, other } = self.cells[index];
        if (random.next_u64() >> 32) < u64::from(own) { index } else { other as usize }
    }

    /// Number of events to draw from.
    pub fn events(&self) -> usize {
        self.cells.len()
    }

    /// Cross section of all events together after the prescales, in millibarn. Times 10⁷ it is the rate in Hz at a
    /// luminosity of 10³⁴ cm⁻² s⁻¹. `None` if files are drawn equally often.
    pub fn cross_section_mb(&self) -> Option<f64> {
        self.cross_section_mb
    }
}

/// The weights of the events of a file, times what the prescales let pass.
fn fill(weights: &mut [f64], sample: &Sample, file: &SampleFile, prescales: &[(u8, u32)]) -> Result<(), SampleError> {
    for event in file.events.clone() {
        let weight = sample.weight(event);
        if weight < 0.0 {
            let (path, event_number) = (file.path.clone(), sample.event_number(event));
            return Err(SampleError::Weight { path, event_number, weight });
        }
        weights[event] = weight * passing(sample.items(event), prescales);
    }
    Ok(())
}

/// Part of the events with these items that some prescale lets pass.
fn passing(items: u32, prescales: &[(u8, u32)]) -> f64 {
    let mut left = items;
    let mut rejected = 1.0;
    for (bit, prescale) in prescales.iter().filter(|(bit, _)| items & 1 << bit != 0) {
        left &= !(1 << bit);
        rejected *= 1.0 - 1.0 / f64::from(*prescale);
    }
    if left != 0 || items == 0 { 1.0 } else { 1.0 - rejected }
}

/// Fills the cells of events below the mean from those above it (Vose 1991).
fn cells(weights: &[f64], sum: f64) -> Vec<Cell> {
    let mut parts: Vec<f64> = weights.iter().map(|weight| weight / sum * weights.len() as f64).collect();
    let index = |at: usize| u32::try_from(at).expect("a sample has less than 2^32 events");
    let mut cells: Vec<Cell> = (0..parts.len()).map(|at| Cell { own: u32::MAX, other: index(at) }).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..parts.len()).partition(|at| parts[*at] < 1.0);
    let heaviest = (0..parts.len()).max_by(|a, b| parts[*a].total_cmp(&parts[*b])).unwrap_or(0);
    while let Some(at) = small.pop() {
        // Rounding may leave some below 1 when none is above; one of no weight must still not be drawn.
        let from = large.last().copied().unwrap_or(heaviest);
        cells[at] = Cell { own: (parts[at] * TWO_POW_32) as u32, other: index(from) };
        if large.is_empty() {
            continue;
        }
        parts[from] -= 1.0 - parts[at];
        if parts[from] < 1.0 {
            large.pop();
            small.push(from);
        }
    }
    cells
}

const TWO_POW_32: f64 = 4_294_967_296.0;
/// Keeps the draws apart from other uses of the run's seed.
const SALT: u64 = 0x6d69_7874_7572_6521;

#[cfg(test)]
mod tests {
    use super::*;

    fn mixture(weights: &[f64], seed: u64) -> Mixture {
        let sum = weights.iter().sum();
        Mixture { cells: cells(weights, sum), key: seed, cross_section_mb: Some(sum) }
    }

    /// Exact shares, from the cells themselves.
    fn shares(mixture: &Mixture) -> Vec<f64> {
        let mut shares = vec![0.0; mixture.events()];
        for (at, cell) in mixture.cells.iter().enumerate() {
            let own = f64::from(cell.own) / TWO_POW_32;
            shares[at] += own;
            shares[cell.other as usize] += 1.0 - own;
        }
        shares.iter().map(|share| share / mixture.events() as f64).collect()
    }

    #[test]
    fn shares_are_the_weights() {
        let heavy: Vec<f64> = (0..2000).map(|at| f64::from(at % 7) * 10_f64.powi(at % 9 - 6)).collect();
        for weights in [vec![1.0], vec![1.0, 0.0, 3.0], vec![1e-9, 1.0], vec![2.0; 5], heavy] {
            let sum: f64 = weights.iter().sum();
            for (share, weight) in shares(&mixture(&weights, 1)).iter().zip(&weights) {
                assert!((share - weight / sum).abs() < 1e-9, "{share} for {weight} of {sum}");
            }
        }
    }

    #[test]
    fn an_event_of_no_weight_is_never_drawn() {
        let mixture = mixture(&[0.0, 1.0, 0.0, 2.0], 4);
        assert!((0..10_000).all(|ordinal| mixture.event(ordinal) % 2 == 1));
    }

    /// 99 degrees of freedom: a chi-square above 150 has a probability of 7e-4.
    #[test]
    fn frequencies_agree_with_the_weights() {
        let weights: Vec<f64> = (1..=100).map(f64::from).collect();
        for seed in [1, 2, 3] {
            let mixture = mixture(&weights, seed);
            let mut counts = vec![0_u32; weights.len()];
            let draws = 200_000;
            (0..draws).for_each(|ordinal| counts[mixture.event(ordinal)] += 1);
            let expected = |weight: &f64| weight / 5050.0 * draws as f64;
            let terms = counts.iter().zip(&weights);
            let chi_square: f64 =
                terms.map(|(count, weight)| (f64::from(*count) - expected(weight)).powi(2) / expected(weight)).sum();
            assert!((50.0..150.0).contains(&chi_square), "seed {seed}: {chi_square}");
        }
    }

    #[test]
    fn an_event_passes_if_any_of_its_items_does() {
        let prescales = [(17, 100), (3, 2)];
        for (items, expected) in
            [(1 << 17, 0.01), (1 << 17 | 1, 1.0), (1 << 3, 0.5), (1 << 17 | 1 << 3, 0.505), (0, 1.0)]
        {
            assert!((passing(items, &prescales) - expected).abs() < 1e-12, "{items:#x}");
        }
    }
}
