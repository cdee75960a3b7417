//! The limits of every cut, on hits made by hand.

use std::path::Path;
use std::sync::Arc;

use trigger::{AlgorithmSpec, Cuts, Decision, Detector, EmValues, Menu, Roi, Steering, Values};

use crate::common::chains::chain;
use crate::common::handmade::Hits;
use crate::common::{detector, level2, physics};

/// One chain of each kind with low cuts.
struct Setting {
    detector: Arc<Detector>,
    steering: Steering,
}

impl Setting {
    fn new(physics: &Path) -> Self {
        let detector = detector(physics, "rob160");
        let threshold = str::to_owned;
        let chains = [
            chain("photon", "L1_EM7", AlgorithmSpec::Photon { threshold: threshold("EM7"), et_mev: 10_630, count: 1 }),
            chain("electron", "L1_EM20", AlgorithmSpec::Electron { threshold: threshold("EM7"), et_mev: 0, count: 1 }),
            chain("muon", "L1_MU6", AlgorithmSpec::Muon { threshold: threshold("MU6"), et_mev: 20_000, count: 1 }),
            chain("jet", "L1_J20", AlgorithmSpec::Jet { threshold: threshold("J20"), et_mev: 12_200, count: 1 }),
            chain("2jets", "L1_J50", AlgorithmSpec::Jet { threshold: threshold("J20"), et_mev: 12_200, count: 2 }),
        ];
        let menu = Menu::new(Arc::clone(&detector), &chains, Cuts::default()).unwrap();
        Self { detector, steering: Steering::new(Arc::new(menu)) }
    }

    fn decide(&mut self, hits: &Hits, item: &str, rois: &[Roi]) -> (Decision, Vec<Values>) {
        let items = 1 << self.detector.item(item).unwrap();
        let decision = level2(&mut self.steering, &hits.event(&self.detector, items, rois));
        (decision, self.steering.features().map(|feature| feature.values).collect())
    }

    fn photon(&mut self, hits: &Hits) -> (bool, EmValues) {
        self.em(hits, "L1_EM7", EM)
    }

    fn em(&mut self, hits: &Hits, item: &str, roi: Roi) -> (bool, EmValues) {
        let (decision, values) = self.decide(hits, item, &[roi]);
        let [Values::Em(values)] = values[..] else { panic!("{values:?}") };
        (decision.accept(), values)
    }

    fn muon(&mut self, hits: &Hits) -> (bool, i32, i32) {
        let roi = Roi { kind: 2, ieta: 30, iphi: 0, thresholds: u32::MAX, ..Roi::default() };
        let (decision, values) = self.decide(hits, "L1_MU6", &[roi]);
        let [Values::Muon { stub_qpt_q, track_qpt_q }] = values[..] else { panic!("{values:?}") };
        (decision.accept(), stub_qpt_q, track_qpt_q)
    }
}

/// Its cells are 80 to 95 in η and 248 to 7 in φ; the inner ones 84 to 91 and 252 to 3.
const EM: Roi =
    Roi { kind: 0, ieta: 21, iphi: 63, eta: 0.0, phi: 0.0, et_mev: 0, aux_mev: [0; 2], thresholds: u32::MAX };

#[test]
fn clusters_pass_at_their_limits_and_not_beyond() {
    let Some(mut setting) = setting("clusters_pass_at_their_limits_and_not_beyond") else { return };
    let hot = |counts| Hits::default().em(88, 0, counts);
    let (passes, values) = setting.photon(&hot(500));
    assert!(passes, "10,630 MeV after calibration, which is the cut");
    let expected = EmValues {
        et37_mev: 10_000,
        et77_mev: 10_000,
        ring_mev: 0,
        et_mev: 10_630,
        hot_cell: Some(88 << 8),
        hadronic_mev: Some(0),
        track_qpt_q: 0,
    };
    assert_eq!(values, expected);
    let (passes, values) = setting.photon(&hot(499));
    assert_eq!((passes, values.hadronic_mev), (false, None), "rejected before the hadronic step");

    assert!(setting.photon(&hot(900).em(90, 0, 100)).0, "R_eta is 0.9");
    assert!(!setting.photon(&hot(899).em(90, 0, 100)).0);
    assert!(setting.photon(&hot(900).em(90, 3, 101).em(89, 253, 9)).0, "3 × 7 cells reach around φ = 0");

    let (passes, values) = setting.photon(&hot(1000).em(95, 0, 90).em(80, 248, 90));
    assert_eq!((passes, values.ring_mev), (true, 3600), "2 GeV and 8 % of 20 GeV");
    assert!(!setting.photon(&hot(1000).em(95, 0, 90).em(80, 7, 91)).0);
    assert!(setting.photon(&hot(1000).em(96, 0, 900).em(79, 0, 900).em(88, 8, 900).em(88, 247, 900)).0, "outside");

    let (passes, values) = setting.photon(&hot(1000).had(21, 63, 25).had(23, 1, 25));
    assert_eq!((passes, values.hadronic_mev), (true, Some(2500)));
    assert!(!setting.photon(&hot(1000).had(21, 63, 25).had(22, 0, 26)).0);
    assert!(setting.photon(&hot(1000).had(24, 0, 900).had(20, 0, 900).had(22, 2, 900).had(22, 62, 900)).0, "outside");
    assert!(setting.photon(&hot(5000).had(22, 0, 80)).0, "4 % of 100 GeV");
    assert!(!setting.photon(&hot(5000).had(22, 0, 81)).0);
}

#[test]
fn the_hottest_inner_cell_is_the_first_in_eta_then_phi() {
    let Some(mut setting) = setting("the_hottest_inner_cell_is_the_first_in_eta_then_phi") else { return };
    let mut hot = |hits: &Hits| setting.photon(hits).1.hot_cell;
    assert_eq!(hot(&Hits::default().em(88, 0, 5).em(86, 3, 5).em(86, 254, 5)), Some(86 << 8 | 254));
    assert_eq!(hot(&Hits::default().em(84, 252, 5).em(91, 3, 6)), Some(91 << 8 | 3));
    assert_eq!(hot(&Hits::default().em(83, 0, 900).em(92, 0, 900).em(88, 4, 900).em(88, 251, 900)), None);
    assert_eq!(setting.photon(&Hits::default().em(88, 4, 900)), (false, EmValues::default()));
}

#[test]
fn the_nearest_track_above_the_momentum_cut_is_matched() {
    let Some(mut setting) = setting("the_nearest_track_above_the_momentum_cut_is_matched") else { return };
    let roi = Roi { ieta: 24, iphi: 63, ..EM };
    // Middle of the cluster: η = 0.0125, φ = half a cell, 128 quantised steps.
    let hits = || Hits::default().em(100, 0, 1000);
    let mut electron = |hits: &Hits| setting.em(hits, "L1_EM20", roi).1.track_qpt_q;
    assert_eq!(electron(&hits()), 0);
    assert_eq!(electron(&hits().track(125, 128, 100, 0)), 100);
    assert_eq!(electron(&hits().track(125, 128, 0, 0)), 0, "no momentum");
    assert_eq!(electron(&hits().track(125, 65_000, -7000, 0)), 0, "below 5 GeV");
    assert_eq!(electron(&hits().track(525, 128, 100, 0)), 0, "0.04 away in η");
    assert_eq!(electron(&hits().track(124, 128 + 1200, 10, 0)), 0, "0.1 away in φ");
    assert_eq!(electron(&hits().track(124, 128 - 900, 10, 0).track(124, 700, 20, 0)), 20);
    assert_eq!(electron(&hits().track(124, -300, 10, 0).track(124, 1100, 20, 0)), 10);
    // 100 mm at a radius of 1.4 m move it by 0.07.
    assert_eq!(electron(&hits().track(125 - 713, 128, 100, 10_000)), 100);
    assert_eq!(electron(&hits().track(125, 128, 100, 10_000)), 0);
    // A track of 10 GeV turns by 0.042 on its way, against its charge.
    assert_eq!(electron(&hits().track(125, 128 + 438 + 900, 3200, 0)), 3200);
    assert_eq!(electron(&hits().track(125, 128 + 438 + 900, -3200, 0)), 0);
}

#[test]
fn the_stub_of_highest_momentum_and_the_track_that_points_to_it_make_a_muon() {
    let Some(mut setting) = setting("the_stub_of_highest_momentum_and_the_track_that_points_to_it_make_a_muon") else {
        return;
    };
    // The tower is 5000 to 6000 in η, 0 to 1024 in φ; its middle 5500 and 512.
    let track = |qpt_q, bend| Hits::default().track(5500, 512 + bend, qpt_q, 0);
    let stub = |qpt_q| track(1600, 438).stub(5500, 512, qpt_q);
    assert_eq!(setting.muon(&stub(1600)), (true, 1600, 1600), "20 GeV");
    assert_eq!(setting.muon(&stub(2000)), (true, 2000, 1600), "16 GeV, 25 % more is the cut");
    assert_eq!(setting.muon(&stub(2001)), (false, 2001, 0));
    assert_eq!(setting.muon(&stub(-1600)), (false, -1600, 0), "the other charge");
    assert_eq!(setting.muon(&track(1601, 438).stub(5500, 512, 1600)), (false, 1600, 1601), "below 20 GeV");
    assert_eq!(setting.muon(&stub(0)), (false, 0, 0));
    assert_eq!(setting.muon(&stub(1900).stub(5400, 1, -1500).stub(5400, 65_100, 1700)).1, -1500);
    assert_eq!(setting.muon(&stub(0).stub(6500, 512, 1600)).1, 1600, "at the edge of the window");
    assert_eq!(setting.muon(&stub(0).stub(6501, 512, 1600)).1, 0);
    assert_eq!(setting.muon(&stub(0).stub(4500, 65_024, 1600)).1, 1600);
    assert_eq!(setting.muon(&stub(0).stub(4500, 65_023, 1600)).1, 0);
    let far = Hits::default().track(5700, 512 + 438, 1600, 0).track(5500, 512 + 700, 1500, 0).stub(5500, 512, 1600);
    assert_eq!(setting.muon(&far), (true, 1600, 1600), "the track that points better, 200 steps away in η");
    assert!(!setting.muon(&Hits::default().track(5701, 512 + 438, 1600, 0).stub(5500, 512, 1600)).0);
}

#[test]
fn jets_are_cones_around_the_corner_of_their_tower() {
    let Some(mut setting) = setting("jets_are_cones_around_the_corner_of_their_tower") else { return };
    let roi = |iphi| Roi { kind: 1, ieta: 20, iphi, thresholds: u32::MAX, ..Roi::default() };
    let mut jet = |hits: &Hits, iphi: u8| {
        let (decision, values) = setting.decide(hits, "L1_J20", &[roi(iphi)]);
        let [Values::Jet { et_mev }] = values[..] else { panic!("{values:?}") };
        assert_eq!(decision.accept(), et_mev >= 12_200);
        assert_eq!(decision.steps, 1);
        et_mev
    };
    assert_eq!(jet(&Hits::default().em(84, 0, 250).had(21, 0, 100), 63), 12_200, "10 GeV, calibrated");
    assert_eq!(jet(&Hits::default().em(84, 255, 250).had(20, 63, 99), 63), 12_139);
    assert_eq!(jet(&Hits::default().had(24, 0, 100), 63), 6100, "half towers 7 and 1: 50 of 64");
    assert_eq!(jet(&Hits::default().had(25, 0, 100), 63), 0, "9 and 1");
    assert_eq!(jet(&Hits::default().had(17, 62, 100).had(17, 61, 100), 63), 6100, "7 and 3; 7 and 5 are 74");
}

#[test]
fn a_chain_of_two_needs_two() {
    let Some(mut setting) = setting("a_chain_of_two_needs_two") else { return };
    let roi = |ieta| Roi { kind: 1, ieta, iphi: 10, thresholds: u32::MAX, ..Roi::default() };
    let hits = Hits::default().had(5, 11, 300).had(40, 11, 300);
    let mut accepts = |rois: &[Roi]| setting.decide(&hits, "L1_J50", rois).0.accept();
    assert!(!accepts(&[roi(4)]));
    assert!(!accepts(&[roi(4), roi(20)]));
    assert!(accepts(&[roi(4), roi(20), roi(39)]));
    assert!(!accepts(&[roi(4), Roi { thresholds: 0, ..roi(39) }]), "below the level-1 threshold");
    assert!(!accepts(&[roi(4), Roi { kind: 0, ..roi(39) }]));
}

#[test]
fn what_several_chains_want_is_computed_and_asked_for_once() {
    let Some(mut setting) = setting("what_several_chains_want_is_computed_and_asked_for_once") else { return };
    let roi = Roi { kind: 1, ieta: 20, iphi: 10, thresholds: u32::MAX, ..Roi::default() };
    let items = ["L1_J20", "L1_J50"].map(|item| 1 << setting.detector.item(item).unwrap());
    let event = Hits::default().had(21, 11, 300).event(&setting.detector, items[0] | items[1], &[roi]);
    let decision = level2(&mut setting.steering, &event);
    assert_eq!((decision.input, decision.passed), (0b11000, 0b01000));
    let features: Vec<_> = setting.steering.features().collect();
    assert_eq!(features.len(), 1);
    assert_eq!((features[0].chain, features[0].roi, features[0].passed), (3, Some(0), true));
}

fn setting(test: &str) -> Option<Setting> {
    physics(test).map(|physics| Setting::new(&physics))
}
