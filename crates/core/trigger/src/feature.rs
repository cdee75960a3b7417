//! What the algorithms found, for monitoring and tests.

/// What one algorithm with one cut found in one region of interest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feature {
    /// The first chain that asked for it: another chain with the same algorithm, cut and region of interest shares it.
    pub chain: u8,
    /// Index of the region of interest in the event; none for missing energy.
    pub roi: Option<u32>,
    /// The measured values.
    pub values: Values,
    /// Whether it passed the selection.
    pub passed: bool,
}

/// Measured values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// Of an electron or photon.
    Em(EmValues),
    /// Of a muon. Charge over momentum in the detector's unit; 0 where that step was not reached or found nothing.
    Muon {
        /// Of the stub.
        stub_qpt_q: i32,
        /// Of the track.
        track_qpt_q: i32,
    },
    /// Of a jet.
    Jet {
        /// Calibrated transverse energy.
        et_mev: i64,
    },
    /// Of the whole event.
    MissingEt {
        /// Missing transverse energy, rounded down.
        et_mev: i64,
    },
}

/// Measured values of an electron or photon; sums are 0 where no cell had energy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmValues {
    /// Sum of 3 × 7 cells.
    pub et37_mev: i64,
    /// Sum of 7 × 7 cells.
    pub et77_mev: i64,
    /// The 16 × 16 cells of the region without the 7 × 7.
    pub ring_mev: i64,
    /// Calibrated transverse energy.
    pub et_mev: i64,
    /// Hottest cell as `ieta << 8 | iphi`.
    pub hot_cell: Option<u32>,
    /// Hadronic leakage, where that step was reached.
    pub hadronic_mev: Option<i64>,
    /// Charge over momentum of the matched track in the detector's unit; 0 where that step was not reached or found nothing.
    pub track_qpt_q: i32,
}
