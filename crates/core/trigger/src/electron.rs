//! Electrons and photons: calorimeter cluster with shower shape and isolation, hadronic leakage, track match.
//!
//! [`cluster`], [`hadronic_mev`] and [`track_qpt`] depend on the region of interest alone, not on the threshold: all chains
//! share them. Energies are integers in MeV, so decisions can be reproduced exactly.

use std::f64::consts::TAU;

use crate::angle::wrap;
use crate::cuts::Cuts;
use crate::data::Data;
use crate::detector::Detector;
use crate::geography::{
    ANGLES_ETA_PER_TOWER, ANGLES_PHI, ANGLES_PHI_PER_TOWER, CELLS_PER_TOWER, EM_CELLS_PHI, SubSystem, TOWERS_PHI,
    Window,
};
use crate::payload::Track;

/// The region of interest of a cluster: the lower tower of its 2 × 2 core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core {
    pub(crate) ieta: u8,
    pub(crate) iphi: u8,
}

/// A cluster around the hottest cell of the inner 8 × 8 cells of a region of interest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster {
    /// Sum of 3 × 7 cells (η × φ).
    pub(crate) et37_mev: i64,
    /// Sum of 7 × 7 cells.
    pub(crate) et77_mev: i64,
    /// The 16 × 16 cells of the region without the 7 × 7.
    pub(crate) ring_mev: i64,
    /// Calibrated transverse energy.
    pub(crate) et_mev: i64,
    /// Hottest cell, in η and φ.
    pub(crate) hot: [i32; 2],
    /// Energy-weighted middle of the 3 × 7 cells, in η and φ.
    centroid: [f64; 2],
}

impl Core {
    /// The cells of the region: 0.4 × 0.4 around the upper corner of the tower.
    pub(crate) fn cells(self) -> Window {
        let [eta, phi] = self.corner();
        Window { sub: SubSystem::EmCalo, eta: eta - HALF..eta + HALF, phi: phi - HALF..phi + HALF }
    }

    /// Where the tracks of the region are; a track bends on its way to the calorimeter.
    pub(crate) fn tracks(self) -> Window {
        let eta = ANGLES_ETA_PER_TOWER * (i32::from(self.ieta) + 1);
        let phi = ANGLES_PHI_PER_TOWER * (i32::from(self.iphi) + 1);
        track_window(eta, phi)
    }

    fn corner(self) -> [i32; 2] {
        [self.ieta, self.iphi].map(|tower| CELLS_PER_TOWER * (i32::from(tower) + 1))
    }
}

/// Tracks within two towers of a point in quantised angles.
pub(crate) fn track_window(eta: i32, phi: i32) -> Window {
    let (half_eta, half_phi) = (2 * ANGLES_ETA_PER_TOWER, 2 * ANGLES_PHI_PER_TOWER);
    Window { sub: SubSystem::Tracker, eta: eta - half_eta..eta + half_eta, phi: phi - half_phi..phi + half_phi }
}

impl Cluster {
    /// The hadronic towers behind it: 3 × 3 around that of the hottest cell.
    pub(crate) fn towers(&self) -> Window {
        let [eta, phi] = self.hot.map(|cell| cell / CELLS_PER_TOWER);
        Window { sub: SubSystem::HadCalo, eta: eta - 1..eta + 2, phi: phi - 1..phi + 2 }
    }

    /// Cuts on energy, shower shape and isolation.
    pub(crate) fn passes(&self, et_min_mev: i64, cuts: &Cuts) -> bool {
        let ring_max = i64::from(cuts.ring_max_mev) + i64::from(cuts.ring_max_permil) * self.et37_mev / 1000;
        self.et_mev >= et_min_mev
            && 1000 * self.et37_mev >= i64::from(cuts.r_eta_min_permil) * self.et77_mev
            && self.ring_mev <= ring_max
    }

    /// Cut on what leaks into the hadronic calorimeter.
    pub(crate) fn passes_hadronic(&self, hadronic_mev: i64, cuts: &Cuts) -> bool {
        let part = i64::from(cuts.hadronic_max_permil) * self.et37_mev / 1000;
        hadronic_mev <= part.max(i64::from(cuts.hadronic_max_mev))
    }
}

/// The cluster in the region, if any of its inner cells has energy. Of equally hot cells the first in rising η, then φ.
pub(crate) fn cluster(detector: &Detector, data: &impl Data, core: Core, cuts: &Cuts) -> Option<Cluster> {
    let [eta, phi] = core.corner();
    let (eta, phi) = (eta - HALF, phi - HALF);
    let mut counts = [[0_i64; SIDE]; SIDE];
    for source_id in detector.robs(&core.cells()) {
        for (channel, adc) in data.records(source_id).cells() {
            let row = ((channel >> 8) as i32 - eta).cast_unsigned() as usize;
            let column = ((channel & 0xff) as i32 - phi).cast_unsigned() as usize % EM_CELLS_PHI as usize;
            if let Some(cell) = counts.get_mut(row).and_then(|row| row.get_mut(column)) {
                *cell = i64::from(adc);
            }
        }
    }
    let [i, j] = hottest(&counts)?;
    let sum = |rows: std::ops::Range<usize>| -> i64 { counts[rows].iter().flat_map(|row| &row[j - 3..j + 4]).sum() };
    let (et37, et77) = (sum(i - 1..i + 2), sum(i - 3..i + 4));
    let all: i64 = counts.iter().flatten().sum();
    let et37_mev = et37 * detector.em_count_mev;
    let hot = [eta + i as i32, (phi + j as i32).rem_euclid(EM_CELLS_PHI)];
    Some(Cluster {
        et37_mev,
        et77_mev: et77 * detector.em_count_mev,
        ring_mev: (all - et77) * detector.em_count_mev,
        et_mev: et37_mev * i64::from(cuts.em_calibration_permil) / 1000,
        hot,
        centroid: centroid(&counts, [i, j], hot, et37),
    })
}

/// Energy in the towers behind the cluster.
pub(crate) fn hadronic_mev(detector: &Detector, data: &impl Data, cluster: &Cluster) -> i64 {
    let [eta, phi] = cluster.hot.map(|cell| cell / CELLS_PER_TOWER);
    let mut sum = 0_i64;
    for source_id in detector.robs(&cluster.towers()) {
        for (channel, adc) in data.records(source_id).cells() {
            let (row, column) = ((channel >> 6) as i32, (channel & 0x3f) as i32);
            if (row - eta).abs() <= 1 && (column - phi + 1).rem_euclid(TOWERS_PHI) < 3 {
                sum += i64::from(adc);
            }
        }
    }
    sum * detector.had_count_mev
}

/// The track nearest to the cluster where both meet the calorimeter, as its charge over momentum.
pub(crate) fn track_qpt(
    detector: &Detector,
    data: &impl Data,
    core: Core,
    cluster: &Cluster,
    cuts: &Cuts,
) -> Option<i32> {
    let mut best: Option<(f64, i32)> = None;
    for source_id in detector.robs(&core.tracks()) {
        for track in data.records(source_id).tracks() {
            let Some([eta, phi]) = at_calorimeter(detector, track, cuts.track_pt_min_gev) else { continue };
            let (delta_eta, delta_phi) = ((eta - cluster.centroid[0]).abs(), wrap(phi - cluster.centroid[1]).abs());
            if delta_eta < cuts.track_delta_eta_max && delta_phi < cuts.track_delta_phi_max {
                let distance = delta_eta * delta_eta + delta_phi * delta_phi;
                if best.is_none_or(|(least, _)| distance < least) {
                    best = Some((distance, track.qpt_q));
                }
            }
        }
    }
    best.map(|(_, qpt_q)| qpt_q)
}

/// Cells of the inner 8 × 8 leave room for the 7 × 7 around them.
fn hottest(counts: &[[i64; SIDE]; SIDE]) -> Option<[usize; 2]> {
    let mut hottest = (0, [0, 0]);
    for (i, row) in counts.iter().enumerate().take(12).skip(4) {
        for (j, count) in row.iter().enumerate().take(12).skip(4) {
            if *count > hottest.0 {
                hottest = (*count, [i, j]);
            }
        }
    }
    (hottest.0 > 0).then_some(hottest.1)
}

fn centroid(counts: &[[i64; SIDE]; SIDE], [i, j]: [usize; 2], hot: [i32; 2], et37: i64) -> [f64; 2] {
    let (mut by_eta, mut by_phi) = (0, 0);
    for (n, row) in counts[i - 1..i + 2].iter().enumerate() {
        for (m, count) in row[j - 3..j + 4].iter().enumerate() {
            by_eta += n as i64 * count;
            by_phi += m as i64 * count;
        }
    }
    let (by_eta, by_phi) = (by_eta as f64 / et37 as f64, by_phi as f64 / et37 as f64);
    let eta = -2.5 + 0.025 * (f64::from(hot[0] - 1) + 0.5 + by_eta);
    let phi = (f64::from(hot[1] - 3) + 0.5 + by_phi) * TAU / f64::from(EM_CELLS_PHI);
    [eta, phi]
}

/// Where a track above the momentum cut meets the calorimeter, in η and φ seen from the middle of the detector. It is a
/// helix of radius pT / 0.3 B up to the barrel, or to the end cap if it gets there first.
fn at_calorimeter(detector: &Detector, track: Track, pt_min_gev: f64) -> Option<[f64; 2]> {
    if track.qpt_q == 0 {
        return None;
    }
    let pt_gev = 1.0 / (f64::from(track.qpt_q.abs()) * detector.units.q_over_pt_per_gev);
    if pt_gev < pt_min_gev {
        return None;
    }
    let phi = (f64::from(track.phi_q) + 0.5) * TAU / f64::from(ANGLES_PHI);
    let charge = f64::from(track.qpt_q.signum());
    let z0_m = f64::from(track.low) * detector.units.z0_mm * 1e-3;
    let sinh_eta = (f64::from(track.eta_q) * detector.units.eta).sinh();
    let solenoid = &detector.solenoid;
    let curvature_m = pt_gev / (0.3 * solenoid.field_t);
    if 2.0 * curvature_m > solenoid.radius_m {
        let half_turn = (solenoid.radius_m / (2.0 * curvature_m)).asin();
        let z = z0_m + 2.0 * half_turn * curvature_m * sinh_eta;
        if z.abs() <= solenoid.half_length_m {
            return Some([(z / solenoid.radius_m).asinh(), phi - charge * half_turn]);
        }
    }
    if sinh_eta.abs() < 1e-6 {
        return None;
    }
    let z = solenoid.half_length_m.copysign(sinh_eta);
    let half_turn = 0.5 * (z - z0_m) / sinh_eta / curvature_m;
    let radius_m = (2.0 * curvature_m * half_turn.sin()).abs().max(1e-6);
    Some([(z / radius_m).asinh(), phi - charge * half_turn])
}

const SIDE: usize = 16;
const HALF: i32 = SIDE as i32 / 2;
