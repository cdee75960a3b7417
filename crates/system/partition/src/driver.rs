//! What simulations and calibrations need to know of the driver of live processes: where its time goes, what it sends
//! together, and how it looks at events for its components.

pub use crate::conductor::idle;
pub use crate::host::{
    Meter, SHM_BATCH, SLICES_BATCH, Sample, Samples, Section, Steering, Strategy, byte_sum, fragments, processed,
};
