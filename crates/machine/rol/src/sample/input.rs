//! Which event of a sample is sent when, and how large.

use std::sync::Arc;

use super::Sample;
use super::mixture::Mixture;
use crate::input_index;

/// A sample as an input: which event has which ordinal in the run, and how fragments are padded. Clones share the sample.
///
/// The event is a function of the ordinal, so level 1 and the read-out systems agree on it without talking to each other.
#[derive(Clone, Debug)]
pub struct SampleInput {
    sample: Arc<Sample>,
    mixture: Option<Arc<Mixture>>,
    repeat: bool,
    pad_bytes: usize,
}

impl SampleInput {
    /// The events one behind the other. It ends with the last one, or with `repeat` goes round without end.
    pub fn new(sample: Arc<Sample>, repeat: bool) -> Self {
        Self { sample, mixture: None, repeat, pad_bytes: 0 }
    }

    /// Draws events instead: as many as the sample has, or with `repeat` without end.
    ///
    /// # Panics
    /// If the mixture is one of another sample.
    #[must_use]
    pub fn mixed(self, mixture: Arc<Mixture>) -> Self {
        assert_eq!(mixture.events(), self.sample.events(), "a mixture of this sample");
        Self { mixture: Some(mixture), ..self }
    }

    /// Puts words of zero behind payloads that are shorter than this, rounded down to whole words.
    #[must_use]
    pub fn padded(self, pad_bytes: usize) -> Self {
        Self { pad_bytes, ..self }
    }

    /// The sample.
    pub fn sample(&self) -> &Arc<Sample> {
        &self.sample
    }

    /// How events are drawn, if they are.
    pub fn mixture(&self) -> Option<&Mixture> {
        self.mixture.as_deref()
    }

    /// Index in the sample of the event with this ordinal in the run; `None` behind the end.
    pub fn event(&self, ordinal: u64) -> Option<usize> {
        let in_turn = input_index(ordinal, self.sample.events(), self.repeat)?;
        Some(self.mixture.as_ref().map_or(in_turn, |mixture| mixture.event(ordinal)))
    }

    /// The least size of the data of a fragment.
    pub fn pad_bytes(&self) -> usize {
        self.pad_bytes
    }
}
