//! Muons: a stub in the region of interest, then a track that points to it. The momentum is the track's.

use std::f64::consts::TAU;

use crate::angle::wrap;
use crate::cuts::Cuts;
use crate::data::Data;
use crate::detector::Detector;
use crate::electron::track_window;
use crate::geography::{ANGLES_ETA_PER_TOWER, ANGLES_ETA_ZERO, ANGLES_PHI, ANGLES_PHI_PER_TOWER, SubSystem, Window};
use crate::payload::Track;

/// The tower of a muon region of interest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tower {
    pub(crate) ieta: u8,
    pub(crate) iphi: u8,
}

impl Tower {
    pub(crate) fn stubs(self, cuts: &Cuts) -> Window {
        let [eta, phi] = self.middle();
        let (half_eta, half_phi) = (cuts.stub_delta_eta_q_max, cuts.stub_delta_phi_q_max);
        Window { sub: SubSystem::Muon, eta: eta - half_eta..eta + half_eta, phi: phi - half_phi..phi + half_phi }
    }

    pub(crate) fn tracks(self) -> Window {
        let [eta, phi] = self.middle();
        track_window(eta, phi)
    }

    fn middle(self) -> [i32; 2] {
        let eta = ANGLES_ETA_PER_TOWER * i32::from(self.ieta) + ANGLES_ETA_PER_TOWER / 2;
        [eta, ANGLES_PHI_PER_TOWER * i32::from(self.iphi) + ANGLES_PHI_PER_TOWER / 2]
    }
}

/// The stub of highest momentum in the region.
pub(crate) fn stub(detector: &Detector, data: &impl Data, tower: Tower, cuts: &Cuts) -> Option<Track> {
    let [eta, phi] = tower.middle();
    let mut best: Option<Track> = None;
    for source_id in detector.robs(&tower.stubs(cuts)) {
        for stub in data.records(source_id).tracks() {
            let delta_phi = (stub.phi_q - phi + ANGLES_PHI / 2).rem_euclid(ANGLES_PHI) - ANGLES_PHI / 2;
            let is_near = (stub.eta_q + ANGLES_ETA_ZERO - eta).abs() <= cuts.stub_delta_eta_q_max
                && delta_phi.abs() <= cuts.stub_delta_phi_q_max;
            if is_near && stub.qpt_q != 0 && best.is_none_or(|best| stub.qpt_q.abs() < best.qpt_q.abs()) {
                best = Some(stub);
            }
        }
    }
    best
}

/// Loose cut on the momentum of the stub alone.
pub(crate) fn stub_passes(detector: &Detector, stub: Track, pt_min_mev: i64, cuts: &Cuts) -> bool {
    let scaled = cuts.stub_pt_factor * detector.units.counts_gev as f64;
    scaled / f64::from(stub.qpt_q.abs()) * 1000.0 >= pt_min_mev as f64
}

/// The track of the stub's charge that points to it best, as its charge over momentum.
pub(crate) fn track_qpt(detector: &Detector, data: &impl Data, tower: Tower, stub: Track, cuts: &Cuts) -> Option<i32> {
    let stub_phi = (f64::from(stub.phi_q) + 0.5) * TAU / f64::from(ANGLES_PHI);
    let mut best: Option<(f64, i32)> = None;
    for source_id in detector.robs(&tower.tracks()) {
        for track in data.records(source_id).tracks() {
            let is_candidate = track.qpt_q.signum() == stub.qpt_q.signum()
                && (track.eta_q - stub.eta_q).abs() <= cuts.stub_track_delta_eta_q_max;
            if !is_candidate {
                continue;
            }
            let distance = wrap(behind_solenoid(detector, track) - stub_phi).abs();
            if distance < cuts.stub_track_delta_phi_max && best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, track.qpt_q));
            }
        }
    }
    best.map(|(_, qpt_q)| qpt_q)
}

/// Cut on the track's momentum, in integers.
pub(crate) fn track_passes(detector: &Detector, qpt_q: i32, pt_min_mev: i64) -> bool {
    detector.units.counts_gev * 1000 >= pt_min_mev * i64::from(qpt_q.abs())
}

/// Azimuth of a track's direction where it leaves the field.
fn behind_solenoid(detector: &Detector, track: Track) -> f64 {
    let pt_gev = 1.0 / (f64::from(track.qpt_q.abs()) * detector.units.q_over_pt_per_gev);
    let sinh_eta = (f64::from(track.eta_q) * detector.units.eta).sinh();
    let solenoid = &detector.solenoid;
    let length_m = solenoid.radius_m.min(solenoid.half_length_m / sinh_eta.abs().max(1e-6));
    let bend = 0.3 * solenoid.field_t * length_m / pt_gev;
    (f64::from(track.phi_q) + 0.5) * TAU / f64::from(ANGLES_PHI) - f64::from(track.qpt_q.signum()) * bend
}
