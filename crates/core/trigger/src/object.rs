//! What is known of one region of interest, and the steps by which more becomes known.

use dataflow::message::Roi;

use crate::cuts::Cuts;
use crate::data::Data;
use crate::detector::Detector;
use crate::electron::{self, Cluster, Core};
use crate::feature::{EmValues, Values};
use crate::geography::Window;
use crate::jet::{self, Middle};
use crate::menu::{Menu, RoiAlgorithm};
use crate::muon::{self, Tower};
use crate::payload::Track;

/// The object in a region of interest. All chains that look at the region share it: nothing in it depends on a threshold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Object {
    Em { core: Core, cluster: Option<Cluster>, hadronic_mev: i64, track_qpt_q: Option<i32> },
    Muon { tower: Tower, stub: Option<Track>, track_qpt_q: Option<i32> },
    Jet { middle: Middle, et_mev: i64 },
}

/// What a step says about one cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    GoOn,
    Failed,
    Passed,
}

impl Object {
    pub(crate) fn new(algorithm: RoiAlgorithm, roi: &Roi) -> Self {
        let (ieta, iphi) = (roi.ieta, roi.iphi);
        match algorithm {
            RoiAlgorithm::Electron | RoiAlgorithm::Photon => {
                Self::Em { core: Core { ieta, iphi }, cluster: None, hadronic_mev: 0, track_qpt_q: None }
            }
            RoiAlgorithm::Muon => Self::Muon { tower: Tower { ieta, iphi }, stub: None, track_qpt_q: None },
            RoiAlgorithm::Jet => Self::Jet { middle: Middle::of(ieta, iphi), et_mev: 0 },
        }
    }

    /// Where the data of a step are, the steps before it having been taken.
    pub(crate) fn windows(&self, step: u8, cuts: &Cuts) -> [Option<Window>; 2] {
        match (self, step) {
            (Self::Em { core, .. }, 0) => [Some(core.cells()), None],
            (Self::Em { cluster, .. }, 1) => [cluster.as_ref().map(Cluster::towers), None],
            (Self::Em { core, .. }, _) => [Some(core.tracks()), None],
            (Self::Muon { tower, .. }, 0) => [Some(tower.stubs(cuts)), None],
            (Self::Muon { tower, .. }, _) => [Some(tower.tracks()), None],
            (Self::Jet { middle, .. }, _) => middle.windows().map(Some),
        }
    }

    /// Extracts what a step adds.
    pub(crate) fn extract(&mut self, step: u8, menu: &Menu, data: &impl Data) {
        let (detector, cuts) = (menu.detector(), menu.cuts());
        match self {
            Self::Em { core, cluster, hadronic_mev, track_qpt_q } => match (step, &cluster) {
                (0, _) => *cluster = electron::cluster(detector, data, *core, cuts),
                (1, Some(cluster)) => *hadronic_mev = electron::hadronic_mev(detector, data, cluster),
                (_, Some(cluster)) => *track_qpt_q = electron::track_qpt(detector, data, *core, cluster, cuts),
                (_, None) => {}
            },
            Self::Muon { tower, stub, track_qpt_q } => match (step, *stub) {
                (0, _) => *stub = muon::stub(detector, data, *tower, cuts),
                (_, Some(stub)) => *track_qpt_q = muon::track_qpt(detector, data, *tower, stub, cuts),
                (_, None) => {}
            },
            Self::Jet { middle, et_mev } => *et_mev = jet::et_mev(detector, data, *middle, cuts),
        }
    }

    /// The cuts of a step that was just extracted.
    pub(crate) fn judge(&self, step: u8, algorithm: RoiAlgorithm, et_min_mev: i64, menu: &Menu) -> Verdict {
        let (detector, cuts): (&Detector, &Cuts) = (menu.detector(), menu.cuts());
        let (passes, is_last) = match self {
            Self::Em { cluster: None, .. } => (false, true),
            Self::Em { cluster: Some(cluster), hadronic_mev, track_qpt_q, .. } => match step {
                0 => (cluster.passes(et_min_mev, cuts), false),
                1 => (cluster.passes_hadronic(*hadronic_mev, cuts), algorithm == RoiAlgorithm::Photon),
                _ => (track_qpt_q.is_some(), true),
            },
            Self::Muon { stub: None, .. } => (false, true),
            Self::Muon { stub: Some(stub), track_qpt_q, .. } => match step {
                0 => (muon::stub_passes(detector, *stub, et_min_mev, cuts), false),
                _ => (track_qpt_q.is_some_and(|qpt_q| muon::track_passes(detector, qpt_q, et_min_mev)), true),
            },
            Self::Jet { et_mev, .. } => (*et_mev >= et_min_mev, true),
        };
        match (passes, is_last) {
            (false, _) => Verdict::Failed,
            (true, false) => Verdict::GoOn,
            (true, true) => Verdict::Passed,
        }
    }

    /// The values that an algorithm saw which took so many steps: others may have gone further in the same region.
    pub(crate) fn values(&self, steps: u8) -> Values {
        match self {
            Self::Em { cluster: None, .. } => Values::Em(EmValues::default()),
            Self::Em { cluster: Some(cluster), hadronic_mev, track_qpt_q, .. } => Values::Em(EmValues {
                et37_mev: cluster.et37_mev,
                et77_mev: cluster.et77_mev,
                ring_mev: cluster.ring_mev,
                et_mev: cluster.et_mev,
                hot_cell: Some((cluster.hot[0] << 8 | cluster.hot[1]).cast_unsigned()),
                hadronic_mev: (steps > 1).then_some(*hadronic_mev),
                track_qpt_q: track_qpt_q.filter(|_| steps > 2).unwrap_or(0),
            }),
            Self::Muon { stub, track_qpt_q, .. } => Values::Muon {
                stub_qpt_q: stub.map_or(0, |stub| stub.qpt_q),
                track_qpt_q: track_qpt_q.filter(|_| steps > 1).unwrap_or(0),
            },
            Self::Jet { et_mev, .. } => Values::Jet { et_mev: *et_mev },
        }
    }
}
