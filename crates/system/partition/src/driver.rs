//! What simulations and calibrations must know of the driver of live processes. Where does its time go? What does
//! it send together? How does it look at events for its components?

pub use assembly::ByLot;

pub use crate::conductor::idle;
pub use crate::host::{
    Meter, SHM_BATCH, SLICES_BATCH, Sample, Samples, Section, Steering, Strategy, byte_sum, processed,
};
pub use crate::lone::{LoneReadOut, Seen};
