//! Sizes of emulated fragments.

use base::ids::EventId;
use base::random::Random;
use configuration::SizeDistribution;

/// The sizes of one emulated link: a function of seed, source identifier and event number, and of nothing else.
#[derive(Clone, Debug)]
pub struct FragmentSizes {
    key: u64,
    distribution: Distribution,
}

#[derive(Clone, Debug)]
enum Distribution {
    Fixed(usize),
    Gaussian {
        mean: f64,
        sigma: f64,
        max: f64,
    },
    Exponential {
        mean: f64,
        max: f64,
    },
    /// Sizes with the sum of the weights up to and with their own.
    List(Vec<(usize, u64)>),
}

impl FragmentSizes {
    /// The sizes of the link `source_id`.
    ///
    /// # Panics
    /// If the distribution is a list without sizes or weights, which no checked configuration has.
    pub fn new(distribution: &SizeDistribution, seed: u64, source_id: u32) -> Self {
        let max = distribution.size_max().bytes() as f64;
        let distribution = match distribution {
            SizeDistribution::Fixed(size) => Distribution::Fixed(to_bytes(size.bytes())),
            SizeDistribution::Gaussian { mean, sigma } => {
                Distribution::Gaussian { mean: mean.bytes() as f64, sigma: sigma.bytes() as f64, max }
            }
            SizeDistribution::Exponential { mean } => Distribution::Exponential { mean: mean.bytes() as f64, max },
            SizeDistribution::List(sizes) => Distribution::List(accumulate(sizes)),
        };
        let key = Random::new(seed).next_u64() ^ Random::new(u64::from(source_id)).next_u64();
        Self { key, distribution }
    }

    /// Bytes of data of the fragment of this event, before they are rounded down to whole words.
    ///
    /// What falls below 0 or above the largest size of the distribution becomes that limit.
    pub fn data_bytes(&self, event: EventId) -> usize {
        let mut random = Random::new(self.key ^ event.0);
        match &self.distribution {
            Distribution::Fixed(size) => *size,
            Distribution::Gaussian { mean, sigma, max } => {
                (mean + sigma * normal(&mut random)).clamp(0.0, *max) as usize
            }
            Distribution::Exponential { mean, max } => (mean * random.exponential()).min(*max) as usize,
            Distribution::List(sizes) => {
                let drawn = random.below(sizes.last().map_or(1, |(_, total)| *total));
                sizes[sizes.partition_point(|(_, up_to)| *up_to <= drawn)].0
            }
        }
    }
}

fn accumulate(sizes: &[(configuration::Size, u32)]) -> Vec<(usize, u64)> {
    let mut up_to = 0;
    let mut sum = |&(size, weight): &(configuration::Size, u32)| {
        up_to += u64::from(weight);
        (to_bytes(size.bytes()), up_to)
    };
    let summed: Vec<_> = sizes.iter().map(&mut sum).collect();
    assert!(up_to > 0, "a list of sizes has a weight that is not 0");
    summed
}

/// A number from the normal distribution of mean 0 and standard deviation 1 (Box and Muller 1958).
fn normal(random: &mut Random) -> f64 {
    let radius = (2.0 * random.exponential()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

fn to_bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use configuration::Size;

    use super::*;

    const EVENTS: u64 = 40_000;

    fn mean_and_sigma(distribution: &SizeDistribution, seed: u64) -> (f64, f64, usize) {
        let sizes = FragmentSizes::new(distribution, seed, 0x0051_0003);
        let drawn: Vec<usize> = (0..EVENTS).map(|event| sizes.data_bytes(EventId(event))).collect();
        let mean = drawn.iter().sum::<usize>() as f64 / EVENTS as f64;
        let variance = drawn.iter().map(|&size| (size as f64 - mean).powi(2)).sum::<f64>() / EVENTS as f64;
        (mean, variance.sqrt(), drawn.into_iter().max().unwrap())
    }

    #[test]
    fn fixed_sizes_are_fixed() {
        let fixed = SizeDistribution::Fixed(Size::from_bytes(1000));
        assert_eq!(mean_and_sigma(&fixed, 1), (1000.0, 0.0, 1000));
    }

    #[test]
    fn a_gaussian_has_its_mean_and_sigma() {
        let gaussian = SizeDistribution::Gaussian { mean: Size::from_bytes(1000), sigma: Size::from_bytes(100) };
        for seed in 0..5 {
            let (mean, sigma, max) = mean_and_sigma(&gaussian, seed);
            assert!((mean - 1000.0).abs() < 3.0 && (sigma - 100.0).abs() < 3.0, "seed {seed}: {mean} ± {sigma}");
            assert!(max <= 1600, "seed {seed}: {max}");
        }
    }

    #[test]
    fn an_exponential_has_its_mean_and_is_cut() {
        let exponential = SizeDistribution::Exponential { mean: Size::from_bytes(500) };
        for seed in 0..5 {
            let (mean, sigma, max) = mean_and_sigma(&exponential, seed);
            assert!((mean - 500.0).abs() < 12.0 && (sigma - 500.0).abs() < 15.0, "seed {seed}: {mean} ± {sigma}");
            assert!(max <= 5000, "seed {seed}: {max}");
        }
    }

    #[test]
    fn a_list_is_drawn_by_weight() {
        let sizes = [(100, 1), (200, 0), (1000, 3)].map(|(size, weight)| (Size::from_bytes(size), weight));
        let sizes = FragmentSizes::new(&SizeDistribution::List(sizes.to_vec()), 4, 1);
        let drawn: Vec<usize> = (0..EVENTS).map(|event| sizes.data_bytes(EventId(event))).collect();
        let count = |size| drawn.iter().filter(|&&drawn| drawn == size).count();
        assert_eq!(count(100) + count(1000), EVENTS as usize);
        assert!(count(100).abs_diff(EVENTS as usize / 4) < 400, "{}", count(100));
    }

    #[test]
    fn sizes_depend_on_seed_source_and_event_only() {
        let exponential = SizeDistribution::Exponential { mean: Size::from_bytes(500) };
        let draw = |seed, source_id| {
            let sizes = FragmentSizes::new(&exponential, seed, source_id);
            (0..50).map(|event| sizes.data_bytes(EventId(event))).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 7), draw(1, 7));
        assert_ne!(draw(1, 7), draw(2, 7));
        assert_ne!(draw(1, 7), draw(1, 8));
    }
}
