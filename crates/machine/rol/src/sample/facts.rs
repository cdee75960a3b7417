//! What a sample's producer says of a file as a whole.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::SampleError;

/// The description of a sample file: the JSON file of the same name beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleFacts {
    /// Cross section of the process in millibarn, above 0.
    pub cross_section_mb: f64,
    /// Sum of the weights of all events that were generated, stored or not; above 0.
    pub sum_of_weights_generated: f64,
    /// Events in the file, those that level 1 rejected included: the key `events_stored`.
    pub events: u64,
}

impl SampleFacts {
    /// Reads `FILE.json` beside `FILE.parquet`.
    ///
    /// # Errors
    /// It is not there, is not JSON, or lacks one of the three values.
    pub fn beside(sample: &Path) -> Result<Self, SampleError> {
        let path = sample.with_extension("json");
        let io = |source| SampleError::NoFacts { path: path.clone(), source };
        if !std::fs::metadata(&path).map_err(io)?.is_file() {
            return Err(io(std::io::Error::other("it is not a regular file")));
        }
        let mut text = Vec::new();
        File::open(&path).map_err(io)?.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(io)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(io(std::io::Error::other(format!("it is longer than {BYTES_MAX} bytes"))));
        }
        let root: Value =
            serde_json::from_slice(&text).map_err(|source| SampleError::Json { path: path.clone(), source })?;
        let illegal = |key, expected: &str| {
            let found = root.get(key).map_or_else(|| "nothing".to_owned(), ToString::to_string);
            SampleError::Fact { path: path.clone(), key, expected: expected.to_owned(), found }
        };
        let positive = |key| {
            let number = root.get(key).and_then(Value::as_f64).filter(|number| *number > 0.0 && number.is_finite());
            number.ok_or_else(|| illegal(key, "a number above 0"))
        };
        let events = root.get("events_stored").and_then(Value::as_u64);
        Ok(Self {
            cross_section_mb: positive("cross_section_mb")?,
            sum_of_weights_generated: positive("sum_of_weights_generated")?,
            events: events.ok_or_else(|| illegal("events_stored", "a number of events"))?,
        })
    }
}

/// Hundred times what a description has.
const BYTES_MAX: u64 = 1 << 20;
