//! Triggers at random times, the same for all detectors that see them.

use base::random::Random;

use super::traits::Beams;

pub(super) struct Beam {
    triggers: Random,
    jitter: Random,
    mean_ns: u64,
    /// The next trigger that is drawn.
    next: u64,
    /// When the last one was that is drawn.
    now_ns: u64,
}

impl Beam {
    pub(super) fn new(beams: &Beams, seed: u64) -> Self {
        let jitter = Random::new(seed ^ BEAM_SEED);
        Self { triggers: Random::new(beams.seed ^ BEAM_SEED), jitter, mean_ns: beams.mean_ns, next: 0, now_ns: 0 }
    }

    /// When this trigger comes, ns from the begin of the run; they rise.
    pub(super) fn trigger(&mut self, ordinal: u64) -> u64 {
        while self.next <= ordinal {
            // A tenth of the mean is dead time.
            self.now_ns += (self.mean_ns as f64 * (0.1 + 0.9 * self.triggers.exponential())) as u64;
            self.next += 1;
        }
        self.now_ns
    }

    /// The time of this trigger, which is that of an event, by the clock of the detector, ns.
    pub(super) fn time_of(&mut self, event: u64, ordinal: u64, beams: &Beams) -> u64 {
        let trigger = self.trigger(ordinal);
        let drift = (trigger as f64 * beams.drift_ppm * 1e-6) as i64;
        let step = beams.clock_step.filter(|(at, _)| event >= *at).map_or(0, |(_, step_ns)| step_ns);
        let ahead = step + self.jitter.below(beams.jitter_ns + 1);
        (trigger + CLOCK_BEGINS_NS).saturating_add_signed(drift).saturating_add(ahead)
    }
}

const BEAM_SEED: u64 = 0x5ea_b0a7;
/// No time is before the begin of the clock, however slow it goes.
const CLOCK_BEGINS_NS: u64 = 1_000_000_000_000;
