//! ATM switches, cell by cell, and event building over them ATM1997.
//!
//! Everything here moves in step with the slots of cells: all links have the same rate, and a cell takes one slot.
//! A [`Switch`] is a network of elements with shared buffers. [`RateDivision`] are the sources of an event builder,
//! which shape its traffic. Of the paper, [`push`] and [`pull`] are the demonstrators, [`occupancy`] is the
//! simulation, [`sizing`] the chart, and [`scenario`] holds all figures.

pub mod occupancy;
pub mod pull;
pub mod push;
pub mod scenario;
pub mod sizing;
mod sources;
mod switch;
mod tail;

pub use sources::{Demand, Fragments, RateDivision, Shaping};
pub use switch::{Cell, Paths, Switch, SwitchConfig};
pub use tail::Tail;

/// Cells that carry an AAL5 packet: its data and a trailer of 8 bytes, padded to whole cells [ATM1997 §III].
pub const fn aal5_cells(len_bytes: u32) -> u32 {
    (len_bytes + AAL5_TRAILER_BYTES).div_ceil(CELL_PAYLOAD_BYTES)
}

/// Time that a cell takes on an STM-1 link: 53 bytes at 149.76 Mb/s. SDH leaves so much of 155.52 Mb/s [ITU-T G.707];
/// it is about 150 Mb/s in [ATM1997 §I].
pub const SLOT_PS: u64 = 53 * 8 * 1_000_000_000_000 / 149_760_000;

/// Data in a cell.
pub const CELL_PAYLOAD_BYTES: u32 = 48;

/// Data that a link carries: 48 bytes in each slot. [ATM1997 §I] gives 16.8 MB/s.
pub fn link_bytes_per_s() -> f64 {
    f64::from(CELL_PAYLOAD_BYTES) * slots_per_s()
}

/// Slots in a second.
pub fn slots_per_s() -> f64 {
    1e12 / SLOT_PS as f64
}

const AAL5_TRAILER_BYTES: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_carries_what_the_paper_says() {
        assert!((link_bytes_per_s() / 16.8e6 - 1.0).abs() < 0.01);
        assert_eq!(SLOT_PS / 1000, 2831);
    }

    #[test]
    fn packets_are_padded_to_cells() {
        assert_eq!([0, 40, 41, 88, 89].map(aal5_cells), [1, 1, 2, 2, 3]);
    }
}
